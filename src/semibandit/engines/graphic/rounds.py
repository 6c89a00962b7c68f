"""Rounds of the graphic engines: bring the answer up to date by the solver in use, then see which should go on.

Between rounds the solver in use is told what changed (`forest_touch`, `forest_remove`, `forest_restore`). A round with
hot and cold edges or by Prim is a busy round, one with challengers a quiet round (`semibandit.engines.switch`). Prim is
the busy solver where the state has a matrix; hot and cold edges are then the way from Prim to the challengers and back.
"""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.engines.graphic.challengers import solve_challengers
from semibandit.engines.graphic.changeover import enter_challengers, leave_challengers, leave_prim
from semibandit.engines.graphic.edges import (
    ABSENT,
    COLD,
    HEAD,
    HOT,
    IN_BASE,
    SLOT,
    STATUS,
    TAIL,
    TREE_INDEX,
    reweigh_cold,
    set_status,
    weight_of,
)
from semibandit.engines.graphic.hot_cold import answer_from_hot, cool_down, solve_hot_cold
from semibandit.engines.graphic.hot_list import FEW_AWAKE, MOST_AWAKE, make_dormant
from semibandit.engines.graphic.prim import fill_matrix, solve_prim, touch_matrix
from semibandit.engines.graphic.state import (
    ADAPTIVE,
    BUSY_ROUND,
    CHALLENGERS,
    COMPONENT,
    CROWDED,
    DIRTY,
    EXCHANGES,
    HOT_COLD,
    HOT_LIMIT,
    N_BASE,
    N_BEATEN,
    N_DORMANT,
    N_HOT,
    N_RISEN,
    PASSES,
    PRIM,
    SEARCH,
    SEARCH_WORK,
    SEARCHES,
    STALE,
    UNSORTED,
    WARMED,
    WHOLE_COMPONENT,
    WOKEN,
    n_all_hot,
    no_hot_edges,
    open_forest,
    search_start_cost,
)
from semibandit.engines.graphic.tree import list_if_beaten
from semibandit.engines.switch import (
    IN_USE,
    busy_pays,
    change_to_busy,
    change_to_quiet,
    count_cost,
    count_round,
    quiet_pays,
)

# What things cost in nanoseconds (measured; only ratios matter): a hot edge in a pass, a dormant one in a round, a
# vertex in a busy round, an edge warmed up and cooled down, an entry of Prim's matrix; an exchange, and a round without
# any.
NS_HOT, NS_DORMANT, NS_VERTEX, NS_WARMED, NS_MATRIX = 12.0, 5.0, 60.0, 200.0, 1.8
NS_EXCHANGE, NS_QUIET = 200.0, 100.0

# For an exchange the challengers search so many times, on average (measured).
SEARCHES_PER_EXCHANGE = 1.3

# A change of the solver costs about so many busy rounds.
CHANGE = 2.0

# How fast running means follow: per busy round, and per search.
FOLLOW_BUSY, FOLLOW_SEARCH = 0.2, 0.05


# -- busy rounds -------------------------------------------------------------------------------------------------


@inline_kernel
def _busy_round(handle, state, lam):
    """Make the answer right by Prim or by hot and cold edges, and count what it cost. O(V^2) or O(V + changes)."""
    switch, lengths, counters = state.switch, state.lengths, state.counters
    n_vertices = state.vertex.shape[0]
    # With hot and cold edges, a round after a step of the clock, or in which many are warmed up, says nothing about
    # those to come. Prim leaves the order of hot edges as it was.
    telling = switch[IN_USE] == PRIM or not state.flags[UNSORTED]
    warmed = np.int64(0)
    if switch[IN_USE] == PRIM:
        lengths[N_HOT] = solve_prim(state)
        cost = NS_MATRIX * n_vertices * n_vertices
    else:
        passes, warmed = counters[PASSES], counters[WARMED]
        solve_hot_cold(handle, lam)
        passes = counters[PASSES] - passes
        warmed = counters[WARMED] - warmed
        cost = NS_HOT * lengths[N_HOT] * passes + NS_DORMANT * lengths[N_DORMANT] + NS_WARMED * warmed
    cost += NS_VERTEX * n_vertices
    exchanges = answer_from_hot(handle)
    counters[EXCHANGES] += exchanges
    if telling and warmed <= 2 * exchanges + n_vertices // 4 + 4:
        _count_busy_round(state, cost, exchanges)


