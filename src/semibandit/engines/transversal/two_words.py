"""Greedy where there are at most 128 right nodes: every set is two words, which stay in registers.

The same as the walk and the searches for any number of right nodes next door, several times as fast: no loops over
words, the edges of an arm are its tags in the order, and outsiders are passed over eight at a time. Which way a branch
goes can hardly be foreseen here, and a wrong one costs as much as a step of a search: so there are few.
"""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import inline_kernel
from semibandit.compiled.words import lowest_bit, two_words
from semibandit.engines.answer import answer_came
from semibandit.engines.order.chunks import LAST, arm_at, first_of, leave, next_with
from semibandit.engines.transversal.greedy_state import MOST
from semibandit.engines.transversal.outsiders import is_loose


@inline_kernel
def _lowest_of_two(word0, word1):
    """The smallest number in a set that is not empty. Without branches."""
    second = word0 == 0
    return lowest_bit(word1 if second else word0) + (64 if second else 0)


@inline_kernel
def _one_of_two(r):
    """The set of r alone."""
    bit = np.int64(1) << (r & 63)
    return (bit, np.int64(0)) if r < 64 else (np.int64(0), bit)


@inline_kernel
def near_free(ahead, free0, free1):
    """The right nodes next to whose arm one is free. O(n_right)."""
    low = high = np.int64(0)
    for r in range(min(64, ahead.shape[0])):
        low |= np.int64((ahead[r, 0] & free0) | (ahead[r, 1] & free1) != 0) << r
    for r in range(64, ahead.shape[0]):
        high |= np.int64((ahead[r, 0] & free0) | (ahead[r, 1] & free1) != 0) << (r - 64)
    return low, high


@inline_kernel
def walk_two(state, j, n):
    """Greedy from the chunk at j of the front's directory on, with n arms in the base: (arms in the base, arms looked
    at) when the base is full or the front ends. Changes everything. O(places and chunks passed), and O(right nodes
    reached) for each arm looked at.

    A search picks right nodes in the `hint` first. It holds all next to whose arm one is free, and some that were so.
    """
    front, tag, place = state.front, state.front.tag, first_of(state.front, j)
    ahead, node, matched_arm = state.ahead, state.matched_node, state.matched_arm
    step_node, step_new = state.search.node, state.search.new
    end, most = front.at[LAST], state.size[MOST]
    free0, free1 = state.free[0], state.free[1]
    dead0, dead1 = state.dead[0], state.dead[1]
    hint0, hint1 = near_free(ahead, free0, free1)
    looked, before = 0, np.int64(-1)
    while n < most:
        j, place = next_with(front, j, place, end, ~dead0, ~dead1)
        if j == end:
            break
        arm = arm_at(front, place)
        if is_loose(state, place, before):
            leave(front, place)
            place += 1
            continue
        before = arm
        looked += 1
        near0, near1 = tag[0, place], tag[1, place]
        seed0, seed1 = near0 & ~dead0, near1 & ~dead1
        reached0, reached1 = dead0 | seed0, dead1 | seed1
        hit0, hit1 = seed0 & free0, seed1 & free1
        step = 0
        while (hit0 | hit1 == 0) & (seed0 | seed1 != 0):
            pick0, pick1 = seed0 & hint0, seed1 & hint1
            none = pick0 | pick1 == 0
            pick0, pick1 = (seed0 if none else pick0), (seed1 if none else pick1)
            r = _lowest_of_two(pick0, pick1)
            bit0, bit1 = _one_of_two(r)
            new0, new1 = two_words(ahead, r)
            new0 &= ~reached0
            new1 &= ~reached1
            step_node[step], step_new[step, 0], step_new[step, 1] = r, new0, new1
            step += 1
            hit0, hit1 = new0 & free0, new1 & free1
            hint0 &= ~bit0
            hint1 &= ~bit1
            reached0 |= new0
            reached1 |= new1
            seed0 = (seed0 ^ bit0) | new0
            seed1 = (seed1 ^ bit1) | new1
        place += 1
        if hit0 | hit1 == 0:
            dead0, dead1 = reached0, reached1
            continue
        to = _lowest_of_two(hit0, hit1)
        bit0, bit1 = _one_of_two(to)
        free0 &= ~bit0
        free1 &= ~bit1
        if step > 0:
            last = step_node[step - 1]
            last0, last1 = _one_of_two(last)
            # It was taken out of the hint, but one next to it may still be free.
            hint0 |= last0
            hint1 |= last1
        while step > 0:
            # The arms on the path move one on; what leads on from `last` leads on from `to`.
            step -= 1
            last = step_node[step]
            last0, last1 = _one_of_two(last)
            bit0, bit1 = _one_of_two(to)
            leads = (hint0 & last0) | (hint1 & last1) != 0
            hint0 = (hint0 & ~bit0) | (bit0 if leads else 0)
            hint1 = (hint1 & ~bit1) | (bit1 if leads else 0)
            ahead[to, 0], ahead[to, 1] = ahead[last, 0], ahead[last, 1]
            matched_arm[to] = matched_arm[last]
            node[matched_arm[to]] = to
            to = last
            while step > 0 and (step_new[step - 1, 0] & last0) | (step_new[step - 1, 1] & last1) == 0:
                step -= 1
        bit0, bit1 = _one_of_two(to)
        hint0 |= bit0
        hint1 |= bit1
        ahead[to, 0], ahead[to, 1] = near0, near1
        matched_arm[to] = arm
        node[arm] = to
        leave(front, place - 1)
        answer_came(state.answer, arm)
        n += 1
    state.free[0], state.free[1] = free0, free1
    state.dead[0], state.dead[1] = dead0, dead1
    return n, looked
