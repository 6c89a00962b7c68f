"""Arms in order of weight as two sorted runs: a long one that rests, and a short one with the arms that moved.

While lam stands still only touched arms have other weights. They leave the long run, where they are only marked, and
are sorted into the short one; who wants the heaviest arms merges the two runs as far as needed. When the short run has
grown to about sqrt(2 D K) arms it is merged into the long one, so that n touched arms a round cost
O(n log n + sqrt(D K)) amortised in place of the O(K) of `order.kept`. A new lam costs O(K) and the inversions it makes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from semibandit.arms import ALPHA, BETA, FloatArray
from semibandit.compiled.handle import Bytes1, Flags1, Floats1, Ints1, opener
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.sorting import sort_keys

# Values of `place`.
NOWHERE, LONG, SHORT = np.uint8(0), np.uint8(1), np.uint8(2)


class TwoRuns(NamedTuple):
    """``arm[:n_long[0]]``, heaviest first, with its weights; only arms with ``place == LONG`` count.

    The first of these is at `start[0]`. ``short_arm[:n_short[0]]`` the same for all arms with ``place == SHORT``, of
    which at most `limit[0]` stay there. ``touched[:n_touched[0]]`` lists arms whose record changed since (`flag` != 0),
    in no order. `present` is false for deleted arms. `lam[0]` is the query of the weights, `built[0]` false before
    there is an order. The rest is scratch.
    """

    arm: Ints1
    weight: Floats1
    short_arm: Ints1
    short_weight: Floats1
    place: Bytes1
    touched: Ints1
    flag: Bytes1
    present: Flags1
    spare_arm: Ints1
    spare_weight: Floats1
    bins: Ints1
    n_long: Ints1
    n_short: Ints1
    n_touched: Ints1
    start: Ints1
    built: Flags1
    limit: Ints1
    lam: Floats1


def new_two_runs(n_arms: int, rank: int) -> TwoRuns:
    """Runs without any order yet; the first `runs_update` makes one of all arms. O(K)."""
    n_long, n_short, n_touched, start = (np.zeros(1, dtype=np.int64) for _ in range(4))
    return TwoRuns(
        arm=np.zeros(n_arms, dtype=np.int64),
        weight=np.zeros(n_arms),
        short_arm=np.zeros(n_arms, dtype=np.int64),
        short_weight=np.zeros(n_arms),
        place=np.zeros(n_arms, dtype=np.uint8),
        touched=np.zeros(n_arms, dtype=np.int64),
        flag=np.zeros(n_arms, dtype=np.uint8),
        present=np.ones(n_arms, dtype=np.bool_),
        spare_arm=np.zeros(n_arms, dtype=np.int64),
        spare_weight=np.zeros(n_arms),
        bins=np.zeros(max(n_arms + 2, 257), dtype=np.int64),
        n_long=n_long,
        n_short=n_short,
        n_touched=n_touched,
        start=start,
        built=np.zeros(1, dtype=np.bool_),
        limit=np.array([math.isqrt(2 * rank * n_arms) + rank], dtype=np.int64),
        lam=np.zeros(1),
    )


@inline_kernel
def runs_touch(runs, arm):
    """The record of `arm` changed, or it appeared or disappeared. O(1)."""
    if runs.flag[arm] == 0:
        runs.flag[arm] = 1
        runs.touched[runs.n_touched[0]] = arm
        runs.n_touched[0] += 1


@kernel
def _merge(arm, weight, n, new_arm, new_weight, m):
    """Merge new_arm[:m] into arm[:n], both in order, from the back. Changes arm[: n + m]. O(n + m) at most."""
    i, j, o = n - 1, m - 1, n + m - 1
    while j >= 0:
        w, a = new_weight[j], new_arm[j]
        if i >= 0 and (weight[i] < w or (weight[i] == w and arm[i] > a)):
            weight[o], arm[o] = weight[i], arm[i]
            i -= 1
        else:
            weight[o], arm[o] = w, a
            j -= 1
        o -= 1


@kernel
def _fold(runs):
    """Merge the short run into the long one. O(K)."""
    arm, weight, place = runs.arm, runs.weight, runs.place
    n = 0
    for i in range(runs.n_long[0]):
        a = arm[i]
        arm[n], weight[n] = a, weight[i]
        n += 1 if place[a] == LONG else 0
    m = runs.n_short[0]
    _merge(arm, weight, n, runs.short_arm, runs.short_weight, m)
    for i in range(m):
        place[runs.short_arm[i]] = LONG
    runs.n_long[0] = n + m
    runs.n_short[0] = runs.start[0] = 0


@kernel
def _build(runs, recs, lam):
    """One run of all present arms at lam. By insertion while that goes well: the old order is nearly right."""
    arm, weight, place = runs.arm, runs.weight, runs.place
    if runs.built[0]:
        _fold(runs)
    else:
        for a in range(arm.shape[0]):
            arm[a] = a
            place[a] = LONG
        runs.n_long[0] = arm.shape[0]
        runs.n_short[0] = runs.start[0] = 0
    n = 0
    for i in range(runs.n_long[0]):
        a = arm[i]
        if not runs.present[a]:
            place[a] = NOWHERE
            continue
        arm[n] = a
        n += 1
    for i in range(runs.n_touched[0]):
        a = runs.touched[i]
        runs.flag[a] = 0
        if runs.present[a] and place[a] == NOWHERE:
            place[a] = LONG
            arm[n] = a
            n += 1
    runs.n_touched[0] = 0
    runs.n_long[0] = n
    runs.built[0] = True
    runs.lam[0] = lam
    budget = 4 * n + 64
    for i in range(n):
        a = arm[i]
        w = recs[a, ALPHA] + lam * recs[a, BETA]
        j = i
        while j > 0 and budget > 0 and (weight[j - 1] < w or (weight[j - 1] == w and arm[j - 1] > a)):
            weight[j], arm[j] = weight[j - 1], arm[j - 1]
            j -= 1
            budget -= 1
        weight[j], arm[j] = w, a
    if budget == 0:
        sort_keys(weight, arm, n, runs.spare_weight, runs.spare_arm, runs.bins)


@kernel
def runs_update(runs, recs, lam):
    """Bring the runs up to date with the records and `lam`. Changes everything in `runs`; see above for the cost."""
    place, flag = runs.place, runs.flag
    if not runs.built[0] or lam != runs.lam[0]:
        _build(runs, recs, lam)
        return
    n_touched = runs.n_touched[0]
    if n_touched == 0:
        return
    new_arm, new_weight = runs.touched, runs.spare_weight
    short_arm, short_weight = runs.short_arm, runs.short_weight
    n = 0
    for i in range(runs.n_short[0]):
        a = short_arm[i]
        short_arm[n], short_weight[n] = a, short_weight[i]
        n += 1 if flag[a] == 0 else 0
    m = 0
    for i in range(n_touched):
        a = new_arm[i]
        flag[a] = 0
        place[a] = NOWHERE
        if runs.present[a]:
            place[a] = SHORT
            new_arm[m] = a
            new_weight[m] = recs[a, ALPHA] + lam * recs[a, BETA]
            m += 1
    runs.n_touched[0] = 0
    # What lies behind the short run is free, for all arms fit into it.
    sort_keys(new_weight, new_arm, m, short_weight[n:], runs.spare_arm, runs.bins)
    _merge(short_arm, short_weight, n, new_arm, new_weight, m)
    runs.n_short[0] = n + m
    if n + m > runs.limit[0]:
        _fold(runs)
    while runs.start[0] < runs.n_long[0] and place[runs.arm[runs.start[0]]] != LONG:
        runs.start[0] += 1


@inline_kernel
def runs_next(runs, i, j):
    """The heaviest of what comes from entry i of the long run and entry j of the short one on: (arm, next i, next j),
    -1 when there is none. Begin at i = start[0], j = 0. O(1) amortised."""
    n_long, n_short = runs.n_long[0], runs.n_short[0]
    while i < n_long and runs.place[runs.arm[i]] != LONG:
        i += 1
    if i < n_long:
        a, w = runs.arm[i], runs.weight[i]
        if j == n_short:
            return a, i + 1, j
        v = runs.short_weight[j]
        if w > v or (w == v and a < runs.short_arm[j]):
            return a, i + 1, j
    elif j == n_short:
        return np.int64(-1), i, j
    return runs.short_arm[j], i, j + 1


open_runs = opener(TwoRuns)


@kernel
def update_by_handle(handle, recs, lam):
    """`runs_update` for a handle of the runs, as an entry point for Python."""
    runs_update(open_runs(handle), recs, lam)


@kernel
def list_by_handle(handle, at, out, wanted):
    """List arms, heaviest first, in `out` until there are `wanted` or no more; how many there are then.

    `at` says how far the last call came: places in both runs and number of arms, (start[0], 0, 0) at first. For
    runs that were not updated since. Changes `at` and `out`. O(new arms)."""
    runs = open_runs(handle)
    i, j, n = at[0], at[1], at[2]
    while n < wanted:
        arm, i, j = runs_next(runs, i, j)
        if arm < 0:
            break
        out[n] = arm
        n += 1
    at[0], at[1], at[2] = i, j, n
    return n


def check_two_runs(runs: TwoRuns, recs: FloatArray) -> None:
    """Assert the invariants of two runs. O(K)."""
    n_touched = int(runs.n_touched[0])
    touched = runs.touched[:n_touched]
    assert (runs.flag[touched] == 1).all() and runs.flag.sum() == n_touched == len(np.unique(touched))
    if not runs.built[0]:
        return
    assert (runs.place[runs.arm[: runs.start[0]]] != LONG).all()
    long, short = runs.arm[: runs.n_long[0]], runs.short_arm[: runs.n_short[0]]
    assert np.array_equal(np.sort(long[runs.place[long] == LONG]), np.flatnonzero(runs.place == LONG))
    assert np.array_equal(np.sort(short), np.flatnonzero(runs.place == SHORT))
    for arms, weights in ((long, runs.weight), (short, runs.short_weight)):
        settled = (runs.place[arms] == (LONG if arms is long else SHORT)) & (runs.flag[arms] == 0)
        w, a = weights[: len(arms)], arms
        assert runs.present[a[settled]].all()
        assert np.array_equal(w[settled], recs[a[settled], ALPHA] + runs.lam[0] * recs[a[settled], BETA])
        assert all(w[i] > w[i + 1] or (w[i] == w[i + 1] and a[i] < a[i + 1]) for i in range(len(a) - 1))
    assert (runs.place[runs.present & (runs.flag == 0)] != NOWHERE).all(), (
        "every present arm is in a run or touched"
    )
