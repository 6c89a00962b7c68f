"""The largest posterior sample of each class, where a base has no more than one arm of each: a partition into singles.

As in `staged_points` a Poisson process tells which cold groups have candidates beyond the level of their class, and how
far beyond a candidate lies is drawn from what is read in passing, without a look at the group. Of a group that may have
many the same number tells how far beyond the farthest one lies, as the largest of n uniform numbers can be drawn
without the others. Whether a candidate is kept or thinned is asked from the largest of a class down until one is kept,
and which arm of the group it is in the end: neither changes the law of the largest. A class without any goes on by
stages, and nothing of it is known then.
"""

from __future__ import annotations

import math

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.lanes import prefetch
from semibandit.compiled.random import next_beta, next_exponential, next_uniform
from semibandit.policies.thompson.posterior_groups import ask_for, sum_rates
from semibandit.policies.thompson.posterior_layout import (
    AHEAD,
    G_LOSSES,
    G_WINS,
    LOG_X0,
    LOG_Y0,
    NEXT,
    SIGMA,
    SIZE,
    START,
    TOUCH,
    USED,
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
    SCRATCH,
    TRIED,
    depth_of,
    level_depth,
    next_groups,
)

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
        best = max(0.0, depth_of(best) - level_depth(g, c))
    points.value[c] = best
    points.tally[c, TRIED] = tried


@inline_kernel
def _note(points, classes, c, k, step, n):
    """Note a candidate of group k as number n: the largest of a class comes first. The next number. O(1)."""
    points.value[classes + n] = step
    points.arm[classes + n] = k
    first = points.count[SCRATCH + c]
    if first < 0 or step > points.value[classes + first]:
        points.spare_arm[n] = first
        points.count[SCRATCH + c] = n
    else:
        points.spare_arm[n] = points.spare_arm[first]
        points.spare_arm[first] = n
    return n + 1


@inline_kernel
def _note_few(g, points, rng, classes, c, k, at, n):
    """Note the candidates of cold group k, of which there are hardly ever two; `at`: where the process has its first
    point in the group. The next number. Expected O(1)."""
    rate, stride = g.rate[k], g.stride[k]
    i, size = -1, 0
    while True:
        step = next_exponential(rng) * stride
        if step > points.value[c]:
            n = _note(points, classes, c, k, step, n)
        gap = next_exponential(rng)
        # The next arm begins beyond `at`: mostly there is no need to know where.
        if at + gap >= rate:
            return n
        sigma, size = g.const[k, SIGMA], g.info[k, SIZE]
        # Whatever rounding does, no arm twice.
        i = max(i + 1, int(at / sigma))
        at = (i + 1) * sigma + gap
        if i >= size - 1 or at >= rate:
            return n


@inline_kernel
def _first_of_many(g, points, rng, c, k, at):
    """The largest sample of cold group k beyond its level, if none that was kept is larger; `at`: as in `_note_few`.
    Expected O(1).

    A sample is known by how far beyond the level it lies, in log(1 - x). An arm has one with probability 1 - e^-sigma,
    so of n arms the j-th farthest has survival 1 - e^-s, where s is a sum of exponentials over n, n - 1, .., if s lies
    below sigma.
    """
    size = g.info[k, SIZE]
    wins = float(g.info[k, G_WINS])
    x, log_y, best = g.level[c, X0], g.level[c, LOG_Y0], points.value[c]
    sigma, touch, ahead = g.const[k, SIGMA], g.const[k, TOUCH], g.const[k, AHEAD]
    s, left = at / size, float(size)
    bound, stride = -math.expm1(-sigma), g.stride[k]
    while s < sigma:
        step = math.log(bound / -math.expm1(-s)) * stride
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


@inline_kernel
def _note_sure(g, points, c, k, at):
    """Note where the process has its first point in cold group k, which has no failures: all its candidates are kept,
    and of such groups of one class the farthest has the point that lies first by its rate. O(1).

    Of n arms with s successes the farthest has 1 - x = 1 - e^-z with z an exponential number over n (s + 1), and the
    rate is -log(x0) n (s + 1).
    """
    part = at / g.rate[k]
    if part < points.spare_value[SCRATCH + c]:
        points.spare_value[SCRATCH + c] = part
        points.order[c] = k


@inline_kernel
def _keep_sure(g, points, c):
    """Let what `_note_sure` found be the largest of class c if it is. O(1)."""
    part = points.spare_value[SCRATCH + c]
    if part < 1.0:
        step = g.level[c, LOG_Y0] - math.log(-math.expm1(part * g.level[c, LOG_X0]))
        if step > points.value[c]:
            points.value[c] = max(0.0, step)
            points.arm[c] = points.order[c]
    points.order[c] = c


@inline_kernel
def _keep_largest(g, points, rng, classes, c):
    """Ask of the candidates of class c, from the largest down, until one is kept or none is left. Expected O(1)."""
    first = points.count[SCRATCH + c]
    at = first
    while at >= 0 and points.value[classes + at] > points.value[c]:
        k, step = points.arm[classes + at], points.value[classes + at]
        x, log_y = g.level[c, X0], g.level[c, LOG_Y0]
        if stays(rng, float(g.info[k, G_WINS]), x, log_y, g.const[k, TOUCH], g.const[k, AHEAD], step):
            points.value[c] = step
            points.arm[c] = k
            return
        points.value[classes + at] = -1.0
        i = at = first
        while i >= 0:
            if points.value[classes + i] > points.value[classes + at]:
                at = i
            i = points.spare_arm[i]


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
        points.count[SCRATCH + c] = -1
        points.spare_value[SCRATCH + c] = 1.0
        _first_of_hot(g, points, rng, c)
    # Until the end ``arm[c]`` is the group of the largest that was kept, or -1 - place of a hot arm. Candidates that
    # were not asked of yet stand behind; the first of class c is number ``count[SCRATCH + c]``, others follow by
    # `spare_arm`.
    sum_rates(g)
    k = n = 0
    left = next_exponential(rng)
    while k < g.meta[USED]:
        m, k, left = next_groups(g, points, rng, k, left)
        many = 0
        for i in range(m):
            one, at = points.count[i], points.spare_value[i]
            c = g.owner[one]
            points.tally[c, TRIED] += 1
            if g.stride[one] == 0.0:
                _note_sure(g, points, c, one, at)
            elif g.rate[one] < _FEW:
                n = _note_few(g, points, rng, classes, c, one, at, n)
            else:
                ask_for(g, one)
                points.count[many], points.spare_value[many] = one, at
                many += 1
        for i in range(many):
            one = points.count[i]
            _first_of_many(g, points, rng, g.owner[one], one, points.spare_value[i])
    for c in range(classes):
        _keep_sure(g, points, c)
        if points.count[SCRATCH + c] >= 0:
            ask_for(g, points.arm[classes + points.count[SCRATCH + c]])
    for c in range(classes):
        _keep_largest(g, points, rng, classes, c)
        k = points.arm[c]
        if points.value[c] >= 0.0:
            points.arm[c] = -1 - k if k < 0 else g.info[k, START] + int(g.info[k, SIZE] * next_uniform(rng))
            prefetch(g.members, points.arm[c])
