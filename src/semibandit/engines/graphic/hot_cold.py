"""Kruskal over the few edges that matter (docs/theory.md, A and B), for states in which much of the base changes.

HOT edges are kept in order of weight; the others are COLD, in the rows of their vertices. A says that
B(E) = B(hot + B(cold)); here the certificate that no cold edge matters is kept vertex by vertex instead of as a base of
the cold ones. In each component one vertex is the anchor. Let p(v) be the key of the lightest edge on the way from v to
its anchor in the forest of the hot edges: Kruskal knows it when v comes to the anchor's tree. A cold edge uv that comes
after both p(u) and p(v) closes a circuit of heavier edges, so it is not in the base; and heaviest(u), heaviest(v) are
the first of the cold edges at its ends. So if heaviest(v) does not beat p(v) at any vertex, the base of the hot edges
is the base. Where it does, the vertex fails: its heaviest cold edges are warmed up and Kruskal is run again. p only
rises, so a few passes end it.

A hot edge that was played and fell below the heaviest cold edges at both its ends becomes cold again: an edge costs
something when it is warmed and when it is played, and nothing while it waits. O(V + hot edges + edges warmed and cooled
* log degree) a round. There are about 2 V hot edges (measured), whatever K is; where vertices lie in clusters, far from
each other, there are many more: all edges inside a cluster that come before the one that joins it to the anchor. Hardly
any of them ever comes into the base. So hot edges that have waited long become *dormant*: they lie in an order of their
own, in which nothing moves, and Kruskal merges the two orders as it goes.
"""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.memory import prefetch_to_write
from semibandit.engines.graphic.answer import change_answer
from semibandit.engines.graphic.edges import (
    COLD,
    HOT,
    IN_BASE,
    NOBODY,
    STATUS,
    beats,
    prefetch_edge,
    set_status,
    weight_of,
)
from semibandit.engines.graphic.hot_list import merge_entering, move_hot, wake_up
from semibandit.engines.graphic.state import (
    COMPONENT,
    HOT_ARM,
    HOT_HEAD,
    HOT_IN_BASE,
    HOT_LIMIT,
    HOT_TAIL,
    JOINED_AT,
    LABEL,
    N_BASE,
    N_DORMANT,
    N_HOT,
    N_PICKED,
    NEXT_IN_TREE,
    PASSES,
    TREE_SIZE,
    UNSORTED,
    WARMED,
    hot_place,
    n_all_hot,
    open_forest,
)

# How many edges a failing vertex warms up in the first pass; doubled in each further pass of the round.
FIRST_WARMED, MOST_WARMED = 2, 64

# How many edges ahead memory is asked for.
AHEAD = 8

# JOINED_AT of an anchor, and of a vertex in a tree without one.
IS_ANCHOR, NO_ANCHOR = -1, -2


# -- touched edges -----------------------------------------------------------------------------------------------


@inline_kernel
def _take_out_touched(state, lam):
    """Take the touched edges out of the order: they become cold, or are to enter anew. Returns how many enter.

    An edge lighter than the heaviest cold edges at both its ends becomes cold: where it stays hot, so would they.
    """
    edges, hot, flags, lengths = state.edges, state.hot, state.flags, state.lengths
    table, heaviest, heaviest_arm = edges.table, edges.heaviest, edges.heaviest_arm
    cooling_weight, cooling_arm = state.scratch.weight, state.scratch.arm
    wake_up(state)
    all_touched = flags[UNSORTED]
    flags[UNSORTED] = False
    n, n_entering, n_cooling = 0, 0, 0
    for i in range(lengths[N_HOT]):
        arm = np.int64(hot.edge[i, HOT_ARM])
        if not all_touched and state.edges.pending[arm] == 0:
            move_hot(hot, n, i)
            n += 1
            continue
        state.edges.pending[arm] = 0
        if table[arm, STATUS] != HOT:
            continue
        w = weight_of(state.recs, arm, lam)
        u, v = hot.edge[i, HOT_TAIL], hot.edge[i, HOT_HEAD]
        if beats(heaviest[u], heaviest_arm[u], w, arm) and beats(heaviest[v], heaviest_arm[v], w, arm):
            cooling_weight[n_cooling] = w
            cooling_arm[n_cooling] = arm
            n_cooling += 1
        else:
            hot.entering_weight[n_entering] = w
            hot.entering_arm[n_entering] = arm
            n_entering += 1
    lengths[N_HOT] = n
    for i in range(n_cooling):
        if i + AHEAD < n_cooling:
            prefetch_edge(edges, cooling_arm[i + AHEAD], np.bool_(False))
        set_status(edges, cooling_arm[i], cooling_weight[i], np.int64(COLD))
    return n_entering


