"""Which label has which arm: ids in reserve for each type, recycled when a label expires."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from semibandit.arms import IntArray
from semibandit.catalog.kinds import NOBODY, Kind


class _Nobody:
    """Stands where an arm has no label."""

    def __repr__(self) -> str:
        return "<nobody>"


FREE: Any = _Nobody()


class Plan(NamedTuple):
    """A new division of the arms: all types, the type of each arm, and the arms that labels without one get."""

    types: list[Any]
    type_of: IntArray
    given: dict[Any, int]


class Ids:
    """Labels and their arms. A label whose type has no arm in reserve waits for the next `plan`.

    `free[i]` holds the arms of type i that no label has; the last one is given next. `adopt` makes a plan come true;
    whoever calls it has told the policy before.
    """

    def __init__(self, kind: Kind, capacity: int) -> None:
        self.kind = kind
        self.capacity = max(capacity, kind.least)
        self.types: list[Any] = []
        self.number: dict[Any, int] = {}
        self.type_of: IntArray = np.empty(0, dtype=np.int64)
        self.free: list[list[int]] = []
        self.label_of: list[Any] = []
        self.id_of: dict[Any, int] = {}
        self.waiting: dict[Any, Any] = {}
        self.adopt(self.plan())

    def __len__(self) -> int:
        return len(self.id_of) + len(self.waiting)

    def __contains__(self, label: Any) -> bool:
        return label in self.id_of or label in self.waiting

    def type_for(self, label: Any) -> Any:
        """The type of a label that is there. O(1)."""
        if label in self.waiting:
            return self.waiting[label]
        return self.types[self.type_of[self.id_of[label]]]

    def take(self, label: Any, key: Any) -> int | None:
        """Give a new label an arm of type `key`, or let it wait (None). O(1)."""
        number = self.number.get(key)
        if number is None or not self.free[number]:
            self.waiting[label] = key
            return None
        arm = self.free[number].pop()
        self.label_of[arm], self.id_of[label] = label, arm
        return arm

    def release(self, label: Any) -> int | None:
        """Take the arm from a label, for others of its type; None if it had none yet. O(1)."""
        if label in self.waiting:
            del self.waiting[label]
            return None
        arm = self.id_of.pop(label)
        self.label_of[arm] = FREE
        self.free[self.type_of[arm]].append(arm)
        return arm

    # -- a new division ----------------------------------------------------------------------------------

    def plan(self) -> Plan:
        """Arms for all who wait, and a new reserve. Arms that have a label keep their type; all others may get a new
        one. The number of arms never falls. O(K).

        Where the types are known, the reserve is as large as all labels together: half of it is divided by how many of
        a type there are, half evenly. So the next plan is due when a type has grown by half, or by as much as its even
        share. Where types may be new, those that several labels share have as many again in reserve.
        """
        held = np.array(sorted(self.id_of.values()), dtype=np.int64)
        old = (
            np.bincount(self.type_of[held], minlength=len(self.types)) if held.size else np.zeros(0, np.int64)
        )
        count = Counter({key: int(n) for key, n in zip(self.types, old, strict=False) if n})
        coming = Counter(self.waiting.values())
        count.update(coming)
        known = self.kind.types
        types = list(count) if known is None else known
        size = [count[key] for key in types]
        n, before = sum(size), self.type_of.size
        if known is None:
            spare = [part if part > 1 else 0 for part in size]
            # At least one arm of nobody's, so that the matroid always has something to play.
            total = max(before, self.capacity, n + sum(spare) + 1)
        else:
            total = max(2 * n, before, self.capacity, n + 2 * len(types))
            spare = _divide(total - n, size)
        need = [coming[key] + part for key, part in zip(types, spare, strict=True)]
        type_of = np.full(total, NOBODY, dtype=np.int64)
        number = {key: i for i, key in enumerate(types)}
        renumbered = np.array([number.get(key, NOBODY) for key in self.types], dtype=np.int64)
        type_of[held] = renumbered[self.type_of[held]] if held.size else NOBODY
        empty = np.ones(total, dtype=np.bool_)
        empty[held] = False
        pool = np.flatnonzero(empty)
        type_of[pool[: sum(need)]] = np.repeat(np.arange(len(types)), need)
        first = dict(zip(types, (np.cumsum(need) - need).tolist(), strict=True)) if types else {}
        given = {}
        for label, key in self.waiting.items():
            given[label] = int(pool[first[key]])
            first[key] += 1
        return Plan(list(types), type_of, given)

    def adopt(self, plan: Plan) -> None:
        """Divide the arms as planned. O(K)."""
        self.types, self.type_of = plan.types, plan.type_of
        self.number = {key: i for i, key in enumerate(self.types)}
        self.label_of += [FREE] * (self.type_of.size - len(self.label_of))
        for label, arm in plan.given.items():
            self.label_of[arm], self.id_of[label] = label, arm
        self.waiting = {}
        self._find_free()

    def restore(self, types: list[Any], type_of: IntArray, id_of: dict[Any, int]) -> None:
        """Take over what a file tells. O(K)."""
        self.label_of = [FREE] * type_of.size
        self.adopt(Plan(types, type_of, id_of))

    def order_free(self, arms: list[int]) -> None:
        """Hand out the arms that no label has in this order, last first; a `ValueError` if they are others. O(K)."""
        if sorted(arms) != sorted(arm for some in self.free for arm in some):
            raise ValueError("the arms without a label make no sense")
        self.free = [[] for _ in self.types]
        for arm in arms:
            self.free[self.type_of[arm]].append(arm)

    def _find_free(self) -> None:
        empty = np.ones(self.type_of.size, dtype=np.bool_)
        empty[list(self.id_of.values())] = False
        arms = np.flatnonzero(empty & (self.type_of != NOBODY))[::-1]
        arms = arms[np.argsort(self.type_of[arms], kind="stable")]
        ends = np.searchsorted(self.type_of[arms], np.arange(1, len(self.types)))
        self.free = [part.tolist() for part in np.split(arms, ends)] if self.types else []

    def _check(self) -> None:
        """Assert all invariants. O(K)."""
        assert len(self.label_of) == self.type_of.size
        for label, arm in self.id_of.items():
            assert self.label_of[arm] == label
        free = [arm for arms in self.free for arm in arms]
        assert len(set(free)) == len(free)
        for i, arms in enumerate(self.free):
            assert all(self.type_of[arm] == i and self.label_of[arm] is FREE for arm in arms)
        nobody = int((self.type_of == NOBODY).sum())
        assert len(free) + len(self.id_of) + nobody == self.type_of.size
        assert not self.waiting.keys() & self.id_of.keys()


def _divide(total: int, size: list[int]) -> list[int]:
    """`total` in whole parts: half evenly, the rest by size. O(n)."""
    even = _even(total // 2, len(size))
    rest, n = total - total // 2, sum(size)
    if not n:
        return [a + b for a, b in zip(even, _even(rest, len(size)), strict=True)]
    share = [rest * part // n for part in size]
    left = _even(rest - sum(share), len(size))
    return [a + b + c for a, b, c in zip(even, share, left, strict=True)]


def _even(total: int, parts: int) -> list[int]:
    return [total // parts + (i < total % parts) for i in range(parts)]
