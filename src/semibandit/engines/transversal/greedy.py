"""Greedy from the last base on (docs/theory.md, H): the part of the adaptive engine for busy states.

The base stays matched from round to round. Its arms that are heavier than every outsider are what greedy would take
first, so they stay where they are. Only the others, which are *in doubt*, lose their right nodes; then they and the
outsiders (`order.lazy`) are looked at, heaviest first, until the base is full; those whose right nodes are all dead are
passed over, some at a time. So a round costs what changes in it, besides O(D); a new lam costs a pass over all arms.
"""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.lanes import lowest_bit
from semibandit.compiled.sorting import sort_keys
from semibandit.engines.answer import (
    N_CAME,
    N_LISTED,
    N_WENT,
    answer_came,
    answer_went,
    outside_went,
    write_answer,
)
from semibandit.engines.order.lazy import (
    FRONT,
    HEAD,
    LOOKED_TO,
    add_unsorted,
    begin_anew,
    cut_front,
    end_unsorted,
    extend_front,
    is_behind_front,
    join,
    loosen,
    place_in_front,
)
from semibandit.engines.order.splice import comes, leaves, put_through, write_tags
from semibandit.engines.transversal.bits import contains, discard, insert
from semibandit.engines.transversal.greedy_paths import augment, match
from semibandit.engines.transversal.greedy_state import LOOKED, MOST, N_BASE, N_NEW, open_greedy
from semibandit.engines.transversal.state import ABSENT, OUTSIDER, beats, weigh
from semibandit.engines.transversal.two_words import next_alive_of_two, note_near_free

# -- a round --------------------------------------------------------------------------------------------------------


@kernel
def greedy_select(handle, lam, out):
    """The base at lam. O(D + arms looked at), a search for each that enters, and O(K) at a new lam."""
    state = open_greedy(handle)
    size = state.size
    if state.stale[0] or lam != state.lam[0]:
        state.lam[0] = lam
        _order_anew(handle)
    n_doubt = _take_in_doubt(handle, state)
    size[N_NEW] = 0
    if n_doubt > 0 or size[N_BASE] < size[MOST]:
        _revive(state)
        _fill(handle, n_doubt)
    return write_answer(state.answer, out)


@inline_kernel
def _has_edges(state, arm):
    return state.indptr[arm] < state.indptr[arm + 1]


@kernel
def _order_anew(handle):
    """All outsiders at lam, unsorted; loops are left out. O(K)."""
    state = open_greedy(handle)
    begin_anew(state.order)
    node = state.matched_node
    for arm in range(node.shape[0]):
        if node[arm] == OUTSIDER and _has_edges(state, arm):
            add_unsorted(state.order, arm, weigh(state.recs, state.lam, arm))
    end_unsorted(state.order)
    state.stale[0] = False


@kernel
def _extend(handle):
    """More entries for the front; False if there are none."""
    state = open_greedy(handle)
    if not extend_front(state.order):
        return False
    write_tags(state.order, state.splice)
    return True


@inline_kernel
def _is_loose(state, i, before):
    """Whether entry i of the order does not count; `before` is the arm that was met last. O(1)."""
    order = state.order
    arm = order.arm[i]
    if order.loose[arm] == 0:
        return False
    if (
        state.matched_node[arm] == OUTSIDER
        and arm != before
        and order.weight[i] == weigh(state.recs, state.lam, arm)
    ):
        return False
    order.loose[arm] -= 1
    return True


@inline_kernel
def _first_outsider(handle, state):
    """The place of the heaviest outsider in the order, -1 if there is none. Drops loose entries. O(1) amortised."""
    order = state.order
    at = order.at
    while at[HEAD] < at[FRONT] or _extend(handle):
        if not _is_loose(state, at[HEAD], -1):
            return at[HEAD]
        at[HEAD] += 1
    return np.int64(-1)


@inline_kernel
def _take_in_doubt(handle, state):
    """Free the right nodes of base arms that are lighter than the heaviest outsider; they remain written there. Lists
    these arms in any order; how many there are. O(n_right)."""
    order, doubt, matched_arm = state.order, state.doubt, state.matched_arm
    first = _first_outsider(handle, state)
    if first < 0:
        return 0
    top, top_arm, n = order.weight[first], order.arm[first], 0
    for word in range(state.free.shape[0]):
        bits = np.int64(0)
        for r in range(word << 6, min((word + 1) << 6, matched_arm.shape[0])):
            # Without branches: they would be wrong for many arms in doubt.
            arm = matched_arm[r]
            weight = weigh(state.recs, state.lam, max(arm, 0))
            loses = np.int64((arm >= 0) & ((top > weight) | ((top == weight) & (top_arm < arm))))
            doubt.weight[n], doubt.arm[n] = weight, arm
            n += loses
            bits |= loses << (r & 63)
        state.free[word] |= bits
    state.size[N_BASE] -= n
    return n


