"""State shared by the solvers for graphic matroids: one for all, so that changing the solver costs little."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.compiled.handle import Flags1, Floats1, Floats2, Ints1, Ints2, Shorts1, Shorts2, Whole, opener
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.memory import aligned
from semibandit.engines.graphic.answer import Answer, Scratch, new_answer, new_scratch
from semibandit.engines.graphic.edges import Edges, Int32Array, new_edges
from semibandit.engines.order.lazy import LazyOrder, new_lazy_order
from semibandit.engines.switch import new_switch

# Solvers, and the solver mode of an engine: one of them at all times, or whichever is cheaper.
HOT_COLD, CHALLENGERS, PRIM, ORDERED, ADAPTIVE = range(5)

# Adaptive keeps the matrix of dense Prim for graphs of at most so many vertices and at least so many edges a vertex.
PRIM_VERTICES, PRIM_DEGREE = 80, 8

# Adaptive keeps an order of all edges where it has no matrix and there are at least so many edges a vertex. Entries of
# the order have so many bits for a vertex.
ORDER_DEGREE, ORDER_BITS = 4, 16

# Columns of `vertex`. Kruskal's: the label of its tree, the next vertex in the circle of the tree, the size of the tree
# that has its label, and the place in the order of hot edges at which it came to its anchor. The challengers': its
# first half-edge, and a mark that is 0 between calls. Then the component of what is present, as far as is known, and
# that of the whole graph.
LABEL, NEXT_IN_TREE, TREE_SIZE, JOINED_AT, FIRST_HALF, MARK, COMPONENT, WHOLE_COMPONENT = range(8)

# Columns of `hot.edge`; the last says whether the edge is in the base of the hot ones.
HOT_ARM, HOT_TAIL, HOT_HEAD, HOT_IN_BASE = range(4)

# Columns of `tree.half`: before and after it at its vertex, and the vertex it leads to; of `tree.edge`.
NEXT_HALF, PREVIOUS_HALF, FAR_END = range(3)
TREE_ARM, BOUND_ARM = range(2)

# Columns of `parts.about`: where its vertices are listed and how many they are, the next part of its group, how many of
# its two heaviest edges are exact, the vertex that it hung from, the tree edge from which it hangs now, the part at the
# other end of that, and the first of the new edges at it; of `parts.weight` and `parts.arm`.
FIRST_VERTEX, N_VERTICES, NEXT_MEMBER, KNOWN, ABOVE, ARRIVED, UP_PART, FIRST_LINK = range(8)
BEST, SECOND, FOUND_BEST, FOUND_SECOND = range(4)

# Entries of `flags`: all weights must be read again; something changed since the last round; the hot edges are in no
# order; more arms became heavier than `tree.risen` holds; a hot arm outside the base was touched.
STALE, DIRTY, UNSORTED, CROWDED, WOKEN = range(5)

# Entries of `lengths`: how much of an array is in use. Beyond HOT_LIMIT, hot edges that do not matter are cooled down.
N_HOT, HOT_LIMIT, N_TREE, N_BASE, N_BEATEN, N_RISEN, N_CHANGED, N_DORMANT, N_PICKED = range(9)

# Entries of `counters`, since the start: passes of Kruskal, edges warmed up, loose edges and what was listed and read
# for them (in nanoseconds), arms that entered the base.
PASSES, WARMED, SEARCHES, SEARCH_WORK, EXCHANGES = range(5)

# Entries of `costs`: running means of a round of a busy solver and of a loose edge, in nanoseconds, and of how many
# edges come before the lightest one of the base; then what the busy solver in use, of hot and cold edges and the order
# of all, has lost against the other (as in `semibandit.engines.switch`).
BUSY_ROUND, SEARCH, DEPTH, LOST_TO_OTHER = range(4)

# Entries of `ordered.size`: arms of the base that are out of the order, the most that a base can have as far as is
# known, and how many entries the last round looked at.
N_OUT, MOST, LOOKED = range(3)


class HotEdges(NamedTuple):
    """The first ``lengths[N_HOT]`` entries of `weight` and `edge` are the hot edges, heaviest first.

    From the middle of these arrays on there are ``lengths[N_DORMANT]`` more, heaviest first too: dormant ones, that
    have not been in the base for long and need not be moved about. Where one of them is no longer hot, or has another
    weight, its two ends are the same. `picked`: places of the dormant ones in the base. `entering_weight` and
    `entering_arm`: those that come in at the next merge. `failing`: vertices with a cold edge that may matter.
    """

    weight: Floats1
    edge: Shorts2
    entering_weight: Floats1
    entering_arm: Ints1
    failing: Ints1
    picked: Shorts1


class Tree(NamedTuple):
    """The base as a linked tree of which edge k is arm ``a = edge[k, TREE_ARM]``.

    No cold edge that could replace it comes before the key (``bound_weight[a]``, ``edge[k, BOUND_ARM]``); the bound
    weight of arms outside the tree is +inf. Its half-edges 2k and 2k + 1, at its tail and head, are in the lists of
    these vertices; ``up[v]`` is the one at v that leads to the root, -1 at a root. `beaten`: tree arms that come after
    their bound; `risen`: cold arms that became heavier; `changed`: arms that entered or left in this round, perhaps
    repeated; `walk`: memory for a walk over the tree.
    """

    edge: Shorts2
    half: Shorts2
    up: Shorts1
    bound_weight: Floats1
    beaten: Ints1
    risen: Ints1
    changed: Ints1
    walk: Shorts2


class Parts(NamedTuple):
    """Scratch of `parts`: what the tree falls into without its loose edges.

    `vertex` lists the vertices part by part; ``label[v]`` is the part of v, 0 between calls; ``group[i]`` the group of
    part i. `about`, `weight` and `arm` have a row for each part. `free` are the numbers of the loose edges, which new
    ones get in turn; `next_link` makes lists of the two ends of each, part by part; `queue` is a list of parts.
    """

    vertex: Shorts1
    label: Shorts1
    group: Shorts1
    about: Shorts2
    weight: Floats2
    arm: Shorts2
    free: Shorts1
    next_link: Shorts1
    queue: Shorts1


class Matrix(NamedTuple):
    """For each pair of vertices the best edge between them: `ordered_bits` of its weight, and its arm.

    `parallel` runs round the arms of one pair; `best_key` and `best_from` are Prim's: the best edge from the tree to
    each vertex. Without rows where dense Prim is not wanted.
    """

    key: Ints2
    arm: Shorts2
    parallel: Shorts1
    best_key: Ints1
    best_from: Ints1


class Ordered(NamedTuple):
    """All present edges but those of the base in a lazy order, and the base as entries of it (`ordered`).

    Without room where the order is not wanted.
    """

    order: LazyOrder
    out: Ints1
    size: Ints1


class ForestState(NamedTuple):
    """All edges, what each solver keeps, the sorted answer, and which solver is in use (``switch[IN_USE]``).

    HOT_COLD: the hot edges are in `hot`, and the base is a part of them. CHALLENGERS: the hot edges are the base
    itself, in `tree`. PRIM: all weights are in `matrix`, and `edges` are out of date but for what is absent.
    ORDERED: likewise, with all weights in `ordered`.
    """

    recs: Floats2
    edges: Edges
    vertex: Shorts2
    hot: HotEdges
    tree: Tree
    parts: Parts
    matrix: Matrix
    ordered: Ordered
    answer: Answer
    scratch: Scratch
    lam: Floats1
    flags: Flags1
    lengths: Ints1
    counters: Ints1
    costs: Floats1
    switch: Floats1
    solver_mode: Whole


open_forest = opener(ForestState)


@inline_kernel
def hot_place(state, j):
    """Where the j-th hot edge is, the dormant ones counted after the others. O(1)."""
    n = state.lengths[N_HOT]
    return j if j < n else (state.hot.weight.shape[0] >> 1) + j - n


@inline_kernel
def no_hot_edges(state):
    """Forget all hot edges. O(1)."""
    state.lengths[N_HOT] = state.lengths[N_DORMANT] = state.lengths[N_PICKED] = 0


@inline_kernel
def n_all_hot(state):
    """How many hot edges there are, with the dormant ones. O(1)."""
    return state.lengths[N_HOT] + state.lengths[N_DORMANT]


class ForestHandle(NamedTuple):
    """What loops and calls pass about: the records, and the handle of a `ForestState`.

    A state of forty arrays handed over by value would cost more than a quiet round does. So kernels that are called
    take the handle and open it, which costs nothing for what they do not use; kernels that are inlined take the state.
    """

    recs: Floats2
    handle: Ints1


def components(tail: IntArray, head: IntArray, n_vertices: int) -> IntArray:
    """The smallest vertex of each vertex's component. O((K + V) log V)."""
    label = np.arange(n_vertices)
    while True:
        low = np.minimum(label[tail], label[head])
        new = label.copy()
        np.minimum.at(new, label[tail], low)
        np.minimum.at(new, label[head], low)
        while not np.array_equal(new, new[new]):
            new = new[new]
        new = new[label]
        if np.array_equal(new, label):
            return label
        label = new


