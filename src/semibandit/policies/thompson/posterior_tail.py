"""The upper tail of a Beta posterior, by a bound that is tight far out and a draw that thins by what it is too large.

For s successes and f failures the density is proportional to x^s (1 - x)^f, whose logarithm is concave. It lies below
the exponential that touches it at any place z, and beyond the mode that falls: with slope -h, h = f / (1 - z) - s / z,
the tail beyond x <= z is at most density(z) exp(h (z - x)) / h. A draw from that exponential beyond x, kept with the
ratio of the two curves, is a draw from the tail. z is chosen as is best for the normal law with the same curvature at x
(Robert 1995). With s = 0 or f = 0 the tail has a closed form and nothing is thinned. Logarithms are taken only where
bounds on them do not decide.
"""

from __future__ import annotations

import math

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.random import next_beta, next_exponential, next_uniform


@inline_kernel
def touching(wins, losses, x):
    """Where the exponential that bounds the tail beyond x touches the density; x itself up to the mode. O(1)."""
    if wins == 0.0 or losses == 0.0:
        return x
    rest = 1.0 - x
    slope = losses / rest - wins / x
    if slope <= 0.0:
        return x
    curve = losses / (rest * rest) + wins / (x * x)
    return x + min(2.0 / (slope + math.sqrt(slope * slope + 4.0 * curve)), 0.9 * rest)


@inline_kernel
def tail_bound(wins, losses, log_b, x, log_x, log_y, touch):
    """At least P(Beta(wins + 1, losses + 1) > x), for 0 < x < 1 with its logarithms; log_b = log B, `touch` as
    `touching` says, or any other place from x on. O(1)."""
    if losses == 0.0:
        return -math.expm1((wins + 1.0) * log_x)
    if wins == 0.0:
        return math.exp((losses + 1.0) * log_y)
    slope = losses / (1.0 - touch) - wins / touch
    if slope <= 0.0:
        return 1.0
    ahead = touch - x
    log_x += math.log1p(ahead / x)
    log_y += math.log1p(-ahead / (1.0 - x))
    return min(1.0, math.exp(wins * log_x + losses * log_y - log_b + slope * ahead) / slope)


@inline_kernel
def tail_draw(rng, wins, losses, x, log_x, log_y, touch):
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
    rest = 1.0 - touch
    y = x + next_exponential(rng) / (losses / rest - wins / touch)
    up, down = (y - touch) / touch, (y - touch) / rest
    if y >= 1.0 or down >= 1.0:
        return -1.0
    # By how much the logarithm of the density lies below its tangent, in two parts, and a bound on that.
    e = next_exponential(rng)
    if 2.0 * e > wins * up * up / (1.0 + min(up, 0.0)) + losses * down * down / (1.0 - max(down, 0.0)):
        return y
    return y if e > wins * (up - math.log1p(up)) - losses * (down + math.log1p(-down)) else -1.0


@kernel
def draw_below(rng, wins, losses, x):
    """A draw from Beta(wins + 1, losses + 1) given that it is at most x. Expected O(1 / P(Beta <= x))."""
    while True:
        y = next_beta(rng, wins + 1.0, losses + 1.0)
        if y <= x:
            return y
