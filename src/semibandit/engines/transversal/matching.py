"""The base of a transversal matroid, matched to right nodes: moves along alternating paths.

An alternating path leads from an arm to one of its right nodes, on to the arm matched there, to another right node
of that arm, and so forth. An outsider can replace exactly the base arms that such paths from it reach. Only edges of
base arms matter for paths, and they are kept as bits: `ahead` of right node r is the set of right nodes next to
the arm matched to r, `behind` the set of right nodes whose arm is next to r. So a search, forwards or backwards,
costs O(n_right / 64) for each right node it reaches and never sees an outsider.

The bound of a base arm is kept at its right node and moves with it.
"""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.words import lowest_bit
from semibandit.engines.transversal.best_outsiders import best_outsider, set_outsider_weight
from semibandit.engines.transversal.bits import clear, contains, discard, insert
from semibandit.engines.transversal.state import (
    IN_ANSWER,
    IN_ENTRANTS,
    OUTSIDER,
    RIGHT,
    SEARCHES,
    STEPS,
    note,
    open_challengers,
    weigh,
)

# -- matching and base ----------------------------------------------------------------------------------------------


@inline_kernel
def _toggle_edges(indptr, edge, matching, arm, r):
    """Write `arm` as the one matched to r into `ahead` and `behind`, or if it stands there wipe it out. O(degree)."""
    ahead, behind = matching.ahead, matching.behind
    word, bit = r >> 6, np.int64(1) << (r & 63)
    for p in range(indptr[arm], indptr[arm + 1]):
        q = np.int64(edge[p, RIGHT])
        ahead[r, q >> 6] ^= np.int64(1) << (q & 63)
        behind[q, word] ^= bit


@kernel
def match(handle, arm, r):
    """Match `arm` to right node r, whoever was matched there. O(degree)."""
    state = open_challengers(handle)
    matching = state.matching
    old = matching.matched_arm[r]
    if old != arm:
        if old >= 0:
            _toggle_edges(state.indptr, state.edge, matching, old, r)
        _toggle_edges(state.indptr, state.edge, matching, arm, r)
        matching.matched_arm[r] = arm
    matching.matched_node[arm] = r
    discard(matching.free, r)


@kernel
def unmatch(handle, r):
    """Leave right node r without an arm. O(degree)."""
    state = open_challengers(handle)
    matching = state.matching
    if matching.matched_arm[r] >= 0:
        _toggle_edges(state.indptr, state.edge, matching, matching.matched_arm[r], r)
    matching.matched_arm[r] = -1
    insert(matching.free, r)


@kernel
def enter_base(handle, arm):
    """An outsider that was matched joins the base and leaves the tournaments. O(degree log K)."""
    state = open_challengers(handle)
    set_outsider_weight(handle, arm, -np.inf)
    state.matching.n_base[0] += 1
    listed = state.listed
    if listed[arm] & IN_ANSWER == 0 and not note(state.entrants, listed, IN_ENTRANTS, arm):
        state.answer_stale[0] = True


@kernel
def leave_base(handle, arm):
    """A base arm that lost its match becomes an outsider, which stands in the tournaments. O(degree log K)."""
    state = open_challengers(handle)
    state.matching.matched_node[arm] = OUTSIDER
    state.matching.n_base[0] -= 1
    set_outsider_weight(handle, arm, weigh(state.recs, state.lam, arm))


@kernel
def take_over_matching(handle, matched_arm):
    """Make another matching, an arm or -1 for each right node, that of the base. All else is then stale.

    O(edges of both bases).
    """
    state = open_challengers(handle)
    matching = state.matching
    n = 0
    for r in range(matched_arm.shape[0]):
        if matching.matched_arm[r] >= 0:
            matching.matched_node[matching.matched_arm[r]] = OUTSIDER
    for r in range(matched_arm.shape[0]):
        if matched_arm[r] >= 0:
            match(handle, matched_arm[r], r)
            n += 1
        else:
            unmatch(handle, r)
    matching.n_base[0] = n
    state.best_stale[0] = True
    state.answer_stale[0] = True


# -- backwards: who can replace a base arm -------------------------------------------------------------------------