# -- Kruskal and its certificate ---------------------------------------------------------------------------------


@kernel
def _kruskal(handle, again):
    """Kruskal over the hot edges with labels, the smaller tree taking the label of the larger. O(hot edges + V log V).

    A vertex that keeps its label to the end was in the larger tree at every merge, so JOINED_AT of any other vertex,
    the place of its last change of label, is where it came to that vertex's tree: the survivor is the anchor.

    When it is run again in a round, an edge that was left out before is left out (docs/theory.md, A): only the base
    and what was warmed up since, which is marked like the base, are looked at.
    Changes `vertex`, the HOT_IN_BASE column and `picked`; returns the size of the base.
    """
    state = open_forest(handle)
    vertex, lengths = state.vertex, state.lengths
    weight, hot_edge, picked = state.hot.weight, state.hot.edge, state.hot.picked
    rank = state.answer.arms.shape[0]
    for v in range(vertex.shape[0]):
        vertex[v, LABEL] = v
        vertex[v, NEXT_IN_TREE] = v
        vertex[v, TREE_SIZE] = 1
        vertex[v, JOINED_AT] = IS_ANCHOR
    n_hot = lengths[N_HOT]
    first = weight.shape[0] >> 1
    n_dormant = lengths[N_PICKED] if again else lengths[N_DORMANT]
    n, n_picked = 0, 0
    at, d = 0, 0
    # The dormant edge that is next, and its weight.
    sleeper, sleeper_weight = np.int64(-1), -np.inf
    if n_dormant > 0:
        sleeper = np.int64(picked[0]) if again else first
        sleeper_weight = weight[sleeper]
    while n < rank:
        i = at
        if at < n_hot and (
            sleeper < 0
            or weight[at] > sleeper_weight
            or (weight[at] == sleeper_weight and hot_edge[at, HOT_ARM] < hot_edge[sleeper, HOT_ARM])
        ):
            at += 1
            if again and hot_edge[i, HOT_IN_BASE] == 0:
                continue
        elif sleeper >= 0:
            i = sleeper
            d += 1
            sleeper = np.int64(-1)
            if d < n_dormant:
                sleeper = np.int64(picked[d]) if again else first + d
                sleeper_weight = weight[sleeper]
        else:
            break
        a = vertex[hot_edge[i, HOT_TAIL], LABEL]
        b = vertex[hot_edge[i, HOT_HEAD], LABEL]
        if a == b:
            hot_edge[i, HOT_IN_BASE] = 0
            continue
        hot_edge[i, HOT_IN_BASE] = 1
        n += 1
        if i >= first:
            picked[n_picked] = i
            n_picked += 1
        if vertex[a, TREE_SIZE] < vertex[b, TREE_SIZE]:
            a, b = b, a
        v = b
        while True:
            vertex[v, LABEL] = a
            vertex[v, JOINED_AT] = i
            v = vertex[v, NEXT_IN_TREE]
            if v == b:
                break
        vertex[a, TREE_SIZE] += vertex[b, TREE_SIZE]
        v = vertex[a, NEXT_IN_TREE]
        vertex[a, NEXT_IN_TREE] = vertex[b, NEXT_IN_TREE]
        vertex[b, NEXT_IN_TREE] = v
    for i in range(at, n_hot):
        hot_edge[i, HOT_IN_BASE] = 0
    for j in range(d, n_dormant):
        hot_edge[picked[j] if again else first + j, HOT_IN_BASE] = 0
    lengths[N_PICKED] = n_picked
    return n