@inline_kernel
def _count_busy_round(state, cost, exchanges):
    """Compare a busy round with what the challengers would have done for these exchanges. O(1)."""
    costs = state.costs
    costs[BUSY_ROUND] += FOLLOW_BUSY * (cost - costs[BUSY_ROUND])
    challengers = SEARCHES_PER_EXCHANGE * exchanges * (costs[SEARCH] + NS_EXCHANGE) + NS_QUIET
    count_cost(state.switch, cost, challengers)


@inline_kernel
def _after_busy_round(handle, state, lam):
    """Let the challengers go on if they should; else keep the hot edges few, or go back to Prim."""
    switch, lengths = state.switch, state.lengths
    quiet = state.solver_mode == CHALLENGERS
    if state.solver_mode == ADAPTIVE:
        quiet = quiet_pays(switch, CHANGE * state.costs[BUSY_ROUND])
    if switch[IN_USE] == PRIM:
        if quiet:
            # The next round goes by hot and cold edges, and from there to the challengers.
            leave_prim(handle, lam)
            switch[IN_USE] = HOT_COLD
            state.flags[DIRTY] = True
        return
    if quiet or n_all_hot(state) > lengths[HOT_LIMIT]:
        cool_down(handle)
    if quiet:
        enter_challengers(handle)
        change_to_quiet(switch, CHALLENGERS)
    elif state.matrix.key.shape[0] > 0:
        no_hot_edges(state)
        fill_matrix(handle, lam)
        switch[IN_USE] = PRIM
    elif lengths[N_HOT] > MOST_AWAKE * lengths[N_BASE] + FEW_AWAKE:
        make_dormant(handle)


# -- quiet rounds ------------------------------------------------------------------------------------------------


@inline_kernel
def _quiet_round(handle, state, lam):
    """Make the answer right by the challengers, and learn what a search costs. O(D + searches)."""
    costs, counters = state.costs, state.counters
    searches, work = counters[SEARCHES], counters[SEARCH_WORK]
    counters[EXCHANGES] += solve_challengers(handle, lam)
    state.flags[DIRTY] = False
    searches = counters[SEARCHES] - searches
    if searches > 0:
        cost = search_start_cost(state.vertex.shape[0]) + (counters[SEARCH_WORK] - work) / searches
        costs[SEARCH] += min(FOLLOW_SEARCH * searches, 1.0) * (cost - costs[SEARCH])


@inline_kernel
def _before_quiet_round(handle, state, lam):
    """Let a busy solver go on if all weights are to be read, too many arms rose, or the searches ahead cost more."""
    switch, flags, costs = state.switch, state.flags, state.costs
    leave = flags[STALE] or flags[CROWDED]
    if not leave:
        ahead = state.lengths[N_BEATEN] * (costs[SEARCH] + NS_EXCHANGE)
        count_cost(switch, ahead, costs[BUSY_ROUND])
        if state.solver_mode == ADAPTIVE and busy_pays(switch, CHANGE * costs[BUSY_ROUND]):
            leave = True
            change_to_busy(switch, HOT_COLD)
    if leave:
        leave_challengers(handle)
        switch[IN_USE] = HOT_COLD
        flags[CROWDED] = False
        if not flags[STALE] and state.matrix.key.shape[0] > 0:
            fill_matrix(handle, lam)
            switch[IN_USE] = PRIM


# -- what an engine does -----------------------------------------------------------------------------------------


@inline_kernel
def _read_weights(handle, state, lam):
    """Read all weights again, for a busy solver. O(K)."""
    state.lam[0] = lam
    state.flags[STALE] = False
    if state.switch[IN_USE] == PRIM:
        fill_matrix(handle, lam)
    else:
        reweigh_cold(state.edges, state.recs, lam, np.bool_(False))
        state.flags[UNSORTED] = True


@kernel
def solve_forest(handle, lam):
    """Make the answer right at lam; returns its size. O(searches) or O(V + changes), O(K) at a new lam."""
    state = open_forest(handle)
    switch, flags = state.switch, state.flags
    if lam != state.lam[0]:
        flags[STALE] = True
    if switch[IN_USE] == CHALLENGERS:
        _before_quiet_round(handle, state, lam)
    if flags[STALE]:
        _read_weights(handle, state, lam)
    flags[DIRTY] = False
    if switch[IN_USE] == CHALLENGERS:
        _quiet_round(handle, state, lam)
    else:
        _busy_round(handle, state, lam)
        _after_busy_round(handle, state, lam)
    return state.lengths[N_BASE]


