"""Policies as a textbook has them, in plain numpy, for any D of K arms: the strongest simple form of each.

Everything is kept in arrays that are changed for the played arms alone where the algorithm allows it; what must be
computed for all K arms is a few array calls; the best D are found by ``np.argpartition``. Nothing is validated, the
arms come in no order, and ties go wherever the partition puts them. Rewards lie in [0, 1].
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray

EXPLORATION = 1.5


class Textbook:
    """Counts, sums and means of each arm; a round plays the arms of largest `index`. O(K)."""

    def __init__(self, n_arms: int, rank: int, seed: int = 0) -> None:
        self.n_arms, self.rank, self.t = n_arms, rank, 0
        self.rng = np.random.default_rng(seed)
        self.counts = np.zeros(n_arms)
        self.totals = np.zeros(n_arms)
        self.means = np.full(n_arms, np.inf)
        self.widths = np.zeros(n_arms)
        self._weight = np.empty(n_arms)

    def index(self) -> FloatArray:
        """What the arms of round `t` are chosen by."""
        raise NotImplementedError

    def select(self) -> IntArray:
        """The arms of the next round."""
        self.t += 1
        return self.best(self.index())

    def best(self, weight: FloatArray) -> IntArray:
        """The `rank` largest. O(K)."""
        return np.argpartition(weight, self.n_arms - self.rank)[self.n_arms - self.rank :]

    def update(self, arms: IntArray, rewards: FloatArray) -> None:
        """Count one reward of each arm."""
        counts = self.counts[arms] + 1.0
        totals = self.totals[arms] + rewards
        self.counts[arms] = counts
        self.totals[arms] = totals
        self.means[arms] = totals / counts
        self.widths[arms] = 1.0 / np.sqrt(counts)

    def _optimistic(self, lam: float) -> FloatArray:
        np.multiply(self.widths, lam, out=self._weight)
        np.add(self._weight, self.means, out=self._weight)
        return self._weight


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


class Greedy(Textbook):
    """The largest means."""

    def index(self) -> FloatArray:
        return self.means


class EpsilonGreedy(Greedy):
    """The largest means, or with probability 0.1 any arms."""

    def select(self) -> IntArray:
        self.t += 1
        if self.rng.random() < 0.1:
            return self.rng.choice(self.n_arms, self.rank, replace=False, shuffle=False)
        return self.best(self.means)


class Random(Textbook):
    """Any arms."""

    def select(self) -> IntArray:
        self.t += 1
        return self.rng.choice(self.n_arms, self.rank, replace=False, shuffle=False)


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


class Linear(Textbook):
    """Rewards linear in features: the normal posterior of the coefficients, scale 1, noise 1/2. O(K d) a round."""

    def __init__(self, n_arms: int, rank: int, seed: int = 0) -> None:
        super().__init__(n_arms, rank, seed)
        self.features = features_of(n_arms)
        size = self.features.shape[1]
        self.precision, self.moment = np.eye(size), np.zeros(size)

    def update(self, arms: IntArray, rewards: FloatArray) -> None:
        rows = self.features[arms]
        self.precision += 4.0 * (rows.T @ rows)
        self.moment += 4.0 * (rewards @ rows)


class LinTs(Linear):
    """CombLinTS: one draw of the coefficients."""

    def index(self) -> FloatArray:
        root = np.linalg.inv(np.linalg.cholesky(self.precision))
        theta = root.T @ (root @ self.moment + self.rng.standard_normal(len(root)))
        return np.dot(self.features, theta, out=self._weight)


class LinUcb(Linear):
    """CombLinUCB: a width of one standard deviation for each arm. O(K d^2)."""

    def index(self) -> FloatArray:
        root = np.linalg.inv(np.linalg.cholesky(self.precision))
        np.dot(self.features, root.T @ (root @ self.moment), out=self._weight)
        spread = self.features @ root.T
        self._weight += np.sqrt(np.einsum("ij,ij->i", spread, spread))
        return self._weight


def features_of(n_arms: int, size: int = 10) -> FloatArray:
    """Features of which all means are in [0, 1] under the coefficients 1 / size. O(K)."""
    return np.random.default_rng(7).random((n_arms, size))


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


def seen_once(player: Any, env: Any) -> None:
    """Let a player of either kind see one reward of every arm."""
    everyone = np.arange(env.n_arms, dtype=np.int64)
    player.update(everyone, env.draw(everyone, 1))
