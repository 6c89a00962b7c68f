"""What a policy does now, seen from outside: its last decision, and the arms that it chose lately.

Only the ledger is read, and the records of the arms found there: no draw, no clock, no pass over all arms. So the state
is the same whether anybody looks on or not.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.serve.answers import statistics
from semibandit.serve.seats import Seat

#: Decisions that are looked back at, and arms of them at most.
_BACK, _MOST = 100, 4_096
#: Rows for the base, and for other arms.
_BASE, _OTHERS = 12, 8
#: Characters of a label.
_LONGEST = 60


class ArmRow(msgspec.Struct, gc=False):
    """An arm: whether it is in the base, in which share of the last decisions it was, and what is known of it."""

    arm: str
    base: bool
    share: float
    count: int
    mean: float | None
    low: float | None
    high: float | None


class Peek(msgspec.Struct, gc=False):
    """The last decision (`size` arms, seconds ago), and rows for the best of its arms, then for others of late.

    `back`: how many decisions were looked at.
    """

    size: int
    age: float
    back: int
    rows: list[ArmRow]


def peek(seat: Seat, now: int) -> Peek | None:
    """How `seat` chooses at time `now` (in microseconds), None if it keeps no decision.

    O(1): no more than 4,096 arms are looked at, of a longer base the first ones.
    """
    ledger = seat.ledger
    if ledger.oldest >= ledger.next:
        return None
    last = ledger.next - 1
    base = np.array(_still(seat, last), dtype=np.int64)
    seen: Counter[int] = Counter()
    back = left = 0
    for number in range(last, max(ledger.oldest, ledger.next - _BACK) - 1, -1):
        size = len(ledger.arms_of(number))
        left += size
        if back and left > _MOST:
            break
        seen.update(_still(seat, number))
        back += 1
    shown = _best(seat, base, _BASE)
    chosen = set(base.tolist())
    others = [arm for arm, _ in seen.most_common(_BASE + _OTHERS + len(chosen)) if arm not in chosen]
    rest = _best(seat, np.array(others[:_OTHERS], dtype=np.int64), _OTHERS)
    rows = [
        ArmRow(_text(one.arm), place < len(shown), seen[arm] / back, one.count, one.mean, one.low, one.high)
        for place, (arm, one) in enumerate(_known(seat, np.concatenate((shown, rest))))
    ]
    age = max(0, now - ledger.made_at(last)) / 1e6
    return Peek(len(ledger.arms_of(last)), age, back, rows)


def _still(seat: Seat, number: int) -> list[int]:
    """Arms of a kept decision that are what they were then: a label may be gone, and its arm another's. O(D)."""
    arms: list[int] = seat.ledger.arms_of(number)[:_MOST].tolist()
    if not seat.labelled:
        return arms
    names = seat.names_of(number, seat.ledger.arms_of(number))
    return [arm for arm, name in zip(arms, names, strict=False) if seat.name_of(arm) == name]


def _known(seat: Seat, arms: IntArray) -> list[tuple[int, Any]]:
    return list(zip(arms.tolist(), statistics(seat, arms), strict=True))


def _best(seat: Seat, arms: IntArray, most: int) -> IntArray:
    """Those with the best means, best first, ties by smaller id, unseen ones last. O(n log n)."""
    policy = seat.policy
    with policy._lock:
        told = policy._account(arms, policy._scores(arms))
    means: FloatArray = (told() if callable(told) else told).mean
    keys = means if policy.objective == "min" else -means
    return arms[np.lexsort((arms, np.where(np.isnan(keys), np.inf, keys)))[:most]]


def _text(name: Any) -> str:
    text = name if isinstance(name, str) else str(name)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "\u2026"
