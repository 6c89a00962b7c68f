"""Challenger bounds for spanning forests (DESIGN idea F), for states in which little of the base changes.

For each tree edge h a bound is kept: no cold edge that could replace h has a key above it. While h is not
beaten by its bound nothing needs doing. When h falls below, the smaller side of the cut that h spans is walked (both
sides in step, so the cost is that of the smaller one) and the rows of its vertices give the two heaviest
edges across the cut. If the heaviest beats h it takes h's place; else it is h's new bound.

After exchanging h for its best challenger f all other bounds hold: an edge g that is new among the candidates of
another tree edge e crossed h's cut, so g does not beat f, and f was a candidate of e already. The candidates
of f are h and h's other ones, so f's bound is the heavier of h and the second best. A cold edge that becomes heavier
raises the bounds on its circuit.
"""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.lanes import LANE_BITS, LANES
from semibandit.engines.graphic.rows import (
    ABSENT,
    BASE,
    COLD,
    FLAG,
    HEAD,
    HOT,
    NOBODY,
    PLACE,
    ROW_BLOCKS,
    ROW_NODE,
    ROW_SLOT,
    TAIL,
    TREE,
    beats,
    put,
    weight_of,
)
from semibandit.engines.graphic.state import (
    BOUND_ARM,
    DIRTY,
    FIRST,
    HALF_NEXT,
    HALF_PREV,
    HALF_TO,
    MARK,
    N_CHANGED,
    N_LIST,
    N_RISEN,
    N_SORTED,
    N_TREE,
    SEARCHES,
    TREE_ARM,
    WORK,
    merge_base,
    open_forest,
)

# Columns of `queue`: two walks (vertex, the half-edge that leads back), or one order of the whole forest.
WALK_A, BACK_A, WALK_B, BACK_B, DEPTH, PARENT = range(6)

# Weights of what a search does, in nanoseconds (measured; only ratios matter): a step of the walk, a vertex, a block.
NS_STEP, NS_ROW, NS_BLOCK = 16, 16, 24


@inline_kernel
def link(vertex, half, tree, edge, k, arm):
    """Tree edge k is `arm` now: enter it in the lists of its two ends. O(1)."""
    tree[k, TREE_ARM] = arm
    edge[arm, TREE] = k
    for side in range(2):
        h = 2 * k + side
        v = edge[arm, TAIL + side]
        after = vertex[v, FIRST]
        half[h, HALF_TO] = edge[arm, HEAD - side]
        half[h, HALF_NEXT] = after
        half[h, HALF_PREV] = -1
        if after >= 0:
            half[after, HALF_PREV] = h
        vertex[v, FIRST] = h


@inline_kernel
def unlink(vertex, half, tree, edge, k):
    """Take tree edge k out of the lists of its ends. O(1)."""
    arm = np.int64(tree[k, TREE_ARM])
    edge[arm, TREE] = -1
    for side in range(2):
        h = 2 * k + side
        before, after = half[h, HALF_PREV], half[h, HALF_NEXT]
        if before >= 0:
            half[before, HALF_NEXT] = after
        else:
            vertex[edge[arm, TAIL + side], FIRST] = after
        if after >= 0:
            half[after, HALF_PREV] = before


@inline_kernel
def list_if_beaten(state, arm, lam):
    """Put tree arm `arm` on the list of those to be looked at, if its bound beats it. O(1)."""
    edge, meta = state.rows.edge, state.meta
    if edge[arm, FLAG] == 0:
        w = weight_of(state.recs, arm, lam)
        bound_arm = np.int64(state.tree[edge[arm, TREE], BOUND_ARM])
        if edge[arm, PLACE] == ABSENT or beats(state.guard[arm], bound_arm, w, arm):
            edge[arm, FLAG] = 1
            state.list_a[meta[N_LIST]] = arm
            meta[N_LIST] += 1
            meta[DIRTY] = 1


