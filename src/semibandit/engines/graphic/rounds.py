"""Rounds of the graphic engines: bring the answer up to date by the solver in use, then see which should go on.

Between rounds the solver in use is told what changed (`forest_touch`, `forest_remove`, `forest_restore`). A round with
challengers is a quiet round, any other a busy one (`semibandit.engines.switch`, `busy`).
"""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.engines.graphic.busy import CHANGE, NS_EXCHANGE, after_busy_round, busy_round
from semibandit.engines.graphic.challengers import solve_challengers
from semibandit.engines.graphic.changeover import leave_challengers
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
from semibandit.engines.graphic.ordered import (
    fill_order,
    remove_from_order,
    restore_to_order,
    touch_order,
)
from semibandit.engines.graphic.prim import fill_matrix, touch_matrix
from semibandit.engines.graphic.state import (
    ADAPTIVE,
    BUSY_ROUND,
    CHALLENGERS,
    COMPONENT,
    CROWDED,
    DIRTY,
    EXCHANGES,
    HOT_COLD,
    N_BASE,
    N_BEATEN,
    N_RISEN,
    ORDERED,
    PRIM,
    SEARCH,
    SEARCH_WORK,
    SEARCHES,
    STALE,
    UNSORTED,
    WHOLE_COMPONENT,
    WOKEN,
    open_forest,
    search_start_cost,
)
from semibandit.engines.graphic.tree import list_if_beaten
from semibandit.engines.switch import (
    IN_USE,
    busy_pays,
    change_to_busy,
    count_cost,
    count_round,
)

# How fast the running mean of what a search costs follows, per search.
FOLLOW_SEARCH = 0.05


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
    elif state.switch[IN_USE] == ORDERED:
        fill_order(handle, lam)
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
        busy_round(handle, state, lam)
        after_busy_round(handle, state, lam)
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
    elif switch[IN_USE] == ORDERED:
        touch_order(handle, state, arm)
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
        elif switch[IN_USE] == ORDERED:
            remove_from_order(state, arm)
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
        elif state.switch[IN_USE] == ORDERED:
            restore_to_order(handle, state, arm)
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


@inline_kernel
def forest_touch_answer(forest, arms, n):
    """The records of all arms of the answer changed. O(1) where they are out of an order, else arm by arm."""
    state = open_forest(forest.handle)
    if state.switch[IN_USE] == ORDERED:
        state.flags[DIRTY] = True
    else:
        for i in range(n):
            forest_touch(forest, arms[i])


@inline_kernel
def _is_answer(state, arms):
    """Whether `arms` is the very answer of the last round, in order. O(D)."""
    if arms.shape[0] != state.lengths[N_BASE]:
        return False
    other = False
    for i in range(arms.shape[0]):  # without a way out, so that it runs in vector registers
        other |= arms[i] != state.answer.arms[i]
    return not other


@kernel
def forest_touch_many(forest, arms):
    """Arm by arm, or all weights anew where that is cheaper."""
    state = open_forest(forest.handle)
    n_arms, rank = forest.recs.shape[0], state.answer.arms.shape[0]
    if state.switch[IN_USE] == ORDERED and _is_answer(state, arms):
        state.flags[DIRTY] = True
    elif arms.shape[0] > max(n_arms // 16, rank) + 64:
        forest_touch_all(forest)
    else:
        for i in range(arms.shape[0]):
            forest_touch(forest, arms[i])
