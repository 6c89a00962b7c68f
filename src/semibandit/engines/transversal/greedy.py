"""Greedy over arms kept in order (`order.two_runs`): the part of the adaptive engine for busy states.

Its cost hardly depends on how much of the base changes, but a new lam costs a pass over all arms.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semibandit.arms import FloatArray
from semibandit.compiled.handle import Floats2, Ints1, opener
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.sorting import sort_ids
from semibandit.engines.order.two_runs import TwoRuns, new_two_runs, runs_next, runs_touch, runs_update
from semibandit.engines.resolve.greedy import DEAD, augment
from semibandit.engines.transversal.state import RIGHT, Challengers
from semibandit.matroids import Transversal


class OrderedGreedy(NamedTuple):
    """Arms in order beside the matching that greedy found: an arm or -1 for each right node.

    `last[:n_last[0]]` is the last answer. The rest is scratch of searches.
    """

    recs: Floats2
    runs: TwoRuns
    indptr: Ints1
    indices: Ints1
    matched_arm: Ints1
    seen: Ints1
    came_from: Ints1
    queue: Ints1
    last: Ints1
    n_last: Ints1


open_greedy = opener(OrderedGreedy)


def new_ordered_greedy(matroid: Transversal, recs: FloatArray, challengers: Challengers) -> OrderedGreedy:
    """A state without any order yet, over the same edges as `challengers`. O(K + edges)."""
    matched_arm, seen, came_from, queue = (np.zeros(matroid.n_right, dtype=np.int64) for _ in range(4))
    return OrderedGreedy(
        recs=recs,
        runs=new_two_runs(matroid.n_arms, matroid.rank),
        indptr=challengers.indptr,
        indices=challengers.edge[:, RIGHT].astype(np.int64),
        matched_arm=matched_arm,
        seen=seen,
        came_from=came_from,
        queue=queue,
        last=np.zeros(matroid.rank, dtype=np.int64),
        n_last=np.zeros(1, dtype=np.int64),
    )


@kernel
def greedy_select(handle, lam, out):
    """Greedy with augmenting paths, heaviest arm first, until the base is full. Changes the matching and `out`.

    What a failed search reached is dead for the rest of the round, as in `resolve.greedy`. O(arms looked at) searches
    besides bringing the order up to date.
    """
    state = open_greedy(handle)
    runs, matched_arm, seen, queue = state.runs, state.matched_arm, state.seen, state.queue
    runs_update(runs, state.recs, lam)
    matched_arm[:] = -1
    seen[:] = 0
    i, j = runs.start[0], 0
    n, stamp = 0, 0
    while n < out.shape[0]:
        arm, i, j = runs_next(runs, i, j)
        if arm < 0:
            break
        stamp += 1
        found, reached = augment(
            state.indptr, state.indices, matched_arm, seen, stamp, state.came_from, queue, arm
        )
        if found:
            out[n] = arm
            n += 1
        else:
            for r in range(reached):
                seen[queue[r]] = DEAD
    sort_ids(out, n, runs.spare_arm, runs.bins)
    return n


@inline_kernel
def count_new(state, out, n):
    """How many arms of out[:n] were not in the last answer, which becomes out[:n]. O(D)."""
    last, m = state.last, state.n_last[0]
    new, j = 0, 0
    for i in range(n):
        while j < m and last[j] < out[i]:
            j += 1
        if j == m or last[j] != out[i]:
            new += 1
    for i in range(n):
        last[i] = out[i]
    state.n_last[0] = n
    return new


@kernel
def greedy_touch_many(handle, arms):
    """The records of `arms` changed, or they appeared or disappeared. O(1) each."""
    runs = open_greedy(handle).runs
    for i in range(arms.shape[0]):
        runs_touch(runs, arms[i])


@inline_kernel
def set_present(handle, arms, present):
    """Whether these arms are there from now on. O(1) each."""
    runs = open_greedy(handle).runs
    for i in range(arms.shape[0]):
        runs.present[arms[i]] = present
