"""The largest posterior sample of each class, where a base has no more than one arm of each: a partition into singles.

As in `staged_points` a Poisson process tells which arms of cold groups are candidates beyond the level of their class.
Here it runs from the largest values down. An arm whose bound has the exponent sigma has points at rate sigma over
0 < t < 1, and its first one tells how far beyond the level its candidate lies: t = 1 is the level itself. So the points
of all groups come one after the other at the sum of their rates, and the group of each is drawn by its rate. No point
after t lies farther beyond the level than log(1 / t) times the widest stride, so that two or three are drawn, whatever
the level is, and the rest never. Whether a candidate is kept or thinned is asked as it comes, and which arm of
the group it is in the end. A class without any goes on by stages, and nothing of it is known then.
"""

from __future__ import annotations

import math

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.memory import prefetch
from semibandit.compiled.random import next_beta, next_exponential, next_uniform
from semibandit.policies.thompson.posterior_groups import ask_for
from semibandit.policies.thompson.posterior_layout import (
    AHEAD,
    EIGHT,
    FIRST_CHUNK,
    G_LOSSES,
    G_WINS,
    LOG_X0,
    LOG_Y0,
    NEXT,
    PREV,
    SIGMA,
    SIZE,
    START,
    TOUCH,
    X0,
)
from semibandit.policies.thompson.posterior_tail import stays
from semibandit.policies.thompson.staged_points import (
    BELOW,
    BEYOND,
    FIRST,
    LATE,
    MARKED,
    PICKED,
    ROUND,
    TRIED,
    depth_of,
    level_depth,
)
from semibandit.policies.thompson.staged_process import BLOCK

# Chunks of groups go together in lots of this many: what is far away is asked for, and waited for together.
_LOT = BLOCK
# PREV of a cold group, which is in no list: -2 - (round << 32 | candidates that were thinned in it).
_COUNT_BITS, _COUNT = 32, (1 << 32) - 1


@inline_kernel
def _first_of_hot(g, points, rng, c):
    """Draw the arms of the hot groups of class c; the largest beyond the level. How many. O(their number)."""
    points.value[c] = -1.0
    k = g.head[c]
    if k < 0:
        return 0
    x = g.level[c, X0]
    best, tried = -1.0, 0
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
        points.value[c] = max(0.0, depth_of(best) - level_depth(g, c))
    return tried


@inline_kernel
def _bend(a):
    """log((1 - e^-a) / a), for 0 < a < 1/4. O(1)."""
    z = a * a
    return (
        z * (1.0 / 24.0 - z * (1.0 / 2880.0 - z * (1.0 / 181440.0 - z * (1.0 / 9676800.0 - z / 479001600.0))))
        - 0.5 * a
    )


@inline_kernel
def _over(sigma, t, far):
    """log((1 - e^-sigma) / (1 - e^-(sigma t))), where `far` is log(1 / t): by how many strides a candidate lies beyond
    the level. O(1)."""
    if sigma < 0.25:
        return far + (_bend(sigma) - _bend(sigma * t))
    return math.log(math.expm1(-sigma) / math.expm1(-sigma * t))


@inline_kernel
def _thinned(g, points, k):
    """How many candidates of cold group k were thinned in this round. O(1)."""
    note = -2 - g.info[k, PREV]
    return note & _COUNT if note >> _COUNT_BITS == points.meta[ROUND] else 0


@inline_kernel
def _weigh(g, points, rng, c, k, t, far):
    """Let the candidate at t of cold group k be the largest of class c, if it is and is kept; `far`: log(1 / t).
    Expected O(1)."""
    stride, best = g.stride[k], points.value[c]
    if far * abs(stride) <= best:
        return
    if stride < 0.0:
        # Without failures: a sample of an arm with s successes is e^-z with z an exponential number over s + 1, and
        # sigma is -log(x0) (s + 1).
        step = g.level[c, LOG_Y0] - math.log(-math.expm1(t * g.level[c, LOG_X0]))
        if step > best:
            points.value[c] = max(0.0, step)
            points.arm[c] = k
        return
    sigma, size = g.const[k, SIGMA], g.info[k, SIZE]
    step = stride * _over(sigma, t, far)
    if step <= best:
        return
    out = _thinned(g, points, k)
    if out > 0 and next_uniform(rng) * size < out:
        # A later point of an arm whose candidate was thinned says nothing.
        return
    x, log_y = g.level[c, X0], g.level[c, LOG_Y0]
    if stays(rng, float(g.info[k, G_WINS]), x, log_y, g.const[k, TOUCH], g.const[k, AHEAD], step):
        points.value[c] = step
        points.arm[c] = k
    else:
        g.info[k, PREV] = -2 - (points.meta[ROUND] << _COUNT_BITS | out + 1)


@inline_kernel
def _ask_for_class(g, c):
    """Ask for what is read in passing of the first groups of class c. O(1)."""
    k = g.ids[c, FIRST_CHUNK]
    if k >= 0:
        prefetch(g.eight, k >> EIGHT)
        prefetch(g.widest, k >> EIGHT)
        k = g.after[k >> g.chunk]
        if k >= 0:
            prefetch(g.eight, k >> EIGHT)
            prefetch(g.widest, k >> EIGHT)


