"""Random small instances of every matroid class, each with its slow oracle."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import oracles.matroids as naive
from semibandit.matroids import Graphic, Laminar, Linear, Matroid, Partition, Transversal, Uniform

Instance = tuple[Matroid, naive.Independent]


def random_families(rng: np.random.Generator, arms: list[int]) -> list[tuple[list[int], int]]:
    """Nested families over `arms`, by splitting them again and again; now and then one family twice."""
    families = []
    stack = [arms]
    while stack:
        part = stack.pop()
        for _ in range(rng.integers(0, 3)):
            families.append((list(rng.permutation(part)), int(rng.integers(0, len(part) + 2))))
        if len(part) > 1:
            cut = int(rng.integers(1, len(part)))
            stack += [part[:cut], part[cut : cut + int(rng.integers(1, len(part)))]]
    order = rng.permutation(len(families))
    return [(list(map(int, families[i][0])), families[i][1]) for i in order]


def random_uniform(rng: np.random.Generator, n: int) -> Instance:
    rank = int(rng.integers(1, n + 1))
    return Uniform(n, rank), naive.uniform(rank)


def random_partition(rng: np.random.Generator, n: int) -> Instance:
    n_groups = int(rng.integers(1, n + 1))
    groups = rng.integers(0, n_groups, n)
    capacities = rng.integers(0, 4, n_groups)
    capacities[groups[0]] += 1
    return Partition(groups, capacities), naive.partition(groups.tolist(), capacities.tolist())


def random_laminar(rng: np.random.Generator, n: int) -> Instance:
    while True:
        families = random_families(rng, list(map(int, rng.permutation(n))))
        independent = naive.laminar(families)
        if any(independent([k]) for k in range(n)):
            return Laminar(n, families), independent


def random_graphic(rng: np.random.Generator, n: int) -> Instance:
    n_vertices = int(rng.integers(2, max(3, n)))
    edges = rng.integers(0, n_vertices, (n, 2))
    edges[rng.integers(n)] = (0, 1)
    return Graphic(edges, n_vertices=n_vertices + 1), naive.graphic(edges.tolist())


def random_transversal(rng: np.random.Generator, n: int) -> Instance:
    n_right = int(rng.integers(1, n + 2))
    neighbours = [rng.integers(0, n_right, rng.integers(0, 4)).tolist() for _ in range(n)]
    neighbours[rng.integers(n)] = [0]
    return Transversal(neighbours, n_right), naive.transversal(neighbours)


def random_rational(rng: np.random.Generator, n: int) -> Instance:
    d = int(rng.integers(1, 5))
    # A product of thin matrices has many dependent rows.
    table = rng.integers(-2, 3, (n, d)) @ rng.integers(-2, 3, (d, int(rng.integers(1, 6))))
    vectors = [[Fraction(int(x), int(rng.integers(1, 4))) for x in row] for row in table]
    vectors[int(rng.integers(n))][0] += 1
    if naive.rational_rank(vectors) == 0:
        vectors[0][0] = Fraction(1)
    return Linear(vectors), naive.linear(vectors)


def random_modular(rng: np.random.Generator, n: int) -> Instance:
    p = int(rng.choice([2, 3, 5, 2**31 - 1]))
    vectors = rng.integers(-3, 4, (n, int(rng.integers(1, 5))))
    vectors[rng.integers(n), 0] = 1
    return Linear(vectors, field=p), naive.linear(vectors.tolist(), p)


RANDOM = {
    "uniform": random_uniform,
    "partition": random_partition,
    "laminar": random_laminar,
    "graphic": random_graphic,
    "transversal": random_transversal,
    "rational": random_rational,
    "modular": random_modular,
}
