"""The cell of a query in O(log W), without enumerating cells.

On the scale y = log_g(slope / s), with g = 1 + eta and s = alpha_lb / beta_lb, the critical slopes of the pair
(a, b) are the points c + place(a) - place(b) for consecutive integers c (see `hitting_set`). So one period,
the sorted fractional parts of place(a) - place(b), holds everything: O(W^2) numbers stand for O(W^3) slopes,
and the neighbours of a query are found by binary search. Logarithms only suggest candidates. Slopes are
computed from their keys and compared as `neighbour_slopes` does, so the answers are the same floats.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from semibandit.compiled.handle import Floats1, Ints1
from semibandit.compiled.jit import kernel
from semibandit.paper.hitting_set import (
    HIGH,
    LOW,
    SLOPE,
    HittingSet,
    SlopeTable,
    exponents,
    middle_slope,
    neighbour_slopes,
)

# Twelve bytes a pair. With T = 10^6 and a = 0.1, m = 1 needs 29,000 pairs and m = 2 five million.
MAX_PAIRS = 8_000_000

# In units of log g; rounding of the logarithms stays far below it.
MARGIN = 1e-9


class CellFinder(NamedTuple):
    """`offset` ascending in [0, 1); `pair[i]` = a * (n_beta + copies) + b; `ends`: smallest and largest slope."""

    table: SlopeTable
    offset: Floats1
    pair: Ints1
    ends: Floats1


def count_pairs(hitting: HittingSet) -> int:
    """Number of entries a `CellFinder` would have, at most. O(1)."""
    copies = int(hitting.copies)
    return (hitting.n_alpha + copies) * (hitting.n_beta + copies)


def cell_finder(hitting: HittingSet) -> CellFinder:
    """The sorted period of a hitting set. O(W^2 log W) time, O(W^2) memory."""
    table = hitting.table
    copies = int(hitting.copies)
    wide = hitting.n_beta + copies
    a, b = (x.ravel() for x in np.indices((hitting.n_alpha + copies, wide)))
    # Those that occur with some c; `exponents` says which c.
    occurs = (a != b) | (a == 0)
    both = (a > 0) & (b > 0)
    occurs &= ~both | (1 - (hitting.n_beta - b) <= hitting.n_alpha - a - 1)
    a, b = a[occurs], b[occurs]
    offset = table.place[a] - table.place[b]
    offset -= np.floor(offset)
    order = np.argsort(offset, kind="stable")
    ends = np.array([hitting._cell_slopes(0.0)[HIGH], hitting._cell_slopes(math.inf)[LOW]])
    return CellFinder(table, offset[order], (a * wide + b)[order], ends)


def no_finder(hitting: HittingSet) -> CellFinder:
    """A finder without entries, where a kernel wants one that it will not use. O(1)."""
    return CellFinder(hitting.table, np.empty(0), np.empty(0, dtype=np.int64), np.array([0.0, np.inf]))


@kernel
def _first_at_least(finder, y):
    """Index of the first offset >= y, where offsets repeat with period 1 and indices go on. O(log W)."""
    offset = finder.offset
    turn = math.floor(y)
    rest = y - turn
    low, high = 0, offset.shape[0]
    while low < high:
        mid = (low + high) // 2
        if offset[mid] < rest:
            low = mid + 1
        else:
            high = mid
    return int(turn) * offset.shape[0] + low


@kernel
def _candidate(finder, index, x, away):
    """Slope of the entry that lies `away` (in units of log g) from x; -1 if no such key occurs."""
    table = finder.table
    wide = table.n_beta + table.copies
    a = finder.pair[index] // wide
    b = finder.pair[index] - a * wide
    c = round(x + away - (table.place[a] - table.place[b]))
    first, last = exponents(table, a, b)
    if c < first or c > last:
        return -1.0
    return table.power[c + table.n_beta] * table.factor[a] / table.factor[b]


@kernel
def find_neighbours(finder, lam):
    """Largest critical slope <= lam (else 0) and smallest > lam (else inf). O(log W), rarely O(W^2).

    The same floats as `neighbour_slopes`, which it falls back on where a whole period holds no slope.
    """
    smallest, largest = finder.ends[0], finder.ends[1]
    if lam < smallest:
        return 0.0, smallest
    if lam >= largest:
        return largest, np.inf
    n = finder.offset.shape[0]
    x = (math.log(lam) - finder.table.log_scale) * finder.table.steps_per_log
    part = x - math.floor(x)
    below, above = 0.0, np.inf
    gap_below, gap_above = np.inf, np.inf
    j = _first_at_least(finder, part + MARGIN) - 1
    for _ in range(n):
        turn = j // n
        index = j - turn * n
        away = finder.offset[index] + turn - part
        if -away > gap_below + MARGIN:
            break
        slope = _candidate(finder, index, x, away)
        if slope > lam:
            above = min(above, slope)
            gap_above = min(gap_above, max(away, 0.0))
        elif slope >= 0.0:
            below = max(below, slope)
            gap_below = min(gap_below, max(-away, 0.0))
        j -= 1
    j = _first_at_least(finder, part - MARGIN)
    for _ in range(n):
        turn = j // n
        index = j - turn * n
        away = finder.offset[index] + turn - part
        if away > gap_above + MARGIN:
            break
        slope = _candidate(finder, index, x, away)
        if slope > lam:
            above = min(above, slope)
            gap_above = min(gap_above, max(away, 0.0))
        elif slope >= 0.0:
            below = max(below, slope)
        j += 1
    if below == 0.0 or above == np.inf:
        return neighbour_slopes(finder.table, lam)
    return below, above


@kernel
def find_cell(finder, lam, cell):
    """`search_cell` in O(log W), rarely O(W^2): the cell of lam, written to `cell`."""
    low, high = find_neighbours(finder, lam)
    cell[LOW] = low
    cell[SLOPE] = middle_slope(low, high)
    cell[HIGH] = high
