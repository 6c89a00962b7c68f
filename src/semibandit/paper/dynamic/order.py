"""The one total order of arms (heavier first, then smaller id) and tournaments that keep its best.

An arm id of -1 stands for nobody and loses against everyone. A tournament over n places is the usual flat
binary tree: nodes ``offset + 1 .. offset + 2 n - 1`` of one shared array, the places being ``offset + n + i``, the
parent of node i being i // 2 and the champion standing at ``offset + 1``.
"""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import inline_kernel, kernel

NOBODY = -1


@inline_kernel
def ahead(weight, a, b):
    """Whether arm a comes before arm b. Both must be arms. O(1)."""
    return weight[a] > weight[b] or (weight[a] == weight[b] and a < b)


@inline_kernel
def better(weight, a, b):
    """The one of two arms that comes first. O(1)."""
    if a < 0:
        return b
    if b < 0:
        return a
    return a if ahead(weight, a, b) else b


@kernel
def replay(champions, weight, arm, offset, place):
    """Replay the matches of `arm`, whose weight or presence at node `place` has changed. O(log n).

    Changes `champions`. Stops where the champion and its weight are what they were.
    """
    i = place >> 1
    while i > 0:
        left = offset + 2 * i
        champion = better(weight, np.int64(champions[left]), np.int64(champions[left + 1]))
        if champions[offset + i] == champion and champion != arm:
            return
        champions[offset + i] = champion
        i >>= 1


@kernel
def play_all(champions, weight, offset, n):
    """Fill a tournament of n places, all set, from the bottom. O(n). Changes `champions`."""
    for i in range(n - 1, 0, -1):
        left = offset + 2 * i
        champions[offset + i] = better(weight, np.int64(champions[left]), np.int64(champions[left + 1]))
