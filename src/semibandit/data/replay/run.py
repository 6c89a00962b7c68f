"""Policies on logged decisions: the replay itself, warm starts, and random logs to try it with."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray, IntArray
from semibandit.checks import as_distinct_arms, as_number, as_per_arm, as_seed, as_vector, as_whole
from semibandit.data.replay.columns import import_polars
from semibandit.data.replay.estimators import ESTIMATORS, Terms, estimate
from semibandit.data.replay.log import Log
from semibandit.data.replay.propensities import choose_match, row_weights
from semibandit.data.replay.result import ReplayResult
from semibandit.environments import Environment
from semibandit.errors import ParameterError
from semibandit.policies.base import Policy

#: What a model expects of these arms in round i of the log.
Predict = Callable[[int, IntArray], FloatArray]


def replay(
    policy: Policy | npt.ArrayLike | Callable[[Any], npt.ArrayLike],
    log: Log,
    match: str | None = None,
    *,
    estimators: str | Sequence[str] = tuple(ESTIMATORS),
    model: str | npt.ArrayLike | Callable[..., npt.ArrayLike] | None = None,
    clip: float | None = None,
    assume: str | None = None,
    learn: bool = True,
    resamples: int = 1000,
    seed: int = 0,
) -> ReplayResult:
    """Off-policy evaluation: what `policy` would have earned per round, estimated from a log of another policy.

    A policy decides the rounds of the log in their order and learns from what the log can tell of its choices. It sees
    less than it would live, so a learner's value is that of a slower learner. The policy is changed; give a clone to
    keep it.

    O(D) per round besides the policy (O(K) with ``model="policy"``), and O(resamples) per round for the intervals.

    Parameters
    ----------
    policy
        A policy; or the arms of one base that is played in every round; or a function that is called with the number
        (or name) of a round and returns arms.
    log
        From `read_log`.
    match
        ``"arms"``: the arms that the chosen and the logged base share count, each weighted by one over the probability
        with which the logging policy plays it (semi-bandit, or item-level, weights). ``"base"``: a round counts only if
        the whole base was logged, weighted by one over the probability of that base; right also where the reward of an
        arm depends on the others, but hardly ever happens when bases are many. By default ``"arms"``, unless the log
        gives probabilities of bases only.
    estimators
        Any of ``"ips"``, ``"snips"``, ``"clipped"`` and ``"dr"``: see the table above.
    model
        What ``"dr"`` expects of an arm: one mean per arm; a function of the round and the arms; ``"policy"``, the
        policy's own means before it learns from the round; or None, the means of the log before the round. The last two
        know nothing of the round's rewards, so that the estimate stays unbiased.
    clip
        The largest weight of ``"clipped"``; by default the square root of the number of rounds.
    assume
        What to do without logged propensities of the kind that `match` needs. None: take bases to be uniformly random,
        and refuse a log that is visibly not (see `uniformity`). ``"uniform"``: the same without the test.
        ``"frequencies"``: take how often the arm, or the base, occurs in the log: right if the logging policy never
        changed and used no context. Logged propensities are always used where they are there.
    learn
        Whether the policy is told the rewards of what it shares with the log.
    resamples
        Draws of the bootstrap, over rounds, from which the 95 % intervals come.
    seed
        Of the bootstrap.

    Raises
    ------
    ParameterError
        For arguments that do not fit, a log that does not look uniform and has no propensities, or propensities that
        cannot be right. The policy is unchanged then.

    References
    ----------
    Li, Chu, Langford and Wang 2011, Unbiased offline evaluation of contextual-bandit-based news article recommendation
    algorithms. Swaminathan et al. 2017, Off-policy evaluation for slate recommendation.

    Examples
    --------
    Pages of two items out of three, logged with the probability of each item. What would items 0 and 2 have earned?

    >>> import semibandit as sb
    >>> from semibandit.data.replay import read_log, replay
    >>> pages = {
    ...     "round": [1, 1, 2, 2, 3, 3, 4, 4],
    ...     "arm": [0, 1, 1, 2, 0, 2, 0, 1],
    ...     "reward": [1, 0, 1, 0, 0, 1, 1, 1],
    ...     "propensity": [0.75, 0.75, 0.75, 0.5, 0.75, 0.5, 0.75, 0.75],
    ... }
    >>> log = read_log(pages, sb.Uniform(n_arms=3, rank=2))
    >>> found = replay([0, 2], log, estimators=["ips", "snips"])
    >>> round(found["ips"].value, 4), round(found["snips"].value, 4)
    (1.1667, 1.1667)
    """
    names = _names(estimators)
    match = choose_match(log, match)
    weight, source = row_weights(log, match, assume)
    target = _Target(policy, log, learn)
    predict = _model(model, policy, log) if "dr" in names else None
    limit = math.sqrt(len(log)) if clip is None else as_number(clip, "clip", 0.0, closed=False)
    resamples = as_whole(resamples, "resamples", 1, "draws of the bootstrap")
    seed = as_seed(seed)
    n = len(log)
    rows: list[IntArray] = []
    expected: list[FloatArray] = []
    chosen = np.zeros(n, dtype=np.int64)
    predicted = np.zeros(n)
    place = np.full(log.matroid.n_arms, -1, dtype=np.int64)
    seen = np.bincount(log.arms, minlength=log.matroid.n_arms) > 0
    matched_rounds = matched_arms = unseen = 0
    bounds = log.starts.tolist()
    for i in range(n):
        first, end = bounds[i], bounds[i + 1]
        logged = log.arms[first:end]
        arms = target.select(i)
        place[logged] = np.arange(first, end)
        at = place[arms]
        place[logged] = -1
        shared = at >= 0
        at = at[shared]
        whole = len(at) == len(arms) == len(logged)
        chosen[i] = len(arms)
        matched_arms += len(at)
        matched_rounds += whole
        unseen += len(arms) - int(np.count_nonzero(seen[arms]))
        counts = len(at) > 0 and (whole or match == "arms")
        if predict is not None:
            values = predict(i, arms)
            predicted[i] = values.sum()
            if counts:
                expected.append(values[shared])
        if counts:
            rows.append(at)
            target.learn(log.arms[at], log.rewards[at])
    row = np.concatenate(rows) if rows else np.empty(0, dtype=np.int64)
    terms = Terms(
        round=np.repeat(np.arange(n), np.diff(log.starts))[row],
        weight=weight[row],
        reward=log.rewards[row],
        expected=np.concatenate(expected) if expected else np.zeros(len(row)),
        chosen=chosen,
        predicted=predicted,
    )
    return ReplayResult(
        policy=target.name,
        match=match,
        propensities=source,
        rounds=n,
        matched_rounds=matched_rounds,
        matched_arms=matched_arms,
        chosen_arms=int(chosen.sum()),
        unseen_arms=unseen,
        estimates=tuple(estimate(terms, names, limit, resamples, seed)),
    )


def warm_start(policy: Policy, log: Log) -> int:
    """Tell `policy` everything in the log, in the order of its rounds; how many rewards that was. O(rows)."""
    policy.update(log.arms, log.rewards)
    return len(log.arms)


def random_log(env: Environment, rounds: int, seed: int = 0) -> Any:
    """Decisions of the uniformly random policy in `env`, as a polars data frame in the format of a log.

    Uniform over bases for uniform and partition matroids; elsewhere greedy over a random order. O(D) per round for the
    first two, O(K log K) else.
    """
    polars = import_polars("random_log")
    from semibandit.policies.catalogue import make_policy

    policy = make_policy("random", env.matroid, env.reward_range, seed)
    rows: list[tuple[int, int, float]] = []
    for t in range(1, rounds + 1):
        arms = policy.select()
        rewards = env.draw(arms, t)
        rows += [(t, arm, reward) for arm, reward in zip(arms.tolist(), rewards.tolist(), strict=True)]
    return polars.DataFrame(rows, schema=["round", "arm", "reward"], orient="row")


class _Target:
    """What is evaluated: a policy, one base, or a function of the round."""

    def __init__(self, policy: Any, log: Log, learn: bool) -> None:
        self._log, self._n_arms = log, log.matroid.n_arms
        self._policy: Policy | None = None
        self._told: Policy | None = None
        if isinstance(policy, Policy):
            if policy.n_arms != self._n_arms:
                raise ParameterError(f"policy has {policy.n_arms} arms, the log's matroid {self._n_arms}")
            low, high = policy.reward_range
            if learn and policy.outside == "error" and (log.rewards.min() < low or log.rewards.max() > high):
                raise ParameterError(
                    f"the log's rewards are in [{log.rewards.min():g}, {log.rewards.max():g}], outside the policy's "
                    f"reward_range ({low:g}, {high:g}): make it with the range of the log"
                )
            self.name, self._policy = policy.name, policy
            self._told = policy if learn else None
        elif callable(policy):
            self.name, self._function = getattr(policy, "__name__", type(policy).__name__), policy
        else:
            self._base = np.sort(as_distinct_arms(policy, self._n_arms, "policy"))
            if not log.matroid.is_independent(self._base):
                raise ParameterError(
                    f"policy: arms {self._base.tolist()} are not independent in {log.matroid!r}"
                )
            self._function = None
            self.name = (
                f"arms {', '.join(map(str, self._base[:6].tolist()))}{', ...' * (len(self._base) > 6)}"
            )

    def select(self, i: int) -> IntArray:
        """The arms chosen in round i of the log."""
        if self._policy is not None:
            return self._policy.select()
        if self._function is None:
            return self._base
        where = f"policy({self._log.rounds[i]!r})"
        return as_distinct_arms(self._function(self._log.rounds[i]), self._n_arms, where)

    def learn(self, arms: IntArray, rewards: FloatArray) -> None:
        """Tell a learner what it shares with the log."""
        if self._told is not None:
            self._told.update(arms, rewards)


def _names(estimators: str | Sequence[str]) -> list[str]:
    names = list(dict.fromkeys([estimators] if isinstance(estimators, str) else estimators))
    for name in names:
        if name not in ESTIMATORS:
            raise ParameterError(f"estimator = {name!r} is not known: one of {', '.join(ESTIMATORS)}")
    if not names:
        raise ParameterError(f"estimators is empty: name some of {', '.join(ESTIMATORS)}")
    return names


def _model(model: Any, policy: Any, log: Log) -> Predict:
    """The function that says what to expect of arms in a round."""
    if model is None:
        return _RunningMeans(log)
    if callable(model):

        def call(i: int, arms: IntArray) -> FloatArray:
            where = f"model({log.rounds[i]!r}, {arms.tolist()})"
            values = as_vector(model(log.rounds[i], arms), where)
            if len(values) != len(arms):
                raise ParameterError(f"{where} must give one value per arm ({len(arms)}), got {len(values)}")
            return values

        return call
    if isinstance(model, str):
        if model != "policy":
            raise ParameterError(f"model = {model!r} is not known: 'policy', means, a function or None")
        if not isinstance(policy, Policy):
            raise ParameterError(
                "model = 'policy' goes with a policy, which has means; give means or a function"
            )
        middle = 0.5 * (log.reward_range[0] + log.reward_range[1])
        return lambda i, arms: np.nan_to_num(policy.means[arms], nan=middle)
    means = as_per_arm(model, "model", log.matroid.n_arms)
    return lambda i, arms: means[arms]


class _RunningMeans:
    """The mean of each arm over the rounds of the log before this one, drawn a little to the mean of all arms."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._next = 0
        self._total, self._count = np.zeros(log.matroid.n_arms), np.zeros(log.matroid.n_arms)
        self._all, self._n = 0.5 * (log.reward_range[0] + log.reward_range[1]), 1

    def __call__(self, i: int, arms: IntArray) -> FloatArray:
        while self._next < i:
            rows = slice(int(self._log.starts[self._next]), int(self._log.starts[self._next + 1]))
            played, rewards = self._log.arms[rows], self._log.rewards[rows]
            self._total[played] += rewards
            self._count[played] += 1.0
            self._all += float(rewards.sum())
            self._n += len(played)
            self._next += 1
        return np.asarray((self._total[arms] + self._all / self._n) / (self._count[arms] + 1.0))
