"""Arms that wait outside a base, heaviest first, sorted only as far as someone looks (docs/theory.md, H).

The entries (weight, arm) lie in one array: first a *front* in order, then *segments* without any. Between two segments
stands a key that everything on one side is not after and everything on the other side is. Who wants more arms than the
front holds has the next segment halved until a short piece is left, which is sorted and joins the front. An arm that
joins goes to its segment: one entry moves for each key that it passes; those of a round that belong to the front are
merged into it together. So n arms that leave the front and n that join cost O(n log K) and a walk along the front.

An arm whose weight changes while it waits gets another entry. The old one is *loose*: it is met at its place in the
order, later, and dropped then.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semibandit.compiled.handle import Bytes1, Floats1, Ints1
from semibandit.compiled.jit import inline_kernel
from semibandit.compiled.memory import shift_entries
from semibandit.compiled.sorting import merge_sort, sort_keys

# Entries of `at`: where the entries begin, where the front ends, where the entries end, how many segments there are,
# how many places are free at first before the entries, and how far somebody looked last.
HEAD, FRONT, END, N_SEGMENTS, MARGIN, LOOKED_TO = range(6)

# A segment of at most PIECE entries is sorted, not halved. A front longer than LONG_FRONT, and than four times what was
# looked at last, is cut, so that joining it stays cheap; what is looked at in every round must not be sorted in every
# round. Segments are halved by the median of SAMPLE entries.
PIECE, LONG_FRONT, SAMPLE = 192, 1024, 9

# More than halving makes; should there be more, the deepest two become one.
_MOST_SEGMENTS = 64

# An arm has at most so many loose entries: fewer than PIECE, so that a segment that is halved has other keys too.
_MOST_LOOSE = 100


class LazyOrder(NamedTuple):
    """Entries ``weight[i], arm[i]`` for i from ``at[HEAD]`` to ``at[END]``, in order up to ``at[FRONT]``.

    There are ``at[N_SEGMENTS]`` segments, the deepest one first. Segment j begins at `begin[j]`; the entries before
    that are not after the key (`key_weight[j]`, `key_arm[j]`), the others are. `loose` counts for each arm the entries
    that do not count any more; `new_weight` and `new_arm` are for entries that join at once. Before ``at[HEAD]`` there
    are ``at[MARGIN]`` free places when all is made anew. The rest is scratch of sorting.
    """

    weight: Floats1
    arm: Ints1
    at: Ints1
    begin: Ints1
    key_weight: Floats1
    key_arm: Ints1
    loose: Bytes1
    new_weight: Floats1
    new_arm: Ints1
    spare_weight: Floats1
    spare_arm: Ints1
    bins: Ints1


def new_lazy_order(n_arms: int, most: int) -> LazyOrder:
    """An order of nobody; `most` is the most that will ever join at once. O(K)."""
    room, scratch = 2 * n_arms + PIECE + most, max(PIECE, most)
    return LazyOrder(
        weight=np.zeros(room),
        arm=np.zeros(room, dtype=np.int64),
        at=np.array([most, most, most, 0, most, 0], dtype=np.int64),
        begin=np.zeros(_MOST_SEGMENTS, dtype=np.int64),
        key_weight=np.zeros(_MOST_SEGMENTS),
        key_arm=np.zeros(_MOST_SEGMENTS, dtype=np.int64),
        loose=np.zeros(n_arms, dtype=np.uint8),
        new_weight=np.zeros(most),
        new_arm=np.zeros(most, dtype=np.int64),
        spare_weight=np.zeros(scratch),
        spare_arm=np.zeros(scratch, dtype=np.int64),
        bins=np.zeros(scratch + 257, dtype=np.int64),
    )


@inline_kernel
def is_after(weight, arm, key_weight, key_arm):
    return (weight < key_weight) | ((weight == key_weight) & (arm > key_arm))


# -- making it ------------------------------------------------------------------------------------------------------


@inline_kernel
def begin_anew(order):
    """Forget all entries. O(K)."""
    order.loose[:] = 0
    at = order.at
    at[HEAD] = at[FRONT] = at[END] = at[MARGIN]
    at[N_SEGMENTS] = 0


@inline_kernel
def add_unsorted(order, arm, weight):
    """One more entry right after `begin_anew`; `end_unsorted` follows. O(1)."""
    n = order.at[END]
    order.weight[n] = weight
    order.arm[n] = arm
    order.at[END] = n + 1


@inline_kernel
def end_unsorted(order):
    """All entries so far are one segment. O(1)."""
    order.at[N_SEGMENTS] = 1
    order.begin[0], order.key_weight[0], order.key_arm[0] = order.at[HEAD], np.inf, -1


# -- looking --------------------------------------------------------------------------------------------------------


@inline_kernel
def extend_front(order):
    """Sort the next piece and let it join the front; False if nothing is left. Expected O(size of the segment)."""
    at, begin = order.at, order.begin
    while at[N_SEGMENTS] > 0:
        top = at[N_SEGMENTS] - 1
        first, last = begin[top], begin[top - 1] if top > 0 else at[END]
        n = last - first
        if n > PIECE:
            _halve(order, first, last)
            continue
        at[N_SEGMENTS] = top
        if n > 0:
            weight, arm = order.weight[first:last], order.arm[first:last]
            sort_keys(weight, arm, n, order.spare_weight, order.spare_arm, order.bins)
            at[FRONT] = last
            return True
    return False


@inline_kernel
def _halve(order, first, last):
    """Split the segment before all others at about its middle. O(its size)."""
    key_weight, key_arm = _middle(order, first, last)
    cut = _partition(order, first, last, key_weight, key_arm)
    if cut == last:
        # Hardly ever: nothing is after the key, as the same entries were drawn again and again.
        best = first
        for i in range(first + 1, last):
            if is_after(order.weight[best], order.arm[best], order.weight[i], order.arm[i]):
                best = i
        key_weight, key_arm = order.weight[best], order.arm[best]
        cut = _partition(order, first, last, key_weight, key_arm)
    top = order.at[N_SEGMENTS] - 1
    old_weight, old_arm = order.key_weight[top], order.key_arm[top]
    order.begin[top], order.key_weight[top], order.key_arm[top] = cut, key_weight, key_arm
    _add_segment(order, first, old_weight, old_arm)


@inline_kernel
def _middle(order, first, last):
    """The median of some entries."""
    weight, arm = order.spare_weight, order.spare_arm
    step = (last - first) // SAMPLE
    for i in range(SAMPLE):
        weight[i] = order.weight[first + i * step]
        arm[i] = order.arm[first + i * step]
    merge_sort(weight, arm, SAMPLE, weight, arm)  # so few need no space
    return weight[SAMPLE // 2], arm[SAMPLE // 2]


@inline_kernel
def _partition(order, first, last, key_weight, key_arm):
    """Put what is not after the key before what is; where the latter begins. Without branches: they would be wrong
    half of the time. O(last - first)."""
    weight, arm = order.weight, order.arm
    cut = first
    for i in range(first, last):
        w, a = weight[i], arm[i]
        weight[i], arm[i] = weight[cut], arm[cut]
        weight[cut], arm[cut] = w, a
        cut += 0 if is_after(w, a, key_weight, key_arm) else 1
    return cut


@inline_kernel
def _add_segment(order, first, key_weight, key_arm):
    """A new segment before all others begins at `first`, after a key. O(1), O(segments) if there are too many."""
    at, begin = order.at, order.begin
    n = at[N_SEGMENTS]
    if n == begin.shape[0]:
        for j in range(1, n):
            begin[j - 1], order.key_weight[j - 1] = begin[j], order.key_weight[j]
            order.key_arm[j - 1] = order.key_arm[j]
        n -= 1
    begin[n], order.key_weight[n], order.key_arm[n] = first, key_weight, key_arm
    at[N_SEGMENTS] = n + 1


@inline_kernel
def close_gaps(order, end):
    """Entries of the front before `end` whose arm was made -1 are gone: let the others move up. O(end - HEAD)."""
    weight, arm = order.weight, order.arm
    order.at[LOOKED_TO] = end - order.at[HEAD]
    to = end
    for i in range(end - 1, order.at[HEAD] - 1, -1):
        if arm[i] >= 0:
            to -= 1
            weight[to], arm[to] = weight[i], arm[i]
    order.at[HEAD] = to


# -- arms that join, and loose entries ------------------------------------------------------------------------------


@inline_kernel
def join_many(order, n):
    """The first n of `new_weight` and `new_arm`, in any order, join at once. False if there is no room: then all must
    be made anew. Those that belong to the front are sorted and merged in: O(its length) for all together. The others as
    in `join`."""
    at, new_weight, new_arm = order.at, order.new_weight, order.new_arm
    if at[HEAD] < n and not _make_room(order):
        return False
    cut_front(order)  # now, for what belongs to the front must not change below
    m = 0
    for i in range(n):
        w, a = new_weight[i], new_arm[i]
        if is_behind_front(order, w, a):
            if not join(order, a, w):
                return False
        else:
            new_weight[m], new_arm[m] = w, a
            m += 1
    if m > 0:
        sort_keys(new_weight, new_arm, m, order.spare_weight, order.spare_arm, order.bins)
        _merge_into_front(order, m)
    return True


@inline_kernel
def is_behind_front(order, weight, arm):
    """Whether an entry belongs to one of the segments. O(1)."""
    top = order.at[N_SEGMENTS] - 1
    return top >= 0 and is_after(weight, arm, order.key_weight[top], order.key_arm[top])


@inline_kernel
def _merge_into_front(order, m):
    """Merge m new entries in order into the front, which grows towards the begin of the array. O(its length)."""
    weight, arm, new_weight, new_arm = order.weight, order.arm, order.new_weight, order.new_arm
    i, j, front = order.at[HEAD], 0, order.at[FRONT]
    to = i - m
    order.at[HEAD] = to
    while j < m:
        if i < front and is_after(new_weight[j], new_arm[j], weight[i], arm[i]):
            weight[to], arm[to] = weight[i], arm[i]
            i += 1
        else:
            weight[to], arm[to] = new_weight[j], new_arm[j]
            j += 1
        to += 1


@inline_kernel
def join(order, arm, weight):
    """One more entry. False if there is no room: then all must be made anew. O(keys passed), and in the front O(its
    length)."""
    at, begin = order.at, order.begin
    if at[END] == order.arm.shape[0] and not _make_room(order):
        return False
    cut_front(order)
    to = at[END]
    at[END] = to + 1
    for j in range(at[N_SEGMENTS]):
        if is_after(weight, arm, order.key_weight[j], order.key_arm[j]):
            order.weight[to], order.arm[to] = weight, arm
            return True
        first = begin[j]
        order.weight[to], order.arm[to] = order.weight[first], order.arm[first]
        begin[j] = first + 1
        to = first
    at[FRONT] = to + 1
    head = at[HEAD]
    while to > head and is_after(order.weight[to - 1], order.arm[to - 1], weight, arm):
        order.weight[to], order.arm[to] = order.weight[to - 1], order.arm[to - 1]
        to -= 1
    order.weight[to], order.arm[to] = weight, arm
    return True


@inline_kernel
def cut_front(order):
    """Make what is long of the front a segment. O(1)."""
    at = order.at
    if at[FRONT] - at[HEAD] > max(LONG_FRONT, 4 * at[LOOKED_TO]):
        cut = at[HEAD] + max(PIECE, 2 * at[LOOKED_TO])
        _add_segment(order, cut, order.weight[cut - 1], order.arm[cut - 1])
        at[FRONT] = cut


@inline_kernel
def _make_room(order):
    """Move all entries to the begin of the array, but for the margin, if that is worth it. O(entries)."""
    at, begin = order.at, order.begin
    by = at[HEAD] - at[MARGIN]
    if 4 * by < order.loose.shape[0]:
        return False
    n = at[END] - at[HEAD]
    shift_entries(order.weight, at[MARGIN], at[HEAD], n)
    shift_entries(order.arm, at[MARGIN], at[HEAD], n)
    for j in range(at[N_SEGMENTS]):
        begin[j] -= by
    at[HEAD] -= by
    at[FRONT] -= by
    at[END] -= by
    return True


@inline_kernel
def loosen(order, arm):
    """The entry of `arm` does not count any more. False if it has too many such: then all must be made anew. O(1)."""
    if order.loose[arm] >= _MOST_LOOSE:
        return False
    order.loose[arm] += 1
    return True


def check_lazy_order(order: LazyOrder) -> None:
    """Assert front and segments. O(entries)."""
    head, front, end, n = (int(x) for x in order.at[:MARGIN])
    assert 0 <= head <= front <= end <= len(order.arm)
    keys = list(zip((-order.weight[:end]).tolist(), order.arm[:end].tolist(), strict=True))
    assert keys[head:front] == sorted(keys[head:front])
    begin = order.begin[:n].tolist()
    assert (begin == sorted(begin, reverse=True)) and (n == 0 or begin[-1] == front)
    assert n > 0 or front == end
    for j in range(n):
        key = (-float(order.key_weight[j]), int(order.key_arm[j]))
        assert all(entry <= key for entry in keys[head : begin[j]])
        assert all(entry > key for entry in keys[begin[j] :])
