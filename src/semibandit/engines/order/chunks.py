"""The front of a lazy order in chunks: what comes moves few entries, what leaves is a hole, chunks are passed at once.

Beside each entry stand two words of *tags*, which whoever walks along would otherwise look up by arm. The tags of an
arm are not all 0, and those of a hole are: so who looks for tags passes over holes without asking. A hole keeps the
weight and the arm that were there, so that a chunk is in order with its holes; it goes when its chunk is full, or when
the front begins behind it. A *directory* lists the chunks in order, each with a key that none of its entries is before
(but for the first chunk, where whatever comes before all others goes) and with the tags of all of them together: chunks
without a tag that is looked for are passed over, some at a time (docs/theory.md, H).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semibandit.arms import IntArray
from semibandit.compiled.handle import Floats1, Floats2, Ints1, Ints2
from semibandit.compiled.jit import inline_kernel
from semibandit.compiled.memory import insert_word, shift_entries
from semibandit.compiled.words import lowest_bit, places_that_meet
from semibandit.engines.order.lazy import (
    FRONT,
    HEAD,
    PIECE,
    extend_front,
    is_after,
    is_behind_front,
    join,
)

# A chunk has so many places; a new one is filled so far.
_LOG, _FILL = 5, 20
PLACES = 1 << _LOG

# Among so many keys one is found by comparing all.
_FEW = 32

# So many places, or chunks, are looked at together; so many words may be read beyond the last one.
_TOGETHER = 8

# What `extend_chunks` may take.
_CHUNKS_OF_PIECE = -(-PIECE // _FILL)

_insert = insert_word(PLACES)

# Entries of `at`: the first chunk in the directory, the one behind the last, how many entries at the begin of the first
# one are holes, and how many chunks are free.
FIRST, LAST, BEGIN, N_FREE = range(4)


class Chunks(NamedTuple):
    """Chunk c has ``count[c]`` entries ``weight[c, i]``, ``arm[c, i]``, ``tag[:, c * PLACES + i]``, then places of
    weight minus infinity without tags. ``tag_of[arm]`` are the tags of an arm.

    The directory from ``at[FIRST]`` to ``at[LAST]``: the chunk `chunk`, its key, and `sum`, which has the tags of its
    entries and perhaps others. ``free[: at[N_FREE]]`` are chunks that are not in it. `place` is scratch.
    """

    weight: Floats2
    arm: Ints2
    tag: Ints2
    tag_of: Ints2
    count: Ints1
    chunk: Ints1
    key_weight: Floats1
    key_arm: Ints1
    sum: Ints2
    free: Ints1
    at: Ints1
    place: Ints1


def new_chunks(tag_of: IntArray, most: int) -> Chunks:
    """A front without entries, for arms with these tags, of which up to `most` will come at once. O(K)."""
    n = 2 * len(tag_of) // PLACES + 2 * _CHUNKS_OF_PIECE
    return Chunks(
        weight=np.zeros((n, PLACES)),
        arm=np.zeros((n, PLACES), dtype=np.int64),
        tag=np.zeros((2, n * PLACES + _TOGETHER), dtype=np.int64),
        tag_of=tag_of,
        count=np.zeros(n, dtype=np.int64),
        chunk=np.zeros(2 * n, dtype=np.int64),
        key_weight=np.zeros(2 * n),
        key_arm=np.zeros(2 * n, dtype=np.int64),
        sum=np.zeros((2, 2 * n + _TOGETHER), dtype=np.int64),
        free=np.arange(n, dtype=np.int64),
        at=np.array([0, 0, 0, n], dtype=np.int64),
        place=np.zeros(most, dtype=np.int64),
    )


@inline_kernel
def forget_chunks(chunks):
    """Let the front have no entries. O(its chunks)."""
    at = chunks.at
    for j in range(at[FIRST], at[LAST]):
        chunks.free[at[N_FREE]] = chunks.chunk[j]
        at[N_FREE] += 1
    at[FIRST] = at[LAST] = at[BEGIN] = 0


# -- the directory --------------------------------------------------------------------------------------------------


@inline_kernel
def _take_chunk(chunks):
    """A free chunk, made empty. There must be one. O(PLACES)."""
    chunks.at[N_FREE] -= 1
    c = chunks.free[chunks.at[N_FREE]]
    chunks.count[c] = 0
    for i in range(PLACES):
        chunks.weight[c, i] = -np.inf
    first = c << _LOG
    for i in range(first, first + PLACES):
        chunks.tag[0, i] = 0
        chunks.tag[1, i] = 0
    return c


@inline_kernel
def _move_directory(chunks, to, start, n):
    """Entries start .. start + n - 1 of the directory go to `to` and behind it. O(n)."""
    shift_entries(chunks.chunk, to, start, n)
    shift_entries(chunks.key_weight, to, start, n)
    shift_entries(chunks.key_arm, to, start, n)
    shift_entries(chunks.sum[0], to, start, n)
    shift_entries(chunks.sum[1], to, start, n)


@inline_kernel
def _list_chunk(chunks, j, c, weight, arm):
    """Chunk c stands at place j of the directory, with this key and no tags yet. O(1)."""
    chunks.chunk[j] = c
    chunks.key_weight[j], chunks.key_arm[j] = weight, arm
    chunks.sum[0, j] = chunks.sum[1, j] = 0


@inline_kernel
def _append(chunks, weight, arm):
    """Where in the directory a new chunk stands that begins with this key, behind all others. Amortised O(1)."""
    at = chunks.at
    if at[LAST] == chunks.chunk.shape[0]:
        n = at[LAST] - at[FIRST]
        _move_directory(chunks, 0, at[FIRST], n)
        at[FIRST], at[LAST] = 0, n
    j = at[LAST]
    at[LAST] = j + 1
    _list_chunk(chunks, j, _take_chunk(chunks), weight, arm)
    return j


@inline_kernel
def _insert_chunk(chunks, j, weight, arm):
    """A new chunk with this key right behind the one at place j of the directory; where it stands then: at j if those
    up to j made room, else at j + 1. O(length of the shorter side)."""
    at = chunks.at
    before, behind = j + 1 - at[FIRST], at[LAST] - j - 1
    c = _take_chunk(chunks)
    if at[LAST] == chunks.chunk.shape[0] or (at[FIRST] > 0 and before < behind):
        _move_directory(chunks, at[FIRST] - 1, at[FIRST], before)
        at[FIRST] -= 1
        _list_chunk(chunks, j, c, weight, arm)
        return j
    _move_directory(chunks, j + 2, j + 1, behind)
    at[LAST] += 1
    _list_chunk(chunks, j + 1, c, weight, arm)
    return j + 1


@inline_kernel
def _write_entry(chunks, j, c, i, weight, arm):
    """Write place i of chunk c, which is at j of the directory. O(1)."""
    chunks.weight[c, i], chunks.arm[c, i] = weight, arm
    place, tag0, tag1 = (c << _LOG) + i, chunks.tag_of[arm, 0], chunks.tag_of[arm, 1]
    chunks.tag[0, place], chunks.tag[1, place] = tag0, tag1
    chunks.sum[0, j] |= tag0
    chunks.sum[1, j] |= tag1


# -- looking --------------------------------------------------------------------------------------------------------


@inline_kernel
def arm_at(chunks, place):
    """The arm at a place. O(1)."""
    return chunks.arm[place >> _LOG, place & (PLACES - 1)]


@inline_kernel
def weight_at(chunks, place):
    """The weight at a place. O(1)."""
    return chunks.weight[place >> _LOG, place & (PLACES - 1)]


@inline_kernel
def first_of(chunks, j):
    """The first place of the chunk at j of the directory. O(1)."""
    return chunks.chunk[j] << _LOG


@inline_kernel
def _next_chunk(chunks, j, last, tag0, tag1):
    """Where the next chunk from j on stands that may have one of these tags; `last` if there is none before that.
    O(chunks passed)."""
    while j < last:
        meet = places_that_meet(chunks.sum, j, tag0, tag1)
        if meet != 0:
            return min(j + lowest_bit(meet), last)
        j += _TOGETHER
    return last


@inline_kernel
def next_with(chunks, j, place, last, tag0, tag1):
    """The next entry with one of these tags: at `place` or behind it in the chunk at j < `last`, or in a chunk behind
    that. Where its chunk stands, `last` if there is none, and its place. O(entries and chunks passed)."""
    end = first_of(chunks, j) + PLACES
    while True:
        while place < end:
            meet = places_that_meet(chunks.tag, place, tag0, tag1)
            if meet != 0:
                place += lowest_bit(meet)
                if place < end:
                    return j, place
                break
            place += _TOGETHER
        j = _next_chunk(chunks, j + 1, last, tag0, tag1)
        if j == last:
            return j, place
        place = first_of(chunks, j)
        end = place + PLACES


@inline_kernel
def first_place(chunks):
    """The place of the first entry, -1 if there is none. Frees the chunks before it. O(1) amortised."""
    at = chunks.at
    while at[FIRST] < at[LAST]:
        first = first_of(chunks, at[FIRST])
        while at[BEGIN] < PLACES:
            meet = places_that_meet(chunks.tag, first + at[BEGIN], -1, -1)
            if meet != 0:
                at[BEGIN] += lowest_bit(meet)
                break
            at[BEGIN] += _TOGETHER
        if at[BEGIN] < PLACES:
            return first + at[BEGIN]
        chunks.free[at[N_FREE]] = chunks.chunk[at[FIRST]]
        at[N_FREE] += 1
        at[FIRST] += 1
        at[BEGIN] = 0
    return np.int64(-1)


# -- changing -------------------------------------------------------------------------------------------------------


@inline_kernel
def leave(chunks, place):
    """The entry at a place is gone. O(1)."""
    chunks.tag[0, place] = 0
    chunks.tag[1, place] = 0


@inline_kernel
def has_room_to_extend(chunks):
    """Whether there are free chunks for whatever `extend_chunks` takes. O(1)."""
    return chunks.at[N_FREE] >= _CHUNKS_OF_PIECE


@inline_kernel
def extend_chunks(order, chunks):
    """More entries, in order, from the segments; where in the directory they begin, or -1 if there are none. There must
    be room. Expected O(size of the segment)."""
    at = order.at
    if not extend_front(order):
        return np.int64(-1)
    for begin in range(at[HEAD], at[FRONT], _FILL):
        j = _append(chunks, order.weight[begin], order.arm[begin])
        c, n = chunks.chunk[j], min(_FILL, at[FRONT] - begin)
        for i in range(n):
            _write_entry(chunks, j, c, i, order.weight[begin + i], order.arm[begin + i])
        chunks.count[c] = n
    n = (at[FRONT] - at[HEAD] + _FILL - 1) // _FILL
    at[HEAD] = at[FRONT]
    return chunks.at[LAST] - n


@inline_kernel
def come(order, chunks, n):
    """The first n of the order's `new_weight` and `new_arm`, in any order, come at once. False if there is no room:
    then all must be made anew. O(keys passed) for each behind the front; in it O(log of its length)."""
    new_weight, new_arm = order.new_weight, order.new_arm
    m = 0
    for k in range(n):
        # Without branches, which would be wrong half of the time: those of the front come first.
        weight, arm = new_weight[k], new_arm[k]
        new_weight[k], new_arm[k] = new_weight[m], new_arm[m]
        new_weight[m], new_arm[m] = weight, arm
        m += np.int64(not is_behind_front(order, weight, arm))
    for k in range(m, n):
        if not join(order, new_arm[k], new_weight[k]):
            return False
    at = chunks.at
    if m > 0 and at[FIRST] == at[LAST]:
        if at[N_FREE] == 0:
            return False
        _append(chunks, np.inf, -1)
    _find_chunks(order, chunks, m)
    for k in range(m):
        j = chunks.place[k]
        if chunks.count[chunks.chunk[j]] == PLACES:
            _close_holes(chunks, j)
            if chunks.count[chunks.chunk[j]] == PLACES:
                if at[N_FREE] == 0:
                    return False
                _split(order, chunks, j, k, m)
                j = chunks.place[k]
        _put(chunks, j, new_weight[k], new_arm[k])
    return True


@inline_kernel
def _find_chunks(order, chunks, m):
    """The chunks of the first m new entries, by their places in the directory: the last one whose key an entry is not
    before, or the first. Without branches that depend on the entry. O(m log chunks)."""
    first, last = chunks.at[FIRST], chunks.at[LAST]
    for k in range(m):
        weight, j, n = order.new_weight[k], first, last - first
        while n > _FEW:
            half = n >> 1
            j += half & -np.int64(chunks.key_weight[j + half] >= weight)
            n -= half
        keys, behind = chunks.key_weight[j + 1 : j + n], 0
        for i in range(n - 1):  # the first chunk may have entries before its key
            behind += np.int64(keys[i] >= weight)
        j += behind
        while j > first and chunks.key_weight[j] == weight and chunks.key_arm[j] > order.new_arm[k]:
            j -= 1  # hardly ever: arms decide
        chunks.place[k] = j


@inline_kernel
def _put(chunks, j, weight, arm):
    """Put an entry into the chunk at j of the directory, which has room. O(PLACES)."""
    c = chunks.chunk[j]
    first, n, i = c << _LOG, chunks.count[c], 0
    for k in range(PLACES):  # in vector registers
        i += np.int64(chunks.weight[c, k] > weight)
    while i < n and chunks.weight[c, i] == weight and chunks.arm[c, i] < arm:  # hardly ever
        i += 1
    tag0, tag1 = chunks.tag_of[arm, 0], chunks.tag_of[arm, 1]
    _insert(chunks.weight[c], 0, i, weight)
    _insert(chunks.arm[c], 0, i, arm)
    _insert(chunks.tag[0], first, i, tag0)
    _insert(chunks.tag[1], first, i, tag1)
    chunks.sum[0, j] |= tag0
    chunks.sum[1, j] |= tag1
    chunks.count[c] = n + 1
    if j == chunks.at[FIRST]:
        chunks.at[BEGIN] = min(chunks.at[BEGIN], i)


@inline_kernel
def _close_holes(chunks, j):
    """Let the entries of the chunk at j of the directory close up. O(PLACES)."""
    c = chunks.chunk[j]
    first, n, count = c << _LOG, 0, chunks.count[c]
    for i in range(count):
        # Without branches: where the next hole is can hardly be foreseen.
        tag0, tag1 = chunks.tag[0, first + i], chunks.tag[1, first + i]
        chunks.weight[c, n], chunks.arm[c, n] = chunks.weight[c, i], chunks.arm[c, i]
        chunks.tag[0, first + n], chunks.tag[1, first + n] = tag0, tag1
        n += np.int64(tag0 | tag1 != 0)
    _cut(chunks, c, n)
    _sum_tags(chunks, j, c)
    if j == chunks.at[FIRST]:
        chunks.at[BEGIN] = 0


@inline_kernel
def _sum_tags(chunks, j, c):
    """Sum the tags of chunk c, which is at j of the directory. O(PLACES)."""
    tag0 = tag1 = np.int64(0)
    for i in range(c << _LOG, (c << _LOG) + PLACES):
        tag0 |= chunks.tag[0, i]
        tag1 |= chunks.tag[1, i]
    chunks.sum[0, j], chunks.sum[1, j] = tag0, tag1


@inline_kernel
def _cut(chunks, c, n):
    """Let chunk c have its first n entries only. O(PLACES)."""
    first = c << _LOG
    for i in range(n, chunks.count[c]):
        chunks.weight[c, i] = -np.inf
        chunks.tag[0, first + i] = chunks.tag[1, first + i] = 0
    chunks.count[c] = n


@inline_kernel
def _split(order, chunks, j, k, m):
    """Make two of the full chunk at j of the directory, and say so to the new entries k .. m - 1. O(PLACES + m), and
    what `_insert_chunk` takes."""
    c, half = chunks.chunk[j], np.int64(PLACES // 2)
    key_weight, key_arm = chunks.weight[c, half], chunks.arm[c, half]
    right = _insert_chunk(chunks, j, key_weight, key_arm)
    left, d = right - 1, chunks.chunk[right]
    first, second = c << _LOG, d << _LOG
    for i in range(half):
        chunks.weight[d, i], chunks.arm[d, i] = chunks.weight[c, half + i], chunks.arm[c, half + i]
        chunks.tag[0, second + i] = chunks.tag[0, first + half + i]
        chunks.tag[1, second + i] = chunks.tag[1, first + half + i]
    chunks.count[d] = half
    _cut(chunks, c, half)
    _sum_tags(chunks, left, c)
    _sum_tags(chunks, right, d)
    for i in range(k, m):
        at = chunks.place[i]
        at += np.int64(at > j) if right > j else -np.int64(at <= j)
        at += np.int64(
            (at == left) & (not is_after(key_weight, key_arm, order.new_weight[i], order.new_arm[i]))
        )
        chunks.place[i] = at
