"""Arms of which the same is known, together: lots of arms, which have one index at every level.

What is known of an arm is its count, its sum (of squares too, for UCB-V), plays that wait, and the index that a prior
gives it before the first. Each lot has a place, a number that says where it stands among the lots; it is the
weight of its arms (`policies.index.places`). The arms of a lot are in a list, lots are found by a hash table.
"""

from __future__ import annotations

import math

import numpy as np

from semibandit.arms import ALPHA, BETA, COUNT, TOTAL, FloatArray
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.policies.index.formulas import (
    KL,
    LEVEL,
    IndexRounds,
    Lots,
    index_of,
    know_the_same,
)

# Columns of `of`.
LOT, AFTER, BEFORE = 0, 1, 2

# Columns of `value`: the place, the index at the level of the bounds, a bound of indices up to there, and the index at
# the level in AT. Columns of `info`: the first member, how many there are, the hash, and the last answer it was in.
PLACE, AHEAD_INDEX, BOUND, INDEX, AT = range(5)
FIRST, SIZE, HASH, SEEN = range(4)

# Of `meta`: how many lots there are, how many numbers are spare, how many answers were looked at, whether the places
# are to be given anew, from which round on lots may be tried again, and two lots that stand wrong. Of `now`: the
# level of the bounds.
N_LOTS, N_SPARE, ANSWERS, STALE, AGAIN, LOWER, UPPER = range(7)
UNTIL = 0

# Lots pay from this many arms on, while there are this many arms for each of them; and there are never more than that.
_FROM, _SHARE, _MOST = 256, 8, 4096

_A = np.uint64(0x9E3779B97F4A7C15)
_B = np.uint64(0xD1342543DE82EF95)
_31 = np.uint64(31)


