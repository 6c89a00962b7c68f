"""Rewards and places of a request: checked, and blamed for what a policy refuses."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from semibandit.arms import FloatArray
from semibandit.errors import SemibanditError
from semibandit.serve.refusals import Refusal, bad

#: How messages name a place: ``rewards[3]``.
PLACE = re.compile(r"(\w+)\[(\d+)\]")


def as_values(rewards: list[Any], n: int) -> FloatArray:
    """Rewards of a request as numbers, or a `Refusal`; what is in the range is the policy's to say."""
    if len(rewards) != n:
        told = f"rewards has {len(rewards)} entries but {n} arms are meant: one reward per arm"
        raise bad("rewards", len(rewards), told)
    try:
        values = np.array(rewards, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        values = np.empty((0, 0))
    if values.ndim != 1:
        raise bad("rewards", None, "rewards must be numbers")
    return values


def blame(error: SemibanditError, rewards: FloatArray, places: list[int]) -> Refusal:
    """The `Refusal` for rewards that a policy refused; `places` are those in the request of what it was given."""
    found = PLACE.search(str(error))
    at = int(found.group(2)) if found and int(found.group(2)) < len(rewards) else _first_bad(rewards)
    where = f"rewards[{places[at] if at < len(places) else at}]"
    told = str(error)
    if found:
        told = told.replace(found.group(0), where, 1)
    return bad(where, float(rewards[at]) if rewards.size else None, told)


def _first_bad(rewards: FloatArray) -> int:
    wrong = np.flatnonzero(~np.isfinite(rewards))
    return int(wrong[0]) if wrong.size else 0


def places_of(played: list[Any], arms: list[Any]) -> list[int]:
    """Where `arms` stand among those played, or a `Refusal`. O(n)."""
    if arms == played:
        return list(range(len(played)))
    place = {arm: i for i, arm in enumerate(played)}
    found = []
    for i, arm in enumerate(arms):
        at = place.pop(arm, None) if is_label(arm) and not isinstance(arm, bool) else None
        if at is None:
            again = is_label(arm) and arm in played
            told = f"arms[{i}] = {arm!r} is " + ("named twice" if again else "not an arm of this decision")
            raise bad(f"arms[{i}]", arm, told)
        found.append(at)
    return found


def is_label(value: Any) -> bool:
    """Whether something can be a label: hashable, and equal to itself."""
    try:
        hash(value)
    except TypeError:
        return False
    return value == value
