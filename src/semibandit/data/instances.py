"""Random instances by name: a matroid of any class with given arms and rank, means, and an environment.

Everything is a function of the arguments and the seed. The command line, the demo and the benchmark build
their worlds here, so that a figure can be repeated from its options alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from semibandit.arms import FloatArray
from semibandit.environments.codec import DRAWN, make_environment
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid, codec
from semibandit.text import unknown

if TYPE_CHECKING:
    from semibandit.environments import Environment

# Means keep this distance from the ends of [0, 1], so that noise of twice the margin fits around each of them.
MARGIN = 0.1


def random_matroid(name: str, arms: int, rank: int, seed: int = 0) -> Matroid:
    """A matroid of class `name` (a row of `semibandit.matroids.codec`) with `arms` arms and rank `rank`.

    >>> random_matroid("graphic", arms=30, rank=9, seed=1)
    Graphic(n_arms=30, n_vertices=10, rank=9)
    """
    row = codec.row(name)
    for label, value in (("arms", arms), ("rank", rank)):
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
            raise ParameterError(f"{label} must be a positive integer, got {value!r}")
    if rank > arms:
        raise ParameterError(f"rank = {rank} is larger than arms = {arms}")
    return row.random(int(arms), int(rank), int(seed))


def random_means(arms: int, seed: int = 0) -> FloatArray:
    """Independent means, uniform over [0.1, 0.9]. O(K)."""
    return MARGIN + (1.0 - 2.0 * MARGIN) * np.random.default_rng([seed, 4]).random(arms)


def settled_means(matroid: Matroid, seed: int = 0) -> FloatArray:
    """Means with a gap: a random base has means in [0.8, 0.9], every other arm in [0.1, 0.4]. One greedy.

    With independent means and many arms the best ones lie so close together that no horizon tells them apart; with
    a gap the base settles, as it does in a system that has been running for long.
    """
    rng = np.random.default_rng([seed, 5])
    means = 0.1 + 0.3 * rng.random(matroid.n_arms)
    best = matroid.max_weight_base(rng.random(matroid.n_arms))
    means[best] = 0.8 + 0.1 * rng.random(len(best))
    return means


def random_environment(
    name: str, matroid: str, arms: int, rank: int, seed: int = 0, width: float = 0.2, settled: bool = False
) -> Environment:
    """A random instance ready to be played: `random_matroid`, means and an environment on them.

    Means are those of `random_means`, or of `settled_means` if `settled`.

    >>> env = random_environment("bernoulli", "partition", arms=12, rank=3, seed=1)
    >>> env.matroid, len(env.optimal_base)
    (Partition(n_arms=12, n_groups=3, rank=3), 3)
    """
    built = random_matroid(matroid, arms, rank, seed)
    means = settled_means(built, seed) if settled else random_means(arms, seed)
    if name not in DRAWN:
        raise ParameterError(unknown(f"env = {name!r} is not known", name, DRAWN))
    options = {"width": width} if name == "noise" else {}
    return make_environment(name, built, means, seed=seed, **options)
