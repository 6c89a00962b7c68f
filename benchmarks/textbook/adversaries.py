"""Against adversaries: leaders that are perturbed or regularised."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.textbook.counts import Textbook
from semibandit.arms import FloatArray, IntArray


class Fpl(Textbook):
    """Follow the perturbed leader with geometric resampling: losses are weighted by the draws until an arm came again.

    Draws are made in blocks that stay in the cache.
    """

    def __init__(self, n_arms: int, rank: int, seed: int = 0, horizon: int = 10_000) -> None:
        super().__init__(n_arms, rank, seed)
        root = math.sqrt(math.log(n_arms) + 1.0)
        self.eta = root / math.sqrt(n_arms * horizon)
        self.cap = max(1, math.ceil(math.sqrt(n_arms * horizon) / (math.e * rank * root)))
        self.scaled = np.zeros(n_arms)
        self.again = np.ones(n_arms)
        self.block = max(1, min(self.cap, 2**15 // n_arms))

    def select(self) -> IntArray:
        self.t += 1
        arms = self.best(self.rng.standard_exponential(self.n_arms) - self.scaled)
        self.again[arms] = self.cap
        waiting = np.zeros(self.n_arms, dtype=bool)
        waiting[arms] = True
        left, done, split = len(arms), 0, self.n_arms - self.rank
        while left and done < self.cap:
            rows = min(self.block, self.cap - done)
            draws = self.rng.standard_exponential((rows, self.n_arms))
            draws -= self.scaled
            drawn = np.argpartition(draws, split, axis=1)[:, split:]
            hits = waiting[drawn]
            if hits.any():
                # Later rows first, so that the first draw of an arm is what stays.
                row, column = np.nonzero(hits)
                found = drawn[row, column]
                self.again[found[::-1]] = done + row[::-1] + 1
                waiting[found] = False
                left = int(waiting[arms].sum())
            done += rows
        return arms

    def update(self, arms: IntArray, rewards: FloatArray) -> None:
        self.scaled[arms] += self.eta * self.again[arms] * (1.0 - rewards)


class Hybrid(Textbook):
    """Follow the regularised leader, -sqrt(x) + (1 - x) log(1 - x): Newton for the price around Newton for all chances.

    Both begin where the last round ended. Arms are drawn by systematic sampling. For D <= K / 2.
    """

    def __init__(self, n_arms: int, rank: int, seed: int = 0) -> None:
        super().__init__(n_arms, rank, seed)
        self.losses = np.zeros(n_arms)
        self.x = np.full(n_arms, rank / n_arms)
        self.chance = np.ones(n_arms)
        self.scale = np.ones(n_arms)
        self.price = 0.0

    def slopes(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Minus the derivative of the regulariser, and minus its derivative."""
        inverse = 1.0 / x
        root = np.sqrt(inverse)
        rest = 1.0 - x
        return 0.5 * root + 1.0 + np.log(rest), 0.25 * root * inverse + 1.0 / rest

    def costs(self) -> FloatArray:
        """Estimated losses by the rate of the round."""
        return self.losses / math.sqrt(self.t)

    def project(self) -> FloatArray:
        """The chances of this round. O(K) a step."""
        costs, x = self.costs(), self.x
        for _ in range(100):
            wanted = (costs + self.price) / self.scale
            for _ in range(50):
                value, fall = self.slopes(x)
                new = x + (value - wanted) / fall
                new = np.clip(new, 0.25 * x, 1.0 - 0.25 * (1.0 - x))
                done = np.abs(new - x).max() < 1e-9
                x = new
                if done:
                    break
            over = float(x.sum()) - self.rank
            if abs(over) < 1e-9:
                break
            self.price += over / float((1.0 / (self.scale * self.slopes(x)[1])).sum())
        self.x = x
        return x

    def select(self) -> IntArray:
        self.t += 1
        ends = np.cumsum(self.project())
        marks = self.rng.random() + np.arange(self.rank)
        arms = np.minimum(np.searchsorted(ends, marks, side="right"), self.n_arms - 1)
        self.chance[arms] = self.x[arms]
        return arms

    def update(self, arms: IntArray, rewards: FloatArray) -> None:
        self.losses[arms] += 2.0 * (1.0 - rewards) / self.chance[arms]


class Lbinfv(Hybrid):
    """The same with a logarithmic barrier, predictions by means, and a scale that follows the variance."""

    def __init__(self, n_arms: int, rank: int, seed: int = 0, horizon: int = 10_000) -> None:
        super().__init__(n_arms, rank, seed)
        self.gamma = math.log(horizon)
        self.guess = np.full(n_arms, 0.5)
        self.spread = np.zeros(n_arms)
        self.scale[:] = 1.2

    def slopes(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        inverse = 1.0 / x
        rest = 1.0 - x
        return inverse - 1.0 + self.gamma * np.log(rest), inverse * inverse + self.gamma / rest

    def costs(self) -> FloatArray:
        self.losses += self.guess
        return self.losses

    def update(self, arms: IntArray, rewards: FloatArray) -> None:
        x = self.chance[arms]
        losses = 1.0 - rewards
        off = losses - self.guess[arms]
        self.losses[arms] += off / x
        self.spread[arms] += off * off * np.minimum(1.0, 2.0 * (1.0 - x) / (x * x * self.gamma))
        self.scale[arms] = np.sqrt(1.44 + self.spread[arms] / self.gamma)
        self.counts[arms] += 1.0
        self.totals[arms] += losses
        self.guess[arms] = (0.5 + self.totals[arms]) / (1.0 + self.counts[arms])
