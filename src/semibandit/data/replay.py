"""Policies on logged decisions: what a policy would have earned, and starting one from a log.

A log is a Parquet file with a row for each played arm:

===============  ========  ==================================================================================
column           type      what
===============  ========  ==================================================================================
``round``        integer   number of the decision, from 0 or 1, in any order; rows of one round belong together
``arm``          integer   arm id, 0 .. K - 1; an arm occurs at most once in a round
``reward``       number    its reward, within the reward range
``probability``  number    optional: probability with which the logging policy plays this arm, in (0, 1]
===============  ========  ==================================================================================

Other columns are left alone. The logging policy must have chosen bases uniformly at random (Li et al. 2011).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.checks import as_range, one_of
from semibandit.environments import Environment
from semibandit.errors import FileError, MissingExtraError, ParameterError
from semibandit.matroids import Matroid, Partition, Uniform
from semibandit.matroids.base import is_kind
from semibandit.policies.base import Policy
from semibandit.text import needs

MATCHES = ("arms", "base")
_SHOWN = 5


@dataclass(frozen=True)
class Log:
    """Logged decisions, round by round: those of round i are ``arms[starts[i]:starts[i + 1]]``.

    `skipped` lists (row, why) of malformed rows that were left out, rows counted from 1.
    """

    rounds: IntArray
    starts: IntArray
    arms: IntArray
    rewards: FloatArray
    probabilities: FloatArray | None = None
    skipped: list[tuple[int, str]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rounds)


@dataclass(frozen=True)
class ReplayResult:
    """What a policy would have earned per round.

    `value` is unbiased up to the history the policy learns from; `normalized` divides by the weights that really
    occurred, which is steadier and slightly biased. `effective_samples` is the number of rounds of its own that the
    estimate is worth: (sum of weights)^2 / sum of squares.
    """

    rounds: int
    matched_rounds: int
    matched_arms: int
    value: float
    standard_error: float
    normalized: float
    effective_samples: float
    match: str


def read_log(
    path: str | Path, matroid: Matroid, reward_range: tuple[float, float] = (0.0, 1.0), bad: str = "reject"
) -> Log:
    """Read and check a log. Malformed rows: ``bad="reject"`` names the first ones, ``"skip"`` leaves them out.

    O(rows log rows), and one independence test a round.

    Raises
    ------
    FileError
        When the file is no Parquet file, lacks a column, has malformed rows, or nothing is left of it.
    """
    one_of(bad, "bad", ("reject", "skip"))
    low, high = as_range(reward_range)
    columns = _columns(Path(path))
    n = len(columns["arm"])
    why = np.full(n, "", dtype=object)
    rounds = _whole(columns["round"], "round", why)
    arms = _whole(columns["arm"], "arm", why)
    rewards = _number(columns["reward"], "reward", why)
    _blame(why, (arms < 0) | (arms >= matroid.n_arms), f"arm is not one of 0 .. {matroid.n_arms - 1}")
    _blame(why, ~((rewards >= low) & (rewards <= high)), f"reward is outside ({low:g}, {high:g})")
    chances = None
    if "probability" in columns:
        chances = _number(columns["probability"], "probability", why)
        _blame(why, ~((chances > 0.0) & (chances <= 1.0)), "probability is not in (0, 1]")
    order = np.lexsort((arms, rounds))
    again = np.zeros(n, dtype=np.bool_)
    same = (rounds[order][1:] == rounds[order][:-1]) & (arms[order][1:] == arms[order][:-1])
    again[order[1:][same]] = True
    _blame(why, again, "arm occurs twice in its round")
    good = order[why[order] == ""]
    distinct, first = np.unique(rounds[good], return_index=True)
    starts = np.append(first, good.size).astype(np.int64)
    for i in range(len(distinct)):
        played = arms[good[starts[i] : starts[i + 1]]]
        if not matroid.is_independent(played):
            why[good[starts[i] : starts[i + 1]]] = "arms of the round cannot be played together"
    wrong = [(int(row) + 1, str(why[row])) for row in np.flatnonzero(why != "")]
    if wrong and bad == "reject":
        told = "; ".join(f"row {row}: {text}" for row, text in wrong[:_SHOWN])
        more = f"; and {len(wrong) - _SHOWN:,} more" if len(wrong) > _SHOWN else ""
        raise FileError(f"{path}: {told}{more}. Mend them, or skip them with bad='skip'")
    good = order[why[order] == ""]
    if good.size == 0:
        raise FileError(f"{path}: no row is left" if wrong else f"{path}: the log is empty")
    distinct, first = np.unique(rounds[good], return_index=True)
    return Log(
        distinct,
        np.append(first, good.size).astype(np.int64),
        arms[good],
        rewards[good],
        None if chances is None else chances[good],
        wrong,
    )


def replay(policy: Policy, log: Log, match: str = "arms") -> ReplayResult:
    """Let `policy` decide the rounds of a log and learn from what the log can tell of its choices.

    ``match="base"``: a round counts only if the policy chooses exactly the logged base; its rewards are then what the
    policy earns (rejection sampling, Li et al. 2011). Exact, but hardly ever happens when bases are many.
    ``match="arms"``: the arms that the policy's base and the logged base share count, each weighted by one over the
    probability with which the logging policy plays it; the policy is told their rewards only. That probability is
    D / K for uniform matroids and capacity / size for partition matroids, else the column of the log, else how often
    the arm occurs in it.

    The policy is changed; give a clone to keep it. O(D) a round besides the policy.
    """
    one_of(match, "match", MATCHES)
    if len(log.arms) and log.arms.max() >= policy.n_arms:
        raise ParameterError(f"log names arm {log.arms.max()}, the policy has arms 0 .. {policy.n_arms - 1}")
    chances = _chances(policy.matroid, log)
    place = np.full(policy.n_arms, -1, dtype=np.int64)
    earned: list[float] = []
    weights: list[float] = []
    matched_rounds = matched_arms = 0
    for i in range(len(log)):
        rows = slice(int(log.starts[i]), int(log.starts[i + 1]))
        logged = log.arms[rows]
        chosen = policy.select()
        place[logged] = np.arange(rows.start, rows.stop)
        at = place[chosen]
        place[logged] = -1
        at = at[at >= 0]
        matched_arms += len(at)
        whole = len(at) == len(chosen) == len(logged)
        matched_rounds += whole
        if match == "base":
            if not whole:
                continue
            weights.append(1.0)
            earned.append(float(log.rewards[at].sum()))
        else:
            weight = 1.0 / chances[at]
            weights.append(float(weight.sum()) / max(len(chosen), 1))
            earned.append(float((weight * log.rewards[at]).sum()))
        if len(at):
            policy.update(log.arms[at], log.rewards[at])
    total, squares = math.fsum(weights), math.fsum(w * w for w in weights)
    n = len(earned)
    value = math.fsum(earned) / n if n else math.nan
    spread = float(np.std(earned, ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    return ReplayResult(
        rounds=len(log),
        matched_rounds=matched_rounds,
        matched_arms=matched_arms,
        value=value,
        standard_error=spread,
        normalized=math.fsum(earned) / total if total > 0.0 else math.nan,
        effective_samples=total * total / squares if squares > 0.0 else 0.0,
        match=match,
    )


def warm_start(policy: Policy, log: Log) -> int:
    """Tell `policy` everything in the log, in the order of its rounds; how many rewards that was. O(rows)."""
    policy.update(log.arms, log.rewards)
    return len(log.arms)


def random_log(env: Environment, rounds: int, seed: int = 0) -> Any:
    """Decisions of the uniformly random policy in `env`, as a polars data frame in the format of a log.

    Uniform over bases for uniform and partition matroids; elsewhere greedy over a random order. O(D) a round for the
    first two, O(K log K) else.
    """
    polars = _polars("random_log")
    from semibandit.policies.catalogue import make_policy

    policy = make_policy("random", env.matroid, env.reward_range, seed)
    rows: list[tuple[int, int, float]] = []
    for t in range(1, rounds + 1):
        arms = policy.select()
        rewards = env.draw(arms, t)
        rows += [(t, arm, reward) for arm, reward in zip(arms.tolist(), rewards.tolist(), strict=True)]
    return polars.DataFrame(rows, schema=["round", "arm", "reward"], orient="row")


def _polars(purpose: str) -> Any:
    try:
        import polars
    except ImportError:
        raise MissingExtraError(needs(purpose, "polars")) from None
    return polars


def _columns(path: Path) -> dict[str, Any]:
    """The columns of the log as polars series."""
    polars = _polars("a log")
    try:
        frame = polars.read_parquet(path)
    except Exception as error:  # whatever polars raises for a file it cannot read
        text = str(error).splitlines()[0][:150] if str(error) else type(error).__name__
        raise FileError(f"{path} cannot be read as Parquet: {text}") from None
    missing = [name for name in ("round", "arm", "reward") if name not in frame.columns]
    if missing:
        raise FileError(
            f"{path} has no column {missing[0]!r}: a log has round, arm and reward (and maybe probability); "
            f"this file has {', '.join(frame.columns) or 'none'}"
        )
    return {name: frame[name] for name in ("round", "arm", "reward", "probability") if name in frame.columns}


def _blame(why: Any, bad: Any, text: str) -> None:
    """Note `text` for the bad rows that have no reason yet."""
    why[bad & (why == "")] = text


def _whole(series: Any, name: str, why: Any) -> IntArray:
    if not series.dtype.is_integer():
        raise FileError(f"column {name!r} must hold integers, it holds {series.dtype}")
    _blame(why, series.is_null().to_numpy(), f"{name} is missing")
    try:
        return np.asarray(series.fill_null(-1).cast(_polars("a log").Int64).to_numpy()).astype(np.int64)
    except Exception:
        raise FileError(f"column {name!r} has integers too large for an id") from None


def _number(series: Any, name: str, why: Any) -> FloatArray:
    if not series.dtype.is_numeric():
        raise FileError(f"column {name!r} must hold numbers, it holds {series.dtype}")
    _blame(why, series.is_null().to_numpy(), f"{name} is missing")
    values = np.asarray(
        series.cast(_polars("a log").Float64).fill_null(math.nan).to_numpy(), dtype=np.float64
    )
    _blame(why, ~np.isfinite(values), f"{name} is not finite")
    return values


def _chances(matroid: Matroid, log: Log) -> FloatArray:
    """For each row, the probability with which the logging policy plays its arm."""
    if is_kind(matroid, Uniform):
        return np.full(len(log.arms), matroid.rank / matroid.n_arms)
    if is_kind(matroid, Partition):
        size = np.bincount(matroid._group, minlength=matroid.n_groups)
        group = matroid._group[log.arms]
        return np.asarray(matroid._capacity[group] / size[group])
    if log.probabilities is not None:
        return log.probabilities
    seen = np.bincount(log.arms, minlength=matroid.n_arms)
    return np.asarray(seen[log.arms] / len(log))
