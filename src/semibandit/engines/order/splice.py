"""Entries that leave the front of a lazy order and others that come there, all at known places and put through at once.

Who walks along the front knows where everything is: the places of what it takes, and where an arm that it
refuses belongs: where it stands. So nothing is searched or compared. Only what lies between an entry that leaves
and one that comes moves, by as many places as there are more of the one than of the other so far: arms that replace
others of about their weight cost little, however far down they stand (docs/theory.md, H).

Beside the entries of the front there may be *tags*, a row of words each that whoever walks would otherwise look up by
arm. They move with the entries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semibandit.compiled.handle import Ints1, Ints2
from semibandit.compiled.jit import inline_kernel
from semibandit.compiled.lanes import shift_entries
from semibandit.engines.order.lazy import FRONT, HEAD, STEADY, LazyOrder

# Entries of `size`: how many leave, how many come.
N_GAPS, N_COMING = range(2)

# Up to so many entries are moved one by one, which is faster than asking for it.
_FEW = 8


class Splice(NamedTuple):
    """What leaves, ``gap[: size[N_GAPS]]``, and what comes, before ``place[: size[N_COMING]]``: both are places in the
    order, ascending. The entries that come are the first of the order's `new_weight` and `new_arm`, heaviest first.

    ``tag[i]`` are the tags at place i, right from the head on to where the order is `STEADY`; ``tag_of[arm]`` are those
    of an arm. The rest is scratch: where the entries that come go `to`, and the pieces of the front that stay together
    with how many places they move by.
    """

    gap: Ints1
    place: Ints1
    size: Ints1
    to: Ints1
    tag: Ints2
    tag_of: Ints2
    begin: Ints1
    end: Ints1
    shift: Ints1


def new_splice(order: LazyOrder, tag_of: Ints2) -> Splice:
    """Nothing leaves and nothing comes yet; as much can as joins the order at once. O(K)."""
    margin = len(order.new_arm)
    gap, place, to = np.zeros((3, margin + 1), dtype=np.int64)
    begin, end, shift = np.zeros((3, 2 * margin), dtype=np.int64)
    return Splice(
        gap=gap,
        place=place,
        size=np.zeros(2, dtype=np.int64),
        to=to,
        tag=np.zeros((len(order.arm), tag_of.shape[1]), dtype=np.int64),
        tag_of=tag_of,
        begin=begin,
        end=end,
        shift=shift,
    )


@inline_kernel
def write_tags(order, splice):
    """Write the tags of the front that are not right. O(how many)."""
    tag, tag_of, arm, at = splice.tag, splice.tag_of, order.arm, order.at
    for i in range(max(at[STEADY], at[HEAD]), at[FRONT]):
        for column in range(tag.shape[1]):
            tag[i, column] = tag_of[arm[i], column]
    at[STEADY] = at[FRONT]


@inline_kernel
def leaves(splice, place):
    """The entry at `place`, after all that leave so far, leaves; False if there are too many of them. O(1)."""
    n = splice.size[N_GAPS]
    if n + 1 == splice.gap.shape[0]:
        return False
    splice.gap[n] = place
    splice.size[N_GAPS] = n + 1
    return True


@inline_kernel
def comes(order, splice, place, weight, arm):
    """An entry comes right before what is at `place`; it is after all that come so far. O(1)."""
    n = splice.size[N_COMING]
    splice.place[n], order.new_weight[n], order.new_arm[n] = place, weight, arm
    splice.size[N_COMING] = n + 1


@inline_kernel
def put_through(order, splice):
    """What leaves is gone and what comes is there; the end of the front stays where it is. No more may come than leave.

    Pieces that move down are moved first to last, then those that move up last to first: so none is written over
    before it was moved. O(what moves + pieces).
    """
    n, up = _cut_to_pieces(order, splice)
    begin, shift = splice.begin, splice.shift
    for k in range(n):
        if shift[k] < 0:
            _move(order, splice.tag, begin[k], splice.end[k], shift[k])
    for k in range(n - 1 if up else -1, -1, -1):
        if shift[k] > 0:
            _move(order, splice.tag, begin[k], splice.end[k], shift[k])
    for j in range(splice.size[N_COMING]):
        to, arm = splice.to[j], order.new_arm[j]
        order.weight[to], order.arm[to] = order.new_weight[j], arm
        for column in range(splice.tag.shape[1]):
            splice.tag[to, column] = splice.tag_of[arm, column]
    order.at[HEAD] += splice.size[N_GAPS] - splice.size[N_COMING]
    splice.size[N_GAPS] = splice.size[N_COMING] = 0


@inline_kernel
def _cut_to_pieces(order, splice):
    """Write the pieces that may move, first to last, and `to`, where the entries that come will be: how many pieces
    there are, and whether one moves up. Without branches, for what is next can hardly be foreseen. O(pieces)."""
    gap, place, n_gaps, n_coming = splice.gap, splice.place, splice.size[N_GAPS], splice.size[N_COMING]
    gap[n_gaps] = place[n_coming] = order.arm.shape[0] + 1  # beyond all places
    shift, first, i, j = n_gaps - n_coming, order.at[HEAD], 0, 0
    most = shift
    for k in range(n_gaps + n_coming):
        splice.begin[k], splice.shift[k] = first, shift
        p, g = place[j], gap[i]
        comes_here = np.int64(p <= g)
        splice.to[j] = p + shift
        first = min(p, g)
        splice.end[k] = first
        first += 1 - comes_here
        shift += 2 * comes_here - 1
        most = max(most, shift)
        j += comes_here
        i += 1 - comes_here
    return n_gaps + n_coming, most > 0


@inline_kernel
def _move(order, tag, begin, end, by):
    """Move the entries from `begin` up to `end` by so many places, with their tags. O(how many)."""
    weight, arm, n, width = order.weight, order.arm, end - begin, tag.shape[1]
    if n > _FEW:
        shift_entries(weight, begin + by, begin, n)
        shift_entries(arm, begin + by, begin, n)
        shift_entries(tag, (begin + by) * width, begin * width, n * width)
        return
    step = -1 if by > 0 else 1
    i = end - 1 if by > 0 else begin
    for _ in range(n):
        weight[i + by], arm[i + by] = weight[i], arm[i]
        for column in range(width):
            tag[i + by, column] = tag[i, column]
        i += step


def check_splice(order: LazyOrder, splice: Splice) -> None:
    """Assert that all is put through and that the tags are right. O(length of the front)."""
    assert not splice.size.any()
    head, steady = int(order.at[HEAD]), int(order.at[STEADY])
    assert steady <= order.at[FRONT]
    assert np.array_equal(splice.tag[head:steady], splice.tag_of[order.arm[head:steady]])
