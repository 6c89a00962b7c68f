"""Greedy over few arms of a large ground set: the parts of the matroid that they touch, numbered from 0.

The greedy of most classes keeps a counter for each group, family, vertex or right node, and clears them all first. For
a handful of arms among millions that would be most of the work.
"""

from __future__ import annotations

import numpy as np

from semibandit.arms import IntArray
from semibandit.matroids.validate import readonly

#: With at most so many counters for each arm, clearing them all is cheaper than numbering those that are touched.
MANY = 16


def renumbered(ids: IntArray) -> tuple[IntArray, IntArray]:
    """The different ids, ascending, and the place of each given one among them, read-only. O(n log n).

    >>> known, place = renumbered(np.array([70, 5, 70]))
    >>> known.tolist(), place.tolist()
    ([5, 70], [1, 0, 1])
    """
    known, place = np.unique(ids, return_inverse=True)
    return known, readonly(place.astype(np.int64, copy=False))


def places(order: IntArray) -> IntArray:
    """0 .. n - 1, for an order whose arms are renumbered as they stand. O(n)."""
    return np.arange(order.size, dtype=np.int64)


def lists_of(indptr: IntArray, indices: IntArray, arms: IntArray) -> tuple[IntArray, IntArray]:
    """The lists of some arms in their order, as two arrays again. O(n + length of the lists).

    >>> starts, flat = lists_of(np.array([0, 2, 3, 5]), np.array([7, 8, 9, 4, 5]), np.array([2, 0]))
    >>> starts.tolist(), flat.tolist()
    ([0, 2, 4], [4, 5, 7, 8])
    """
    first, degree = indptr[arms], indptr[arms + 1] - indptr[arms]
    ends = np.cumsum(degree)
    at = np.arange(degree.sum()) + np.repeat(first - ends + degree, degree)
    return np.concatenate(([0], ends)), indices[at]
