"""What a simulation gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.errors import ParameterError
from semibandit.frames import data_frame
from semibandit.text import number, unknown

#: The part of the runs that lose no more: what is told beside means.
LEVELS = (0.1, 0.5, 0.9)


def quantiles_of(regret: FloatArray, levels: Sequence[float] = LEVELS) -> FloatArray:
    """Quantiles over the first axis, the repeats, interpolated between neighbours: levels x the other axes."""
    return np.asarray(np.quantile(regret, levels, axis=0))


#: Head of a column of `middle_of`.
MIDDLE = "median (10 \N{EN DASH} 90 %)"


def middle_of(median: float, low: float, high: float) -> str:
    """A median between the quantiles of 10 and 90 %, for tables."""
    return f"{number(median)} ({number(low)} \N{EN DASH} {number(high)})"


def checkpoints(rounds: int, record_every: int | Sequence[int] | None) -> IntArray:
    """Rounds at which a run is recorded; the last one is the last round. O(number of checkpoints).

    Log-spaced by default (about 40 a decade: a curve over 10^6 rounds needs no more); every
    `record_every` rounds, or at the rounds that it lists, otherwise.
    """
    if record_every is None:
        n = 1 + int(40 * np.log10(rounds)) if rounds > 1 else 1
        marks = np.unique(np.round(np.geomspace(1, rounds, n)).astype(np.int64))
    elif isinstance(record_every, (int, np.integer)):
        marks = np.arange(record_every, rounds + 1, record_every, dtype=np.int64)
    else:
        marks = np.unique(np.asarray(record_every, dtype=np.int64))
    if len(marks) == 0 or marks[-1] != rounds:
        marks = np.append(marks, rounds)
    return marks


@dataclass(repr=False)
class SimulationResult:
    """One run. All arrays have one entry per checkpoint and are cumulative up to that round.

    `select_seconds` and `update_seconds` are the policy's own time; drawing rewards is in neither. `path` is
    ``"compiled"`` when policy and environment ran in one kernel, else ``"stepwise"``.
    """

    policy: str
    rounds: IntArray
    regret: FloatArray
    reward: FloatArray
    select_seconds: FloatArray
    update_seconds: FloatArray
    path: str
    arms: IntArray | None = None
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def microseconds_per_round(self) -> float:
        """The policy's time per round, select and update together, averaged over the run."""
        total = float(self.select_seconds[-1] + self.update_seconds[-1])
        return 1e6 * total / float(self.rounds[-1])

    def to_frame(self, library: str = "polars") -> Any:
        """The run as a data frame, a row per checkpoint: ``"polars"`` (extra ``results``) or ``"pandas"``."""
        return data_frame(self._columns(), library)

    def plot(self, path: str | Path | None = None, *, title: str = "Regret", scale: str = "linear") -> Any:
        """Draw the regret (extra ``plot``); see `Comparison.plot`."""
        return Comparison({self.policy: [self]}).plot(path, title=title, scale=scale)

    def _columns(self) -> dict[str, Any]:
        n = len(self.rounds)
        return {
            "policy": [self.policy] * n,
            "round": self.rounds,
            "regret": self.regret,
            "reward": self.reward,
            "select_seconds": self.select_seconds,
            "update_seconds": self.update_seconds,
        }

    def __repr__(self) -> str:
        return (
            f"SimulationResult({self.policy}: {int(self.rounds[-1]):,} rounds, regret "
            f"{number(float(self.regret[-1]), 4)}, reward {number(float(self.reward[-1]), 4)}, "
            f"{number(self.microseconds_per_round)} us per round, {self.path})"
        )

    def _repr_html_(self) -> str:
        return Comparison({self.policy: [self]})._repr_html_()


