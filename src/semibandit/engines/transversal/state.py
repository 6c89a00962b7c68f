"""What challenger bounds for transversal matroids keep: declared once, by name, and made here.

Kernels of this room get it as a handle and open it (`open_challengers`): a few register moves, and what a kernel does
not use is not even loaded. Sets of right nodes are rows of bits (`bits`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from semibandit.arms import ALPHA, BETA, FloatArray, IntArray
from semibandit.compiled.handle import (
    Bytes1,
    Flags1,
    Floats1,
    Floats2,
    Ints1,
    Ints2,
    Shorts1,
    Shorts2,
    opener,
)
from semibandit.compiled.jit import inline_kernel
from semibandit.engines.transversal.bits import all_of, empty_sets
from semibandit.matroids import Transversal

# Tournaments compare so many weights at a time: a cache line of them.
SHIFT = 3
FANOUT = 1 << SHIFT
_LINE = 64

# Columns of an edge, arm by arm: its right node and its slot there.
RIGHT, SLOT = 0, 1

# `matched_node` of an arm that is not in the base.
OUTSIDER, ABSENT = -1, -2

# Bits of `listed`: the arm is in that list.
IN_ANSWER, IN_ENTRANTS, IN_PASSED, IN_RISEN = 1, 2, 4, 8

# Entries of `work`, which counts: right nodes reached by searches, slots changed, searches, re-solves.
STEPS, SLOTS, SEARCHES, SOLVES = range(4)
N_WORK = 4


class BestOutsiders(NamedTuple):
    """A tournament of outsiders for each right node; see `best_outsiders`.

    Slots of right node r start at `first_slot[r]`, its inner nodes at `first_node[r]`. `arm_in` is the arm in each
    slot, -1 in padding; `leaf` its weight, -inf unless it is an outsider; node r is the root of right node r.
    """

    first_slot: Ints1
    first_node: Ints1
    arm_in: Shorts1
    leaf: Floats1
    node_weight: Floats1
    node_slot: Shorts1


class Matching(NamedTuple):
    """The base, each arm matched to a right node; see `matching`.

    `matched_node` by arm (or OUTSIDER, ABSENT), `matched_arm` by right node (or -1); `free` is the set of right nodes
    without an arm. ``ahead[r]``: the right nodes next to the arm matched to r; ``behind[r]``: the right nodes whose
    arm is next to r. `n_base[0]` arms are matched.
    """

    matched_node: Shorts1
    matched_arm: Ints1
    free: Ints1
    ahead: Ints2
    behind: Ints2
    n_base: Ints1


class Bounds(NamedTuple):
    """By right node: (weight, arm) not lighter than the best challenger of the arm matched there; (-inf, -1): none."""

    weight: Floats1
    arm: Ints1


class Search(NamedTuple):
    """Scratch of searches: right nodes `reached` as a set and as a `queue`, and `via` which other one."""

    reached: Ints1
    queue: Ints1
    via: Ints1


class ArmList(NamedTuple):
    """`arms[:length[0]]`, without repeats."""

    arms: Ints1
    length: Ints1


class TopTournament(NamedTuple):
    """Scratch of re-solving: a tournament over right nodes `node_ids` = 0, 1, .. by (weight, arm).

    `winner` holds the right node that wins at each node, level by level, the root last.
    """

    node_ids: Ints1
    weight: Floats1
    arm: Ints1
    winner: Ints1


class ReSolving(NamedTuple):
    """`order`: all right nodes, those of heavy arms first as of the last re-solve. The rest is scratch.

    Base arms to look at with their `weight`, space to sort them, the arms `picked` so far, and the set of right nodes
    that are `dead`, which is empty between two re-solves.
    """

    order: Ints1
    arm: Ints1
    weight: Floats1
    spare_arm: Ints1
    spare_weight: Floats1
    picked: Ints1
    dead: Ints1


class Challengers(NamedTuple):
    """Everything a round needs.

    `edge[indptr[k] : indptr[k + 1]]` are the edges of arm k. `answer` is the last answer, ascending; `entrants` came
    into the base since; `passed` are base arms lighter than their bound, `risen` outsiders heavier than before. What
    is not to be trusted any more: tournaments (`best_stale[0]`), bounds (`bounds_stale[0]`), the list of entrants
    (`answer_stale[0]`). `lam[0]` is the query of all weights in here.
    """

    recs: Floats2
    indptr: Ints1
    edge: Shorts2
    best: BestOutsiders
    matching: Matching
    bounds: Bounds
    search: Search
    answer: ArmList
    entrants: ArmList
    passed: ArmList
    risen: ArmList
    listed: Bytes1
    top: TopTournament
    solving: ReSolving
    best_stale: Flags1
    bounds_stale: Flags1
    answer_stale: Flags1
    work: Ints1
    lam: Floats1


open_challengers = opener(Challengers)


@inline_kernel
def weigh(recs, lam, arm):
    """The weight of `arm` at the query lam[0]."""
    return recs[arm, ALPHA] + lam[0] * recs[arm, BETA]


@inline_kernel
def beats(weight, arm, other_weight, other):
    """The one total order: heavier, then smaller id."""
    return weight > other_weight or (weight == other_weight and arm < other)


@inline_kernel
def note(arms, listed, bit, arm):
    """Put `arm` on a list, once; False when the list is full. Changes the list and `listed`. O(1)."""
    if listed[arm] & bit:
        return True
    n = arms.length[0]
    if n == arms.arms.shape[0]:
        return False
    listed[arm] |= bit
    arms.arms[n] = arm
    arms.length[0] = n + 1
    return True


@inline_kernel
def forget(arms, listed, bit):
    """Empty a list. Changes it and `listed`. O(length)."""
    for i in range(arms.length[0]):
        listed[arms.arms[i]] &= ~np.uint8(bit)
    arms.length[0] = 0


# -- making it ----------------------------------------------------------------------------------------------------


def new_challengers(matroid: Transversal, recs: FloatArray) -> Challengers:
    """A state whose base is still to be found. O(edges log edges + n_right^2 / 64)."""
    n_right = matroid.n_right
    indptr, edge, best = _new_graph(matroid)

    def ints(n: int) -> IntArray:
        return np.zeros(n, dtype=np.int64)

    def arm_list() -> ArmList:
        return ArmList(ints(n_right), ints(1))

    return Challengers(
        recs=recs,
        indptr=indptr,
        edge=edge,
        best=best,
        matching=Matching(
            matched_node=np.full(matroid.n_arms, OUTSIDER, dtype=np.int32),
            matched_arm=np.full(n_right, -1, dtype=np.int64),
            free=all_of(n_right),
            ahead=empty_sets(n_right, n_right),
            behind=empty_sets(n_right, n_right),
            n_base=ints(1),
        ),
        bounds=Bounds(np.full(n_right, -np.inf), np.full(n_right, -1, dtype=np.int64)),
        search=Search(empty_sets(1, n_right)[0], ints(n_right), ints(n_right)),
        answer=arm_list(),
        entrants=arm_list(),
        passed=arm_list(),
        risen=arm_list(),
        listed=np.zeros(matroid.n_arms, dtype=np.uint8),
        top=TopTournament(
            node_ids=np.arange(n_right), weight=np.zeros(n_right), arm=ints(n_right), winner=ints(n_right)
        ),
        solving=ReSolving(
            order=np.arange(n_right),
            arm=ints(n_right),
            weight=np.zeros(n_right),
            spare_arm=ints(n_right),
            spare_weight=np.zeros(n_right),
            picked=ints(n_right),
            dead=empty_sets(1, n_right)[0],
        ),
        best_stale=np.ones(1, dtype=np.bool_),
        bounds_stale=np.zeros(1, dtype=np.bool_),
        answer_stale=np.zeros(1, dtype=np.bool_),
        work=ints(N_WORK),
        lam=np.zeros(1),
    )


def _new_graph(matroid: Transversal) -> tuple[IntArray, npt.NDArray[np.int32], BestOutsiders]:
    """`indptr`, `edge` and the empty tournaments over its slots.

    Slots lie right node by right node and within a right node by arm id.
    """
    n_arms, n_right = matroid.n_arms, matroid.n_right
    owner = np.repeat(np.arange(n_arms, dtype=np.int64), np.diff(matroid._indptr))
    # A neighbour named twice would stand in its tournament twice.
    pairs = np.sort(owner * n_right + matroid._indices, kind="stable")
    pairs = pairs[np.diff(pairs, prepend=-1) != 0]
    owner, node = pairs // n_right, pairs % n_right
    degree = np.bincount(node, minlength=n_right).astype(np.int64)
    first_slot = _offsets(_padded(degree))
    # Blocks of inner nodes start at whole cache lines, like blocks of slots.
    begin = int(_padded(np.array([n_right], dtype=np.int64))[0])
    first_node = begin + _offsets(_inner_nodes(np.diff(first_slot)))
    n_slots, n_nodes = int(first_slot[-1]), int(first_node[-1])
    edge = np.zeros((len(pairs), 2), dtype=np.int32)
    edge[:, RIGHT] = node
    within = np.arange(len(pairs)) - np.repeat(_offsets(degree)[:-1], degree)
    # numpy sorts 16-bit integers by radix, ten times faster than others.
    by_right = np.argsort(node.astype(np.uint16) if n_right <= 1 << 16 else node, kind="stable")
    edge[by_right, SLOT] = np.repeat(first_slot[:-1], degree) + within
    arm_in = np.full(n_slots, -1, dtype=np.int32)
    arm_in[edge[:, SLOT]] = owner
    best = BestOutsiders(
        first_slot=first_slot,
        first_node=first_node,
        arm_in=arm_in,
        leaf=_lines_of_weights(n_slots),
        node_weight=_lines_of_weights(n_nodes),
        node_slot=np.zeros(n_nodes, dtype=np.int32),
    )
    return _offsets(np.bincount(owner, minlength=n_arms)), edge, best


def _offsets(sizes: IntArray) -> IntArray:
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def _padded(n: IntArray) -> IntArray:
    """Sizes rounded up to whole blocks."""
    return (n + FANOUT - 1) >> SHIFT << SHIFT


def _inner_nodes(n_slots: IntArray) -> IntArray:
    """How many nodes there are between leaves and root over so many slots (padded). O(n_right log K)."""
    total = np.zeros_like(n_slots)
    width = n_slots >> SHIFT
    while (width > 1).any():
        width = np.where(width > 1, _padded(width), 0)
        total += width
        width = width >> SHIFT
    return total


def _lines_of_weights(n: int) -> FloatArray:
    """n weights of -inf, the first at the start of a cache line. O(n)."""
    raw = np.empty(n * 8 + _LINE, dtype=np.uint8)
    start = -raw.ctypes.data % _LINE
    weights = raw[start : start + n * 8].view(np.float64)
    weights[:] = -np.inf
    return weights
