"""Environments drawn by the shared kernel, so that a compiled simulation can draw them too."""

from __future__ import annotations

from typing import ClassVar, SupportsIndex

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray, IntArray
from semibandit.checks import as_arms, as_whole, frozen
from semibandit.environments.base import Environment, EnvironmentState
from semibandit.environments.draw import HIGH, LOW, N_SCALARS, OWN, SHARED, draw_many
from semibandit.matroids import Matroid


class CompiledEnvironment(Environment):
    """Base of the built-in environments: a kind, and the arrays that `draw_many` reads for it.

    All arrays but the pull counters are read-only, in every environment, so one compiled signature serves
    all.
    """

    _kind: ClassVar[int]

    def __init__(
        self,
        matroid: Matroid,
        means: FloatArray,
        *,
        reward_range: tuple[float, float],
        seed: SupportsIndex,
        params: FloatArray | None = None,
        offsets: IntArray | None = None,
        values: FloatArray | None = None,
        shared: float = 0.0,
        own: float = 0.0,
    ) -> None:
        super().__init__(matroid, means, reward_range=reward_range, seed=seed)
        scalars = np.zeros(N_SCALARS, dtype=np.float64)
        scalars[LOW], scalars[HIGH] = self._reward_range
        scalars[SHARED], scalars[OWN] = shared, own
        self._scalars: FloatArray = frozen(scalars)
        self._params: FloatArray = frozen(np.empty(0) if params is None else params)
        self._offsets: IntArray = frozen(np.empty(0, dtype=np.int64) if offsets is None else offsets)
        self._values: FloatArray = frozen(np.empty(0) if values is None else values)

    def draw(self, arms: npt.ArrayLike, t: SupportsIndex | None = None) -> FloatArray:
        if not self._drawn_by_kernel():
            return super().draw(arms, t)
        checked = as_arms(arms, self.n_arms)
        now = self._round + 1 if t is None else as_whole(t, "t", 1, "a round number")
        rewards = self._draw(checked, now)
        self._round = now
        return rewards

    draw.__doc__ = Environment.draw.__doc__

    def _draw(self, arms: IntArray, t: int) -> FloatArray:
        out = np.empty(arms.size, dtype=np.float64)
        draw_many(
            self._kind,
            self._seed,
            self._scalars,
            self._params,
            self._offsets,
            self._values,
            self._pulls,
            arms,
            t,
            out,
        )
        return out

    def kernel_state(self) -> EnvironmentState | None:
        """The arguments of `draw_many` before `arms`; None when a subclass draws in Python instead. O(1)."""
        if not self._drawn_by_kernel() or type(self).draw is not CompiledEnvironment.draw:
            return None
        return EnvironmentState(
            self._kind, self._seed, self._scalars, self._params, self._offsets, self._values, self._pulls
        )

    def _drawn_by_kernel(self) -> bool:
        return type(self)._draw is CompiledEnvironment._draw


def pairs(first: FloatArray, second: FloatArray) -> FloatArray:
    """The two parameters of each arm side by side, so that a draw touches one cache line. O(K)."""
    both = np.empty(2 * first.size, dtype=np.float64)
    both[0::2] = first
    both[1::2] = second
    return both
