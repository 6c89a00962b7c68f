"""Places of lots: where each lot of arms (`policies.index.lots`) stands among the others.

Under the exact clock the level is another one in every round, and with it all indices; their order is nearly always the
one of the round before. So the weight of an arm is a *place*: a number that only says where its lot stands among the
lots. A round asks the engine for the best base by place, and then sees whether the places tell the truth where it
matters: no lot below one of the base's has an index that is as large, and lots that share a place with one of them
share the index. If so, an arm of the base beats every arm that it could be exchanged with by index too, ties by
id as ever, and the base is the best one by index. If not, the smaller of two lots that stand wrong gets another place,
which touches its members only (docs/theory.md, E).

Indices never fall with the level, so an index at a somewhat higher level is a bound for many rounds; the index of a lot
below the base's is computed only where its bound is not below theirs.
"""

from __future__ import annotations

import numpy as np

from semibandit.arms import ALPHA
from semibandit.compiled.jit import kernel
from semibandit.engines.kernels import engine_touch, engine_touch_all
from semibandit.policies.index.formulas import LEVEL, PLACES, WHAT, WRITTEN, exact_level
from semibandit.policies.index.lots import (
    AFTER,
    AGAIN,
    AHEAD_INDEX,
    ANSWERS,
    BOUND,
    FIRST,
    LOT,
    LOWER,
    N_LOTS,
    N_SPARE,
    PLACE,
    SEEN,
    SIZE,
    STALE,
    UNTIL,
    UPPER,
    index_now,
    join_lot,
    look_ahead,
    place_between,
    position_of,
    pull,
    put,
)

# How many rounds bounds hold at least, and how often places are corrected in a round before all are given anew.
_HOLD, _CORRECT = 16, 64


@kernel
def form_lots(own, engine, until):
    """Put all arms into lots, places by the index at the level `until`; whether there is room for them all. O(K)."""
    lots, recs = own.lots, engine.recs
    most = lots.value.shape[0]
    lots.table[:] = -1
    for lot in range(most):
        lots.spare[lot] = most - 1 - lot
    lots.meta[N_LOTS] = 0
    lots.meta[N_SPARE] = most
    lots.meta[STALE] = 0
    lots.now[UNTIL] = until
    lots.of[:] = -1
    for arm in range(recs.shape[0]):
        join_lot(own, recs, arm)
        if lots.meta[STALE]:
            own.meta[WHAT] = 0
            return False
    own.meta[WHAT] = PLACES
    own.meta[WRITTEN] += 1
    engine_touch_all(engine)
    return True


