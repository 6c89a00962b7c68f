"""Upper confidence bounds: an index of every arm, or of a whole base."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.textbook.counts import Textbook
from semibandit.arms import FloatArray, IntArray

EXPLORATION = 1.5


class Ucb(Textbook):
    """CUCB: mean and a width of sqrt(1.5 log t / N)."""

    def index(self) -> FloatArray:
        return self._optimistic(math.sqrt(EXPLORATION * math.log(self.t)))


class UcbOfCosts(Ucb):
    """CUCB on costs: the smallest lower bounds. `index` is the negated bound."""

    def __init__(self, n_arms: int, rank: int, seed: int = 0) -> None:
        super().__init__(n_arms, rank, seed)
        self.means[:] = -np.inf

    def index(self) -> FloatArray:
        np.multiply(self.widths, math.sqrt(EXPLORATION * math.log(self.t)), out=self._weight)
        np.subtract(self._weight, self.means, out=self._weight)
        return self._weight


class UcbV(Textbook):
    """Mean, sqrt(2 V L / N) and 3 L / N, with the empirical variance V and L = 1.5 log t."""

    def __init__(self, n_arms: int, rank: int, seed: int = 0) -> None:
        super().__init__(n_arms, rank, seed)
        self.squares = np.zeros(n_arms)
        self.spread = np.zeros(n_arms)
        self.inverse = np.zeros(n_arms)

    def update(self, arms: IntArray, rewards: FloatArray) -> None:
        super().update(arms, rewards)
        self.squares[arms] += rewards * rewards
        counts, means = self.counts[arms], self.means[arms]
        variance = np.maximum(self.squares[arms] / counts - means * means, 0.0)
        self.spread[arms] = np.sqrt(2.0 * variance / counts)
        self.inverse[arms] = 3.0 / counts

    def index(self) -> FloatArray:
        level = EXPLORATION * math.log(self.t)
        np.multiply(self.spread, math.sqrt(level), out=self._weight)
        np.add(self._weight, self.means, out=self._weight)
        self._weight += level * self.inverse
        return self._weight


class Scaled(Textbook):
    """Mean and a width of S sqrt(2 (log t + log(K / D)) / N), with the standard deviation S of at least 4 rewards."""

    def __init__(self, n_arms: int, rank: int, seed: int = 0) -> None:
        super().__init__(n_arms, rank, seed)
        self.running = np.zeros(n_arms)
        self.squares = np.zeros(n_arms)

    def update(self, arms: IntArray, rewards: FloatArray) -> None:
        super().update(arms, rewards)
        counts = self.counts[arms]
        off = rewards - self.running[arms]
        self.running[arms] += off / counts
        self.squares[arms] += off * (rewards - self.running[arms])
        new = counts < 4.0
        self.means[arms[new]] = np.inf
        self.widths[arms] = np.where(
            new, 0.0, np.sqrt(self.squares[arms] / np.maximum(counts - 1.0, 1.0) / counts)
        )

    def index(self) -> FloatArray:
        return self._optimistic(math.sqrt(2.0 * (math.log(self.t) + math.log(self.n_arms / self.rank))))


class KlOsm(Textbook):
    """The largest q with N kl(mean, q) <= log t + 3 log log t, for all arms at once by Newton's method."""

    def __init__(self, n_arms: int, rank: int, seed: int = 0) -> None:
        super().__init__(n_arms, rank, seed)
        self.entropy = np.zeros(n_arms)

    def update(self, arms: IntArray, rewards: FloatArray) -> None:
        super().update(arms, rewards)
        p = self.means[arms]
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = -p * np.log(p) - (1.0 - p) * np.log1p(-p)
        self.entropy[arms] = np.where((p > 0.0) & (p < 1.0), inside, 0.0)

    def index(self) -> FloatArray:
        level = math.log(self.t)
        level += 3.0 * math.log(max(1.0, level))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            d = level / self.counts
            p, h = self.means, self.entropy
            # Both bounds lie beyond the root, and from there Newton's steps go down to it.
            q = np.minimum(p + np.sqrt(0.5 * d), -np.expm1(-(d + h) / (1.0 - p)))
            for _ in range(20):
                gap = -h - p * np.log(q) - (1.0 - p) * np.log1p(-q) - d
                step = gap * q * (1.0 - q) / (q - p)
                np.nan_to_num(step, copy=False, nan=0.0, posinf=0.0, neginf=0.0)
                q -= step
                if step.max() < 1e-12:
                    break
        q[p >= 1.0] = 1.0
        q[p <= 0.0] = -np.expm1(-d[p <= 0.0])
        q[self.counts == 0.0] = np.inf
        return q


