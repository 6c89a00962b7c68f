"""CUCB as one writes it with numpy: all weights every round, and the base by the fastest calls there are. O(K) or more.

Each plays by itself: index parts in plain arrays, all weights recomputed in preallocated buffers every round. Nothing
is validated. Ties go to the smaller id, as in the engines.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.bench.start import Start
from semibandit.engines.clock import tick
from semibandit.matroids import Matroid, Partition, Uniform


class ArrayRival:
    """CUCB on plain arrays: `select` and `update` as a policy has them."""

    exact_ties: ClassVar[bool] = True

    def __init__(self, start: Start) -> None:
        self.matroid: Matroid = start.env.matroid
        self.rank = self.matroid.rank
        self.t = start.t
        self._clock = start.clock.copy()
        self._count = np.ascontiguousarray(start.records["count"])
        self._total = np.ascontiguousarray(start.records["total"])
        self._alpha = np.ascontiguousarray(start.records["alpha"])
        self._beta = np.ascontiguousarray(start.records["beta"])
        self._weight = np.empty_like(self._alpha)

    def select(self) -> IntArray:
        """The base of the next round, ascending."""
        self.t += 1
        return self._base(tick(self._clock, self.t))

    def update(self, arms: IntArray, rewards: FloatArray) -> None:
        """Count one reward for each of these distinct arms."""
        count = self._count[arms] + 1.0
        total = self._total[arms] + rewards
        self._count[arms] = count
        self._total[arms] = total
        self._set(arms, total / count, 1.0 / np.sqrt(count))

    def _set(self, arms: IntArray, alpha: FloatArray, beta: FloatArray) -> None:
        self._alpha[arms] = alpha
        self._beta[arms] = beta

    def _weigh(self, lam: float) -> FloatArray:
        np.multiply(self._beta, lam, out=self._weight)
        np.add(self._weight, self._alpha, out=self._weight)
        return self._weight

    def _base(self, lam: float) -> IntArray:
        raise NotImplementedError

    def memory(self) -> int:
        """Bytes of the arrays kept between rounds."""
        return sum(value.nbytes for value in vars(self).values() if isinstance(value, np.ndarray))


class Argpartition(ArrayRival):
    """Uniform: ``np.argpartition`` of the negated weights. O(K)."""

    def __init__(self, start: Start) -> None:
        super().__init__(start)
        # Negated parts give negated weights to the last bit, and the smallest come first without a copy.
        np.negative(self._alpha, out=self._alpha)
        np.negative(self._beta, out=self._beta)

    def _set(self, arms: IntArray, alpha: FloatArray, beta: FloatArray) -> None:
        super()._set(arms, -alpha, -beta)

    def _base(self, lam: float) -> IntArray:
        weight = self._weigh(lam)
        d = self.rank
        if d == len(weight):
            return np.arange(d, dtype=np.int64)
        part = np.argpartition(weight, d)
        top = part[:d]
        bar = weight[part[d]]
        if (weight[top] < bar).all():
            return np.sort(top)
        # The d-th and the next tie: the smallest ids among the equals win.
        inside = top[weight[top] < bar]
        equals = np.flatnonzero(weight == bar)[: d - len(inside)]
        return np.sort(np.concatenate([inside, equals]))


class GroupMaximum(ArrayRival):
    """Partition with capacity 1: the maximum of each group by one call over all. O(K)."""

    def __init__(self, start: Start) -> None:
        super().__init__(start)
        matroid = self.matroid
        assert isinstance(matroid, Partition)
        group = np.array(matroid._group)
        self._order = np.argsort(group, kind="stable").astype(np.int64)
        self._slot = np.empty_like(self._order)
        self._slot[self._order] = np.arange(len(group))
        sizes = np.bincount(group, minlength=matroid.n_groups)
        self._starts = (np.cumsum(sizes) - sizes)[sizes > 0]
        self._sizes = sizes[sizes > 0]
        self._alpha = self._alpha[self._order]
        self._beta = self._beta[self._order]

    def _set(self, arms: IntArray, alpha: FloatArray, beta: FloatArray) -> None:
        super()._set(self._slot[arms], alpha, beta)

    def _base(self, lam: float) -> IntArray:
        weight = self._weigh(lam)
        if (self._sizes == self._sizes[0]).all():
            slots = weight.reshape(len(self._sizes), -1).argmax(axis=1) + self._starts
        else:
            top = np.maximum.reduceat(weight, self._starts)
            hits = np.flatnonzero(weight == np.repeat(top, self._sizes))
            slots = hits[np.searchsorted(hits, self._starts)]
        return np.sort(self._order[slots])


class SortGreedy(ArrayRival):
    """Any matroid: sort all weights, then the matroid's own greedy over the order. O(K log K)."""

    def _heaviest_first(self, weight: FloatArray) -> IntArray:
        np.negative(weight, out=weight)
        # The default sort is several times faster than the stable one; only a tie needs the latter.
        order = np.argsort(weight)
        ordered = weight[order]
        if (ordered[1:] == ordered[:-1]).any():
            order = np.argsort(weight, kind="stable")
        return order

    def _greedy(self, order: IntArray) -> IntArray:
        return self.matroid._greedy(order)

    def _base(self, lam: float) -> IntArray:
        return np.sort(self._greedy(self._heaviest_first(self._weigh(lam))))


def numpy_rival(matroid: Matroid) -> tuple[str, type[ArrayRival]]:
    """The fastest of these on `matroid`, and what to call it."""
    if isinstance(matroid, Uniform):
        return "numpy argpartition", Argpartition
    if isinstance(matroid, Partition) and bool((matroid._capacity == 1).all()):
        return "numpy group maximum", GroupMaximum
    return "numpy argsort + greedy", SortGreedy
