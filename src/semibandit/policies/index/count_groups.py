"""Arms grouped by how often they were played, each group in the order of its means.

Of arms with the same count the one of larger mean has the larger index, whatever the confidence width is: only the
first of each group can be the next arm of a greedy choice. A group (one for each class of arms and count) is a treap, a
search tree whose heap order is a hash of the arm: its shape depends on its members alone. Groups lie densely in `info`
and are found by the hash table of `thompson.posterior_layout`. An arm moves from one group to another in O(log K),
expected.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semibandit.arms import ALPHA, BETA, COUNT, TOTAL, FloatArray, IntArray
from semibandit.compiled.handle import Floats1, Floats2, Ints1, Ints2, Number, Shorts2
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.policies.thompson.posterior_layout import (
    CLASS,
    G_LOSSES,
    G_WINS,
    enter,
    find,
    forget,
    group_at,
    seek,
    tag_of,
)

# Columns of `node`; UP is ABSENT for an arm in no group. Columns of `info` besides CLASS, and G_WINS, which holds the
# count (G_LOSSES stays 0): the root of the treap and its first arm.
LEFT, RIGHT, UP = 0, 1, 2
ABSENT = -2
ROOT, FIRST = 0, 1
N_COLUMNS = 1 + max(CLASS, G_WINS, G_LOSSES)

# Of `meta`: how many groups there are, how many arms are in the heap, whether it holds single arms in place of the
# first ones of groups, and how many gains were computed. Of `now`: the width sqrt f, and c with its root (`gains`).
LIVE, IN_HEAP, SINGLE, LOOKED = range(4)
WIDTH, SPENT, SPENT_ROOT = range(3)

_A = np.uint64(0x9E3779B97F4A7C15)
_B = np.uint64(0xD1342543DE82EF95)
_32 = np.uint64(32)


class CountGroups(NamedTuple):
    """State for kernels. `waiting`: plays of each arm that wait for feedback, empty as long as none ever did. `high`:
    the mean of an arm of which nothing is known but that it is being tried. `heap` and `key`: see `gains`."""

    recs: Floats2
    high: Number
    waiting: Ints1
    classes: Ints1
    node: Shorts2
    info: Ints2
    table: Ints1
    heap: Ints1
    key: Floats1
    meta: Ints1
    now: Floats1


def new_groups(recs: FloatArray, high: float, classes: IntArray) -> CountGroups:
    """No arm is in a group. O(K); what no group ever needs is never touched."""
    n = len(recs)
    room = 1 << max(4, int(2 * n - 1).bit_length())
    return CountGroups(
        recs=recs,
        high=high,
        waiting=np.zeros(0, dtype=np.int64),
        classes=classes,
        node=np.full((n, 3), ABSENT, dtype=np.int32),
        info=np.zeros((n, N_COLUMNS), dtype=np.int64),
        table=np.full(room, -1, dtype=np.int64),
        heap=np.zeros(n, dtype=np.int64),
        key=np.zeros(n),
        meta=np.zeros(4, dtype=np.int64),
        now=np.zeros(3),
    )


@inline_kernel
def plays_of(g, arm):
    """How often the arm was played, with the plays that wait."""
    return g.recs[arm, COUNT] + (g.waiting[arm] if g.waiting.shape[0] else 0)


@inline_kernel
def comes_before(recs, a, b):
    """Whether arm a has the larger mean, or the smaller id of two equal ones."""
    return recs[a, ALPHA] > recs[b, ALPHA] or (recs[a, ALPHA] == recs[b, ALPHA] and a < b)


@inline_kernel
def _height(arm):
    """No two arms have the same: every step can be undone."""
    h = (np.uint64(arm) + _B) * _A
    return (h ^ (h >> _32)) * _B


@kernel
def _turn_up(g, k, x):
    """Let x and the node above it change places in the treap of group k. O(1)."""
    node = g.node
    p = node[x, UP]
    above = node[p, UP]
    if node[p, LEFT] == x:
        between = node[x, RIGHT]
        node[p, LEFT] = between
        node[x, RIGHT] = p
    else:
        between = node[x, LEFT]
        node[p, RIGHT] = between
        node[x, LEFT] = p
    if between >= 0:
        node[between, UP] = p
    node[p, UP] = x
    _hang(g, k, above, p, x)


@inline_kernel
def _hang(g, k, above, old, new):
    """Let `new`, perhaps -1, stand where `old` stood below `above`, -1 for the root. O(1)."""
    if above < 0:
        g.info[k, ROOT] = new
    elif g.node[above, LEFT] == old:
        g.node[above, LEFT] = new
    else:
        g.node[above, RIGHT] = new
    if new >= 0:
        g.node[new, UP] = above


@kernel
def successor(g, arm):
    """The arm that comes after `arm` in its group, or -1. O(1) on average over a walk, else O(log K)."""
    node = g.node
    x = node[arm, RIGHT]
    if x >= 0:
        while node[x, LEFT] >= 0:
            x = node[x, LEFT]
        return x
    x = arm
    up = node[x, UP]
    while up >= 0 and node[up, RIGHT] == x:
        x = up
        up = node[x, UP]
    return up


@kernel
def join(g, arm):
    """Put an absent arm into the group of its class and count. O(log K)."""
    count = np.int64(plays_of(g, arm))
    tag = tag_of(g.classes[arm], count, 0)
    slot = seek(g, tag, g.classes[arm], count, 0)
    k = group_at(g, slot)
    node = g.node
    node[arm, LEFT] = -1
    node[arm, RIGHT] = -1
    node[arm, UP] = -1
    if k < 0:
        k = g.meta[LIVE]
        g.meta[LIVE] += 1
        enter(g, slot, k, tag)
        g.info[k, CLASS] = g.classes[arm]
        g.info[k, G_WINS] = count
        g.info[k, G_LOSSES] = 0
        g.info[k, ROOT] = arm
        g.info[k, FIRST] = arm
        return
    x = g.info[k, ROOT]
    while True:
        side = LEFT if comes_before(g.recs, arm, x) else RIGHT
        below = node[x, side]
        if below < 0:
            node[x, side] = arm
            node[arm, UP] = x
            break
        x = below
    while node[arm, UP] >= 0 and _height(node[arm, UP]) < _height(arm):
        _turn_up(g, k, arm)
    if comes_before(g.recs, arm, g.info[k, FIRST]):
        g.info[k, FIRST] = arm


@kernel
def leave(g, arm):
    """Take a present arm out of its group, before anything that it is sorted by changes. O(log K)."""
    k = group_at(g, find(g, g.classes[arm], np.int64(plays_of(g, arm)), 0))
    node = g.node
    if g.info[k, FIRST] == arm:
        g.info[k, FIRST] = successor(g, arm)
    while node[arm, LEFT] >= 0 and node[arm, RIGHT] >= 0:
        left, right = node[arm, LEFT], node[arm, RIGHT]
        _turn_up(g, k, left if _height(left) > _height(right) else right)
    below = node[arm, LEFT] if node[arm, LEFT] >= 0 else node[arm, RIGHT]
    _hang(g, k, node[arm, UP], arm, below)
    node[arm, UP] = ABSENT
    if g.info[k, ROOT] < 0:
        _close(g, k)


@kernel
def _close(g, k):
    """The empty group k goes; the last one takes its place. O(1) expected."""
    forget(g, k)
    last = g.meta[LIVE] - 1
    if k != last:
        tag = tag_of(g.info[last, CLASS], g.info[last, G_WINS], 0)
        slot = seek(g, tag, g.info[last, CLASS], g.info[last, G_WINS], 0)
        for column in range(g.info.shape[1]):
            g.info[k, column] = g.info[last, column]
        enter(g, slot, k, tag)
    g.meta[LIVE] = last


@kernel
def fill(g, order):
    """Put absent arms into groups; `order` lists them by class, count, mean (largest first) and id. O(n)."""
    node = g.node
    before = k = -1
    for i in range(order.shape[0]):
        arm = order[i]
        count = np.int64(plays_of(g, arm))
        if before < 0 or g.info[k, CLASS] != g.classes[arm] or g.info[k, G_WINS] != count:
            join(g, arm)
            k = g.meta[LIVE] - 1
            before = arm
            continue
        # Along the right edge: the arm stands below the first that is higher, and what was there hangs on its left.
        above = before
        last = -1
        while above >= 0 and _height(above) < _height(arm):
            last = above
            above = node[above, UP]
        node[arm, LEFT] = last
        node[arm, RIGHT] = -1
        node[arm, UP] = above
        if last >= 0:
            node[last, UP] = arm
        if above < 0:
            g.info[k, ROOT] = arm
        else:
            node[above, RIGHT] = arm
        before = arm


@inline_kernel
def write_mean(g, arm):
    """Let the record of an arm in no group say what is known of it: mean and 1 / sqrt(plays). O(1)."""
    seen = g.recs[arm, COUNT]
    n = plays_of(g, arm)
    if n <= 0.0:
        g.recs[arm, ALPHA] = np.inf
        g.recs[arm, BETA] = 0.0
    else:
        g.recs[arm, ALPHA] = g.recs[arm, TOTAL] / seen if seen > 0.0 else g.high
        g.recs[arm, BETA] = 1.0 / np.sqrt(n)


@kernel
def write_means(g):
    """`write_mean` of all arms, which are in no group. O(K)."""
    for arm in range(g.recs.shape[0]):
        write_mean(g, arm)


@kernel
def count_reward(g, arm, reward):
    """Count one reward; the arm changes group. O(log K)."""
    present = g.node[arm, UP] != ABSENT
    if present:
        leave(g, arm)
    g.recs[arm, COUNT] += 1.0
    g.recs[arm, TOTAL] += reward
    write_mean(g, arm)
    if present:
        join(g, arm)


@kernel
def join_all(g, arms):
    """`join` of each. O(n log K)."""
    for i in range(arms.shape[0]):
        join(g, arms[i])


@kernel
def leave_all(g, arms):
    """`leave` of each. O(n log K)."""
    for i in range(arms.shape[0]):
        leave(g, arms[i])


@kernel
def wait_for(g, arms, change):
    """`change` more plays of each of these arms wait. O(n log K)."""
    for i in range(arms.shape[0]):
        arm = arms[i]
        present = g.node[arm, UP] != ABSENT
        if present:
            leave(g, arm)
        g.waiting[arm] += change
        write_mean(g, arm)
        if present:
            join(g, arm)


@kernel
def forget_arms(g, arms):
    """Let these arms be as never seen. O(n log K)."""
    for i in range(arms.shape[0]):
        arm = arms[i]
        present = g.node[arm, UP] != ABSENT
        if present:
            leave(g, arm)
        g.recs[arm, COUNT] = 0.0
        g.recs[arm, TOTAL] = 0.0
        write_mean(g, arm)
        if present:
            join(g, arm)


def order_of(g: CountGroups, arms: IntArray) -> IntArray:
    """`arms` as `fill` wants them. O(n log n), O(n) for arms never seen."""
    count = g.recs[arms, COUNT] + (g.waiting[arms] if len(g.waiting) else 0)
    if not count.any():
        return arms[np.argsort(g.classes[arms], kind="stable")]
    return arms[np.lexsort((arms, -g.recs[arms, ALPHA], count, g.classes[arms]))]


def check_groups(g: CountGroups, present: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> None:
    """Assert all invariants. O(K log K)."""
    found: list[int] = []
    keys = set()
    for k in range(int(g.meta[LIVE])):
        key = (int(g.info[k, CLASS]), int(g.info[k, G_WINS]))
        assert group_at(g, find(g, *key, 0)) == k and key not in keys
        keys.add(key)
        members, x = [], int(g.info[k, FIRST])
        while x >= 0:
            members.append(x)
            for side in (LEFT, RIGHT):
                if g.node[x, side] >= 0:
                    assert g.node[g.node[x, side], UP] == x
            x = int(successor(g, x))
        assert g.node[g.info[k, ROOT], UP] == -1
        arms = np.array(members, dtype=np.int64)
        assert np.array_equal(order_of(g, np.sort(arms)), arms), "a group is out of order"
        waits = g.waiting[arms] if len(g.waiting) else 0
        assert (g.recs[arms, COUNT] + waits == key[1]).all() and (g.classes[arms] == key[0]).all()
        found += members
    assert np.array_equal(np.sort(found), np.flatnonzero(present))
    assert ((g.node[:, UP] == ABSENT) == ~present).all()
