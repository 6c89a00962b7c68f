"""CUCB that forgets: only the feedback of the last rounds counts (Garivier and Moulines 2011, SW-UCB)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from semibandit.arms import ALPHA, BETA, COUNT, TOTAL, FloatArray, IntArray
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.engines import choose_clock, make_engine
from semibandit.engines.base import as_arms
from semibandit.engines.clock import new_clock, tick
from semibandit.engines.kernels import check_feedback
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid
from semibandit.policies.base import explain
from semibandit.policies.options import check_clock, check_exploration, check_step, check_whole
from semibandit.policies.records import RecordPolicy
from semibandit.policies.state import array_of


@inline_kernel
def _add(recs, rest, arm, reward, sign):
    """Count `reward` in (sign = 1) or out (-1). The sum is kept to twice the precision, so that what goes in and out
    leaves no trace: TOTAL is the sum of the window, rounded once."""
    n = recs[arm, COUNT] + sign
    recs[arm, COUNT] = n
    if n <= 0.0:
        recs[arm, TOTAL] = 0.0
        rest[arm] = 0.0
        recs[arm, ALPHA] = np.inf
        recs[arm, BETA] = 0.0
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
    recs[arm, ALPHA] = total / n
    recs[arm, BETA] = 1.0 / math.sqrt(n)


@kernel
def count_expired(stamps, head, size, oldest):
    """How many entries at the front of the ring are older than `oldest`. O(that many)."""
    n = 0
    while n < size and stamps[(head + n) & (stamps.shape[0] - 1)] < oldest:
        n += 1
    return n


@kernel
def expire(recs, rest, ring_arms, ring_rewards, head, n, out):
    """Count the first n entries of the ring out; their arms into `out`. Changes `recs` and `rest`. O(n)."""
    mask = ring_arms.shape[0] - 1
    for i in range(n):
        at = (head + i) & mask
        _add(recs, rest, ring_arms[at], ring_rewards[at], -1.0)
        out[i] = ring_arms[at]


@kernel
def enter(recs, rest, ring_arms, ring_rewards, stamps, tail, t, arms, rewards):
    """Count validated feedback in and note it at the ring's end, which has room for it. O(n)."""
    mask = ring_arms.shape[0] - 1
    for i in range(arms.shape[0]):
        at = (tail + i) & mask
        ring_arms[at] = arms[i]
        ring_rewards[at] = rewards[i]
        stamps[at] = t
        _add(recs, rest, arms[i], rewards[i], 1.0)


