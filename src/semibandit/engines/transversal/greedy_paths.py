"""The matching of greedy: an arm is matched, and the arms on an alternating path to a free right node move one on.

As in `matching`, only edges of base arms are kept as bits; but nothing leads backwards here and there are no bounds, so
that a move copies rows in place of changing bits.
"""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.words import lowest_bit
from semibandit.engines.transversal.bits import contains, discard, insert
from semibandit.engines.transversal.greedy_state import open_greedy
from semibandit.engines.transversal.state import RIGHT


@inline_kernel
def augment(handle, state, arm):
    """Match `arm`, shifting base arms along an alternating path to a free right node; False if there is none, and then
    what it reached is dead. O(degree), and O(n_right / 64) for each right node reached."""
    free, dead, edge = state.free, state.dead, state.edge
    alive = False
    for p in range(state.indptr[arm], state.indptr[arm + 1]):
        r = np.int64(edge[p, RIGHT])
        if contains(free, r):
            match(state, arm, r)
            return True
        alive |= not contains(dead, r)
    return alive and _search(handle, arm)


@kernel
def _search(handle, arm):
    """`augment` where no right node next to `arm` is free.

    What a step reached is kept as a set; once a free right node is found, one walk back over the steps gives the path.
    """
    state = open_greedy(handle)
    ahead, free, dead, edge = state.ahead, state.free, state.dead, state.edge
    reached, waiting = state.search.reached, state.search.waiting
    step_node, step_new = state.search.node, state.search.new
    n_words = reached.shape[0]
    for word in range(n_words):
        reached[word] = dead[word]
        waiting[word] = 0
    for p in range(state.indptr[arm], state.indptr[arm + 1]):
        insert(waiting, np.int64(edge[p, RIGHT]))
    for word in range(n_words):
        waiting[word] &= ~reached[word]
        reached[word] |= waiting[word]
    n, at = 0, 0
    while at < n_words:
        if waiting[at] == 0:
            at += 1
            continue
        r = (at << 6) + lowest_bit(waiting[at])
        waiting[at] &= waiting[at] - 1
        step_node[n] = r
        back = at
        for word in range(n_words):
            new = ahead[r, word] & ~reached[word]
            if new & free[word] != 0:
                _shift(state, arm, (word << 6) + lowest_bit(new & free[word]), n)
                return True
            step_new[n, word] = new
            reached[word] |= new
            waiting[word] |= new
            if new != 0 and word < back:
                back = word
        at = back
        n += 1
    for word in range(n_words):
        dead[word] = reached[word]
    return False


@inline_kernel
def _shift(state, arm, to, step):
    """Let the arms on the path to the free right node `to`, found at `step`, move one on; `arm` is matched to the
    first. O(steps + length of the path * n_right / 64)."""
    ahead, matched_arm = state.ahead, state.matched_arm
    step_node, step_new = state.search.node, state.search.new
    discard(state.free, to)
    while True:
        last = step_node[step]
        for word in range(ahead.shape[1]):
            ahead[to, word] = ahead[last, word]
        matched_arm[to] = matched_arm[last]
        state.matched_node[matched_arm[to]] = to
        to = last
        step -= 1
        while step >= 0 and (step_new[step, last >> 6] >> (last & 63)) & 1 == 0:
            step -= 1
        if step < 0:
            break
    match(state, arm, to)


@inline_kernel
def match(state, arm, r):
    """Match `arm` to right node r, whoever was matched there. O(degree + n_right / 64)."""
    ahead = state.ahead
    for word in range(ahead.shape[1]):
        ahead[r, word] = 0
    for p in range(state.indptr[arm], state.indptr[arm + 1]):
        q = np.int64(state.edge[p, RIGHT])
        ahead[r, q >> 6] |= np.int64(1) << (q & 63)
    state.matched_arm[r] = arm
    state.matched_node[arm] = r
    discard(state.free, r)
