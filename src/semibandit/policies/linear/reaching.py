"""Rounds over features of other matroids than uniform and partition: only arms that may be in the base are sorted.

Greedy goes through the arms from the heaviest on and stops when the base is full, after a few times D arms as a rule:
so many are picked out by a threshold, sorted, and handed to it; more of them if that was too few.

With widths, greedy by means alone gives a base B. No arm of the best base is lighter than the lightest arm of another
base (else the other base had an arm to put in its place), so no index in it is below the smallest one of B: arms whose
bound does not reach that are left aside, and of the others the exact indices decide.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.compiled.jit import kernel
from semibandit.matroids import Matroid
from semibandit.policies.linear.weighing import exact_index

# So many weights are looked at for a threshold; where greedy found too few arms, it gets so many times more.
_SAMPLE, _MORE = 1024, 8


@kernel
def exact_indices(w, arms, out):
    """The exact index of each of these arms. Changes `out` and the bounds. O(n d), or O(n d^2)."""
    for i in range(arms.shape[0]):
        out[i] = exact_index(w, arms[i], w.width)


class Depth:
    """How many of the heaviest arms greedy looked at in the last round; the next one begins with a few more."""

    def __init__(self, matroid: Matroid) -> None:
        self.matroid, self.arms = matroid, 2 * matroid.rank

    def best(self, weights: FloatArray, here: Any) -> IntArray:
        """The best base of the arms that are here, heaviest first. O(K) and sorting those that are looked at."""
        n, wanted = len(weights), 2 * self.arms + 32
        sample = np.sort(weights[:: max(1, n // _SAMPLE)])
        while True:
            place = len(sample) - 1 - int(len(sample) * min(1.0, wanted / n))
            # With a little more than wanted; all of them where that is most of them.
            ids = np.flatnonzero(weights >= sample[place]) if place > len(sample) // 2 else np.arange(n)
            ids = ids[here[ids]]
            order = ids[np.argsort(-weights[ids], kind="stable")]
            found = self.matroid._greedy(order)
            if len(found) == self.matroid.rank:
                self.arms = int(np.flatnonzero(order == found[-1])[0]) + 1
                return found
            if len(ids) == np.count_nonzero(here):
                return found
            wanted = _MORE * max(wanted, len(ids))
