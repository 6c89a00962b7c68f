"""Re-solving uniform and partition matroids in one pass over the weights: O(K) a round.

The honest linear-time rival of every faster engine, and their oracle. Weights are kept in two compact arrays
beside the records (16 bytes an arm are read a round instead of 32), and each group keeps a heap of its
`capacity` heaviest arms, so that an arm which is not among them costs one comparison.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from semibandit.arms import ALPHA, BETA
from semibandit.compiled.handle import Flags1, Floats1, Floats2, Ints1
from semibandit.compiled.jit import kernel
from semibandit.compiled.sorting import heap_offer, heap_sink, sort_ids_in_place
from semibandit.engines.base import CompiledEngine
from semibandit.engines.kernels import implement_engine
from semibandit.matroids import Matroid, Partition, Uniform


class ScanState(NamedTuple):
    """`start[g]` is where group g's heap begins in `heap_weight` and `heap_arm`; `group` is empty for uniform.

    `alpha[k] = -inf` marks an absent arm; `present` tells deleted arms from arms that are there.
    """

    recs: Floats2
    alpha: Floats1
    beta: Floats1
    present: Flags1
    group: Ints1
    start: Ints1
    size: Ints1
    heap_weight: Floats1
    heap_arm: Ints1


@kernel
def _scan_select(state, lam, out):
    """One pass over all weights. Changes the heaps and `out`."""
    alpha, beta, group, start, size = state.alpha, state.beta, state.group, state.start, state.size
    heap_weight, heap_arm = state.heap_weight, state.heap_arm
    n_groups = start.shape[0] - 1
    if n_groups == 1:
        capacity = start[1]
        n = 0
        k = 0
        n_arms = alpha.shape[0]
        while k < n_arms and n < capacity:
            if alpha[k] != -np.inf:
                n = heap_offer(heap_weight, heap_arm, 0, n, capacity, alpha[k] + lam * beta[k], k)
            k += 1
        if n == capacity:
            bar = heap_weight[0]
            for j in range(k, n_arms):
                w = alpha[j] + lam * beta[j]
                if w > bar:
                    heap_weight[0] = w
                    heap_arm[0] = j
                    heap_sink(heap_weight, heap_arm, 0, capacity, 0)
                    bar = heap_weight[0]
        for i in range(n):
            out[i] = heap_arm[i]
    else:
        size[:] = 0
        for k in range(alpha.shape[0]):
            if alpha[k] == -np.inf:
                continue
            g = group[k]
            capacity = start[g + 1] - start[g]
            w = alpha[k] + lam * beta[k]
            if size[g] < capacity or (capacity > 0 and w > heap_weight[start[g]]):
                size[g] = heap_offer(heap_weight, heap_arm, start[g], size[g], capacity, w, k)
        n = 0
        for g in range(n_groups):
            for i in range(start[g], start[g] + size[g]):
                out[n] = heap_arm[i]
                n += 1
    sort_ids_in_place(out, n)
    return n


@kernel
def _scan_touch(state, arm):
    """Copy one record's weight. O(1)."""
    if state.present[arm]:
        state.alpha[arm] = state.recs[arm, ALPHA]
        state.beta[arm] = state.recs[arm, BETA]


@kernel
def _scan_remove(state, arms):
    """Take present arms out. O(1) each."""
    for i in range(arms.shape[0]):
        state.present[arms[i]] = False
        state.alpha[arms[i]] = -np.inf
        state.beta[arms[i]] = 0.0


@kernel
def _scan_restore(state, arms):
    """Put absent arms back with the weights in their records. O(1) each."""
    for i in range(arms.shape[0]):
        state.present[arms[i]] = True
        _scan_touch(state, arms[i])


@kernel
def _scan_touch_all(state):
    """Copy all weights, in one loop without calls: policies that draw all weights anew do it many times a round."""
    recs, alpha, beta, present = state.recs, state.alpha, state.beta, state.present
    for arm in range(alpha.shape[0]):
        if present[arm]:
            alpha[arm] = recs[arm, ALPHA]
            beta[arm] = recs[arm, BETA]


implement_engine(
    ScanState,
    _scan_select,
    _scan_touch,
    touch_all=_scan_touch_all,
    remove=_scan_remove,
    restore=_scan_restore,
)


class ScanEngine(CompiledEngine):
    """One-pass re-solve for uniform and partition matroids: O(K) a round, O(1) an update."""

    name = "resolve"

    def __init__(self, matroid: Matroid, records: npt.NDArray[np.void] | None = None) -> None:
        super().__init__(matroid, records)
        if isinstance(matroid, Uniform):
            group = np.zeros(0, dtype=np.int64)
            capacity = np.array([matroid.rank], dtype=np.int64)
        elif isinstance(matroid, Partition):
            # A copy that is writeable: read-only arrays would have a compiled signature of their own.
            group, capacity = matroid._group.copy(), matroid._capacity
        else:
            raise TypeError(f"ScanEngine serves uniform and partition matroids, got {matroid!r}")
        start = np.concatenate([[0], np.cumsum(capacity)]).astype(np.int64)
        state = ScanState(
            recs=self._recs,
            alpha=self._recs[:, ALPHA].copy(),
            beta=self._recs[:, BETA].copy(),
            present=np.ones(self.n_arms, dtype=np.bool_),
            group=group,
            start=start,
            size=np.zeros(len(capacity), dtype=np.int64),
            heap_weight=np.zeros(int(start[-1])),
            heap_arm=np.zeros(int(start[-1]), dtype=np.int64),
        )
        self._run_on(state)

    def _check(self) -> None:
        s: Any = self._state
        here = s.present
        assert np.array_equal(s.alpha[here], self._recs[here, ALPHA])
        assert np.array_equal(s.beta[here], self._recs[here, BETA])
        assert np.isneginf(s.alpha[~here]).all()
        assert np.array_equal(~here, self._is_deleted(np.arange(self.n_arms)))
