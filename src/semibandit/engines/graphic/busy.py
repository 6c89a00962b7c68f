"""Rounds of the busy solvers: hot and cold edges, the order of all edges, dense Prim; and which of them goes on.

Prim is the busy solver where the state has a matrix. Else hot and cold edges are used until they have lost against the
order of all edges what making it costs, and the other way round. How many edges Kruskal would look at in that order is
counted where it does, and else estimated by asking some arms whether they come before the lightest one of the base.
Hot and cold edges are the way from any busy solver to the challengers and back.
"""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import inline_kernel
from semibandit.engines.graphic.changeover import enter_challengers, leave_weights
from semibandit.engines.graphic.edges import ABSENT, STATUS, weight_of
from semibandit.engines.graphic.hot_cold import answer_from_hot, cool_down, solve_hot_cold
from semibandit.engines.graphic.hot_list import FEW_AWAKE, MOST_AWAKE, make_dormant
from semibandit.engines.graphic.ordered import fill_order, solve_ordered
from semibandit.engines.graphic.prim import fill_matrix, solve_prim
from semibandit.engines.graphic.state import (
    ADAPTIVE,
    BUSY_ROUND,
    CHALLENGERS,
    DEPTH,
    DIRTY,
    EXCHANGES,
    HOT_COLD,
    HOT_IN_BASE,
    HOT_LIMIT,
    LOOKED,
    LOST_TO_OTHER,
    N_BASE,
    N_DORMANT,
    N_HOT,
    N_PICKED,
    ORDERED,
    PASSES,
    PRIM,
    SEARCH,
    UNSORTED,
    WARMED,
    n_all_hot,
    no_hot_edges,
)
from semibandit.engines.switch import IN_USE, change_to_quiet, count_cost, quiet_pays

# What things cost in nanoseconds (measured; only ratios matter): a hot edge in a pass, a dormant one in a round, a
# vertex in a busy round, an edge warmed up and cooled down, an entry of Prim's matrix; an exchange, and a round without
# any.
NS_HOT, NS_DORMANT, NS_VERTEX, NS_WARMED, NS_MATRIX = 12.0, 5.0, 60.0, 200.0, 1.8
NS_EXCHANGE, NS_QUIET = 200.0, 100.0

# The same for the order of all edges: an edge looked at, an arm of the base that joins it, an arm that is new in the
# base, for which others were sorted, and an arm when the order is made.
NS_LOOKED, NS_JOINED, NS_SORTED, NS_ORDERED = 4.0, 40.0, 60.0, 15.0

# For an exchange the challengers search so many times, on average (measured). There are about so many hot edges for
# each of the base, and so many passes in a round.
SEARCHES_PER_EXCHANGE, HOT_EDGES, USUAL_PASSES = 1.3, 2.0, 2.0

# A change of the solver costs about so many busy rounds.
CHANGE = 2.0

# How fast running means follow, per busy round; how many arms are asked in a round how deep the base lies.
FOLLOW_BUSY, FOLLOW_DEPTH, ASKED = 0.2, 0.1, 16


@inline_kernel
def has_order(state):
    """Whether the order of all edges may be used. O(1)."""
    return state.ordered.out.shape[0] > 0


# -- what a round costs ------------------------------------------------------------------------------------------


@inline_kernel
def _cost_of_order(state, looked, exchanges):
    """What a round by the order of all edges costs. O(1)."""
    base = state.lengths[N_BASE]
    return NS_LOOKED * looked + NS_JOINED * base + NS_SORTED * exchanges + NS_VERTEX * state.vertex.shape[0]


@inline_kernel
def _cost_of_hot_cold(state, passes, warmed):
    """What a round by hot and cold edges costs that has as many of them as there are now. O(1)."""
    lengths = state.lengths
    hot = NS_HOT * lengths[N_HOT] * passes + NS_DORMANT * lengths[N_DORMANT]
    return hot + NS_WARMED * warmed + NS_VERTEX * state.vertex.shape[0]


@inline_kernel
def _ask_for_depth(state, lam):
    """Estimate how many edges come before the lightest hot edge of the base, by some arms. O(ASKED + hot edges)."""
    hot, lengths, table, costs = state.hot, state.lengths, state.edges.table, state.costs
    lightest = np.inf
    for i in range(lengths[N_HOT] - 1, -1, -1):
        if hot.edge[i, HOT_IN_BASE] == 1:
            lightest = hot.weight[i]
            break
    if lengths[N_PICKED] > 0:
        lightest = min(lightest, hot.weight[hot.picked[lengths[N_PICKED] - 1]])
    n_arms = table.shape[0]
    heavier = 0
    x = state.counters[PASSES] * ASKED
    for j in range(ASKED):
        # The fractional parts of multiples of the golden ratio lie evenly.
        arm = (((x + j) * 2654435769) & 0xFFFFFFFF) * n_arms >> 32
        if table[arm, STATUS] != ABSENT and weight_of(state.recs, arm, lam) >= lightest:
            heavier += 1
    depth = max(n_arms * heavier / ASKED, 1.0 * lengths[N_BASE])
    costs[DEPTH] += FOLLOW_DEPTH * (depth - costs[DEPTH])


