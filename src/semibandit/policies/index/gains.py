"""Greedy choice by gains that fall as the choice grows (Perrault, Perchet and Valko 2019, Algorithm 3).

With c the sum of 1 / N over what was taken, an arm's gain is ``mean + sqrt(f (c + 1/N)) - sqrt(f c)``: at the start
CUCB's index with the width sqrt f, and less the larger c is. A heap holds the first arm of each group of equal counts
(`count_groups`) under the gain that it had when last looked at, which bounds the one it has now; an arm is next when
its gain of now is still the largest. Of equal gains the larger mean comes first, then the smaller id.

Arms never played come first and add nothing to c.
"""

from __future__ import annotations

import math

from semibandit.arms import ALPHA
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.sorting import sort_ids_in_place
from semibandit.engines.resolve.one_by_one import CLOSED, TAKEN, begin, take
from semibandit.policies.index.count_groups import (
    FIRST,
    IN_HEAP,
    LIVE,
    LOOKED,
    SINGLE,
    SPENT,
    SPENT_ROOT,
    WIDTH,
    comes_before,
    plays_of,
    successor,
)


@inline_kernel
def gain_of(g, arm):
    """What the arm adds now. Falls, or stays, as c grows, in floating point too: each step is monotone. O(1)."""
    n = plays_of(g, arm)
    if n <= 0.0:
        return g.recs[arm, ALPHA]
    v = 1.0 / n
    return g.recs[arm, ALPHA] + g.now[WIDTH] * (v / (math.sqrt(g.now[SPENT] + v) + g.now[SPENT_ROOT]))


@kernel
def _sink(g, at):
    """Restore the heap, best on top, after its item `at` got worse. O(log n)."""
    heap, key, n = g.heap, g.key, g.meta[IN_HEAP]
    arm, gain = heap[at], key[at]
    while True:
        child = 2 * at + 1
        if child >= n:
            break
        other = child + 1
        if other < n and (
            key[other] > key[child]
            or (key[other] == key[child] and comes_before(g.recs, heap[other], heap[child]))
        ):
            child = other
        if key[child] > gain or (key[child] == gain and comes_before(g.recs, heap[child], arm)):
            heap[at] = heap[child]
            key[at] = key[child]
            at = child
        else:
            break
    heap[at] = arm
    key[at] = gain


@kernel
def begin_greedy(g, width, arms):
    """Nothing is chosen; `width` is sqrt f. Among `arms` alone unless there are none. O(groups), or O(len(arms))."""
    g.now[WIDTH] = width
    g.now[SPENT] = 0.0
    g.now[SPENT_ROOT] = 0.0
    single = arms.shape[0] > 0
    n = arms.shape[0] if single else g.meta[LIVE]
    g.meta[SINGLE] = single
    g.meta[IN_HEAP] = n
    g.meta[LOOKED] += n
    for i in range(n):
        arm = arms[i] if single else g.info[i, FIRST]
        g.heap[i] = arm
        g.key[i] = gain_of(g, arm)
    for at in range(n // 2 - 1, -1, -1):
        _sink(g, at)


@kernel
def next_arm(g):
    """The arm of largest gain of those not settled, or -1. Expected O(log groups) for each gain computed."""
    while g.meta[IN_HEAP] > 0:
        gain = gain_of(g, g.heap[0])
        if gain == g.key[0]:
            return g.heap[0]
        g.meta[LOOKED] += 1
        g.key[0] = gain
        _sink(g, 0)
    return -1


@kernel
def settle(g, arm, answer):
    """What became of `next_arm`: TAKEN, REFUSED or CLOSED. O(log K)."""
    if answer == TAKEN:
        n = plays_of(g, arm)
        if n > 0.0:
            g.now[SPENT] += 1.0 / n
            g.now[SPENT_ROOT] = math.sqrt(g.now[SPENT])
    after = -1
    if answer != CLOSED and not g.meta[SINGLE]:
        after = successor(g, arm)
    if after >= 0:
        g.heap[0] = after
        g.key[0] = gain_of(g, after)
        g.meta[LOOKED] += 1
    else:
        last = g.meta[IN_HEAP] - 1
        g.meta[IN_HEAP] = last
        if last <= 0:
            return
        g.heap[0] = g.heap[last]
        g.key[0] = g.key[last]
    _sink(g, 0)


@kernel
def choose(g, rule, width, arms, out):
    """The greedy choice, in the order of choosing, into `out`; how many. Changes the scratch of `g` and `rule`."""
    begin(rule)
    begin_greedy(g, width, arms)
    n = 0
    while n < out.shape[0]:
        arm = next_arm(g)
        if arm < 0:
            break
        answer = take(rule, arm)
        if answer == TAKEN:
            out[n] = arm
            n += 1
        settle(g, arm, answer)
    return n


@kernel
def choose_sorted(g, rule, width, arms, out):
    """`choose`, ascending ids."""
    n = choose(g, rule, width, arms, out)
    sort_ids_in_place(out, n)
    return n