def new_lots(n_arms: int) -> Lots:
    """No arm is in a lot; without room for any where they would not pay. O(K)."""
    most = min(_MOST, n_arms // _SHARE) if n_arms >= _FROM else 0
    return Lots(
        of=np.full((n_arms if most else 0, 3), -1, dtype=np.int32),
        value=np.zeros((most, 5)),
        info=np.zeros((most, 4), dtype=np.int64),
        order=np.zeros(most, dtype=np.int64),
        spare=np.zeros(most, dtype=np.int64),
        table=np.full(1 << (4 * most - 1).bit_length() if most else 0, -1, dtype=np.int64),
        meta=np.zeros(7, dtype=np.int64),
        now=np.zeros(1),
    )


@inline_kernel
def _mix(h, x):
    """A hash of h and a number. Not of its bits: 0.0 and -0.0 are equal."""
    whole = math.floor(x) if abs(x) < 1e15 else 0.0
    h = (h ^ np.uint64(np.int64(whole))) * _A
    h = (h ^ (h >> _31)) * _B
    part = x - whole if abs(x) < 1e15 else 0.0
    h = (h ^ np.uint64(np.int64(part * 1e15))) * _A
    return h ^ (h >> _31)


@inline_kernel
def _hash_of(own, recs, arm):
    """The same for arms of which the same is known."""
    h = _mix(_mix(_B, recs[arm, COUNT]), recs[arm, TOTAL])
    if own.squares.shape[0]:
        h = _mix(h, own.squares[arm])
    if own.waiting.shape[0]:
        h = _mix(h, float(own.waiting[arm]))
    if own.first.shape[0] and recs[arm, COUNT] <= 0.0:
        h = _mix(h, own.first[arm])
    return np.int64(h >> np.uint64(1))


@kernel
def look_ahead(own, recs, lot):
    """Compute the bound of a lot. O(1).

    What rounding may do to a KL index (that it falls by a hair where the level grows by one) is added.
    """
    lots, arm = own.lots, own.lots.info[lot, FIRST]
    until = lots.now[UNTIL]
    index = index_of(own, recs, arm, until)
    lots.value[lot, AHEAD_INDEX] = index
    if own.kind == KL:
        n = recs[arm, COUNT] + (own.waiting[arm] if own.waiting.shape[0] else 0)
        index += (own.high - own.low) * (2e-12 + 2e-15 * math.sqrt(max(0.0, n) / max(until, 1e-9)))
    lots.value[lot, BOUND] = index


@inline_kernel
def index_now(own, recs, lot):
    """The index of a lot at the level of the round, computed once. O(1)."""
    value, level = own.lots.value, own.now[LEVEL]
    if value[lot, AT] != level:
        value[lot, INDEX] = index_of(own, recs, own.lots.info[lot, FIRST], level)
        value[lot, AT] = level
    return value[lot, INDEX]


@inline_kernel
def put(lots, at, lot):
    """Let `lot` stand at this position of the order. O(lots)."""
    n = lots.meta[N_LOTS]
    for i in range(n, at, -1):
        lots.order[i] = lots.order[i - 1]
    lots.order[at] = lot
    lots.meta[N_LOTS] = n + 1


@kernel
def position_of(lots, lot):
    """Where `lot` stands in the order. O(log lots) and those with the same place."""
    order, place = lots.order, lots.value[lot, PLACE]
    low, high = 0, lots.meta[N_LOTS]
    while low < high:
        middle = (low + high) >> 1
        if lots.value[order[middle], PLACE] < place:
            low = middle + 1
        else:
            high = middle
    while order[low] != lot:
        low += 1
    return low


@inline_kernel
def pull(lots, lot):
    """Take `lot` out of the order. O(lots)."""
    n = lots.meta[N_LOTS] - 1
    for i in range(position_of(lots, lot), n):
        lots.order[i] = lots.order[i + 1]
    lots.meta[N_LOTS] = n


@kernel
def place_between(lots, at, wanted):
    """A place for a lot that is to stand at this position: `wanted`, or else between the neighbours' places. O(1).

    Where there is no number left between them, all places are to be given anew.
    """
    n = lots.meta[N_LOTS]
    low = lots.value[lots.order[at - 1], PLACE] if at > 0 else -np.inf
    high = lots.value[lots.order[at], PLACE] if at < n else np.inf
    if low < wanted and (wanted < high or (at == n and wanted == np.inf)):
        return wanted
    if at == 0:
        place = high - 1.0 - abs(high)
    elif at == n or high == np.inf:
        place = low + 1.0 + abs(low)
    else:
        place = low + 0.5 * (high - low)
    if not low < place < high:
        lots.meta[STALE] = 1
        place = low
    return place


@kernel
def _open_lot(own, recs, arm, h):
    """A new lot for this arm alone, placed by its index ahead; its number. O(lots)."""
    lots = own.lots
    value, order = lots.value, lots.order
    lots.meta[N_SPARE] -= 1
    lot = lots.spare[lots.meta[N_SPARE]]
    lots.info[lot, FIRST] = arm
    lots.info[lot, SIZE] = 0
    lots.info[lot, HASH] = h
    lots.info[lot, SEEN] = 0
    value[lot, AT] = -1.0
    look_ahead(own, recs, lot)
    index = value[lot, AHEAD_INDEX]
    low, high = 0, lots.meta[N_LOTS]
    while low < high:
        middle = (low + high) >> 1
        if value[order[middle], AHEAD_INDEX] < index:
            low = middle + 1
        else:
            high = middle
    if low < lots.meta[N_LOTS] and value[order[low], AHEAD_INDEX] == index:
        value[lot, PLACE] = value[order[low], PLACE]
    else:
        value[lot, PLACE] = place_between(lots, low, index)
    put(lots, low, lot)
    return lot


@kernel
def join_lot(own, recs, arm):
    """Put an arm that is in no lot into its own, and let its weight be the place. O(1), or O(lots) for a new lot.

    Where there is no room for another lot, all places are to be given anew.
    """
    lots = own.lots
    table, info, of = lots.table, lots.info, lots.of
    mask = table.shape[0] - 1
    h = _hash_of(own, recs, arm)
    slot = h & mask
    while True:
        lot = table[slot]
        if lot < 0 or (info[lot, HASH] == h and know_the_same(own, recs, arm, info[lot, FIRST])):
            break
        slot = (slot + 1) & mask
    recs[arm, BETA] = 0.0
    if lot < 0:
        if lots.meta[N_SPARE] == 0:
            lots.meta[STALE] = 1
            recs[arm, ALPHA] = 0.0
            return
        lot = _open_lot(own, recs, arm, h)
        table[slot] = lot
        of[arm, AFTER] = -1
    else:
        first = info[lot, FIRST]
        of[arm, AFTER] = first
        of[first, BEFORE] = arm
        info[lot, FIRST] = arm
    of[arm, BEFORE] = -1
    of[arm, LOT] = lot
    info[lot, SIZE] += 1
    recs[arm, ALPHA] = lots.value[lot, PLACE]


@kernel
def leave_lot(own, arm):
    """Take an arm out of its lot, if it is in one; what its record says does not matter. O(1), or O(lots)."""
    lots = own.lots
    of, info = lots.of, lots.info
    lot = of[arm, LOT]
    if lot < 0:
        return
    of[arm, LOT] = -1
    before, after = of[arm, BEFORE], of[arm, AFTER]
    if before >= 0:
        of[before, AFTER] = after
    else:
        info[lot, FIRST] = after
    if after >= 0:
        of[after, BEFORE] = before
    info[lot, SIZE] -= 1
    if info[lot, SIZE] == 0:
        _close_lot(lots, lot)


@kernel
def _close_lot(lots, lot):
    """The empty lot goes; later ones of its run in the table move up. O(lots)."""
    pull(lots, lot)
    table, info = lots.table, lots.info
    mask = table.shape[0] - 1
    hole = info[lot, HASH] & mask
    while table[hole] != lot:
        hole = (hole + 1) & mask
    slot = hole
    while True:
        slot = (slot + 1) & mask
        other = table[slot]
        if other < 0:
            break
        if ((slot - (info[other, HASH] & mask)) & mask) >= ((slot - hole) & mask):
            table[hole] = other
            hole = slot
    table[hole] = -1
    lots.spare[lots.meta[N_SPARE]] = lot
    lots.meta[N_SPARE] += 1


def check_lots(own: IndexRounds, recs: FloatArray) -> None:
    """Assert all invariants of lots that are kept. O(K)."""
    lots, n = own.lots, int(own.lots.meta[N_LOTS])
    if lots.meta[STALE]:
        return
    order = lots.order[:n]
    assert len(np.unique(order)) == n == len(lots.value) - lots.meta[N_SPARE]
    assert (np.diff(lots.value[order, PLACE])[np.isfinite(lots.value[order, PLACE][1:])] >= 0.0).all()
    assert sorted(lots.table[lots.table >= 0].tolist()) == sorted(order.tolist())
    known = np.column_stack([recs[:, COUNT], recs[:, TOTAL]])
    for more in (own.squares, own.waiting):
        known = np.column_stack([known, more]) if more.size else known
    if own.first.size:
        known = np.column_stack([known, np.where(recs[:, COUNT] > 0.0, 0.0, own.first)])
    met = set()
    for lot in order.tolist():
        members, arm, before = [], int(lots.info[lot, FIRST]), -1
        while arm >= 0:
            assert lots.of[arm, BEFORE] == before and lots.of[arm, LOT] == lot
            members.append(arm)
            arm, before = int(lots.of[arm, AFTER]), arm
        assert len(members) == lots.info[lot, SIZE] > 0
        assert (known[members] == known[members[0]]).all()
        assert (recs[members, ALPHA] == lots.value[lot, PLACE]).all() and (recs[members, BETA] == 0.0).all()
        met.add(tuple(known[members[0]].tolist()))
    assert len(met) == n and lots.info[order, SIZE].sum() == len(recs)
