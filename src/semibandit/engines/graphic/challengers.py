"""Challenger bounds for spanning forests (docs/theory.md, F), for states in which little of the base changes.

For each tree edge h a bound is kept: no cold edge that could replace h comes before it. While h is not beaten by its
bound nothing needs doing. When it is, the smaller side of the cut that h spans is walked (both sides in step, so the
cost is that of the smaller one) and the rows of its vertices give the two heaviest edges across the cut. If the
heaviest beats h it takes h's place; else it is h's new bound.

After exchanging h for its best challenger f all other bounds hold: an edge g that is new among the candidates of
another tree edge e crossed h's cut, so g does not beat f, and f was a candidate of e already. The candidates
of f are h and h's other ones, so f's bound is the heavier of h and the second best. A cold edge that becomes heavier
raises the bounds on its circuit.
"""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.lanes import LANE_BITS, LANES
from semibandit.engines.graphic.answer import change_answer
from semibandit.engines.graphic.edges import (
    ABSENT,
    COLD,
    FIRST_SLOT,
    FIRST_WINNER,
    HEAD,
    HOT,
    IN_BASE,
    N_BLOCKS,
    NOBODY,
    PENDING,
    STATUS,
    TAIL,
    TREE_INDEX,
    beats,
    set_status,
    weight_of,
)
from semibandit.engines.graphic.state import (
    BOUND_ARM,
    DIRTY,
    FAR_END,
    FIRST_HALF,
    MARK,
    N_BASE,
    N_BEATEN,
    N_CHANGED,
    N_RISEN,
    N_TREE,
    NEXT_HALF,
    PREVIOUS_HALF,
    SEARCH_WORK,
    SEARCHES,
    TREE_ARM,
    open_forest,
)

# Columns of `walk`: two walks at once (a vertex, the half-edge that leads back), or one with the depth of a vertex and
# the place of its parent.
WALK_A, BACK_A, WALK_B, BACK_B, DEPTH, PARENT = range(6)

# What a search does, in nanoseconds (measured; only ratios matter): a step of the walk, a vertex, a block.
NS_STEP, NS_ROW, NS_BLOCK = 16, 16, 24


# -- the linked tree ---------------------------------------------------------------------------------------------


@inline_kernel
def link(state, k, arm):
    """Tree edge k is `arm` from now on: enter it in the lists of its two ends. O(1)."""
    vertex, half, table = state.vertex, state.tree.half, state.edges.table
    state.tree.edge[k, TREE_ARM] = arm
    table[arm, TREE_INDEX] = k
    for side in range(2):
        h = 2 * k + side
        v = table[arm, TAIL + side]
        after = vertex[v, FIRST_HALF]
        half[h, FAR_END] = table[arm, HEAD - side]
        half[h, NEXT_HALF] = after
        half[h, PREVIOUS_HALF] = -1
        if after >= 0:
            half[after, PREVIOUS_HALF] = h
        vertex[v, FIRST_HALF] = h


@inline_kernel
def _unlink(state, k):
    """Take tree edge k out of the lists of its ends. O(1)."""
    vertex, half, table = state.vertex, state.tree.half, state.edges.table
    arm = np.int64(state.tree.edge[k, TREE_ARM])
    table[arm, TREE_INDEX] = -1
    for side in range(2):
        h = 2 * k + side
        before, after = half[h, PREVIOUS_HALF], half[h, NEXT_HALF]
        if before >= 0:
            half[before, NEXT_HALF] = after
        else:
            vertex[table[arm, TAIL + side], FIRST_HALF] = after
        if after >= 0:
            half[after, PREVIOUS_HALF] = before


@inline_kernel
def set_bound(tree, k, w, arm):
    """The bound of tree edge k is the key (w, arm). O(1)."""
    tree.bound_weight[tree.edge[k, TREE_ARM]] = w
    tree.edge[k, BOUND_ARM] = arm


@inline_kernel
def raise_bound(tree, k, w, arm):
    """Let the key (w, arm) be the bound of tree edge k if it beats the bound there is; whether it does. O(1)."""
    rises = beats(w, arm, tree.bound_weight[tree.edge[k, TREE_ARM]], np.int64(tree.edge[k, BOUND_ARM]))
    if rises:
        set_bound(tree, k, w, arm)
    return rises


@inline_kernel
def _is_beaten(state, arm, lam):
    """Whether tree arm `arm` is absent or comes after its bound. O(1)."""
    tree, table = state.tree, state.edges.table
    w = weight_of(state.recs, arm, lam)
    bound_arm = np.int64(tree.edge[table[arm, TREE_INDEX], BOUND_ARM])
    return table[arm, STATUS] == ABSENT or beats(tree.bound_weight[arm], bound_arm, w, arm)


@inline_kernel
def list_if_beaten(state, arm, lam):
    """Let the next round search a replacement of tree arm `arm`, if its bound beats it. O(1)."""
    table, lengths = state.edges.table, state.lengths
    if table[arm, PENDING] == 0 and _is_beaten(state, arm, lam):
        table[arm, PENDING] = 1
        state.tree.beaten[lengths[N_BEATEN]] = arm
        lengths[N_BEATEN] += 1
        state.flags[DIRTY] = True


