"""CUCB that forgets: only the feedback of the last rounds counts (Garivier and Moulines 2011, SW-UCB)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from semibandit.arms import ALPHA, BETA, COUNT, TOTAL, FloatArray, IntArray
from semibandit.checks import as_arms, as_number, as_whole
from semibandit.compiled.handle import Floats1, Ints1, Number, Whole
from semibandit.compiled.jit import Kernel, inline_kernel, kernel
from semibandit.engines.clock import CURRENT, N_CLOCK, new_clock, tick
from semibandit.engines.kernels import engine_touch, engine_touch_many
from semibandit.matroids import Matroid
from semibandit.policies.catalogue import register
from semibandit.policies.index.forgetting import ForgettingPolicy
from semibandit.policies.rounds import ASK, implement_rounds
from semibandit.policies.state import array_of
from semibandit.policies.straight import Place

# Of `meta`: where the ring begins, how many rewards are in it, the round of feedback that comes now, and how many
# rewards a round may bring.
HEAD, SIZE, ROUND, RANK = 0, 1, 2, 3


class WindowRounds(NamedTuple):
    """`rest`: what rounding took from each sum. `waiting`: plays of each arm that wait for feedback, empty as long as
    none ever did. `first`: weights of arms never seen, empty where they are infinite. The ring, whose length is a power
    of two, holds the feedback of the window: arm, reward and round of each, oldest first."""

    window: Whole
    high: Number
    clock: Floats1
    rest: Floats1
    waiting: Ints1
    first: Floats1
    ring_arms: Ints1
    ring_rewards: Floats1
    stamps: Ints1
    meta: Ints1


@inline_kernel
def _weigh(own, recs, arm):
    """Write the weight of an arm. O(1)."""
    seen = recs[arm, COUNT]
    n = seen + own.waiting[arm] if own.waiting.shape[0] else seen
    if n <= 0.0:
        recs[arm, ALPHA] = own.first[arm] if own.first.shape[0] else np.inf
        recs[arm, BETA] = 0.0
        return
    recs[arm, ALPHA] = recs[arm, TOTAL] / seen if seen > 0.0 else own.high
    recs[arm, BETA] = 1.0 / math.sqrt(n)


@inline_kernel
def _add(own, recs, arm, reward, sign):
    """Count `reward` in (sign = 1) or out (-1). The sum is kept to twice the precision, so that what goes in and out
    leaves no trace: TOTAL is the sum of the window, rounded once."""
    rest = own.rest
    n = recs[arm, COUNT] + sign
    recs[arm, COUNT] = n
    if n <= 0.0:
        recs[arm, TOTAL] = 0.0
        rest[arm] = 0.0
        _weigh(own, recs, arm)
        return
    x = sign * reward
    high = recs[arm, TOTAL]
    s = high + x
    part = s - high
    error = (high - (s - part)) + (x - part)
    low = rest[arm] + error
    total = s + low
    rest[arm] = low - (total - s)
    recs[arm, TOTAL] = total
    _weigh(own, recs, arm)


@kernel
def _window_prepare(own, engine, t):
    """Count out what is older than the window. ASK unless a round's rewards have room. O(rewards that leave)."""
    meta, mask = own.meta, own.stamps.shape[0] - 1
    if meta[SIZE] + meta[RANK] > mask + 1:
        return float(ASK)
    while meta[SIZE] > 0 and own.stamps[meta[HEAD]] < t - own.window:
        arm = own.ring_arms[meta[HEAD]]
        _add(own, engine.recs, arm, own.ring_rewards[meta[HEAD]], -1.0)
        engine_touch(engine, arm)
        meta[HEAD] = (meta[HEAD] + 1) & mask
        meta[SIZE] -= 1
    meta[ROUND] = t
    return tick(own.clock, min(t, own.window))


@inline_kernel
def _window_learn(own, engine, arms, rewards, n):
    """Count feedback in and note it at the ring's end, which has room for it. O(n)."""
    meta, mask = own.meta, own.stamps.shape[0] - 1
    tail = meta[HEAD] + meta[SIZE]
    for j in range(n):
        at = (tail + j) & mask
        own.ring_arms[at] = arms[j]
        own.ring_rewards[at] = rewards[j]
        own.stamps[at] = meta[ROUND]
        _add(own, engine.recs, arms[j], rewards[j], 1.0)
    meta[SIZE] += n


@inline_kernel
def _window_wait(own, engine, arms, change):
    """Count `change` more plays that wait of each arm, and write their weights. O(len(arms))."""
    for i in range(arms.shape[0]):
        own.waiting[arms[i]] += change
    for i in range(arms.shape[0]):
        _weigh(own, engine.recs, arms[i])
    engine_touch_many(engine, arms)


implement_rounds(WindowRounds, prepare=_window_prepare, learn=_window_learn)