@kernel
def smaller_side(half, vertex, queue, tail, head, k):
    """Walk both sides of tree edge k in step until one ends; returns its column in `queue`, its size, the steps."""
    n_a, n_b = 1, 1
    i_a, i_b = 0, 0
    queue[0, WALK_A], queue[0, BACK_A] = tail, 2 * k
    queue[0, WALK_B], queue[0, BACK_B] = head, 2 * k + 1
    h_a, h_b = vertex[tail, FIRST], vertex[head, FIRST]
    steps = 0
    while True:
        steps += 1
        while h_a < 0:
            i_a += 1
            if i_a == n_a:
                return WALK_A, n_a, steps
            h_a = vertex[queue[i_a, WALK_A], FIRST]
        if h_a != queue[i_a, BACK_A]:
            queue[n_a, WALK_A] = half[h_a, HALF_TO]
            queue[n_a, BACK_A] = h_a ^ 1
            n_a += 1
        h_a = half[h_a, HALF_NEXT]
        while h_b < 0:
            i_b += 1
            if i_b == n_b:
                return WALK_B, n_b, steps
            h_b = vertex[queue[i_b, WALK_B], FIRST]
        if h_b != queue[i_b, BACK_B]:
            queue[n_b, WALK_B] = half[h_b, HALF_TO]
            queue[n_b, BACK_B] = h_b ^ 1
            n_b += 1
        h_b = half[h_b, HALF_NEXT]


@inline_kernel
def best_two(state, column, n):
    """The two heaviest cold edges that leave the n vertices in `queue[:n, column]`, as keys, and the blocks read.

    A row, 16 blocks, or a block whose winner does not beat the second best so far is passed over.
    """
    rows, vertex, queue = state.rows, state.vertex, state.queue
    slot_weight, slot_arm, node_weight, node_arm = (
        rows.slot_weight,
        rows.slot_arm,
        rows.node_weight,
        rows.node_arm,
    )
    w1, a1 = -np.inf, np.int64(NOBODY)
    w2, a2 = -np.inf, np.int64(NOBODY)
    for i in range(n):
        vertex[queue[i, column], MARK] = 1
    blocks = 0
    for i in range(n):
        v = queue[i, column]
        if not beats(rows.level[v], rows.level_arm[v], w2, a2):
            continue
        first, n_blocks = np.int64(rows.row[v, ROW_SLOT]), np.int64(rows.row[v, ROW_BLOCKS])
        offset = np.int64(rows.row[v, ROW_NODE])
        above = offset + (((n_blocks + LANES - 1) >> LANE_BITS) << LANE_BITS)
        b = np.int64(0)
        while b < n_blocks:
            if n_blocks > LANES and b & (LANES - 1) == 0:
                up = above + (b >> LANE_BITS)
                if not beats(node_weight[up], node_arm[up], w2, a2):
                    b += LANES
                    continue
            if n_blocks > 1 and not beats(node_weight[offset + b], node_arm[offset + b], w2, a2):
                b += 1
                continue
            blocks += 1
            start = first + (b << LANE_BITS)
            for s in range(start, start + LANES):
                w = slot_weight[s]
                if w < w2 or w == -np.inf:
                    continue
                arm = np.int64(slot_arm[s])
                if beats(w, arm, w2, a2) and vertex[rows.slot_to[s], MARK] == 0:
                    if beats(w, arm, w1, a1):
                        w2, a2 = w1, a1
                        w1, a1 = w, arm
                    else:
                        w2, a2 = w, arm
            b += 1
    for i in range(n):
        vertex[queue[i, column], MARK] = 0
    return w1, a1, w2, a2, blocks


@inline_kernel
def look_at(state, arm, lam):
    """Search the challengers of tree arm `arm`: exchange it, give it a tight bound, or drop it if it is absent and
    nothing can replace it. O(smaller side of its cut + blocks of its rows)."""
    rows, edge, meta, tree, guard = state.rows, state.rows.edge, state.meta, state.tree, state.guard
    vertex, half, changed = state.vertex, state.half, state.changed
    k = np.int64(edge[arm, TREE])
    here = edge[arm, PLACE] != ABSENT
    w = weight_of(state.recs, arm, lam) if here else -np.inf
    column, n, steps = smaller_side(half, vertex, state.queue, edge[arm, TAIL], edge[arm, HEAD], k)
    w1, a1, w2, a2, blocks = best_two(state, column, n)
    meta[SEARCHES] += 1
    meta[WORK] += NS_STEP * steps + NS_ROW * n + NS_BLOCK * blocks
    if here and not beats(w1, a1, w, arm):
        guard[arm] = w1
        tree[k, BOUND_ARM] = a1
        return
    changed[meta[N_CHANGED]] = arm
    meta[N_CHANGED] += 1
    guard[arm] = np.inf
    unlink(vertex, half, tree, edge, k)
    if here:
        put(rows, arm, w, np.int64(COLD))
        if beats(w, arm, w2, a2):
            w2, a2 = w, arm
    moved = a1
    if a1 == NOBODY:
        # The last tree edge takes the free place.
        last = meta[N_TREE] - 1
        meta[N_TREE] = last
        if k == last:
            return
        moved = np.int64(tree[last, TREE_ARM])
        w2, a2 = guard[moved], np.int64(tree[last, BOUND_ARM])
        unlink(vertex, half, tree, edge, last)
    else:
        changed[meta[N_CHANGED]] = a1
        meta[N_CHANGED] += 1
        put(rows, a1, -np.inf, np.int64(HOT))
    link(vertex, half, tree, edge, k, moved)
    guard[moved] = w2
    tree[k, BOUND_ARM] = a2


