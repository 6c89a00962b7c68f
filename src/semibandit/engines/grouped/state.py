"""The arrays of the grouped engine: a treap for each group, and a table that finds a group."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.compiled.handle import Flags1, Floats1, Floats2, Ints1, Ints2

# Columns of `child` (the subtree that comes before and the one that comes after), of `key`, of `group` and `best`.
BEFORE, AFTER = 0, 1
K_ALPHA, K_BETA = 0, 1
ROOT, FIRST, CLASS = 0, 1, 2
G_ALPHA, G_BETA = 0, 1
# Of `meta`.
LIVE = 0


class GroupedState(NamedTuple):
    """Groups ``0 .. meta[LIVE] - 1``, each the present arms of one class with the same `beta`.

    `key`: the weight parts under which a present arm stands. `child`: its subtrees in the treap of its group. `group`
    and `best`: root, first arm and class of each group; alpha of the first arm, and beta. `table`: one more than the
    number of a group, 0 where none is. Class c may have ``start[c + 1] - start[c]`` arms in a base, and its candidates
    stand in that part of `heap_weight` and `heap_arm`, `size[c]` of them; `passed[c]` is the heaviest that had no room.
    `classes` is empty where there is one class.
    """

    recs: Floats2
    present: Flags1
    classes: Ints1
    key: Floats2
    child: Ints2
    group: Ints2
    best: Floats2
    table: Ints1
    meta: Ints1
    start: Ints1
    size: Ints1
    passed: Floats1
    heap_weight: Floats1
    heap_arm: Ints1


def new_state(recs: FloatArray, classes: IntArray, capacity: IntArray) -> GroupedState:
    """No arm is in a group yet. O(K), most of it pages that are never touched."""
    n = len(recs)
    start = np.concatenate([[0], np.cumsum(capacity)]).astype(np.int64)
    return GroupedState(
        recs=recs,
        present=np.zeros(n, dtype=np.bool_),
        classes=classes,
        key=np.zeros((n, 2)),
        child=np.zeros((n, 2), dtype=np.int64),
        group=np.zeros((n, 3), dtype=np.int64),
        best=np.zeros((n, 2)),
        table=np.zeros(1 << (2 * n - 1).bit_length(), dtype=np.int64),
        meta=np.zeros(1, dtype=np.int64),
        start=start,
        size=np.zeros(len(capacity), dtype=np.int64),
        passed=np.zeros(len(capacity)),
        heap_weight=np.zeros(int(start[-1])),
        heap_arm=np.zeros(int(start[-1]), dtype=np.int64),
    )
