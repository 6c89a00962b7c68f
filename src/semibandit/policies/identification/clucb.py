"""CLUCB: the best base with confidence 1 - delta (Chen, Lin, King, Lyu and Chen 2014, Algorithm 1)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from semibandit.arms import ALPHA, BETA, COUNT, FloatArray, IntArray, flat, new_records
from semibandit.checks import as_arms, as_number, as_range, as_rewards, explain, one_of
from semibandit.compiled.handle import by_handle, make_handle
from semibandit.engines import choose_clock, make_engine
from semibandit.engines.kernels import BAD_REWARD, AnyEngine
from semibandit.engines.resolve.one_by_one import UNKNOWN, Rule, rule_of
from semibandit.environments.base import EnvironmentState
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid
from semibandit.policies.identification.two_bases import (
    LED,
    N_FOUND,
    N_LEADER,
    NEXT,
    REFUSED,
    SAMPLES,
    STOPPED,
    TwoBases,
    find_leader,
    find_rival,
    new_two_bases,
    observe_both,
    sample_on,
    width_of,
)

if TYPE_CHECKING:
    from semibandit.environments import Environment

CLOCKS = ("auto", "exact", "staircase")
_BATCH = 1 << 16


@dataclass(frozen=True)
class IdentificationResult:
    """What `identify` found: the base, the price, and whether the confidence was reached."""

    base: IntArray
    samples: int
    seconds: float
    stopped: bool
    delta: float
    counts: IntArray


class _Kernels(NamedTuple):
    """`identification.two_bases`, each with the handles of one search."""

    find_leader: Any
    find_rival: Any
    observe: Any
    sample_on: Any


class CLUCB:
    """Finds the base of largest mean: tells which arm to sample next, and when it is sure.

    Not a policy: it samples one arm at a time and pays no regret. With probability at least 1 - delta the base it stops
    with is the best one.

    After t samples let rad(k) = R sqrt(2 log(4 K t^3 / delta) / N_k), R = (b - a) / 2. The empirical base M is the best
    under the means. The optimistic base is the best under means that count rad(k) less for the arms of M and rad(k)
    more for all others. If M is as good as that, it is the answer; otherwise the arm of largest radius of those
    in one of the two bases, but not in both, is sampled. Each arm is sampled once first; loops never.

    Parameters
    ----------
    matroid
        What may be played together.
    delta
        Allowed probability of a wrong answer.
    reward_range
        Bounds (a, b) of every reward.
    engine
        ``"auto"`` or a name in `semibandit.engines.ENGINES`. All make the same decisions under one clock.
    clock
        ``"exact"``: the radius as above. ``"staircase"``: rounded up to the next power of ``1 + step``; still a valid
        radius, at most ``1 + step`` too wide. ``"auto"`` takes the staircase where it makes a fast engine possible.

    Notes
    -----
    Both bases are kept by engines: M at lam = 0, and the optimistic base of the arms outside M at the lam of the
    radius, with the arms of M deleted. The optimistic base of all arms lies in the union of that and M
    (docs/theory.md, section A), so greedy over at most 2D arms finds it. Cost of a sample: O(D log D) and an update
    and a query of the two engines; no pass over all arms for uniform, partition and laminar matroids, and none
    between two steps of the staircase for the others.

    The two values are never summed up: of equal arms greedy prefers those of M, so that the optimistic base is M itself
    exactly when no base is better.

    Example
    -------
    >>> import semibandit as sb
    >>> search = sb.CLUCB(sb.Uniform(n_arms=3, rank=1), delta=0.1)
    >>> while not search.stopped:
    ...     arm = search.next_arm()
    ...     search.update(arm, 1.0 if arm == 1 else 0.0)
    >>> search.base.tolist()
    [1]
    """

    name = "clucb"

    def __init__(
        self,
        matroid: Matroid,
        *,
        delta: float = 0.05,
        reward_range: tuple[float, float] = (0.0, 1.0),
        engine: str = "auto",
        clock: str = "auto",
        step: float = 0.01,
    ) -> None:
        if not isinstance(matroid, Matroid):
            raise ParameterError(f"matroid must be a semibandit Matroid, got {type(matroid).__name__}")
        self.matroid = matroid
        self.n_arms = matroid.n_arms
        self.delta = as_number(delta, "delta", 0.0, 1.0, closed=False)
        self.reward_range = as_range(reward_range)
        one_of(clock, "clock", CLOCKS)
        self.step = as_number(step, "step", 0.0, 1.0, closed=False)
        self.clock = choose_clock(matroid, engine) if clock == "auto" else clock
        self.records = new_records(self.n_arms)
        self._recs: FloatArray = flat(self.records).reshape(-1, 4)
        # The leader's lam stays 0, so any engine serves.
        self._means, _ = make_engine(matroid, self.records, engine, "staircase")
        self._others, self._why = make_engine(matroid, self.records, engine, self.clock)
        self._leader: IntArray = np.empty(0, dtype=np.int64)
        self._rival: IntArray = self._leader
        low, high = self.reward_range
        self._radius = np.array([0.5 * (high - low), math.log(4.0 * self.n_arms / self.delta)])
        self._stair = 0.0 if self.clock == "exact" else self.step
        self._rule = rule_of(matroid, self._recs)
        self._two = new_two_bases(self._recs, matroid.rank)
        self._unsampled = np.ones(self.n_arms, dtype=np.bool_)
        self._unsampled[matroid.loops] = False
        self._left = int(self._unsampled.sum())
        self._first = 0
        self._samples = 0
        self._fresh = False
        self._stopped = False

    @property
    def engine(self) -> str:
        """Name of the engine that keeps the optimistic base."""
        return self._others.name

    @property
    def samples(self) -> int:
        """Number of rewards seen so far: the t of the radius."""
        return self._samples

    @property
    def counts(self) -> IntArray:
        """How often each arm was sampled. O(K) copy."""
        return self.records["count"].astype(np.int64)

    @property
    def width(self) -> float:
        """R sqrt(2 log(4 K t^3 / delta)), rounded up under the staircase; rad(k) is this over sqrt(N_k)."""
        return float(width_of(self._radius, self._samples, self._stair))

    @property
    def base(self) -> IntArray:
        """The answer once `stopped`; before, the base of largest empirical mean (arms never sampled first)."""
        return self._leader.copy() if self._stopped else self._means.base()

    @property
    def stopped(self) -> bool:
        """Whether the answer is known with the wanted confidence. Stays so, whatever is fed afterwards."""
        if not self._stopped and self._left == 0:
            self._refresh()
        return self._stopped

    def next_arm(self) -> int:
        """The arm to sample now; the same one until an update comes."""
        if self.stopped:
            raise ParameterError("next_arm: the search has stopped; its answer is in .base")
        if self._left:
            while not self._unsampled[self._first]:
                self._first += 1
            return self._first
        if self._kernels is not None:
            return int(self._two.meta[NEXT])
        both = np.setxor1d(self._leader, self._rival, assume_unique=True)
        # Largest radius: fewest samples; argmin takes the smallest id of equals.
        return int(both[np.argmin(self._recs[both, COUNT])])

    def unsampled(self) -> IntArray:
        """The arms that are still to be sampled for the first time, ascending. O(K)."""
        return np.flatnonzero(self._unsampled).astype(np.int64)

    def update(self, arms: npt.ArrayLike, rewards: npt.ArrayLike) -> None:
        """Count the reward of an arm (or of several). Validates first; a refused call changes nothing."""
        ids = as_arms(arms, self.n_arms)
        values = as_rewards(rewards, len(ids))
        if self._kernels is not None:
            code = self._kernels.observe(ids, values, *self.reward_range)
        else:
            code = self._means.observe(ids, values, *self.reward_range)
        if code:
            raise explain(code, ids, values, self.n_arms, self.reward_range)
        if self._kernels is None:
            self._others.touch(ids)
        self._samples += len(ids)
        if self._left:
            fresh = np.unique(ids[self._unsampled[ids]])
            self._unsampled[fresh] = False
            self._left -= len(fresh)
        self._fresh = False

    def _refresh(self) -> None:
        """Bring both bases up to date and see whether they agree."""
        if self._fresh:
            return
        kernels = self._kernels
        if kernels is None:
            self._lead(self._means.base())
        elif not kernels.find_leader():
            self._lead_found()
        lam = self.width
        self._others.advance(lam)
        if kernels is not None:
            self._stopped = bool(kernels.find_rival(lam))
        else:
            self._rival = self._best_rival(lam)
            self._stopped = bool(np.array_equal(self._rival, self._leader))
        self._fresh = True

    def _lead(self, leader: IntArray) -> None:
        """Let this base be the leader: its arms, and no others, are out of the engine of the others. O(D log D)."""
        if not np.array_equal(leader, self._leader):
            comes = np.setdiff1d(leader, self._leader, assume_unique=True)
            goes = np.setdiff1d(self._leader, leader, assume_unique=True)
            if len(goes):
                self._others.insert(goes)
            self._others.delete(comes)
            self._leader = leader

    def _lead_found(self) -> None:
        """Let the base that kernels found be the leader. O(D log D)."""
        leader = self._two.found[: self._two.meta[N_FOUND]].copy()
        self._lead(leader)
        self._two.leader[: len(leader)] = leader
        self._two.meta[N_LEADER] = len(leader)

    def _sample(self, env: Environment, limit: int) -> bool:
        """Sample until it stops or there are `limit` samples, in one kernel; False where that cannot be."""
        world = env.kernel_state()
        if self._kernels is None or world is None or self._left:
            return False
        arms, rewards, meta = np.zeros(1, dtype=np.int64), np.zeros(1), self._two.meta
        meta[SAMPLES] = self._samples
        why = LED
        with env._lock:
            while why == LED:
                before = int(meta[SAMPLES])
                why = self._kernels.sample_on(
                    make_handle(world),
                    self._radius,
                    self._stair,
                    *self.reward_range,
                    env.round,
                    limit,
                    arms,
                    rewards,
                )
                # A refused reward was drawn, but not counted.
                env._played_until(env._round + int(meta[SAMPLES]) - before + (why == REFUSED))
                self._samples, self._fresh = int(meta[SAMPLES]), False
                self._others.advance(self.width)
                if why == LED:
                    self._lead_found()
        if why == REFUSED:
            raise explain(BAD_REWARD, arms, rewards, self.n_arms, self.reward_range)
        self._stopped, self._fresh = why == STOPPED, True
        return True

    def _best_rival(self, lam: float) -> IntArray:
        """The optimistic base, ascending, where kernels cannot tell what is independent."""
        leader = self._leader
        outside = self._others.base()
        recs = self._recs
        arms = np.concatenate((leader, outside))
        radius = lam * recs[arms, BETA]
        radius[: len(leader)] *= -1.0
        # Ties: the leader's arms first, then the smaller id. Both parts ascend, so a stable sort does that.
        order = np.argsort(-(recs[arms, ALPHA] + radius), kind="stable")
        return np.sort(self.matroid._greedy(arms[order]))

    @cached_property
    def _kernels(self) -> _Kernels | None:
        """What a sample calls, or None where the engines or the rule of the matroid are in Python only."""
        engines = [getattr(engine, "any", None) for engine in (self._means, self._others)]
        if self._rule.kind == UNKNOWN or None in engines:
            return None
        own, rule = make_handle(self._two), make_handle(self._rule)
        means, others = (make_handle(engine) for engine in engines)
        return _Kernels(
            partial(by_handle(find_leader, TwoBases, AnyEngine).entry, own, means),
            partial(by_handle(find_rival, TwoBases, AnyEngine, Rule).entry, own, others, rule),
            partial(by_handle(observe_both, AnyEngine, AnyEngine).entry, means, others),
            partial(
                by_handle(sample_on, TwoBases, AnyEngine, AnyEngine, Rule, EnvironmentState).entry,
                own,
                means,
                others,
                rule,
            ),
        )

    def describe(self) -> dict[str, Any]:
        """What runs inside."""
        return {
            "policy": self.name,
            "matroid": repr(self.matroid),
            "engine": self._others.name,
            "why": self._why,
            "clock": self.clock,
            "delta": self.delta,
            "samples": self._samples,
        }

    def _check(self) -> None:
        """Assert all invariants. O(K)."""
        self._means._check()
        self._others._check()
        assert self._left == int(self._unsampled.sum())
        assert np.array_equal(self._others.deleted, self._leader)

    def __repr__(self) -> str:
        return f"CLUCB({self.matroid!r}, delta={self.delta}, engine={self.engine!r}, samples={self._samples})"


def identify(
    matroid: Matroid,
    env: Environment,
    delta: float = 0.05,
    engine: str = "auto",
    clock: str = "auto",
    *,
    max_samples: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> IdentificationResult:
    """Sample arms of `env` until `CLUCB` is sure of the best base, or `max_samples` were drawn.

    `progress` is called with the number of samples about once a second. Rewards are assumed to lie in the
    environment's range.

    >>> import semibandit as sb
    >>> m = sb.Uniform(n_arms=4, rank=2)
    >>> found = sb.identify(m, sb.Bernoulli(m, [0.1, 0.9, 0.2, 0.8], seed=3), delta=0.1)
    >>> found.base.tolist(), found.stopped
    ([1, 3], True)
    """
    if max_samples is not None and (not isinstance(max_samples, (int, np.integer)) or max_samples < 1):
        raise ParameterError(f"max_samples must be a positive integer or None, got {max_samples!r}")
    if env.n_arms != matroid.n_arms:
        raise ParameterError(f"matroid has {matroid.n_arms} arms but env has {env.n_arms}")
    limit = math.inf if max_samples is None else max_samples
    search = CLUCB(matroid, delta=delta, reward_range=env.reward_range, engine=engine, clock=clock)
    begin = shown = time.perf_counter()
    # The first sample of each arm, many at a time: nothing is decided between them.
    first = search.unsampled()
    first = first[: int(min(limit, len(first)))]
    for at in range(0, len(first), _BATCH):
        arms = first[at : at + _BATCH]
        search.update(arms, env.draw(arms))
    while search.samples < limit and not search.stopped:
        if search._sample(env, int(min(limit, search.samples + _BATCH))):
            if progress is not None and time.perf_counter() - shown > 1.0:
                shown = time.perf_counter()
                progress(search.samples)
            continue
        arm = search.next_arm()
        search.update(arm, env.draw([arm]))
        if progress is not None and time.perf_counter() - shown > 1.0:
            shown = time.perf_counter()
            progress(search.samples)
    seconds = time.perf_counter() - begin
    return IdentificationResult(
        search.base, search.samples, seconds, search.stopped, search.delta, search.counts
    )
