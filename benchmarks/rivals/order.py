"""Rivals that keep the arms in order from round to round. O(K) a round.

Between rounds only the played arms move far. So: re-weight the others in one pass over arrays that lie in
order, put right by insertion what the new lam turned round, sort the played ones apart and merge them in.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmarks.rivals.greedy import grow_forest, grow_laminar, grow_matching
from benchmarks.rivals.scan import ascending
from semibandit.arms import ALPHA, BETA, FloatArray, IntArray
from semibandit.compiled.handle import Bytes1, Floats1, Floats2, Ints1
from semibandit.compiled.jit import kernel
from semibandit.engines.kernels import implement_engine
from semibandit.matroids import Graphic, Laminar, Matroid, Transversal

_N_TOUCHED, _STARTED = 0, 1


class Sorted(NamedTuple):
    """`arm[i]` is the i-th heaviest, with its weight, alpha and beta in ``row[i]``.

    `touched` lists arms whose record changed; `row2`, `arm2` are their rows while they are sorted in.
    """

    arm: Ints1
    row: Floats2
    touched: Ints1
    is_touched: Bytes1
    arm2: Ints1
    row2: Floats2
    meta: Ints1
    lam: Floats1


def new_sorted(recs: FloatArray) -> Sorted:
    """All arms in order of `recs` at lam = 0. O(K log K)."""
    n = len(recs)
    order = np.argsort(-recs[:, ALPHA], kind="stable").astype(np.int64)
    row = np.column_stack([recs[order, ALPHA], recs[order, ALPHA], recs[order, BETA]])
    return Sorted(
        arm=order,
        row=np.ascontiguousarray(row),
        touched=np.zeros(n, dtype=np.int64),
        is_touched=np.zeros(n, dtype=np.uint8),
        arm2=np.zeros(n, dtype=np.int64),
        row2=np.zeros((n, 3)),
        meta=np.zeros(2, dtype=np.int64),
        lam=np.zeros(1),
    )


@kernel
def _before(w, k, v, j):
    return w > v or (w == v and k < j)


@kernel
def _insert(arm, row, n, k, w, a, b):
    """Put an arm into arm[:n], row[:n], which are in order. Returns how many had to move."""
    i = n
    while i > 0 and _before(w, k, row[i - 1, 0], arm[i - 1]):
        arm[i] = arm[i - 1]
        row[i, 0], row[i, 1], row[i, 2] = row[i - 1, 0], row[i - 1, 1], row[i - 1, 2]
        i -= 1
    arm[i] = k
    row[i, 0], row[i, 1], row[i, 2] = w, a, b
    return n - i


@kernel
def _heap_order(arm, row, n):
    """Heapsort by weight descending, id ascending, for when too much moved to insert."""
    begin, end = n // 2, n
    while end > 1:
        if begin > 0:
            begin -= 1
            at = begin
        else:
            end -= 1
            arm[0], arm[end] = arm[end], arm[0]
            for c in range(3):
                row[0, c], row[end, c] = row[end, c], row[0, c]
            at = 0
        while True:
            child = 2 * at + 1
            if child >= end:
                break
            if child + 1 < end and _before(row[child, 0], arm[child], row[child + 1, 0], arm[child + 1]):
                child += 1
            if not _before(row[at, 0], arm[at], row[child, 0], arm[child]):
                break
            arm[at], arm[child] = arm[child], arm[at]
            for c in range(3):
                row[at, c], row[child, c] = row[child, c], row[at, c]
            at = child


@kernel
def resort(kept, recs, lam):
    """Bring the order up to date. O(K + inversions) and a sort of the touched arms. Changes `kept`."""
    arm, row, meta = kept.arm, kept.row, kept.meta
    same = meta[_STARTED] == 1 and kept.lam[0] == lam
    n_arms, n_touched = arm.shape[0], meta[_N_TOUCHED]
    if same and n_touched == 0:
        return
    meta[_STARTED] = 1
    kept.lam[0] = lam
    n = 0
    patience = 8 * n_arms
    for i in range(n_arms):
        k = arm[i]
        if kept.is_touched[k]:
            continue
        a, b = row[i, 1], row[i, 2]
        w = row[i, 0] if same else a + lam * b
        if patience > 0:
            patience -= _insert(arm, row, n, k, w, a, b)
        else:
            arm[n] = k
            row[n, 0], row[n, 1], row[n, 2] = w, a, b
        n += 1
    if patience <= 0:
        _heap_order(arm, row, n)
    m = 0
    for i in range(n_touched):
        k = kept.touched[i]
        kept.is_touched[k] = 0
        a, b = recs[k, ALPHA], recs[k, BETA]
        kept.arm2[m] = k
        kept.row2[m, 0], kept.row2[m, 1], kept.row2[m, 2] = a + lam * b, a, b
        m += 1
    meta[_N_TOUCHED] = 0
    _heap_order(kept.arm2, kept.row2, m)
    i, j = n - 1, m - 1
    for o in range(n_arms - 1, -1, -1):
        if j < 0:
            break
        if i >= 0 and _before(kept.row2[j, 0], kept.arm2[j], row[i, 0], arm[i]):
            arm[o] = arm[i]
            row[o, 0], row[o, 1], row[o, 2] = row[i, 0], row[i, 1], row[i, 2]
            i -= 1
        else:
            arm[o] = kept.arm2[j]
            row[o, 0], row[o, 1], row[o, 2] = kept.row2[j, 0], kept.row2[j, 1], kept.row2[j, 2]
            j -= 1


class KeptForest(NamedTuple):
    """Kruskal over a kept order; see `grow_forest` for the last four."""

    recs: Floats2
    kept: Sorted
    tail: Ints1
    head: Ints1
    label: Ints1
    link: Ints1
    last: Ints1
    members: Ints1


class KeptMatching(NamedTuple):
    """Greedy matching over a kept order; see `grow_matching`."""

    recs: Floats2
    kept: Sorted
    start: Ints1
    right: Ints1
    owner: Ints1
    visited: Ints1
    reached_by: Ints1
    path: Ints1


class KeptLaminar(NamedTuple):
    """Family counters over a kept order; see `grow_laminar`."""

    recs: Floats2
    kept: Sorted
    leaf: Ints1
    parent: Ints1
    capacity: Ints1
    used: Ints1


@kernel
def _select_forest(state, lam, out):
    resort(state.kept, state.recs, lam)
    order = state.kept.arm
    n = grow_forest(
        order, order.shape[0], state.tail, state.head, state.label, state.link, state.last, state.members, out
    )
    ascending(out, n)
    return n


@kernel
def _select_matching(state, lam, out):
    resort(state.kept, state.recs, lam)
    order = state.kept.arm
    n = grow_matching(
        order,
        order.shape[0],
        state.start,
        state.right,
        state.owner,
        state.visited,
        state.reached_by,
        state.path,
        out,
    )
    ascending(out, n)
    return n


@kernel
def _select_laminar(state, lam, out):
    resort(state.kept, state.recs, lam)
    order = state.kept.arm
    n = grow_laminar(order, order.shape[0], state.leaf, state.parent, state.capacity, state.used, out)
    ascending(out, n)
    return n


@kernel
def _touch(state, arm):
    kept = state.kept
    if kept.is_touched[arm] == 0:
        kept.is_touched[arm] = 1
        kept.touched[kept.meta[_N_TOUCHED]] = arm
        kept.meta[_N_TOUCHED] += 1


implement_engine(KeptForest, _select_forest, _touch)
implement_engine(KeptMatching, _select_matching, _touch)
implement_engine(KeptLaminar, _select_laminar, _touch)


def _zeros(n: int, how_many: int) -> list[IntArray]:
    return [np.zeros(n, dtype=np.int64) for _ in range(how_many)]


def kept_order(matroid: Matroid, recs: FloatArray) -> KeptForest | KeptMatching | KeptLaminar:
    """State of the kept-order greedy for `matroid`, with the weights in `recs`. O(K log K)."""
    kept = new_sorted(recs)
    if isinstance(matroid, Graphic):
        ends = np.array(matroid._tail), np.array(matroid._head)
        return KeptForest(recs, kept, *ends, *_zeros(matroid.n_vertices, 4))
    if isinstance(matroid, Transversal):
        edges = np.array(matroid._indptr), np.array(matroid._indices)
        return KeptMatching(recs, kept, *edges, *_zeros(matroid.n_right, 4))
    assert isinstance(matroid, Laminar)
    tree = np.array(matroid._leaf), np.array(matroid._parent), np.array(matroid._capacity)
    return KeptLaminar(recs, kept, *tree, np.zeros(len(matroid._parent), dtype=np.int64))
