"""The list of hot edges in order of weight, those awake and those dormant, and what moves between the two.

Hot edges are played, fall, and are sorted in again: those awake are few, and moved in every round. A hot edge that
waits long outside the base becomes dormant. Dormant edges lie in an order of their own, from the middle of the arrays
on, in which nothing moves: one that leaves is only marked, by two ends that are the same, and Kruskal passes over it.
"""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.sorting import sort_keys
from semibandit.engines.graphic.edges import HEAD, TAIL, beats
from semibandit.engines.graphic.state import (
    HOT_ARM,
    HOT_HEAD,
    HOT_IN_BASE,
    HOT_TAIL,
    N_DORMANT,
    N_HOT,
    N_PICKED,
    UNSORTED,
    WOKEN,
    open_forest,
)

# With more hot edges than this many times D and a few, those outside the base become dormant.
MOST_AWAKE, FEW_AWAKE = 3, 64


@inline_kernel
def move_hot(hot, to, i):
    """Entry `to` of the hot edges becomes what entry i is. O(1)."""
    hot.weight[to] = hot.weight[i]
    hot.edge[to, HOT_ARM] = hot.edge[i, HOT_ARM]
    hot.edge[to, HOT_TAIL] = hot.edge[i, HOT_TAIL]
    hot.edge[to, HOT_HEAD] = hot.edge[i, HOT_HEAD]
    hot.edge[to, HOT_IN_BASE] = hot.edge[i, HOT_IN_BASE]


@inline_kernel
def write_hot(state, o, w, arm, in_base):
    """Write `arm` with weight w to place o. O(1)."""
    hot_edge, table = state.hot.edge, state.edges.table
    state.hot.weight[o] = w
    hot_edge[o, HOT_ARM] = arm
    hot_edge[o, HOT_TAIL] = table[arm, TAIL]
    hot_edge[o, HOT_HEAD] = table[arm, HEAD]
    hot_edge[o, HOT_IN_BASE] = in_base


@inline_kernel
def _leave_dormant(state, i):
    """The dormant edge at place i is none any more. O(1)."""
    state.hot.edge[i, HOT_HEAD] = state.hot.edge[i, HOT_TAIL]


@inline_kernel
def wake_up(state):
    """Move dormant edges that were touched, or came into the base, behind the others; they count as touched.

    O(those in the base), or O(dormant edges) if others were touched or all weights were read.
    """
    hot, flags, lengths, pending = state.hot, state.flags, state.lengths, state.edges.pending
    n = lengths[N_HOT]
    first = hot.weight.shape[0] >> 1
    if flags[UNSORTED] or flags[WOKEN]:
        kept = first
        for i in range(first, first + lengths[N_DORMANT]):
            arm = hot.edge[i, HOT_ARM]
            if hot.edge[i, HOT_TAIL] == hot.edge[i, HOT_HEAD]:
                continue
            if flags[UNSORTED] or pending[arm] != 0 or hot.edge[i, HOT_IN_BASE] == 1:
                pending[arm] = 1
                move_hot(hot, n, i)
                n += 1
            else:
                move_hot(hot, kept, i)
                kept += 1
        lengths[N_DORMANT] = kept - first
    else:
        for j in range(lengths[N_PICKED]):
            i = np.int64(hot.picked[j])
            pending[hot.edge[i, HOT_ARM]] = 1
            move_hot(hot, n, i)
            _leave_dormant(state, i)
            n += 1
    flags[WOKEN] = False
    lengths[N_PICKED] = 0
    lengths[N_HOT] = n


@kernel
def make_dormant(handle):
    """Make hot edges outside the base dormant: merge them with those that are, from the light end. O(hot edges)."""
    state = open_forest(handle)
    hot, lengths, scratch = state.hot, state.lengths, state.scratch
    first = hot.weight.shape[0] >> 1
    n, m = 0, 0
    for i in range(lengths[N_HOT]):
        if hot.edge[i, HOT_IN_BASE] == 1:
            move_hot(hot, n, i)
            n += 1
        else:
            scratch.weight[m] = hot.weight[i]
            scratch.arm[m] = hot.edge[i, HOT_ARM]
            m += 1
    lengths[N_HOT] = n
    kept = first
    for i in range(first, first + lengths[N_DORMANT]):
        if hot.edge[i, HOT_TAIL] != hot.edge[i, HOT_HEAD]:
            move_hot(hot, kept, i)
            kept += 1
    i, j = kept - 1, m - 1
    o = i + m
    lengths[N_DORMANT] = o + 1 - first
    while j >= 0:
        w, arm = scratch.weight[j], scratch.arm[j]
        if i >= first and beats(w, arm, hot.weight[i], np.int64(hot.edge[i, HOT_ARM])):
            move_hot(hot, o, i)
            i -= 1
        else:
            write_hot(state, o, w, arm, 0)
            j -= 1
        o -= 1
    n = 0
    for i in range(first, first + lengths[N_DORMANT]):
        if hot.edge[i, HOT_IN_BASE] == 1:
            hot.picked[n] = i
            n += 1
    lengths[N_PICKED] = n


@inline_kernel
def merge_entering(state, n_entering):
    """Sort the edges that enter and merge them into the hot ones, from the light end. O(hot edges + n)."""
    hot, lengths, scratch = state.hot, state.lengths, state.scratch
    entering_weight, entering_arm = hot.entering_weight, hot.entering_arm
    sort_keys(entering_weight, entering_arm, n_entering, scratch.weight, scratch.arm, scratch.bins)
    i, j = lengths[N_HOT] - 1, n_entering - 1
    o = i + n_entering
    lengths[N_HOT] = o + 1
    while j >= 0:
        w = entering_weight[j]
        arm = entering_arm[j]
        if i >= 0 and beats(w, arm, hot.weight[i], np.int64(hot.edge[i, HOT_ARM])):
            move_hot(hot, o, i)
            i -= 1
        else:
            write_hot(state, o, w, arm, 1)
            j -= 1
        o -= 1