def parallel_arms(tail: IntArray, head: IntArray) -> Int32Array:
    """For each arm the next one between the same two vertices, round and round. O(K log K)."""
    low, high = np.minimum(tail, head), np.maximum(tail, head)
    order = np.lexsort((high, low))
    ends = np.flatnonzero(np.diff(low[order]) | np.diff(high[order]))
    following = np.roll(order, -1)
    firsts = np.concatenate([[0], ends + 1])
    following[np.concatenate([ends, [len(order) - 1]])] = order[firsts]
    parallel = np.zeros(len(tail), dtype=np.int32)
    parallel[order] = following
    return parallel


@kernel
def search_start_cost(n_vertices):
    """What a search costs before it walks anywhere, in nanoseconds (measured): a small graph stays in the cache."""
    return 100.0 + 3.0 * min(n_vertices, 100)


def wants_matrix(solver_mode: int, n_vertices: int, n_arms: int) -> bool:
    """Whether dense Prim is the busy solver: for few vertices and many edges a vertex, or where it is asked for."""
    fits = n_vertices <= PRIM_VERTICES and PRIM_DEGREE * n_vertices <= n_arms <= n_vertices * n_vertices
    return solver_mode == PRIM or (solver_mode == ADAPTIVE and fits)


def wants_order(solver_mode: int, n_vertices: int, n_arms: int) -> bool:
    """Whether the order of all edges may be the busy solver: for many edges a vertex, or where it is asked for."""
    fits = n_vertices <= 1 << ORDER_BITS and n_arms >= ORDER_DEGREE * n_vertices
    matrix = wants_matrix(solver_mode, n_vertices, n_arms)
    return solver_mode == ORDERED or (solver_mode == ADAPTIVE and fits and not matrix)


