"""Off-policy estimators as their papers write them: one round after the other, with dictionaries and loops."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping, Sequence

Round = Mapping[int, float]  # arm -> reward, of the logged base


def per_arm(
    rounds: Sequence[Round],
    chosen: Sequence[Sequence[int]],
    chance: Callable[[int, int], float],
    expected: Callable[[int, int], float],
    clip: float,
) -> dict[str, float]:
    """Estimates by arms; ``chance(t, arm)``: the propensity, ``expected(t, arm)``: the model."""
    ips = clipped = dr = share = 0.0
    for t, (logged, base) in enumerate(zip(rounds, chosen, strict=True)):
        for arm in base:
            dr += expected(t, arm)
            if arm in logged:
                weight = 1.0 / chance(t, arm)
                ips += weight * logged[arm]
                clipped += min(weight, clip) * logged[arm]
                dr += weight * (logged[arm] - expected(t, arm))
                share += weight / len(base)
    n = len(rounds)
    return {"ips": ips / n, "snips": ips / share, "clipped": clipped / n, "dr": dr / n}


def per_base(
    rounds: Sequence[Round],
    chosen: Sequence[Sequence[int]],
    chance: Callable[[int], float],
    expected: Callable[[int, int], float],
    clip: float,
) -> dict[str, float]:
    """Estimates by whole bases; ``chance(t)``: the probability of the base logged in round t."""
    ips = clipped = dr = share = 0.0
    for t, (logged, base) in enumerate(zip(rounds, chosen, strict=True)):
        model = sum(expected(t, arm) for arm in base)
        dr += model
        if set(base) == set(logged):
            weight = 1.0 / chance(t)
            ips += weight * sum(logged.values())
            clipped += min(weight, clip) * sum(logged.values())
            dr += weight * (sum(logged.values()) - model)
            share += weight
    n = len(rounds)
    return {"ips": ips / n, "snips": ips / share, "clipped": clipped / n, "dr": dr / n}


def effective(weights: Sequence[float]) -> float:
    """Kish's effective sample size."""
    return sum(weights) ** 2 / sum(weight * weight for weight in weights)


class SkewedLogger:
    """Plays a set of `rank` arms with probability proportional to the product of their weights; all sets are listed."""

    def __init__(self, weights: Sequence[float], rank: int) -> None:
        self.bases = list(itertools.combinations(range(len(weights)), rank))
        products = []
        for base in self.bases:
            product = 1.0
            for arm in base:
                product *= weights[arm]
            products.append(product)
        total = sum(products)
        self.chance = [product / total for product in products]
        self.arm_chance = [
            sum(p for base, p in zip(self.bases, self.chance, strict=True) if arm in base)
            for arm in range(len(weights))
        ]

    def log(self, means: Sequence[float], rounds: int, seed: int) -> dict[str, list[float]]:
        """Columns of a log with rewards 0 or 1, propensities of arms and of bases among them."""
        rng = random.Random(seed)
        columns: dict[str, list[float]] = {
            name: [] for name in ("round", "arm", "reward", "propensity", "base_propensity")
        }
        drawn = rng.choices(range(len(self.bases)), weights=self.chance, k=rounds)
        for t, i in enumerate(drawn):
            for arm in self.bases[i]:
                row = (t, arm, int(rng.random() < means[arm]), self.arm_chance[arm], self.chance[i])
                for column, cell in zip(columns.values(), row, strict=True):
                    column.append(cell)
        return columns
