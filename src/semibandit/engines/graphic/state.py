"""State shared by the sublinear graphic engines: one for all, so that changing the solver costs little."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.compiled.handle import Floats1, Floats2, Ints1, Ints2, Shorts1, Shorts2, opener
from semibandit.compiled.jit import kernel
from semibandit.compiled.sorting import sort_ids
from semibandit.engines.graphic.rows import BASE, Int32Array, Rows, aligned, new_rows

# Columns of `vertex`: union-find by labels (LABEL, NEXT in its circle, SIZE), the place in the pool at which the
# vertex came to its anchor (JOIN), its first half-edge in the tree, a scratch mark, its component now and at most.
LABEL, NEXT, SIZE, JOIN, FIRST, MARK, COMPONENT, WHOLE = range(8)

# Columns of `pool`.
POOL_ARM, POOL_TAIL, POOL_HEAD, POOL_IN = range(4)

# Columns of `half` (half-edges 2k and 2k + 1 of tree edge k, at its tail and head) and of `tree`.
HALF_NEXT, HALF_PREV, HALF_TO = range(3)
TREE_ARM, BOUND_ARM = range(2)

# Entries of `meta`. STALE: weights must be read again; DIRTY: something changed; ALL_TOUCHED: the pool is in no order;
# CROWDED: more arms rose than `risen` holds; HAS_MATRIX: dense Prim is possible.
MODE, POLICY, STALE, DIRTY, ALL_TOUCHED, CROWDED, HAS_MATRIX = range(7)
N_POOL, POOL_LIMIT, N_TREE, N_SORTED, N_LIST, N_RISEN, N_CHANGED = range(7, 14)
# Counters since the start, and what the choice of the solver goes by.
PASSES, WARMED, SEARCHES, SWAPS, WORK, STAY, PATIENCE = range(14, 21)

# Values of MODE and POLICY.
HOT_COLD, CHALLENGER, PRIM, ADAPTIVE = range(4)

# Entries of `real`: lam of the last round, running means of the cost of a busy round and of a search in nanoseconds,
# and what the present solver has lost against the other.
LAM, BUSY_COST, SEARCH_COST, LOST = range(4)

# Adaptive keeps the matrix of dense Prim for graphs of at most so many vertices and at least so many edges a vertex.
PRIM_VERTICES, PRIM_DEGREE = 80, 8


class ForestArrays(NamedTuple):
    """Rows of cold edges, the pool of hot ones, the tree of the challengers, Prim's matrix, the sorted answer.

    In mode HOT_COLD the pool (`pool_weight`, `pool`, `meta[N_POOL]` entries, heaviest first) holds the hot edges and
    the base is a part of it. In mode CHALLENGER the hot edges are the base itself: tree edge k is arm
    ``a = tree[k, TREE_ARM]``, no cold edge that could replace it has a key above (`guard[a]`,
    ``tree[k, BOUND_ARM]``), and `half` links the tree at its vertices; `list_a` holds tree arms beaten by their
    bound, `risen` cold arms that became heavier. In mode PRIM `matrix` holds for each pair of vertices the best edge
    between them, by `ordered_bits` of its weight, `matrix_arm` its arm, and the rows are out of date;
    `parallel` runs round the arms of one pair. `guard` is +inf but for the arms of the tree.
    """

    recs: Floats2
    rows: Rows
    guard: Floats1
    vertex: Shorts2
    pool_weight: Floats1
    pool: Shorts2
    half: Shorts2
    tree: Shorts2
    fresh_weight: Floats1
    fresh_arm: Ints1
    spare_weight: Floats1
    spare_arm: Ints1
    count: Ints1
    list_a: Ints1
    risen: Ints1
    changed: Ints1
    queue: Shorts2
    matrix: Ints2
    matrix_arm: Shorts2
    parallel: Shorts1
    sorted_base: Ints1
    meta: Ints1
    real: Floats1


open_forest = opener(ForestArrays)


class ForestState(NamedTuple):
    """What loops pass about: the records, and the handle of a `ForestArrays`."""

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
def search_cost(n_vertices):
    """What a search costs before it walks anywhere, in nanoseconds (measured): a small graph stays in the cache."""
    return 100.0 + 3.0 * min(n_vertices, 100)


def new_state(
    recs: FloatArray, tail: IntArray, head: IntArray, n_vertices: int, rank: int, policy: int
) -> ForestArrays:
    """A state in which nothing was solved yet. O(K log K)."""
    n_arms = len(tail)
    vertex = aligned(8 * n_vertices, np.int32, 0).reshape(n_vertices, 8)
    vertex[:, FIRST] = -1
    vertex[:, WHOLE] = vertex[:, COMPONENT] = components(tail, head, n_vertices)
    small = n_vertices <= PRIM_VERTICES and PRIM_DEGREE * n_vertices <= n_arms <= n_vertices * n_vertices
    has_matrix = policy == PRIM or (policy == ADAPTIVE and small)
    side = n_vertices if has_matrix else 0
    meta = np.zeros(24, dtype=np.int64)
    meta[POLICY], meta[HAS_MATRIX], meta[PATIENCE] = policy, has_matrix, 1
    meta[STALE] = meta[DIRTY] = 1
    meta[MODE] = PRIM if has_matrix else HOT_COLD
    meta[POOL_LIMIT] = 4 * rank + 64
    size = max(n_arms, n_vertices) + 320
    first_guess = search_cost.py_func(n_vertices) + 0.6 * min(n_vertices, 1000)

    def ints(n: int) -> IntArray:
        return np.zeros(n, dtype=np.int64)

    return ForestArrays(
        recs=recs,
        rows=new_rows(tail, head, n_vertices),
        guard=np.full(n_arms, np.inf),
        vertex=vertex,
        pool_weight=np.zeros(size),
        pool=np.zeros((size, 4), dtype=np.int32),
        half=np.zeros((2 * rank, 4), dtype=np.int32),
        tree=np.zeros((rank, 2), dtype=np.int32),
        fresh_weight=np.zeros(size),
        fresh_arm=ints(size),
        spare_weight=np.zeros(size),
        spare_arm=ints(size),
        count=ints(size),
        list_a=ints(max(n_vertices, rank)),
        risen=ints(8),
        changed=ints(4 * rank + 64),
        queue=np.zeros((n_vertices, 8), dtype=np.int32),
        matrix=np.zeros((side, side), dtype=np.int64),
        matrix_arm=np.zeros((side, side), dtype=np.int32),
        parallel=parallel_arms(tail, head) if has_matrix else np.zeros(0, dtype=np.int32),
        sorted_base=ints(rank),
        meta=meta,
        real=np.array([0.0, 150.0 * n_vertices, first_guess, 0.0]),
    )


@kernel
def merge_base(sorted_base, n_sorted, added, n_added, gone, n_gone, edge, spare, count):
    """Take `gone` out of the sorted answer and `added` into it; returns its new size.

    The BASE column must be right already. O(D) at most and O(s log D) compares for few changes s. Changes
    `sorted_base` and orders the lists.
    """
    if n_added == n_gone and n_added <= 12:
        for i in range(n_added):
            old, new = gone[i], added[i]
            lo, hi = 0, n_sorted
            while lo < hi:
                mid = (lo + hi) >> 1
                if sorted_base[mid] < old:
                    lo = mid + 1
                else:
                    hi = mid
            while lo + 1 < n_sorted and sorted_base[lo + 1] < new:
                sorted_base[lo] = sorted_base[lo + 1]
                lo += 1
            while lo > 0 and sorted_base[lo - 1] > new:
                sorted_base[lo] = sorted_base[lo - 1]
                lo -= 1
            sorted_base[lo] = new
        return n_sorted
    sort_ids(added, n_added, spare, count)
    n = 0
    for i in range(n_sorted):
        if edge[sorted_base[i], BASE] != 0:
            sorted_base[n] = sorted_base[i]
            n += 1
    total = n + n_added
    i, o = n_added - 1, total - 1
    while i >= 0:
        if n > 0 and sorted_base[n - 1] > added[i]:
            sorted_base[o] = sorted_base[n - 1]
            n -= 1
        else:
            sorted_base[o] = added[i]
            i -= 1
        o -= 1
    return total
