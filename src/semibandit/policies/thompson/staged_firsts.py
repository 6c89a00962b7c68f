"""The largest posterior sample of each class, where a base has no more than one arm of each: a partition into singles.

As in `staged_points` a Poisson process tells which arms of cold groups are candidates beyond the level of their class.
Here it runs from the largest values down. An arm whose bound has the exponent sigma has points at rate sigma over
0 < t < 1, and its first one tells how far beyond the level its candidate lies: t = 1 is the level itself. So the points
of all groups of a class come one after the other at the sum of their rates, and the group of each is drawn by its rate.
No point after t lies farther beyond the level than log(1 / t) times the widest stride, so that two or three are drawn,
whatever the level is, and the rest never; nor does one of eight groups than by the widest stride of these, so that not
for every point a group is looked up. Whether a candidate is kept or thinned is asked as it comes, and which arm of
the group it is in the end. A class without any goes on by stages, and nothing of it is known then.
"""

from __future__ import annotations

import math

from semibandit.compiled.eights import place_in_eight
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.logarithm import log_of
from semibandit.compiled.memory import prefetch
from semibandit.compiled.random import next_beta, next_exponential, next_uniform
from semibandit.policies.thompson.posterior_groups import sum_of_eight
from semibandit.policies.thompson.posterior_layout import (
    AHEAD,
    BEND,
    EIGHT,
    FIRST_CHUNK,
    G_LOSSES,
    G_WINS,
    LOG_X0,
    LOG_Y0,
    NEXT,
    PREV,
    SHORT,
    SIGMA,
    SIZE,
    START,
    STRIDE,
    SURE,
    TOUCH,
    X0,
)
from semibandit.policies.thompson.posterior_tail import bend, stays
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
from semibandit.policies.thompson.staged_process import SCRATCH

# Classes go together in lots of this many: what is far away is asked for, and waited for together.
_LOT = SCRATCH // 8
# Where in the scratch a lot keeps, by class: where its process stands, the sum of its rates and its widest stride; by
# point: its t, and log(1 / t).
_AT, _TOTAL, _WIDEST, _T, _FAR = 0, _LOT, 2 * _LOT, 3 * _LOT, 4 * _LOT
# Of `tally`, while firsts are drawn: candidates of several groups of the class were thinned.
_SEVERAL = -1
# A number that was masked by this is known by the compiler not to be negative, so that it need not look.
_NOT_NEGATIVE = (1 << 48) - 1
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
def _thinned(g, points, k):
    """How many candidates of cold group k were thinned in this round. O(1)."""
    note = -2 - g.info[k, PREV]
    return note & _COUNT if note >> _COUNT_BITS == points.meta[ROUND] else 0


@inline_kernel
def _weigh(g, points, rng, c, k, t, far):
    """Let the candidate at t of cold group k be the largest of class c, if it is and is kept; `far`: log(1 / t).
    Expected O(1)."""
    best = points.value[c]
    stride = g.const[k, STRIDE]
    if far * abs(stride) <= best:
        return
    if stride < 0.0:
        # Without failures: a sample of an arm with s successes is e^-z with z an exponential number over s + 1, and
        # sigma is -log(x0) (s + 1).
        step = g.level[c, LOG_Y0] - math.log(-math.expm1(t * g.level[c, LOG_X0]))
        if step > best:
            points.value[c] = max(0.0, step)
            points.arm[c] = k
            prefetch(g.info, k)
        return
    # log((1 - e^-sigma) / (1 - e^-(sigma t))): by how many strides it lies beyond the level.
    step = stride * (far + (g.const[k, BEND] - bend(g.const[k, SIGMA] * t)))
    if step <= best:
        return
    out = 0
    thinned = points.tally[c, BEYOND]
    if thinned == _SEVERAL or thinned == 1 + k:
        out = _thinned(g, points, k)
        if out > 0 and next_uniform(rng) * g.info[k, SIZE] < out:
            # A later point of an arm whose candidate was thinned says nothing.
            return
    x, log_y = g.level[c, X0], g.level[c, LOG_Y0]
    if stays(rng, g.const[k, SURE], x, log_y, g.const[k, TOUCH], g.const[k, AHEAD], step):
        points.value[c] = step
        points.arm[c] = k
        prefetch(g.info, k)
    else:
        points.tally[c, BEYOND] = 1 + k if thinned == 0 or thinned == 1 + k else _SEVERAL
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
def _eight_at(g, k, at):
    """The first of the eight groups in which `at` lies, of the rates of a class end to end, and where it lies from
    there; `k`: the first number of the class. O(groups / 2^3)."""
    last = 0
    if g.chunk == SHORT:
        while True:
            first = (k >> EIGHT) & _NOT_NEGATIVE
            which, left = place_in_eight(g.eight, first, at)
            if which < 8:
                return (first + which) << EIGHT, left
            last = first + 7 if left < at else last
            at = left
            k = g.after[k >> SHORT]
            if k < 0:
                break
    else:
        while k >= 0:
            for j in range(k >> EIGHT, (k >> EIGHT) + (1 << (g.chunk - EIGHT))):
                if at < g.eight[j]:
                    return j << EIGHT, at
                last = j if g.eight[j] > 0.0 else last
                at -= g.eight[j]
            k = g.after[k >> g.chunk]
    # Rounding: the last that has any.
    while g.eight[last] == 0.0:
        last -= 1
    return last << EIGHT, g.eight[last]


