"""Sets of small numbers as bits, 64 to a word: all of a row of right nodes is compared at once.

A set is a vector of int64, so that kernels mix its words with indices without conversions.
"""

from __future__ import annotations

import numpy as np

from semibandit.arms import IntArray
from semibandit.compiled.jit import inline_kernel


def empty_sets(rows: int, n: int) -> IntArray:
    """`rows` empty sets of numbers below n, a row each."""
    return np.zeros((rows, (n + 63) >> 6), dtype=np.int64)


def all_of(n: int) -> IntArray:
    """The set of all numbers below n."""
    words = np.full((n + 63) >> 6, -1, dtype=np.int64)
    if n & 63:
        words[-1] = (1 << (n & 63)) - 1
    return words


@inline_kernel
def contains(words, i):
    """Whether i is in the set."""
    return (words[i >> 6] >> (i & 63)) & 1 != 0


@inline_kernel
def insert(words, i):
    """Put i into the set."""
    words[i >> 6] |= np.int64(1) << (i & 63)


@inline_kernel
def discard(words, i):
    """Take i out of the set, if it is there."""
    words[i >> 6] &= ~(np.int64(1) << (i & 63))


@inline_kernel
def clear(words):
    """Make the set empty. O(n / 64)."""
    for word in range(words.shape[0]):
        words[word] = 0
