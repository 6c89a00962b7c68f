"""Kernels of CLUCB: the leader, its optimistic rival, and the arm to sample (docs/theory.md)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from semibandit.arms import ALPHA, BETA, COUNT, FloatArray
from semibandit.compiled.handle import Floats1, Floats2, Ints1
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.sorting import sort_ids_in_place, sort_keys
from semibandit.engines.clock import stair_at_least
from semibandit.engines.kernels import (
    add_rewards,
    check_feedback,
    engine_select,
    engine_touch_many,
)
from semibandit.engines.resolve.one_by_one import TAKEN, begin, take
from semibandit.environments.draw import draw_many

# Of `meta`: how many arms the leader has, the base of largest mean that was found last, and the rival; and the arm to
# sample, -1 if the two are the same; and how many samples there were. Why `sample_on` ends.
N_LEADER, N_FOUND, N_RIVAL, NEXT, SAMPLES = range(5)
LED, STOPPED, LIMIT, REFUSED = range(4)


class TwoBases(NamedTuple):
    """`leader`, `found` and `rival` ascend. `arm` and `weight`: the leader's arms and those of the best base of the
    others from the rank on, by optimistic weight; the rest is scratch."""

    recs: Floats2
    leader: Ints1
    found: Ints1
    rival: Ints1
    arm: Ints1
    weight: Floats1
    spare_arm: Ints1
    spare_weight: Floats1
    bins: Ints1
    meta: Ints1


def new_two_bases(recs: FloatArray, rank: int) -> TwoBases:
    """No leader is known. O(rank)."""
    return TwoBases(
        recs=recs,
        leader=np.zeros(rank, dtype=np.int64),
        found=np.zeros(rank, dtype=np.int64),
        rival=np.zeros(rank, dtype=np.int64),
        arm=np.zeros(2 * rank, dtype=np.int64),
        weight=np.zeros(2 * rank),
        spare_arm=np.zeros(rank, dtype=np.int64),
        spare_weight=np.zeros(rank),
        bins=np.zeros(max(rank + 2, 257), dtype=np.int64),
        meta=np.zeros(5, dtype=np.int64),
    )


@inline_kernel
def _same(one, n_one, other, n_other):
    same = n_one == n_other
    for i in range(min(n_one, n_other)):
        same &= one[i] == other[i]
    return same


@kernel
def find_leader(own, means):
    """Find the base of largest mean; whether the leader is still that. Cost of an answer of the engine."""
    n = engine_select(means, 0.0, own.found)
    own.meta[N_FOUND] = n
    return _same(own.found, n, own.leader, own.meta[N_LEADER])


@kernel
def find_rival(own, others, rule, lam):
    """Find the optimistic base, from the engine of the arms outside the leader; whether it is the leader itself.

    Of equal weights the leader's arms come first, then the smaller id. O(D log D) and an answer of the engine.
    """
    recs, arm, weight = own.recs, own.arm, own.weight
    rank, n_leader = own.leader.shape[0], own.meta[N_LEADER]
    for i in range(n_leader):
        k = own.leader[i]
        arm[i] = k
        weight[i] = recs[k, ALPHA] - lam * recs[k, BETA]
    n_outside = engine_select(others, lam, arm[rank:])
    for i in range(rank, rank + n_outside):
        weight[i] = recs[arm[i], ALPHA] + lam * recs[arm[i], BETA]
    sort_keys(weight, arm, n_leader, own.spare_weight, own.spare_arm, own.bins)
    sort_keys(weight[rank:], arm[rank:], n_outside, own.spare_weight, own.spare_arm, own.bins)
    begin(rule)
    i, j, n = 0, rank, 0
    while n < rank and (i < n_leader or j < rank + n_outside):
        if j == rank + n_outside or (i < n_leader and weight[i] >= weight[j]):
            k = arm[i]
            i += 1
        else:
            k = arm[j]
            j += 1
        if take(rule, k) == TAKEN:
            own.rival[n] = k
            n += 1
    sort_ids_in_place(own.rival, n)
    own.meta[N_RIVAL] = n
    own.meta[NEXT] = -1
    if _same(own.rival, n, own.leader, n_leader):
        return True
    own.meta[NEXT] = _least_sampled(own)
    return False


@kernel
def _least_sampled(own):
    """Of the arms in one of the two bases, but not in both, that of fewest samples, then of smaller id. O(D)."""
    one, other, n_one, n_other = own.leader, own.rival, own.meta[N_LEADER], own.meta[N_RIVAL]
    best = -1
    i = j = 0
    while i < n_one or j < n_other:
        if i < n_one and j < n_other and one[i] == other[j]:
            i += 1
            j += 1
            continue
        if j == n_other or (i < n_one and one[i] < other[j]):
            k = one[i]
            i += 1
        else:
            k = other[j]
            j += 1
        if best < 0 or own.recs[k, COUNT] < own.recs[best, COUNT]:
            best = k
    return best


@kernel
def observe_both(means, others, arms, rewards, low, high):
    """Validate a batch of feedback, then count it and tell both engines; 0, or what is wrong (`check_feedback`)."""
    code = check_feedback(means.recs.shape[0], arms, rewards, low, high)
    if code == 0:
        add_rewards(means.recs, arms, rewards)
        engine_touch_many(means, arms)
        engine_touch_many(others, arms)
    return code


@kernel
def width_of(radius, samples, step):
    """R sqrt(2 log(4 K t^3 / delta)) after t samples, rounded up if step > 0. `radius`: R, log(4 K / delta)."""
    lam = radius[0] * math.sqrt(2.0 * (radius[1] + 3.0 * math.log(float(max(samples, 1)))))
    return lam if step <= 0.0 else stair_at_least(lam, step)


@kernel
def sample_on(own, means, others, rule, env, radius, step, low, high, t, limit, arms, rewards):
    """Sample arms of `env` while the leader stays; why it ended: LED, STOPPED, LIMIT or REFUSED (a reward).

    `own.meta[SAMPLES]` counts on up to `limit`. `t`: the round of the environment before. `arms` and `rewards`:
    room for the one of a sample. Changes both engines, the records and the environment's counters.
    """
    meta = own.meta
    start = meta[SAMPLES]
    while find_leader(own, means):
        if find_rival(own, others, rule, width_of(radius, meta[SAMPLES], step)):
            return STOPPED
        if meta[SAMPLES] >= limit:
            return LIMIT
        arms[0] = meta[NEXT]
        now = t + 1 + meta[SAMPLES] - start
        draw_many(
            env.kind,
            env.seed,
            env.scalars,
            env.params,
            env.offsets,
            env.values,
            env.pulls,
            arms,
            now,
            rewards,
        )
        if observe_both(means, others, arms, rewards, low, high) != 0:
            return REFUSED
        meta[SAMPLES] += 1
    return LED
