"""The bare loop: draw D rewards and update D records, nothing else. What no policy can do without."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray, IntArray, flat
from semibandit.bench.start import Start
from semibandit.compiled.handle import Floats1, Floats2, by_handle, make_handle
from semibandit.compiled.jit import kernel
from semibandit.compiled.memory import prefetch
from semibandit.engines.kernels import add_rewards
from semibandit.simulation.loop import _AHEAD, _MANY, draw_ahead


class Records(NamedTuple):
    """Arm records, the means that regret is counted by, and room for the rewards of a round."""

    recs: Floats2
    means: Floats1
    rewards: Floats1


@kernel
def replay(own, env, played, t):
    """Play the rounds written in `played` (one row a round, -1 where a base was smaller). Returns the last round."""
    many = own.recs.shape[0] > _MANY
    for i in range(played.shape[0]):
        t += 1
        n = 0
        while n < played.shape[1] and played[i, n] >= 0:
            n += 1
        for begin in range(0, n, _AHEAD):
            arms = played[i, begin : min(begin + _AHEAD, n)]
            if many:
                for j in range(arms.shape[0]):
                    prefetch(own.recs, arms[j])
            draw_ahead(env, own.means, arms, t, own.rewards, many)
            add_rewards(own.recs, arms, own.rewards)
    return t


class Bare:
    """Replays rounds that another contender played, on records and counters of its own."""

    def __init__(self, start: Start) -> None:
        self.records: npt.NDArray[np.void] = start.records.copy()
        self._env = start.world()
        self._own = Records(
            flat(self.records).reshape(-1, 4), self._env.means, np.zeros(start.env.matroid.rank)
        )
        self._handles: tuple[Any, Any] = make_handle(self._own), make_handle(self._env.kernel_state())
        self._replay = by_handle(replay, Records, type(self._env.kernel_state()))
        self.t = start.t

    def replay(self, played: IntArray) -> None:
        """All rounds of `played` in one kernel. O(D) a round."""
        self.t = int(self._replay(*self._handles, played, self.t))

    def update(self, arms: IntArray, rewards: FloatArray) -> None:
        """One round's update as one call from Python."""
        add_rewards(self._own.recs, arms, rewards)

    def memory(self) -> int:
        """The records alone."""
        return int(self.records.nbytes)