@inline_kernel
def raise_bounds(state, arm, lam):
    """Cold edge `arm` may have become heavier: raise the bounds on its path, or link it if there is no path. O(V)."""
    vertex, half, queue, tree, meta = state.vertex, state.half, state.queue, state.tree, state.meta
    edge, guard = state.rows.edge, state.guard
    w = weight_of(state.recs, arm, lam)
    goal = edge[arm, HEAD]
    queue[0, WALK_A], queue[0, BACK_A], queue[0, PARENT] = edge[arm, TAIL], -1, -1
    n, i = 1, 0
    found = -1
    while i < n and found < 0:
        h = vertex[queue[i, WALK_A], FIRST]
        while h >= 0:
            if h != queue[i, BACK_A]:
                queue[n, WALK_A] = half[h, HALF_TO]
                queue[n, BACK_A] = h ^ 1
                queue[n, PARENT] = i
                if half[h, HALF_TO] == goal:
                    found = n
                    break
                n += 1
            h = half[h, HALF_NEXT]
        i += 1
    meta[WORK] += NS_STEP * n
    if found < 0:
        # It joins two trees. No other cold edge does, so nothing challenges it.
        k = meta[N_TREE]
        meta[N_TREE] = k + 1
        put(state.rows, arm, -np.inf, np.int64(HOT))
        link(vertex, half, tree, edge, k, arm)
        guard[arm] = -np.inf
        tree[k, BOUND_ARM] = NOBODY
        state.changed[meta[N_CHANGED]] = arm
        meta[N_CHANGED] += 1
        return
    while queue[found, PARENT] >= 0:
        k = queue[found, BACK_A] >> 1
        on_path = np.int64(tree[k, TREE_ARM])
        if beats(w, arm, guard[on_path], np.int64(tree[k, BOUND_ARM])):
            guard[on_path] = w
            tree[k, BOUND_ARM] = arm
            list_if_beaten(state, on_path, lam)
        found = queue[found, PARENT]


@kernel
def challenger_solve(handle, lam):
    """Make the tree and the sorted answer right again. Returns how many arms are new. O(D + searches)."""
    state = open_forest(handle)
    meta, edge, changed = state.meta, state.rows.edge, state.changed
    meta[N_CHANGED] = 0
    for i in range(meta[N_RISEN]):
        arm = state.risen[i]
        if edge[arm, PLACE] == COLD:
            raise_bounds(state, arm, lam)
    meta[N_RISEN] = 0
    for i in range(meta[N_LIST]):
        arm = state.list_a[i]
        edge[arm, FLAG] = 0
        if edge[arm, TREE] >= 0:
            w = weight_of(state.recs, arm, lam)
            bound_arm = np.int64(state.tree[edge[arm, TREE], BOUND_ARM])
            if edge[arm, PLACE] == ABSENT or beats(state.guard[arm], bound_arm, w, arm):
                look_at(state, arm, lam)
    meta[N_LIST] = 0
    n_added, n_gone = np.int64(0), np.int64(0)
    for i in range(meta[N_CHANGED]):
        arm = changed[i]
        if edge[arm, TREE] >= 0 and edge[arm, BASE] == 0:
            edge[arm, BASE] = 1
            changed[n_added] = arm
            n_added += 1
        elif edge[arm, TREE] < 0 and edge[arm, BASE] == 1:
            edge[arm, BASE] = 0
            state.fresh_arm[n_gone] = arm
            n_gone += 1
    if n_added + n_gone > 0:
        meta[N_SORTED] = merge_base(
            state.sorted_base,
            meta[N_SORTED],
            changed,
            n_added,
            state.fresh_arm,
            n_gone,
            edge,
            state.spare_arm,
            state.count,
        )
    return n_added
