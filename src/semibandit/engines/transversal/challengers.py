"""Challenger bounds for transversal matroids (docs/theory.md, F): nothing is done until a bound is passed.

The base is kept matched to right nodes. For each base arm h a bound ub(h) is kept, not lighter than the best
outsider that could replace it. While h is not lighter than ub(h), playing h costs O(1). When it is:

- *search*: walk alternating paths backwards from h's right node. Exactly the outsiders next to a right node
  reached that way can replace h, and each right node knows its heaviest outsider (`best_outsiders`), so the walk
  sees edges of base arms only: O(D + edges of the base). Exchange, or lower ub(h) to the best challenger found.
- *re-solve*: when many bounds are passed at once, greedy over base arms and best outsiders (`re_solve`). At most
  D + n_right arms are looked at whatever K is, and all bounds come out exact at no cost.

Why bounds survive an exchange of e for its best challenger f: an outsider g that can replace h only now could
replace e before, and f could replace h; so g <= f <= ub(h). And f's challengers were e's, so ub(f) = f holds.
An outsider that rises or appears first lifts the bounds along the alternating paths from it.

All comparisons are of (weight, id), so ties are decided as by a full sort. At a new lam all tournaments are played
anew: O(edges), a staircase clock is wanted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semibandit.compiled.handle import Floats2, Ints1
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.engines.kernels import implement_engine
from semibandit.engines.transversal.answer import write_answer
from semibandit.engines.transversal.best_outsiders import best_outsider, play_anew, set_outsider_weight
from semibandit.engines.transversal.matching import (
    augment,
    enter_base,
    exchange,
    find_best_challenger,
    leave_base,
    unmatch,
)
from semibandit.engines.transversal.re_solve import re_solve
from semibandit.engines.transversal.state import (
    ABSENT,
    IN_PASSED,
    IN_RISEN,
    OUTSIDER,
    SLOT,
    beats,
    forget,
    note,
    open_challengers,
    weigh,
)

# With more bounds than this passed in one round, one re-solve is cheaper than a search each (measured).
MOST_SEARCHES = 24

# -- a round --------------------------------------------------------------------------------------------------------


@kernel
def challengers_select(handle, lam, out):
    """The base at lam. O(D) plus a search for each bound passed, or one re-solve; O(edges) at a new lam."""
    state = open_challengers(handle)
    if state.best_stale[0] or lam != state.lam[0]:
        state.lam[0] = lam
        play_anew(handle)
        state.bounds_stale[0] = True
    elif not state.bounds_stale[0]:
        _settle_risen(handle)
    if state.bounds_stale[0] or state.passed.length[0] > MOST_SEARCHES:
        forget(state.passed, state.listed, IN_PASSED)
        forget(state.risen, state.listed, IN_RISEN)
        state.bounds_stale[0] = False
        re_solve(handle)
    else:
        _defend_passed(handle)
    return write_answer(handle, out)


@kernel
def _settle_risen(handle):
    """Make all bounds valid again after outsiders rose. An exchange before that could break them."""
    state = open_challengers(handle)
    risen, listed = state.risen, state.listed
    for i in range(risen.length[0]):
        arm = risen.arms[i]
        listed[arm] &= ~np.uint8(IN_RISEN)
        if state.matching.matched_node[arm] == OUTSIDER:
            _enter_or_lift_bounds(handle, arm)
    risen.length[0] = 0


@kernel
def _enter_or_lift_bounds(handle, arm):
    """Outsider `arm` rose or appeared: let it in if it can be matched besides the base, else lift the bounds of all
    base arms that it could replace. O(n_right / 64) for each of them."""
    state = open_challengers(handle)
    bounds = state.bounds
    n = augment(handle, arm)
    if n < 0:
        enter_base(handle, arm)
    weight = weigh(state.recs, state.lam, arm)
    for i in range(n):
        r = state.search.queue[i]
        if beats(weight, arm, bounds.weight[r], bounds.arm[r]):
            bounds.weight[r] = weight
            bounds.arm[r] = arm
            _note_if_passed(state, state.matching.matched_arm[r], r)


@inline_kernel
def _note_if_passed(state, arm, r):
    """Note base arm `arm`, matched to r, if it is lighter than its bound. With too many, the next round re-solves."""
    bounds = state.bounds
    if beats(bounds.weight[r], bounds.arm[r], weigh(state.recs, state.lam, arm), arm) and not note(
        state.passed, state.listed, IN_PASSED, arm
    ):
        state.bounds_stale[0] = True


@inline_kernel
def _note_risen(state, arm):
    """Note that outsider `arm` rose or appeared. With too many, the next round re-solves."""
    if not note(state.risen, state.listed, IN_RISEN, arm):
        state.bounds_stale[0] = True


@kernel
def _defend_passed(handle):
    """Exchange base arms that are lighter than their bounds, or tighten the bounds. A search each."""
    state = open_challengers(handle)
    passed, listed, bounds = state.passed, state.listed, state.bounds
    for i in range(passed.length[0]):
        arm = passed.arms[i]
        listed[arm] &= ~np.uint8(IN_PASSED)
        r = np.int64(state.matching.matched_node[arm])
        if (
            r >= 0
            and beats(bounds.weight[r], bounds.arm[r], weigh(state.recs, state.lam, arm), arm)
            and _exchange_or_tighten(handle, arm, False)
        ):
            leave_base(handle, arm)
    passed.length[0] = 0


@kernel
def _exchange_or_tighten(handle, arm, gone):
    """Base arm `arm` is lighter than its bound, or gone: exchange it for its best challenger or tighten the bound.

    Returns whether it was exchanged. One search, and O(degree log K) for an exchange.
    """
    state = open_challengers(handle)
    start = np.int64(state.matching.matched_node[arm])
    at = find_best_challenger(handle, start)
    rival, rival_weight = np.int64(-1), -np.inf
    if at >= 0:
        rival, rival_weight = best_outsider(state.best, at), state.best.node_weight[at]
        if gone or beats(rival_weight, rival, weigh(state.recs, state.lam, arm), arm):
            exchange(handle, rival, at, start)
            enter_base(handle, rival)
            return True
    state.bounds.weight[start] = rival_weight
    state.bounds.arm[start] = rival
    return False


# -- changes --------------------------------------------------------------------------------------------------------


@kernel
def challengers_touch(handle, arm):
    """The record of `arm` changed. O(1) for a base arm, O(degree log K) for an outsider."""
    state = open_challengers(handle)
    r = np.int64(state.matching.matched_node[arm])
    first = state.indptr[arm]
    if r >= 0:
        _note_if_passed(state, arm, r)
    elif r == OUTSIDER and not state.best_stale[0] and first < state.indptr[arm + 1]:
        weight, old = weigh(state.recs, state.lam, arm), state.best.leaf[state.edge[first, SLOT]]
        if weight != old:
            set_outsider_weight(handle, arm, weight)
            if weight > old:
                _note_risen(state, arm)


@inline_kernel
def _are_many(arms, recs):
    """Whether so many arms changed that playing all tournaments anew is cheaper than arm by arm."""
    return arms.shape[0] > recs.shape[0] // 4 + 16


@kernel
def challengers_touch_many(handle, arms):
    """Arm by arm, or all tournaments anew where that is cheaper."""
    state = open_challengers(handle)
    if _are_many(arms, state.recs):
        state.best_stale[0] = True
        return
    for i in range(arms.shape[0]):
        challengers_touch(handle, arms[i])


@kernel
def challengers_remove(handle, arms):
    """Take present arms out; the best challenger of a base arm takes its place. O(degree log K) each and, for a base
    arm, a search."""
    state = open_challengers(handle)
    node = state.matching.matched_node
    if _are_many(arms, state.recs):
        state.best_stale[0] = True
    for i in range(arms.shape[0]):
        arm = arms[i]
        if node[arm] >= 0:
            _remove_from_base(handle, arm)
        elif not state.best_stale[0]:
            set_outsider_weight(handle, arm, -np.inf)
        node[arm] = ABSENT


@kernel
def _remove_from_base(handle, arm):
    """Let the best challenger of a base arm take its match; without one, or when bounds are not to be trusted, its
    right node is left free."""
    state = open_challengers(handle)
    trusted = not state.best_stale[0] and not state.bounds_stale[0]
    if trusted:
        _settle_risen(handle)
        trusted = not state.bounds_stale[0]
    if not (trusted and _exchange_or_tighten(handle, arm, True)):
        r = np.int64(state.matching.matched_node[arm])
        unmatch(handle, r)
        state.bounds.weight[r] = -np.inf
        state.bounds.arm[r] = -1
    state.matching.n_base[0] -= 1


@kernel
def challengers_restore(handle, arms):
    """Put absent arms back with the weights in their records. O(degree log K) each, and what a risen arm costs at the
    next round."""
    state = open_challengers(handle)
    if _are_many(arms, state.recs):
        state.best_stale[0] = True
    for i in range(arms.shape[0]):
        arm = arms[i]
        state.matching.matched_node[arm] = OUTSIDER
        if not state.best_stale[0]:
            set_outsider_weight(handle, arm, weigh(state.recs, state.lam, arm))
            _note_risen(state, arm)


# -- as an engine of its own ----------------------------------------------------------------------------------------


class TransversalChallengerState(NamedTuple):
    """`challengers` is the handle of a `Challengers`: kernels pass one array on in place of fifty."""

    recs: Floats2
    challengers: Ints1


@inline_kernel
def _select(state, lam, out):
    return challengers_select(state.challengers, lam, out)


@inline_kernel
def _touch(state, arm):
    challengers_touch(state.challengers, arm)


@inline_kernel
def _touch_many(state, arms):
    challengers_touch_many(state.challengers, arms)


@inline_kernel
def _touch_all(state):
    open_challengers(state.challengers).best_stale[0] = True


@inline_kernel
def _remove(state, arms):
    challengers_remove(state.challengers, arms)


@inline_kernel
def _restore(state, arms):
    challengers_restore(state.challengers, arms)


implement_engine(
    TransversalChallengerState,
    _select,
    _touch,
    touch_many=_touch_many,
    touch_all=_touch_all,
    remove=_remove,
    restore=_restore,
)
