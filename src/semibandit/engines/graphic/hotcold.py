"""Kruskal over the few edges that matter (DESIGN ideas A and B), for states in which much of the base changes.

The pool holds HOT edges in order of weight; the others are COLD, in the rows of their vertices. Idea A says that
B(E) = B(hot + B(cold)); here the certificate that no cold edge matters is kept vertex by vertex instead of as a base of
the cold ones. In each component one vertex is the anchor. Let p(v) be the key of the lightest edge on the way from v to
its anchor in the pool's own forest: Kruskal knows it when v comes to the anchor's tree. A cold edge uv lighter than
both p(u) and p(v) closes a circuit of heavier edges, so it is not in the base; and level(u), level(v) are the heaviest
cold edges at its ends. So if level(v) does not beat p(v) at any vertex, the pool's base is the base. Where it does, the
heaviest cold edges of that vertex are warmed up and Kruskal is run again: p only rises, so a few passes end it.

A hot edge that was played and fell below the levels at both its ends becomes cold again: an edge costs something when
it is warmed and when it is played, and nothing while it waits. O(V + pool + edges warmed and cooled * log degree) a
round. The pool holds about 2 V edges (measured), whatever K is.
"""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.lanes import prefetch_to_write as prefetch
from semibandit.compiled.sorting import sort_keys
from semibandit.engines.graphic.rows import (
    BASE,
    COLD,
    FLAG,
    HEAD,
    HOT,
    NOBODY,
    PLACE,
    TAIL,
    ask_for,
    beats,
    put,
    weight_of,
)
from semibandit.engines.graphic.state import (
    ALL_TOUCHED,
    COMPONENT,
    JOIN,
    LABEL,
    N_POOL,
    N_SORTED,
    NEXT,
    PASSES,
    POOL_ARM,
    POOL_HEAD,
    POOL_IN,
    POOL_LIMIT,
    POOL_TAIL,
    SIZE,
    WARMED,
    merge_base,
    open_forest,
)

# How many edges a failing vertex warms up in the first pass; doubled in each further pass of the round.
WARM, MOST_WARMED = 2, 64

# How many edges ahead memory is asked for.
AHEAD = 8


@inline_kernel
def pull_touched(state, lam):
    """Take the touched edges out of the pool: back to the rows, or to `fresh`. Returns how many are fresh.

    An edge lighter than the levels at both its ends goes to the rows: where it stays hot, so would they.
    """
    meta, rows, pool, pool_weight = state.meta, state.rows, state.pool, state.pool_weight
    edge, level, level_arm = rows.edge, rows.level, rows.level_arm
    cool_weight, cool_arm = state.spare_weight, state.spare_arm
    all_touched = meta[ALL_TOUCHED] == 1
    meta[ALL_TOUCHED] = 0
    n, n_fresh, n_cool = 0, 0, 0
    for i in range(meta[N_POOL]):
        arm = np.int64(pool[i, POOL_ARM])
        if not all_touched and edge[arm, FLAG] == 0:
            pool_weight[n] = pool_weight[i]
            pool[n, POOL_ARM] = arm
            pool[n, POOL_TAIL] = pool[i, POOL_TAIL]
            pool[n, POOL_HEAD] = pool[i, POOL_HEAD]
            n += 1
            continue
        edge[arm, FLAG] = 0
        if edge[arm, PLACE] != HOT:
            continue
        w = weight_of(state.recs, arm, lam)
        u, v = pool[i, POOL_TAIL], pool[i, POOL_HEAD]
        if beats(level[u], level_arm[u], w, arm) and beats(level[v], level_arm[v], w, arm):
            cool_weight[n_cool] = w
            cool_arm[n_cool] = arm
            n_cool += 1
        else:
            state.fresh_weight[n_fresh] = w
            state.fresh_arm[n_fresh] = arm
            n_fresh += 1
    meta[N_POOL] = n
    for i in range(n_cool):
        if i + AHEAD < n_cool:
            ask_for(rows, cool_arm[i + AHEAD], np.bool_(False))
        put(rows, cool_arm[i], cool_weight[i], np.int64(COLD))
    return n_fresh