def _new_vertices(tail: IntArray, head: IntArray, n_vertices: int) -> Int32Array:
    vertex: Int32Array = aligned(8 * n_vertices, np.int32, 0).reshape(n_vertices, 8)
    vertex[:, FIRST_HALF] = -1
    vertex[:, WHOLE_COMPONENT] = vertex[:, COMPONENT] = components(tail, head, n_vertices)
    return vertex


def _new_hot(n_vertices: int, rank: int, size: int) -> HotEdges:
    return HotEdges(
        weight=np.zeros(2 * size),
        edge=np.zeros((2 * size, 4), dtype=np.int32),
        entering_weight=np.zeros(size),
        entering_arm=np.zeros(size, dtype=np.int64),
        failing=np.zeros(n_vertices, dtype=np.int64),
        picked=np.zeros(rank, dtype=np.int32),
    )


def _new_tree(n_arms: int, n_vertices: int, rank: int) -> Tree:
    return Tree(
        edge=np.zeros((rank, 2), dtype=np.int32),
        half=np.zeros((2 * rank, 4), dtype=np.int32),
        up=np.full(n_vertices, -1, dtype=np.int32),
        bound_weight=np.full(n_arms, np.inf),
        beaten=np.zeros(rank, dtype=np.int64),
        risen=np.zeros(8, dtype=np.int64),
        changed=np.zeros(4 * rank + 64, dtype=np.int64),
        walk=np.zeros((n_vertices, 4), dtype=np.int32),
    )