@inline_kernel
def _note_change(state, arm):
    """`arm` entered or left the tree in this round. O(1)."""
    state.tree.changed[state.lengths[N_CHANGED]] = arm
    state.lengths[N_CHANGED] += 1


# -- the search for a replacement --------------------------------------------------------------------------------


@kernel
def _smaller_side(half, vertex, walk, tail, head, k):
    """Walk both sides of tree edge k in step until one ends; returns its column in `walk`, its size, the steps."""
    n_a, n_b = 1, 1
    i_a, i_b = 0, 0
    walk[0, WALK_A], walk[0, BACK_A] = tail, 2 * k
    walk[0, WALK_B], walk[0, BACK_B] = head, 2 * k + 1
    h_a, h_b = vertex[tail, FIRST_HALF], vertex[head, FIRST_HALF]
    steps = 0
    while True:
        steps += 1
        while h_a < 0:
            i_a += 1
            if i_a == n_a:
                return WALK_A, n_a, steps
            h_a = vertex[walk[i_a, WALK_A], FIRST_HALF]
        if h_a != walk[i_a, BACK_A]:
            walk[n_a, WALK_A] = half[h_a, FAR_END]
            walk[n_a, BACK_A] = h_a ^ 1
            n_a += 1
        h_a = half[h_a, NEXT_HALF]
        while h_b < 0:
            i_b += 1
            if i_b == n_b:
                return WALK_B, n_b, steps
            h_b = vertex[walk[i_b, WALK_B], FIRST_HALF]
        if h_b != walk[i_b, BACK_B]:
            walk[n_b, WALK_B] = half[h_b, FAR_END]
            walk[n_b, BACK_B] = h_b ^ 1
            n_b += 1
        h_b = half[h_b, NEXT_HALF]


@inline_kernel
def _best_two_across(state, column, n):
    """The two heaviest cold edges that leave the n vertices in ``walk[:n, column]``, as keys, and the blocks read.

    A row, 16 blocks, or a block whose winner does not beat the second best so far is passed over.
    """
    edges, vertex, walk = state.edges, state.vertex, state.tree.walk
    slot_weight, slot_arm = edges.slot_weight, edges.slot_arm
    winner_weight, winner_arm = edges.winner_weight, edges.winner_arm
    w1, a1 = -np.inf, np.int64(NOBODY)
    w2, a2 = -np.inf, np.int64(NOBODY)
    for i in range(n):
        vertex[walk[i, column], MARK] = 1
    blocks = 0
    for i in range(n):
        v = walk[i, column]
        if not beats(edges.heaviest[v], edges.heaviest_arm[v], w2, a2):
            continue
        first, n_blocks = np.int64(edges.row[v, FIRST_SLOT]), np.int64(edges.row[v, N_BLOCKS])
        offset = np.int64(edges.row[v, FIRST_WINNER])
        above = offset + (((n_blocks + LANES - 1) >> LANE_BITS) << LANE_BITS)
        b = np.int64(0)
        while b < n_blocks:
            if n_blocks > LANES and b & (LANES - 1) == 0:
                up = above + (b >> LANE_BITS)
                if not beats(winner_weight[up], winner_arm[up], w2, a2):
                    b += LANES
                    continue
            if n_blocks > 1 and not beats(winner_weight[offset + b], winner_arm[offset + b], w2, a2):
                b += 1
                continue
            blocks += 1
            start = first + (b << LANE_BITS)
            for s in range(start, start + LANES):
                w = slot_weight[s]
                if w < w2 or w == -np.inf:
                    continue
                arm = np.int64(slot_arm[s])
                if beats(w, arm, w2, a2) and vertex[edges.slot_far_end[s], MARK] == 0:
                    if beats(w, arm, w1, a1):
                        w2, a2 = w1, a1
                        w1, a1 = w, arm
                    else:
                        w2, a2 = w, arm
            b += 1
    for i in range(n):
        vertex[walk[i, column], MARK] = 0
    return w1, a1, w2, a2, blocks


@inline_kernel
def _close_gap(state, k):
    """No edge takes the place of tree edge k: the last one moves to k, with its bound. O(1)."""
    tree, lengths = state.tree, state.lengths
    last = lengths[N_TREE] - 1
    lengths[N_TREE] = last
    if k != last:
        moved, bound_arm = np.int64(tree.edge[last, TREE_ARM]), tree.edge[last, BOUND_ARM]
        _unlink(state, last)
        link(state, k, moved)
        tree.edge[k, BOUND_ARM] = bound_arm