@inline_kernel
def _mark_trees_without_anchor(vertex, largest):
    """Where the hot edges do not span, only the largest tree of each component has an anchor. O(V).

    Sets JOINED_AT of the vertices of other trees. Changes `largest`: the label of that tree by component.
    """
    n_vertices = vertex.shape[0]
    largest[:n_vertices] = -1
    for v in range(n_vertices):
        if vertex[v, LABEL] == v:
            best = largest[vertex[v, COMPONENT]]
            if best < 0 or vertex[v, TREE_SIZE] > vertex[best, TREE_SIZE]:
                largest[vertex[v, COMPONENT]] = v
    for v in range(n_vertices):
        if largest[vertex[v, COMPONENT]] != vertex[v, LABEL]:
            vertex[v, JOINED_AT] = NO_ANCHOR


@kernel
def _find_failing(handle, spanning):
    """List the vertices whose heaviest cold edge beats p, in ``hot.failing``; returns how many. O(V).

    The vertices of trees without an anchor have p = nothing.
    """
    state = open_forest(handle)
    vertex, hot = state.vertex, state.hot
    heaviest, heaviest_arm = state.edges.heaviest, state.edges.heaviest_arm
    if not spanning:
        _mark_trees_without_anchor(vertex, state.scratch.arm)
    n = 0
    for v in range(vertex.shape[0]):
        joined = vertex[v, JOINED_AT]
        if joined >= 0:
            w = hot.weight[joined]
            if heaviest[v] < w or not beats(heaviest[v], heaviest_arm[v], w, hot.edge[joined, HOT_ARM]):
                continue
        elif joined == IS_ANCHOR or heaviest[v] == -np.inf:
            continue
        hot.failing[n] = v
        n += 1
    return n


@inline_kernel
def _warm_up(state, n_failing, limit):
    """Make the cold edges that beat p at a failing vertex hot, at most `limit` a vertex. Returns how many enter.

    The failing vertices are served in turns, one edge each, so that the memory of the next ones can be asked for
    ahead of time: their rows lie far apart. Changes the list of failing vertices.
    """
    edges, hot, vertex, failing = state.edges, state.hot, state.vertex, state.hot.failing
    heaviest, heaviest_arm = edges.heaviest, edges.heaviest_arm
    n_entering = 0
    n = n_failing
    for _ in range(limit):
        still = 0
        for i in range(-2 * AHEAD, n):
            if i + 2 * AHEAD < n and heaviest_arm[failing[i + 2 * AHEAD]] != NOBODY:
                prefetch_to_write(edges.table, np.int64(heaviest_arm[failing[i + 2 * AHEAD]]))
            if 0 <= i + AHEAD < n and heaviest_arm[failing[i + AHEAD]] != NOBODY:
                prefetch_edge(edges, np.int64(heaviest_arm[failing[i + AHEAD]]), np.bool_(True))
            if i < 0:
                continue
            v = failing[i]
            p, p_arm = -np.inf, np.int64(NOBODY)
            joined = vertex[v, JOINED_AT]
            if joined >= 0:
                p, p_arm = hot.weight[joined], np.int64(hot.edge[joined, HOT_ARM])
            arm = np.int64(heaviest_arm[v])
            if beats(heaviest[v], arm, p, p_arm):
                hot.entering_weight[n_entering] = heaviest[v]
                hot.entering_arm[n_entering] = arm
                n_entering += 1
                set_status(edges, arm, -np.inf, np.int64(HOT))
                failing[still] = v
                still += 1
        n = still
    return n_entering


# -- a round -----------------------------------------------------------------------------------------------------


