"""The upper tail of a Beta posterior, by a bound that is tight far out and a draw that thins by what it is too large.

For s successes and f failures the density over v = log(1 - x) is proportional to x^s (1 - x)^(f + 1), and its logarithm
is concave in v. It lies below the exponential that touches it at any place z; beyond the mode that falls towards larger
values, with slope q = f + 1 - s (1 - z) / z, and the tail beyond x <= z is at most
density(z) ((1 - x) / (1 - z))^q / q.
A draw from that exponential beyond x, kept with the ratio of the two curves, is a draw from the tail. z is chosen as is
best for the normal law with the same slope and curvature at x (Robert 1995). With s = 0 the bound is the tail itself;
with f = 0 there is a closed form. Logarithms are taken only where bounds on them do not decide.
"""

from __future__ import annotations

import math

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.logarithm import log_of
from semibandit.compiled.random import next_beta, next_exponential, next_uniform


@inline_kernel
def touching(wins, losses, x, log_y):
    """Where the exponential that bounds the tail beyond x touches the density, and by how much log(1 - x) lies above
    that of this place. Two zeros where there is no such bound: up to the mode, and without failures. O(1)."""
    slope = losses + 1.0 - wins * (1.0 - x) / x
    if losses == 0.0 or slope <= 0.0:
        return 0.0, 0.0
    ahead = 2.0 / (slope + math.sqrt(slope * slope + 4.0 * wins * (1.0 - x) / (x * x)))
    return 1.0 - math.exp(log_y - ahead), ahead


@inline_kernel
def tail_slope(wins, losses, touch):
    """How fast the exponential falls that touches the density there. O(1)."""
    return losses + 1.0 - wins * (1.0 - touch) / touch


@inline_kernel
def tail_bound(wins, losses, log_b, log_x, log_y, touch, ahead):
    """At least P(Beta(wins + 1, losses + 1) > x), for 0 < x < 1 with its logarithms; log_b = log B, the rest as
    `touching` says. O(1)."""
    if losses == 0.0:
        return -math.expm1((wins + 1.0) * log_x)
    if touch == 0.0:
        return 1.0
    slope = tail_slope(wins, losses, touch)
    log_f = wins * log_of(touch) + (losses + 1.0) * (log_y - ahead) - log_b
    return min(1.0, math.exp(log_f + slope * ahead) / slope)


@inline_kernel
def exponent_of(bound):
    """-log(1 - bound), for 0 <= bound < 1, to rounding. O(1)."""
    # What rounding 1 - bound takes from the logarithm is put back: Kahan's method.
    rest = 1.0 - bound
    return -log_of(rest) * (bound / (1.0 - rest)) if rest < 1.0 else bound


@inline_kernel
def bend(a):
    """log((1 - e^-a) / a), for a > 0. O(1)."""
    if a < 0.25:
        z = a * a
        return (
            z
            * (
                1.0 / 24.0
                - z * (1.0 / 2880.0 - z * (1.0 / 181440.0 - z * (1.0 / 9676800.0 - z * (1.0 / 479001600.0))))
            )
            - 0.5 * a
        )
    return math.log(-math.expm1(-a) / a)


@inline_kernel
def tail_guess(wins, losses, log_b, x, log_x, log_y):
    """About P(Beta(wins + 1, losses + 1) > x), for 0 < x < 1 with its logarithms; log_b = log B. O(1).

    The density over v = log(1 - x), times what makes it the tail of a normal law of the same slope and curvature
    (Sampford 1953).
    """
    if losses == 0.0:
        return -math.expm1((wins + 1.0) * log_x)
    odds = (1.0 - x) / x
    slope = losses + 1.0 - wins * odds
    over = 3.0 * slope + math.sqrt(slope * slope + 8.0 * wins * odds / x)
    if over <= 0.0:
        return 1.0
    return min(1.0, 4.0 * math.exp(wins * log_x + (losses + 1.0) * log_y - log_b) / over)


@inline_kernel
def stays(rng, wins, x, log_y, touch, ahead, step):
    """Whether a draw so far beyond x is kept. Changes `rng`. O(1), for most without a logarithm or an exponential."""
    # By how much the logarithm of the density lies below its tangent: at most what the largest curvature between makes.
    e = next_exponential(rng)
    far = ahead - step
    if 2.0 * e * x * x > wins * (1.0 - x) * far * far:
        return True
    y = 1.0 - math.exp(log_y - step)
    low = min(y, touch)
    if 2.0 * e * low * low > wins * (1.0 - low) * far * far:
        return True
    return e > wins * (math.log(touch / y) - (1.0 - touch) / touch * far)


@inline_kernel
def tail_beyond(rng, wins, x, log_x, log_y, touch, ahead, stride):
    """How far beyond log(1 - x) a value lies, with probability P(Beta > x) / `tail_bound` and by the law given that it
    is beyond; else -1. `stride`: 1 / `tail_slope`, or -1 where there are no failures.

    Only where the bound is below 1. Changes `rng`. O(1), for most values without a logarithm or an exponential.
    """
    if stride > 0.0:
        step = next_exponential(rng) * stride
        return step if stays(rng, wins, x, log_y, touch, ahead, step) else -1.0
    if wins * (1.0 - x) > 1.0:
        a = wins + 1.0
        y = math.exp(math.log1p(math.expm1(a * log_x) * next_uniform(rng)) / a)
        return max(0.0, log_y - math.log1p(-min(y, 1.0 - 2.0**-53)))
    while True:
        # The density over x rises to the right end: y^wins of what it is there, and no less than the line.
        step = next_exponential(rng)
        u = next_uniform(rng)
        if u < 1.0 - wins * (1.0 - x):
            return step
        y = 1.0 - math.exp(log_y - step)
        if u < 1.0 - wins * (1.0 - y) or u < math.exp(wins * math.log(y)):
            return step


@inline_kernel
def tail_draw(rng, wins, losses, x, log_x, log_y, touch, ahead):
    """`tail_beyond` as a value, or -1. Changes `rng`. O(1)."""
    stride = 1.0 / tail_slope(wins, losses, touch) if losses > 0.0 else -1.0
    step = tail_beyond(rng, wins, x, log_x, log_y, touch, ahead, stride)
    return 1.0 - math.exp(log_y - step) if step >= 0.0 else -1.0


@kernel
def draw_below(rng, wins, losses, x):
    """A draw from Beta(wins + 1, losses + 1) given that it is at most x. Expected O(1 / P(Beta <= x))."""
    while True:
        y = next_beta(rng, wins + 1.0, losses + 1.0)
        if y <= x:
            return y