@register(
    cost="that of cucb, and O(log K) for each reward that leaves the window",
    guarantee="for rewards that change abruptly: only the last rounds count",
    reference="Garivier and Moulines 2011",
    take="when means change abruptly now and then",
)
class SlidingWindowCUCB(ForgettingPolicy):
    """CUCB over the feedback of the last `window` rounds, for rewards that change over time.

    Round t plays the maximum-weight base under ``mean + sqrt(exploration (b-a)^2 log min(t, window) / N)``, where
    mean and N are those of the feedback that came in rounds t - window .. t - 1 (feedback before the first round counts
    as round 0, late feedback as of the round it came in). An arm not seen in the window has an infinite index, so a
    window of at least several times K / D rounds is wanted. Plays of `decide` that wait for feedback count in N,
    whenever they were decided.

    Parameters
    ----------
    matroid
        What may be played together.
    window
        Number of rounds that count.
    reward_range, exploration, clock, engine, step, ties, seed
        As in `CUCB`.

    Cost: that of CUCB, and O(log K) for each reward that leaves the window: O(D log K) a round in all. Memory for the
    feedback in the window: 24 bytes a reward.

    Example
    -------
    >>> import semibandit as sb
    >>> policy = sb.SlidingWindowCUCB(sb.Uniform(n_arms=3, rank=1), window=2)
    >>> for reward in (1.0, 0.0, 0.0):
    ...     policy.update(policy.select(), [reward])
    >>> policy.select().tolist(), policy.counts.tolist()
    ([0], [0, 1, 1])
    """

    name = "sliding-window-cucb"

    def __init__(
        self,
        matroid: Matroid,
        *,
        window: int = 10_000,
        reward_range: Any = (0.0, 1.0),
        exploration: float = 1.5,
        clock: str = "exact",
        engine: str = "auto",
        step: float = 0.01,
        ties: str = "id",
        outside: str = "error",
        seed: int | None = 0,
    ) -> None:
        super().__init__(
            matroid,
            reward_range=reward_range,
            exploration=exploration,
            clock=clock,
            engine=engine,
            step=step,
            ties=ties,
            outside=outside,
            seed=seed,
        )
        self.window = as_whole(window, "window", 1, "the rounds whose feedback counts")
        self._clock = new_clock(self._scale, self._eta)
        self._rest: FloatArray = np.zeros(self.n_arms)
        self._meta: IntArray = np.array([0, 0, 0, matroid.rank], dtype=np.int64)
        self._ring = (np.zeros(64, dtype=np.int64), np.zeros(64), np.zeros(64, dtype=np.int64))
        self._open()

    def _make_own(self) -> Any:
        return WindowRounds(
            window=self.window,
            high=self.reward_range[1],
            clock=self._clock,
            rest=self._rest,
            waiting=self._waiting,
            first=self._first,
            ring_arms=self._ring[0],
            ring_rewards=self._ring[1],
            stamps=self._ring[2],
            meta=self._meta,
        )

    def _wait_kernel(self) -> Kernel:
        return _window_wait

    def _ask(self, rounds: int) -> int:
        self._make_room(self.matroid.rank)
        return rounds

    def _update(self, arms: IntArray, rewards: FloatArray) -> None:
        self._make_room(len(arms))
        super()._update(arms, rewards)

    def _in_window(self) -> IntArray:
        """Where the ring holds the feedback of the window, oldest first."""
        return (self._meta[HEAD] + np.arange(self._meta[SIZE])) & (len(self._ring[0]) - 1)

    def _make_room(self, n: int) -> None:
        """Let the ring double until n more rewards fit. Amortised O(1) a reward."""
        size, room = int(self._meta[SIZE]), len(self._ring[0])
        if size + n <= room:
            return
        order = self._in_window()
        while room < size + n:
            room *= 2
        longer = tuple(np.zeros(room, dtype=old.dtype) for old in self._ring)
        for old, new in zip(self._ring, longer, strict=True):
            new[:size] = old[order]
        self._ring = longer
        self._meta[HEAD] = 0
        self._open()

    def _make_room_for(self, matroid: Matroid) -> None:
        self._rest = np.concatenate((self._rest, np.zeros(matroid.n_arms - self.n_arms)))
        self._meta[RANK] = matroid.rank

    def _reset(self, ids: IntArray) -> None:
        """O(rewards in the window): theirs are taken out of it."""
        order = self._in_window()
        kept = order[~np.isin(self._ring[0][order], ids)]
        for part in self._ring:
            part[: kept.size] = part[kept]
        self._meta[[HEAD, SIZE]] = 0, kept.size
        self._rest[ids] = 0.0
        super()._reset(ids)

    def _query_at(self) -> Place:
        return self._clock, CURRENT

    @property
    def confidence_width(self) -> float:
        """lam of the last round: the index is ``mean + lam / sqrt(N)``."""
        return float(self._clock[CURRENT])

    def _arguments(self) -> dict[str, Any]:
        return {**super()._arguments(), "window": self.window}

    def _state(self) -> dict[str, Any]:
        order = self._in_window()
        arms, rewards, stamps = (part[order] for part in self._ring)
        own = {"rest": self._rest, "ring_arms": arms, "ring_rewards": rewards, "stamps": stamps}
        return {**super()._state(), "clock": self._clock, **own}

    def _set_state(self, state: dict[str, Any]) -> None:
        self._clock[:] = array_of(state, "clock", np.float64, N_CLOCK)
        self._rest[:] = array_of(state, "rest", np.float64, self.n_arms)
        arms = as_arms(array_of(state, "ring_arms", np.int64), self.n_arms, "ring_arms")
        rewards = array_of(state, "ring_rewards", np.float64, arms.size)
        stamps = array_of(state, "stamps", np.int64, arms.size)
        self._meta[[HEAD, SIZE]] = 0
        self._make_room(arms.size)
        for part, known in zip(self._ring, (arms, rewards, stamps), strict=True):
            part[: arms.size] = known
        self._meta[SIZE] = arms.size
        super()._set_state(state)
        self._meta[ROUND] = self._t

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "window": self.window}

    def __repr__(self) -> str:
        return (
            f"SlidingWindowCUCB({self.matroid!r}, window={self.window}, engine={self.engine!r}, t={self._t})"
        )


def window_for(horizon: int, changes: float) -> int:
    """The window 2 sqrt(T log T / changes) that the analysis of SW-UCB suggests for about `changes` changes.

    >>> window_for(10_000, 4)
    303
    """
    horizon = as_whole(horizon, "horizon", 2, "the number of rounds")
    changes = as_number(changes, "changes", 1.0)
    return max(1, math.floor(2.0 * math.sqrt(horizon * math.log(horizon) / changes)))
