"""`engine="resolve"`: the base from all weights at every round, for every matroid. The oracle of the others."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from semibandit.arms import ALPHA, BETA, FloatArray, IntArray
from semibandit.engines.base import Engine
from semibandit.engines.kernels import add_rewards, check_feedback
from semibandit.engines.registry import register_engine
from semibandit.engines.resolve.greedy import GreedyEngine
from semibandit.engines.resolve.scan import ScanEngine
from semibandit.matroids import Graphic, Laminar, Matroid, Partition, Transversal, Uniform
from semibandit.matroids.base import kind_of


class OracleEngine(Engine):
    """Sort all weights and run the matroid's own greedy: for `Linear` and any matroid of a user.

    O(K log K) per round plus at most K independence tests.
    """

    name = "resolve"

    def __init__(self, matroid: Matroid, records: npt.NDArray[np.void] | None = None) -> None:
        super().__init__(matroid, records)
        self._present = np.ones(self.n_arms, dtype=np.bool_)

    def touch(self, arms: IntArray) -> None:
        """Nothing is kept between rounds."""

    def _select(self, lam: float) -> IntArray:
        weights = self._recs[:, ALPHA] + lam * self._recs[:, BETA]
        order = np.argsort(-weights, kind="stable").astype(np.int64, copy=False)
        return np.sort(self.matroid._greedy(order[self._present[order]]))

    def _remove(self, ids: IntArray) -> None:
        self._present[ids] = False

    def _restore(self, ids: IntArray) -> None:
        self._present[ids] = True

    def observe(self, arms: IntArray, rewards: FloatArray, low: float, high: float) -> int:
        code = int(check_feedback(self.n_arms, arms, rewards, low, high))
        if code == 0:
            add_rewards(self._recs, arms, rewards)
            self.touch(arms)
        return code

    def memory(self) -> int:
        return int(self.records.nbytes + self._present.nbytes)

    def _check(self) -> None:
        assert np.array_equal(~self._present, self._is_deleted(np.arange(self.n_arms)))


@register_engine("resolve", cost="O(K) per round")
def resolve_engine(matroid: Matroid, records: npt.NDArray[np.void] | None = None) -> Engine:
    """The best linear-time re-solve for `matroid`: one pass, kept order, or the matroid's own greedy."""
    kind = kind_of(matroid)
    if kind in (Uniform, Partition):
        return ScanEngine(matroid, records)
    if kind in (Laminar, Graphic, Transversal):
        return GreedyEngine(matroid, records)
    return OracleEngine(matroid, records)