class SlidingWindowCUCB(RecordPolicy):
    """CUCB over the feedback of the last `window` rounds, for rewards that change over time.

    Round t plays the maximum-weight base under ``mean + sqrt(exploration (b-a)^2 log min(t, window) / N)``, where
    mean and N are those of the feedback that came in rounds t - window .. t - 1 (feedback before the first round counts
    as round 0, late feedback as of the round it came in). An arm not seen in the window has an infinite index, so a
    window of at least several times K / D rounds is wanted.

    Parameters
    ----------
    matroid
        What may be played together.
    window
        Number of rounds that count.
    reward_range, exploration, clock, engine, step, seed
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
        window: int = 10_000,
        reward_range: Any = (0.0, 1.0),
        exploration: float = 1.5,
        clock: str = "exact",
        engine: str = "auto",
        *,
        step: float = 0.01,
        seed: int | None = None,
    ) -> None:
        super().__init__(matroid, reward_range)
        self.window = check_whole(window, "window", 1, "the rounds whose feedback counts")
        self.exploration = check_exploration(exploration)
        self.step = check_step(step)
        self.seed = seed
        self._asked = (check_clock(clock), engine)
        self.clock = choose_clock(matroid, engine) if clock == "auto" else clock
        self._engine, self._why = make_engine(matroid, self.records, engine, self.clock)
        low, high = self.reward_range
        self._clock = new_clock(
            self.exploration * (high - low) ** 2, self.step if self.clock == "staircase" else 0.0
        )
        self._rest: FloatArray = np.zeros(self.n_arms)
        self._head = self._size = 0
        self._ring_arms: IntArray = np.zeros(64, dtype=np.int64)
        self._ring_rewards: FloatArray = np.zeros(64)
        self._stamps: IntArray = np.zeros(64, dtype=np.int64)

    def select(self, exclude: Any = None) -> IntArray:
        """The base of largest index, ascending ids; avoids the arms in `exclude` (they are backfilled)."""
        if exclude is not None:
            exclude = as_arms(exclude, self.n_arms, "exclude")
        t = self._t + 1
        self._expire(t - self.window)
        self._engine._lam = lam = float(tick(self._clock, min(t, self.window)))
        arms = self._engine._select(lam) if exclude is None else self._engine.base_excluding(exclude)
        self._t = t
        return arms

    def _expire(self, oldest: int) -> None:
        n = int(count_expired(self._stamps, self._head, self._size, oldest))
        if n == 0:
            return
        gone = np.empty(n, dtype=np.int64)
        expire(self._engine._recs, self._rest, self._ring_arms, self._ring_rewards, self._head, n, gone)
        self._head = (self._head + n) & (len(self._stamps) - 1)
        self._size -= n
        self._engine.touch(gone)

    def _update(self, arms: IntArray, rewards: FloatArray) -> None:
        low, high = self.reward_range
        code = int(check_feedback(self.n_arms, arms, rewards, low, high))
        if code:
            raise explain(code, arms, rewards, self.n_arms, low, high)
        self._make_room(len(arms))
        tail = self._head + self._size
        ring = (self._ring_arms, self._ring_rewards, self._stamps)
        enter(self._engine._recs, self._rest, *ring, tail, self._t, arms, rewards)
        self._size += len(arms)
        self._engine.touch(arms)

    def _make_room(self, n: int) -> None:
        """Let the ring double until n more entries fit. Amortised O(1) an entry."""
        room = len(self._stamps)
        if self._size + n <= room:
            return
        order = (self._head + np.arange(self._size)) & (room - 1)
        while room < self._size + n:
            room *= 2
        for name in ("_ring_arms", "_ring_rewards", "_stamps"):
            old = getattr(self, name)
            new = np.zeros(room, dtype=old.dtype)
            new[: self._size] = old[order]
            setattr(self, name, new)
        self._head = 0

    def _arguments(self) -> dict[str, Any]:
        return {
            "window": self.window,
            "reward_range": self.reward_range,
            "exploration": self.exploration,
            "clock": self._asked[0],
            "engine": self._asked[1],
            "step": self.step,
            "seed": self.seed,
        }

    def _state(self) -> dict[str, Any]:
        order = (self._head + np.arange(self._size)) & (len(self._stamps) - 1)
        return {
            **super()._state(),
            "clock": self._clock,
            "rest": self._rest,
            "ring_arms": self._ring_arms[order],
            "ring_rewards": self._ring_rewards[order],
            "stamps": self._stamps[order],
        }

    def _set_state(self, state: dict[str, Any]) -> None:
        self._clock[:] = array_of(state, "clock", np.float64, 4)
        self._rest[:] = array_of(state, "rest", np.float64, self.n_arms)
        arms = as_arms(array_of(state, "ring_arms", np.int64), self.n_arms, "ring_arms")
        rewards = array_of(state, "ring_rewards", np.float64, arms.size)
        stamps = array_of(state, "stamps", np.int64, arms.size)
        self._head = self._size = 0
        self._make_room(arms.size)
        self._size = arms.size
        self._ring_arms[: arms.size], self._ring_rewards[: arms.size] = arms, rewards
        self._stamps[: arms.size] = stamps
        super()._set_state(state)

    def describe(self) -> dict[str, Any]:
        ring = self._ring_arms.nbytes + self._ring_rewards.nbytes + self._stamps.nbytes
        total = self._engine.memory() + self._rest.nbytes + ring
        about = {**super().describe(), "clock": self.clock, "window": self.window}
        return {**about, "bytes": total, "bytes_per_arm": total / self.n_arms}

    def __repr__(self) -> str:
        return (
            f"SlidingWindowCUCB({self.matroid!r}, window={self.window}, engine={self.engine!r}, t={self._t})"
        )


def window_for(horizon: int, changes: int) -> int:
    """The window 2 sqrt(T log T / changes) that the analysis of SW-UCB suggests for about `changes` changes.

    >>> window_for(10_000, 4)
    303
    """
    horizon = check_whole(horizon, "horizon", 2, "the number of rounds")
    if not changes >= 1:
        raise ParameterError(f"changes must be at least 1, got {changes!r}")
    return max(1, math.floor(2.0 * math.sqrt(horizon * math.log(horizon) / changes)))