@inline_kernel
def merge_fresh(state, n_fresh):
    """Sort the fresh edges and merge them into the pool, from the light end. O(pool + n)."""
    meta, pool, pool_weight, edge = state.meta, state.pool, state.pool_weight, state.rows.edge
    fresh_weight, fresh_arm = state.fresh_weight, state.fresh_arm
    sort_keys(fresh_weight, fresh_arm, n_fresh, state.spare_weight, state.spare_arm, state.count)
    i, j = meta[N_POOL] - 1, n_fresh - 1
    o = i + n_fresh
    meta[N_POOL] = o + 1
    while j >= 0:
        w = fresh_weight[j]
        arm = fresh_arm[j]
        if i >= 0 and beats(w, arm, pool_weight[i], np.int64(pool[i, POOL_ARM])):
            pool_weight[o] = pool_weight[i]
            pool[o, POOL_ARM] = pool[i, POOL_ARM]
            pool[o, POOL_TAIL] = pool[i, POOL_TAIL]
            pool[o, POOL_HEAD] = pool[i, POOL_HEAD]
            i -= 1
        else:
            pool_weight[o] = w
            pool[o, POOL_ARM] = arm
            pool[o, POOL_TAIL] = edge[arm, TAIL]
            pool[o, POOL_HEAD] = edge[arm, HEAD]
            j -= 1
        o -= 1


@kernel
def kruskal_pass(vertex, pool, n_pool, rank):
    """Kruskal over the pool with labels, the smaller tree taking the label of the larger. O(pool + V log V).

    A vertex that keeps its label to the end was in the larger tree at every merge, so JOIN of any other vertex, the
    place of its last change of label, is where it came to that vertex's tree: the survivor is the anchor.
    Changes `vertex` and the POOL_IN column; returns the size of the base.
    """
    for v in range(vertex.shape[0]):
        vertex[v, LABEL] = v
        vertex[v, NEXT] = v
        vertex[v, SIZE] = 1
        vertex[v, JOIN] = -1
    n = 0
    for i in range(n_pool):
        if n == rank:
            for j in range(i, n_pool):
                pool[j, POOL_IN] = 0
            break
        a = vertex[pool[i, POOL_TAIL], LABEL]
        b = vertex[pool[i, POOL_HEAD], LABEL]
        if a == b:
            pool[i, POOL_IN] = 0
            continue
        pool[i, POOL_IN] = 1
        n += 1
        if vertex[a, SIZE] < vertex[b, SIZE]:
            a, b = b, a
        v = b
        while True:
            vertex[v, LABEL] = a
            vertex[v, JOIN] = i
            v = vertex[v, NEXT]
            if v == b:
                break
        vertex[a, SIZE] += vertex[b, SIZE]
        v = vertex[a, NEXT]
        vertex[a, NEXT] = vertex[b, NEXT]
        vertex[b, NEXT] = v
    return n


@kernel
def find_failing(vertex, pool_weight, pool, level, level_arm, failing, champion, spanning):
    """List the vertices whose level beats p; returns how many. O(V).

    Where the pool does not span, only the largest tree of each component has an anchor: the vertices of
    the others have p = nothing. Marks those by JOIN = -2. Changes `vertex`, `failing` and `champion`.
    """
    n_vertices = vertex.shape[0]
    if not spanning:
        champion[:n_vertices] = -1
        for v in range(n_vertices):
            if vertex[v, LABEL] == v:
                best = champion[vertex[v, COMPONENT]]
                if best < 0 or vertex[v, SIZE] > vertex[best, SIZE]:
                    champion[vertex[v, COMPONENT]] = v
        for v in range(n_vertices):
            if champion[vertex[v, COMPONENT]] != vertex[v, LABEL]:
                vertex[v, JOIN] = -2
    n = 0
    for v in range(n_vertices):
        join = vertex[v, JOIN]
        if join >= 0:
            w = pool_weight[join]
            if level[v] < w or not beats(level[v], level_arm[v], w, pool[join, POOL_ARM]):
                continue
        elif join == -1 or level[v] == -np.inf:
            continue
        failing[n] = v
        n += 1
    return n