@kernel
def solve_hot_cold(handle, lam):
    """Make the hot edges and which of them are in the base right again. O(V + what changes), see above."""
    state = open_forest(handle)
    vertex, counters = state.vertex, state.counters
    rank = state.answer.arms.shape[0]
    n_entering = _take_out_touched(state, lam)
    limit = np.int64(FIRST_WARMED)
    again = False
    while True:
        if n_entering > 0:
            merge_entering(state, n_entering)
        n = _kruskal(handle, again)
        again = True
        n_failing = _find_failing(handle, n == rank)
        counters[PASSES] += 1
        if n_failing == 0:
            break
        n_entering = _warm_up(state, n_failing, limit)
        counters[WARMED] += n_entering
        limit = min(2 * limit, np.int64(MOST_WARMED))
    if n < rank:
        # No cold edge is left at the trees without an anchor: they are components of what is present.
        for v in range(vertex.shape[0]):
            vertex[v, COMPONENT] = vertex[v, LABEL]


@inline_kernel
def _comes_after_anchor(state, v, i):
    """Whether the hot edge at place i comes after the edge by which v came to its anchor. O(1)."""
    hot, joined = state.hot, state.vertex[v, JOINED_AT]
    if joined < 0:
        return joined == IS_ANCHOR
    w, arm = hot.weight[joined], hot.edge[joined, HOT_ARM]
    return beats(w, arm, hot.weight[i], hot.edge[i, HOT_ARM])


@kernel
def cool_down(handle):
    """Make cold again the hot edges that come after p at both their ends. O(hot edges).

    Only right after a solve: JOINED_AT must be of this order, and is not afterwards.
    """
    state = open_forest(handle)
    edges, hot, vertex, lengths = state.edges, state.hot, state.vertex, state.lengths
    first = hot.weight.shape[0] >> 1
    n_hot, n_all = lengths[N_HOT], n_all_hot(state)
    # First which, for JOINED_AT goes by places; both ends of an edge that is not hot any more are the same.
    for j in range(n_all):
        i = hot_place(state, j)
        u, v = hot.edge[i, HOT_TAIL], hot.edge[i, HOT_HEAD]
        if u != v and _comes_after_anchor(state, u, i) and _comes_after_anchor(state, v, i):
            set_status(edges, np.int64(hot.edge[i, HOT_ARM]), hot.weight[i], np.int64(COLD))
            hot.edge[i, HOT_HEAD] = u
    n, n_picked, o = 0, 0, first
    for j in range(n_all):
        i = hot_place(state, j)
        if hot.edge[i, HOT_TAIL] == hot.edge[i, HOT_HEAD]:
            continue
        if j < n_hot:
            move_hot(hot, n, i)
            n += 1
            continue
        move_hot(hot, o, i)
        if hot.edge[o, HOT_IN_BASE] == 1:
            hot.picked[n_picked] = o
            n_picked += 1
        o += 1
    lengths[N_HOT], lengths[N_DORMANT], lengths[N_PICKED] = n, o - first, n_picked
    lengths[HOT_LIMIT] = 2 * (n + o - first) + vertex.shape[0] + 64


@kernel
def answer_from_hot(handle):
    """Bring the answer up to date with the HOT_IN_BASE column. Returns how many arms are new. O(hot edges + D)."""
    state = open_forest(handle)
    hot_edge, table, lengths, answer = state.hot.edge, state.edges.table, state.lengths, state.answer
    n_added, n_gone = np.int64(0), np.int64(0)
    # 2 marks what is in the base now, so that what is left at 1 has gone.
    n_hot = lengths[N_HOT]
    for j in range(n_hot + lengths[N_PICKED]):
        i = j if j < n_hot else np.int64(state.hot.picked[j - n_hot])
        if hot_edge[i, HOT_IN_BASE] == 1:
            arm = np.int64(hot_edge[i, HOT_ARM])
            if table[arm, IN_BASE] == 0:
                answer.added[n_added] = arm
                n_added += 1
            table[arm, IN_BASE] = 2
    for i in range(lengths[N_BASE]):
        arm = answer.arms[i]
        if table[arm, IN_BASE] == 2:
            table[arm, IN_BASE] = 1
        else:
            table[arm, IN_BASE] = 0
            answer.gone[n_gone] = arm
            n_gone += 1
    for i in range(n_added):
        table[answer.added[i], IN_BASE] = 1
    lengths[N_BASE] = change_answer(answer, lengths[N_BASE], n_added, n_gone, state.scratch)
    return n_added