@inline_kernel
def _search_replacement(state, arm, lam):
    """Search the best challengers of tree arm `arm`: exchange it, or give it a tight bound; drop it if it is absent
    and nothing can replace it. O(smaller side of its cut + blocks of its rows)."""
    edges, tree, table, counters = state.edges, state.tree, state.edges.table, state.counters
    k = np.int64(table[arm, TREE_INDEX])
    present = table[arm, STATUS] != ABSENT
    w = weight_of(state.recs, arm, lam) if present else -np.inf
    column, n, steps = _smaller_side(
        tree.half, state.vertex, tree.walk, table[arm, TAIL], table[arm, HEAD], k
    )
    w1, a1, w2, a2, blocks = _best_two_across(state, column, n)
    counters[SEARCHES] += 1
    counters[SEARCH_WORK] += NS_STEP * steps + NS_ROW * n + NS_BLOCK * blocks
    if present and not beats(w1, a1, w, arm):
        set_bound(tree, k, w1, a1)
        return
    _note_change(state, arm)
    tree.bound_weight[arm] = np.inf
    _unlink(state, k)
    if present:
        set_status(edges, arm, w, np.int64(COLD))
        if beats(w, arm, w2, a2):
            w2, a2 = w, arm
    if a1 == NOBODY:
        _close_gap(state, k)
        return
    _note_change(state, a1)
    set_status(edges, a1, -np.inf, np.int64(HOT))
    link(state, k, a1)
    set_bound(tree, k, w2, a2)


# -- cold edges that became heavier ------------------------------------------------------------------------------


@inline_kernel
def _find_path(state, start, goal):
    """Walk the tree from `start`; the place in `walk` at which `goal` was reached, or -1. O(V)."""
    vertex, half, walk = state.vertex, state.tree.half, state.tree.walk
    walk[0, WALK_A], walk[0, BACK_A], walk[0, PARENT] = start, -1, -1
    n, i = 1, 0
    found = -1
    while i < n and found < 0:
        h = vertex[walk[i, WALK_A], FIRST_HALF]
        while h >= 0:
            if h != walk[i, BACK_A]:
                walk[n, WALK_A] = half[h, FAR_END]
                walk[n, BACK_A] = h ^ 1
                walk[n, PARENT] = i
                if half[h, FAR_END] == goal:
                    found = n
                    break
                n += 1
            h = half[h, NEXT_HALF]
        i += 1
    state.counters[SEARCH_WORK] += NS_STEP * n
    return found


@inline_kernel
def _raise_bounds(state, arm, lam):
    """Cold edge `arm` may have become heavier: raise the bounds on its path, or link it if there is no path. O(V)."""
    tree, walk, lengths, table = state.tree, state.tree.walk, state.lengths, state.edges.table
    w = weight_of(state.recs, arm, lam)
    at = _find_path(state, table[arm, TAIL], table[arm, HEAD])
    if at < 0:
        # It joins two trees. No other cold edge does, so nothing challenges it.
        k = lengths[N_TREE]
        lengths[N_TREE] = k + 1
        set_status(state.edges, arm, -np.inf, np.int64(HOT))
        link(state, k, arm)
        set_bound(tree, k, -np.inf, np.int64(NOBODY))
        _note_change(state, arm)
        return
    while walk[at, PARENT] >= 0:
        k = np.int64(walk[at, BACK_A] >> 1)
        if raise_bound(tree, k, w, arm):
            list_if_beaten(state, np.int64(tree.edge[k, TREE_ARM]), lam)
        at = walk[at, PARENT]


# -- a round -----------------------------------------------------------------------------------------------------


@inline_kernel
def _answer_from_tree(state):
    """Bring the answer up to date with the arms that changed. Returns how many are new. O(D) at most."""
    table, lengths, answer = state.edges.table, state.lengths, state.answer
    n_added, n_gone = np.int64(0), np.int64(0)
    for i in range(lengths[N_CHANGED]):
        arm = state.tree.changed[i]
        if table[arm, TREE_INDEX] >= 0 and table[arm, IN_BASE] == 0:
            table[arm, IN_BASE] = 1
            answer.added[n_added] = arm
            n_added += 1
        elif table[arm, TREE_INDEX] < 0 and table[arm, IN_BASE] == 1:
            table[arm, IN_BASE] = 0
            answer.gone[n_gone] = arm
            n_gone += 1
    if n_added + n_gone > 0:
        lengths[N_BASE] = change_answer(answer, lengths[N_BASE], n_added, n_gone, table, state.scratch)
    return n_added


@kernel
def solve_challengers(handle, lam):
    """Make the tree and the answer right again. Returns how many arms are new. O(D + searches)."""
    state = open_forest(handle)
    tree, lengths, table = state.tree, state.lengths, state.edges.table
    lengths[N_CHANGED] = 0
    for i in range(lengths[N_RISEN]):
        arm = tree.risen[i]
        if table[arm, STATUS] == COLD:
            _raise_bounds(state, arm, lam)
    lengths[N_RISEN] = 0
    for i in range(lengths[N_BEATEN]):
        arm = tree.beaten[i]
        table[arm, PENDING] = 0
        if table[arm, TREE_INDEX] >= 0 and _is_beaten(state, arm, lam):
            _search_replacement(state, arm, lam)
    lengths[N_BEATEN] = 0
    return _answer_from_tree(state)
