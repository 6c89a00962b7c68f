"""Estimators of what a policy earns a round, from what a log can tell of its choices, with bootstrap intervals.

What each of them is stands in the table of `semibandit.data.replay`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.data.replay.result import Estimate

#: Ends of the 95 % interval.
_TAILS = (0.025, 0.975)


class Terms(NamedTuple):
    """What a replay collected. Of each shared row: its round, weight, reward, expected reward; then of each round: the
    arms chosen, and what the model expects of all of them."""

    round: IntArray
    weight: FloatArray
    reward: FloatArray
    expected: FloatArray
    chosen: IntArray
    predicted: FloatArray


class _Parts(NamedTuple):
    """An estimate is the sum of `above` over the sum of `below`; `weight` gives its effective sample size."""

    above: FloatArray
    below: FloatArray
    weight: FloatArray


def _ips(terms: Terms, clip: float) -> _Parts:
    return _Parts(
        _sum(terms, terms.weight * terms.reward), np.ones(len(terms.chosen)), _share(terms, terms.weight)
    )


def _snips(terms: Terms, clip: float) -> _Parts:
    share = _share(terms, terms.weight)
    return _Parts(_sum(terms, terms.weight * terms.reward), share, share)


def _clipped(terms: Terms, clip: float) -> _Parts:
    return _ips(terms._replace(weight=np.minimum(terms.weight, clip)), clip)


def _dr(terms: Terms, clip: float) -> _Parts:
    added = _sum(terms, terms.weight * (terms.reward - terms.expected))
    return _Parts(terms.predicted + added, np.ones(len(terms.chosen)), _share(terms, terms.weight))


ESTIMATORS: dict[str, Callable[[Terms, float], _Parts]] = {
    "ips": _ips,
    "snips": _snips,
    "clipped": _clipped,
    "dr": _dr,
}


def estimate(terms: Terms, names: Sequence[str], clip: float, resamples: int, seed: int) -> list[Estimate]:
    """The estimates called `names`, with percentile bootstrap intervals over rounds. O(resamples * rounds).

    Intervals are NaN where rounds are fewer than two, or no arm is shared with the log.
    """
    parts = [ESTIMATORS[name](terms, clip) for name in names]
    draws = _bootstrap(parts, resamples, seed)
    found = []
    for name, part, drawn in zip(names, parts, draws, strict=True):
        low, high, error = math.nan, math.nan, math.nan
        drawn = drawn[np.isfinite(drawn)]
        if len(terms.chosen) > 1 and len(terms.round) and drawn.size:
            low, high = (float(end) for end in np.quantile(drawn, _TAILS))
            error = float(drawn.std())
        squares = float((part.weight**2).sum())
        found.append(
            Estimate(
                estimator=name,
                value=_ratio(float(part.above.sum()), float(part.below.sum())),
                low=low,
                high=high,
                standard_error=error,
                effective_samples=_ratio(float(part.weight.sum()) ** 2, squares) if squares > 0.0 else 0.0,
            )
        )
    return found


def _bootstrap(parts: Sequence[_Parts], resamples: int, seed: int) -> FloatArray:
    """Each estimate on `resamples` draws of the rounds with replacement, the same draws for all: a row each."""
    rng = np.random.default_rng(seed)
    sums = np.stack([side for part in parts for side in (part.above, part.below)])
    n = sums.shape[1]
    drawn = np.empty((len(sums), resamples))
    for b in range(resamples):
        times = np.bincount(rng.integers(0, n, size=n), minlength=n)
        drawn[:, b] = sums @ times.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(drawn[0::2] / drawn[1::2])


def _sum(terms: Terms, values: FloatArray) -> FloatArray:
    """The sum of the rows' values in each round."""
    return np.asarray(np.bincount(terms.round, weights=values, minlength=len(terms.chosen)), dtype=np.float64)


def _share(terms: Terms, weight: FloatArray) -> FloatArray:
    """Weight of each round: the average over the chosen arms, those not shared counting 0."""
    return np.asarray(_sum(terms, weight) / np.maximum(terms.chosen, 1))


def _ratio(above: float, below: float) -> float:
    return above / below if below != 0.0 else math.nan
