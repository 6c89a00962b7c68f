"""The largest posterior sample of each class, where a base has no more than one arm of each: a partition into singles.

As in `staged_points` a Poisson process tells which arms of cold groups are candidates beyond the level of their class,
class after class: groups of a class stand side by side. How far beyond a candidate lies is drawn from what is read in
passing, without a look at the group. Of a group that may have many candidates the same number tells how far beyond the
farthest one lies, as the largest of n uniform numbers can be drawn without the others. Whether a candidate is kept or
thinned is asked from the largest of a class down until one is kept, and which arm of the group it is in the end:
neither changes the law of the largest. A class without any goes on by stages, and nothing of it is known then.
"""

from __future__ import annotations

import math

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.memory import prefetch
from semibandit.compiled.random import next_beta, next_exponential, next_uniform
from semibandit.policies.thompson.posterior_groups import ask_for
from semibandit.policies.thompson.posterior_layout import (
    AHEAD,
    FIRST_CHUNK,
    G_LOSSES,
    G_WINS,
    LOG_X0,
    LOG_Y0,
    NEXT,
    SIZE,
    START,
    TOUCH,
    X0,
    end_of_chunk,
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
from semibandit.policies.thompson.staged_process import MANY, SCRATCH, find_in_block, sum_block


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
def _first_of_many(g, points, rng, c, k, at):
    """The largest sample of cold group k beyond its level, if none that was kept is larger; `at`: where the
    process has its first point in the group. Expected O(1).

    A sample is known by how far beyond the level it lies, in log(1 - x). An arm has one with probability 1 - e^-sigma,
    so of n arms the j-th farthest has survival 1 - e^-s, where s is a sum of exponentials over n, n - 1, .., if s lies
    below sigma.
    """
    size = g.info[k, SIZE]
    wins = float(g.info[k, G_WINS])
    x, log_y, best = g.level[c, X0], g.level[c, LOG_Y0], points.value[c]
    sigma, touch, ahead = g.sigma[k], g.const[k, TOUCH], g.const[k, AHEAD]
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
def _keep_sure(g, points, c, k, part):
    """Let the farthest candidate of group k, which has no failures, be the largest of class c if it is; `part`: where
    the process has its first point in the group, by its rate. O(1).

    All candidates of such groups are kept. Of n arms with s successes the farthest has 1 - x = 1 - e^-z with z an
    exponential number over n (s + 1), and the rate is -log(x0) n (s + 1): of such groups of one class the farthest
    candidate is that of the smallest part.
    """
    step = g.level[c, LOG_Y0] - math.log(-math.expm1(part * g.level[c, LOG_X0]))
    if step > points.value[c]:
        points.value[c] = max(0.0, step)
        points.arm[c] = k


@inline_kernel
def _ask_for_class(g, c):
    """Ask for what is read in passing of the first groups of class c. O(1)."""
    k = g.ids[c, FIRST_CHUNK]
    if k >= 0:
        for i in range(k, end_of_chunk(g, c, k), 8):
            prefetch(g.rate, i)
            prefetch(g.stride, i)


@inline_kernel
def _look_at_class(g, points, rng, c, left, n):
    """What class c has beyond its level: the largest that is known to be kept, at ``value[c]``, and candidates that
    were not asked of yet, from place n on. Returns how far ahead the process is, and the next place. Expected
    O(groups of the class / 2^6 + hot arms + candidates)."""
    tried = _first_of_hot(g, points, rng, c)
    ends = points.spare_value[:SCRATCH]
    sure, part, noted = -1, 1.0, n
    k = g.ids[c, FIRST_CHUNK]
    while k >= 0:
        total = sum_block(g, ends, k, (end_of_chunk(g, c, k) - k + 7) & ~7)
        last, before = -1, 0.0
        while left < total:
            i = find_in_block(ends, left)
            one, at = k + i, left - (ends[i - 1] if i > 0 else 0.0)
            if g.stride[one] == 0.0:
                tried += 1
                if at < part * g.rate[one]:
                    sure, part = one, at / g.rate[one]
                left = ends[i]
            elif g.rate[one] >= MANY:
                tried += 1
                _first_of_many(g, points, rng, c, one, at)
                left = ends[i]
            else:
                # Another point of the same arm says nothing.
                if i != last or int(at / g.sigma[one]) != int(before / g.sigma[one]):
                    points.value[n] = next_exponential(rng) * g.stride[one]
                    points.arm[n] = one
                    n += 1
                last, before = i, at
            left += next_exponential(rng)
        left -= total
        k = g.after[k >> g.chunk]
    if sure >= 0:
        _keep_sure(g, points, c, sure, part)
    points.tally[c, TRIED] = tried + n - noted
    points.tally[c, PICKED] = 0
    points.tally[c, BELOW] = 0
    points.tally[c, BEYOND] = 0
    return left, n


@inline_kernel
def _largest(points, begin, end):
    """The place of the largest of the candidates begin .. end - 1. O(their number)."""
    at = begin
    for i in range(begin + 1, end):
        at = i if points.value[i] > points.value[at] else at
    return at


@inline_kernel
def _keep_largest(g, points, rng, c, begin, end, at):
    """Ask of the candidates begin .. end - 1 of class c, from the largest, at place `at`, down, until one is kept or
    none is left. Expected O(their number)."""
    while points.value[at] > points.value[c]:
        k, step = points.arm[at], points.value[at]
        x, log_y = g.level[c, X0], g.level[c, LOG_Y0]
        if stays(rng, float(g.info[k, G_WINS]), x, log_y, g.const[k, TOUCH], g.const[k, AHEAD], step):
            points.value[c] = step
            points.arm[c] = k
            return
        points.value[at] = -1.0
        at = _largest(points, begin, end)


@kernel
def draw_firsts(g, points, rng):
    """Begin a round: of each class c the largest sample beyond the level, ``value[c]`` beyond it (-1 if there is none).
    It is that at place ``arm[c]`` among the members.

    Expected O(classes + hot arms + groups with candidates), and a step for 64 groups."""
    classes = g.population.shape[0]
    points.meta[ROUND] += 1
    points.meta[MARKED] = 0
    points.meta[LATE] = 0
    points.meta[FIRST] = classes
    # Until the end ``arm[c]`` is the group of the largest that was kept, or -1 - place of a hot arm. Candidates of
    # class c that were not asked of yet are those up to ``count[SCRATCH + c]``, the largest is at ``spare_arm[c]``.
    n = classes
    left = next_exponential(rng)
    for c in range(classes):
        begin = n
        _ask_for_class(g, min(c + 2, classes - 1))
        left, n = _look_at_class(g, points, rng, c, left, n)
        points.count[SCRATCH + c] = n
        if n > begin:
            at = _largest(points, begin, n)
            points.spare_arm[c] = at
            ask_for(g, points.arm[at])
        elif points.value[c] >= 0.0:
            prefetch(g.info, points.arm[c])
    begin = classes
    for c in range(classes):
        end = points.count[SCRATCH + c]
        if end > begin:
            _keep_largest(g, points, rng, c, begin, end, points.spare_arm[c])
        begin = end
        k = points.arm[c]
        if points.value[c] >= 0.0:
            points.arm[c] = -1 - k if k < 0 else g.info[k, START] + int(g.info[k, SIZE] * next_uniform(rng))
            prefetch(g.members, points.arm[c])
