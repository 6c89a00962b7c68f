"""The families of uniform, partition and laminar matroids as one tree, arms in depth-first order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semibandit.arms import IntArray
from semibandit.compiled.handle import Floats1, Ints1, by_handle, make_handle
from semibandit.compiled.jit import kernel
from semibandit.matroids import Laminar, Matroid, Partition, Uniform
from semibandit.matroids.base import kind_of


class Families(NamedTuple):
    """Family f holds ``order[first[f] : last[f]]`` and the families f + 1 .. end[f] - 1; family 0 holds all arms.

    `leaf`: innermost family of each arm. `given`: capacities. Of the arms that are present: `own`, how many are in a
    family and in none inside it; `held`, how many are in a family; `bound`, its rank; `reach`, what its rank would be
    but for its own capacity. `level`: price at which a family was last solved, `price`: price of the arms of a family
    in the last round, both in units of costs. The rest is scratch; `used` is 0 between draws.
    """

    leaf: Ints1
    order: Ints1
    parent: Ints1
    first: Ints1
    last: Ints1
    end: Ints1
    given: Ints1
    own: Ints1
    held: Ints1
    bound: Ints1
    reach: Ints1
    level: Floats1
    price: Floats1
    total: Floats1
    slope: Floats1
    stack: Ints1
    used: Ints1


@kernel
def _depth_first(parent, size, number):
    """Number the families so that each comes before those inside it, and these are consecutive. O(F).

    `parent`: parents come before children. `size` is 1 before and how many families each holds, itself included,
    after; `number` gets the numbers.
    """
    n = parent.shape[0]
    for f in range(n - 1, 0, -1):
        size[parent[f]] += size[f]
    # The next free number of each family stands in `number` of the family, one more than its own.
    number[0] = 1
    for f in range(1, n):
        up = parent[f]
        mine = number[up]
        number[up] += size[f]
        number[f] = mine + 1
    for f in range(n):
        number[f] -= size[f]


@kernel
def tighten(families, present):
    """Let own, held, bound and reach be those of the arms in the mask `present`. O(K + F)."""
    own, held, bound, reach, parent = (
        families.own,
        families.held,
        families.bound,
        families.reach,
        families.parent,
    )
    for f in range(own.shape[0]):
        own[f] = 0
    for arm in range(present.shape[0]):
        if present[arm]:
            own[families.leaf[arm]] += 1
    for f in range(own.shape[0]):
        reach[f] = own[f]
        held[f] = own[f]
    for f in range(own.shape[0] - 1, -1, -1):
        bound[f] = min(families.given[f], reach[f])
        if f > 0:
            reach[parent[f]] += bound[f]
            held[parent[f]] += held[f]


def serves(matroid: Matroid) -> bool:
    """Whether the independent sets of `matroid` are told by families."""
    return kind_of(matroid) in (Uniform, Partition, Laminar)


def _tree_of(matroid: Matroid) -> tuple[IntArray, IntArray, IntArray]:
    """(innermost family of each arm, parent and capacity of each family), family 0 being the whole ground set."""
    if isinstance(matroid, Laminar):
        return matroid._leaf, matroid._parent, matroid._capacity
    if isinstance(matroid, Partition):
        parent = np.zeros(matroid.n_groups + 1, dtype=np.int64)
        parent[0] = -1
        return matroid._group + 1, parent, np.concatenate(([matroid.rank], matroid._capacity))
    return (
        np.zeros(matroid.n_arms, dtype=np.int64),
        np.array([-1], dtype=np.int64),
        np.array([matroid.rank], dtype=np.int64),
    )


def new_families(matroid: Matroid) -> Families:
    """The families of `matroid`, all arms present. O(K log K + F)."""
    leaf, around, given = _tree_of(matroid)
    n = len(around)
    size, number = np.ones(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    _depth_first(around.copy(), size, number)
    parent, capacity, end = (np.empty(n, dtype=np.int64) for _ in range(3))
    parent[number] = np.where(around < 0, -1, number[around])
    capacity[number] = given
    end[number] = number + size
    home = number[leaf]
    order = np.argsort(home, kind="stable").astype(np.int64)
    edges = np.searchsorted(home[order], np.arange(n + 1))
    made = Families(
        leaf=home,
        order=order,
        parent=parent,
        first=edges[:-1].astype(np.int64),
        last=edges[end].astype(np.int64),
        end=end,
        given=capacity,
        own=np.zeros(n, dtype=np.int64),
        held=np.zeros(n, dtype=np.int64),
        bound=np.zeros(n, dtype=np.int64),
        reach=np.zeros(n, dtype=np.int64),
        level=np.zeros(n),
        price=np.zeros(n),
        total=np.zeros(n),
        slope=np.zeros(n),
        stack=np.zeros(n, dtype=np.int64),
        used=np.zeros(n, dtype=np.int64),
    )
    by_handle(tighten, Families)(make_handle(made), np.ones(matroid.n_arms, dtype=np.bool_))
    return made
