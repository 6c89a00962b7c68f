"""Bounds of indices that hold until a round of their own.

Under the exact clock every index is another one in every round, but it never falls: the index at the level of a later
round is a bound up to there. The weight of an arm is such a bound, or its index at the level of the round (then it is
*exact*). An engine keeps the best base by weight; bounds of its arms are replaced by what their index is now, and when
all are, it is the best base by index too, with the same ties.

A bound holds until the next round that is a multiple of 2^power, where it is computed anew. An arm that was not offered
until then gets a power more, one that was offered in vain two less: arms far below the base's are looked at rarely, and
those that come close often, each as often as it has to be. All arms of one power are in one list, and a round looks
at the lists whose time it is.
"""

from __future__ import annotations

import math

import numpy as np

from semibandit.arms import ALPHA, BETA, FloatArray
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.engines.kernels import engine_touch, engine_touch_all
from semibandit.policies.index.formulas import (
    BOUNDS,
    LEVEL,
    WHAT,
    WRITTEN,
    Bounds,
    IndexRounds,
    exact_level,
    index_of,
)

# Columns of `link`.
AFTER, BEFORE = 0, 1

# Of `state`: whether the weight of an arm is a bound, its index, or its index and the arm was in the last answer or has
# changed since. Of `meta`: how many arms are listed, and the round.
BOUNDED, EXACT, ANSWERED = 0, 1, 2
LISTED, ROUND = 0, 1

_POWERS = 48

# How far powers go down for an offer in vain. Bounds look ahead by at most one in this many of the rounds so far.
_DOWN, _FAR = 2, 2


def new_bounds(n_arms: int) -> Bounds:
    """Of no arm anything is known yet. O(K)."""
    return Bounds(
        link=np.full((n_arms, 2), -1, dtype=np.int32),
        power=np.zeros(n_arms, dtype=np.uint8),
        state=np.zeros(n_arms, dtype=np.uint8),
        listed=np.zeros(n_arms, dtype=np.int64),
        heads=np.full(_POWERS, -1, dtype=np.int64),
        meta=np.zeros(2, dtype=np.int64),
    )


@inline_kernel
def _power_within(rounds):
    """The largest power of two, as its exponent, that is at most `rounds`. O(1)."""
    return min(_POWERS - 1, np.int64(math.log2(max(1.0, float(rounds)))))


