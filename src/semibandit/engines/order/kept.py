"""Arms kept sorted by weight from one round to the next.

Between two rounds only the played arms move far; the others drift a little with lam. So the order is kept:
untouched arms are re-weighted in one sequential pass and repaired by insertion (few inversions), the touched
ones are sorted apart and merged in. Expected O(K + inversions + n) for n touched arms, in place of O(K log K).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semibandit.arms import ALPHA, BETA, FloatArray
from semibandit.compiled.handle import Bytes1, Flags1, Floats1, Ints1
from semibandit.compiled.jit import kernel
from semibandit.compiled.sorting import sort_keys


class KeptOrder(NamedTuple):
    """Arms by (weight descending, id ascending) with their weight parts beside them.

    `order`, `alpha`, `beta`, `weight` hold the `n_kept[0]` present arms; `pending` lists `n_pending[0]` arms whose
    record changed since (`flag` != 0), in no order. `present` is false for deleted arms. `lam[0]` is the query of the
    kept weights, NaN before the first. The other arrays are scratch space.
    """

    order: Ints1
    alpha: Floats1
    beta: Floats1
    weight: Floats1
    pending: Ints1
    flag: Bytes1
    present: Flags1
    scratch_arm: Ints1
    scratch_weight: Floats1
    count: Ints1
    n_kept: Ints1
    n_pending: Ints1
    lam: Floats1


def new_kept_order(n_arms: int) -> KeptOrder:
    """A kept order in which every arm is still pending. O(K)."""
    return KeptOrder(
        order=np.zeros(n_arms, dtype=np.int64),
        alpha=np.zeros(n_arms),
        beta=np.zeros(n_arms),
        weight=np.zeros(n_arms),
        pending=np.arange(n_arms, dtype=np.int64),
        flag=np.ones(n_arms, dtype=np.uint8),
        present=np.ones(n_arms, dtype=np.bool_),
        scratch_arm=np.zeros(n_arms, dtype=np.int64),
        scratch_weight=np.zeros(n_arms),
        count=np.zeros(max(257, n_arms + 2), dtype=np.int64),
        n_kept=np.zeros(1, dtype=np.int64),
        n_pending=np.array([n_arms], dtype=np.int64),
        lam=np.full(1, np.nan),
    )


@kernel
def kept_touch(kept, arm):
    """Remember that `arm` must be re-sorted (also when it appears or disappears). O(1)."""
    if kept.flag[arm] == 0:
        kept.flag[arm] = 1
        kept.pending[kept.n_pending[0]] = arm
        kept.n_pending[0] += 1


@kernel
def kept_remove(kept, arms):
    """These present, distinct arms are deleted. O(1) each."""
    for i in range(arms.shape[0]):
        kept_touch(kept, arms[i])
        kept.present[arms[i]] = False


@kernel
def kept_restore(kept, arms):
    """These deleted, distinct arms are back. O(1) each."""
    for i in range(arms.shape[0]):
        kept_touch(kept, arms[i])
        kept.present[arms[i]] = True


@kernel
def kept_sort(kept, recs, lam):
    """Bring the order up to date with the records and `lam`. Changes everything in `kept`."""
    order, alpha, beta, weight = kept.order, kept.alpha, kept.beta, kept.weight
    flag, n_kept, n_pending = kept.flag, kept.n_kept[0], kept.n_pending[0]
    same_lam = lam == kept.lam[0]
    if same_lam and n_pending == 0:
        return
    kept.lam[0] = lam

    n = 0
    moves = 0
    budget = 8 * n_kept + 64
    repaired = True
    for i in range(n_kept):
        arm = order[i]
        if flag[arm] != 0:
            continue
        a, b = alpha[i], beta[i]
        w = weight[i] if same_lam else a + lam * b
        j = n - 1
        if repaired:
            while j >= 0 and (weight[j] < w or (weight[j] == w and order[j] > arm)):
                weight[j + 1] = weight[j]
                order[j + 1] = order[j]
                alpha[j + 1] = alpha[j]
                beta[j + 1] = beta[j]
                j -= 1
                moves += 1
            repaired = moves <= budget
        weight[j + 1] = w
        order[j + 1] = arm
        alpha[j + 1] = a
        beta[j + 1] = b
        n += 1
    if not repaired:
        sort_keys(weight, order, n, kept.scratch_weight, kept.scratch_arm, kept.count)
        for i in range(n):
            alpha[i] = recs[order[i], ALPHA]
            beta[i] = recs[order[i], BETA]

    m = 0
    pending, scratch_weight = kept.pending, kept.scratch_weight
    for i in range(n_pending):
        arm = pending[i]
        flag[arm] = 0
        if kept.present[arm]:
            pending[m] = arm
            scratch_weight[m] = recs[arm, ALPHA] + lam * recs[arm, BETA]
            m += 1
    kept.n_pending[0] = 0
    kept.n_kept[0] = n + m
    if m == 0:
        return
    # The tail of `weight` is free space for sorting the touched arms.
    sort_keys(scratch_weight, pending, m, weight[n : n + m], kept.scratch_arm, kept.count)
    i, j, o = n - 1, m - 1, n + m - 1
    while j >= 0:
        w, arm = scratch_weight[j], pending[j]
        if i >= 0 and (weight[i] < w or (weight[i] == w and order[i] > arm)):
            weight[o] = weight[i]
            order[o] = order[i]
            alpha[o] = alpha[i]
            beta[o] = beta[i]
            i -= 1
        else:
            weight[o] = w
            order[o] = arm
            alpha[o] = recs[arm, ALPHA]
            beta[o] = recs[arm, BETA]
            j -= 1
        o -= 1


def check_kept_order(kept: KeptOrder, recs: FloatArray) -> None:
    """Assert the invariants of a kept order. O(K)."""
    n, n_pending = int(kept.n_kept[0]), int(kept.n_pending[0])
    order = kept.order[:n]
    assert len(np.unique(order)) == n
    pending = kept.pending[:n_pending]
    assert (kept.flag[pending] == 1).all() and kept.flag.sum() == n_pending
    settled = kept.flag[order] == 0
    assert kept.present[order[settled]].all()
    assert np.array_equal(kept.alpha[:n][settled], recs[order[settled], ALPHA])
    assert np.array_equal(kept.beta[:n][settled], recs[order[settled], BETA])
    w = kept.weight[:n]
    if n > 0:
        assert np.array_equal(w, kept.alpha[:n] + kept.lam[0] * kept.beta[:n])
    assert all(w[i] > w[i + 1] or (w[i] == w[i + 1] and order[i] < order[i + 1]) for i in range(n - 1))
    known = np.zeros(len(kept.flag), dtype=np.bool_)
    known[order] = True
    known[pending] = True
    assert known[kept.present].all(), "every present arm is in the order or pending"
