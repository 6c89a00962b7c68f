"""The arrays of a kinetic engine: a tree a group over the arms outside the base, and the base beside them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.compiled.handle import Floats1, Floats2, Floats3, Ints1, Ints2, Whole
from semibandit.compiled.jit import inline_kernel
from semibandit.compiled.lanes import LANES
from semibandit.engines.answer import Answer, new_answer
from semibandit.engines.kinetic.tournament import KEY_ALPHA, Tree, absent_leaves, absent_nodes, tree_shape
from semibandit.matroids import Matroid, Partition, Uniform

# Columns of a group, one cache line: its arms, its tree, its part of the base, and whether that must be looked at.
SIZE, POSITION0, LEAF0, LEVELS, BASE0, N_BASE, CAPACITY, DIRTY = range(8)


class KineticState(NamedTuple):
    """Everything a round needs.

    The arms of group g ascending are its positions 0 .. SIZE - 1; `arm_of[POSITION0 + p]` and `position_of[arm]`
    translate and are empty when there is one group. A leaf holds (alpha, beta) of its arm, or ABSENT when that arm
    is in the base or deleted. `first[g]` lists where each level of g's tree begins in `node`; its root is root g.
    ``1 << shift`` is the width of the trees. `holds[g]` is a lam up to which nothing changes in a group that is not
    dirty. ``base[BASE0 : BASE0 + N_BASE]`` is a group's part of the base; `answer` lists all of it. `lam[0]` is the
    query of the last round, `played[0]` says that all arms of its answer were touched since. The rest is scratch:
    `taken` the positions that arms came from in this round, the others for sorting and for `refresh`.
    """

    recs: Floats2
    leaf: Floats3
    node: Floats3
    first: Ints2
    group: Ints2
    holds: Floats1
    arm_of: Ints1
    position_of: Ints1
    group_of: Ints1
    base: Ints1
    answer: Answer
    played: Ints1
    lam: Floats1
    taken: Ints1
    weight: Floats1
    spare_weight: Floats1
    spare_arm: Ints1
    bins: Ints1
    stack: Ints2
    shift: Whole


@inline_kernel
def tree_of(state, g):
    """Group g's tree, in registers. O(1)."""
    group = state.group[g]
    return Tree(state.leaf, state.node, state.first[g], group[LEAF0], group[LEVELS], g, state.shift)


class _Groups(NamedTuple):
    """Sizes and capacities of groups, and where arms are; without arms for a uniform matroid."""

    sizes: IntArray
    capacity: IntArray
    group_of: IntArray
    arm_of: IntArray
    position_of: IntArray


def _groups(matroid: Matroid) -> _Groups:
    nothing = np.zeros(0, dtype=np.int64)
    if isinstance(matroid, Uniform):
        sizes, capacity = (np.array([n], dtype=np.int64) for n in (matroid.n_arms, matroid.rank))
        return _Groups(sizes, capacity, nothing, nothing, nothing)
    if not isinstance(matroid, Partition):
        raise TypeError(f"KineticEngine serves uniform and partition matroids, got {matroid!r}")
    # Groups without arms are left out.
    live = np.bincount(matroid._group, minlength=len(matroid._capacity)) > 0
    renumber = np.cumsum(live) - 1
    group_of = renumber[matroid._group].astype(np.int64)
    capacity = matroid._capacity[live].astype(np.int64)
    sizes = np.bincount(group_of, minlength=len(capacity)).astype(np.int64)
    arm_of = np.argsort(group_of, kind="stable").astype(np.int64)
    position_of = np.empty(matroid.n_arms, dtype=np.int64)
    position_of[arm_of] = np.arange(matroid.n_arms) - (np.cumsum(sizes) - sizes)[group_of[arm_of]]
    return _Groups(sizes, capacity, group_of, arm_of, position_of)


def new_state(recs: FloatArray, matroid: Matroid, fanout: int) -> KineticState:
    """State with an empty base, in which every arm is in its tree; all still to be played. O(K)."""
    groups = _groups(matroid)
    sizes, capacity, n_groups = groups.sizes, groups.capacity, len(groups.sizes)
    shift = fanout.bit_length() - 1
    shapes = {int(n): tree_shape(int(n), shift) for n in np.unique(sizes)}
    depth = 1 + max(len(levels) for _, levels in shapes.values())
    leaf_blocks = np.array([shapes[int(n)][0] for n in sizes], dtype=np.int64)
    node_blocks = np.array([sum(shapes[int(n)][1]) for n in sizes], dtype=np.int64)
    offsets = {n: np.cumsum([0, *levels])[:-1] for n, (_, levels) in shapes.items()}
    first = np.zeros((n_groups, depth), dtype=np.int64)
    for g, n in enumerate(sizes):
        first[g, : len(offsets[int(n)])] = offsets[int(n)]
    root_blocks = -(-n_groups // LANES)
    first += root_blocks + (np.cumsum(node_blocks) - node_blocks)[:, None]

    group = np.zeros((n_groups, 8), dtype=np.int64)
    group[:, SIZE] = sizes
    group[:, POSITION0] = np.cumsum(sizes) - sizes
    group[:, LEAF0] = np.cumsum(leaf_blocks) - leaf_blocks
    group[:, LEVELS] = [1 + len(shapes[int(n)][1]) for n in sizes]
    group[:, BASE0] = np.cumsum(capacity) - capacity
    group[:, CAPACITY] = capacity
    group[:, DIRTY] = 1

    leaf = absent_leaves(int(leaf_blocks.sum()))
    lanes = np.arange(leaf.shape[0] * fanout).reshape(-1, fanout)
    first_lane = lanes[np.repeat(group[:, LEAF0], leaf_blocks), :1]
    leaf[:, KEY_ALPHA, :fanout][lanes - first_lane < np.repeat(sizes, leaf_blocks)[:, None]] = 0.0

    rank = matroid.rank
    return KineticState(
        recs=recs,
        leaf=leaf,
        node=absent_nodes(root_blocks + int(node_blocks.sum())),
        first=first,
        group=group,
        holds=np.full(n_groups, -1.0),
        arm_of=groups.arm_of,
        position_of=groups.position_of,
        group_of=groups.group_of,
        base=np.zeros(rank, dtype=np.int64),
        answer=new_answer(rank),
        played=np.zeros(1, dtype=np.int64),
        lam=np.zeros(1),
        taken=np.zeros(rank, dtype=np.int64),
        weight=np.zeros(rank),
        spare_weight=np.zeros(rank),
        spare_arm=np.zeros(rank, dtype=np.int64),
        bins=np.zeros(max(rank + 2, 257), dtype=np.int64),
        stack=np.zeros((LANES * (depth + 1), 3), dtype=np.int64),
        shift=shift,
    )
