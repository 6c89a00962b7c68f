"""Graphic matroid: arms are the edges of a graph, bases its spanning forests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from semibandit.arms import IntArray
from semibandit.errors import ArmError, MatroidError, ParameterError
from semibandit.matroids import codec
from semibandit.matroids.base import CompiledMatroid
from semibandit.matroids.few import MANY, places, renumbered
from semibandit.matroids.greedy import greedy_graphic
from semibandit.matroids.naming import Table, columns_of, label_arms, numbered
from semibandit.matroids.parting import by_rows
from semibandit.matroids.validate import arm_ids, in_range, inferred_size, integer_table, positive, readonly

if TYPE_CHECKING:
    import networkx


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

    @classmethod
    def from_edges(
        cls, edges: Table, source: str = "source", target: str = "target", label: str | None = None
    ) -> Graphic:
        """A graph from a list of links between named places; arms are its rows. O(K).

        Parameters
        ----------
        edges
            A table (`semibandit.matroids.naming`: pandas, polars, a dictionary of columns, the path of a CSV file,
            rows that are dictionaries) or a sequence of pairs of names.
        source, target
            The columns with the two ends.
        label
            The column that names the arms; without it the label of an arm is the pair of its ends.

        Raises
        ------
        MatroidError
            When a column or a name is missing, or two arms have one label: parallel links need a column `label`.

        >>> from semibandit.matroids import Graphic
        >>> roads = Graphic.from_edges([("Ulm", "Bonn"), ("Bonn", "Kiel"), ("Kiel", "Ulm")])
        >>> roads.labels[roads.max_weight_base([1, 3, 2])].tolist()
        [('Bonn', 'Kiel'), ('Kiel', 'Ulm')]
        """
        if isinstance(edges, (list, tuple)) and edges and not isinstance(edges[0], Mapping):
            if not all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in edges):
                raise MatroidError("edges: need a table, or pairs of names")
            ends, labels = [list(part) for part in zip(*edges, strict=True)], None
        else:
            ends = columns_of(edges, [source, target, *([] if label is None else [label])])
            labels = ends.pop() if label is not None else None
        if not ends[0]:
            raise MatroidError("edges is empty: need at least one edge")
        tail, names = numbered(ends[0], source)
        head, names = numbered(ends[1], target, names)
        made = cls(np.column_stack([tail, head]), n_vertices=len(names))
        return label_arms(made, list(zip(*ends, strict=True)) if labels is None else labels, names)

    @classmethod
    def from_networkx(cls, graph: networkx.Graph) -> Graphic:
        """The graph of networkx, its edges in their order; labels are (u, v), or (u, v, key) in a multigraph. O(K + V).

        Raises
        ------
        MatroidError
            When this is no graph of networkx, has no edges, or has directions: a spanning tree has none.

        >>> import networkx as nx
        >>> from semibandit.matroids import Graphic
        >>> ring = Graphic.from_networkx(nx.cycle_graph(["a", "b", "c"]))
        >>> ring.forest(ring.max_weight_base([2, 1, 3]))
        [('a', 'b'), ('b', 'c')]
        """
        if not all(hasattr(graph, part) for part in ("nodes", "edges", "is_directed", "is_multigraph")):
            raise MatroidError(f"graph must be a graph of networkx, got {type(graph).__name__}")
        if graph.is_directed():
            raise MatroidError(
                "graph is directed, but a spanning tree has no directions: use graph.to_undirected()"
            )
        labels = list(graph.edges(keys=True) if graph.is_multigraph() else graph.edges())
        if not labels:
            raise MatroidError("graph has no edges: need at least one")
        place = {name: i for i, name in enumerate(graph.nodes)}
        ends = [(place[edge[0]], place[edge[1]]) for edge in labels]
        return label_arms(cls(ends, n_vertices=len(place)), labels, place)

    def forest(self, arms: npt.ArrayLike) -> list[tuple[Any, Any]]:
        """The ends of each of `arms`, which must be free of cycles, in their order; by name where there are names.

        The list is what networkx makes a graph of: ``nx.Graph(matroid.forest(arms))``. O(V + n log n).

        >>> from semibandit.matroids import Graphic
        >>> Graphic([(0, 1), (1, 2), (2, 0)]).forest([2, 0])
        [(2, 0), (0, 1)]
        """
        ids = arm_ids(arms, self.n_arms)
        if not self._is_independent(ids):
            raise ArmError("arms: these edges hold a cycle, so they are no forest")
        ends = self._tail[ids], self._head[ids]
        if self.names is not None:
            ends = self.names[ends[0]], self.names[ends[1]]
        return list(zip(*(part.tolist() for part in ends), strict=True))

    def _compiled_greedy(self, order: IntArray, limit: int) -> IntArray:
        picked: IntArray = greedy_graphic(order, self._tail, self._head, self.n_vertices, limit)
        return picked

    def _greedy_few(self, order: IntArray) -> IntArray:
        if self.n_vertices <= MANY * order.size:
            return self._greedy(order)
        vertices, ends = renumbered(np.concatenate((self._tail[order], self._head[order])))
        n = order.size
        return order[greedy_graphic(places(order), ends[:n], ends[n:], vertices.size, self.rank)]

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
    parting=by_rows("edges", "n_vertices"),
)
