"""Slow oracles for the dynamic bases: greedy in plain Python. Imports nothing of the package.

All take a list of weights and return the sorted list of arms of the heaviest base, larger weight first, then
smaller arm id; arms of weight -inf count as absent.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence


def heaviest_first(weights: Sequence[float]) -> list[int]:
    present = [k for k, w in enumerate(weights) if w > -math.inf]
    return sorted(present, key=lambda k: (-weights[k], k))


def laminar_base(families: Sequence[tuple[Sequence[int], int]], weights: Sequence[float]) -> list[int]:
    """Families as (arms, capacity)."""
    around: list[list[int]] = [[] for _ in weights]
    for f, (arms, _) in enumerate(families):
        for k in arms:
            around[k].append(f)
    left = [capacity for _, capacity in families]
    base = []
    for k in heaviest_first(weights):
        if all(left[f] > 0 for f in around[k]):
            base.append(k)
            for f in around[k]:
                left[f] -= 1
    return sorted(base)


def forest_base(edges: Sequence[tuple[int, int]], weights: Sequence[float]) -> list[int]:
    link: dict[int, int] = {}

    def find(v: int) -> int:
        while link.setdefault(v, v) != v:
            link[v] = link[link[v]]
            v = link[v]
        return v

    base = []
    for k in heaviest_first(weights):
        u, v = find(edges[k][0]), find(edges[k][1])
        if u != v:
            link[u] = v
            base.append(k)
    return sorted(base)


def transversal_base(neighbours: Sequence[Sequence[int]], weights: Sequence[float]) -> list[int]:
    guest: dict[int, int] = {}

    def place(k: int, tried: set[int]) -> bool:
        for r in neighbours[k]:
            if r not in tried:
                tried.add(r)
                if r not in guest or place(guest[r], tried):
                    guest[r] = k
                    return True
        return False

    return sorted(k for k in heaviest_first(weights) if place(k, set()))


def best_weight_by_exhaustion(
    independent: Callable[[Sequence[int]], bool], weights: Sequence[float], rank: int
) -> float:
    """The weight of the heaviest base among all sets of `rank` arms."""
    return max(
        sum(weights[k] for k in arms)
        for arms in itertools.combinations(range(len(weights)), rank)
        if independent(arms)
    )
