"""A group's arms in order, larger alpha first, then smaller id: a treap whose nodes are the arms themselves.

Aragon and Seidel 1989. The priority of an arm is a hash of its id, so the shape of a treap follows from its members
alone, whatever the order in which they came: equal histories cost the same. Nothing is ever allocated: an arm has one
node, in the group where it is. -1 stands for no arm.
"""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.random import mix64
from semibandit.engines.grouped.state import AFTER, BEFORE, K_ALPHA


@inline_kernel
def _above(one, two):
    """Whether arm `one` stands nearer to the root than arm `two`. mix64 is a bijection: no two are alike. O(1)."""
    return mix64(np.uint64(one)) > mix64(np.uint64(two))


@inline_kernel
def comes_before(key, one, two):
    """Whether arm `one` comes before arm `two` in a group. O(1)."""
    return key[one, K_ALPHA] > key[two, K_ALPHA] or (key[one, K_ALPHA] == key[two, K_ALPHA] and one < two)


@kernel
def insert(key, child, root, arm):
    """Put `arm`, whose key is written, into the treap; its root then. Changes `child`. Expected O(log n)."""
    parent, side, node = -1, BEFORE, root
    while node >= 0 and _above(node, arm):
        side = BEFORE if comes_before(key, arm, node) else AFTER
        parent, node = node, child[node, side]
    if parent < 0:
        root = arm
    else:
        child[parent, side] = arm
    # What was here is split at the arm: `left` and `right` are where the next piece of either half is hung.
    left, left_side = arm, BEFORE
    right, right_side = arm, AFTER
    while node >= 0:
        if comes_before(key, node, arm):
            child[left, left_side] = node
            left, left_side = node, AFTER
            node = child[node, AFTER]
        else:
            child[right, right_side] = node
            right, right_side = node, BEFORE
            node = child[node, BEFORE]
    child[left, left_side] = -1
    child[right, right_side] = -1
    return root


@kernel
def remove(key, child, root, arm):
    """Take `arm`, whose key is unchanged, out; the root then, or -1. Changes `child`. Expected O(log n)."""
    parent, side, node = -1, BEFORE, root
    while node != arm:
        side = BEFORE if comes_before(key, arm, node) else AFTER
        parent, node = node, child[node, side]
    one, two = child[arm, BEFORE], child[arm, AFTER]
    while one >= 0 or two >= 0:
        if two < 0 or (one >= 0 and _above(one, two)):
            up, up_side = one, AFTER
            one = child[one, AFTER]
        else:
            up, up_side = two, BEFORE
            two = child[two, BEFORE]
        if parent < 0:
            root = up
        else:
            child[parent, side] = up
        parent, side = up, up_side
    if parent < 0:
        return -1
    child[parent, side] = -1
    return root


@kernel
def first(child, root):
    """The first arm of the treap, which is not empty. Expected O(log n)."""
    while child[root, BEFORE] >= 0:
        root = child[root, BEFORE]
    return root


@kernel
def neighbour(key, child, root, alpha, arm, side):
    """The arm next to where (alpha, arm) stands or would stand, on this side of it, or -1. Expected O(log n)."""
    found = -1
    while root >= 0:
        behind = key[root, K_ALPHA] < alpha or (key[root, K_ALPHA] == alpha and root > arm)
        if behind == (side == AFTER):
            found = root
        root = child[root, BEFORE if behind else AFTER]
    return found


@kernel
def build(child, arms, spine):
    """A treap of `arms`, which are in order; its root. Changes `child` and `spine`, which has room for them. O(n)."""
    depth = 0
    for i in range(arms.shape[0]):
        arm = arms[i]
        below = -1
        # `spine`: the way from the root to the last arm, each after the one before.
        while depth > 0 and _above(arm, spine[depth - 1]):
            depth -= 1
            below = spine[depth]
        child[arm, BEFORE] = below
        child[arm, AFTER] = -1
        if depth > 0:
            child[spine[depth - 1], AFTER] = arm
        spine[depth] = arm
        depth += 1
    return spine[0] if depth > 0 else -1
