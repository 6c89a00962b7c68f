"""The upper tail of a Beta posterior, by a bound that is tight far out and a draw that thins by what it is too large.

For s successes and f failures the density is proportional to x^s (1 - x)^f, whose logarithm is concave. Beyond x it
lies below the exponential that touches it at x: with slope -h, h = f / (1 - x) - s / x > 0 beyond the mode, the tail is
at most density / h. A draw from that exponential, kept with the ratio of the two curves, is a draw from the tail. With
s = 0 or f = 0 the tail has a closed form and nothing is thinned. Logarithms are taken only where bounds on them do not
decide.
"""

from __future__ import annotations

import math

from semibandit.compiled.jit import kernel
from semibandit.compiled.random import next_beta, next_exponential, next_uniform


@kernel
def tail_bound(wins, losses, log_b, x, log_x, log_y):
    """At least P(Beta(wins + 1, losses + 1) > x), for 0 < x < 1 with its logarithms; log_b = log B. O(1)."""
    if losses == 0.0:
        return -math.expm1((wins + 1.0) * log_x)
    if wins == 0.0:
        return math.exp((losses + 1.0) * log_y)
    slope = losses / (1.0 - x) - wins / x
    if slope <= 0.0:
        return 1.0
    return min(1.0, math.exp(wins * log_x + losses * log_y - log_b) / slope)


@kernel
def tail_draw(rng, wins, losses, x, log_x, log_y):
    """A value beyond x with probability P(Beta > x) / `tail_bound`, by the law given that it is beyond; else -1.

    Only where the bound is below 1. Changes `rng`. O(1), for most values without a logarithm.
    """
    if losses == 0.0:
        if wins * (1.0 - x) > 1.0:
            a = wins + 1.0
            return math.exp(math.log1p(math.expm1(a * log_x) * next_uniform(rng)) / a)
        while True:
            # The density rises to the right end: y^wins of what it is there, and no less than the line.
            y = x + (1.0 - x) * next_uniform(rng)
            if wins == 0.0:
                return y
            u = next_uniform(rng)
            if u < 1.0 - wins * (1.0 - y) or u < math.exp(wins * math.log(y)):
                return y
    if wins == 0.0:
        return -math.expm1(log_y - next_exponential(rng) / (losses + 1.0))
    step = next_exponential(rng) / (losses / (1.0 - x) - wins / x)
    y = x + step
    up, down = step / x, step / (1.0 - x)
    if y >= 1.0 or down >= 1.0:
        return -1.0
    # By how much the logarithm of the density lies below its tangent at x, in two parts, and a bound on that.
    e = next_exponential(rng)
    if e > 0.5 * (wins * up * up + losses * down * down / (1.0 - down)):
        return y
    return y if e > wins * (up - math.log1p(up)) - losses * (down + math.log1p(-down)) else -1.0


@kernel
def draw_below(rng, wins, losses, x):
    """A draw from Beta(wins + 1, losses + 1) given that it is at most x. Expected O(1 / P(Beta <= x))."""
    while True:
        y = next_beta(rng, wins + 1.0, losses + 1.0)
        if y <= x:
            return y