@inline_kernel
def warm_up(state, n_failing, limit):
    """Move to `fresh` the cold edges that beat p at a failing vertex, at most `limit` a vertex. Returns how many.

    The failing vertices are served in turns, one edge each, so that the memory of the next ones can be asked for
    ahead of time: their rows lie far apart. Changes the list of failing vertices.
    """
    rows, failing, vertex, pool_weight, pool = (
        state.rows,
        state.list_a,
        state.vertex,
        state.pool_weight,
        state.pool,
    )
    level, level_arm = rows.level, rows.level_arm
    n_fresh = 0
    n = n_failing
    for _ in range(limit):
        still = 0
        for i in range(-2 * AHEAD, n):
            if i + 2 * AHEAD < n and level_arm[failing[i + 2 * AHEAD]] != NOBODY:
                prefetch(rows.edge, np.int64(level_arm[failing[i + 2 * AHEAD]]))
            if 0 <= i + AHEAD < n and level_arm[failing[i + AHEAD]] != NOBODY:
                ask_for(rows, np.int64(level_arm[failing[i + AHEAD]]), np.bool_(True))
            if i < 0:
                continue
            v = failing[i]
            p, p_arm = -np.inf, np.int64(NOBODY)
            join = vertex[v, JOIN]
            if join >= 0:
                p, p_arm = pool_weight[join], np.int64(pool[join, POOL_ARM])
            arm = np.int64(level_arm[v])
            if beats(level[v], arm, p, p_arm):
                state.fresh_weight[n_fresh] = level[v]
                state.fresh_arm[n_fresh] = arm
                n_fresh += 1
                put(rows, arm, -np.inf, np.int64(HOT))
                failing[still] = v
                still += 1
        n = still
    return n_fresh


@kernel
def hot_cold_solve(handle, lam, rank):
    """Bring pool, rows and the POOL_IN column up to date. Returns the size of the base."""
    state = open_forest(handle)
    meta, vertex = state.meta, state.vertex
    n_fresh = pull_touched(state, lam)
    limit = np.int64(WARM)
    while True:
        if n_fresh > 0:
            merge_fresh(state, n_fresh)
        n = kruskal_pass(vertex, state.pool, meta[N_POOL], rank)
        n_failing = find_failing(
            vertex,
            state.pool_weight,
            state.pool,
            state.rows.level,
            state.rows.level_arm,
            state.list_a,
            state.spare_arm,
            n == rank,
        )
        meta[PASSES] += 1
        if n_failing == 0:
            break
        n_fresh = warm_up(state, n_failing, limit)
        meta[WARMED] += n_fresh
        limit = min(2 * limit, np.int64(MOST_WARMED))
    if n < rank:
        # No cold edge is left at the trees without an anchor: they are components of what is present.
        for v in range(vertex.shape[0]):
            vertex[v, COMPONENT] = vertex[v, LABEL]
    return n


@kernel
def cool_down(handle):
    """Give back to the rows the pool's edges that are lighter than p at both their ends. O(pool).

    Only right after a solve: JOIN must be of this pool, and is not afterwards.
    """
    state = open_forest(handle)
    meta, rows, pool, pool_weight, vertex = (
        state.meta,
        state.rows,
        state.pool,
        state.pool_weight,
        state.vertex,
    )
    n = 0
    for i in range(meta[N_POOL]):
        u, v = pool[i, POOL_TAIL], pool[i, POOL_HEAD]
        if -2 < vertex[u, JOIN] < i and -2 < vertex[v, JOIN] < i:
            put(rows, np.int64(pool[i, POOL_ARM]), pool_weight[i], np.int64(COLD))
            continue
        pool_weight[n] = pool_weight[i]
        for c in range(4):
            pool[n, c] = pool[i, c]
        n += 1
    meta[N_POOL] = n
    meta[POOL_LIMIT] = 2 * n + vertex.shape[0] + 64


@kernel
def answer_from_pool(handle):
    """Bring the sorted answer up to date with the POOL_IN column. Returns how many arms are new. O(pool + D)."""
    state = open_forest(handle)
    meta, pool, edge, changed = state.meta, state.pool, state.rows.edge, state.changed
    n_added, n_gone = np.int64(0), np.int64(0)
    for i in range(meta[N_POOL]):
        if pool[i, POOL_IN] == 1:
            arm = np.int64(pool[i, POOL_ARM])
            if edge[arm, BASE] == 0:
                changed[n_added] = arm
                n_added += 1
            edge[arm, BASE] = 2
    for i in range(meta[N_SORTED]):
        arm = state.sorted_base[i]
        if edge[arm, BASE] == 2:
            edge[arm, BASE] = 1
        else:
            edge[arm, BASE] = 0
            state.fresh_arm[n_gone] = arm
            n_gone += 1
    for i in range(n_added):
        edge[changed[i], BASE] = 1
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
