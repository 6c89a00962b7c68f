"""An engine whose bases come from an `InnerProductBase`: the paper's own machinery behind FasterCUCB."""

from __future__ import annotations

from typing import Any

import numpy as np

from semibandit.arms import ALPHA, BETA, FloatArray, IntArray
from semibandit.engines.base import Engine
from semibandit.engines.kernels import add_rewards, check_feedback
from semibandit.matroids import Matroid
from semibandit.paper.rounding import Bounds
from semibandit.paper.structure import InnerProductBase


class StructureEngine(Engine):
    """FIND-BASE and UPDATE-FEATURE over dynamic instances, for any query in any order.

    Arms never pulled and deleted arms have points at infinity, which the instances understand. Features beyond the
    bounds count as the bound. Cost: that of `InnerProductBase`.
    """

    name = "dynamic"

    def __init__(self, matroid: Matroid, records: Any, bounds: Bounds, epsilon: float, method: str) -> None:
        super().__init__(matroid, records)
        nothing = np.zeros((matroid.n_arms, 2))
        self.structure = InnerProductBase(matroid, nothing, bounds, epsilon, method)
        self.touch(np.arange(matroid.n_arms, dtype=np.int64))

    def touch(self, arms: IntArray) -> None:
        ids = np.unique(arms)
        self._show(ids[~self._is_deleted(ids)])

    def _show(self, ids: IntArray) -> None:
        """Tell the structure the points of present, distinct arms."""
        features = self._recs[ids][:, [ALPHA, BETA]]
        unseen = np.isinf(features[:, 0])
        features[unseen] = 0.0
        points = self.structure._points_of(features)
        points[unseen, 0] = np.inf
        self.structure._move(ids, points[:, 0], points[:, 1])

    def _select(self, lam: float) -> IntArray:
        return self.structure._find_base(lam)

    def observe(self, arms: IntArray, rewards: FloatArray, low: float, high: float) -> int:
        code = int(check_feedback(self.n_arms, arms, rewards, low, high))
        if code == 0:
            add_rewards(self._recs, arms, rewards)
            self.touch(arms)
        return code

    def _remove(self, ids: IntArray) -> None:
        self.structure._move(ids, np.full(ids.size, -np.inf), np.zeros(ids.size))

    def _restore(self, ids: IntArray) -> None:
        self._show(ids)

    def memory(self) -> int:
        return int(self.records.nbytes + self.structure.memory())

    def _check(self) -> None:
        points = self.structure._points
        assert np.array_equal(np.isneginf(points.alpha), self._is_deleted(np.arange(self.n_arms)))
        shown = np.isfinite(points.alpha)
        expected = self.structure._points_of(self._recs[shown][:, [ALPHA, BETA]])
        assert np.array_equal(points.alpha[shown], expected[:, 0])
        assert np.array_equal(points.beta[shown], expected[:, 1])
        self.structure._instances._check()
