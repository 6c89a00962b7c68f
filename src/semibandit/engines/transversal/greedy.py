"""Greedy from the last base on (docs/theory.md, H): the part of the adaptive engine for busy states.

The base stays matched from round to round. Its arms that are heavier than every outsider are what greedy would take
first, so they stay where they are. Only the others, which are *in doubt*, lose their right nodes and become outsiders;
then the outsiders (`order.lazy`) are looked at, heaviest first, until the base is full; those whose right nodes are all
dead are passed over, some at a time. So a round costs what changes in it, besides O(D); a new lam costs a pass over all
arms.
"""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.words import lowest_bit
from semibandit.engines.answer import (
    N_CAME,
    N_LISTED,
    N_WENT,
    answer_came,
    answer_went,
    outside_went,
    write_answer,
)
from semibandit.engines.order.chunks import FIRST, LAST, arm_at, come, first_of, leave, next_with, weight_at
from semibandit.engines.order.lazy import loosen
from semibandit.engines.transversal.bits import insert
from semibandit.engines.transversal.greedy_paths import augment, match
from semibandit.engines.transversal.greedy_state import LOOKED, MOST, N_BASE, N_NEW, open_greedy
from semibandit.engines.transversal.outsiders import (
    extend,
    first_outsider,
    has_edges,
    is_loose,
    join,
    order_anew,
)
from semibandit.engines.transversal.state import ABSENT, OUTSIDER, weigh
from semibandit.engines.transversal.two_words import walk_two

# -- a round --------------------------------------------------------------------------------------------------------


@kernel
def greedy_select(handle, lam, out):
    """The base at lam. O(D + arms looked at), a search for each that enters, and O(K) at a new lam."""
    state = open_greedy(handle)
    size = state.size
    if state.stale[0] or lam != state.lam[0]:
        state.lam[0] = lam
        order_anew(handle)
    n_doubt = _take_in_doubt(handle, state)
    size[N_NEW] = 0
    if n_doubt > 0 or size[N_BASE] < size[MOST]:
        _revive(state)
        _fill(handle, n_doubt)
    return write_answer(state.answer, out)


@inline_kernel
def _take_in_doubt(handle, state):
    """Base arms that are lighter than the heaviest outsider become outsiders, which are to come into the order, and
    their right nodes free; they remain written there. Lists these arms in any order; how many there are. O(n_right)."""
    order, doubt, matched_arm, weight = state.order, state.doubt, state.matched_arm, state.doubt.weight
    first = first_outsider(handle, state)
    if first < 0:
        return 0
    top, top_arm, n, n_right = (
        weight_at(state.front, first),
        arm_at(state.front, first),
        0,
        matched_arm.shape[0],
    )
    # The first two loops without branches or anything that depends on the step before: they run in vector registers.
    for r in range(n_right):
        weight[r] = weigh(state.recs, state.lam, max(matched_arm[r], 0))
    for word in range(state.free.shape[0]):
        begin, bits = word << 6, np.int64(0)
        for r in range(begin, min(begin + 64, n_right)):
            arm = matched_arm[r]
            loses = (arm >= 0) & ((top > weight[r]) | ((top == weight[r]) & (top_arm < arm)))
            bits |= np.int64(loses) << (r - begin)
        state.free[word] |= bits
        while bits != 0:
            r = begin + lowest_bit(bits)
            bits &= bits - 1
            arm = matched_arm[r]
            doubt.arm[n] = order.new_arm[n] = arm
            order.new_weight[n] = weight[r]
            state.matched_node[arm] = OUTSIDER
            n += 1
    state.size[N_BASE] -= n
    return n


