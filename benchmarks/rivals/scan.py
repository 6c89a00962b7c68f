"""Rivals that look at every weight once a round: uniform and partition matroids. O(K) a round.

Written from scratch for the benchmark; nothing of the engines they are measured against is used, only the
common round loop. Weights are two plain arrays, so a pass reads 16 bytes an arm.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semibandit.arms import ALPHA, BETA, FloatArray
from semibandit.compiled.handle import Floats1, Floats2, Ints1
from semibandit.compiled.jit import kernel
from semibandit.engines.kernels import implement_engine
from semibandit.matroids import Matroid, Partition


class OnePass(NamedTuple):
    """`first[g]` is where group g's heap starts; `group` is empty when there is one group."""

    recs: Floats2
    alpha: Floats1
    beta: Floats1
    group: Ints1
    first: Ints1
    filled: Ints1
    heap_weight: Floats1
    heap_arm: Ints1


@kernel
def _settle(weight, arm, at, lo, n):
    """Sink item `at` of the heap of n items at lo; on top is the lightest, of equals the largest id."""
    while True:
        worst = at
        for child in (2 * at + 1, 2 * at + 2):
            if child < n:
                a, b = lo + child, lo + worst
                if weight[a] < weight[b] or (weight[a] == weight[b] and arm[a] > arm[b]):
                    worst = child
        if worst == at:
            return
        a, b = lo + worst, lo + at
        weight[a], weight[b] = weight[b], weight[a]
        arm[a], arm[b] = arm[b], arm[a]
        at = worst


@kernel
def _fill(heap_weight, heap_arm, lo, n, capacity, w, k):
    """Add an arm to a heap that is not full yet; order it once it is."""
    heap_weight[lo + n] = w
    heap_arm[lo + n] = k
    if n + 1 == capacity:
        for at in range(capacity // 2 - 1, -1, -1):
            _settle(heap_weight, heap_arm, at, lo, capacity)


@kernel
def ascending(ids, n):
    """Shell sort of ids[:n]: short and fast for the sizes of a base."""
    gap = 1
    while gap < n // 9:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            x = ids[i]
            j = i
            while j >= gap and ids[j - gap] > x:
                ids[j] = ids[j - gap]
                j -= gap
            ids[j] = x
        gap //= 3


@kernel
def _one_group(state, lam, out):
    alpha, beta, hw, ha = state.alpha, state.beta, state.heap_weight, state.heap_arm
    d = out.shape[0]
    for k in range(d):
        _fill(hw, ha, 0, k, d, alpha[k] + lam * beta[k], k)
    bar = hw[0]
    for k in range(d, alpha.shape[0]):
        w = alpha[k] + lam * beta[k]
        if w > bar:  # ids ascend, so an equal weight stays out
            hw[0] = w
            ha[0] = k
            _settle(hw, ha, 0, 0, d)
            bar = hw[0]
    for i in range(d):
        out[i] = ha[i]
    ascending(out, d)
    return d


@kernel
def _select_one_pass(state, lam, out):
    if state.group.shape[0] == 0:
        return _one_group(state, lam, out)
    alpha, beta, group, first = state.alpha, state.beta, state.group, state.first
    filled, hw, ha = state.filled, state.heap_weight, state.heap_arm
    filled[:] = 0
    for k in range(alpha.shape[0]):
        g = group[k]
        lo = first[g]
        capacity = first[g + 1] - lo
        w = alpha[k] + lam * beta[k]
        if filled[g] < capacity:
            _fill(hw, ha, lo, filled[g], capacity, w, k)
            filled[g] += 1
        elif capacity > 0 and w > hw[lo]:
            hw[lo] = w
            ha[lo] = k
            _settle(hw, ha, 0, lo, capacity)
    n = first[-1]
    for i in range(n):
        out[i] = ha[i]
    ascending(out, n)
    return n


@kernel
def _touch(state, arm):
    state.alpha[arm] = state.recs[arm, ALPHA]
    state.beta[arm] = state.recs[arm, BETA]


implement_engine(OnePass, _select_one_pass, _touch)


def one_pass(matroid: Matroid, recs: FloatArray) -> OnePass:
    """State of the one-pass scan, with the weights in `recs`. O(K)."""
    if isinstance(matroid, Partition):
        group = np.array(matroid._group)
        capacity = np.array(matroid._capacity)
    else:
        group = np.zeros(0, dtype=np.int64)
        capacity = np.array([matroid.rank], dtype=np.int64)
    return OnePass(
        recs=recs,
        alpha=np.ascontiguousarray(recs[:, ALPHA]),
        beta=np.ascontiguousarray(recs[:, BETA]),
        group=group,
        first=np.concatenate([[0], np.cumsum(capacity)]).astype(np.int64),
        filled=np.zeros(len(capacity), dtype=np.int64),
        heap_weight=np.zeros(matroid.rank),
        heap_arm=np.zeros(matroid.rank, dtype=np.int64),
    )