@kernel
def follow_lots(own, engine, t, n_played):
    """Begin a round with lots at the level of the round; whether that can be. O(1) expected, at times O(lots).

    Where there are too many lots, they are not tried again before twice as many rounds were played.
    """
    lots = own.lots
    if lots.value.shape[0] == 0 or t < lots.meta[AGAIN]:
        return False
    level = own.now[LEVEL]
    if own.meta[WHAT] != PLACES or lots.meta[STALE]:
        until = max(level, exact_level(own, t + _HOLD))
        if not form_lots(own, engine, until):
            lots.meta[AGAIN] = 2 * t + 64 + engine.recs.shape[0] // n_played
            return False
    elif level > lots.now[UNTIL]:
        n = lots.meta[N_LOTS]
        lots.now[UNTIL] = max(level, exact_level(own, t + _HOLD + n // n_played))
        for i in range(n):
            look_ahead(own, engine.recs, lots.order[i])
    return True


@kernel
def stand_right(own, recs, arms):
    """Whether the best base by place, `arms`, is the best by index. If not, two lots that stand wrong are noted.

    Changes the cache of indices. O(lots), and the indices of the lots in the base and of those that come close.
    """
    lots = own.lots
    value, info, order, n = lots.value, lots.info, lots.order, lots.meta[N_LOTS]
    lots.meta[ANSWERS] += 1
    answer = lots.meta[ANSWERS]
    left = 0
    for j in range(arms.shape[0]):
        lot = lots.of[arms[j], LOT]
        left += info[lot, SEEN] != answer
        info[lot, SEEN] = answer
    # Below `done` no index is as large as that of `last`, the last lot of the base; `highest` bounds those from there.
    last, done, highest = -1, 0, -np.inf
    at = 0
    while left > 0:
        place = value[order[at], PLACE]
        end, here = at, -1
        while end < n and value[order[end], PLACE] == place:
            if info[order[end], SEEN] == answer:
                here = order[end]
                left -= 1
            end += 1
        if here < 0:
            for i in range(at, end):
                highest = max(highest, value[order[i], BOUND])
            at = end
            continue
        index = index_now(own, recs, here)
        for i in range(at, end):
            other = index_now(own, recs, order[i])
            if other != index:
                lots.meta[LOWER] = order[i] if other > index else here
                lots.meta[UPPER] = here if other > index else order[i]
                return False
        if last >= 0 and index_now(own, recs, last) >= index:
            lots.meta[LOWER], lots.meta[UPPER] = last, here
            return False
        if highest >= index:
            for i in range(done, at):
                if value[order[i], BOUND] >= index and index_now(own, recs, order[i]) >= index:
                    lots.meta[LOWER], lots.meta[UPPER] = order[i], here
                    return False
        last, done, highest = here, end, -np.inf
        at = end
    return True


@kernel
def _move_lot(own, engine, lot, place, at):
    """Give a lot, which is out of the order, another place and position. O(lots) and O(1) for each member."""
    lots, recs = own.lots, engine.recs
    lots.value[lot, PLACE] = place
    put(lots, at, lot)
    arm = lots.info[lot, FIRST]
    while arm >= 0:
        recs[arm, ALPHA] = place
        engine_touch(engine, arm)
        arm = lots.of[arm, AFTER]


@kernel
def correct(own, engine):
    """Two lots stand wrong: the lower one, or one in the same place, has the larger index, or the same in another
    place. The smaller of the two moves beyond the other, and on past all that it is then wrong with."""
    lots, recs = own.lots, engine.recs
    value, order = lots.value, lots.order
    low, high = lots.meta[LOWER], lots.meta[UPPER]
    up = lots.info[low, SIZE] <= lots.info[high, SIZE]
    mover, other = (low, high) if up else (high, low)
    index = index_now(own, recs, mover)
    pull(lots, mover)
    n = lots.meta[N_LOTS]
    if index_now(own, recs, other) == index:
        _move_lot(own, engine, mover, value[other, PLACE], position_of(lots, other))
        return
    at = position_of(lots, other)
    place = value[other, PLACE]
    if up:
        while at < n and (value[order[at], PLACE] == place or index_now(own, recs, order[at]) < index):
            at += 1
    else:
        while at > 0 and (
            value[order[at - 1], PLACE] == place or index_now(own, recs, order[at - 1]) > index
        ):
            at -= 1
    beyond = at if up else at - 1
    if 0 <= beyond < n and index_now(own, recs, order[beyond]) == index:
        _move_lot(own, engine, mover, value[order[beyond], PLACE], at)
        return
    if up and at < n:
        while at > 0 and value[order[at - 1], PLACE] == value[order[at], PLACE]:
            at -= 1
    elif not up and at > 0:
        while at < n and value[order[at - 1], PLACE] == value[order[at], PLACE]:
            at += 1
    _move_lot(own, engine, mover, place_between(lots, at, value[mover, AHEAD_INDEX]), at)


@kernel
def set_right(own, engine, tries):
    """`correct`, or after many tries give all places anew, by the indices of the round: those are right."""
    if tries >= _CORRECT or own.lots.meta[STALE]:
        form_lots(own, engine, own.now[LEVEL])
    else:
        correct(own, engine)