@kernel
def _fill(handle, n_doubt):
    """Greedy over arms in doubt and outsiders until the base is full. Changes everything.

    What a failed search reached is dead for the rest of the round, as in `resolve.greedy`.
    """
    state = open_greedy(handle)
    order, doubt, size, node = state.order, state.doubt, state.size, state.matched_node
    write_tags(order, state.splice)
    if state.near.shape[1] == 2:
        note_near_free(state.ahead, state.free, state.search.hint)
    i, before = order.at[HEAD], np.int64(-1)
    n, most = size[N_BASE], size[MOST]
    # Once they are sorted, doubt[at] is the next arm in doubt; those that were refused are kept at the begin.
    at, refused, looked, is_sorted = 0, 0, 0, False
    alive = np.int64(-1)
    heaviest = -np.inf
    for k in range(n_doubt):
        heaviest = max(heaviest, doubt.weight[k])
    while n < most:
        weight, arm = -np.inf, np.int64(-1)
        least = (doubt.weight[at] if is_sorted else heaviest) if at < n_doubt else -np.inf
        i = _next_alive(state, i, alive, least)
        if i < order.at[FRONT] or _extend(handle):
            if _is_loose(state, i, before):
                _leave(handle, state, i)
                i += 1
                continue
            weight, arm = order.weight[i], order.arm[i]
        if at < n_doubt and weight <= least:
            if not is_sorted:
                # Not before: where the whole base is in doubt, greedy is often done without any of it.
                _sort_doubt(state, 0, n_doubt)
                is_sorted = True
            if beats(least, doubt.arm[at], weight, arm):
                arm = doubt.arm[at]
                at += 1
                r = np.int64(node[arm])
                if contains(state.free, r):
                    discard(state.free, r)
                    n += 1
                elif augment(handle, state, arm):
                    n += 1
                else:
                    alive = _alive(state)
                    doubt.arm[refused] = arm
                    refused += 1
                    comes(order, state.splice, i, least, arm)
                continue
        if arm < 0:
            size[MOST] = n
            break
        before = arm
        looked += 1
        if augment(handle, state, arm):
            _leave(handle, state, i)
            answer_came(state.answer, arm)
            size[N_NEW] += 1
            n += 1
        else:
            alive = _alive(state)
        i += 1
    order.at[LOOKED_TO] = i - order.at[HEAD]
    size[N_BASE] = n
    size[LOOKED] = looked
    _let_go(handle, i, refused, at, n_doubt, is_sorted)
    _forget_arms_of_free_nodes(state)


@inline_kernel
def _leave(handle, state, i):
    """The entry at place i, which greedy came to, leaves the order. O(1)."""
    if not leaves(state.splice, i):
        # Hardly ever: many loose entries. What was passed moves, what lies ahead does not.
        _put_through(handle)
        leaves(state.splice, i)


@kernel
def _put_through(handle):
    state = open_greedy(handle)
    put_through(state.order, state.splice)


@inline_kernel
def _revive(state):
    """No right node is dead; numbers beyond the last are. O(n_right / 64)."""
    dead, n_right = state.dead, state.matched_arm.shape[0]
    for word in range(dead.shape[0]):
        rest = n_right - (word << 6)
        dead[word] = 0 if rest >= 64 else np.int64(-1) << max(rest, 0)


@inline_kernel
def _next_alive(state, i, alive, least):
    """The first place of the front from i on whose arm may have a right node alive or is not heavier than `least`, the
    end of the front if there is none. O(places passed)."""
    tag, weight, end = state.splice.tag, state.order.weight, state.order.at[FRONT]
    if tag.shape[1] == 2:
        return next_alive_of_two(tag, state.dead, weight, i, end, least)
    while i < end and weight[i] > least and tag[i, 0] & alive == 0:
        i += 1
    return i


@inline_kernel
def _alive(state):
    """The bits r mod 64 of all right nodes r that are not dead. O(n_right / 64)."""
    bits = np.int64(0)
    for word in range(state.dead.shape[0]):
        bits |= ~state.dead[word]
    return bits


@inline_kernel
def _sort_doubt(state, first, last):
    """Sort these arms in doubt, heaviest first. Expected O(last - first)."""
    order, doubt = state.order, state.doubt
    weight, arm = doubt.weight[first:last], doubt.arm[first:last]
    sort_keys(weight, arm, last - first, order.spare_weight, order.spare_arm, order.bins)


