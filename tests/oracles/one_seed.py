"""One-seed Thompson sampling in the most obvious way: told Z, it sorts all arms. Imports nothing of the package."""

from __future__ import annotations

import math


class NaiveOneSeed:
    """Weights mean + Z width / sqrt(N + P + more) with P plays waiting, for the independence function of a matroid.

    CTS3: width sigma, more = 0. CL-SG (`epsilon` given): width (b-a) sqrt(epsilon log t), more = 1. `first`: weights of
    arms never seen, where these are not all infinite. `stair`: round the width up to powers of 1 + stair.
    """

    def __init__(
        self,
        n_arms,
        independent,
        low=0.0,
        high=1.0,
        sigma=None,
        epsilon=None,
        first=None,
        stair=None,
    ):
        self.n_arms, self.independent, self.high, self.span = n_arms, independent, high, high - low
        self.sigma, self.epsilon, self.stair = sigma, epsilon, stair
        self.first = first
        self.count, self.total, self.waiting = [0] * n_arms, [0.0] * n_arms, [0] * n_arms
        self.gone = set()
        self.t = 0

    def width(self):
        if self.epsilon is None:
            return 0.5 * self.span if self.sigma is None else self.sigma
        width = math.sqrt(self.epsilon * self.span**2 * math.log(self.t))
        if self.stair is None or width == 0.0:
            return width
        power = -2000
        while (1.0 + self.stair) ** power < width:
            power += 1
        return (1.0 + self.stair) ** power

    def weight(self, k, z):
        plays = self.count[k] + self.waiting[k]
        if plays == 0:
            return math.inf if self.first is None else float(self.first[k])
        mean = self.total[k] / self.count[k] if self.count[k] else self.high
        return mean + (z * self.width()) * (1.0 / math.sqrt(plays + (0 if self.epsilon is None else 1)))

    def select(self, z, exclude=(), among=None):
        self.t += 1
        base = []
        candidates = range(self.n_arms) if among is None else among
        for k in sorted(candidates, key=lambda k: (-self.weight(k, z), k)):
            if k not in exclude and k not in self.gone and self.independent([*base, k]):
                base.append(k)
        return sorted(base)

    def update(self, arms, rewards):
        for k, reward in zip(arms, rewards):
            self.count[k] += 1
            self.total[k] += reward

    def wait(self, arms, change):
        for k in arms:
            self.waiting[k] += change

    def reset(self, k):
        self.count[k], self.total[k] = 0, 0.0
