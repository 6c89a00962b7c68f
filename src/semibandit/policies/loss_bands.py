"""Perturbed losses in descending order without perturbing every arm: `policies.fpl`, exact in law.

The weight of arm k is Z_k - eta L_k with Z_k standard exponential. Arms lie in bands of losses that are about 1 / eta
wide, and wider the farther they are from the smallest loss. The largest of m exponential numbers is drawn at once, from
its distribution function (1 - e^-x)^m, and the next ones given those above them; which of the arms of the band has
it is uniform. So each band tells its arms in the order of Z, one at a time, and what is not yet told weighs at most the
next Z less eta times the lower end of the band. An arm that was told is next of all when nothing that is not yet told
can be heavier. Greedy stops at the rank, so that few arms are told: those whose Z reaches up to the lightest of the
base.

The arms are one list sorted by band; an arm whose loss grows moves over the borders in between.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray, IntArray
from semibandit.compiled.handle import Flags1, Floats1, Ints1, Shorts1, Words1, by_handle, make_handle
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.random import next_uniform
from semibandit.engines.resolve.one_by_one import TAKEN, begin, take

# Bands of width 1 (in units of 1 / eta), then this many for each doubling of the distance; their number in all.
_NARROW, _PER_DOUBLING, _BANDS = 8, 4, 48

# Of `ref`: the smallest loss and eta when the bands were made. Of `meta`: whether they were, how many arms were told
# since, for how many draws bands are left aside, and how many arms are in the heap.
LOWEST, RATE = 0, 1
MADE, TOLD, ASIDE, IN_HEAP = range(4)

# Bands are left aside for so many draws after one that told more than one in this many arms.
_REST, _SHARE = 256, 64


class LossBands(NamedTuple):
    """`order`: the arms by band, `place`: where each of them is, `start`: where bands begin (and the last one ends).

    `absent`: arms that are not there. Scratch by band: `edge`, weights that are not exceeded by arms not yet told
    (`front`), the logarithm of the last distribution function (`log_f`), and how many were told (`told`). Scratch by
    arm: `heap`, with its keys.
    """

    order: Shorts1
    place: Shorts1
    start: Ints1
    absent: Flags1
    ref: Floats1
    edge: Floats1
    front: Floats1
    log_f: Floats1
    told: Ints1
    heap: Ints1
    key: Floats1
    meta: Ints1
    rng: Words1


def new_bands(n_arms: int, rng: npt.NDArray[np.uint64]) -> LossBands:
    """Bands are not made yet. O(K)."""
    return LossBands(
        order=np.arange(n_arms, dtype=np.int32),
        place=np.arange(n_arms, dtype=np.int32),
        start=np.zeros(_BANDS + 1, dtype=np.int64),
        absent=np.zeros(n_arms, dtype=np.bool_),
        ref=np.zeros(2),
        edge=np.zeros(_BANDS),
        front=np.zeros(_BANDS),
        log_f=np.zeros(_BANDS),
        told=np.zeros(_BANDS, dtype=np.int64),
        heap=np.zeros(n_arms, dtype=np.int64),
        key=np.zeros(n_arms),
        meta=np.zeros(4, dtype=np.int64),
        rng=rng,
    )


@kernel
def band_of(b, loss):
    """The band of a loss. O(1)."""
    far = (loss - b.ref[LOWEST]) * b.ref[RATE]
    if not far >= 1.0:
        return 0
    if far < _NARROW:
        return np.int64(far)
    return min(_BANDS - 1, _NARROW + np.int64(_PER_DOUBLING * math.log2(far / _NARROW)))


@kernel
def _write_edges(b):
    """The lower end of each band: no loss in it is smaller, rounding included. O(bands)."""
    for k in range(_BANDS):
        far = float(k) if k <= _NARROW else _NARROW * 2.0 ** ((k - _NARROW) / _PER_DOUBLING)
        b.edge[k] = b.ref[LOWEST] + far / b.ref[RATE] * (1.0 - 1e-12) if k > 0 else b.ref[LOWEST]


@kernel
def make_bands(b, losses, eta):
    """Sort all arms into bands, by id within a band. O(K)."""
    lowest = np.inf
    for arm in range(losses.shape[0]):
        lowest = min(lowest, losses[arm])
    b.ref[LOWEST] = lowest
    b.ref[RATE] = eta
    _write_edges(b)
    b.start[:] = 0
    for arm in range(losses.shape[0]):
        b.start[band_of(b, losses[arm]) + 1] += 1
    for k in range(_BANDS):
        b.start[k + 1] += b.start[k]
    b.told[:] = 0
    for arm in range(losses.shape[0]):
        k = band_of(b, losses[arm])
        at = b.start[k] + b.told[k]
        b.told[k] += 1
        b.order[at] = arm
        b.place[arm] = at
    b.meta[MADE] = 1
    b.meta[TOLD] = 0


@inline_kernel
def _swap(b, i, j):
    one, other = b.order[i], b.order[j]
    b.order[i], b.order[j] = other, one
    b.place[one], b.place[other] = j, i


@kernel
def change_loss(b, arm, old, new):
    """The loss of an arm grew: it moves to its band, over one border after the other. O(bands)."""
    if b.meta[MADE] == 0:
        return
    for k in range(band_of(b, old), band_of(b, new)):
        b.start[k + 1] -= 1
        _swap(b, b.place[arm], b.start[k + 1])


@kernel
def _tell_next(b, k, eta):
    """Draw the next exponential number of band k: how far up the arms reach that were not told yet. O(1)."""
    left = b.start[k + 1] - b.start[k] - b.told[k]
    if left == 0:
        b.front[k] = -np.inf
        return
    b.log_f[k] += math.log(next_uniform(b.rng)) / left
    b.front[k] = -math.log(-math.expm1(b.log_f[k])) - eta * b.edge[k]


@kernel
def _push(b, arm, weight):
    """O(log n)."""
    at = b.meta[IN_HEAP]
    b.meta[IN_HEAP] += 1
    while at > 0:
        above = (at - 1) >> 1
        if b.key[above] >= weight:
            break
        b.heap[at] = b.heap[above]
        b.key[at] = b.key[above]
        at = above
    b.heap[at] = arm
    b.key[at] = weight


@kernel
def _pop(b):
    """The heaviest arm of the heap, which is not empty. O(log n)."""
    top = b.heap[0]
    n = b.meta[IN_HEAP] - 1
    b.meta[IN_HEAP] = n
    arm, weight = b.heap[n], b.key[n]
    at = 0
    while 2 * at + 1 < n:
        child = 2 * at + 1
        if child + 1 < n and b.key[child + 1] > b.key[child]:
            child += 1
        if b.key[child] <= weight:
            break
        b.heap[at] = b.heap[child]
        b.key[at] = b.key[child]
        at = child
    b.heap[at] = arm
    b.key[at] = weight
    return top


@kernel
def draw_base(b, rule, losses, eta, out):
    """A base of the perturbed leader into `out`, in the order of weights; how many arms. Changes generator and order.

    O(bands) and O(bands + log K) for each arm told.
    """
    if (
        b.meta[MADE] == 0
        or 2.0 * eta < b.ref[RATE]
        or eta > 2.0 * b.ref[RATE]
        or b.meta[TOLD] > 8 * losses.shape[0]
    ):
        make_bands(b, losses, eta)
    begin(rule)
    b.meta[IN_HEAP] = 0
    b.told[:] = 0
    b.log_f[:] = 0.0
    for k in range(_BANDS):
        _tell_next(b, k, eta)
    n = told = 0
    while n < out.shape[0]:
        best = 0
        for k in range(1, _BANDS):
            if b.front[k] > b.front[best]:
                best = k
        front = b.front[best]
        if b.meta[IN_HEAP] > 0 and b.key[0] >= front:
            arm = _pop(b)
            if take(rule, arm) == TAKEN:
                out[n] = arm
                n += 1
            continue
        if front == -np.inf:
            break
        first = b.start[best] + b.told[best]
        chosen = first + np.int64(next_uniform(b.rng) * (b.start[best + 1] - first))
        _swap(b, first, chosen)
        arm = b.order[first]
        b.told[best] += 1
        told += 1
        if not b.absent[arm]:
            _push(b, arm, front - eta * (losses[arm] - b.edge[best]))
        _tell_next(b, best, eta)
    b.meta[TOLD] += told
    if told * _SHARE > losses.shape[0] + 1024:
        b.meta[ASIDE] = _REST
    return n


@kernel
def lay_out(b, losses):
    """Find where the arms in `order` are and where bands begin; whether they are in the order of their bands. O(K)."""
    _write_edges(b)
    k = 0
    b.start[:] = 0
    for at in range(losses.shape[0]):
        arm = b.order[at]
        b.place[arm] = at
        band = band_of(b, losses[arm])
        if band < k:
            return False
        while k < band:
            k += 1
            b.start[k] = at
    while k < _BANDS:
        k += 1
        b.start[k] = losses.shape[0]
    return True


def set_bands(
    b: LossBands, losses: FloatArray, order: npt.NDArray[np.int32], ref: FloatArray, meta: IntArray
) -> bool:
    """Take over bands that were saved; whether they fit the losses, else none are made. O(K)."""
    b.meta[:] = 0
    if not meta[MADE]:
        b.meta[ASIDE] = max(0, meta[ASIDE])
        return True
    if (
        not np.array_equal(np.sort(order), np.arange(len(losses)))
        or not np.isfinite(ref).all()
        or ref[RATE] <= 0.0
    ):
        return False
    b.ref[:] = ref
    b.order[:] = order
    if not by_handle(lay_out, LossBands).entry(make_handle(b), losses):
        return False
    b.meta[:] = np.maximum(meta, 0)
    b.meta[IN_HEAP] = 0
    return True


def check_bands(b: LossBands, losses: FloatArray) -> None:
    """Assert all invariants. O(K)."""
    if not b.meta[MADE]:
        return
    assert np.array_equal(np.sort(b.order), np.arange(len(losses)))
    assert np.array_equal(b.place[b.order], np.arange(len(losses)))
    bands = np.array([band_of(b, loss) for loss in losses[b.order]])
    assert np.array_equal(b.start, np.searchsorted(bands, np.arange(_BANDS + 1)))
    assert (losses[b.order] >= b.edge[bands]).all()
