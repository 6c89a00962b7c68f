"""CLUCB in the most obvious way: all radii and two full sorts for every sample. Imports nothing of the package."""

from __future__ import annotations

import math


class NaiveCLUCB:
    """Chen et al. 2014, Algorithm 1, with an independence function in place of the oracle."""

    def __init__(self, n_arms, independent, delta, low=0.0, high=1.0, stair=None):
        self.n_arms, self.independent, self.delta = n_arms, independent, delta
        self.scale, self.stair = 0.5 * (high - low), stair
        self.count, self.total = [0] * n_arms, [0.0] * n_arms
        self.playable = [k for k in range(n_arms) if independent([k])]
        self.stopped = False

    def best(self, arms, key):
        base = []
        for k in sorted(arms, key=key):
            if self.independent([*base, k]):
                base.append(k)
        return base

    def step(self):
        """The arm to sample, or None when done; `base` is then the answer."""
        for k in self.playable:
            if self.count[k] == 0:
                return k
        t = sum(self.count)
        lam = self.scale * math.sqrt(
            2.0 * (math.log(4.0 * self.n_arms / self.delta) + 3.0 * math.log(max(t, 1)))
        )
        if self.stair is not None:
            power = -2000
            while (1.0 + self.stair) ** power < lam:
                power += 1
            lam = (1.0 + self.stair) ** power
        mean = {k: self.total[k] / self.count[k] for k in self.playable}
        self.base = sorted(self.best(self.playable, lambda k: (-mean[k], k)))
        tilted = {}
        for k in self.playable:
            radius = lam * (1.0 / math.sqrt(self.count[k]))
            tilted[k] = mean[k] - radius if k in self.base else mean[k] + radius
        rival = self.best(self.playable, lambda k: (-tilted[k], k not in self.base, k))
        differ = set(rival) ^ set(self.base)
        if not differ:
            self.stopped = True
            return None
        # Only arms in which they differ: what they share cancels.
        gain = math.fsum(tilted[k] * (1 if k in rival else -1) for k in differ)
        assert gain > 0.0, "the optimistic base must be better"
        return min(differ, key=lambda k: (self.count[k], k))

    def update(self, arm, reward):
        self.count[arm] += 1
        self.total[arm] += reward
