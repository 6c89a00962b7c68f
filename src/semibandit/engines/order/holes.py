"""The front of a lazy order with holes in it: what leaves is not closed up, and what comes at once moves the rest once.

Beside each entry of the front stand *tags*, words that whoever walks along would otherwise look up by arm. The tags of
an arm are not all 0, and those of a hole are: so who looks for tags passes over holes without asking. A hole keeps the
weight and the arm that were there, so that the front is in order with its holes. It is gone when the front begins
behind it, which is soon, as most that leave are near the head (docs/theory.md, H).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semibandit.compiled.handle import Ints1, Ints2
from semibandit.compiled.jit import inline_kernel
from semibandit.compiled.memory import copy_four, shift_entries
from semibandit.compiled.sorting import sort_keys
from semibandit.engines.order.lazy import (
    END,
    FRONT,
    HEAD,
    STEADY,
    LazyOrder,
    cut_front,
    is_behind_front,
    is_long,
    join,
    place_in_front,
)

# Up to so many entries are moved one by one, which is faster than asking for it.
_FEW = 8

# So many entries are copied at a time.
_FOUR = 4

# So many tags may be read beyond the last place of the order.
BEYOND = 8


class Holes(NamedTuple):
    """``tag[:, i]`` are the tags at place i, right from the head on to where the order is `STEADY`, which is the end of
    the front whenever nobody is at work; ``tag_of[arm]`` are those of an arm. ``number[0]`` holes are in the front. A
    few places beyond the last have tags as well, so that some can be read at a time. `place` is scratch."""

    tag: Ints2
    tag_of: Ints2
    number: Ints1
    place: Ints1


def new_holes(order: LazyOrder, tag_of: Ints2) -> Holes:
    """No hole yet. O(K)."""
    tag = np.zeros((tag_of.shape[1], len(order.arm) + BEYOND), dtype=np.int64)
    return Holes(
        tag=tag,
        tag_of=tag_of,
        number=np.zeros(1, dtype=np.int64),
        place=np.zeros(len(order.new_arm), dtype=np.int64),
    )


@inline_kernel
def write_tags(order, holes):
    """Write the tags of the front that are not right. O(how many)."""
    tag, tag_of, arm, at = holes.tag, holes.tag_of, order.arm, order.at
    for i in range(max(at[STEADY], at[HEAD]), at[FRONT]):
        for column in range(tag.shape[0]):
            tag[column, i] = tag_of[arm[i], column]
    at[STEADY] = at[FRONT]


@inline_kernel
def is_hole(holes, place):
    """Whether nobody is at a place of the front. O(1)."""
    bits = np.int64(0)
    for column in range(holes.tag.shape[0]):
        bits |= holes.tag[column, place]
    return bits == 0


@inline_kernel
def leave(holes, place):
    """The entry at a place of the front is gone. O(1)."""
    for column in range(holes.tag.shape[0]):
        holes.tag[column, place] = 0
    holes.number[0] += 1


@inline_kernel
def pass_holes(order, holes):
    """Let the front begin with an entry, if there is one. O(1) amortised."""
    at = order.at
    while at[HEAD] < at[FRONT] and is_hole(holes, at[HEAD]):
        at[HEAD] += 1
        holes.number[0] -= 1


@inline_kernel
def close_holes(order, holes):
    """Let the entries of the front move up to its end. O(its length)."""
    weight, arm, tag, at = order.weight, order.arm, holes.tag, order.at
    to = at[FRONT] - 1
    for i in range(at[FRONT] - 1, at[HEAD] - 1, -1):
        # Without branches: where the next hole is can hardly be foreseen.
        stays = 0 if is_hole(holes, i) else 1
        weight[to], arm[to] = weight[i], arm[i]
        for column in range(tag.shape[0]):
            tag[column, to] = tag[column, i]
        to -= stays
    at[HEAD] = to + 1
    holes.number[0] = 0


@inline_kernel
def come(order, holes, n):
    """The first n of the order's `new_weight` and `new_arm`, in any order, come at once. False if there is no room:
    then all must be made anew. O(keys passed) for each behind the front; in it O(log of its length), and O(what lies
    before the last) for all together."""
    at, new_weight, new_arm = order.at, order.new_weight, order.new_arm
    if at[HEAD] < n or at[END] + n > order.arm.shape[0] or is_long(order):
        # What follows moves entries without their tags.
        close_holes(order, holes)
        cut_front(order)
    m, towards_head = 0, at[HEAD] >= n
    for k in range(n):
        # Without branches, which would be wrong half of the time: those of the front come first.
        weight, arm = new_weight[k], new_arm[k]
        new_weight[k], new_arm[k] = new_weight[m], new_arm[m]
        new_weight[m], new_arm[m] = weight, arm
        m += np.int64(towards_head & (not is_behind_front(order, weight, arm)))
    for k in range(m, n):
        if not join(order, new_arm[k], new_weight[k]):
            return False
    write_tags(order, holes)
    sort_keys(new_weight, new_arm, m, order.spare_weight, order.spare_arm, order.bins)
    _find_places(order, holes, m)
    begin = at[HEAD]
    at[HEAD] -= m
    for k in range(m):
        end, arm = holes.place[k], new_arm[k]
        _move(order, holes.tag, begin, end, m - k)
        to = end - (m - k)
        order.weight[to], order.arm[to] = new_weight[k], arm
        for column in range(holes.tag.shape[0]):
            holes.tag[column, to] = holes.tag_of[arm, column]
        begin = end
    return True


@inline_kernel
def _find_places(order, holes, m):
    """`place_in_front` of the first m new entries. All of them take a step before any takes the next: nothing waits."""
    weight, new_weight, place, head = order.weight, order.new_weight, holes.place, order.at[HEAD]
    for k in range(m):
        place[k] = head
    n = order.at[FRONT] - head
    while n > 0:
        half = (n + 1) >> 1
        for k in range(m):
            place[k] += half & -np.int64(weight[place[k] + half - 1] >= new_weight[k])
        n -= half
    for k in range(m):
        if place[k] > head and weight[place[k] - 1] == new_weight[k]:  # hardly ever: arms decide
            place[k] = place_in_front(order, new_weight[k], order.new_arm[k])


@inline_kernel
def _move(order, tag, begin, end, by):
    """Move the entries from `begin` up to `end` back by so many places, with their tags. O(how many)."""
    weight, arm, n, width = order.weight, order.arm, end - begin, tag.shape[0]
    if by >= _FOUR and end + _FOUR <= arm.shape[0]:
        # Up to three more are copied; where they go nothing is that will be read again.
        for i in range(begin, end, _FOUR):
            copy_four(weight, i - by, i)
            copy_four(arm, i - by, i)
            for column in range(width):
                copy_four(tag[column], i - by, i)
        return
    if n > _FEW:
        shift_entries(weight, begin - by, begin, n)
        shift_entries(arm, begin - by, begin, n)
        for column in range(width):
            shift_entries(tag[column], begin - by, begin, n)
        return
    for i in range(begin, end):
        weight[i - by], arm[i - by] = weight[i], arm[i]
        for column in range(width):
            tag[column, i - by] = tag[column, i]


def check_holes(order: LazyOrder, holes: Holes) -> None:
    """Assert that the tags are right. O(length of the front)."""
    head, front = int(order.at[HEAD]), int(order.at[FRONT])
    assert head == front or order.at[STEADY] == front
    hole = holes_in(order, holes)
    assert holes.number[0] == hole.sum()
    assert np.array_equal(holes.tag[:, head:front].T[~hole], holes.tag_of[order.arm[head:front][~hole]])


def holes_in(order: LazyOrder, holes: Holes) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """For each place of the front whether it is a hole. O(length of the front)."""
    flags: np.ndarray[tuple[int], np.dtype[np.bool_]] = ~(
        holes.tag[:, int(order.at[HEAD]) : int(order.at[FRONT])].any(axis=0)
    )
    return flags