@kernel
def find_best_challenger(handle, start):
    """Right node whose best outsider is the best challenger of the arm matched to `start`, or -1.

    Walks alternating paths backwards; `via` leads from each right node reached towards `start`. O(n_right / 64) for
    each right node reached. Changes scratch and counts.
    """
    state = open_challengers(handle)
    behind, best = state.matching.behind, state.best
    reached, queue, via = state.search.reached, state.search.queue, state.search.via
    clear(reached)
    insert(reached, start)
    queue[0] = start
    n, i, at = 1, 0, -1
    top = -np.inf
    while i < n:
        r = queue[i]
        i += 1
        w = best.node_weight[r]
        if w > top or (w == top and w > -np.inf and best_outsider(best, r) < best_outsider(best, at)):
            top = w
            at = r
        for word in range(reached.shape[0]):
            new = behind[r, word] & ~reached[word]
            reached[word] |= new
            while new != 0:
                q = (word << 6) + lowest_bit(new)
                new &= new - 1
                via[q] = r
                queue[n] = q
                n += 1
    state.work[STEPS] += n
    state.work[SEARCHES] += 1
    return at


@kernel
def exchange(handle, arm, at, start):
    """Match outsider `arm` to `at` and shift the arms along `via` up to `start`, each with its bound; the arm matched
    to `start` loses its match. The bound of `arm` is its own weight. O(length of the path * degree)."""
    state = open_challengers(handle)
    bounds, via = state.bounds, state.search.via
    mover, mover_bound, mover_rival = arm, weigh(state.recs, state.lam, arm), arm
    r = at
    while True:
        pushed, pushed_bound, pushed_rival = state.matching.matched_arm[r], bounds.weight[r], bounds.arm[r]
        match(handle, mover, r)
        bounds.weight[r] = mover_bound
        bounds.arm[r] = mover_rival
        if r == start:
            return
        mover, mover_bound, mover_rival = pushed, pushed_bound, pushed_rival
        r = via[r]


# -- forwards: whom an outsider can replace, and whether it fits besides the base ----------------------------------


@kernel
def augment(handle, arm):
    """Match `arm`, shifting base arms along an alternating path to a free right node, each with its bound.

    Dead right nodes are not entered. Returns -1, or if there is no such path how many right nodes `arm` reaches
    (they are in the queue). O(n_right / 64) for each right node reached. Changes the matching, scratch and counts.
    """
    state = open_challengers(handle)
    free, last = _free_neighbour(state, arm), -1
    if free < 0:
        n = _reach_neighbours(state, arm)
        free, last, n = _walk_to_free_node(state, n)
        state.work[STEPS] += n
        if free < 0:
            return n
    _shift_to_free_node(handle, arm, free, last)
    return -1


@inline_kernel
def _free_neighbour(state, arm):
    """A free right node next to `arm`, or -1. O(degree)."""
    for p in range(state.indptr[arm], state.indptr[arm + 1]):
        r = np.int64(state.edge[p, RIGHT])
        if contains(state.matching.free, r):
            return r
    return -1


@inline_kernel
def _reach_neighbours(state, arm):
    """Begin a search at the right nodes next to `arm` that are not dead; how many. O(degree + n_right / 64)."""
    reached, queue, via, dead = state.search.reached, state.search.queue, state.search.via, state.solving.dead
    for word in range(reached.shape[0]):
        reached[word] = dead[word]
    n = 0
    for p in range(state.indptr[arm], state.indptr[arm + 1]):
        r = np.int64(state.edge[p, RIGHT])
        if not contains(reached, r):
            insert(reached, r)
            via[r] = -1
            queue[n] = r
            n += 1
    return n


@inline_kernel
def _walk_to_free_node(state, n):
    """Go on from the n right nodes in the queue until a free one is next: (it, the one before, how many are in the
    queue), the first two -1 if there is none. O(n_right / 64) for each right node reached."""
    ahead, free = state.matching.ahead, state.matching.free
    reached, queue, via = state.search.reached, state.search.queue, state.search.via
    i = 0
    while i < n:
        r = queue[i]
        i += 1
        for word in range(reached.shape[0]):
            new = ahead[r, word] & ~reached[word]
            if new & free[word] != 0:
                return (word << 6) + lowest_bit(new & free[word]), r, n
            reached[word] |= new
            while new != 0:
                q = (word << 6) + lowest_bit(new)
                new &= new - 1
                via[q] = r
                queue[n] = q
                n += 1
    return -1, -1, n


@inline_kernel
def _shift_to_free_node(handle, arm, free, last):
    """Let the arms on the path to `free`, whose last right node before it is `last`, move one on; `arm` is matched to
    the first. Changes matching and bounds. O(length of the path * degree)."""
    state = open_challengers(handle)
    bounds, via = state.bounds, state.search.via
    while last >= 0:
        bounds.weight[free] = bounds.weight[last]
        bounds.arm[free] = bounds.arm[last]
        match(handle, state.matching.matched_arm[last], free)
        free = last
        last = via[last]
    bounds.weight[free] = -np.inf
    bounds.arm[free] = -1
    match(handle, arm, free)
