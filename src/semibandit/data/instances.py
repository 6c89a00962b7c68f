"""Random instances by name: a matroid of each class with given arms and rank, means, and an environment.

Everything is a function of the arguments and the seed. The command line, the demo and the benchmark build
their worlds here, so that a figure can be repeated from its options alone.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.errors import ParameterError
from semibandit.matroids import Graphic, Laminar, Linear, Matroid, Partition, Transversal, Uniform

if TYPE_CHECKING:
    from semibandit.environments import Environment

# Means keep this distance from the ends of [0, 1], so that noise of twice the margin fits around each of them.
MARGIN = 0.1

_DEGREE = 3
_LARGEST_ENTRY = 5


def _blocks(n: int, parts: int) -> IntArray:
    """`n` items in `parts` contiguous blocks whose sizes differ by at most one: the block of each item."""
    return np.arange(n, dtype=np.int64) * parts // n


def uniform(arms: int, rank: int, seed: int) -> Matroid:
    """Any `rank` of the arms; nothing is random here."""
    return Uniform(arms, rank)


def partition(arms: int, rank: int, seed: int) -> Matroid:
    """`rank` groups of nearly equal size, one arm of each."""
    return Partition(_blocks(arms, rank), 1)


def laminar(arms: int, rank: int, seed: int) -> Matroid:
    """Three levels: `rank` of all, about half as much again allowed over the blocks, half a block in a part.

    Every level binds somewhere: a block could fill more than its share and a part more than its own. O(K).
    """
    n_blocks = max(1, min(arms, round(rank / 3)))
    allowed = -(-3 * rank // (2 * n_blocks))
    families: list[tuple[IntArray, int]] = [(np.arange(arms, dtype=np.int64), rank)]
    block = _blocks(arms, n_blocks)
    edges = np.searchsorted(block, np.arange(n_blocks + 1))
    for first, last in pairwise(edges):
        members = np.arange(first, last, dtype=np.int64)
        families.append((members, allowed))
        if len(members) > 1:
            part = _blocks(len(members), min(4, len(members)))
            families.extend((members[part == p], max(1, -(-allowed // 2))) for p in range(part[-1] + 1))
    return Laminar(arms, families)


def graphic(arms: int, rank: int, seed: int) -> Matroid:
    """A connected simple graph on ``rank + 1`` vertices with `arms` random edges in random order. O(K log K)."""
    n = rank + 1
    most = n * (n - 1) // 2
    if not rank <= arms <= most:
        raise ParameterError(
            f"arms = {arms}: a connected simple graph of rank {rank} ({n} vertices) has {rank} to {most} edges"
        )
    rng = np.random.default_rng([seed, 1])
    # A random tree first, so that every graph is connected: each vertex hangs on an earlier one.
    label = rng.permutation(n)
    hook = np.floor(rng.random(n - 1) * np.arange(1, n)).astype(np.int64)
    tree = _pair_code(label[1:], label[hook], n)
    if arms > most // 2:
        low, high = np.triu_indices(n, 1)
        rest = np.setdiff1d(_pair_code(low, high, n), tree, assume_unique=True)
        codes = np.concatenate([tree, rng.permutation(rest)[: arms - len(tree)]])
    else:
        codes = tree
        while len(codes) < arms:
            ends = rng.integers(0, n, size=(2 * (arms - len(codes)) + 16, 2))
            fresh = _pair_code(ends[:, 0], ends[:, 1], n)[ends[:, 0] != ends[:, 1]]
            codes = np.concatenate([codes, fresh])
            codes = codes[np.sort(np.unique(codes, return_index=True)[1])][:arms]
    codes = rng.permutation(codes)
    return Graphic(np.column_stack([codes // n, codes % n]), n_vertices=n)


def _pair_code(a: IntArray, b: IntArray, n: int) -> IntArray:
    return np.asarray(np.minimum(a, b) * n + np.maximum(a, b), dtype=np.int64)


def transversal(arms: int, rank: int, seed: int) -> Matroid:
    """`rank` right nodes; every arm may be matched to a few random ones (three at most). O(K)."""
    _at_least(arms, rank, "transversal")
    rng = np.random.default_rng([seed, 2])
    neighbours = rng.integers(0, rank, size=(arms, min(_DEGREE, rank)))
    neighbours[rng.permutation(arms)[:rank], 0] = np.arange(rank)
    return Transversal(neighbours, n_right=rank)


def linear(arms: int, rank: int, seed: int) -> Matroid:
    """Random vectors of small integers in `rank` dimensions, over the rationals. O(K * D)."""
    _at_least(arms, rank, "linear")
    rng = np.random.default_rng([seed, 3])
    vectors = rng.integers(-_LARGEST_ENTRY, _LARGEST_ENTRY + 1, size=(arms, rank))
    # A triangle with a nonzero diagonal, in random places, secures the rank.
    places = rng.permutation(arms)[:rank]
    triangle = np.triu(vectors[places], 1) + np.eye(rank, dtype=np.int64)
    vectors[places] = triangle
    return Linear(vectors)


def _at_least(arms: int, rank: int, name: str) -> None:
    if arms < rank:
        raise ParameterError(f"arms = {arms}: a {name} matroid of rank {rank} has at least {rank} arms")


MATROIDS: dict[str, Callable[[int, int, int], Matroid]] = {
    "uniform": uniform,
    "partition": partition,
    "laminar": laminar,
    "graphic": graphic,
    "transversal": transversal,
    "linear": linear,
}

ENVIRONMENTS = ("bernoulli", "beta", "gaussian", "noise", "correlated")


def random_matroid(name: str, arms: int, rank: int, seed: int = 0) -> Matroid:
    """A matroid of class `name` (a key of `MATROIDS`) with `arms` arms and rank `rank`.

    >>> random_matroid("graphic", arms=30, rank=9, seed=1)
    Graphic(n_arms=30, n_vertices=10, rank=9)
    """
    if name not in MATROIDS:
        raise ParameterError(f"matroid = {name!r} is not known: one of {', '.join(MATROIDS)}")
    for label, value in (("arms", arms), ("rank", rank)):
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
            raise ParameterError(f"{label} must be a positive integer, got {value!r}")
    if rank > arms:
        raise ParameterError(f"rank = {rank} is larger than arms = {arms}")
    return MATROIDS[name](int(arms), int(rank), int(seed))


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


def make_environment(
    name: str, matroid: Matroid, means: Any, seed: int = 0, width: float = 0.2
) -> Environment:
    """An environment of kind `name` (one of `ENVIRONMENTS`) around `means`; `width` is for ``"noise"`` alone."""
    from semibandit import environments as worlds

    if name == "bernoulli":
        return worlds.Bernoulli(matroid, means, seed=seed)
    if name == "beta":
        return worlds.Beta(matroid, means, seed=seed)
    if name == "gaussian":
        return worlds.Gaussian(matroid, means, sigma=0.1, seed=seed)
    if name == "noise":
        return worlds.UniformNoise(matroid, means, width=width, seed=seed)
    if name == "correlated":
        return worlds.Correlated(matroid, means, seed=seed)
    raise ParameterError(f"env = {name!r} is not known: one of {', '.join(ENVIRONMENTS)}")


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
    return make_environment(name, built, means, seed=seed, width=width)
