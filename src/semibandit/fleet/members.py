"""The kernels of a fleet: members that share a matroid and nothing else.

A member keeps count and total of each arm, and its weight at the last stair of the member's clock (docs/theory.md, D):
between two stairs only arms that get feedback change weight. Arms stand by group, ascending, in blocks that never
reach over the end of a group; of each block the heaviest arm is known. The heaviest arms of a group are then found
among its blocks, and a change of an arm costs one look at its block.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.compiled.handle import Floats1, Floats2, Ints1, Ints2, Whole, by_handle
from semibandit.compiled.jit import inline_kernel
from semibandit.compiled.lanes import LANES, first_max
from semibandit.compiled.memory import prefetch, prefetch_to_write
from semibandit.compiled.sorting import sort_ids_in_place
from semibandit.engines.clock import CURRENT, tick
from semibandit.matroids import Matroid, Partition

# What `check` tells of feedback that is refused, as ``kind + 4 * position``.
BAD_MEMBER, BAD_ARM, BAD_REWARD = 1, 2, 3

# Numbers in a cache line, and how many members ahead memory is asked for when they learn.
_LINE, _AHEAD = 8, 2


class Members(NamedTuple):
    """`count`, `total`, `weight`: by member and position. `top`, `at`: weight and position of the heaviest arm of each
    block. `clock`, `t`: of each member (`engines.clock`). `arm_of`, `place_of`, `block_of`: arms by position, positions
    by arm, blocks by position. `start`: first position of each block and the end. `group`: first block and capacity of
    each group, and the end. `known`: counts and means of arms never seen, by position; count 0 where it comes first.
    `best`, `opened`, `room`: scratch, the weights of a group's blocks, the place of each one's heaviest arm, a copy of
    each, `wide` entries apart."""

    count: Floats2
    total: Floats2
    weight: Floats2
    top: Floats2
    at: Ints2
    clock: Floats2
    t: Ints1
    arm_of: Ints1
    place_of: Ints1
    block_of: Ints1
    start: Ints1
    group: Ints2
    known: Floats2
    best: Floats1
    opened: Ints1
    room: Floats1
    wide: Whole


def _layout(matroid: Matroid) -> tuple[IntArray, IntArray, IntArray]:
    """Arms by position, the first position of each block and the end, and the rows of `Members.group`. O(K log K)."""
    n = matroid.n_arms
    if isinstance(matroid, Partition):
        owner, capacity = matroid._group, matroid._capacity
    else:
        owner, capacity = np.zeros(n, dtype=np.int64), np.array([matroid.rank])
    arm_of = np.argsort(owner, kind="stable").astype(np.int64)
    start: list[int] = []
    group: list[tuple[int, int]] = []
    end = 0
    for g, size in enumerate(np.bincount(owner, minlength=len(capacity)).tolist()):
        if size == 0:
            continue
        group.append((len(start), min(int(capacity[g]), size)))
        # As many blocks as arms in a block: both are gone through, by vectors.
        wide = LANES * max(1, round(math.sqrt(size) / LANES))
        start += range(end, end + size, wide)
        end += size
    group.append((len(start), 0))
    return arm_of, np.array([*start, end], dtype=np.int64), np.array(group, dtype=np.int64)


def new_members(matroid: Matroid, size: int, clock: FloatArray, known: FloatArray) -> Members:
    """`size` members that have played nothing. `known`: a row for each arm, see `Members`. O(size K)."""
    n = matroid.n_arms
    arm_of, start, group = _layout(matroid)
    place_of = np.empty(n, dtype=np.int64)
    place_of[arm_of] = np.arange(n)
    blocks, most = len(start) - 1, int(np.diff(group[:, 0]).max())
    wide = -(-int(np.diff(start).max()) // LANES) * LANES
    known = np.ascontiguousarray(known[arm_of].T)
    members = Members(
        count=np.tile(known[0], (size, 1)),
        total=np.tile(known[0] * known[1], (size, 1)),
        weight=np.empty((size, n)),
        top=np.empty((size, blocks)),
        at=np.empty((size, blocks), dtype=np.int64),
        clock=np.tile(clock, (size, 1)),
        t=np.zeros(size, dtype=np.int64),
        arm_of=arm_of,
        place_of=place_of,
        block_of=np.repeat(np.arange(blocks), np.diff(start)),
        start=start,
        group=group,
        known=known,
        best=np.empty(most + LANES),
        opened=np.empty(most, dtype=np.int64),
        room=np.empty(most * wide),
        wide=wide,
    )
    reweigh_all(members)
    return members


def reweigh_all(members: Members) -> None:
    """Make the weights and blocks of all members from counts, totals and clocks. O(size K) arithmetic."""
    seen = members.count > 0.0
    fresh = members.count == members.known[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        alpha = np.where(fresh, members.known[1], members.total / members.count)
        beta = 1.0 / np.sqrt(members.count)
        members.weight[:] = np.where(seen, alpha + members.clock[:, CURRENT : CURRENT + 1] * beta, np.inf)
    first = members.start[:-1]
    members.top[:] = np.maximum.reduceat(members.weight, first, axis=1)
    for b, (begin, end) in enumerate(zip(first, members.start[1:], strict=True)):
        members.at[:, b] = begin + np.argmax(members.weight[:, begin:end], axis=1)


@inline_kernel
def _weigh(state, u, p):
    """Write the weight of the arm at position p of member u. O(1)."""
    n = state.count[u, p]
    if n <= 0.0:
        state.weight[u, p] = np.inf
    else:
        alpha = state.known[1, p] if n == state.known[0, p] else state.total[u, p] / n
        state.weight[u, p] = alpha + state.clock[u, CURRENT] * (1.0 / math.sqrt(n))


@inline_kernel
def _weigh_all(state, u):
    """`_weigh` of all positions of member u: the same numbers, chosen without branches, so that they are made as
    vectors. O(K)."""
    count, total, weight, lam = state.count[u], state.total[u], state.weight[u], state.clock[u, CURRENT]
    first, mean = state.known[0], state.known[1]
    for p in range(weight.shape[0]):
        n = count[p]
        alpha = total[p] / n
        alpha = mean[p] if n == first[p] else alpha
        w = alpha + lam * (1.0 / math.sqrt(n))
        weight[p] = np.inf if n <= 0.0 else w


@inline_kernel
def _heaviest(array, start, vectors, changed, value):
    """(largest, index) of so many vectors of an array, of equal ones the first; entry `changed` counts as `value`.

    O(vectors)."""
    best, where = -np.inf, start
    for v in range(vectors):
        begin = start + LANES * v
        lane = changed - begin if begin <= changed < begin + LANES else -1
        i = first_max(array, begin, lane, value)
        w = value if i == changed else array[i]
        if w > best:
            best, where = w, i
    return best, where


@inline_kernel
def _look(state, u, b):
    """Find the heaviest arm of a block of member u. O(its size)."""
    weight = state.weight[u]
    begin, end = state.start[b], state.start[b + 1]
    if (end - begin) % LANES == 0:
        best, where = _heaviest(weight, begin, (end - begin) // LANES, -1, 0.0)
    else:
        best, where = weight[begin], begin
        for p in range(begin + 1, end):
            if weight[p] > best:
                best, where = weight[p], p
    state.top[u, b] = best
    state.at[u, b] = where


@inline_kernel
def _choose(state, u, without, out):
    """The heaviest arms of every group of member u but those in `without`, ascending, into `out`, which -1 fills up.

    Blocks are copied before arms are taken out of them. O(sum over groups of (capacity + arms left out) x sqrt(group)).
    """
    best, opened, room, wide = state.best, state.opened, state.room, state.wide
    n = 0
    for g in range(state.group.shape[0] - 1):
        first = state.group[g, 0]
        blocks = state.group[g + 1, 0] - first
        vectors = (blocks + LANES - 1) // LANES
        for j in range(blocks):
            best[j] = state.top[u, first + j]
            opened[j] = -1
        for j in range(blocks, LANES * vectors):
            best[j] = -np.inf
        left = state.group[g, 1]
        weight, j = _heaviest(best, 0, vectors, -1, 0.0)
        # The best of the other blocks: while it loses, the next arm is of the same block.
        other, rival = _heaviest(best, 0, vectors, j, -np.inf)
        while left > 0:
            if weight < other or (weight == other and rival < j):
                best[j] = weight
                weight, j = other, rival
                other, rival = _heaviest(best, 0, vectors, j, -np.inf)
            if weight == -np.inf:  # nothing is left of this group
                break
            b = first + j
            begin, end = state.start[b], state.start[b + 1]
            if opened[j] < 0:
                for p in range(begin, end):
                    room[wide * j + p - begin] = state.weight[u, p]
                for i in range(end - begin, (end - begin + LANES - 1) // LANES * LANES):
                    room[wide * j + i] = -np.inf
                opened[j] = state.at[u, b] - begin
            place = opened[j]
            arm = state.arm_of[begin + place]
            wanted = True
            for i in range(without.shape[0]):
                wanted &= without[i] != arm
            if wanted:
                out[n] = arm
                n += 1
                left -= 1
            if left > 0:
                gone = wide * j + place
                room[gone] = -np.inf
                weight, i = _heaviest(room, wide * j, (end - begin + LANES - 1) // LANES, gone, -np.inf)
                opened[j] = i - wide * j
    sort_ids_in_place(out, n)
    for i in range(n, out.shape[0]):
        out[i] = -1


@inline_kernel
def _select(state, members, without, out):
    """The bases of these members' next rounds into the rows of `out`, without the arms in the rows of `without`."""
    n = members.shape[0]
    for i in range(n):
        u = members[i]
        if i + 2 < n:
            ahead = members[i + 2]
            for b in range(0, state.top.shape[1], _LINE):
                prefetch(state.top[ahead], b)
                prefetch(state.at[ahead], b)
            prefetch(state.clock[ahead], 0)
        state.t[u] += 1
        clock = state.clock[u]
        before = clock[CURRENT]
        tick(clock, state.t[u])
        if clock[CURRENT] != before:
            _weigh_all(state, u)
            for b in range(state.start.shape[0] - 1):
                _look(state, u, b)
        _choose(state, u, without[i], out[i])


