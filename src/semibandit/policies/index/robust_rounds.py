"""The kernels of `RobustCUCB`: means that outliers do not move much, and a width by the arm's own scale.

The index is ``m + lam s / sqrt(N)`` with a mean m and a scale s that change only when the arm is seen: linear in lam,
so engines follow it under the exact clock as they follow CUCB. Of an arm little is kept, however often it is seen: its
running mean and sum of squares (Welford 1962) if the scale is estimated; the sum of what was not cut off; or the sums
of a few blocks.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from semibandit.arms import ALPHA, BETA, COUNT, TOTAL, FloatArray, IntArray
from semibandit.compiled.handle import Floats1, Floats2, Ints1, Number, Whole, by_handle
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.engines.clock import CURRENT, tick
from semibandit.engines.kernels import engine_touch_many
from semibandit.policies.decisions import room_for
from semibandit.policies.rounds import CompiledRounds, implement_rounds

MEANS = ("empirical", "truncated", "median-of-means")
EMPIRICAL, TRUNCATED, MEDIAN = range(3)

# Columns of `spread`: the running mean, and the sum of squares about it.
RUNNING, SQUARES = 0, 1

# The weight, times the plays that wait, of an arm too new for an index: behind arms never tried, before all others.
_BEING_TRIED = 1e200


class RobustRounds(NamedTuple):
    """`kind`: the place of the mean in `MEANS`. `least`: how many rewards an arm needs to have an index.

    `scale` and `center`: one number for all arms, or one for each; where the scale is estimated (`spread` has rows) it
    is at least `scale`. `level`: of truncation, that of the clock if 0. `sums`: for each arm what was not cut off, in
    terms of the centre, or the sums of its blocks. `waiting`: plays of each arm that wait for feedback, empty as long
    as none ever did. `scratch`: room for one arm's blocks.
    """

    kind: Whole
    least: Whole
    level: Number
    clock: Floats1
    scale: Floats1
    center: Floats1
    spread: Floats2
    sums: Floats2
    waiting: Ints1
    scratch: Floats1


@inline_kernel
def _of(values, arm):
    return values[arm] if values.shape[0] > 1 else values[0]


@kernel
def median_of_blocks(sums, n, scratch):
    """The median of the means of blocks over which n rewards went in turn; of two middle ones their mean. O(B^2)."""
    blocks = sums.shape[0]
    used = min(n, blocks)
    for b in range(used):
        mean = sums[b] / (n // blocks + (1 if b < n % blocks else 0))
        i = b
        while i > 0 and scratch[i - 1] > mean:
            scratch[i] = scratch[i - 1]
            i -= 1
        scratch[i] = mean
    middle = used // 2
    return scratch[middle] if used % 2 else 0.5 * (scratch[middle - 1] + scratch[middle])


@inline_kernel
def truncation_level(own):
    """log(1 / delta) of the rewards that come now: what is given, or where the width 4 s sqrt(L / N) is the index's."""
    if own.level > 0.0:
        return own.level
    lam = own.clock[CURRENT]
    return max(1.0, lam * lam / 16.0)


@inline_kernel
def _count(own, recs, arm, reward):
    """Count one reward of `arm`. O(1)."""
    recs[arm, COUNT] += 1.0
    recs[arm, TOTAL] += reward
    n = recs[arm, COUNT]
    if own.spread.shape[0] > 0:
        off = reward - own.spread[arm, RUNNING]
        own.spread[arm, RUNNING] += off / n
        own.spread[arm, SQUARES] += off * (reward - own.spread[arm, RUNNING])
    if own.kind == TRUNCATED:
        off = reward - _of(own.center, arm)
        bound = _of(own.scale, arm)
        if off * off * truncation_level(own) <= bound * bound * n:
            own.sums[arm, 0] += off
    elif own.kind == MEDIAN:
        own.sums[arm, (np.int64(n) - 1) % own.sums.shape[1]] += reward


@inline_kernel
def _write(own, recs, arm):
    """Write the index of `arm`, as it follows from what is known and what waits. O(1), O(B^2) for B blocks."""
    seen = recs[arm, COUNT]
    n = seen + own.waiting[arm] if own.waiting.shape[0] else seen
    recs[arm, BETA] = 0.0
    if n < own.least:
        recs[arm, ALPHA] = np.inf
    elif seen < own.least:
        recs[arm, ALPHA] = _BEING_TRIED / n
    else:
        if own.kind == EMPIRICAL:
            mean = recs[arm, TOTAL] / seen
        elif own.kind == TRUNCATED:
            mean = _of(own.center, arm) + own.sums[arm, 0] / seen
        else:
            mean = median_of_blocks(own.sums[arm], np.int64(seen), own.scratch)
        scale = _of(own.scale, arm)
        if own.spread.shape[0] > 0:
            scale = max(scale, math.sqrt(own.spread[arm, SQUARES] / (seen - 1.0)))
        recs[arm, ALPHA] = mean
        recs[arm, BETA] = scale / math.sqrt(n)


@inline_kernel
def _robust_prepare(own, engine, t):
    return tick(own.clock, t)


@inline_kernel
def _robust_learn(own, engine, arms, rewards, n):
    for j in range(n):
        _count(own, engine.recs, arms[j], rewards[j])
    for j in range(n):
        _write(own, engine.recs, arms[j])


implement_rounds(RobustRounds, prepare=_robust_prepare, learn=_robust_learn)


@inline_kernel
def _robust_wait(own, engine, arms, change):
    """Count `change` more plays that wait of each arm, and write their indices. O(len(arms))."""
    for i in range(arms.shape[0]):
        own.waiting[arms[i]] += change
    for i in range(arms.shape[0]):
        _write(own, engine.recs, arms[i])
    engine_touch_many(engine, arms)


def wait_in_rounds(rounds: CompiledRounds, arms: IntArray, change: int) -> None:
    """`change` more plays of `arms` wait for feedback. O(len(arms))."""
    by_handle(_robust_wait, *rounds.kinds).entry(rounds.own_handle, rounds.engine_handle, arms, change)


def new_rounds(
    kind: int,
    n_arms: int,
    *,
    least: int,
    level: float,
    clock: FloatArray,
    scale: FloatArray,
    center: FloatArray,
    estimated: bool,
    blocks: int,
) -> RobustRounds:
    """Nothing seen yet. O(K)."""
    columns = {EMPIRICAL: 1, TRUNCATED: 1, MEDIAN: blocks}[kind]
    return RobustRounds(
        kind=kind,
        least=least,
        level=level,
        clock=clock,
        scale=scale,
        center=center,
        spread=np.zeros((n_arms if estimated else 0, 2)),
        sums=np.zeros((0 if kind == EMPIRICAL else n_arms, columns)),
        waiting=np.zeros(0, dtype=np.int64),
        scratch=np.zeros(columns),
    )


def with_room(rounds: RobustRounds, n_arms: int, scale: FloatArray, center: FloatArray) -> RobustRounds:
    """The same knowledge with room for more arms, and the scales and centres of all. O(K)."""

    def longer(old: FloatArray) -> FloatArray:
        made = np.zeros((n_arms if len(old) else 0, old.shape[1]))
        made[: len(old)] = old
        return made

    waiting = room_for(rounds.waiting, n_arms) if len(rounds.waiting) else rounds.waiting
    return rounds._replace(
        spread=longer(rounds.spread), sums=longer(rounds.sums), waiting=waiting, scale=scale, center=center
    )
