"""Loose edges exchanged all at once (docs/theory.md, F): what stays is contracted, the few parts are joined again.

The tree edges that are beaten by their bounds are *loose*; all others stay, whatever the loose ones are exchanged for.
Without the loose ones the tree falls into *parts*, one more than there are loose edges in each tree, and the base is
what stays and the heaviest edges that join the parts again. The loose edges become cold, so that they compete like any
other.

The part at the root is not even walked: all others hang below loose edges and are listed, each with its vertices. Each
listed part looks for the two heaviest cold edges that leave it. Then groups of parts, one after the other, take the
heaviest edge that leaves them, which is in the base whatever the others do, until all hang from a root. What a
part found first serves all groups that it comes to be in, until both edges lie inside its group.

A new edge is bounded by the heaviest cold edge that leaves a part below it. For a part that hangs alone, which most do,
that is the very best challenger.
"""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.memory import prefetch_to_write as prefetch
from semibandit.engines.graphic.edges import (
    ABSENT,
    COLD,
    FIRST_WINNER,
    HEAD,
    HOT,
    N_BLOCKS,
    NOBODY,
    STATUS,
    TAIL,
    TREE_INDEX,
    beats,
    prefetch_edge,
    set_status,
    weight_of,
)
from semibandit.engines.graphic.leaving import best_of_group, look_around
from semibandit.engines.graphic.state import (
    ABOVE,
    ARRIVED,
    BEST,
    FAR_END,
    FIRST_HALF,
    FIRST_LINK,
    FIRST_VERTEX,
    FOUND_BEST,
    FOUND_SECOND,
    N_TREE,
    N_VERTICES,
    NEXT_HALF,
    NEXT_MEMBER,
    SEARCH_WORK,
    SEARCHES,
    SECOND,
    TREE_ARM,
    UP_PART,
    open_forest,
)
from semibandit.engines.graphic.tree import end_below, hang, link, move_edge, note_change, set_bound, unlink

# How many edges ahead memory is asked for.
AHEAD = 4

# The part of the vertices that are not listed, and the group of all that hangs from a root.
AT_ROOT = 0

# ARRIVED of a part that the new tree has not come to yet, and of one in which a root is.
NOT_YET, IS_ROOT = -2, -1

# What a listed vertex costs, in nanoseconds (measured; only ratios matter).
NS_LISTED = 8


# -- taking the tree apart ---------------------------------------------------------------------------------------


@inline_kernel
def _loosen(state, i, arm, lam):
    """Take tree arm `arm` out, so that what hung below it is part i, and let it compete if it is present."""
    tree, parts, table = state.tree, state.parts, state.edges.table
    k = np.int64(table[arm, TREE_INDEX])
    side = end_below(state, k)
    top = np.int64(table[arm, TAIL + side])
    unlink(state, k)
    tree.edge[k, TREE_ARM] = -1
    tree.up[top] = -1
    tree.bound_weight[arm] = np.inf
    parts.free[i - 1] = k
    parts.about[i, FIRST_VERTEX] = top
    parts.about[i, ABOVE] = table[arm, HEAD - side]
    note_change(state, arm)
    if table[arm, STATUS] != ABSENT:
        set_status(state.edges, arm, weight_of(state.recs, arm, lam), np.int64(COLD))


@inline_kernel
def _list_part(state, i, top, n):
    """List the vertices linked to `top`, a root, as part i from place n on; the place after them. O(vertices).

    Asks for the memory of their rows, which will be looked at.
    """
    vertex, up, half = state.vertex, state.tree.up, state.tree.half
    listed, label = state.parts.vertex, state.parts.label
    row, winner_weight, winner_arm = state.edges.row, state.edges.winner_weight, state.edges.winner_arm
    state.parts.about[i, FIRST_VERTEX] = n
    listed[n] = top
    at = n
    n += 1
    while at < n:
        v = listed[at]
        at += 1
        label[v] = i
        if row[v, N_BLOCKS] > 1:
            prefetch(winner_weight, np.int64(row[v, FIRST_WINNER]))
            prefetch(winner_arm, np.int64(row[v, FIRST_WINNER]))
        back = up[v]
        h = vertex[v, FIRST_HALF]
        while h >= 0:
            if h != back:
                listed[n] = half[h, FAR_END]
                n += 1
            h = half[h, NEXT_HALF]
    state.parts.about[i, N_VERTICES] = at - state.parts.about[i, FIRST_VERTEX]
    return n


