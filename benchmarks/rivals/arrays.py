"""Rivals made of array calls: what one writes with numpy, scipy or networkx. O(K) to O(K log K) per round.

Each plays CUCB by itself, as those of `semibandit.bench.numpy_rivals`. Ties go to the smaller id, except where the
library decides (`exact_ties = False`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.rivals.greedy import grow_forest, grow_laminar, grow_matching, grow_span
from semibandit.arms import FloatArray, IntArray
from semibandit.bench import numpy_rivals
from semibandit.bench.numpy_rivals import ArrayRival
from semibandit.bench.start import Start
from semibandit.matroids import Graphic, Laminar, Linear, Transversal


class SortGreedy(numpy_rivals.SortGreedy):
    """Sort all weights, then a greedy made for the class: laminar, graphic, transversal, linear. O(K log K)."""

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

    def _greedy(self, order: IntArray) -> IntArray:
        return self._out[: int(self._grow(order, len(order), *self._rest, self._out))]


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
            picked = self._greedy(order)
            if len(picked) == self.rank or len(chosen) == len(weight):
                break
            few = min(2 * max(few, len(chosen)), len(weight))
            self._bar = float(np.partition(weight, len(weight) - few)[len(weight) - few])
        # The next bar leaves room below the lightest picked arm, in terms of how many arms were looked at.
        last = int(np.flatnonzero(order == picked[-1])[0])
        keep = min(len(order) - 1, last + last // 4 + 16)
        self._bar = float(weight[order[keep]])
        return np.sort(picked)


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
