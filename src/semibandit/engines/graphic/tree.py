"""The base as a linked tree that hangs from roots, with a bound for each of its edges: what the challengers keep.

Every vertex has a list of the half-edges at it, and knows the one that leads up (``tree.up``), to its root. So edges
are put in and taken out in O(1), the part below an edge is walked without seeing the rest, and the way between two
vertices is found by climbing.
"""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import inline_kernel
from semibandit.engines.graphic.edges import (
    ABSENT,
    HEAD,
    HOT,
    NOBODY,
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
    N_BEATEN,
    N_CHANGED,
    N_TREE,
    NEXT_HALF,
    PREVIOUS_HALF,
    TREE_ARM,
)

# -- edges put in and taken out ----------------------------------------------------------------------------------


@inline_kernel
def link(state, k, arm):
    """Tree edge k is `arm` from now on: enter it in the lists of its ends. Who hangs from whom is not said. O(1)."""
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
def unlink(state, k):
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
def end_below(state, k):
    """The lower end of tree edge k: 0 for its tail, 1 for its head. O(1)."""
    tail = state.edges.table[state.tree.edge[k, TREE_ARM], TAIL]
    return np.int64(0) if state.tree.up[tail] == 2 * k else np.int64(1)


@inline_kernel
def hang(tree, v, h):
    """Let v, and with it all that is linked to it but by h, hang from half-edge h at v. O(depth of v before)."""
    up, half = tree.up, tree.half
    while True:
        before = up[v]
        up[v] = h
        if before < 0:
            return
        h = before ^ 1
        v = half[before, FAR_END]


@inline_kernel
def move_edge(state, k, to):
    """Tree edge k gets the number `to`, which nobody has. O(1)."""
    tree, table = state.tree, state.edges.table
    arm, side = np.int64(tree.edge[k, TREE_ARM]), end_below(state, k)
    unlink(state, k)
    link(state, to, arm)
    tree.edge[to, BOUND_ARM] = tree.edge[k, BOUND_ARM]
    tree.up[table[arm, TAIL + side]] = 2 * to + side


# -- bounds ------------------------------------------------------------------------------------------------------


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
def is_beaten(state, arm, lam):
    """Whether tree arm `arm` is absent or comes after its bound. O(1)."""
    tree, table = state.tree, state.edges.table
    w = weight_of(state.recs, arm, lam)
    bound_arm = np.int64(tree.edge[table[arm, TREE_INDEX], BOUND_ARM])
    return table[arm, STATUS] == ABSENT or beats(tree.bound_weight[arm], bound_arm, w, arm)


@inline_kernel
def list_if_beaten(state, arm, lam):
    """Let the next round look for better edges than tree arm `arm`, if its bound beats it. O(1)."""
    lengths = state.lengths
    if state.edges.pending[arm] == 0 and is_beaten(state, arm, lam):
        state.edges.pending[arm] = 1
        state.tree.beaten[lengths[N_BEATEN]] = arm
        lengths[N_BEATEN] += 1
        state.flags[DIRTY] = True


@inline_kernel
def note_change(state, arm):
    """`arm` entered or left the tree in this round. O(1)."""
    state.tree.changed[state.lengths[N_CHANGED]] = arm
    state.lengths[N_CHANGED] += 1


# -- cold edges that became heavier ------------------------------------------------------------------------------


@inline_kernel
def _mark_way_up(state, v, mark):
    """Set MARK of v and of all vertices above it. O(depth)."""
    up, half, vertex = state.tree.up, state.tree.half, state.vertex
    while True:
        vertex[v, MARK] = mark
        if up[v] < 0:
            return
        v = half[up[v], FAR_END]


@inline_kernel
def _raise_up_to(state, v, top, w, arm, lam):
    """Raise the bounds of the edges from v up to vertex `top`. O(edges)."""
    tree = state.tree
    while v != top:
        h = tree.up[v]
        k = np.int64(h >> 1)
        if raise_bound(tree, k, w, arm):
            list_if_beaten(state, np.int64(tree.edge[k, TREE_ARM]), lam)
        v = tree.half[h, FAR_END]


@inline_kernel
def raise_bounds(state, arm, lam):
    """Cold edge `arm` may have become heavier: raise the bounds on its circuit, or link it if it closes none.

    O(depth of its ends).
    """
    tree, vertex, lengths, table = state.tree, state.vertex, state.lengths, state.edges.table
    w = weight_of(state.recs, arm, lam)
    tail, head = table[arm, TAIL], table[arm, HEAD]
    _mark_way_up(state, tail, 1)
    top = head
    while vertex[top, MARK] == 0 and tree.up[top] >= 0:
        top = tree.half[tree.up[top], FAR_END]
    joins = vertex[top, MARK] == 0
    _mark_way_up(state, tail, 0)
    if joins:
        # It joins two trees. No other cold edge does, so nothing challenges it.
        k = lengths[N_TREE]
        lengths[N_TREE] = k + 1
        set_status(state.edges, arm, -np.inf, np.int64(HOT))
        link(state, k, arm)
        hang(tree, head, 2 * k + 1)
        set_bound(tree, k, -np.inf, np.int64(NOBODY))
        note_change(state, arm)
        return
    _raise_up_to(state, tail, top, w, arm, lam)
    _raise_up_to(state, head, top, w, arm, lam)