@dataclass(repr=False)
class Comparison:
    """Several policies on the same reward streams. `runs[name]` lists one `SimulationResult` per repeat.

    Example
    -------
    >>> import semibandit as sb
    >>> items = sb.Uniform(n_arms=4, rank=1)
    >>> env = sb.Bernoulli(items, [0.2, 0.4, 0.6, 0.8], seed=1)
    >>> rivals = {"knows": sb.Oracle(items, means=env.means), "guesses": sb.Random(items)}
    >>> runs = sb.compare(rivals, env, rounds=500, repeats=3)
    >>> runs.best
    'knows'
    >>> runs
    Comparison(2 policies, 500 rounds, 3 repeats; least regret: knows 0)
    """

    runs: dict[str, list[SimulationResult]]

    @property
    def rounds(self) -> IntArray:
        """The checkpoints, the same for every run."""
        return next(iter(self.runs.values()))[0].rounds

    @property
    def ranking(self) -> list[str]:
        """Names of the policies, least mean regret at the end first; of equals the one named first."""
        return sorted(self.runs, key=lambda name: float(self.mean_regret(name)[-1]))

    @property
    def best(self) -> str:
        """The policy of least mean regret at the end."""
        return self.ranking[0]

    def regret(self, policy: str) -> FloatArray:
        """Cumulative regret of `policy`, repeats x checkpoints."""
        if policy not in self.runs:
            raise ParameterError(unknown(f"policy = {policy!r} was not compared", policy, self.runs))
        return np.array([run.regret for run in self.runs[policy]])

    def mean_regret(self, policy: str) -> FloatArray:
        """Mean over repeats at each checkpoint."""
        return np.asarray(self.regret(policy).mean(axis=0))

    def standard_error(self, policy: str) -> FloatArray:
        """Standard error of the mean at each checkpoint (NaN for a single repeat)."""
        regret = self.regret(policy)
        if len(regret) < 2:
            return np.full(regret.shape[1], np.nan)
        return np.asarray(regret.std(axis=0, ddof=1) / np.sqrt(len(regret)))

    def quantiles(self, policy: str, levels: Sequence[float] = LEVELS) -> FloatArray:
        """Quantiles of regret over the repeats, levels x checkpoints; by default those of 10, 50 and 90 % of the runs.

        Beside the mean because it tells little of a policy that is often good and now and then bad. With R repeats
        nothing is known beyond the levels 1 / R and 1 - 1 / R.

        >>> import semibandit as sb
        >>> items = sb.Uniform(n_arms=4, rank=1)
        >>> env = sb.Bernoulli(items, [0.2, 0.4, 0.6, 0.8], seed=1)
        >>> runs = sb.compare({"draws": sb.CTS(items)}, env, rounds=500, repeats=20)
        >>> low, middle, high = runs.quantiles("draws")[:, -1]
        >>> bool(low < middle < high)
        True
        """
        told = np.asarray(levels, dtype=np.float64)
        if told.ndim != 1 or not ((told >= 0.0) & (told <= 1.0)).all():
            raise ParameterError(f"levels must be numbers between 0 and 1, got {levels!r}")
        return quantiles_of(self.regret(policy), told.tolist())

    def summary(self) -> list[dict[str, Any]]:
        """A row per policy, in their order: final regret, its error and quantiles, microseconds per round, path.

        ``regret_10``, ``regret_50`` and ``regret_90``: what 10, 50 and 90 % of the repeats stay below.
        """
        rows: list[dict[str, Any]] = []
        for name, runs in self.runs.items():
            about: dict[str, Any] = {k: runs[0].about[k] for k in ("engine", "clock") if k in runs[0].about}
            rows.append(
                {
                    "policy": name,
                    "rounds": int(self.rounds[-1]),
                    "repeats": len(runs),
                    "regret": float(self.mean_regret(name)[-1]),
                    "standard_error": float(self.standard_error(name)[-1]),
                    **{
                        f"regret_{100 * level:.0f}": float(value)
                        for level, value in zip(LEVELS, self.quantiles(name)[:, -1], strict=True)
                    },
                    "reward": float(np.mean([run.reward[-1] for run in runs])),
                    "select_us": float(np.median([1e6 * r.select_seconds[-1] / r.rounds[-1] for r in runs])),
                    "update_us": float(np.median([1e6 * r.update_seconds[-1] / r.rounds[-1] for r in runs])),
                    "path": runs[0].path,
                    **about,
                }
            )
        return rows

    def to_frame(self, library: str = "polars") -> Any:
        """All runs as one data frame, a row per policy, repeat and checkpoint.

        `library` is ``"polars"`` (extra ``results``) or ``"pandas"`` (extra ``pandas``).
        """
        columns: dict[str, list[Any]] = {}
        for runs in self.runs.values():
            for repeat, run in enumerate(runs):
                part = {**run._columns(), "repeat": [repeat] * len(run.rounds)}
                for key, value in part.items():
                    columns.setdefault(key, []).extend(np.asarray(value).tolist())
        return data_frame(columns, library)

    def plot(self, path: str | Path | None = None, *, title: str = "Regret", scale: str = "linear") -> Any:
        """Draw mean cumulative regret over rounds (extra ``plot``): the matplotlib figure, which a notebook shows.

        With `path` it is also written there (.png, .svg, .pdf). `scale` is ``"linear"``, on which the curve of a policy
        that learns flattens; ``"semi"`` (logarithmic rounds), on which logarithmic regret is a straight line; or
        ``"log"`` (both axes), for curves of very different heights. O(checkpoints).
        """
        # A later room, so it is looked up by its name when a picture is wanted.
        draw = import_module("semibandit.report.plots").plot_comparison
        return draw(self, path, title=title, scale=scale)

    def __repr__(self) -> str:
        n, repeats = len(self.runs), len(self.runs[self.best])
        shape = ", ".join(
            f"{count:,} {one if count == 1 else many}"
            for count, one, many in (
                (n, "policy", "policies"),
                (int(self.rounds[-1]), "round", "rounds"),
                (repeats, "repeat", "repeats"),
            )
        )
        return f"Comparison({shape}; least regret: {self.best} {number(float(self.mean_regret(self.best)[-1]), 4)})"

    def _repr_html_(self) -> str:
        rows = {row["policy"]: row for row in self.summary()}
        lines = []
        for name in self.ranking:
            row = rows[name]
            error = (
                ""
                if row["standard_error"] != row["standard_error"]
                else f" ± {number(row['standard_error'])}"
            )
            label = f"<b>{escape(name)}</b>" if name == self.best else escape(name)
            cells = (
                f"{number(row['regret'], 4)}{error}",
                middle_of(row["regret_50"], row["regret_10"], row["regret_90"]) if error else "",
                number(row["reward"], 4),
                number(row["select_us"] + row["update_us"]),
                row["path"],
                escape(str(row.get("engine", ""))),
            )
            lines.append(f"<tr><td>{label}</td>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        head = "".join(
            f"<th>{word}</th>"
            for word in ("policy", "regret", MIDDLE, "reward", "µs per round", "path", "engine")
        )
        row = rows[self.best]
        told = (
            f"{row['rounds']:,} rounds, mean of {row['repeats']} {'run' if row['repeats'] == 1 else 'runs'}"
        )
        return (
            f"<table><caption>{told}; least regret first</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
        )
