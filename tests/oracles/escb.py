"""ESCB-2 and OSSB in the most obvious way. Imports nothing of the package."""

from __future__ import annotations

import math
from itertools import combinations


class Arms:
    """What is known of arms: sums of rewards and counts, and plays that wait. An arm never seen has mean inf."""

    def __init__(self, n_arms, independent, high=1.0):
        self.n_arms, self.independent, self.high = n_arms, independent, high
        self.count, self.total, self.waiting = [0] * n_arms, [0.0] * n_arms, [0] * n_arms
        self.gone = set()

    def update(self, arms, rewards):
        for arm, reward in zip(arms, rewards, strict=True):
            self.count[arm] += 1
            self.total[arm] += reward

    def plays(self, arm):
        return self.count[arm] + self.waiting[arm]

    def mean(self, arm):
        if self.plays(arm) == 0:
            return math.inf
        return self.total[arm] / self.count[arm] if self.count[arm] else self.high

    def here(self, without=(), among=None):
        arms = range(self.n_arms) if among is None else among
        return [arm for arm in arms if arm not in self.gone and arm not in without]

    def bases(self, arms):
        """All bases of these arms."""
        for size in range(len(arms), -1, -1):
            found = [base for base in combinations(arms, size) if self.independent(base)]
            if found:
                return found
        return [()]


def gain(mean, plays, width, spent):
    """mean + sqrt(f (c + 1/N)) - sqrt(f c), the difference of roots without cancellation."""
    if plays == 0:
        return mean
    v = 1.0 / plays
    return mean + width * (v / (math.sqrt(spent + v) + math.sqrt(spent)))


def greedy(known, width, arms):
    """Algorithm 3 of Perrault et al.: all feasible arms are looked at for every one that is added. O(K D)."""
    chosen, spent = [], 0.0
    while True:
        feasible = [a for a in arms if a not in chosen and known.independent([*chosen, a])]
        if not feasible:
            return chosen
        arm = max(
            feasible, key=lambda a: (gain(known.mean(a), known.plays(a), width, spent), known.mean(a), -a)
        )
        chosen.append(arm)
        if known.plays(arm):
            spent += 1.0 / known.plays(arm)


def parts(known, width, base):
    """L(A) and F(A)."""
    total = sum(known.mean(a) for a in base)
    return total, width * math.sqrt(sum(1.0 / known.plays(a) for a in base))


def best_index(known, width, arms):
    """max of L + F over all bases, by looking at them all."""
    return max(sum(parts(known, width, base)) for base in known.bases(arms))


def aescb(known, width, arms, rank, xi):
    """The m-set programme of AESCB (Cuvelier et al. 2021): means rounded up to multiples of xi, and for every sum of
    rounded means the largest V. The base found, whose index is at most rank * xi below the best."""
    best = {(0, 0): (0.0, ())}
    for arm in arms:
        level, v = math.ceil(known.mean(arm) / xi), 1.0 / known.plays(arm)
        for (n, s), (total, base) in list(best.items()):
            state, value = (n + 1, s + level), (total + v, (*base, arm))
            if n < rank and (state not in best or best[state] < value):
                best[state] = value
    full = [(s * xi + width * math.sqrt(v), base) for (n, s), (v, base) in best.items() if n == rank]
    return max(full)[1]


# -- OSSB ------------------------------------------------------------------------------------------------------------


def kl(p, q):
    """Relative entropy of Bernoulli distributions, p <= q."""
    if p >= q:
        return 0.0
    if q >= 1.0:
        return math.inf
    first = p * math.log1p((p - q) / q) if p > 0.0 else 0.0
    return max(0.0, first + (1.0 - p) * math.log1p((q - p) / (1.0 - q)))


class NaiveOSSB:
    """The three cases, with partners by exchange tests."""

    def __init__(self, known, low=0.0, high=1.0, gamma=0.0, epsilon=0.01, sigma=None):
        self.known, self.low, self.high = known, low, high
        self.gamma, self.epsilon, self.sigma = gamma, epsilon, sigma
        self.explored = 0

    def divergence(self, a, b):
        p, q = self.known.mean(a), self.known.mean(b)
        if self.sigma is not None:
            return 0.5 * ((q - p) / self.sigma) ** 2
        span = self.high - self.low
        return kl(*(min(1.0, max(0.0, (x - self.low) / span)) for x in (p, q)))

    def partner(self, leader, arm):
        """The lightest arm of the leader that `arm` can replace, None for a loop."""
        for old in reversed(leader):
            if self.known.independent([arm, *(a for a in leader if a != old)]):
                return old
        return None

    def select(self, t, arms):
        known = self.known
        leader = greedy(known, 0.0, arms)
        if any(known.plays(a) == 0 for a in leader):
            return sorted(leader)
        partners = {a: self.partner(leader, a) for a in arms if a not in leader}
        needs = {a: known.plays(a) * self.divergence(a, s) for a, s in partners.items() if s is not None}
        if all(x >= (1.0 + self.gamma) * math.log(t) for x in needs.values()):
            return sorted(leader)
        self.explored += 1
        rarest = min([*leader, *needs], key=lambda a: (known.plays(a), -known.mean(a), a))
        if known.plays(rarest) <= self.epsilon * self.explored:
            arm = rarest
        else:
            arm = min(needs, key=lambda a: (needs[a], known.plays(a), -known.mean(a), a))
            if known.plays(partners[arm]) < known.plays(arm):
                return sorted(leader)
        if arm in leader:
            return sorted(leader)
        return sorted([arm, *(a for a in leader if a != partners[arm])])
