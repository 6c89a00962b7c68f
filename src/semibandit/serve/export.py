"""The log as a table that off-policy evaluation reads (`semibandit.data.replay`): a row per arm that was played.

Columns: ``round`` (decisions in order), ``arm``, ``reward``, ``at`` (when it was decided, microseconds since 1970),
``label`` where the policy has labels, and ``propensity`` where the policy knows with which probability it plays an arm.
Arms of a policy with labels are numbered here in the order in which their labels first occur.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np

from semibandit.checks import one_of
from semibandit.errors import ParameterError
from semibandit.serve.events import (
    AnyEvent,
    Created,
    Removed,
    Rewarded,
    Selected,
    decode_group,
    unpack_arms,
    unpack_numbers,
)
from semibandit.serve.store import Group
from semibandit.text import unknown

#: What becomes of decisions of which not all rewards are known.
MISSING = ("drop", "zero", "keep")


class _Decided:
    """A decision on its way into the table."""

    __slots__ = ("arms", "at", "chances", "labels", "rewards")

    def __init__(self, at: int, arms: Any, labels: Any, chances: Any) -> None:
        self.at, self.arms, self.labels, self.chances = at, arms, labels, chances
        self.rewards = np.full(len(arms), np.nan)


def export(groups: Iterable[Group], policy: str, missing: str = "drop") -> dict[str, Any]:
    """The decisions of `policy` as columns. O(events).

    Parameters
    ----------
    groups
        Those of a store, in order.
    policy
        Its name; if it was deleted and made again, only the last of that name is meant.
    missing
        Decisions of which not all rewards were told: ``"drop"`` leaves them out (off-policy evaluation needs whole
        ones), ``"zero"`` counts 0 for what was never told (clicks), ``"keep"`` gives the rows that are known.
    """
    one_of(missing, "missing", MISSING)
    decided: dict[int, _Decided] = {}
    seen: set[str] = set()
    for group in groups:
        for event in decode_group(group.payload):
            _take(event, policy, decided, seen)
    if not decided:
        if policy not in seen:
            told = unknown(f"policy = {policy!r} is not in the log", policy, sorted(seen) or ["(none)"])
            raise ParameterError(told)
        raise ParameterError(f"policy = {policy!r} has made no decision that the log still holds")
    return _columns(list(decided.values()), missing)


def _take(event: AnyEvent, policy: str, decided: dict[int, _Decided], seen: set[str]) -> None:
    name = getattr(event, "policy", None)
    if name is not None:
        seen.add(name)
    if name != policy:
        return
    if type(event) in (Created, Removed):
        decided.clear()
    elif type(event) is Selected:
        arms = unpack_arms(event.arms)
        chances = unpack_numbers(event.chances) if event.chances else None
        start = 0
        for number, size in enumerate(event.sizes or [len(arms)], event.first):
            part = slice(start, start + size)
            decided[number] = _Decided(
                event.at,
                arms[part],
                None if event.labels is None else event.labels[part],
                None if chances is None else chances[part],
            )
            start += size
    elif type(event) is Rewarded and event.number in decided:
        places = np.frombuffer(event.places, dtype="<u4") if event.places else slice(None)
        decided[event.number].rewards[places] = unpack_numbers(event.rewards)


def _columns(decided: list[_Decided], missing: str) -> dict[str, Any]:
    if missing == "drop":
        decided = [one for one in decided if len(one.arms) and not np.isnan(one.rewards).any()]
    if not decided:
        raise ParameterError("no decision has all its rewards: take missing = 'zero' or 'keep'")
    size = [len(one.arms) for one in decided]
    columns: dict[str, Any] = {
        "round": np.repeat(np.arange(len(decided)), size),
        "arm": np.concatenate([one.arms for one in decided]),
        "reward": np.concatenate([one.rewards for one in decided]),
        "at": np.repeat(np.array([one.at for one in decided], dtype=np.int64), size),
    }
    if all(one.labels is not None for one in decided):
        texts = [
            label if isinstance(label, str) else msgspec.json.encode(label).decode()
            for one in decided
            for label in one.labels
        ]
        number: dict[str, int] = {}
        columns["arm"] = np.array([number.setdefault(text, len(number)) for text in texts], dtype=np.int64)
        columns["label"] = texts
    if all(one.chances is not None for one in decided):
        columns["propensity"] = np.concatenate([one.chances for one in decided])
    known = ~np.isnan(columns["reward"])
    if missing == "zero":
        columns["reward"] = np.where(known, columns["reward"], 0.0)
    elif not known.all():
        columns = {name: _some(column, known) for name, column in columns.items()}
    return columns


def _some(column: Any, which: Any) -> Any:
    if isinstance(column, list):
        return [value for value, wanted in zip(column, which.tolist(), strict=True) if wanted]
    return column[which]
