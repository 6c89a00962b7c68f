"""Challengers in quiet states, greedy from the last base on in busy ones: which of them when, and changing over.

Only the solver in use is kept up to date. What it did is counted (right nodes walked, slots changed, re-solves) and
compared with what the other would have done; `engines.switch` decides. The unit of all costs is a nanosecond of the
machine on which they were measured; only their ratios matter.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from semibandit.compiled.handle import Floats1, Floats2, Ints1, Number
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.engines.kernels import implement_engine
from semibandit.engines.switch import (
    IN_USE,
    busy_pays,
    change_to_busy,
    change_to_quiet,
    count_cost,
    count_round,
    quiet_pays,
)
from semibandit.engines.transversal.challengers import (
    MOST_SEARCHES,
    challengers_remove,
    challengers_restore,
    challengers_select,
    challengers_touch,
    challengers_touch_many,
)
from semibandit.engines.transversal.greedy import (
    greedy_remove,
    greedy_restore,
    greedy_select,
    greedy_touch,
    greedy_touch_many,
    take_over_base,
)
from semibandit.engines.transversal.greedy_state import N_NEW, open_greedy
from semibandit.engines.transversal.matching import take_over_matching
from semibandit.engines.transversal.state import N_WORK, SLOTS, SOLVES, STEPS, open_challengers
from semibandit.matroids import Transversal

# The two solvers, as the switch knows them.
CHALLENGERS, GREEDY = 0, 1


class Costs(NamedTuple):
    """What things cost for one matroid: a round of greedy and what a new lam adds to it; a right node walked, a slot
    changed, a re-solve, playing all tournaments anew; changing solvers and back. `exchange_slots` is how many slots an
    exchange changes."""

    greedy_round: Number
    re_sort: Number
    step: Number
    slot_change: Number
    solve: Number
    play_anew: Number
    there_and_back: Number
    exchange_slots: Number


class TransversalAdaptiveState(NamedTuple):
    """Handles of both solvers, the `switch` between them, and the counts of `work` of the challengers that are paid."""

    recs: Floats2
    challengers: Ints1
    greedy: Ints1
    switch: Floats1
    paid: Ints1
    costs: Costs


def measured_costs(matroid: Transversal, n_edges: int) -> Costs:
    """Costs for this matroid."""
    n_right, n_arms = matroid.n_right, matroid.n_arms
    re_sort, solve, play_anew = 12.0 * n_arms, 160.0 * n_right, 6.0 * n_edges
    # Searches by two words are faster than those by more.
    look = 12.0 if n_right <= 128 else 20.0
    return Costs(
        greedy_round=look * n_right * math.log2(n_right + 1),
        re_sort=re_sort,
        step=13.0 + 0.8 * ((n_right + 63) >> 6),
        slot_change=110.0,
        solve=solve,
        play_anew=play_anew,
        there_and_back=2.0 * re_sort + play_anew + solve,
        exchange_slots=2.0 * n_edges / n_arms,
    )


def first_solver(costs: Costs, rank: int) -> int:
    """The solver that is better when the whole base changes in a round."""
    busiest = costs.solve + rank * costs.exchange_slots * costs.slot_change
    return CHALLENGERS if busiest < costs.greedy_round else GREEDY


# -- costs of a round ----------------------------------------------------------------------------------------------


@inline_kernel
def _greedy_cost(costs, anew):
    """What greedy takes for a round, after a new lam or not."""
    return costs.greedy_round + (costs.re_sort if anew else 0.0)


@inline_kernel
def _challengers_cost(state, work, anew):
    """What the challengers did since the last round. Changes `paid`."""
    costs, paid = state.costs, state.paid
    cost = costs.play_anew if anew else 0.0
    cost += costs.step * (work[STEPS] - paid[STEPS])
    cost += costs.slot_change * (work[SLOTS] - paid[SLOTS])
    cost += costs.solve * (work[SOLVES] - paid[SOLVES])
    for i in range(N_WORK):
        paid[i] = work[i]
    return cost


@inline_kernel
def _challengers_would_cost(costs, n, new, anew):
    """What challengers would do in a round in which `new` arms enter a base of n."""
    cost = new * costs.exchange_slots * costs.slot_change
    if anew:
        cost += costs.play_anew
    if anew or new > MOST_SEARCHES:
        return cost + costs.solve + 3.0 * n * costs.step
    # A search reaches more than half of the base.
    return cost + new * 0.6 * n * costs.step


# -- a round --------------------------------------------------------------------------------------------------------


@kernel
def adaptive_select(state, lam, out):
    """The base at lam by the solver in use; then the solvers may change. Cost: see both."""
    count_round(state.switch)
    if state.switch[IN_USE] == CHALLENGERS:
        return _select_by_challengers(state, lam, out)
    return _select_by_greedy(state, lam, out)


@inline_kernel
def _select_by_challengers(state, lam, out):
    challengers, switch = open_challengers(state.challengers), state.switch
    anew = challengers.best_stale[0] or lam != challengers.lam[0]
    n = challengers_select(state.challengers, lam, out)
    count_cost(switch, _challengers_cost(state, challengers.work, anew), _greedy_cost(state.costs, anew))
    if busy_pays(switch, state.costs.there_and_back):
        take_over_base(state.greedy, challengers.matching.matched_node, out, n)
        challengers.best_stale[0] = True
        change_to_busy(switch, GREEDY)
    return n


@inline_kernel
def _select_by_greedy(state, lam, out):
    greedy, switch, costs = open_greedy(state.greedy), state.switch, state.costs
    anew = lam != greedy.lam[0]
    n = greedy_select(state.greedy, lam, out)
    new = greedy.size[N_NEW]
    count_cost(switch, _greedy_cost(costs, anew), _challengers_would_cost(costs, n, new, anew))
    if quiet_pays(switch, costs.there_and_back):
        take_over_matching(state.challengers, greedy.matched_arm)
        change_to_quiet(switch, CHALLENGERS)
    return n


# -- changes --------------------------------------------------------------------------------------------------------


@kernel
def adaptive_touch(state, arm):
    """The record of `arm` changed. O(1) for a base arm, O(degree log K) for an outsider."""
    if state.switch[IN_USE] == CHALLENGERS:
        challengers_touch(state.challengers, arm)
    else:
        greedy_touch(state.greedy, arm)


@kernel
def adaptive_touch_many(state, arms):
    """Arm by arm, or all outsiders anew where that is cheaper."""
    if state.switch[IN_USE] == CHALLENGERS:
        challengers_touch_many(state.challengers, arms)
    else:
        greedy_touch_many(state.greedy, arms)


@kernel
def adaptive_touch_all(state):
    """All records changed. O(1)."""
    if state.switch[IN_USE] == CHALLENGERS:
        open_challengers(state.challengers).best_stale[0] = True
    else:
        open_greedy(state.greedy).stale[0] = True


@kernel
def adaptive_remove(state, arms):
    """Take present arms out of both solvers. Cost: that of the challengers."""
    if state.switch[IN_USE] == GREEDY:
        greedy_remove(state.greedy, arms)
    challengers_remove(state.challengers, arms)


@kernel
def adaptive_restore(state, arms):
    """Put absent arms back into both solvers. Cost: that of the challengers."""
    if state.switch[IN_USE] == GREEDY:
        greedy_restore(state.greedy, arms)
    challengers_restore(state.challengers, arms)


implement_engine(
    TransversalAdaptiveState,
    adaptive_select,
    adaptive_touch,
    touch_many=adaptive_touch_many,
    touch_all=adaptive_touch_all,
    remove=adaptive_remove,
    restore=adaptive_restore,
)
