"""CUCB in the most obvious way: lists, sorting, an independence function. Imports nothing of the package."""

from __future__ import annotations

import math


class NaiveCUCB:
    """Index mean + lam_t / sqrt(N), lam_t = sqrt(exploration (b-a)^2 log t), all arms sorted at every round."""

    def __init__(self, n_arms, independent, low=0.0, high=1.0, exploration=1.5, stair=None):
        self.n_arms, self.independent = n_arms, independent
        self.scale = exploration * (high - low) ** 2
        self.stair = stair
        self.count, self.total = [0] * n_arms, [0.0] * n_arms
        self.t = 0

    def width(self):
        lam = math.sqrt(self.scale * math.log(self.t))
        if self.stair is None or lam == 0.0:
            return lam
        power = 0
        while (1.0 + self.stair) ** power < lam:
            power += 1
        while (1.0 + self.stair) ** (power - 1) >= lam:
            power -= 1
        return (1.0 + self.stair) ** power

    def select(self, exclude=()):
        self.t += 1
        lam = self.width()

        def index(k):
            if self.count[k] == 0:
                return math.inf
            return self.total[k] / self.count[k] + lam * (1.0 / math.sqrt(self.count[k]))

        base = []
        for k in sorted(range(self.n_arms), key=lambda k: (-index(k), k)):
            if k not in exclude and self.independent([*base, k]):
                base.append(k)
        return sorted(base)

    def update(self, arms, rewards):
        for k, reward in zip(arms, rewards):
            self.count[k] += 1
            self.total[k] += reward
