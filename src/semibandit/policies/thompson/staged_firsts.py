"""The largest posterior sample of each class, where a base has no more than one arm of each: a partition into singles.

As in `staged_points` a Poisson process tells which cold groups have candidates beyond the level of their class; where
these may be many, the same number tells how far beyond it the farthest one lies, as the largest of n uniform numbers
can be drawn without the others. Whether a candidate is kept or thinned is asked only where it would be the largest so
far, and which arm of the group it is in the end: neither changes the law of the largest. A class without any goes on by
stages, and nothing of it is known then.
"""

from __future__ import annotations

import math

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.lanes import prefetch
from semibandit.compiled.random import next_beta, next_exponential, next_uniform
from semibandit.policies.thompson.posterior_groups import sum_rates
from semibandit.policies.thompson.posterior_layout import (
    AHEAD,
    CLASS,
    G_LOSSES,
    G_WINS,
    LOG_Y0,
    NEXT,
    SIGMA,
    SIZE,
    START,
    TOUCH,
    USED,
    X0,
)
from semibandit.policies.thompson.posterior_tail import stays, tail_slope, tail_step
from semibandit.policies.thompson.staged_points import (
    BELOW,
    BEYOND,
    FIRST,
    LATE,
    MARKED,
    PICKED,
    ROUND,
    TRIED,
    next_groups,
)

# The largest double below 1.
_NEARLY_ONE = 1.0 - 2.0**-53
# Groups of a smaller rate have one candidate or two.
_FEW = 1.0


@inline_kernel
def _first_of_hot(g, points, rng, c):
    """Draw the arms of the hot groups of class c; the largest beyond the level. O(their number)."""
    x = g.level[c, X0]
    best, tried = -1.0, 0
    k = g.head[2 * c]
    while k >= 0:
        wins, losses = float(g.info[k, G_WINS]), float(g.info[k, G_LOSSES])
        start, size = g.info[k, START], g.info[k, SIZE]
        for i in range(start, start + size):
            y = next_beta(rng, wins + 1.0, losses + 1.0)
            if y > best and (y > x or x == 0.0):
                best = y
                points.arm[c] = -1 - i
        tried += size
        k = g.info[k, NEXT]
    if best >= 0.0:
        log_y = g.level[c, LOG_Y0] if x > 0.0 else 0.0
        best = max(0.0, log_y - math.log1p(-min(best, _NEARLY_ONE)))
    points.value[c] = best
    points.tally[c, TRIED] = tried


@inline_kernel
def _first_of_cold(g, points, rng, k, at):
    """The largest sample of cold group k beyond its level, if none of its class is larger; `at`: where the process has
    its first point in the group. Expected O(1).

    A sample is known by how far beyond the level it lies, in log(1 - x). An arm has one with probability 1 - e^-sigma,
    so of n arms the j-th farthest has survival 1 - e^-s, where s is a sum of exponentials over n, n - 1, .., if s lies
    below sigma.
    """
    c, size = g.info[k, CLASS], g.info[k, SIZE]
    wins, losses = float(g.info[k, G_WINS]), float(g.info[k, G_LOSSES])
    x, log_y, best = g.level[c, X0], g.level[c, LOG_Y0], points.value[c]
    sigma, touch, ahead, rate = g.const[k, SIGMA], g.const[k, TOUCH], g.const[k, AHEAD], g.rate[k]
    points.tally[c, TRIED] += 1
    if losses == 0.0:
        step = log_y - math.log(-math.expm1(-at / (size * (wins + 1.0))))
        if step > best:
            points.value[c] = step
            points.arm[c] = k
    elif rate < _FEW:
        # Hardly ever two: one by one is faster than a logarithm.
        i = -1
        while at < rate:
            step = tail_step(rng, wins, losses, touch)
            if step > best and stays(rng, wins, x, log_y, touch, ahead, step):
                best = points.value[c] = step
                points.arm[c] = k
            # Whatever rounding does, no arm twice.
            i = max(i + 1, int(at / sigma))
            if i >= size - 1:
                break
            at = (i + 1) * sigma + next_exponential(rng)
    else:
        s, left = at / size, float(size)
        bound, slope = -math.expm1(-sigma), tail_slope(wins, losses, touch)
        while s < sigma:
            step = math.log(bound / -math.expm1(-s)) / slope
            if step <= best:
                break
            if stays(rng, wins, x, log_y, touch, ahead, step):
                points.value[c] = step
                points.arm[c] = k
                break
            left -= 1.0
            if left == 0.0:
                break
            s += next_exponential(rng) / left


@kernel
def draw_firsts(g, points, rng):
    """Begin a round: of each class c the largest sample beyond the level, ``value[c]`` beyond it (-1 if there is none).
    It is that at place ``arm[c]`` among the members.

    Expected O(classes + hot arms + groups with candidates), and a step for 4,096 groups."""
    classes = g.population.shape[0]
    points.meta[ROUND] += 1
    points.meta[MARKED] = 0
    points.meta[LATE] = 0
    points.meta[FIRST] = classes
    for c in range(classes):
        points.tally[c, PICKED] = 0
        points.tally[c, BELOW] = 0
        points.tally[c, BEYOND] = 0
        _first_of_hot(g, points, rng, c)
    # Until the end ``arm[c]`` is the group of the largest, or -1 - place of a hot arm.
    sum_rates(g)
    k = 0
    left = next_exponential(rng)
    while k < g.meta[USED]:
        m, k, left = next_groups(g, points, rng, k, left)
        for i in range(m):
            _first_of_cold(g, points, rng, points.count[i], points.spare_value[i])

    for c in range(classes):
        k = points.arm[c]
        if points.value[c] >= 0.0:
            points.arm[c] = -1 - k if k < 0 else g.info[k, START] + int(g.info[k, SIZE] * next_uniform(rng))
            prefetch(g.members, points.arm[c])