@kernel
def _fill(handle, n_doubt):
    """Greedy over arms in doubt and outsiders until the base is full. Changes everything.

    What a failed search reached is dead for the rest of the round, as in `resolve.greedy`.
    """
    state = open_greedy(handle)
    size = state.size
    _let_go(handle, n_doubt)
    j, n, looked = state.front.at[FIRST], size[N_BASE], 0
    while True:
        if j < state.front.at[LAST]:
            if state.dead.shape[0] == 2:
                n, more = walk_two(state, j, n)
            else:
                n, more = _walk(handle, state, j, n)
            looked += more
            if n == size[MOST]:
                break
        j = extend(handle)
        if j < 0:
            size[MOST] = n
            break
    size[N_NEW] = n - size[N_BASE] - _number_of_returned(state, n_doubt)
    size[N_BASE] = n
    size[LOOKED] = looked
    _forget_arms_of_free_nodes(state)


@kernel
def _let_go(handle, n_doubt):
    """The arms in doubt come into the order. O((n + 1) log K) for n of them."""
    state = open_greedy(handle)
    outside_went(state.answer, state.matched_node)
    if not come(state.order, state.front, n_doubt):
        order_anew(handle)


@inline_kernel
def _number_of_returned(state, n_doubt):
    """How many arms that were in doubt are in the base. O(n_doubt)."""
    n = 0
    for k in range(n_doubt):
        n += np.int64(state.matched_node[state.doubt.arm[k]] >= 0)
    return n


@inline_kernel
def _revive(state):
    """No right node is dead; numbers beyond the last are. O(n_right / 64)."""
    dead, n_right = state.dead, state.matched_arm.shape[0]
    for word in range(dead.shape[0]):
        rest = n_right - (word << 6)
        dead[word] = 0 if rest >= 64 else np.int64(-1) << max(rest, 0)


@inline_kernel
def _walk(handle, state, j, n):
    """`walk_two` for any number of right nodes."""
    front, place, last = state.front, first_of(state.front, j), state.front.at[LAST]
    most, looked, before = state.size[MOST], 0, np.int64(-1)
    alive0, alive1 = _alive(state)
    while n < most:
        j, place = next_with(front, j, place, last, alive0, alive1)
        if j == last:
            break
        if not is_loose(state, place, before):
            arm = before = arm_at(front, place)
            looked += 1
            if not augment(handle, state, arm):
                alive0, alive1 = _alive(state)
                place += 1
                continue
            answer_came(state.answer, arm)
            n += 1
        leave(front, place)
        place += 1
    return n, looked


@inline_kernel
def _alive(state):
    """The bits r mod 128 of all right nodes r that are not dead. O(n_right / 64)."""
    dead = state.dead
    bits0 = bits1 = np.int64(0)
    for word in range(0, dead.shape[0], 2):
        bits0 |= ~dead[word]
    for word in range(1, dead.shape[0], 2):
        bits1 |= ~dead[word]
    return bits0, bits1


@inline_kernel
def _forget_arms_of_free_nodes(state):
    """Right nodes that stayed free lose the arms that are still written there. O(how many)."""
    free, matched_arm = state.free, state.matched_arm
    for word in range(free.shape[0]):
        left = free[word]
        while left != 0:
            matched_arm[(word << 6) + lowest_bit(left)] = -1
            left &= left - 1


# -- changes --------------------------------------------------------------------------------------------------------


@inline_kernel
def _touch(handle, state, arm):
    """The record of `arm` changed. O(1) for a base arm, O(log K) for an outsider."""
    if state.matched_node[arm] == OUTSIDER and not state.stale[0] and has_edges(state, arm):
        if loosen(state.order, arm):
            join(handle, arm)
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
        elif has_edges(state, arm) and not loosen(state.order, arm):
            state.stale[0] = True
        state.matched_node[arm] = ABSENT


@kernel
def greedy_restore(handle, arms):
    """Put absent arms back with the weights in their records. O(log K) each."""
    state = open_greedy(handle)
    state.size[MOST] = min(state.answer.listed.shape[0], state.size[MOST] + arms.shape[0])
    for i in range(arms.shape[0]):
        state.matched_node[arms[i]] = OUTSIDER
        join(handle, arms[i])


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
