"""The one total order of arms (heavier first, then smaller id) and tournaments that keep its best.

An arm id of -1 stands for nobody and loses against everyone. A tournament over n places is the usual flat
binary tree: nodes ``off + 1 .. off + 2 n - 1`` of one shared array, the places being ``off + n + i``, the
parent of node i being i // 2 and the champion standing at ``off + 1``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semibandit.compiled.jit import njit


@njit(inline="always")
def ahead(weight: Any, a: int, b: int) -> bool:
    """Whether arm a comes before arm b. Both must be arms. O(1)."""
    return weight[a] > weight[b] or (weight[a] == weight[b] and a < b)


@njit
def better(weight: Any, a: int, b: int) -> int:
    """The one of two arms that comes first; -1 is nobody. O(1)."""
    if a < 0:
        return b
    if b < 0:
        return a
    return a if ahead(weight, a, b) else b


@njit
def worse(weight: Any, a: int, b: int) -> int:
    """The one of two arms that comes last; -1 is nobody. O(1)."""
    if a < 0:
        return b
    if b < 0:
        return a
    return b if ahead(weight, a, b) else a


@njit
def replay(arm: int, off: int, place: int, win: Any, weight: Any) -> bool:
    """Replay the matches of `arm`, whose weight or presence at node `place` has changed. O(log n).

    Changes `win`. False when the champion and its weight are what they were.
    """
    i = place >> 1
    while i > 0:
        champion = better(weight, np.int64(win[off + 2 * i]), np.int64(win[off + 2 * i + 1]))
        if win[off + i] == champion and champion != arm:
            return False
        win[off + i] = champion
        i >>= 1
    return True


@njit
def play_all(off: int, n: int, win: Any, weight: Any) -> None:
    """Fill a tournament of n places, all set, from the bottom. O(n). Changes `win`."""
    for i in range(n - 1, 0, -1):
        win[off + i] = better(weight, np.int64(win[off + 2 * i]), np.int64(win[off + 2 * i + 1]))