@inline_kernel
def _point_to(g, points, rng, i, k, total):
    """Draw which eight groups of the chunk from k on have the next point of the i-th entry of a lot, and ask for their
    rates. O(2^chunk / 2^3), without branches, which nobody could foresee."""
    at = total * next_uniform(rng)
    first = k >> EIGHT
    end, before, which = 0.0, 0.0, 0
    for j in range(first, first + (1 << (g.chunk - EIGHT))):
        end += g.eight[j]
        which += 1 if end <= at else 0
        before = end if end <= at else before
    if end <= at:
        # Rounding: the last that has any.
        which -= 1
        while g.eight[first + which] == 0.0:
            which -= 1
    k += which << EIGHT
    points.count[_LOT + i] = k
    points.value[points.meta[FIRST] + i] = at - before
    prefetch(g.rate, k)
    prefetch(g.stride, k)


@inline_kernel
def _group_at(g, k, at):
    """The group of the eight from k on in whose rate `at` lies, of their rates end to end. O(1), as `_point_to`."""
    end, which = 0.0, 0
    for j in range(k, k + 8):
        end += g.rate[j]
        which += 1 if end <= at else 0
    if end <= at:
        which = 7
        while g.rate[k + which] == 0.0:
            which -= 1
    return k + which


@inline_kernel
def _run_lot(g, points, rng, n):
    """Let the process run in the n chunks of a lot until no later point can be the largest of its class. Expected
    O(n)."""
    count, value, chunks = points.count, points.spare_value, points.spare_arm
    first = points.meta[FIRST]
    while n > 0:
        for i in range(n):
            k = _group_at(g, count[_LOT + i], points.value[first + i])
            count[_LOT + i] = k
            ask_for(g, k)
        m = 0
        for i in range(n):
            c, at, total, widest = count[i], value[i], value[_LOT + i], value[2 * _LOT + i]
            _weigh(g, points, rng, c, count[_LOT + i], at / total, value[3 * _LOT + i])
            at += next_exponential(rng)
            if at < total:
                far = math.log(total / at)
                if widest * far > points.value[c]:
                    k = chunks[i]
                    count[m], chunks[m] = c, k
                    value[m], value[_LOT + m], value[2 * _LOT + m], value[3 * _LOT + m] = (
                        at,
                        total,
                        widest,
                        far,
                    )
                    _point_to(g, points, rng, m, k, total)
                    m += 1
        n = m


@kernel
def draw_firsts(g, points, rng):
    """Begin a round: of each class c the largest sample beyond the level, ``value[c]`` beyond it (-1 if there is none).
    It is that at place ``arm[c]`` among the members.

    Expected O(classes + hot arms + groups / 2^3)."""
    classes = g.population.shape[0]
    points.meta[ROUND] += 1
    points.meta[MARKED] = 0
    points.meta[LATE] = 0
    points.meta[FIRST] = classes
    # Until the end ``arm[c]`` is the group of the largest that was kept, or -1 - place of a hot arm.
    # The i-th chunk of a lot, of class ``count[i]``, begins at ``spare_arm[i]``; its process stands at
    # ``spare_value[i]``, and behind these are the sums of the rates, the widest strides and `far`; behind ``count`` the
    # group of the point, or the first of its eight, behind ``value[classes]`` where among these it is.
    n = 0
    eights = 1 << (g.chunk - EIGHT)
    for c in range(classes):
        _ask_for_class(g, min(c + 4, classes - 1))
        tried = float(_first_of_hot(g, points, rng, c))
        k = g.ids[c, FIRST_CHUNK]
        while k >= 0:
            total, widest = 0.0, 0.0
            for j in range(k >> EIGHT, (k >> EIGHT) + eights):
                total += g.eight[j]
                widest = max(widest, g.widest[j])
            tried += total
            at = next_exponential(rng)
            if at < total:
                points.count[n] = c
                points.spare_arm[n] = k
                points.spare_value[n] = at
                points.spare_value[_LOT + n] = total
                points.spare_value[2 * _LOT + n] = widest
                points.spare_value[3 * _LOT + n] = math.log(total / at)
                _point_to(g, points, rng, n, k, total)
                n += 1
                if n == _LOT:
                    _run_lot(g, points, rng, n)
                    n = 0
            k = g.after[k >> g.chunk]
        points.tally[c, TRIED] = int(tried)
        points.tally[c, PICKED] = 0
        points.tally[c, BELOW] = 0
        points.tally[c, BEYOND] = 0
    _run_lot(g, points, rng, n)
    for c in range(classes):
        k = points.arm[c]
        if points.value[c] >= 0.0:
            points.arm[c] = -1 - k if k < 0 else g.info[k, START] + int(g.info[k, SIZE] * next_uniform(rng))
            prefetch(g.members, points.arm[c])
