"""The base of the bases: what shards answer becomes what is played (docs/theory.md, A).

For E = C_1 + ... + C_n the best base of E is that of B(C_1) + ... + B(C_n), under one order of all arms: the heavier
first, then the smaller id. Greedy over at most n D arms finds it. It must know what these arms are: from the whole
matroid, if the coordinator holds it, or else from what shards say of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.distributed.split import Split
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid, Uniform, codec

#: Of a shard: arms, weights, what the arms are (or None), what is known of them (or None).
Answer = tuple[Any, ...]


class Merged(NamedTuple):
    """The arms to play, ascending, and scores, means, ends of what is likely and plays of them, if they were asked."""

    arms: IntArray
    account: tuple[Any, ...] | None


class Ground(Protocol):
    """What the coordinator knows of the matroid. `facts`: whether shards must say what their arms are.

    `common`: what all arms share, where that is so."""

    facts: bool
    common: dict[str, Any]

    def best(self, arms: IntArray, weights: FloatArray, facts: Sequence[Any]) -> IntArray:
        """The best base of these arms, ascending."""


class Whole:
    """The matroid itself."""

    facts = False

    def __init__(self, matroid: Matroid, split: Split) -> None:
        self.matroid, self.split = matroid, split
        self.common: dict[str, Any] = {}

    def best(self, arms: IntArray, weights: FloatArray, facts: Sequence[Any]) -> IntArray:
        """O(n log n) for n arms and n membership tests; where no rule concerns two shards, all of them."""
        if self.split.apart:
            return np.sort(arms)
        return self.matroid._best_among(arms, weights)


class Parts:
    """Only what all arms share, such as the capacities of groups."""

    facts = True

    def __init__(self, row: Any, common: Mapping[str, Any]) -> None:
        self.row, self.common = row, dict(common)

    def best(self, arms: IntArray, weights: FloatArray, facts: Sequence[Any]) -> IntArray:
        """Greedy over a matroid of these arms alone. O(n log n), and what it costs to make that."""
        return np.sort(arms[self.picked(np.lexsort((arms, -weights)), facts)])

    def picked(self, order: IntArray, facts: Sequence[Any]) -> IntArray:
        """Greedy over the arms that `facts` describe, in this order of their places: the places it picks."""
        if order.size == 0:
            return order
        joined = self.row.parting.join([{**self.common, **one} for one in facts])
        picked: IntArray = self.row.from_parts(**joined)._greedy(order)
        return picked


def merge(answers: Sequence[Answer], ground: Ground) -> Merged:
    """What to play, given the base of each shard. O(n D log(n D)) for n shards, and n D membership tests."""
    some = [answer for answer in answers if len(answer[0])]
    if not some:
        return Merged(np.zeros(0, dtype=np.int64), None if answers[0][3] is None else answers[0][3])
    arms = np.concatenate([answer[0] for answer in some])
    weights = np.concatenate([answer[1] for answer in some])
    base = ground.best(arms, weights, [answer[2] for answer in some])
    if some[0][3] is None:
        return Merged(base, None)
    order = np.argsort(arms)
    at = order[np.searchsorted(arms[order], base)]
    columns = zip(*(answer[3] for answer in some), strict=True)
    return Merged(base, tuple(np.concatenate(column)[at] for column in columns))


def row_for(matroid: Matroid) -> Any:
    """The row of a matroid that can be sharded, or a `ParameterError`."""
    row = codec.row_of(type(matroid))
    if row is None or row.parting is None:
        known = [
            codec.row(name).cls.__name__ for name in codec.names() if codec.row(name).parting is not None
        ]
        raise ParameterError(
            f"a {type(matroid).__name__} cannot be sharded: {', '.join(known)} can, and classes that say how they are "
            "cut (semibandit.matroids.parting)"
        )
    return row


class Scattered(Matroid):
    """A matroid of which every shard knows its own part and nobody all: what arms are is asked for.

    For the tests that a policy's `matroid` must answer; rounds do without it.
    """

    def __init__(self, n_arms: int, rank: int, kind: str, picked: Callable[[IntArray], IntArray]) -> None:
        super().__init__(n_arms)
        self._kind, self._known_rank, self._picked = kind, rank, picked

    def _is_independent(self, arms: IntArray) -> bool:
        return len(self._picked(arms)) == len(arms)

    def _greedy(self, order: IntArray) -> IntArray:
        return self._picked(order)

    def _find_rank(self) -> int:
        return self._known_rank

    def __repr__(self) -> str:
        return f"Scattered({self._kind}, n_arms={self.n_arms}, rank={self._known_rank})"


def ground_of_parts(
    row: Any, common: Mapping[str, Any], n_arms: int, rank: int, picked: Callable[[IntArray], IntArray]
) -> Matroid:
    """The matroid that a policy over parts shows: itself where it takes no memory, else a `Scattered` one."""
    if row.cls is Uniform:
        return Uniform(n_arms, rank)
    return Scattered(n_arms, rank, row.cls.__name__, picked)
