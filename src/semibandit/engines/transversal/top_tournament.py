"""A tournament over the right nodes, which says whose best outsider is heaviest: scratch of re-solving.

Keys may be heavier than what they stand for; they only ever fall.
"""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.engines.transversal.best_outsiders import best_outsider
from semibandit.engines.transversal.state import FANOUT, SHIFT


@inline_kernel
def _heaviest(ids, first, last, weight, arm):
    """The right node among ids[first .. last - 1] with the heaviest key, of equal ones the smaller arm."""
    best = ids[first]
    top, top_arm = weight[best], arm[best]
    for i in range(first + 1, last):
        r = ids[i]
        w, a = weight[r], arm[r]
        if (w > top) | ((w == top) & (a < top_arm)):
            best, top, top_arm = r, w, a
    return best


@kernel
def play_top(top, best):
    """Take the best outsiders of all right nodes as keys and play. Changes `top`; returns its root. O(n_right)."""
    ids, weight, arm, winner = top.node_ids, top.weight, top.arm, top.winner
    n = ids.shape[0]
    for r in range(n):
        weight[r] = best.node_weight[r]
        arm[r] = best_outsider(best, r) if weight[r] > -np.inf else -1
    v = 0
    for first in range(0, n, FANOUT):
        winner[v] = _heaviest(ids, first, min(first + FANOUT, n), weight, arm)
        v += 1
    below = 0
    while v - below > 1:
        above = v
        for first in range(below, above, FANOUT):
            winner[v] = _heaviest(winner, first, min(first + FANOUT, above), weight, arm)
            v += 1
        below = above
    return v - 1


@kernel
def replay_top(top, r):
    """The key of right node r became lighter: play again where r had won. O(1) if nowhere, else O(FANOUT log)."""
    ids, weight, arm, winner = top.node_ids, top.weight, top.arm, top.winner
    n = ids.shape[0]
    index = r >> SHIFT
    if winner[index] != r:
        return
    first = index << SHIFT
    winner[index] = _heaviest(ids, first, min(first + FANOUT, n), weight, arm)
    level, width = 0, (n + FANOUT - 1) >> SHIFT
    while width > 1:
        index >>= SHIFT
        above = level + width
        if winner[above + index] != r:
            return
        first = level + (index << SHIFT)
        winner[above + index] = _heaviest(winner, first, min(first + FANOUT, above), weight, arm)
        level = above
        width = (width + FANOUT - 1) >> SHIFT
