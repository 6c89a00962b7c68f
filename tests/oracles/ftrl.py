"""Follow the regularised leader in the most obvious way: formulas as printed, polytopes by all their bases."""

from __future__ import annotations

import itertools
import math


def phi(name, gamma, x):
    """The regulariser of one coordinate."""
    if name == "exp2":
        return x * math.log(x) - x if x > 0 else 0.0
    if name == "log-barrier":
        return -math.log(x)
    away = (1 - x) * math.log(1 - x) if x < 1 else 0.0
    if name == "hybrid":
        return -math.sqrt(x) + gamma * away
    return x - 1 - math.log(x) + gamma * (x + away)


def slope(name, gamma, x, rest=None):
    """Its derivative; `rest` is 1 - x, where that is known better than x tells."""
    rest = 1 - x if rest is None else rest
    if name == "exp2":
        return math.log(x)
    if name == "log-barrier":
        return -1 / x
    if name == "hybrid":
        return -1 / (2 * math.sqrt(x)) - gamma * (1 + math.log(rest))
    return 1 - 1 / x - gamma * math.log(rest)


def rate(name, t):
    """The learning rate of round t."""
    if name == "hybrid":
        return 1 / math.sqrt(t)
    if name == "exp2":
        return 1 / (4 * math.sqrt(t))
    if name == "log-barrier":
        t = max(t, 2)
        return 4 * math.sqrt(math.log(t) / t)
    return 1.0


def gamma_of(name, n_arms, rank, horizon):
    """The weight of the part of the regulariser about 1 - x."""
    if name.startswith("lbinf"):
        return max(1.0, math.log(horizon))
    if name == "hybrid" and rank > n_arms / 2 and rank < n_arms:
        return min(1.0, 1 / math.sqrt(math.log(n_arms / (n_arms - rank))))
    return 1.0


def bases(n_arms, independent, arms=None):
    """All bases of the arms given."""
    arms = list(range(n_arms)) if arms is None else list(arms)
    for size in range(len(arms), -1, -1):
        found = [list(part) for part in itertools.combinations(arms, size) if independent(list(part))]
        if found:
            return found
    return [[]]


def outside(x, n_arms, independent):
    """By how much x misses the base polytope: the largest x(S) - rank(S), and the sum of x less the rank."""
    worst = 0.0
    for size in range(1, n_arms + 1):
        for part in itertools.combinations(range(n_arms), size):
            rank = len(bases(n_arms, independent, part)[0])
            worst = max(worst, sum(x[k] for k in part) - rank)
    whole = len(bases(n_arms, independent)[0])
    return max(worst, abs(sum(x) - whole), max(-value for value in x))


def gap(gradient, x, all_bases):
    """How much a linear objective could still fall from x: 0 where x is the optimum of what has this gradient."""
    at = sum(g * value for g, value in zip(gradient, x))
    return at - min(sum(gradient[k] for k in base) for base in all_bases)


class NaiveFTRL:
    """Any D of K arms, by bisection in the price and in every chance; estimates as the papers write them, for all arms.

    `chances` are computed, not drawn: `update` is told what was played.
    """

    def __init__(self, n_arms, rank, name, horizon):
        self.n_arms, self.rank, self.name, self.t = n_arms, rank, name, 0
        self.gamma = gamma_of(name, n_arms, rank, horizon)
        self.sums = [0.0] * n_arms
        self.guess = [0.5] * n_arms
        self.seen = [[] for _ in range(n_arms)]
        self.spread = [0.0] * n_arms

    def scale(self, k):
        if not self.name.startswith("lbinf"):
            return 1.0
        return math.sqrt(1.2**2 + self.spread[k] / self.gamma)

    def costs(self):
        if not self.name.startswith("lbinf"):
            return list(self.sums)
        return [total + guess for total, guess in zip(self.sums, self.guess)]

    def chances(self):
        """The leader of the next round."""
        self.t += 1
        costs, eta = self.costs(), rate(self.name, self.t)

        def chance(k, nu):
            low, high = 0.0, 1.0
            capped = self.name in ("exp2", "log-barrier")
            if capped and eta * costs[k] + nu + slope(self.name, 0.0, 1.0) <= 0:
                return 1.0
            while True:
                middle = 0.5 * (low + high)
                if middle in (low, high):
                    break
                if eta * costs[k] + nu + self.scale(k) * slope(self.name, self.gamma, middle) > 0:
                    high = middle
                else:
                    low = middle
            return 0.5 * (low + high)

        low, high = -1e4, 1e4
        for _ in range(70):
            nu = 0.5 * (low + high)
            if sum(chance(k, nu) for k in range(self.n_arms)) > self.rank:
                low = nu
            else:
                high = nu
        self.x = [chance(k, nu) for k in range(self.n_arms)]
        return self.x

    def update(self, played, losses):
        """Losses in [0, 1] of the arms played in the last round."""
        got = dict(zip(played, losses))
        for k in range(self.n_arms):
            a = 1.0 if k in got else 0.0
            loss = got.get(k, 0.0)
            x = self.x[k]
            if not self.name.startswith("lbinf"):
                # Losses in [-1, 1].
                self.sums[k] += a * ((2 * loss - 1) + 1) / x - 1
                continue
            off = loss - self.guess[k]
            self.sums[k] += self.guess[k] + a * off / x
            self.spread[k] += a * off**2 * min(1.0, 2 * (1 - x) / (x**2 * self.gamma))
            if a:
                self.seen[k].append(loss)
                if self.name == "lbinfv":
                    self.guess[k] = (0.5 + sum(self.seen[k])) / (1 + len(self.seen[k]))
                elif self.name == "lbinfv-gd":
                    self.guess[k] = 0.75 * self.guess[k] + 0.25 * loss