@inline_kernel
def _root_above(state, i):
    """The root from which listed part i hung. O(depth)."""
    up, half, label, about = state.tree.up, state.tree.half, state.parts.label, state.parts.about
    v = about[i, ABOVE]
    while True:
        while up[v] >= 0:
            v = half[up[v], FAR_END]
        if label[v] == AT_ROOT:
            return v
        v = about[label[v], ABOVE]


@inline_kernel
def _list_parts(state, n_parts):
    """List the parts 1 .. n_parts below loose edges; returns how many vertices and parts are listed then, and a part.

    The largest part should be that of the root, for that one is not looked at. Where it is another one, the root moves
    there: that part is returned, and the one in which the root was is listed as the last.
    """
    parts = state.parts
    about = parts.about
    n, most, largest = 0, 0, 0
    for i in range(1, n_parts + 1):
        n = _list_part(state, i, np.int64(about[i, FIRST_VERTEX]), n)
        if about[i, N_VERTICES] > most:
            most = about[i, N_VERTICES]
            largest = i
    for i in range(n_parts + 2):
        parts.group[i] = i
        about[i, NEXT_MEMBER] = i
        about[i, ARRIVED] = NOT_YET
        about[i, FIRST_LINK] = -1
    if most <= state.vertex.shape[0] - n:
        return n, n_parts, np.int64(AT_ROOT)
    n_parts += 1
    n = _list_part(state, n_parts, np.int64(_root_above(state, largest)), n)
    parts.group[largest] = AT_ROOT
    return n, n_parts, np.int64(largest)


# -- putting the tree together -----------------------------------------------------------------------------------


@inline_kernel
def _take(state, j, arm, g):
    """`arm`, which leaves group g, is the j-th edge that enters the tree; g joins the group at its other end.

    Returns that group. O(members of g).
    """
    parts, table = state.parts, state.edges.table
    about, group = parts.about, parts.group
    k = np.int64(parts.free[j])
    set_status(state.edges, arm, -np.inf, np.int64(HOT))
    link(state, k, arm)
    note_change(state, arm)
    other = np.int64(AT_ROOT)
    for side in range(2):
        i = parts.label[table[arm, TAIL + side]]
        parts.next_link[2 * j + side] = about[i, FIRST_LINK]
        about[i, FIRST_LINK] = 2 * j + side
        if group[i] != g:
            other = np.int64(group[i])
    i = np.int64(g)
    while True:
        group[i] = other
        following = np.int64(about[i, NEXT_MEMBER])
        if following == g:
            break
        i = following
    if other != AT_ROOT:
        # Two circles of members become one.
        about[i, NEXT_MEMBER] = about[other, NEXT_MEMBER]
        about[other, NEXT_MEMBER] = g
    return other


@inline_kernel
def _join_groups(handle, state, n_parts):
    """Let groups take the heaviest edge that leaves them until all hang from a root or nothing leaves them.

    Returns how many edges entered. Small groups come first: one that has grown waits behind all others.
    """
    queue, group = state.parts.queue, state.parts.group
    n = 0
    for i in range(1, n_parts + 1):
        queue[n] = i
        n += 1
    at, taken = 0, np.int64(0)
    while at < n:
        g = np.int64(queue[at])
        at += 1
        if group[g] != g:
            continue
        arm = best_of_group(handle, state, g)
        if arm == NOBODY:
            continue
        other = _take(state, taken, arm, g)
        taken += 1
        if other != AT_ROOT:
            queue[n] = other
            n += 1
    return taken


@inline_kernel
def _hang_parts(state, n_parts, root_part):
    """Let every part hang from the one above it in the new tree; the parts are then in `queue`, those above first.

    Returns how many are there. First come the parts in which a root is already; what they do not lead to is a tree of
    its own. O(parts + ways inside them).
    """
    tree, parts, table = state.tree, state.parts, state.edges.table
    about, queue = parts.about, parts.queue
    n, at = 0, 0
    for start in range(-1, n_parts + 1):
        i = root_part if start < 0 else start
        if about[i, ARRIVED] != NOT_YET:
            continue
        about[i, ARRIVED] = IS_ROOT
        queue[n] = i
        n += 1
        while at < n:
            i = queue[at]
            at += 1
            link_at = about[i, FIRST_LINK]
            while link_at >= 0:
                k = np.int64(parts.free[link_at >> 1])
                below = 1 - (link_at & 1)
                v = np.int64(table[tree.edge[k, TREE_ARM], TAIL + below])
                j = parts.label[v]
                if about[j, ARRIVED] == NOT_YET:
                    about[j, ARRIVED] = k
                    about[j, UP_PART] = i
                    hang(tree, v, 2 * k + below)
                    queue[n] = j
                    n += 1
                link_at = parts.next_link[link_at]
    return n


