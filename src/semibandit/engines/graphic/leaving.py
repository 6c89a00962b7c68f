"""The heaviest edges that leave a part of the tree, or a group of parts (see `parts`)."""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.lanes import LANE_BITS, LANES
from semibandit.engines.graphic.edges import FIRST_SLOT, FIRST_WINNER, HEAD, N_BLOCKS, NOBODY, TAIL, beats
from semibandit.engines.graphic.state import (
    BEST,
    FIRST_VERTEX,
    KNOWN,
    N_VERTICES,
    NEXT_MEMBER,
    SEARCH_WORK,
    SECOND,
    open_forest,
)

# What is done, in nanoseconds (measured; only ratios matter): a row looked at, a block of it.
NS_ROW, NS_BLOCK = 10, 16


@kernel
def look_around(handle, i):
    """Find the two heaviest cold edges from part i to other groups: BEST and SECOND. O(its rows).

    A row, 16 blocks, or a block whose winner does not beat the second best so far is passed over.
    """
    state = open_forest(handle)
    edges, parts = state.edges, state.parts
    about, label, group = parts.about, parts.label, parts.group
    slot_weight, slot_arm, slot_far_end = edges.slot_weight, edges.slot_arm, edges.slot_far_end
    winner_weight, winner_arm = edges.winner_weight, edges.winner_arm
    w1, a1 = -np.inf, np.int64(NOBODY)
    w2, a2 = -np.inf, np.int64(NOBODY)
    mine = group[i]
    begin, n = np.int64(about[i, FIRST_VERTEX]), np.int64(about[i, N_VERTICES])
    blocks = 0
    for at in range(begin, begin + n):
        v = parts.vertex[at]
        if not beats(edges.heaviest[v], edges.heaviest_arm[v], w2, a2):
            continue
        first, n_blocks = np.int64(edges.row[v, FIRST_SLOT]), np.int64(edges.row[v, N_BLOCKS])
        offset = np.int64(edges.row[v, FIRST_WINNER])
        above = offset + (((n_blocks + LANES - 1) >> LANE_BITS) << LANE_BITS)
        b = np.int64(0)
        while b < n_blocks:
            if n_blocks > LANES and b & (LANES - 1) == 0:
                up = above + (b >> LANE_BITS)
                if not beats(winner_weight[up], winner_arm[up], w2, a2):
                    b += LANES
                    continue
            if n_blocks > 1 and not beats(winner_weight[offset + b], winner_arm[offset + b], w2, a2):
                b += 1
                continue
            blocks += 1
            start = first + (b << LANE_BITS)
            for s in range(start, start + LANES):
                w = slot_weight[s]
                if w < w2 or w == -np.inf:
                    continue
                arm = np.int64(slot_arm[s])
                if beats(w, arm, w2, a2) and group[label[slot_far_end[s]]] != mine:
                    if beats(w, arm, w1, a1):
                        w2, a2 = w1, a1
                        w1, a1 = w, arm
                    else:
                        w2, a2 = w, arm
            b += 1
    parts.weight[i, BEST], parts.arm[i, BEST] = w1, a1
    parts.weight[i, SECOND], parts.arm[i, SECOND] = w2, a2
    about[i, KNOWN] = 2
    state.counters[SEARCH_WORK] += NS_ROW * n + NS_BLOCK * blocks


@inline_kernel
def _leaves(state, arm, g):
    """Whether `arm`, which has an end in group g, has the other one in another group. O(1)."""
    table, label, group = state.edges.table, state.parts.label, state.parts.group
    return group[label[table[arm, TAIL]]] != g or group[label[table[arm, HEAD]]] != g


@inline_kernel
def best_of_group(handle, state, g):
    """The heaviest cold edge that leaves group g, NOBODY if there is none. O(members), more where one looks again.

    BEST of a member bounds what it has to offer, KNOWN says how many of its two edges are still exact.
    """
    parts = state.parts
    about, weight, arms = parts.about, parts.weight, parts.arm
    w, arm = -np.inf, np.int64(NOBODY)
    i = np.int64(g)
    while True:
        while beats(weight[i, BEST], arms[i, BEST], w, arm):
            if about[i, KNOWN] == 0:
                look_around(handle, i)
            elif _leaves(state, arms[i, BEST], g):
                w, arm = weight[i, BEST], np.int64(arms[i, BEST])
            elif about[i, KNOWN] == 2:
                weight[i, BEST], arms[i, BEST] = weight[i, SECOND], arms[i, SECOND]
                about[i, KNOWN] = 1
            else:
                about[i, KNOWN] = 0
        i = np.int64(about[i, NEXT_MEMBER])
        if i == g:
            return arm
