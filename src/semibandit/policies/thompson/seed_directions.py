"""One-seed Thompson sampling with few values of Z: an exact dynamic instance for each, updated when it is asked."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np

from semibandit.arms import ALPHA, BETA, FloatArray, IntArray
from semibandit.engines.resolve.oracle import OracleEngine
from semibandit.matroids import Matroid
from semibandit.paper.instances import OnDemand, Points


def normal_levels(number: int) -> FloatArray:
    """The middles, in probability, of `number` equally likely slices of N(0, 1), ascending. O(number).

    >>> normal_levels(4).round(3).tolist()
    [-1.15, -0.319, 0.319, 1.15]
    """
    normal = NormalDist()
    upper = [normal.inv_cdf((j + 0.5) / number) for j in range(number // 2, number)]
    # The lower half is the upper one with its sign changed, to the bit.
    lower = [-z for z in reversed(upper[number % 2 :])]
    return np.array([*lower, *([0.0] if number % 2 else []), *upper[number % 2 :]])


class DirectionsEngine(OracleEngine):
    """A dynamic instance (`paper.instances`) for each query that is asked again and again, whatever its sign.

    An arm that moves costs nothing until an instance is asked; that one then takes in all that moved since its last
    question, each arm once. Queries beyond `number` different ones drop the instance asked longest ago.
    """

    name = "directions"

    def __init__(self, matroid: Matroid, records: Any, number: int) -> None:
        super().__init__(matroid, records)
        self._points = Points(self._recs[:, ALPHA].copy(), self._recs[:, BETA].copy())
        self._instances = OnDemand(matroid, self._points, number, patience=0)

    def touch(self, arms: IntArray) -> None:
        ids = np.unique(arms)
        self._show(ids[self._present[ids]])

    def _show(self, ids: IntArray) -> None:
        """Tell the instances the weights of present, distinct arms."""
        self._points.move(ids, self._recs[ids, ALPHA], self._recs[ids, BETA])

    def _select(self, lam: float) -> IntArray:
        return self._instances.base(lam)

    def _remove(self, ids: IntArray) -> None:
        super()._remove(ids)
        self._points.move(ids, np.full(ids.size, -np.inf), np.zeros(ids.size))

    def _restore(self, ids: IntArray) -> None:
        super()._restore(ids)
        self._show(ids)

    def memory(self) -> int:
        return int(super().memory() + self._points.memory() + self._instances.memory())

    def _check(self) -> None:
        super()._check()
        gone = ~self._present
        assert np.array_equal(np.isneginf(self._points.alpha), gone)
        assert np.array_equal(self._points.alpha[~gone], self._recs[~gone, ALPHA])
        assert np.array_equal(self._points.beta[~gone], self._recs[~gone, BETA])
        self._instances._check()
