"""Any matroid: solve anew, but only when a change can matter."""

from __future__ import annotations

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.paper.dynamic.base import ExchangedBase


class DynamicOracle(ExchangedBase):
    """Exact dynamic base of a matroid of which nothing is known but its greedy.

    A base arm that rises and a rejected arm that falls change nothing: O(1). A rejected arm that rises is tried
    against the base alone: O(D log D) and D + 1 membership tests. Only a base arm that falls is solved anew,
    O(K log K) and up to K membership tests. Not sublinear; it is here so that `dynamic_base` answers for every
    matroid.

    Examples
    --------
    >>> from semibandit.paper.dynamic.oracle import DynamicOracle
    >>> from semibandit.matroids import Linear
    >>> best = DynamicOracle(Linear([[1, 0], [2, 0], [0, 1]]), [1.0, 2.0, 3.0])
    >>> best.set_weight(0, 5.0)
    >>> best.base()
    array([0, 2])
    """

    def _build(self) -> None:
        self._base = self.matroid.max_weight_base(self._weight)
        self._in_base = np.zeros(self.n_arms, dtype=np.bool_)
        self._in_base[self._base] = True

    def _set_weight(self, arm: int, weight: float) -> None:
        old = self._weight[arm]
        self._weight[arm] = weight
        if weight == old or (weight > old) == self._in_base[arm]:
            return
        if self._in_base[arm]:
            base = self.matroid.max_weight_base(self._weight)
        else:
            # Rejected arms other than this one stay rejected, so greedy over D + 1 arms is enough.
            few = np.append(self._base, arm)
            base = np.sort(self.matroid._greedy(few[np.lexsort((few, -self._weight[few]))]))
        fresh = int(np.count_nonzero(~self._in_base[base]))
        if fresh:
            self._in_base[self._base] = False
            self._in_base[base] = True
            self._base = base
            self._exchanged(fresh)

    def _apply(self, arms: IntArray, weights: FloatArray) -> None:
        for arm, weight in zip(arms.tolist(), weights.tolist(), strict=True):
            self._set_weight(arm, weight)

    def _members(self) -> IntArray:
        return self._base

    def memory(self) -> int:
        """Bytes held. O(1)."""
        return self._weight.nbytes + self._base.nbytes + self._in_base.nbytes

    def _check(self) -> None:
        self._check_base()
        assert np.array_equal(np.flatnonzero(self._in_base), self._base)
