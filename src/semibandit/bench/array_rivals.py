"""Rivals made of array calls: what one writes with numpy, scipy or networkx. O(K) to O(K log K) a round.

Each plays CUCB by itself: index parts in plain arrays, all weights recomputed in preallocated buffers every
round, and the base by the fastest calls the library has. Nothing is validated. Ties go to the smaller id, as
in the engines, except where the library decides (`exact_ties = False`).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.bench.greedy_rivals import grow_forest, grow_laminar, grow_matching, grow_span
from semibandit.bench.start import Start
from semibandit.engines.clock import tick
from semibandit.matroids import Graphic, Laminar, Linear, Matroid, Partition, Transversal


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
    """Sort all weights, then greedy in compiled code: laminar, graphic, transversal, linear. O(K log K)."""

    def __init__(self, start: Start) -> None:
        super().__init__(start)
        m = self.matroid
        self._out = np.zeros(self.rank, dtype=np.int64)
        self._grow: Any
        self._rest: tuple[Any, ...]
        if isinstance(m, Laminar):
            tree = tuple(np.array(part) for part in (m._leaf, m._parent, m._capacity))
            self._grow, self._rest = grow_laminar, (*tree, np.zeros(len(m._parent), dtype=np.int64))
        elif isinstance(m, Graphic):
            scratch = (np.zeros(m.n_vertices, dtype=np.int64) for _ in range(4))
            self._grow, self._rest = grow_forest, (np.array(m._tail), np.array(m._head), *scratch)
        elif isinstance(m, Transversal):
            scratch = (np.zeros(m.n_right, dtype=np.int64) for _ in range(4))
            self._grow, self._rest = grow_matching, (np.array(m._indptr), np.array(m._indices), *scratch)
        else:
            assert isinstance(m, Linear)
            d = m.dimension
            vectors = np.array(m._limbs).reshape(m.n_arms, d, -1)
            assert vectors.shape[2] == 1, "small integer vectors only"
            scratch_rows = np.zeros((self.rank, d), dtype=np.int64), np.zeros(self.rank, dtype=np.int64)
            whole = np.ascontiguousarray(vectors[:, :, 0])
            self._grow, self._rest = grow_span, (whole, *scratch_rows, np.zeros(d, dtype=np.int64))

    def _heaviest_first(self, weight: FloatArray) -> IntArray:
        np.negative(weight, out=weight)
        # The default sort is several times faster than the stable one; only a tie needs the latter.
        order = np.argsort(weight)
        ordered = weight[order]
        if (ordered[1:] == ordered[:-1]).any():
            order = np.argsort(weight, kind="stable")
        return order

    def _greedy(self, order: IntArray) -> int:
        return int(self._grow(order, len(order), *self._rest, self._out))

    def _base(self, lam: float) -> IntArray:
        n = self._greedy(self._heaviest_first(self._weigh(lam)))
        return np.sort(self._out[:n])


class FilterGreedy(SortGreedy):
    """Sort only the arms above a bar kept from the last round, where the base was found. O(K) and a short sort.

    If the arms above the bar hold a base they hold the heaviest one; otherwise the bar is lowered.
    """

    def __init__(self, start: Start) -> None:
        super().__init__(start)
        self._bar = np.inf

    def _base(self, lam: float) -> IntArray:
        weight = self._weigh(lam)
        few = max(4 * self.rank, 64)
        while True:
            chosen = np.flatnonzero(weight >= self._bar)
            order = chosen[self._heaviest_first(weight[chosen])]
            n = self._greedy(order)
            if n == self.rank or len(chosen) == len(weight):
                break
            few = min(2 * max(few, len(chosen)), len(weight))
            self._bar = float(np.partition(weight, len(weight) - few)[len(weight) - few])
        # The next bar leaves room below the lightest picked arm, in terms of how many arms were looked at.
        last = int(np.flatnonzero(order == self._out[n - 1])[0])
        keep = min(len(order) - 1, last + last // 4 + 16)
        self._bar = float(weight[order[keep]])
        return np.sort(self._out[:n])


class ScipyTree(ArrayRival):
    """Graphic: ``scipy.sparse.csgraph.minimum_spanning_tree`` of the negated weights. O(K log K)."""

    exact_ties = False

    def __init__(self, start: Start) -> None:
        super().__init__(start)
        from scipy.sparse import csr_array

        m = self.matroid
        assert isinstance(m, Graphic)
        n = m.n_vertices
        low, high = np.minimum(m._tail, m._head), np.maximum(m._tail, m._head)
        self._order = np.argsort(low * n + high, kind="stable").astype(np.int64)
        self._codes = (low * n + high)[self._order]
        self._slot = np.empty_like(self._order)
        self._slot[self._order] = np.arange(m.n_arms)
        self._alpha = -self._alpha[self._order]
        self._beta = -self._beta[self._order]
        indptr = np.searchsorted(low[self._order], np.arange(n + 1)).astype(np.int32)
        self._graph = csr_array((self._weight, high[self._order].astype(np.int32), indptr), shape=(n, n))
        self._n = n

    def _set(self, arms: IntArray, alpha: FloatArray, beta: FloatArray) -> None:
        super()._set(self._slot[arms], -alpha, -beta)

    def _base(self, lam: float) -> IntArray:
        from scipy.sparse.csgraph import minimum_spanning_tree

        self._graph.data[:] = self._weigh(lam)
        tree = minimum_spanning_tree(self._graph).tocoo()
        codes = tree.row.astype(np.int64) * self._n + tree.col
        return np.sort(self._order[np.searchsorted(self._codes, codes)])


class NetworkxTree(ArrayRival):
    """Graphic: ``networkx.maximum_spanning_edges``. O(K log K) in Python objects; for small graphs."""

    exact_ties = False

    def __init__(self, start: Start) -> None:
        super().__init__(start)
        import networkx

        m = self.matroid
        assert isinstance(m, Graphic)
        self._graph = networkx.Graph()
        self._graph.add_nodes_from(range(m.n_vertices))
        for arm, (u, v) in enumerate(zip(m._tail.tolist(), m._head.tolist(), strict=True)):
            self._graph.add_edge(u, v, arm=arm)
        self._data = [
            self._graph.edges[edge] for edge in zip(m._tail.tolist(), m._head.tolist(), strict=True)
        ]

    def _base(self, lam: float) -> IntArray:
        import networkx

        for data, weight in zip(self._data, self._weigh(lam).tolist(), strict=True):
            data["weight"] = weight
        chosen = networkx.maximum_spanning_edges(self._graph, algorithm="kruskal", data=True)
        return np.sort(np.array([data["arm"] for _, _, data in chosen], dtype=np.int64))