def _new_parts(n_vertices: int, rank: int) -> Parts:
    def shorts(*shape: int) -> Int32Array:
        return np.zeros(shape, dtype=np.int32)

    return Parts(
        vertex=shorts(n_vertices),
        label=shorts(n_vertices),
        group=shorts(rank + 2),
        about=shorts(rank + 2, 8),
        weight=np.zeros((rank + 2, 4)),
        arm=shorts(rank + 2, 4),
        free=shorts(rank),
        next_link=shorts(2 * rank),
        queue=shorts(2 * rank + 4),
    )


def _new_matrix(tail: IntArray, head: IntArray, n_vertices: int) -> Matrix:
    # Aligned, so that the vectors of the loop over a row lie on as few cache lines as they can.
    return Matrix(
        key=aligned(n_vertices * n_vertices, np.int64, 0).reshape(n_vertices, n_vertices),
        arm=np.zeros((n_vertices, n_vertices), dtype=np.int32),
        parallel=parallel_arms(tail, head) if len(tail) else np.zeros(0, dtype=np.int32),
        best_key=aligned(n_vertices, np.int64, 0),
        best_from=aligned(n_vertices, np.int64, 0),
    )


def _new_ordered(n_arms: int, rank: int) -> Ordered:
    return Ordered(
        order=new_lazy_order(n_arms, rank),
        out=np.zeros(rank, dtype=np.int64),
        size=np.zeros(3, dtype=np.int64),
    )


def new_forest(
    recs: FloatArray, tail: IntArray, head: IntArray, n_vertices: int, rank: int, solver_mode: int
) -> ForestState:
    """A state in which nothing was solved yet. O(K log K)."""
    n_arms = len(tail)
    size = max(n_arms, n_vertices) + 320
    prim = wants_matrix(solver_mode, n_vertices, n_arms)
    flags = np.zeros(5, dtype=np.bool_)
    flags[STALE] = flags[DIRTY] = True
    lengths: IntArray = aligned(9, np.int64, 0)
    lengths[HOT_LIMIT] = 4 * rank + 64
    first_search = search_start_cost.py_func(n_vertices) + 0.6 * min(n_vertices, 1000)
    none = np.zeros(0, dtype=np.int64)
    first = PRIM if prim else ORDERED if solver_mode == ORDERED else HOT_COLD
    order = wants_order(solver_mode, n_vertices, n_arms)
    return ForestState(
        recs=recs,
        edges=new_edges(tail, head, n_vertices),
        vertex=_new_vertices(tail, head, n_vertices),
        hot=_new_hot(n_vertices, rank, size),
        tree=_new_tree(n_arms, n_vertices, rank),
        parts=_new_parts(n_vertices, rank),
        matrix=_new_matrix(tail, head, n_vertices) if prim else _new_matrix(none, none, 0),
        ordered=_new_ordered(n_arms, rank) if order else _new_ordered(0, 0),
        answer=new_answer(rank),
        scratch=new_scratch(size),
        lam=np.zeros(1),
        flags=flags,
        lengths=lengths,
        counters=np.zeros(5, dtype=np.int64),
        costs=np.array([150.0 * n_vertices, first_search, n_arms, 0.0]),
        switch=new_switch(first),
        solver_mode=solver_mode,
    )
