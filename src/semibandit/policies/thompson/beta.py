"""Survival function of the Beta distribution and its inverse, for kernels. Parameters a, b >= 1.

The survival at x is the regularised incomplete beta function I_{1-x}(b, a), computed by its continued fraction with
Lentz's method (Abramowitz and Stegun 26.5.8; DiDonato and Morris 1992). Small survivals keep their relative
precision, because they are found directly and not as one minus something.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from semibandit.compiled.jit import kernel

_TINY = 1e-300
_MOST_TERMS = 1_000_000
_MOST_STEPS = 200


@kernel
def log_beta(a: float, b: float) -> Any:
    """log B(a, b). O(1)."""
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


# log n! for small n.
_LOG_FACTORIAL = np.array([math.lgamma(n + 1.0) for n in range(1024)])


@kernel
def log_beta_of_counts(wins: int, losses: int) -> Any:
    """log B(wins + 1, losses + 1). O(1), from a table where they are few."""
    if wins + losses < 1023:
        return _LOG_FACTORIAL[wins] + _LOG_FACTORIAL[losses] - _LOG_FACTORIAL[wins + losses + 1]
    return log_beta(wins + 1.0, losses + 1.0)


@kernel
def _fraction(a: float, b: float, x: float) -> Any:
    """The continued fraction of I_x(a, b) without its factor, for x < (a + 1) / (a + b + 2). O(sqrt(max(a, b)))."""
    c = 1.0
    d = 1.0 - (a + b) * x / (a + 1.0)
    if abs(d) < _TINY:
        d = _TINY
    d = 1.0 / d
    h = d
    for m in range(1, _MOST_TERMS):
        two = 2.0 * m
        term = m * (b - m) * x / ((a + two - 1.0) * (a + two))
        d = 1.0 + term * d
        if abs(d) < _TINY:
            d = _TINY
        c = 1.0 + term / c
        if abs(c) < _TINY:
            c = _TINY
        d = 1.0 / d
        h *= d * c
        term = -(a + m) * (a + b + m) * x / ((a + two) * (a + two + 1.0))
        d = 1.0 + term * d
        if abs(d) < _TINY:
            d = _TINY
        c = 1.0 + term / c
        if abs(c) < _TINY:
            c = _TINY
        d = 1.0 / d
        step = d * c
        h *= step
        if abs(step - 1.0) < 1e-15:
            break
    return h


@kernel
def log_survival(x: float, a: float, b: float, log_b: float) -> Any:
    """log P(Beta(a, b) > x) for 0 < x < 1, with log_b = log B(a, b). O(sqrt(a + b))."""
    log_x = math.log(x)
    log_y = math.log1p(-x)
    # Closed forms, exact where the continued fraction would lose digits to cancellation.
    if a == 1.0:
        return b * log_y
    if b == 1.0:
        return math.log(-math.expm1(a * log_x))
    front = a * log_x + b * log_y - log_b
    if x * (a + b + 2.0) > a + 1.0:
        return front - math.log(b) + math.log(_fraction(b, a, 1.0 - x))
    below = math.exp(front - math.log(a)) * _fraction(a, b, x)
    return math.log1p(-min(below, 1.0 - 1e-16))


@kernel
def _log_complement(log_v: float) -> Any:
    """log(1 - exp(log_v)), precise for small and for large exp(log_v). O(1)."""
    if log_v > -0.6931471805599453:
        return math.log(max(-math.expm1(log_v), _TINY))
    return math.log1p(-math.exp(log_v))


@kernel
def _first_guess(log_v: float, a: float, b: float) -> Any:
    """Abramowitz and Stegun 26.5.22: the point of survival exp(log_v), to a few percent. O(1)."""
    upper = log_v > -0.6931471805599453
    tail = _log_complement(log_v) if upper else log_v
    t = math.sqrt(-2.0 * tail)
    z = t - (2.30753 + t * 0.27061) / (1.0 + t * (0.99229 + t * 0.04481))
    if upper:
        z = -z
    p = 1.0 / (2.0 * a - 1.0)
    q = 1.0 / (2.0 * b - 1.0)
    k = (z * z - 3.0) / 6.0
    h = 2.0 / (p + q)
    root = k + h
    if root < 0.0:
        return a / (a + b)
    w = z * math.sqrt(root) / h - (p - q) * (k + 5.0 / 6.0 - 2.0 / (3.0 * h))
    return a / (a + b * math.exp(-2.0 * w))


@kernel
def inverse_survival(log_v: float, a: float, b: float, log_b: float, low: float) -> Any:
    """The x in (low, 1) with P(Beta(a, b) > x) = exp(log_v); `low` must lie at or below it.

    Newton's method on the logarithm of the survival, which is concave for a, b >= 1: after one step it approaches
    from above and cannot overshoot. A bracket guards it against rounding. A handful of steps of O(sqrt(a + b)).
    """
    if a == 1.0:
        return -math.expm1(log_v / b)
    if b == 1.0:
        # survival 1 - x^a
        return math.exp(_log_complement(log_v) / a)
    high = 1.0
    x = _first_guess(log_v, a, b)
    if not (low < x < high):
        x = 0.5 * (low + high)
    for _ in range(_MOST_STEPS):
        log_s = log_survival(x, a, b, log_b)
        gap = log_s - log_v
        if gap > 0.0:
            low = x
        else:
            high = x
        log_pdf = (a - 1.0) * math.log(x) + (b - 1.0) * math.log1p(-x) - log_b
        # d log S / dx = -pdf / S
        step = gap * math.exp(min(log_s - log_pdf, 700.0))
        # The error left after a step is about its square. Before the bracket, which rounding may have closed on x.
        if abs(step) <= 1e-9 * x * (1.0 - x) or high - low <= 1e-16:
            return x + step
        x += step
        if not (low < x < high):
            x = 0.5 * (low + high)
    return x
