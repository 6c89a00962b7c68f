"""The bare loop: draw D rewards and update D records, nothing else. What no policy can do without."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from semibandit.arms import ALPHA, BETA, COUNT, TOTAL, IntArray, flat
from semibandit.bench.start import Start
from semibandit.compiled.jit import kernel
from semibandit.compiled.lanes import prefetch
from semibandit.environments.draw import draw_many

# As the compiled loop does it: so many arms at a time, asked for just before.
_AHEAD = 64


@kernel
def _count_rewards(recs, arms, rewards):
    for j in range(arms.shape[0]):
        k = arms[j]
        n = recs[k, COUNT] + 1.0
        total = recs[k, TOTAL] + rewards[j]
        recs[k, COUNT] = n
        recs[k, TOTAL] = total
        recs[k, ALPHA] = total / n
        recs[k, BETA] = 1.0 / math.sqrt(n)


@kernel
def _replay(recs, env, played, t, rewards):
    """Play the rounds written in `played` (one row a round, -1 where a base was smaller)."""
    per_arm = env.params.shape[0] // recs.shape[0]
    for i in range(played.shape[0]):
        t += 1
        n = 0
        while n < played.shape[1] and played[i, n] >= 0:
            n += 1
        for begin in range(0, n, _AHEAD):
            arms = played[i, begin : min(begin + _AHEAD, n)]
            for j in range(arms.shape[0]):
                prefetch(env.pulls, arms[j])
                prefetch(env.params, arms[j] * per_arm)
                prefetch(recs, arms[j])
            draw_many(
                env.kind,
                env.seed,
                env.scalars,
                env.params,
                env.offsets,
                env.values,
                env.pulls,
                arms,
                t,
                rewards,
            )
            _count_rewards(recs, arms, rewards)
    return t


class Bare:
    """Replays rounds that another contender played, on records and counters of its own."""

    def __init__(self, start: Start) -> None:
        self._records: npt.NDArray[np.void] = start.records.copy()
        self._recs = flat(self._records).reshape(-1, 4)
        self._env = start.world()
        self._rewards = np.zeros(start.env.matroid.rank)
        self.t = start.t

    def replay(self, played: IntArray) -> None:
        """All rounds of `played` in one kernel. O(D) a round."""
        self.t = int(_replay(self._recs, self._env.kernel_state(), played, self.t, self._rewards))

    def update(self, arms: IntArray, rewards: npt.NDArray[np.float64]) -> None:
        """One round's update as one call from Python."""
        _count_rewards(self._recs, arms, rewards)

    def memory(self) -> int:
        """The records alone."""
        return int(self._records.nbytes)