@inline_kernel
def _bound(own, engine, arm, t, power):
    """Let the weight of an arm that is in no list be a bound until the next multiple of 2^power. O(1)."""
    bounds = own.bounds
    power = min(power, _power_within(16 + t // _FAR))
    end = ((t >> power) + 1) << power
    first = bounds.heads[power]
    bounds.link[arm, AFTER] = first
    bounds.link[arm, BEFORE] = -1
    if first >= 0:
        bounds.link[first, BEFORE] = arm
    bounds.heads[power] = arm
    bounds.power[arm] = power
    bounds.state[arm] = BOUNDED
    engine.recs[arm, ALPHA] = index_of(own, engine.recs, arm, max(own.now[LEVEL], exact_level(own, end)))
    engine.recs[arm, BETA] = 0.0


@kernel
def _list(own, arm, state):
    """An arm is exact from now on. O(1)."""
    bounds = own.bounds
    if bounds.state[arm] == BOUNDED:
        before, after = bounds.link[arm, BEFORE], bounds.link[arm, AFTER]
        if before >= 0:
            bounds.link[before, AFTER] = after
        else:
            bounds.heads[bounds.power[arm]] = after
        if after >= 0:
            bounds.link[after, BEFORE] = before
        bounds.listed[bounds.meta[LISTED]] = arm
        bounds.meta[LISTED] += 1
    bounds.state[arm] = state


@kernel
def form_bounds(own, engine, t, n_played):
    """Let all weights be bounds that hold for so many rounds that they cost O(n_played) indices a round. O(K)."""
    bounds = own.bounds
    bounds.heads[:] = -1
    bounds.meta[LISTED] = 0
    power = _power_within(16 + engine.recs.shape[0] // (2 * n_played))
    for arm in range(engine.recs.shape[0] - 1, -1, -1):
        _bound(own, engine, arm, t, power)
    own.meta[WHAT] = BOUNDS
    own.meta[WRITTEN] += 1
    engine_touch_all(engine)


@kernel
def follow_bounds(own, engine, t, n_played):
    """Begin round t: bounds whose time is over are computed anew, and so are indices. Expected O(n_played log K)."""
    bounds = own.bounds
    last = bounds.meta[ROUND]
    bounds.meta[ROUND] = t
    if own.meta[WHAT] != BOUNDS or t < last:
        form_bounds(own, engine, t, n_played)
        return
    # Rounds may have passed without this (among some arms, by weights of the caller's): all whose time was over since
    # the last one are due, and a list of 2^power rounds is if a multiple of that was passed.
    power = -1
    while power + 1 < _POWERS and t >> (power + 1) != last >> (power + 1):
        power += 1
    # Downwards: arms move to longer lists, that were looked at before.
    while power >= 0:
        arm = bounds.heads[power]
        bounds.heads[power] = -1
        while arm >= 0:
            after = bounds.link[arm, AFTER]
            _bound(own, engine, arm, t, min(power + 1, _POWERS - 1))
            engine_touch(engine, arm)
            arm = after
        power -= 1
    kept, n = 0, bounds.meta[LISTED]
    for i in range(n):
        arm = bounds.listed[i]
        if bounds.state[arm] == ANSWERED:
            engine.recs[arm, ALPHA] = index_of(own, engine.recs, arm, own.now[LEVEL])
            bounds.state[arm] = EXACT
            bounds.listed[kept] = arm
            kept += 1
        else:
            _bound(own, engine, arm, t, max(0, np.int64(bounds.power[arm]) - _DOWN))
        engine_touch(engine, arm)
    bounds.meta[LISTED] = kept


@kernel
def settle_bounds(own, engine, arms):
    """Replace bounds of `arms` by indices; whether none was another number. O(1) an arm."""
    settled = True
    recs = engine.recs
    for j in range(arms.shape[0]):
        arm = arms[j]
        if own.bounds.state[arm] == BOUNDED:
            _list(own, arm, EXACT)
            index = index_of(own, recs, arm, own.now[LEVEL])
            if index != recs[arm, ALPHA]:
                recs[arm, ALPHA] = index
                engine_touch(engine, arm)
                settled = False
    return settled


@kernel
def note_answer(own, arms):
    """These arms are the answer. O(1) an arm."""
    for j in range(arms.shape[0]):
        own.bounds.state[arms[j]] = ANSWERED


@inline_kernel
def change_bound(own, recs, arm):
    """Something else is known of an arm: it is exact until the next round begins. O(1)."""
    _list(own, arm, ANSWERED)
    own.bounds.power[arm] = _power_within(own.bounds.meta[ROUND] // 8)
    recs[arm, ALPHA] = index_of(own, recs, arm, own.now[LEVEL])
    recs[arm, BETA] = 0.0


def check_bounds(own: IndexRounds, recs: FloatArray) -> None:
    """Assert that every arm is in one list and that bounds are not below indices at the level of the round. O(K)."""
    bounds = own.bounds
    met = bounds.listed[: bounds.meta[LISTED]].tolist()
    assert (bounds.state[met] != BOUNDED).all()
    for power, head in enumerate(bounds.heads.tolist()):
        arm, before = head, -1
        while arm >= 0:
            assert bounds.state[arm] == BOUNDED and bounds.power[arm] == power
            assert bounds.link[arm, BEFORE] == before
            assert recs[arm, ALPHA] >= index_of(own, recs, arm, own.now[LEVEL]) and recs[arm, BETA] == 0.0
            met.append(arm)
            arm, before = int(bounds.link[arm, AFTER]), arm
    assert sorted(met) == list(range(len(recs)))
