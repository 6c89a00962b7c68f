"""The base as it was last answered: sorted by arm, changed in place by what came and what went."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semibandit.compiled.handle import Floats1, Ints1
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.sorting import sort_ids

# So few exchanges are made in the sorted answer one by one.
FEW = 12


class Answer(NamedTuple):
    """The arms of the base, ascending; in a round, those that come (`added`) and go (`gone`)."""

    arms: Ints1
    added: Ints1
    gone: Ints1


class Scratch(NamedTuple):
    """Memory for sorting, and for lists that live shorter than a call."""

    weight: Floats1
    arm: Ints1
    bins: Ints1


def new_answer(rank: int) -> Answer:
    """An empty answer."""
    return Answer(*(np.zeros(rank, dtype=np.int64) for _ in range(3)))


def new_scratch(size: int) -> Scratch:
    """Room for `size` entries."""
    return Scratch(
        weight=np.zeros(size), arm=np.zeros(size, dtype=np.int64), bins=np.zeros(size, dtype=np.int64)
    )


@inline_kernel
def _exchange_one(arms, n, old, new):
    """Put `new` in the place of `old` and move what lies between. O(log n + what lies between)."""
    lo, hi = 0, n
    while lo < hi:
        mid = (lo + hi) >> 1
        if arms[mid] < old:
            lo = mid + 1
        else:
            hi = mid
    while lo + 1 < n and arms[lo + 1] < new:
        arms[lo] = arms[lo + 1]
        lo += 1
    while lo > 0 and arms[lo - 1] > new:
        arms[lo] = arms[lo - 1]
        lo -= 1
    arms[lo] = new


@kernel
def change_answer(answer, n, n_added, n_gone, scratch):
    """Take ``gone[:n_gone]`` out of the n arms of the answer and ``added[:n_added]`` in; returns how many there are.

    O(D) at most, less for few exchanges. Sorts `added` and `gone`.
    """
    arms, added, gone = answer.arms, answer.added, answer.gone
    if n_added == n_gone and n_added <= FEW:
        for i in range(n_added):
            _exchange_one(arms, n, gone[i], added[i])
        return n
    sort_ids(added, n_added, scratch.arm, scratch.bins)
    sort_ids(gone, n_gone, scratch.arm, scratch.bins)
    kept, g = 0, 0
    for i in range(n):
        arm = arms[i]
        if g < n_gone and arm == gone[g]:
            g += 1
        else:
            arms[kept] = arm
            kept += 1
    total = kept + n_added
    i, o = n_added - 1, total - 1
    while i >= 0:
        if kept > 0 and arms[kept - 1] > added[i]:
            arms[o] = arms[kept - 1]
            kept -= 1
        else:
            arms[o] = added[i]
            i -= 1
        o -= 1
    return total
