"""Nonlinear indices of a few arms, without writing those of all the others (`policies.index.nonlinear`)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from semibandit.arms import COUNT, TOTAL, FloatArray, IntArray
from semibandit.compiled.handle import by_handle
from semibandit.compiled.jit import inline_kernel
from semibandit.engines.clock import CURRENT
from semibandit.policies.decisions import Ends
from semibandit.policies.index.formulas import (
    CLIPPED,
    KL,
    LEVEL,
    IndexRounds,
    index_of,
    kl_upper,
    level_of_round,
)


@inline_kernel
def _indices_at(own, engine, arms, level, out):
    """The index of each of `arms` at `level`, into `out`. O(n)."""
    for i in range(arms.shape[0]):
        out[i] = index_of(own, engine.recs, arms[i], level)


def begin_round(policy: Any, t: int) -> None:
    """Move the clock of a policy that has a `NonlinearIndex` to round t; no weight is written. O(1)."""
    by_handle(level_of_round, IndexRounds).entry(policy._aside.own_handle, t)


def level_of(policy: Any) -> float:
    """The level of the last round: that of the clock, or what a schedule of the user's said."""
    scheduled = getattr(policy, "schedule", None) is not None
    return float(policy._index.own.now[LEVEL] if scheduled else policy._clock[CURRENT])


def indices_of(policy: Any, arms: IntArray) -> FloatArray:
    """The indices of these arms in the last round of a policy that has a `NonlinearIndex`. O(n)."""
    aside, out = policy._aside, np.empty(len(arms))
    enter = by_handle(_indices_at, *aside.kinds).entry
    enter(aside.own_handle, aside.engine_handle, arms, level_of(policy), out)
    return out


@inline_kernel
def _lower_at(own, engine, arms, level, out):
    """The lower end of the confidence interval of each of `arms` at `level`, into `out`. O(n)."""
    for i in range(arms.shape[0]):
        arm = arms[i]
        seen = engine.recs[arm, COUNT]
        if seen <= 0.0:
            out[i] = own.low
            continue
        n = seen + own.waiting[arm] if own.waiting.shape[0] else seen
        mean = engine.recs[arm, TOTAL] / seen
        if own.kind == KL:
            span = own.high - own.low
            p = min(1.0, max(0.0, (own.high - mean) / span))
            out[i] = own.high - span * kl_upper(p, level / n)
        elif own.kind == CLIPPED:
            out[i] = mean - level / math.sqrt(n)
        else:
            out[i] = 2.0 * mean - index_of(own, engine.recs, arm, level)


def ends_of(policy: Any, arms: IntArray, scores: FloatArray) -> Ends:
    """Both ends of the confidence intervals of these arms in the last round, whose indices are `scores`. O(n)."""
    aside, low = policy._aside, np.empty(len(arms))
    enter = by_handle(_lower_at, *aside.kinds).entry
    enter(aside.own_handle, aside.engine_handle, arms, level_of(policy), low)
    highest = policy.reward_range[1]

    def ends(mean: FloatArray) -> tuple[FloatArray, FloatArray]:
        return low, np.where(np.isnan(mean), highest, scores)

    return ends
