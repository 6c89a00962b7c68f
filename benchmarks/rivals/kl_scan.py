"""KL-OSM by one pass over all arms, the strongest form we know: no index is solved for an arm that cannot be played.

An arm beats the lightest of the D kept ones, at index q, exactly if N kl(mean, q) < level, and
N kl(mean, q) = A - S log q - (N - S) log(1 - q) with A = S log mean + (N - S) log(1 - mean), which changes only with
the arm's own rewards. So a pass costs two multiplications an arm; the root is found for the few arms that pass.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.rivals.scan import _fill, _settle, ascending
from semibandit.arms import FloatArray, IntArray
from semibandit.compiled.jit import kernel


@kernel
def kl_upper(total, lost, own, level):
    """The largest q with own - total log q - lost log(1 - q) <= level, by Newton's method from above."""
    n = total + lost
    mean = total / n
    if lost <= 0.0:
        return 1.0
    if total <= 0.0:
        return -math.expm1(-level / n)
    # Two bounds beyond the root (Pinsker's, and that of the second term alone); Newton's steps go down from there.
    q = min(mean + math.sqrt(0.5 * level / n), -math.expm1((own - level) / lost))
    if q >= 1.0:
        return 1.0  # nearer to 1 than floats can say
    for _ in range(60):
        step = (own - total * math.log(q) - lost * math.log1p(-q) - level) * q * (1.0 - q) / (n * (q - mean))
        q -= step
        if step < 1e-14:
            break
    return q


@kernel
def kl_pass(total, lost, own, level, heap_weight, heap_arm, out):
    """The arms of the D largest indices, ids ascending; of equals the smaller ids."""
    d = out.shape[0]
    for k in range(d):
        _fill(heap_weight, heap_arm, 0, k, d, kl_upper(total[k], lost[k], own[k], level), k)
    bar = heap_weight[0]
    high, low = math.log(bar), math.log1p(-min(bar, 1.0 - 1e-16))
    for k in range(d, total.shape[0]):
        if own[k] - total[k] * high - lost[k] * low < level:
            q = kl_upper(total[k], lost[k], own[k], level)
            if q > bar:
                heap_weight[0] = q
                heap_arm[0] = k
                _settle(heap_weight, heap_arm, 0, 0, d)
                bar = heap_weight[0]
                high, low = math.log(bar), math.log1p(-min(bar, 1.0 - 1e-16))
    for i in range(d):
        out[i] = heap_arm[i]
    ascending(out, d)


class KlScan:
    """KL-OSM on a uniform matroid, every arm seen; rewards in [0, 1]. O(K) a round."""

    def __init__(self, rank: int, counts: IntArray, totals: FloatArray, t: int) -> None:
        self.rank, self.t = rank, t
        self.total = totals.astype(np.float64)
        self.lost = counts - self.total
        self.own = np.zeros(len(counts))
        self._write(np.arange(len(counts)))
        self._heap = np.zeros(rank), np.zeros(rank, dtype=np.int64)

    def _write(self, arms: IntArray) -> None:
        s, f = self.total[arms], self.lost[arms]
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = (
                np.where(s > 0.0, s * np.log(s / (s + f)), 0.0),
                np.where(f > 0.0, f * np.log(f / (s + f)), 0.0),
            )
        self.own[arms] = parts[0] + parts[1]

    def select(self) -> IntArray:
        """The arms of the next round."""
        self.t += 1
        level = math.log(self.t)
        level += 3.0 * math.log(max(1.0, level))
        out = np.empty(self.rank, dtype=np.int64)
        kernel_of: Any = kl_pass
        kernel_of(self.total, self.lost, self.own, level, *self._heap, out)
        return out

    def update(self, arms: IntArray, rewards: FloatArray) -> None:
        """Count one reward of each arm."""
        self.total[arms] += rewards
        self.lost[arms] += 1.0 - rewards
        self._write(arms)
