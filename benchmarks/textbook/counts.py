"""What all textbook versions share, and those that go by means or by nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray


class Textbook:
    """Counts, sums and means of each arm; a round plays the arms of largest `index`. O(K)."""

    def __init__(self, n_arms: int, rank: int, seed: int = 0) -> None:
        self.n_arms, self.rank, self.t = n_arms, rank, 0
        self.rng = np.random.default_rng(seed)
        self.counts = np.zeros(n_arms)
        self.totals = np.zeros(n_arms)
        self.means = np.full(n_arms, np.inf)
        self.widths = np.zeros(n_arms)
        self._weight = np.empty(n_arms)

    def index(self) -> FloatArray:
        """What the arms of round `t` are chosen by."""
        raise NotImplementedError

    def select(self) -> IntArray:
        """The arms of the next round."""
        self.t += 1
        return self.best(self.index())

    def best(self, weight: FloatArray) -> IntArray:
        """The `rank` largest. O(K)."""
        return np.argpartition(weight, self.n_arms - self.rank)[self.n_arms - self.rank :]

    def update(self, arms: IntArray, rewards: FloatArray) -> None:
        """Count one reward of each arm."""
        counts = self.counts[arms] + 1.0
        totals = self.totals[arms] + rewards
        self.counts[arms] = counts
        self.totals[arms] = totals
        self.means[arms] = totals / counts
        self.widths[arms] = 1.0 / np.sqrt(counts)

    def _optimistic(self, lam: float) -> FloatArray:
        np.multiply(self.widths, lam, out=self._weight)
        np.add(self._weight, self.means, out=self._weight)
        return self._weight


class Greedy(Textbook):
    """The largest means."""

    def index(self) -> FloatArray:
        return self.means


class EpsilonGreedy(Greedy):
    """The largest means, or with probability 0.1 any arms."""

    def select(self) -> IntArray:
        self.t += 1
        if self.rng.random() < 0.1:
            return self.rng.choice(self.n_arms, self.rank, replace=False, shuffle=False)
        return self.best(self.means)


class Random(Textbook):
    """Any arms."""

    def select(self) -> IntArray:
        self.t += 1
        return self.rng.choice(self.n_arms, self.rank, replace=False, shuffle=False)


def seen_once(player: Any, env: Any) -> None:
    """Let a player of either kind see one reward of every arm."""
    everyone = np.arange(env.n_arms, dtype=np.int64)
    player.update(everyone, env.draw(everyone, 1))
