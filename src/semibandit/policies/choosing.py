"""Choosing among some arms, or by weights of the caller's: what `Policy.select` does with `among` and `weights`.

The policy says what its index of these arms is in the coming round; greedy over the arms in that order gives the best
base of the matroid restricted to them (docs/theory.md, A). No other arm is looked at.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.checks import as_arms, as_distinct_arms, as_vector
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid
from semibandit.matroids.base import heaviest_first


class Wish(NamedTuple):
    """What a caller asks for, checked. `among`: distinct arms, ascending, or None; `weights`: one for each of these,
    or one for every arm; `without`: arms to avoid."""

    without: IntArray
    among: IntArray | None
    weights: FloatArray | None


def as_wish(n_arms: int, exclude: Any, among: Any, weights: Any) -> Wish:
    """The arguments of `Policy.select`, or an `ArmError` or `ParameterError`. O(n log n) for n arms and weights."""
    without = np.empty(0, dtype=np.int64) if exclude is None else as_arms(exclude, n_arms, "exclude")
    arms = None if among is None else as_distinct_arms(among, n_arms, "among")
    scores = None if weights is None else as_vector(weights, "weights")
    size, what = (n_arms, "arm") if arms is None else (arms.size, "arm of among")
    if scores is not None and scores.size != size:
        raise ParameterError(f"weights must have one value per {what} ({size}), got {scores.size} values")
    if arms is not None:
        order = np.argsort(arms)
        arms, scores = arms[order], None if scores is None else scores[order]
    return Wish(without, arms, scores)


def best_base(matroid: Matroid, weights: FloatArray, here: Any) -> IntArray:
    """The base of largest weight, ascending, of the arms in the mask `here`. O(K log K) and K membership tests."""
    if here.all():
        return matroid._max_weight_base(weights)
    order = heaviest_first(weights)
    return np.sort(matroid._greedy(order[here[order]]))


def left_out(arms: IntArray, without: IntArray) -> Any:
    """Which of `arms` are in `without`. O(n log n)."""
    return np.isin(arms, without) if without.size else np.zeros(arms.shape, dtype=np.bool_)
