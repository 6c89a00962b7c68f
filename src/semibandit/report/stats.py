"""Means with 95 % intervals, alone and of paired differences."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray

LEVEL = 0.95


def _within(t: float, freedom: int) -> float:
    """P(|T| < t) for Student's t with a whole number of degrees of freedom. O(freedom).

    Abramowitz and Stegun 26.7.3 and 26.7.4: a finite sum.
    """
    angle = math.atan(t / math.sqrt(freedom))
    square = math.cos(angle) ** 2
    odd = freedom % 2 == 1
    term = math.cos(angle) if odd else 1.0
    total, first = 0.0, 1 if odd else 0
    for j in range(first, freedom - 1, 2):
        total += term
        term *= square * (j + 1) / (j + 2)
    share = math.sin(angle) * total
    return 2.0 / math.pi * (angle + share) if odd else share


@cache
def t_quantile(freedom: int, level: float = LEVEL) -> float:
    """The t with P(|T| < t) = level: how many standard errors an interval reaches to each side.

    >>> round(t_quantile(9), 3), round(t_quantile(1), 2)
    (2.262, 12.71)
    """
    low, high = 0.0, 1.0
    while _within(high, freedom) < level:
        high *= 2.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        if _within(middle, freedom) < level:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def half_width(samples: npt.ArrayLike) -> FloatArray | None:
    """Half the 95 % interval of the mean over the first axis; None for a single sample."""
    given = np.asarray(samples, dtype=np.float64)
    n = len(given)
    if n < 2:
        return None
    return np.asarray(t_quantile(n - 1) * given.std(axis=0, ddof=1) / math.sqrt(n))


def paired(first: npt.ArrayLike, second: npt.ArrayLike) -> tuple[float, float | None]:
    """Mean of ``first - second``, pair by pair, and half of its 95 % interval.

    >>> mean, half = paired([3.0, 5.0, 4.0], [1.0, 3.0, 2.0])
    >>> mean, half
    (2.0, 0.0)
    """
    difference = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    half = half_width(difference)
    return float(difference.mean()), None if half is None else float(half)