class SlidingWindow(Ucb):
    """CUCB over the last `window` rounds, whose arms and rewards are kept in a ring."""

    def __init__(self, n_arms: int, rank: int, seed: int = 0, window: int = 10_000) -> None:
        super().__init__(n_arms, rank, seed)
        self.window = window
        # Round t goes by rounds t - window .. t - 1, so the ring holds one more than it counts.
        self.ring = window + 1
        self.old_arms: list[IntArray | None] = [None] * self.ring
        self.old_rewards: list[FloatArray | None] = [None] * self.ring

    def index(self) -> FloatArray:
        return self._optimistic(math.sqrt(EXPLORATION * math.log(min(self.t, self.window))))

    def select(self) -> IntArray:
        gone, rewards = self.old_arms[self.t % self.ring], self.old_rewards[self.t % self.ring]
        if gone is not None and rewards is not None:
            self._count(gone, -1.0, -rewards)
        return super().select()

    def update(self, arms: IntArray, rewards: FloatArray) -> None:
        self._count(arms, 1.0, rewards)
        at = (self.t - 1) % self.ring
        self.old_arms[at], self.old_rewards[at] = arms, rewards

    def _count(self, arms: IntArray, one: float, rewards: FloatArray) -> None:
        counts = self.counts[arms] + one
        totals = self.totals[arms] + rewards
        self.counts[arms] = counts
        self.totals[arms] = totals
        seen = counts > 0.0
        counts = np.maximum(counts, 1.0)
        self.means[arms] = np.where(seen, totals / counts, np.inf)
        self.widths[arms] = 1.0 / np.sqrt(counts)


class Discounted(Textbook):
    """CUCB in which all counts and sums shrink by a factor every round."""

    def __init__(self, n_arms: int, rank: int, seed: int = 0, discount: float = 0.999) -> None:
        super().__init__(n_arms, rank, seed)
        self.discount = discount

    def select(self) -> IntArray:
        self.counts *= self.discount
        self.widths /= math.sqrt(self.discount)
        self.totals *= self.discount
        return super().select()

    def index(self) -> FloatArray:
        level = math.log(max(float(self.counts.sum()), math.e))
        return self._optimistic(math.sqrt(EXPLORATION * level))


class Escb(Textbook):
    """Perrault's greedy for ESCB-2: D times the largest of mean + sqrt(f (c + 1/N)), f = log t / 2. O(K D)."""

    def __init__(self, n_arms: int, rank: int, seed: int = 0) -> None:
        super().__init__(n_arms, rank, seed)
        self.inverse = np.zeros(n_arms)
        self.left = np.zeros(n_arms)

    def update(self, arms: IntArray, rewards: FloatArray) -> None:
        super().update(arms, rewards)
        self.inverse[arms] = 1.0 / self.counts[arms]

    def select(self) -> IntArray:
        self.t += 1
        lam, spent, gain = math.sqrt(0.5 * math.log(self.t)), 0.0, self._weight
        np.copyto(self.left, self.means)
        arms = np.empty(self.rank, dtype=np.int64)
        for i in range(self.rank):
            # sqrt(f c), the same for all arms, is left out.
            np.add(self.inverse, spent, out=gain)
            np.sqrt(gain, out=gain)
            gain *= lam
            gain += self.left
            arms[i] = arm = int(gain.argmax())
            spent += float(self.inverse[arm])
            self.left[arm] = -np.inf
        return arms


class Ossb(KlOsm):
    """OSSB: the leader, or with one arm in place of its lightest, as N kl(mean, mean of the lightest) asks."""

    explored = 0

    def select(self) -> IntArray:
        self.t += 1
        leader = self.best(self.means)
        means = self.means[leader]
        last = int(means.argmin())
        q = float(means[last])
        if math.isinf(means.max()) or q >= 1.0:
            return leader
        known = self._weight
        # kl by the entropies that are kept: no logarithm of K numbers.
        np.multiply(self.means, math.log1p(-q) - math.log(q) if q > 0.0 else 0.0, out=known)
        known -= math.log1p(-q)
        known -= self.entropy
        known *= self.counts
        known[leader] = np.inf
        neediest = int(known.argmin())
        if known[neediest] >= math.log(self.t):
            return leader
        self.explored += 1
        fewest, arm = float(self.counts.min()), neediest
        if fewest <= 0.01 * self.explored:
            rare = np.flatnonzero(self.counts == fewest)
            arm = int(rare[self.means[rare].argmax()])
        elif self.counts[leader[last]] < self.counts[arm]:
            return leader
        if arm not in leader:
            leader[last] = arm
        return leader
