"""Changing over between the solvers: each finds the hot edges as the other left them.

From hot and cold edges to challengers and back in O(V); from Prim or the order of all edges to hot and cold edges in
O(K). These two need nothing but the weights (`prim.fill_matrix`, `ordered.fill_order`).
"""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.engines.graphic.edges import (
    ABSENT,
    COLD,
    HEAD,
    HOT,
    STATUS,
    TAIL,
    TREE_INDEX,
    beats,
    reweigh_cold,
    set_status,
)
from semibandit.engines.graphic.state import (
    FAR_END,
    FIRST_HALF,
    HOT_ARM,
    HOT_HEAD,
    HOT_IN_BASE,
    HOT_TAIL,
    LABEL,
    MARK,
    N_BASE,
    N_BEATEN,
    N_HOT,
    N_RISEN,
    N_TREE,
    NEXT_HALF,
    TREE_ARM,
    UNSORTED,
    hot_place,
    n_all_hot,
    no_hot_edges,
    open_forest,
)
from semibandit.engines.graphic.tree import link, raise_bound, set_bound

# Columns of `walk`: a vertex, the half-edge that leads up, its depth, the place of the vertex above.
WALKED, BACK, DEPTH, PARENT = range(4)


@inline_kernel
def _link_base(state):
    """Link the hot edges that are in the base to a tree. O(V + hot edges)."""
    vertex, hot_edge, lengths = state.vertex, state.hot.edge, state.lengths
    for v in range(vertex.shape[0]):
        vertex[v, FIRST_HALF] = -1
    n = np.int64(0)
    for j in range(n_all_hot(state)):
        i = hot_place(state, j)
        if hot_edge[i, HOT_IN_BASE] == 1:
            link(state, n, np.int64(hot_edge[i, HOT_ARM]))
            n += 1
    lengths[N_TREE] = n


@inline_kernel
def _walk_from_anchors(state):
    """Hang every tree from its anchor and write it into `walk`; MARK is the place of a vertex there. O(V)."""
    vertex, half, walk = state.vertex, state.tree.half, state.tree.walk
    n = 0
    for anchor in range(vertex.shape[0]):
        if vertex[anchor, LABEL] != anchor:
            continue
        walk[n, WALKED], walk[n, BACK], walk[n, DEPTH], walk[n, PARENT] = anchor, -1, 0, -1
        i = n
        n += 1
        while i < n:
            v = walk[i, WALKED]
            vertex[v, MARK] = i
            state.tree.up[v] = walk[i, BACK]
            h = vertex[v, FIRST_HALF]
            while h >= 0:
                if h != walk[i, BACK]:
                    walk[n, WALKED] = half[h, FAR_END]
                    walk[n, BACK] = h ^ 1
                    walk[n, DEPTH] = walk[i, DEPTH] + 1
                    walk[n, PARENT] = i
                    n += 1
                h = half[h, NEXT_HALF]
            i += 1


@inline_kernel
def _bound_by_vertices(state):
    """Bound every tree edge by the heaviest cold edge at a vertex below it: one of its cut has an end there. O(V)."""
    edges, tree, walk = state.edges, state.tree, state.tree.walk
    below, below_arm = state.scratch.weight, state.scratch.arm
    n = walk.shape[0]
    for i in range(n):
        v = walk[i, WALKED]
        below[i] = edges.heaviest[v]
        below_arm[i] = edges.heaviest_arm[v]
    for i in range(n - 1, -1, -1):
        up = walk[i, PARENT]
        if up >= 0:
            set_bound(tree, np.int64(walk[i, BACK] >> 1), below[i], below_arm[i])
            if beats(below[i], below_arm[i], below[up], below_arm[up]):
                below[up] = below[i]
                below_arm[up] = below_arm[i]


@inline_kernel
def _bound_by_hot_outsiders(state):
    """Make the hot edges outside the base cold, and raise the bounds on their paths. O(their paths)."""
    vertex, hot, tree, walk = state.vertex, state.hot, state.tree, state.tree.walk
    for j in range(n_all_hot(state)):
        i = hot_place(state, j)
        if hot.edge[i, HOT_IN_BASE] == 1 or hot.edge[i, HOT_TAIL] == hot.edge[i, HOT_HEAD]:
            continue
        w, arm = hot.weight[i], np.int64(hot.edge[i, HOT_ARM])
        a, b = vertex[hot.edge[i, HOT_TAIL], MARK], vertex[hot.edge[i, HOT_HEAD], MARK]
        while a != b:
            if walk[a, DEPTH] < walk[b, DEPTH]:
                a, b = b, a
            raise_bound(tree, np.int64(walk[a, BACK] >> 1), w, arm)
            a = walk[a, PARENT]
        set_status(state.edges, arm, w, np.int64(COLD))


@kernel
def enter_challengers(handle):
    """Turn the base of the hot edges into a linked tree with bounds; only right after a solve.

    O(V + paths of the few hot edges outside the base).
    """
    state = open_forest(handle)
    vertex, lengths = state.vertex, state.lengths
    _link_base(state)
    _walk_from_anchors(state)
    _bound_by_vertices(state)
    _bound_by_hot_outsiders(state)
    for v in range(vertex.shape[0]):
        vertex[v, MARK] = 0
    no_hot_edges(state)
    lengths[N_BEATEN] = 0
    lengths[N_RISEN] = 0


@kernel
def leave_challengers(handle):
    """Make the tree's edges the hot ones, in no order. O(D)."""
    state = open_forest(handle)
    tree, hot_edge, lengths, table = state.tree, state.hot.edge, state.lengths, state.edges.table
    n = 0
    for k in range(lengths[N_TREE]):
        arm = tree.edge[k, TREE_ARM]
        table[arm, TREE_INDEX] = -1
        state.edges.pending[arm] = 0
        tree.bound_weight[arm] = np.inf
        if table[arm, STATUS] == HOT:
            hot_edge[n, HOT_ARM] = arm
            hot_edge[n, HOT_TAIL] = table[arm, TAIL]
            hot_edge[n, HOT_HEAD] = table[arm, HEAD]
            n += 1
    no_hot_edges(state)
    lengths[N_HOT] = n
    state.flags[UNSORTED] = True
    lengths[N_TREE] = 0
    lengths[N_BEATEN] = 0
    lengths[N_RISEN] = 0


@kernel
def leave_weights(handle, lam):
    """Make the base hot, in no order, and all other present edges cold, with their weights. O(K)."""
    state = open_forest(handle)
    hot_edge, lengths, table = state.hot.edge, state.lengths, state.edges.table
    for arm in range(table.shape[0]):
        if table[arm, STATUS] != ABSENT:
            table[arm, STATUS] = COLD
    n = lengths[N_BASE]
    for i in range(n):
        arm = state.answer.arms[i]
        table[arm, STATUS] = HOT
        hot_edge[i, HOT_ARM] = arm
        hot_edge[i, HOT_TAIL] = table[arm, TAIL]
        hot_edge[i, HOT_HEAD] = table[arm, HEAD]
    no_hot_edges(state)
    lengths[N_HOT] = n
    state.flags[UNSORTED] = True
    reweigh_cold(state.edges, state.recs, lam, np.bool_(True))
