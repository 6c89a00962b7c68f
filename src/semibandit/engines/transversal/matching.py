"""The base of a transversal matroid, matched to right nodes, with a bound for each base arm: state and moves.

An alternating path leads from an arm to one of its right nodes, on to the arm matched there, to another right node
of that arm, and so forth. An outsider can replace exactly the base arms that such paths from it reach. Only edges of
base arms matter for paths, and they are kept as bits: row `ahead` of right node r is the set of right nodes next to
the arm matched to r, row `behind` the set of right nodes whose arm is next to r. So a search, forwards or backwards,
costs O(n_right / 64) for each right node it reaches and never sees an outsider.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semibandit.arms import ALPHA, BETA, FloatArray, IntArray
from semibandit.compiled.handle import Bytes1, Floats1, Floats2, Ints1, Ints2, Shorts1, Shorts2, opener
from semibandit.compiled.lanes import lowest_bit
from semibandit.engines.transversal.tops import (
    FIRST_NODE,
    FIRST_SLOT,
    RIGHT,
    SLOT,
    inner,
    inner_nodes,
    lines_of_weights,
    padded,
    show,
)
from semibandit.matroids import Transversal

# Columns of `right`: the arm matched to a right node or -1, the arm of that arm's bound; scratch of searches: the
# right node it was reached from.
MATE, BOUND_ARM, VIA = range(3)

# `host` of an arm that has no right node.
OUTSIDER, ABSENT = -1, -2

# Rows of `lists`: the last answer, arms that came in since, base arms lighter than their bound, outsiders heavier
# than before; 0, 1, .. n_right - 1; right nodes, those of heavy arms first as of the last re-solve. Scratch: right
# nodes reached by a search; base arms to re-solve; keys and nodes of the crown.
SORTED, CAME, PASSED, RISEN, NAMES, ORDER, QUEUE, WORK, KEY, CROWN = range(10)

# Bits of `flag`: the arm is in that list.
IN_SORTED, IN_CAME, IN_PASSED, IN_RISEN = 1, 2, 4, 8

# Rows of `weights`: bounds; scratch: weights of WORK and of KEY.
BOUND, WORK_WEIGHT, KEY_WEIGHT = range(3)

# Rows of `bits`, sets of right nodes: those without an arm; scratch of searches; scratch of re-solving. Then the rows
# `ahead` of all right nodes, then the rows `behind`.
FREE, SEEN, DEAD, AHEAD = range(4)

# Entries of `meta`: lengths; STALE: the tournaments are not to be trusted; CROWDED: the bounds are not, so re-solve;
# RELIST: more came in than the list can hold. The last four count work: right nodes reached, slots changed,
# searches, re-solves.
N_BASE, N_SORTED, N_CAME, N_PASSED, N_RISEN, STALE, CROWDED, RELIST = range(8)
STEPS, SLOTS, SEARCHES, SOLVES = range(8, 12)
N_META = 12


class ChallengerArrays(NamedTuple):
    """Everything a round needs; kernels get it as a handle (`transversal_open`).

    `edge[indptr[k] : indptr[k + 1]]` are the edges of arm k, `arm_of` the arm in each slot; `first`, `leaf`,
    `node_weight`, `node_slot`: see `transversal_tops`. `host` is the right node of each base arm.
    """

    recs: Floats2
    indptr: Ints1
    edge: Shorts2
    arm_of: Shorts1
    first: Ints2
    leaf: Floats1
    node_weight: Floats1
    node_slot: Shorts1
    host: Shorts1
    flag: Bytes1
    right: Ints2
    lists: Ints2
    weights: Floats2
    bits: Ints2
    meta: Ints1
    lam: Floats1


open_challenger = opener(ChallengerArrays)


def new_challenger_arrays(matroid: Transversal, recs: FloatArray) -> ChallengerArrays:
    """A state whose base is still to be found. O(edges log edges + n_right^2 / 64)."""
    n_arms, n_right = matroid.n_arms, matroid.n_right
    owner = np.repeat(np.arange(n_arms, dtype=np.int64), np.diff(matroid._indptr))
    # A neighbour named twice would stand in its tournament twice.
    pairs = np.sort(owner * n_right + matroid._indices, kind="stable")
    pairs = pairs[np.diff(pairs, prepend=-1) != 0]
    owner, node = pairs // n_right, pairs % n_right
    degree = np.bincount(node, minlength=n_right).astype(np.int64)
    first = np.zeros((2, n_right + 1), dtype=np.int64)
    first[FIRST_SLOT] = _offsets(padded(degree))
    # Blocks of inner nodes start at whole cache lines, like blocks of slots.
    begin = int(padded(np.array([n_right], dtype=np.int64))[0])
    first[FIRST_NODE] = begin + _offsets(inner_nodes(np.diff(first[FIRST_SLOT])))
    n_slots, n_nodes = (int(n) for n in first[:, -1])
    edge = np.zeros((len(pairs), 2), dtype=np.int32)
    edge[:, RIGHT] = node
    within = np.arange(len(pairs)) - np.repeat(_offsets(degree)[:-1], degree)
    # numpy sorts 16-bit integers by radix, ten times faster than others.
    by_right = np.argsort(node.astype(np.uint16) if n_right <= 1 << 16 else node, kind="stable")
    edge[by_right, SLOT] = np.repeat(first[FIRST_SLOT, :-1], degree) + within
    arm_of = np.full(n_slots, -1, dtype=np.int32)
    arm_of[edge[:, SLOT]] = owner
    lists = np.zeros((10, n_right), dtype=np.int64)
    lists[[NAMES, ORDER]] = np.arange(n_right)
    bits = np.zeros((AHEAD + 2 * n_right, (n_right + 63) >> 6), dtype=np.int64)
    bits[FREE] = -1
    if n_right & 63:
        bits[FREE, -1] = (1 << (n_right & 63)) - 1
    meta = np.zeros(N_META, dtype=np.int64)
    meta[STALE] = 1
    return ChallengerArrays(
        recs=recs,
        indptr=_offsets(np.bincount(owner, minlength=n_arms)),
        edge=edge,
        arm_of=arm_of,
        first=first,
        leaf=lines_of_weights(n_slots),
        node_weight=lines_of_weights(n_nodes),
        node_slot=np.zeros(n_nodes, dtype=np.int32),
        host=np.full(n_arms, OUTSIDER, dtype=np.int32),
        flag=np.zeros(n_arms, dtype=np.uint8),
        right=np.full((n_right, 3), -1, dtype=np.int64),
        lists=lists,
        weights=np.full((3, n_right), -np.inf),
        bits=bits,
        meta=meta,
        lam=np.zeros(1),
    )


def _offsets(sizes: IntArray) -> IntArray:
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


@inner
def weigh(recs, lam, arm):
    """The weight of `arm` at lam[0]."""
    return recs[arm, ALPHA] + lam[0] * recs[arm, BETA]


@inner
def beats(weight, arm, other_weight, other):
    """The one total order: heavier, then smaller id."""
    return weight > other_weight or (weight == other_weight and arm < other)


@inner
def _turn_bits(indptr, edge, bits, arm, r):
    """Write `arm` as the one matched to r into the rows, or if it stands there wipe it out. O(degree)."""
    word, bit = r >> 6, np.int64(1) << (r & 63)
    behind = AHEAD + ((bits.shape[0] - AHEAD) >> 1)
    for p in range(indptr[arm], indptr[arm + 1]):
        q = np.int64(edge[p, RIGHT])
        bits[AHEAD + r, q >> 6] ^= np.int64(1) << (q & 63)
        bits[behind + q, word] ^= bit


@inner
def seat(indptr, edge, bits, right, host, arm, r):
    """Match `arm` to right node r, whoever was matched there. O(degree)."""
    old = right[r, MATE]
    if old != arm:
        if old >= 0:
            _turn_bits(indptr, edge, bits, old, r)
        _turn_bits(indptr, edge, bits, arm, r)
        right[r, MATE] = arm
    host[arm] = r
    bits[FREE, r >> 6] &= ~(np.int64(1) << (r & 63))


@inner
def unseat(indptr, edge, bits, right, r):
    """Leave right node r without an arm. O(degree)."""
    if right[r, MATE] >= 0:
        _turn_bits(indptr, edge, bits, right[r, MATE], r)
    right[r, MATE] = -1
    bits[FREE, r >> 6] |= np.int64(1) << (r & 63)


@inner
def enter(handle, arm):
    """An outsider that was seated joins the base and leaves the tournaments. O(degree log K)."""
    state = open_challenger(handle)
    meta, flag = state.meta, state.flag
    show(
        state.indptr,
        state.edge,
        state.first,
        state.leaf,
        state.node_weight,
        state.node_slot,
        arm,
        -np.inf,
    )
    meta[SLOTS] += state.indptr[arm + 1] - state.indptr[arm]
    meta[N_BASE] += 1
    if flag[arm] & (IN_SORTED | IN_CAME) == 0:
        n = meta[N_CAME]
        if n == state.lists.shape[1]:
            meta[RELIST] = 1
            return
        flag[arm] |= IN_CAME
        state.lists[CAME, n] = arm
        meta[N_CAME] = n + 1


@inner
def leave(handle, arm):
    """A base arm that lost its seat becomes an outsider, which stands in the tournaments. O(degree log K)."""
    state = open_challenger(handle)
    state.host[arm] = OUTSIDER
    state.meta[N_BASE] -= 1
    state.meta[SLOTS] += state.indptr[arm + 1] - state.indptr[arm]
    weight = weigh(state.recs, state.lam, arm)
    show(
        state.indptr,
        state.edge,
        state.first,
        state.leaf,
        state.node_weight,
        state.node_slot,
        arm,
        weight,
    )


@inner
def search(bits, right, lists, meta, node_weight, node_slot, arm_of, start):
    """Right node whose top is the best challenger of the arm matched to `start`, or -1.

    Walks alternating paths backwards; VIA leads from each right node reached towards `start`. O(n_right / 64) for
    each right node reached. Changes scratch and counts.
    """
    n_words = bits.shape[1]
    behind = AHEAD + right.shape[0]
    for word in range(n_words):
        bits[SEEN, word] = 0
    bits[SEEN, start >> 6] = np.int64(1) << (start & 63)
    lists[QUEUE, 0] = start
    n, i, at = 1, 0, -1
    top = -np.inf
    while i < n:
        r = lists[QUEUE, i]
        i += 1
        w = node_weight[r]
        if w > top or (w == top and w > -np.inf and arm_of[node_slot[r]] < arm_of[node_slot[at]]):
            top = w
            at = r
        for word in range(n_words):
            new = bits[behind + r, word] & ~bits[SEEN, word]
            bits[SEEN, word] |= new
            while new != 0:
                q = (word << 6) + lowest_bit(new)
                new &= new - 1
                right[q, VIA] = r
                lists[QUEUE, n] = q
                n += 1
    meta[STEPS] += n
    meta[SEARCHES] += 1
    return at


@inner
def rotate(handle, arm, at, start):
    """Match outsider `arm` to `at` and shift the arms along VIA up to `start`, each with its bound; the arm matched
    to `start` loses its seat. The bound of `arm` is its own weight. O(length of the path * degree)."""
    state = open_challenger(handle)
    right, weights = state.right, state.weights
    mover, mover_bound, mover_rival = arm, weigh(state.recs, state.lam, arm), arm
    r = at
    while True:
        pushed, pushed_bound, pushed_rival = (
            right[r, MATE],
            weights[BOUND, r],
            right[r, BOUND_ARM],
        )
        seat(state.indptr, state.edge, state.bits, right, state.host, mover, r)
        weights[BOUND, r] = mover_bound
        right[r, BOUND_ARM] = mover_rival
        if r == start:
            return
        mover, mover_bound, mover_rival = pushed, pushed_bound, pushed_rival
        r = right[r, VIA]


@inner
def augment(handle, arm):
    """Seat `arm`, shifting base arms along an alternating path to a free right node, each with its bound.

    Right nodes in DEAD are not entered. Returns -1, or if there is no such path how many right nodes `arm` reaches
    (they are in QUEUE). O(n_right / 64) for each right node reached. Changes the matching, scratch and counts.
    """
    state = open_challenger(handle)
    indptr, edge, bits, right = state.indptr, state.edge, state.bits, state.right
    lists, weights = state.lists, state.weights
    n_words = bits.shape[1]
    free, last = -1, -1
    for p in range(indptr[arm], indptr[arm + 1]):
        r = np.int64(edge[p, RIGHT])
        if (bits[FREE, r >> 6] >> (r & 63)) & 1:
            free = r
            break
    n, i = 0, 0
    if free < 0:
        for word in range(n_words):
            bits[SEEN, word] = bits[DEAD, word]
        for p in range(indptr[arm], indptr[arm + 1]):
            r = np.int64(edge[p, RIGHT])
            if (bits[SEEN, r >> 6] >> (r & 63)) & 1 == 0:
                bits[SEEN, r >> 6] |= np.int64(1) << (r & 63)
                right[r, VIA] = -1
                lists[QUEUE, n] = r
                n += 1
    while free < 0 and i < n:
        r = lists[QUEUE, i]
        i += 1
        for word in range(n_words):
            new = bits[AHEAD + r, word] & ~bits[SEEN, word]
            if new & bits[FREE, word] != 0:
                free, last = (word << 6) + lowest_bit(new & bits[FREE, word]), r
                break
            bits[SEEN, word] |= new
            while new != 0:
                q = (word << 6) + lowest_bit(new)
                new &= new - 1
                right[q, VIA] = r
                lists[QUEUE, n] = q
                n += 1
    state.meta[STEPS] += n
    if free < 0:
        return n
    while last >= 0:
        weights[BOUND, free] = weights[BOUND, last]
        right[free, BOUND_ARM] = right[last, BOUND_ARM]
        seat(indptr, edge, bits, right, state.host, right[last, MATE], free)
        free = last
        last = right[last, VIA]
    weights[BOUND, free] = -np.inf
    right[free, BOUND_ARM] = -1
    seat(indptr, edge, bits, right, state.host, arm, free)
    return -1
