"""Dynamic maximum-weight base of a laminar matroid, hence of uniform and partition matroids.

The paper cites O(log K) an update for these classes. The kinetic engines (`engines.kinetic`, `engines.laminar`) keep
the best of a changing base by tournaments whose cost is just that when time stands still: arm k has weight
alpha_k + lam beta_k with lam = 0 and beta_k = 0 for ever, so no certificate ever ends. So this is an adapter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray, new_records
from semibandit.compiled.jit import kernel
from semibandit.engines import make_engine
from semibandit.matroids import Laminar, Partition, Uniform
from semibandit.paper.dynamic.base import DynamicBase


@kernel
def _count_entered(old, new):
    """How many arms of `new` are not in `old`; both ascend. O(D)."""
    i, entered = 0, 0
    for j in range(new.shape[0]):
        while i < old.shape[0] and old[i] < new[j]:
            i += 1
        if i == old.shape[0] or old[i] != new[j]:
            entered += 1
    return entered


class DynamicLaminar(DynamicBase):
    """Exact dynamic base of a uniform, partition or laminar matroid.

    `set_weight` costs O(log K) worst case for each level of nesting that binds (one level for uniform and
    partition matroids). What a change does to the base is found out when the base is next asked for: O(log K) a
    level for each exchange, that is for at most one an update, besides the O(D log D) of `base` (laminar: O(D) a
    level). Building costs O(K); memory is about 60 bytes an arm.

    Examples
    --------
    >>> from semibandit.paper.dynamic.laminar import DynamicLaminar
    >>> from semibandit.matroids import Partition
    >>> best = DynamicLaminar(Partition([0, 0, 1, 1]), [1.0, 2.0, 3.0, 4.0])
    >>> best.set_weight(0, 5.0)
    >>> best.base()
    array([0, 3])
    """

    def __init__(self, matroid: Uniform | Partition | Laminar, weights: Any) -> None:
        super().__init__(matroid, weights)

    def _build(self) -> None:
        records = new_records(self.n_arms)
        absent = np.isneginf(self._weight)
        records["alpha"] = np.where(absent, 0.0, self._weight)
        self._engine = make_engine(self.matroid, records, "kinetic")[0]
        if absent.any():
            self._engine.delete(np.flatnonzero(absent))
        # The engine's records hold the weights; it does not read those of deleted arms.
        self._weight = records["alpha"]
        self._weight[absent] = -np.inf
        self._one = np.empty(1, dtype=np.int64)
        self._sorted: IntArray = self._engine._select(0.0)
        self._settled = True

    @property
    def exchanges(self) -> int:
        """How many arms have entered the base, from one `base()` to the next, since it was built."""
        self._settle()
        return self._exchanges

    def _set_weight(self, arm: int, weight: float) -> None:
        old = self._weight[arm]
        self._one[0] = arm
        self._weight[arm] = weight
        self._settled = False
        if weight == -np.inf or old == -np.inf:
            self._come_and_go(self._one, np.array([old]))
        else:
            self._engine.touch(self._one)

    def _set_weights(self, arms: IntArray, weights: FloatArray) -> None:
        # The engine itself builds anew where that is cheaper than arm by arm.
        old = self._weight[arms]
        self._weight[arms] = weights
        self._settled = False
        if (old == -np.inf).any() or (weights == -np.inf).any():
            arms, first = np.unique(arms, return_index=True)
            self._come_and_go(arms, old[first])
        else:
            self._engine.touch(arms)

    def _come_and_go(self, arms: IntArray, old: FloatArray) -> None:
        """Tell the engine of distinct arms whose weights were `old` and some of which are or were absent."""
        was, now = old > -np.inf, self._weight[arms] > -np.inf
        if (was & ~now).any():
            self._engine.delete(arms[was & ~now])
        if (now & ~was).any():
            self._engine.insert(arms[now & ~was])
        if (was & now).any():
            self._engine.touch(arms[was & now])

    def _settle(self) -> None:
        if not self._settled:
            base = self._engine._select(0.0)
            self._exchanges += int(_count_entered(self._sorted, base))
            self._sorted, self._settled = base, True

    def base(self) -> IntArray:
        self._settle()
        return self._sorted.copy()

    def memory(self) -> int:
        """Bytes held. O(1)."""
        return int(self._engine.memory() + self._sorted.nbytes)

    def _check(self) -> None:
        self._check_base()
        self._engine._check()
        assert np.array_equal(self._engine.deleted, np.flatnonzero(np.isneginf(self._weight)))