@kernel
def _let_go(handle, end, refused, first, last, is_sorted):
    """The first `refused` arms in doubt, and those from `first` to `last`, become outsiders. The latter are lighter
    than all that greedy looked at, up to the place `end`. O((n + 1) log K) for n of these, and what moves in the
    front."""
    state = open_greedy(handle)
    order, doubt, node, splice = state.order, state.doubt, state.matched_node, state.splice
    for i in range(refused):
        node[doubt.arm[i]] = OUTSIDER
    for i in range(first, last):
        node[doubt.arm[i]] = OUTSIDER
    outside_went(state.answer, node)
    cut_front(order)
    behind = first
    for i in range(first, last):
        w, arm = doubt.weight[i], doubt.arm[i]
        if not is_behind_front(order, w, arm):
            doubt.weight[i], doubt.arm[i] = doubt.weight[behind], doubt.arm[behind]
            doubt.weight[behind], doubt.arm[behind] = w, arm
            behind += 1
    if not is_sorted:
        _sort_doubt(state, first, behind)
    for i in range(first, behind):
        end = place_in_front(order, end, doubt.weight[i], doubt.arm[i])
        comes(order, splice, end, doubt.weight[i], doubt.arm[i])
    put_through(order, splice)
    for i in range(behind, last):
        if not join(order, doubt.arm[i], doubt.weight[i]):
            state.stale[0] = True


@inline_kernel
def _forget_arms_of_free_nodes(state):
    """Right nodes that stayed free lose the arms that are still written there. O(how many)."""
    free, matched_arm = state.free, state.matched_arm
    for word in range(free.shape[0]):
        left = free[word]
        while left != 0:
            matched_arm[(word << 6) + lowest_bit(left)] = -1
            left &= left - 1


@kernel
def _join(handle, arm):
    """Let an outsider wait in the order; loops do not. O(log K)."""
    state = open_greedy(handle)
    if (
        _has_edges(state, arm)
        and not state.stale[0]
        and not join(state.order, arm, weigh(state.recs, state.lam, arm))
    ):
        state.stale[0] = True


# -- changes --------------------------------------------------------------------------------------------------------


@inline_kernel
def _touch(handle, state, arm):
    """The record of `arm` changed. O(1) for a base arm, O(log K) for an outsider."""
    if state.matched_node[arm] == OUTSIDER and not state.stale[0] and _has_edges(state, arm):
        if loosen(state.order, arm):
            _join(handle, arm)
        else:
            state.stale[0] = True


@inline_kernel
def greedy_touch(handle, arm):
    """The record of `arm` changed. O(1) for a base arm, O(log K) for an outsider."""
    _touch(handle, open_greedy(handle), arm)


@kernel
def greedy_touch_many(handle, arms):
    """Arm by arm, or the order anew where that is cheaper."""
    state = open_greedy(handle)
    if arms.shape[0] > state.recs.shape[0] // 4 + 16:
        state.stale[0] = True
    for i in range(0 if state.stale[0] else arms.shape[0]):
        _touch(handle, state, arms[i])


@kernel
def greedy_remove(handle, arms):
    """Take present arms out; the right node of a base arm is left free. O(log D) each."""
    state = open_greedy(handle)
    for i in range(arms.shape[0]):
        arm = arms[i]
        r = np.int64(state.matched_node[arm])
        if r >= 0:
            state.matched_arm[r] = -1
            insert(state.free, r)
            state.size[N_BASE] -= 1
            answer_went(state.answer, arm)
        elif _has_edges(state, arm) and not loosen(state.order, arm):
            state.stale[0] = True
        state.matched_node[arm] = ABSENT


@kernel
def greedy_restore(handle, arms):
    """Put absent arms back with the weights in their records. O(log K) each."""
    state = open_greedy(handle)
    state.size[MOST] = min(state.answer.listed.shape[0], state.size[MOST] + arms.shape[0])
    for i in range(arms.shape[0]):
        state.matched_node[arms[i]] = OUTSIDER
        _join(handle, arms[i])


@kernel
def take_over_base(handle, matched_node, base, n):
    """Begin with a matching of another solver and its answer base[:n], ascending. O(K)."""
    state = open_greedy(handle)
    for arm in range(matched_node.shape[0]):
        state.matched_node[arm] = min(np.int64(matched_node[arm]), OUTSIDER)
    for r in range(state.matched_arm.shape[0]):
        state.matched_arm[r] = -1
        insert(state.free, r)
    for i in range(n):
        match(state, base[i], np.int64(matched_node[base[i]]))
        state.answer.listed[i] = base[i]
    state.answer.size[N_LISTED], state.answer.size[N_CAME], state.answer.size[N_WENT] = n, 0, 0
    state.size[N_BASE] = n
    state.size[MOST] = state.answer.listed.shape[0]
    state.stale[0] = True
