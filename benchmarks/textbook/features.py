"""Means that are linear in features."""

from __future__ import annotations

import numpy as np

from benchmarks.textbook.counts import Textbook
from semibandit.arms import FloatArray, IntArray


class Linear(Textbook):
    """Rewards linear in features: the normal posterior of the coefficients, scale 1, noise 1/2. O(K d) a round."""

    def __init__(self, n_arms: int, rank: int, seed: int = 0) -> None:
        super().__init__(n_arms, rank, seed)
        self.features = features_of(n_arms)
        size = self.features.shape[1]
        self.precision, self.moment = np.eye(size), np.zeros(size)

    def update(self, arms: IntArray, rewards: FloatArray) -> None:
        rows = self.features[arms]
        self.precision += 4.0 * (rows.T @ rows)
        self.moment += 4.0 * (rewards @ rows)


class LinTs(Linear):
    """CombLinTS: one draw of the coefficients."""

    def index(self) -> FloatArray:
        root = np.linalg.inv(np.linalg.cholesky(self.precision))
        theta = root.T @ (root @ self.moment + self.rng.standard_normal(len(root)))
        return np.dot(self.features, theta, out=self._weight)


class LinUcb(Linear):
    """CombLinUCB: a width of one standard deviation for each arm. O(K d^2)."""

    def index(self) -> FloatArray:
        root = np.linalg.inv(np.linalg.cholesky(self.precision))
        np.dot(self.features, root.T @ (root @ self.moment), out=self._weight)
        spread = self.features @ root.T
        self._weight += np.sqrt(np.einsum("ij,ij->i", spread, spread))
        return self._weight


def features_of(n_arms: int, size: int = 10) -> FloatArray:
    """Features of which all means are in [0, 1] under the coefficients 1 / size. O(K)."""
    return np.random.default_rng(7).random((n_arms, size))