@inline_kernel
def _group_at(g, k, at):
    """The group of the eight from k on in whose rate `at` lies, of their rates end to end. O(1)."""
    which, _ = place_in_eight(g.rate, k, at)
    # Rounding: the last that has any.
    which = min(which, 7)
    while g.rate[k + which] == 0.0:
        which -= 1
    return k + which


@inline_kernel
def _rates_of(g, k):
    """The sum of the rates of a class whose first number is k, and the widest stride. O(groups / 2^3)."""
    total, widest = 0.0, 0.0
    eights = 1 << (g.chunk - EIGHT)
    while k >= 0:
        first = (k >> EIGHT) & _NOT_NEGATIVE
        if g.chunk == SHORT:
            total += sum_of_eight(g.eight, first)
            for j in range(8):
                widest = g.widest[first + j] if g.widest[first + j] > widest else widest
        else:
            for j in range(first, first + eights):
                total += g.eight[j]
                widest = max(widest, g.widest[j])
        k = g.after[k >> g.chunk]
    return total, widest


@inline_kernel
def _run_lot(g, points, rng, begin, n):
    """Let the processes of a lot of classes run until no later point can be the largest of its class; the i-th of the n
    that have a point is that of class begin + ``live[i]``. Expected O(n)."""
    scratch, live, todo = points.spare_value, points.count, points.spare_arm
    rest = points.meta[FIRST]
    while n > 0:
        for i in range(n):
            at = live[i] & _NOT_NEGATIVE
            scratch[_T + i] = scratch[_AT + at] / scratch[_TOTAL + at]
        for i in range(n):
            scratch[_FAR + i] = -log_of(scratch[_T + i])
        m = 0
        for i in range(n):
            at, far, t = live[i] & _NOT_NEGATIVE, scratch[_FAR + i], scratch[_T + i]
            live[m] = at
            scratch[_FAR + m] = far
            scratch[_T + m] = t
            m += 1 if far * scratch[_WIDEST + at] > points.value[begin + at] else 0
        n = m
        m = 0
        for i in range(n):
            at = live[i] & _NOT_NEGATIVE
            k, left = _eight_at(g, g.ids[begin + at, FIRST_CHUNK], scratch[_TOTAL + at] * next_uniform(rng))
            prefetch(g.rate, k)
            far = scratch[_FAR + i]
            todo[m] = at
            todo[_LOT + m] = k
            points.value[rest + m] = left
            scratch[_FAR + m] = far
            scratch[_T + m] = scratch[_T + i]
            m += 1 if far * g.widest[k >> EIGHT] > points.value[begin + at] else 0
        for i in range(m):
            k = _group_at(g, todo[_LOT + i] & _NOT_NEGATIVE, points.value[rest + i])
            todo[_LOT + i] = k
            prefetch(g.const, k)
        for i in range(m):
            c, k = (begin + todo[i]) & _NOT_NEGATIVE, todo[_LOT + i] & _NOT_NEGATIVE
            _weigh(g, points, rng, c, k, scratch[_T + i], scratch[_FAR + i])
        m = 0
        for i in range(n):
            at = live[i] & _NOT_NEGATIVE
            scratch[_AT + at] += next_exponential(rng)
            live[m] = at
            m += 1 if scratch[_AT + at] < scratch[_TOTAL + at] else 0
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
    scratch, live = points.spare_value, points.count
    # Until the end ``arm[c]`` is the group of the largest that was kept, or -1 - place of a hot arm.
    begin = 0
    while begin < classes:
        end = min(begin + _LOT, classes)
        n = 0
        for c in range(begin, end):
            _ask_for_class(g, min(c + 4, classes - 1))
            tried = float(_first_of_hot(g, points, rng, c))
            total, widest = _rates_of(g, g.ids[c, FIRST_CHUNK])
            at = next_exponential(rng)
            scratch[_AT + c - begin] = at
            scratch[_TOTAL + c - begin] = total
            scratch[_WIDEST + c - begin] = widest
            live[n] = c - begin
            n += 1 if at < total else 0
            points.tally[c, TRIED] = int(tried + total)
            points.tally[c, PICKED] = 0
            points.tally[c, BELOW] = 0
            # Which group had candidates that were thinned, and 1; 0 for none.
            points.tally[c, BEYOND] = 0
        _run_lot(g, points, rng, begin, n)
        begin = end
    for c in range(classes):
        k = points.arm[c]
        if points.value[c] >= 0.0:
            points.arm[c] = -1 - k if k < 0 else g.info[k, START] + int(g.info[k, SIZE] * next_uniform(rng))
            prefetch(g.members, points.arm[c])
