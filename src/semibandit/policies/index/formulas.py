"""The formulas of indices that are not linear in lam, the state of their rounds, and the level of a round."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from semibandit.arms import COUNT, TOTAL
from semibandit.compiled.handle import Bytes1, Floats1, Floats2, Ints1, Ints2, Number, Shorts2, Whole
from semibandit.compiled.jit import inline_kernel
from semibandit.engines.clock import AHEAD, CURRENT, ETA, SCALE, stair_at_least, tick

UCB, CLIPPED, UCB_V, KL = 0, 1, 2, 3

# Of `meta`: what the weights in the records are (0: not yet any, indices at the level, bounds, places of lots), how
# often they were all written; and, where bounds were of no use, for how many rounds they are left aside and for how
# many they were last. Of `now`: the level of the round.
WHAT, WRITTEN, ASIDE, LAST_ASIDE = range(4)
INDICES, BOUNDS, PLACES = 1, 2, 3
LEVEL = 0

_NEWTON = 60


class Lots(NamedTuple):
    """Arms of which the same is known, together (`policies.index.lots`); empty where they are not kept.

    `of`: lot of each arm (-1: none), and its neighbours in the list of the lot. By lot: `value`, `info`. `order`: the
    lots by place, ascending. `spare`: numbers that no lot has. `table`: lots by hash, open addressing.
    """

    of: Shorts2
    value: Floats2
    info: Ints2
    order: Ints1
    spare: Ints1
    table: Ints1
    meta: Ints1
    now: Floats1


class Bounds(NamedTuple):
    """Bounds of indices with deadlines (`policies.index.deadlines`). By arm: `link`, its neighbours in its list,
    `power` and `state`. `listed`: exact arms, in no order. `heads`: the first arm of the list of each power."""

    link: Shorts2
    power: Bytes1
    state: Bytes1
    listed: Ints1
    heads: Ints1
    meta: Ints1


class IndexRounds(NamedTuple):
    """`clock` tells the level (`engines.clock`; for KL its scale is c of c log log t).

    `squares`: sums of squared rewards, for UCB-V only. `waiting`: plays of each arm that wait for feedback, empty as
    long as none ever did. `first`: indices of arms never seen, or empty. `alike`: see `write_indices`. `bounds` and
    `lots` are empty under a staircase.
    """

    kind: Whole
    low: Number
    high: Number
    clock: Floats1
    squares: Floats1
    waiting: Ints1
    first: Floats1
    alike: Ints1
    meta: Ints1
    now: Floats1
    bounds: Bounds
    lots: Lots


@inline_kernel
def kl_upper(p, d):
    """The largest q in [p, 1] with kl(p, q) <= d, for Bernoulli distributions. About six Newton steps.

    kl(p, .) is convex and increases to the right of p, so Newton's method from a point beyond the root decreases to it.
    Two bounds give such a point: Pinsker's, and 1 - q >= exp(-(d + h(p)) / (1 - p)) with the entropy h.
    """
    if p >= 1.0:
        return 1.0
    if d <= 0.0:
        return max(p, 0.0)
    if p <= 0.0:
        return -math.expm1(-d)
    h = -p * math.log(p) - (1.0 - p) * math.log1p(-p)
    q = min(p + math.sqrt(0.5 * d), -math.expm1(-(d + h) / (1.0 - p)))
    for _ in range(_NEWTON):
        if q >= 1.0:
            return 1.0
        gap = -h - p * math.log(q) - (1.0 - p) * math.log1p(-q) - d
        step = gap * q * (1.0 - q) / (q - p) if q > p else 0.0
        if not step > 1e-16:
            break
        q -= step
    return max(q, p)


@inline_kernel
def index_of(own, recs, arm, level):
    """The index of an arm at `level`: lam of CUCB's clock, or the right-hand side of the condition on N kl for KL."""
    seen = recs[arm, COUNT]
    n = seen + own.waiting[arm] if own.waiting.shape[0] else seen
    if n <= 0.0:
        return own.first[arm] if own.first.shape[0] else np.inf
    mean = recs[arm, TOTAL] / seen if seen > 0.0 else own.high
    if own.kind == CLIPPED:
        return min(own.high, mean + level / math.sqrt(n))
    span = own.high - own.low
    if own.kind == UCB_V:
        variance = max(0.0, own.squares[arm] / seen - mean * mean) if seen > 0.0 else 0.25 * span * span
        lam = level / span
        return mean + lam * math.sqrt(2.0 * variance / n) + 3.0 * span * lam * lam / n
    p = min(1.0, max(0.0, (mean - own.low) / span))
    return own.low + span * kl_upper(p, level / n)


@inline_kernel
def exact_level(own, t):
    """The level of round t without any stairs. O(1)."""
    log = math.log(float(t))
    if own.kind != KL:
        return math.sqrt(own.clock[SCALE] * (log + own.clock[AHEAD]))
    return log + own.clock[SCALE] * math.log(max(1.0, log))


@inline_kernel
def level_of_round(own, t):
    """The level of round t. Changes the clock. O(1)."""
    if own.kind != KL:
        return tick(own.clock, t)
    clock = own.clock
    level = exact_level(own, t)
    if level > clock[CURRENT]:
        # Levels are squares of widths, so a stair of levels is two of widths.
        eta = clock[ETA]
        clock[CURRENT] = level if eta <= 0.0 else stair_at_least(level, eta * (2.0 + eta))
    return clock[CURRENT]


@inline_kernel
def know_the_same(own, recs, arm, other):
    """Whether two arms have the same index at any level, because all that it is made of is the same."""
    same = recs[arm, COUNT] == recs[other, COUNT] and recs[arm, TOTAL] == recs[other, TOTAL]
    if same and own.first.shape[0] and recs[arm, COUNT] <= 0.0:
        same = own.first[arm] == own.first[other]
    same = same and (own.squares.shape[0] == 0 or own.squares[arm] == own.squares[other])
    return same and (own.waiting.shape[0] == 0 or own.waiting[arm] == own.waiting[other])