@inline_kernel
def _check(state, members, arms, rewards, low, high, gaps):
    """0 if all feedback can be taken, else ``kind + 4 * position`` of the first that cannot. O(its size)."""
    for i in range(members.shape[0]):
        if members[i] < 0 or members[i] >= state.t.shape[0]:
            return BAD_MEMBER + 4 * i * arms.shape[1]
        for j in range(arms.shape[1]):
            arm = arms[i, j]
            if gaps and arm == -1:
                continue
            if arm < 0 or arm >= state.arm_of.shape[0]:
                return BAD_ARM + 4 * (i * arms.shape[1] + j)
            if not (low <= rewards[i, j] <= high):
                return BAD_REWARD + 4 * (i * arms.shape[1] + j)
    return 0


@inline_kernel
def _ask_for_rewarded(state, u, arms):
    """Ask for the memory that feedback of member u for these arms changes. O(len(arms) sqrt K)."""
    for j in range(arms.shape[0]):
        if arms[j] >= 0:
            p = state.place_of[arms[j]]
            prefetch_to_write(state.count[u], p)
            prefetch_to_write(state.total[u], p)
            b = state.block_of[p]
            for q in range(state.start[b], state.start[b + 1], _LINE):
                prefetch_to_write(state.weight[u], q)


@inline_kernel
def _update(state, members, arms, rewards, low, high, gaps):
    """Count the rewards of a row of arms for each member; returns as `_check`, with nothing changed unless 0.

    `gaps`: whether -1 stands for no arm.
    """
    code = _check(state, members, arms, rewards, low, high, gaps)
    if code != 0:
        return code
    for i in range(members.shape[0]):
        if i + _AHEAD < members.shape[0]:
            _ask_for_rewarded(state, members[i + _AHEAD], arms[i + _AHEAD])
        u = members[i]
        # A block whose heaviest arm may be another now: arms of a row are often neighbours, and one look serves them.
        open_ = -1
        for j in range(arms.shape[1]):
            if arms[i, j] < 0:
                continue
            p = state.place_of[arms[i, j]]
            b = state.block_of[p]
            if open_ >= 0 and b != open_:
                _look(state, u, open_)
                open_ = -1
            state.count[u, p] += 1.0
            state.total[u, p] += rewards[i, j]
            was = state.weight[u, p]
            _weigh(state, u, p)
            now = state.weight[u, p]
            if state.at[u, b] == p and now < was:
                open_ = b
            elif open_ < 0 and (now > state.top[u, b] or (now == state.top[u, b] and p < state.at[u, b])):
                state.top[u, b] = now
                state.at[u, b] = p
        if open_ >= 0:
            _look(state, u, open_)
    return 0


#: For Python, by the handle of `Members`.
select_members = by_handle(_select, Members)
update_members = by_handle(_update, Members)

__all__ = ["Members", "new_members", "reweigh_all", "select_members", "update_members"]
