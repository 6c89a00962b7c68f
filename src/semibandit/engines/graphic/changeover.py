"""Changing over between the pool of hot edges and the challengers' tree. O(V) each way."""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import kernel
from semibandit.engines.graphic.challenger import BACK_A, DEPTH, PARENT, WALK_A, link
from semibandit.engines.graphic.rows import COLD, FLAG, HEAD, HOT, PLACE, TAIL, TREE, beats, put
from semibandit.engines.graphic.state import (
    ALL_TOUCHED,
    BOUND_ARM,
    FIRST,
    HALF_NEXT,
    HALF_TO,
    LABEL,
    MARK,
    N_LIST,
    N_POOL,
    N_RISEN,
    N_TREE,
    POOL_ARM,
    POOL_HEAD,
    POOL_IN,
    POOL_TAIL,
    TREE_ARM,
    open_forest,
)


@kernel
def enter_challenger(handle):
    """Turn the pool's base into a linked tree with bounds. O(V + paths of the few hot edges outside the base).

    A cold edge across the cut of tree edge h has an end on the side away from the anchor, so the levels of that side
    bound it; the pool's other edges raise the bounds on their paths.
    """
    state = open_forest(handle)
    meta, vertex, half, queue, tree = state.meta, state.vertex, state.half, state.queue, state.tree
    pool, level, level_arm, guard = state.pool, state.rows.level, state.rows.level_arm, state.guard
    edge = state.rows.edge
    top, top_arm = state.spare_weight, state.spare_arm
    n_vertices = vertex.shape[0]
    for v in range(n_vertices):
        vertex[v, FIRST] = -1
        vertex[v, MARK] = 0
    n_tree = 0
    for i in range(meta[N_POOL]):
        if pool[i, POOL_IN] == 1:
            link(vertex, half, tree, edge, np.int64(n_tree), np.int64(pool[i, POOL_ARM]))
            n_tree += 1
    meta[N_TREE] = n_tree
    # Every tree from its anchor down; MARK is the place of a vertex in this order.
    n = 0
    for anchor in range(n_vertices):
        if vertex[anchor, LABEL] != anchor:
            continue
        queue[n, WALK_A], queue[n, BACK_A], queue[n, DEPTH], queue[n, PARENT] = anchor, -1, 0, -1
        i = n
        n += 1
        while i < n:
            v = queue[i, WALK_A]
            vertex[v, MARK] = i
            h = vertex[v, FIRST]
            while h >= 0:
                if h != queue[i, BACK_A]:
                    queue[n, WALK_A] = half[h, HALF_TO]
                    queue[n, BACK_A] = h ^ 1
                    queue[n, DEPTH] = queue[i, DEPTH] + 1
                    queue[n, PARENT] = i
                    n += 1
                h = half[h, HALF_NEXT]
            i += 1
    for i in range(n):
        v = queue[i, WALK_A]
        top[i] = level[v]
        top_arm[i] = level_arm[v]
    for i in range(n - 1, -1, -1):
        up = queue[i, PARENT]
        if up >= 0:
            k = queue[i, BACK_A] >> 1
            guard[tree[k, TREE_ARM]] = top[i]
            tree[k, BOUND_ARM] = top_arm[i]
            if beats(top[i], top_arm[i], top[up], top_arm[up]):
                top[up] = top[i]
                top_arm[up] = top_arm[i]
    for i in range(meta[N_POOL]):
        if pool[i, POOL_IN] == 1:
            continue
        w, arm = state.pool_weight[i], np.int64(pool[i, POOL_ARM])
        a, b = vertex[pool[i, POOL_TAIL], MARK], vertex[pool[i, POOL_HEAD], MARK]
        while a != b:
            if queue[a, DEPTH] < queue[b, DEPTH]:
                a, b = b, a
            k = queue[a, BACK_A] >> 1
            on_path = tree[k, TREE_ARM]
            if beats(w, arm, guard[on_path], np.int64(tree[k, BOUND_ARM])):
                guard[on_path] = w
                tree[k, BOUND_ARM] = arm
            a = queue[a, PARENT]
        put(state.rows, arm, w, np.int64(COLD))
    for v in range(n_vertices):
        vertex[v, MARK] = 0
    meta[N_POOL] = 0
    meta[N_LIST] = 0
    meta[N_RISEN] = 0


@kernel
def leave_challenger(handle):
    """Make the tree's edges the pool, in no order. O(D)."""
    state = open_forest(handle)
    meta, pool, edge = state.meta, state.pool, state.rows.edge
    n = 0
    for k in range(meta[N_TREE]):
        arm = state.tree[k, TREE_ARM]
        edge[arm, TREE] = -1
        edge[arm, FLAG] = 0
        state.guard[arm] = np.inf
        if edge[arm, PLACE] == HOT:
            pool[n, POOL_ARM] = arm
            pool[n, POOL_TAIL] = edge[arm, TAIL]
            pool[n, POOL_HEAD] = edge[arm, HEAD]
            n += 1
    meta[N_POOL] = n
    meta[ALL_TOUCHED] = 1
    meta[N_TREE] = 0
    meta[N_LIST] = 0
    meta[N_RISEN] = 0
