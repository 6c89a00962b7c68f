"""Thompson sampling: a sample for every arm, or one for all of them."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.textbook.counts import Textbook
from semibandit.arms import FloatArray, IntArray


class Cts(Textbook):
    """A draw from the Beta posterior of each arm, for rewards of 0 or 1."""

    def __init__(self, n_arms: int, rank: int, seed: int = 0) -> None:
        super().__init__(n_arms, rank, seed)
        self.wins = np.ones(n_arms)
        self.losses = np.ones(n_arms)

    def update(self, arms: IntArray, rewards: FloatArray) -> None:
        self.wins[arms] += rewards
        self.losses[arms] += 1.0 - rewards

    def index(self) -> FloatArray:
        return self.rng.beta(self.wins, self.losses)


class GaussianCts(Textbook):
    """A draw from a Gaussian posterior of each arm, standard deviation 1/2 of a reward."""

    def index(self) -> FloatArray:
        noise = self.rng.standard_normal(self.n_arms)
        noise *= self.widths
        noise *= 0.5
        noise += self.means
        return noise


class OneSeed(Textbook):
    """CTS3: one normal number for all arms, standard deviation 1/2 of a reward."""

    def index(self) -> FloatArray:
        return self._optimistic(0.5 * self.rng.standard_normal())


class SharedGaussian(Textbook):
    """CL-SG: one normal number for all arms, a width of sqrt(0.1 log t / (N + 1))."""

    def update(self, arms: IntArray, rewards: FloatArray) -> None:
        super().update(arms, rewards)
        self.widths[arms] = 1.0 / np.sqrt(self.counts[arms] + 1.0)

    def index(self) -> FloatArray:
        return self._optimistic(self.rng.standard_normal() * math.sqrt(0.1 * math.log(self.t)))


class BoostedCts(GaussianCts):
    """The same with the variance of BG-CTS: larger by 2 (log t + (D + 2) log log t) / log t."""

    def index(self) -> FloatArray:
        log = max(1.0, math.log(self.t))
        noise = self.rng.standard_normal(self.n_arms)
        noise *= self.widths
        noise *= 0.5 * math.sqrt(2.0 * (log + (self.rank + 2.0) * math.log(log)) / log)
        noise += self.means
        return noise
