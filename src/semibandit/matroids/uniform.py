"""Uniform matroid: any `rank` arms may be played together."""

from __future__ import annotations

from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.errors import MatroidError
from semibandit.matroids import codec
from semibandit.matroids.base import Matroid
from semibandit.matroids.greedy import top_arms
from semibandit.matroids.parting import by_count
from semibandit.matroids.validate import positive

# A heap of D arms fills in one pass and wins while D is small; beyond, selecting the D-th weight first does.
_HEAP_RANK = 1024


class Uniform(Matroid):
    """At most `rank` of `n_arms` arms, any of them.

    Parameters
    ----------
    n_arms
        Number K of arms.
    rank
        Number D of arms to play, 1 <= D <= K.

    Raises
    ------
    MatroidError
        When `n_arms` or `rank` is not an integer, less than 1, or `rank` exceeds `n_arms`.

    Notes
    -----
    Membership is one counter, O(1) (paper, appendix on membership oracles). `max_weight_base` is a one-pass
    selection: O(K) for arms in random order, O(K log D) at worst.

    Examples
    --------
    >>> from semibandit.matroids import Uniform
    >>> Uniform(n_arms=5, rank=2).max_weight_base([0.3, 0.9, 0.1, 0.9, 0.9])
    array([1, 3])
    """

    def __init__(self, n_arms: int, rank: int) -> None:
        super().__init__(n_arms)
        self._rank = positive(rank, "rank")
        if self._rank > self.n_arms:
            raise MatroidError(f"rank = {self._rank}: need at most n_arms = {self.n_arms}")

    def _is_independent(self, arms: IntArray) -> bool:
        return len(arms) <= self._rank

    def _max_weight_base(self, weights: FloatArray) -> IntArray:
        if self._rank <= _HEAP_RANK:
            # numba compiles a kernel anew for read-only arguments; copying is cheaper.
            return np.sort(top_arms(weights if weights.flags.writeable else weights.copy(), self._rank))
        last = np.partition(weights, self.n_arms - self._rank)[self.n_arms - self._rank]
        above = np.flatnonzero(weights > last)
        ties = np.flatnonzero(weights == last)[: self._rank - above.size]
        return np.sort(np.concatenate((above, ties)))

    def _greedy(self, order: IntArray) -> IntArray:
        return np.array(order[: self._rank], dtype=np.int64)

    def _find_rank(self) -> int:
        return self._rank

    def _find_loops(self) -> IntArray:
        return np.empty(0, dtype=np.int64)

    def _key(self) -> tuple[Any, ...]:
        return (self._rank,)

    def __repr__(self) -> str:
        return f"Uniform(n_arms={self.n_arms}, rank={self._rank})"


def _random(arms: int, rank: int, seed: int) -> Uniform:
    """Any `rank` of the arms; nothing is random here."""
    return Uniform(arms, rank)


codec.register(
    Uniform,
    to_parts=lambda m: {"n_arms": m.n_arms, "rank": m.rank},
    from_parts=Uniform,
    random=_random,
    parting=by_count,
)