@inline_kernel
def forest_select(forest, lam, out):
    """The base at lam. O(D) when nothing that matters has changed, else the solver's cost."""
    handle = forest.handle
    state = open_forest(handle)
    count_round(state.switch)
    if state.flags[DIRTY] or lam != state.lam[0]:
        n = solve_forest(handle, lam)
    else:
        n = state.lengths[N_BASE]
    for i in range(n):
        out[i] = state.answer.arms[i]
    return n


@kernel
def _touch_cold(handle, arm):
    """A cold arm has another weight, or came back. O(16 log degree)."""
    state = open_forest(handle)
    edges, lengths = state.edges, state.lengths
    before = edges.slot_weight[edges.table[arm, SLOT]]
    w = weight_of(state.recs, arm, state.lam[0])
    set_status(edges, arm, w, np.int64(COLD))
    if w <= before:
        return
    state.flags[DIRTY] = True
    if state.switch[IN_USE] == CHALLENGERS:
        if lengths[N_RISEN] == state.tree.risen.shape[0]:
            state.flags[CROWDED] = True
        else:
            state.tree.risen[lengths[N_RISEN]] = arm
            lengths[N_RISEN] += 1


@inline_kernel
def forest_touch(forest, arm):
    """The record of `arm` changed. O(1) for an arm of the base, else O(16 log degree)."""
    handle = forest.handle
    state = open_forest(handle)
    lam = state.lam[0]
    if weight_of(state.recs, arm, lam) > state.tree.bound_weight[arm]:
        return
    table, switch = state.edges.table, state.switch
    if table[arm, STATUS] == ABSENT or state.flags[STALE]:
        return
    if switch[IN_USE] == PRIM:
        touch_matrix(state, arm)
    elif table[arm, STATUS] == COLD:
        _touch_cold(handle, arm)
    elif switch[IN_USE] == HOT_COLD:
        state.edges.pending[arm] = 1
        state.flags[DIRTY] = True
        if table[arm, IN_BASE] == 0:
            state.flags[WOKEN] = True
    else:
        list_if_beaten(state, arm, lam)


@kernel
def forest_remove(forest, arms):
    """Take present arms out of the ground set. O(16 log degree) each."""
    state = open_forest(forest.handle)
    table, switch = state.edges.table, state.switch
    for i in range(arms.shape[0]):
        arm = arms[i]
        status = table[arm, STATUS]
        if status == ABSENT:
            continue
        if switch[IN_USE] == PRIM:
            table[arm, STATUS] = ABSENT
            touch_matrix(state, arm)
        elif status == COLD:
            set_status(state.edges, arm, -np.inf, np.int64(ABSENT))
        else:
            table[arm, STATUS] = ABSENT
            state.flags[DIRTY] = True
            if switch[IN_USE] == CHALLENGERS:
                list_if_beaten(state, arm, state.lam[0])
            else:
                state.edges.pending[arm] = 1
                state.flags[WOKEN] = True


@kernel
def forest_restore(forest, arms):
    """Put absent arms back with the weights in their records. O(V + 16 log degree each)."""
    handle = forest.handle
    state = open_forest(handle)
    table, vertex = state.edges.table, state.vertex
    for v in range(vertex.shape[0]):
        vertex[v, COMPONENT] = vertex[v, WHOLE_COMPONENT]
    for i in range(arms.shape[0]):
        arm = arms[i]
        if table[arm, TAIL] == table[arm, HEAD]:
            continue
        if state.switch[IN_USE] == PRIM:
            table[arm, STATUS] = COLD
            touch_matrix(state, arm)
        elif table[arm, TREE_INDEX] >= 0:
            table[arm, STATUS] = HOT
            list_if_beaten(state, arm, state.lam[0])
        else:
            _touch_cold(handle, arm)


@kernel
def forest_touch_all(forest):
    """Let the next round read all weights again. O(1) now."""
    flags = open_forest(forest.handle).flags
    flags[STALE] = flags[DIRTY] = True


@kernel
def forest_touch_many(forest, arms):
    """Arm by arm, or all weights anew where that is cheaper."""
    n_arms, rank = forest.recs.shape[0], open_forest(forest.handle).answer.arms.shape[0]
    if arms.shape[0] > max(n_arms // 16, rank) + 64:
        forest_touch_all(forest)
    else:
        for i in range(arms.shape[0]):
            forest_touch(forest, arms[i])
