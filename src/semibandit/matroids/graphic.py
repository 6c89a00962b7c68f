"""Graphic matroid: arms are the edges of a graph, bases its spanning forests."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from semibandit.arms import IntArray
from semibandit.errors import MatroidError, ParameterError
from semibandit.matroids import codec
from semibandit.matroids.base import CompiledMatroid
from semibandit.matroids.greedy import greedy_graphic
from semibandit.matroids.validate import in_range, inferred_size, integer_table, positive, readonly


class Graphic(CompiledMatroid):
    """Edges without a cycle. Bases are the spanning forests: spanning trees where the graph is connected.

    Parameters
    ----------
    edges
        The two end vertices of each arm: a (K, 2) array or a sequence of pairs. Parallel edges, self-loops
        (which are loops of the matroid) and several components are all allowed.
    n_vertices
        Number of vertices; 1 + the largest id when not given.

    Raises
    ------
    MatroidError
        When there are no edges, a vertex is unknown, negative or not an integer, or all edges are self-loops.

    Notes
    -----
    Membership is union-find (paper, appendix on membership oracles), near O(1). `max_weight_base` is
    Kruskal's algorithm: O(K log K + V). `is_independent` costs O(V + n) for n arms.

    Examples
    --------
    >>> from semibandit.matroids import Graphic
    >>> triangle_and_tail = Graphic([(0, 1), (1, 2), (2, 0), (2, 3)])
    >>> triangle_and_tail.max_weight_base([0.5, 0.9, 0.7, 0.1])
    array([1, 2, 3])
    """

    def __init__(self, edges: npt.ArrayLike, n_vertices: int | None = None) -> None:
        table = integer_table(edges, "edges", columns=2)
        if len(table) == 0:
            raise MatroidError("edges is empty: need at least one edge")
        super().__init__(len(table))
        if n_vertices is None:
            hint = ", or give n_vertices"
            self.n_vertices = inferred_size(table, len(table), "edges", "vertex", hint)
        else:
            self.n_vertices = positive(n_vertices, "n_vertices")
            in_range(table, self.n_vertices, "edges", f"vertices (n_vertices = {self.n_vertices})")
        self._tail = readonly(table[:, 0].copy())
        self._head = readonly(table[:, 1].copy())
        self._settle_rank("edges")

    def _compiled_greedy(self, order: IntArray, limit: int) -> IntArray:
        picked: IntArray = greedy_graphic(order, self._tail, self._head, self.n_vertices, limit)
        return picked

    def _find_loops(self) -> IntArray:
        return np.flatnonzero(self._tail == self._head)

    def _key(self) -> tuple[Any, ...]:
        return (self.n_vertices, self._tail, self._head)

    def __repr__(self) -> str:
        return f"Graphic(n_arms={self.n_arms}, n_vertices={self.n_vertices}, rank={self.rank})"


def _pair_code(a: IntArray, b: IntArray, n: int) -> IntArray:
    return np.asarray(np.minimum(a, b) * n + np.maximum(a, b), dtype=np.int64)


def _random(arms: int, rank: int, seed: int) -> Graphic:
    """A connected simple graph on ``rank + 1`` vertices with `arms` random edges in random order. O(K log K)."""
    n = rank + 1
    most = n * (n - 1) // 2
    if not rank <= arms <= most:
        raise ParameterError(
            f"arms = {arms}: a connected simple graph of rank {rank} ({n} vertices) has {rank} to {most} edges"
        )
    rng = np.random.default_rng([seed, 1])
    # A random tree first, so that every graph is connected: each vertex hangs on an earlier one.
    label = rng.permutation(n)
    hook = np.floor(rng.random(n - 1) * np.arange(1, n)).astype(np.int64)
    tree = _pair_code(label[1:], label[hook], n)
    if arms > most // 2:
        low, high = np.triu_indices(n, 1)
        rest = np.setdiff1d(_pair_code(low, high, n), tree, assume_unique=True)
        codes = np.concatenate([tree, rng.permutation(rest)[: arms - len(tree)]])
    else:
        codes = tree
        while len(codes) < arms:
            ends = rng.integers(0, n, size=(2 * (arms - len(codes)) + 16, 2))
            fresh = _pair_code(ends[:, 0], ends[:, 1], n)[ends[:, 0] != ends[:, 1]]
            codes = np.concatenate([codes, fresh])
            codes = codes[np.sort(np.unique(codes, return_index=True)[1])][:arms]
    codes = rng.permutation(codes)
    return Graphic(np.column_stack([codes // n, codes % n]), n_vertices=n)


def _from_toml(edges: Any, vertices: int | None = None) -> Graphic:
    return Graphic(edges, vertices)


codec.register(
    Graphic,
    to_parts=lambda m: {"edges": np.stack([m._tail, m._head], axis=1), "n_vertices": m.n_vertices},
    from_parts=Graphic,
    random=_random,
    from_toml=_from_toml,
    words={"n_vertices": "vertices", "vertex": "edges"},
)