@inline_kernel
def _count_busy_round(state, cost, exchanges):
    """Compare a busy round with what other solvers would have done for these exchanges. O(1)."""
    costs, switch = state.costs, state.switch
    costs[BUSY_ROUND] += FOLLOW_BUSY * (cost - costs[BUSY_ROUND])
    challengers = SEARCHES_PER_EXCHANGE * exchanges * (costs[SEARCH] + NS_EXCHANGE) + NS_QUIET
    count_cost(switch, cost, challengers)
    if not has_order(state):
        return
    if switch[IN_USE] == ORDERED:
        hot = NS_HOT * HOT_EDGES * USUAL_PASSES * state.lengths[N_BASE]
        other = hot + NS_WARMED * exchanges + NS_VERTEX * state.vertex.shape[0]
    else:
        other = _cost_of_order(state, costs[DEPTH], exchanges)
    costs[LOST_TO_OTHER] = max(0.0, costs[LOST_TO_OTHER] + cost - other)


# -- a round -----------------------------------------------------------------------------------------------------


@inline_kernel
def busy_round(handle, state, lam):
    """Make the answer right by the busy solver in use, and count what it cost. O(V^2) or O(V + changes)."""
    switch, lengths, counters, costs = state.switch, state.lengths, state.counters, state.costs
    n_vertices = state.vertex.shape[0]
    # With hot and cold edges, a round after a step of the clock, or in which many are warmed up, says nothing about
    # those to come. The others leave the order of hot edges as it was.
    telling = switch[IN_USE] != HOT_COLD or not state.flags[UNSORTED]
    passes, warmed = counters[PASSES], counters[WARMED]
    if switch[IN_USE] == PRIM:
        lengths[N_HOT] = solve_prim(state)
    elif switch[IN_USE] == ORDERED:
        lengths[N_HOT] = solve_ordered(handle, lam)
        costs[DEPTH] += FOLLOW_DEPTH * (state.ordered.size[LOOKED] - costs[DEPTH])
    else:
        solve_hot_cold(handle, lam)
        if has_order(state):
            _ask_for_depth(state, lam)
    passes, warmed = counters[PASSES] - passes, counters[WARMED] - warmed
    exchanges = answer_from_hot(handle)
    counters[EXCHANGES] += exchanges
    if switch[IN_USE] == PRIM:
        cost = NS_MATRIX * n_vertices * n_vertices + NS_VERTEX * n_vertices
    elif switch[IN_USE] == ORDERED:
        cost = _cost_of_order(state, state.ordered.size[LOOKED], exchanges)
    else:
        cost = _cost_of_hot_cold(state, passes, warmed)
    if telling and warmed <= 2 * exchanges + n_vertices // 4 + 4:
        _count_busy_round(state, cost, exchanges)


@inline_kernel
def after_busy_round(handle, state, lam):
    """Let the challengers or another busy solver go on if they should; else keep the hot edges few. O(hot edges), O(K)
    for a change from or to Prim or the order of all edges."""
    switch, lengths, costs = state.switch, state.lengths, state.costs
    quiet = state.solver_mode == CHALLENGERS
    other = False
    if state.solver_mode == ADAPTIVE:
        quiet = quiet_pays(switch, CHANGE * costs[BUSY_ROUND])
        other = costs[LOST_TO_OTHER] > NS_ORDERED * state.recs.shape[0]
    if switch[IN_USE] != HOT_COLD:
        if quiet or other:
            # The next round goes by hot and cold edges, and from there to the challengers.
            leave_weights(handle, lam)
            switch[IN_USE] = HOT_COLD
            costs[LOST_TO_OTHER] = 0.0
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
    elif other:
        no_hot_edges(state)
        fill_order(handle, lam)
        # The same base again, for its arms must be out of the order between rounds.
        lengths[N_HOT] = solve_ordered(handle, lam)
        switch[IN_USE] = ORDERED
        costs[LOST_TO_OTHER] = 0.0
    elif lengths[N_HOT] > MOST_AWAKE * lengths[N_BASE] + FEW_AWAKE:
        make_dormant(handle)
