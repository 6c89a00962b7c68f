"""RobustCUCB in the most obvious way: every reward is kept, every index made anew from all of them."""

from __future__ import annotations

import math
import statistics

from oracles.cucb import NaiveCUCB


class NaiveRobust(NaiveCUCB):
    """Index m + lam_t s / sqrt(N + P), P plays that wait; rewards with the level of truncation at which they came."""

    def __init__(
        self,
        n_arms,
        independent,
        mean="empirical",
        scale=None,
        floor=0.0,
        least=1,
        center=0.0,
        level=None,
        blocks=15,
        exploration=0.5,
        ahead=0.0,
        stair=None,
    ):
        super().__init__(n_arms, independent, stair=stair)
        self.mean, self.known, self.floor, self.least = mean, scale, floor, least
        self.center, self.level, self.blocks = center, level, blocks
        self.factor, self.ahead, self.lam = 4.0 * exploration, ahead, 0.0
        self.seen = [[] for _ in range(n_arms)]
        self.waiting, self.gone = [0] * n_arms, set()

    def of(self, values, k):
        return values[k] if isinstance(values, list) else values

    def select(self, exclude=()):
        self.t += 1
        # As a clock of NaiveCUCB whose logarithm runs ahead.
        self.scale = self.factor * (math.log(self.t) + self.ahead) / math.log(self.t) if self.t > 1 else 0.0
        width = self.width() if self.t > 1 else math.sqrt(self.factor * self.ahead)
        if self.t == 1 and self.stair is not None and width > 0.0:
            width = self.stairs(width)
        self.lam = max(self.lam, width)
        weights = [self.index(k) for k in range(self.n_arms)]
        base = []
        for k in sorted(range(self.n_arms), key=lambda k: (-weights[k], k)):
            if k not in exclude and k not in self.gone and self.independent([*base, k]):
                base.append(k)
        return sorted(base)

    def stairs(self, width):
        power = math.ceil(math.log(width) / math.log1p(self.stair))
        return (1.0 + self.stair) ** power

    def update(self, arms, rewards):
        for k, reward in zip(arms, rewards):
            level = self.level or max(1.0, self.lam * self.lam / 16.0)
            self.seen[k].append((reward, level))

    def index(self, k):
        n = len(self.seen[k])
        plays = n + self.waiting[k]
        if plays < self.least:
            return math.inf
        if n < self.least:
            return 1e200 / plays
        return self.location(k) + self.lam * (self.spread(k) / math.sqrt(plays))

    def location(self, k):
        rewards = [reward for reward, _ in self.seen[k]]
        if self.mean == "empirical":
            return math.fsum(rewards) / len(rewards)
        if self.mean == "median-of-means":
            parts = [rewards[b :: self.blocks] for b in range(min(self.blocks, len(rewards)))]
            return statistics.median(math.fsum(part) / len(part) for part in parts)
        center, bound = self.of(self.center, k), self.of(self.known, k)
        kept = [
            reward - center
            for i, (reward, level) in enumerate(self.seen[k], start=1)
            if (reward - center) ** 2 * level <= bound * bound * i
        ]
        return center + math.fsum(kept) / len(rewards)

    def spread(self, k):
        if self.known is not None:
            return self.of(self.known, k)
        rewards = [reward for reward, _ in self.seen[k]]
        return max(self.of(self.floor, k), statistics.stdev(rewards))
