"""Slow oracles for the reward generator: Python integers and textbook formulas."""

from __future__ import annotations

import math

MASK = 2**64 - 1


def mix(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def bits(seed: int, arm: int, n: int, stream: int) -> int:
    """The 53 bits of a uniform number."""
    key = mix((seed + 0x9E3779B97F4A7C15) & MASK)
    key = mix(key ^ (((arm & MASK) * 0xD1342543DE82EF95) & MASK))
    counter = (n * 0xF1357AEA2E62A9C5 + stream * 0xA0761D6478BD642F) & MASK
    return mix(key ^ counter) >> 11


def uniform(seed: int, arm: int, n: int, stream: int) -> float:
    return bits(seed, arm, n, stream) / 2**53


def bernoulli(seed: int, low: float, high: float, probability: float, arm: int, n: int) -> float:
    return high if uniform(seed, arm, n, 0) < probability else low


def uniform_noise(seed: int, mean: float, width: float, arm: int, n: int) -> float:
    return mean + width * (uniform(seed, arm, n, 0) - 0.5)


def gaussian(seed: int, low: float, high: float, location: float, sigma: float, arm: int, n: int) -> float:
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(seed, arm, n, 0)))
    x = location + sigma * radius * math.cos(2.0 * math.pi * uniform(seed, arm, n, 1))
    return min(max(x, low), high)


def table(seed: int, row: list[float], arm: int, n: int) -> float:
    return row[bits(seed, arm, n, 0) * len(row) >> 53]


def correlated(seed: int, mean: float, width: float, correlation: float, arm: int, n: int, t: int) -> float:
    level = 2.0 * uniform(seed, -1, t, 0) - 1.0
    noise = 2.0 * uniform(seed, arm, n, 0) - 1.0
    a, b = math.sqrt(correlation), math.sqrt(1.0 - correlation)
    return mean + 0.5 * width * (a * level + b * noise) / (a + b)