@inline_kernel
def _bound_new_edges(state, n, lam):
    """Bound every new edge by the heaviest cold edge that leaves a part below it, or by itself. O(parts)."""
    tree, parts, table = state.tree, state.parts, state.edges.table
    about, queue, weight, arms = parts.about, parts.queue, parts.weight, parts.arm
    for at in range(n):
        # What leaves a part besides tree edges: the first edge it found if that stayed cold, else at most the second.
        i = queue[at]
        column = FOUND_BEST
        if arms[i, FOUND_BEST] != NOBODY and table[arms[i, FOUND_BEST], STATUS] != COLD:
            column = FOUND_SECOND
        weight[i, BEST], arms[i, BEST] = weight[i, column], arms[i, column]
    for at in range(n - 1, -1, -1):
        i = queue[at]
        k = np.int64(about[i, ARRIVED])
        if k < 0:
            continue
        w, arm = weight[i, BEST], np.int64(arms[i, BEST])
        up = about[i, UP_PART]
        if beats(w, arm, weight[up, BEST], arms[up, BEST]):
            weight[up, BEST], arms[up, BEST] = w, arm
        mine = np.int64(tree.edge[k, TREE_ARM])
        my_weight = weight_of(state.recs, mine, lam)
        if beats(w, arm, my_weight, mine):
            w, arm = my_weight, mine
        set_bound(tree, k, w, arm)


@inline_kernel
def _close_gaps(state, taken, n_loose):
    """Numbers of loose edges that no new edge has are given to the last ones. O(n_loose - taken)."""
    tree, lengths, free = state.tree, state.lengths, state.parts.free
    for j in range(taken, n_loose):
        while lengths[N_TREE] > 0 and tree.edge[lengths[N_TREE] - 1, TREE_ARM] < 0:
            lengths[N_TREE] -= 1
        if free[j] < lengths[N_TREE]:
            move_edge(state, lengths[N_TREE] - 1, np.int64(free[j]))
            lengths[N_TREE] -= 1
    while lengths[N_TREE] > 0 and tree.edge[lengths[N_TREE] - 1, TREE_ARM] < 0:
        lengths[N_TREE] -= 1


@kernel
def exchange_loose(handle, n_loose, lam):
    """Exchange the tree arms ``tree.beaten[:n_loose]`` for whatever is best. O(vertices below them + rows there)."""
    state = open_forest(handle)
    parts, weight, arms = state.parts, state.parts.weight, state.parts.arm
    for j in range(n_loose):
        if j + AHEAD < n_loose:
            prefetch_edge(state.edges, state.tree.beaten[j + AHEAD], np.bool_(False))
        _loosen(state, j + 1, state.tree.beaten[j], lam)
    n_listed, n_parts, root_part = _list_parts(state, n_loose)
    for i in range(n_parts + 1):
        weight[i, BEST] = weight[i, SECOND] = -np.inf
        arms[i, BEST] = arms[i, SECOND] = NOBODY
        if parts.group[i] != AT_ROOT:
            look_around(handle, i)
            if arms[i, BEST] != NOBODY:
                # Most parts take it in the end.
                prefetch_edge(state.edges, np.int64(arms[i, BEST]), np.bool_(True))
        weight[i, FOUND_BEST], arms[i, FOUND_BEST] = weight[i, BEST], arms[i, BEST]
        weight[i, FOUND_SECOND], arms[i, FOUND_SECOND] = weight[i, SECOND], arms[i, SECOND]
    taken = _join_groups(handle, state, n_parts)
    n = _hang_parts(state, n_parts, root_part)
    _bound_new_edges(state, n, lam)
    _close_gaps(state, taken, n_loose)
    for at in range(n_listed):
        parts.label[parts.vertex[at]] = AT_ROOT
    state.counters[SEARCHES] += n_loose
    state.counters[SEARCH_WORK] += NS_LISTED * n_listed
