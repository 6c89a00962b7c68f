"""The posterior samples beyond the level of each class, drawn without the others; and those below, stage by stage.

An arm of a cold group exceeds the level x0 of its class with a small probability, so a Poisson process jumps to the
candidates (`posterior_groups`), and `tail_draw` keeps or thins each. Arms of hot groups are drawn one by one; what
falls below the level is forgotten. So after the first stage the sample of every arm is known or is known to be at
most x0, and independent of all the others. A class that needs more goes on to a lower level: its unknown arms are
drawn anew, given that they are at most x0, which is done by drawing until they are.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from semibandit.compiled.handle import Floats1, Ints1, Ints2
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.random import next_beta, next_exponential, next_uniform
from semibandit.policies.thompson.posterior_groups import (
    COLD_BELOW,
    ask_for,
    bound_at,
    sum_rates,
)
from semibandit.policies.thompson.posterior_layout import (
    AHEAD,
    CLASS,
    FIRST_CHUNK,
    G_LOSSES,
    G_WINS,
    GROUP,
    LOG_X0,
    LOG_Y0,
    LOSSES,
    NEXT,
    SIGMA,
    SIZE,
    START,
    TOUCH,
    USED,
    WINS,
    X0,
    end_of_chunk,
)
from semibandit.policies.thompson.posterior_tail import draw_below, tail_beyond, tail_draw
from semibandit.policies.thompson.staged_process import SCRATCH, next_groups

# Columns of `tally`, a row for each class: samples beyond the level, arms picked, samples and groups seen below it, and
# draws that it took to find those beyond.
BEYOND, PICKED, BELOW, TRIED = 0, 1, 2, 3
# Of `meta`: this round, whether the samples of the first stage left their marks, how many there are, and entries of the
# heap behind them.
ROUND, MARKED, FIRST, LATE = 0, 1, 2, 3
# An entry names the arm in its low bits, the class above them.
CLASS_BITS, ARM_BITS = 32, (1 << 32) - 1


class Points(NamedTuple):
    """Samples that are known: ``value[i]`` of ``arm[i]``. The first `FIRST` are sorted, the next `LATE` are a heap. The
    heap has samples as values, the first ones have `depth_of` them.

    An entry of the heap whose arm is -1 - c says that class c is known down to that value only. `order`: classes by
    level, highest first, or each at its own place where none stands in the way of another. `mark`: the last round in
    which an arm was marked as known; those of the first stage are when there is a second. `spare` and `count` are
    scratch for sorting.
    """

    value: Floats1
    arm: Ints1
    spare_value: Floats1
    spare_arm: Ints1
    count: Ints1
    mark: Ints1
    tally: Ints2
    order: Ints1
    meta: Ints1


def new_points(n_arms: int, n_classes: int) -> Points:
    """Nothing known. O(K)."""
    n = n_arms + n_classes + 1 + SCRATCH
    return Points(
        value=np.zeros(n),
        arm=np.zeros(n, dtype=np.int64),
        spare_value=np.zeros(n),
        spare_arm=np.zeros(n, dtype=np.int64),
        count=np.zeros(max(257, n + 2), dtype=np.int64),
        mark=np.zeros(n_arms, dtype=np.int64),
        tally=np.zeros((n_classes, 4), dtype=np.int64),
        order=np.arange(n_classes, dtype=np.int64),
        meta=np.zeros(4, dtype=np.int64),
    )


# The largest double below 1.
_NEARLY_ONE = 1.0 - 2.0**-53


@inline_kernel
def depth_of(y):
    """-log(1 - y): as samples beyond a level are drawn, and ordered as they are. O(1)."""
    return -math.log1p(-min(y, _NEARLY_ONE))


@inline_kernel
def level_depth(g, c):
    """`depth_of` the level of class c. O(1)."""
    return -g.level[c, LOG_Y0] if g.level[c, X0] > 0.0 else 0.0


# -- the heap of what came late ------------------------------------------------------------------------------------


@inline_kernel
def push_late(points, value, arm):
    """Add an entry. O(log entries)."""
    first = points.meta[FIRST]
    at = points.meta[LATE]
    points.meta[LATE] = at + 1
    while at > 0:
        up = (at - 1) >> 1
        if points.value[first + up] >= value:
            break
        points.value[first + at] = points.value[first + up]
        points.arm[first + at] = points.arm[first + up]
        at = up
    points.value[first + at] = value
    points.arm[first + at] = arm


@inline_kernel
def drop_late(points):
    """Take the entry of largest value away. O(log entries)."""
    first = points.meta[FIRST]
    n = points.meta[LATE] - 1
    points.meta[LATE] = n
    value = points.value[first + n]
    arm = points.arm[first + n]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= n:
            break
        if child + 1 < n and points.value[first + child + 1] > points.value[first + child]:
            child += 1
        if points.value[first + child] <= value:
            break
        points.value[first + at] = points.value[first + child]
        points.arm[first + at] = points.arm[first + child]
        at = child
    points.value[first + at] = value
    points.arm[first + at] = arm


# -- stages --------------------------------------------------------------------------------------------------------


@inline_kernel
def _candidates(g, points, rng, k, at, n):
    """The samples of cold group k beyond its level, into `points` from place n on; `at`: the process's first point.
    Returns the next place. Expected O(candidates).

    An entry names a place among the members, not yet the arm.
    """
    c, size, start = g.info[k, CLASS], g.info[k, SIZE], g.info[k, START]
    wins = float(g.info[k, G_WINS])
    x, log_x, log_y = g.level[c, X0], g.level[c, LOG_X0], g.level[c, LOG_Y0]
    sigma, touch, ahead, rate = g.const[k, SIGMA], g.const[k, TOUCH], g.const[k, AHEAD], g.rate[k]
    stride = g.stride[k]
    before, tried, i = n, 0, -1
    while at < rate:
        # Whatever rounding does, no arm twice.
        i = min(max(i + 1, int(at / sigma)), size - 1)
        tried += 1
        step = tail_beyond(rng, wins, x, log_x, log_y, touch, ahead, stride)
        if step >= 0.0:
            points.value[n] = step - log_y
            points.arm[n] = c << CLASS_BITS | (start + i)
            n += 1
        if i == size - 1:
            break
        at = (i + 1) * sigma + next_exponential(rng)
    points.tally[c, TRIED] += tried
    points.tally[c, BEYOND] += n - before
    return n


@kernel
def draw_points(g, points, rng):
    """Begin a round: all samples beyond the levels, unsorted. Expected O(classes + hot arms + candidates), and a step
    for 4,096 groups."""
    points.meta[ROUND] += 1
    points.meta[MARKED] = 0
    points.meta[LATE] = 0
    n = 0
    for c in range(g.population.shape[0]):
        points.tally[c, PICKED] = 0
        points.tally[c, BELOW] = 0
        k = g.head[c]
        x = g.level[c, X0]
        before, tried = n, 0
        while k >= 0:
            tried += g.info[k, SIZE]
            wins, losses = float(g.info[k, G_WINS]), float(g.info[k, G_LOSSES])
            start = g.info[k, START]
            for i in range(start, start + g.info[k, SIZE]):
                y = next_beta(rng, wins + 1.0, losses + 1.0)
                if y > x or x == 0.0:
                    points.value[n] = depth_of(y)
                    points.arm[n] = c << CLASS_BITS | i
                    n += 1
            k = g.info[k, NEXT]
        points.tally[c, BEYOND] = n - before
        points.tally[c, TRIED] = tried
    sum_rates(g)
    k = 0
    left = next_exponential(rng)
    while k < g.meta[USED]:
        m, k, left = next_groups(g, points, rng, k, left)
        # Groups are seldom in a cache: asked for in one go, they are waited for together.
        for i in range(m):
            ask_for(g, points.count[i])
        for i in range(m):
            n = _candidates(g, points, rng, points.count[i], points.spare_value[i], n)
    # Members are seldom in a cache: looked up in one go, they are waited for together.
    for i in range(n):
        at = points.arm[i]
        points.arm[i] = at >> CLASS_BITS << CLASS_BITS | g.members[at & ARM_BITS]
    points.meta[FIRST] = n


@inline_kernel
def mark_points(points, arm, begin, end):
    """Mark the arms of the samples begin .. end - 1 as known, unless that was done. O(end - begin)."""
    if points.meta[MARKED] == 0:
        points.meta[MARKED] = 1
        for i in range(begin, end):
            points.mark[arm[i] & ARM_BITS] = points.meta[ROUND]


@inline_kernel
def _draw_unknown(g, points, rng, k, c, above, x):
    """The samples beyond x of all unknown arms of group k, which are at most `above`, to the heap. O(size)."""
    wins, losses = float(g.info[k, G_WINS]), float(g.info[k, G_LOSSES])
    start = g.info[k, START]
    for i in range(start, start + g.info[k, SIZE]):
        arm = g.members[i]
        if points.mark[arm] != points.meta[ROUND]:
            points.tally[c, BELOW] += 1
            y = draw_below(rng, wins, losses, above)
            if y > x or x == 0.0:
                points.mark[arm] = points.meta[ROUND]
                push_late(points, y, c << CLASS_BITS | arm)


@inline_kernel
def _draw_between(g, points, rng, k, c, above, x, log_x, log_y, bound, touch, ahead, left):
    """The samples between x and `above` of the unknown arms of group k, to the heap. Where the process stands after the
    group, from where it stands before it. Expected O(candidates)."""
    wins, losses = float(g.info[k, G_WINS]), float(g.info[k, G_LOSSES])
    sigma, size, i = -math.log1p(-bound), g.info[k, SIZE], -1
    while left < size * sigma:
        points.tally[c, BELOW] += 1
        i = min(max(i + 1, int(left / sigma)), size - 1)
        arm = g.members[g.info[k, START] + i]
        if points.mark[arm] != points.meta[ROUND]:
            y = tail_draw(rng, wins, losses, x, log_x, log_y, touch, ahead)
            while y > above:
                # Not what is known of the arm: it is drawn once more.
                y = -1.0
                if next_uniform(rng) < bound:
                    y = tail_draw(rng, wins, losses, x, log_x, log_y, touch, ahead)
            if y >= 0.0:
                points.mark[arm] = points.meta[ROUND]
                push_late(points, y, c << CLASS_BITS | arm)
        left = (i + 1) * sigma + next_exponential(rng)
    return max(0.0, left - size * sigma)


@kernel
def draw_stage(g, points, rng, c, above, x):
    """The samples of class c between x and `above`, to the heap, where they are known beyond `above`.

    O(groups of the class + candidates).
    """
    log_x = math.log(x) if x > 0.0 else 0.0
    log_y = math.log1p(-x)
    left = next_exponential(rng)
    first = g.ids[c, FIRST_CHUNK]
    while first >= 0:
        for k in range(first, end_of_chunk(g, c, first)):
            if g.info[k, SIZE] > 0:
                points.tally[c, BELOW] += 1
                bound, touch, ahead = bound_at(g, k, x, log_x, log_y) if x > 0.0 else (1.0, 0.0, 0.0)
                if bound >= COLD_BELOW:
                    _draw_unknown(g, points, rng, k, c, above, x)
                else:
                    left = _draw_between(
                        g, points, rng, k, c, above, x, log_x, log_y, bound, touch, ahead, left
                    )
        first = g.after[first >> g.chunk]
    if x > 0.0:
        push_late(points, x, -1 - c)


@kernel
def draw_listed(g, points, rng, c, above, n):
    """The samples of the arms ``spare_arm[:n]`` of class c that are present and unknown, to the heap. O(n log n).

    All are at most `above`.
    """
    for i in range(n):
        arm = points.spare_arm[i]
        if g.arm[arm, GROUP] >= 0 and points.mark[arm] != points.meta[ROUND]:
            points.tally[c, BELOW] += 1
            points.mark[arm] = points.meta[ROUND]
            y = draw_below(rng, float(g.arm[arm, WINS]), float(g.arm[arm, LOSSES]), above)
            push_late(points, y, c << CLASS_BITS | arm)
