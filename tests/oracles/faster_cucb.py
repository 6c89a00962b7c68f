"""FasterCUCB word for word: all dominating points, all critical slopes, all arms sorted at every round.

Imports nothing of the package.
"""

from __future__ import annotations

import bisect
import math


class NaiveFasterCUCB:
    """For small horizons: the cells are found by comparing all pairs of dominating points and copies."""

    def __init__(self, n_arms, independent, horizon, low, high, m=1, alpha_lb=None):
        self.n_arms, self.independent = n_arms, independent
        self.scale = 1.5 * (high - low) ** 2
        self.epsilon = 1.0 / math.log(horizon) ** m
        self.growth = 1.0 + self.epsilon / 3.0
        self.alpha_lb = alpha_lb if alpha_lb is not None else (low if low > 0 else high / horizon)
        self.beta_lb = 1.0 / math.sqrt(horizon)
        self.n_alpha, self.n_beta = self.bins(self.alpha_lb, high), self.bins(self.beta_lb, 1.0)
        self.slopes = self.critical_slopes()
        self.count, self.total = [0] * n_arms, [0.0] * n_arms
        self.t = 0

    def bins(self, lower, upper):
        n = 1
        while lower * self.growth**n < upper * (1 - 1e-15):
            n += 1
        return n

    def critical_slopes(self):
        """Every slope at which two points tie, equal ones (up to rounding) once."""
        exponents = [
            (q, r) for q in (None, *range(1, self.n_alpha + 1)) for r in (None, *range(1, self.n_beta + 1))
        ]
        lower = [(None if q is None else q - 1, None if r is None else r - 1) for q, r in exponents]
        points = sorted({self.point(q, r) for q, r in (*exponents, *lower)})
        found = []
        for i, (x, y) in enumerate(points):
            for u, v in points[:i]:
                if x > u and v > y:
                    found.append((x - u) / (v - y))
        found.sort()
        return [s for i, s in enumerate(found) if i == 0 or s > found[i - 1] * (1 + 1e-11)]

    def point(self, q, r):
        return (
            0.0 if q is None else self.alpha_lb * self.growth**q,
            0.0 if r is None else self.beta_lb * self.growth**r,
        )

    def dominating(self, alpha, beta):
        """The corner of the bin of a feature; the lowest bin is closed below."""
        corner = []
        for x, lower, n in ((alpha, self.alpha_lb, self.n_alpha), (beta, self.beta_lb, self.n_beta)):
            if x == 0.0:
                corner.append(None)
                continue
            q = 1
            while q < n and x > lower * self.growth**q:
                q += 1
            corner.append(q)
        return self.point(*corner)

    def width(self):
        return math.sqrt(self.scale * math.log(self.t))

    def direction(self):
        """A slope inside the cell of the query (1, lam_t)."""
        i = bisect.bisect_right(self.slopes, self.width())
        low = self.slopes[i - 1] if i > 0 else 0.0
        if i == len(self.slopes):
            return 3.0 * low
        return 0.5 * (low + self.slopes[i])

    def weight(self, k, slope):
        if self.count[k] == 0:
            return math.inf
        alpha, beta = self.dominating(self.total[k] / self.count[k], 1.0 / math.sqrt(self.count[k]))
        return alpha + slope * beta

    def select(self, exclude=()):
        self.t += 1
        slope = self.direction()
        weights = [self.weight(k, slope) for k in range(self.n_arms)]
        base = []
        for k in sorted(range(self.n_arms), key=lambda k: (-weights[k], k)):
            if k not in exclude and self.independent([*base, k]):
                base.append(k)
        return sorted(base)

    def update(self, arms, rewards):
        for k, reward in zip(arms, rewards):
            self.count[k] += 1
            self.total[k] += reward
