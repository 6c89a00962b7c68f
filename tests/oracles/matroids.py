"""Slow, plain matroids by definition. Imports nothing of the package: these are what it is compared with.

A matroid here is a function from a collection of arms to bool.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import chain, combinations

Independent = Callable[[Iterable[int]], bool]


def subsets(arms: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return chain.from_iterable(combinations(arms, size) for size in range(len(arms) + 1))


def uniform(rank: int) -> Independent:
    return lambda arms: len(set(arms)) <= rank


def partition(groups: Sequence[int], capacities: Sequence[int]) -> Independent:
    def independent(arms: Iterable[int]) -> bool:
        played = [groups[k] for k in arms]
        return all(played.count(g) <= capacities[g] for g in set(played))

    return independent


def laminar(families: Sequence[tuple[Sequence[int], int]]) -> Independent:
    return lambda arms: all(len(set(arms) & set(family)) <= capacity for family, capacity in families)


def graphic(edges: Sequence[tuple[int, int]]) -> Independent:
    """No cycle: keep pruning edges that have an end of degree one; a forest is pruned to nothing."""

    def independent(arms: Iterable[int]) -> bool:
        left = [tuple(map(int, edges[k])) for k in arms]
        while left:
            ends = [v for edge in left for v in edge]
            kept = [edge for edge in left if min(ends.count(edge[0]), ends.count(edge[1])) > 1]
            if len(kept) == len(left):
                return False
            left = kept
        return True

    return independent


def transversal(neighbours: Sequence[Sequence[int]]) -> Independent:
    """Hall's condition: every subset sees at least as many right nodes as it has arms."""

    def independent(arms: Iterable[int]) -> bool:
        return all(
            len(set(chain.from_iterable(neighbours[k] for k in part))) >= len(part)
            for part in subsets(list(arms))
        )

    return independent


def transversal_kuhn(neighbours: Sequence[Sequence[int]]) -> Independent:
    """The same by Kuhn's recursive matching, for instances too large for Hall."""

    def independent(arms: Iterable[int]) -> bool:
        owner: dict[int, int] = {}

        def place(k: int, tried: set[int]) -> bool:
            for r in neighbours[k]:
                if r not in tried:
                    tried.add(r)
                    if r not in owner or place(owner[r], tried):
                        owner[r] = k
                        return True
            return False

        return all(place(k, set()) for k in arms)

    return independent


def rational_rank(rows: Iterable[Sequence[object]]) -> int:
    """Rank over the rationals by Gaussian elimination on fractions."""
    left = [[Fraction(x) for x in row] for row in rows]  # type: ignore[arg-type]
    rank = 0
    for column in range(len(left[0]) if left else 0):
        at = next((i for i in range(rank, len(left)) if left[i][column] != 0), None)
        if at is None:
            continue
        left[rank], left[at] = left[at], left[rank]
        for i in range(rank + 1, len(left)):
            factor = left[i][column] / left[rank][column]
            left[i] = [x - factor * y for x, y in zip(left[i], left[rank], strict=True)]
        rank += 1
    return rank


def modular_rank(rows: Iterable[Sequence[int]], p: int) -> int:
    """Rank over GF(p) by Gaussian elimination."""
    left = [[int(x) % p for x in row] for row in rows]
    rank = 0
    for column in range(len(left[0]) if left else 0):
        at = next((i for i in range(rank, len(left)) if left[i][column]), None)
        if at is None:
            continue
        left[rank], left[at] = left[at], left[rank]
        inverse = pow(left[rank][column], -1, p)
        for i in range(rank + 1, len(left)):
            factor = left[i][column] * inverse
            left[i] = [(x - factor * y) % p for x, y in zip(left[i], left[rank], strict=True)]
        rank += 1
    return rank


def linear(vectors: Sequence[Sequence[object]], p: int | None = None) -> Independent:
    def independent(arms: Iterable[int]) -> bool:
        rows = [list(vectors[k]) for k in arms]
        rank = rational_rank(rows) if p is None else modular_rank(rows, p)  # type: ignore[arg-type]
        return rank == len(rows)

    return independent


def heaviest_first(weights: Sequence[float]) -> list[int]:
    return sorted(range(len(weights)), key=lambda k: (-weights[k], k))


def greedy(independent: Independent, order: Iterable[int]) -> list[int]:
    """The paper's greedy, word for word: one full independence test per arm."""
    picked: list[int] = []
    for k in order:
        if independent([*picked, k]):
            picked.append(k)
    return picked


def bases(independent: Independent, n_arms: int) -> list[tuple[int, ...]]:
    every = [arms for arms in subsets(range(n_arms)) if independent(arms)]
    most = max(map(len, every))
    return [arms for arms in every if len(arms) == most]


def best_total(independent: Independent, weights: Sequence[float]) -> float:
    """Largest total weight of a base, by trying all of them (finite weights)."""
    return max(math.fsum(weights[k] for k in base) for base in bases(independent, len(weights)))
