"""What a policy's decisions wait for: each arm of each decision counts once.

Decisions are numbered from 0. The ledger keeps the youngest ones, in rings of plain numbers: no object per decision, so
that a million of them cost about 130 bytes each and a fork copies nothing. A decision leaves when its time to live is
over, or, oldest first, when there are too many. What that means depends on numbers and times in the log alone, never on
how the rings happen to lie.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from semibandit.arms import IntArray

# What is known of one arm of a decision.
COUNTED, WAITS, GONE, DROPPED = 0, 1, 2, 3

_FEWEST = 1024


class Ledger:
    """Decisions ``oldest .. next - 1``, their arms, when they were made, and which arms wait for a reward.

    Parameters
    ----------
    ttl
        Time to live in microseconds, None for ever.
    most
        How many decisions are kept.
    most_arms
        How many arms they may have together.
    """

    def __init__(self, ttl: int | None, most: int, most_arms: int) -> None:
        self.ttl, self.most, self.most_arms = ttl, most, most_arms
        self.next = self.oldest = 0
        #: Decisions of which at least one arm waits, and the arms of all that are kept.
        self.pending = self.kept_arms = 0
        self._mask = _FEWEST - 1
        self._start, self._size, self._left, self._at = (_zeros(_FEWEST) for _ in range(4))
        self._arms: IntArray = np.zeros(_FEWEST, dtype=np.int64)
        self._flags = bytearray(_FEWEST)
        self._head = 0

    def __len__(self) -> int:
        return self.next - self.oldest

    def _all(self) -> Iterator[tuple[int, int, int]]:
        """(number, start, size) of all that are kept."""
        for number in range(self.oldest, self.next):
            slot = number & self._mask
            yield number, self._start[slot], self._size[slot]

    # -- decisions come ----------------------------------------------------------------------------------

    def is_full(self, size: int) -> bool:
        """Whether the oldest must leave before a decision of `size` arms comes. O(1)."""
        return len(self) > 0 and (len(self) >= self.most or self.kept_arms + size > self.most_arms)

    def add(self, arms: IntArray, at: int) -> int:
        """The number of a new decision; all its arms wait. O(D) amortised."""
        size = len(arms)
        if len(self) > self._mask:
            self._widen()
        start = self._room(size)
        number = self.next
        slot = number & self._mask
        self._start[slot], self._size[slot], self._left[slot], self._at[slot] = start, size, size, at
        self._arms[start : start + size] = arms
        self._flags[start : start + size] = b"\x01" * size
        self._head = start + size
        self.next = number + 1
        self.kept_arms += size
        if size:
            self.pending += 1
        return number

    def _widen(self) -> None:
        """Twice the places for decisions."""
        wide = 2 * (self._mask + 1)
        for name in ("_start", "_size", "_left", "_at"):
            old, new = getattr(self, name), _zeros(wide)
            for number in range(self.oldest, self.next):
                new[number & (wide - 1)] = old[number & self._mask]
            setattr(self, name, new)
        self._mask = wide - 1

    def _room(self, size: int) -> int:
        """Where `size` arms can stand in one piece."""
        total, head = len(self._flags), self._head
        if len(self) == 0:
            if size <= total:
                return 0
        else:
            tail = self._start[self.oldest & self._mask]
            if head > tail or (head == tail and self.kept_arms == 0):
                if head + size <= total:
                    return head
                if size < tail:
                    return 0
            elif head + size < tail:
                return head
        self._rebuild(max(2 * total, self.kept_arms + 2 * size))
        return self._head

    def _rebuild(self, total: int) -> None:
        """All arms side by side from the start, with room for `total`."""
        arms, flags, head = np.zeros(total, dtype=np.int64), bytearray(total), 0
        for number, start, size in self._all():
            arms[head : head + size] = self._arms[start : start + size]
            flags[head : head + size] = self._flags[start : start + size]
            self._start[number & self._mask] = head
            head += size
        self._arms, self._flags, self._head = arms, flags, head

    # -- decisions leave ---------------------------------------------------------------------------------

    def is_due(self, now: int) -> bool:
        """Whether the oldest decision is past its time to live. O(1)."""
        return self.ttl is not None and self.oldest < self.next and self.is_late(self.oldest, now)

    def is_late(self, number: int, now: int) -> bool:
        """Whether a kept decision is past its time to live. O(1)."""
        return self.ttl is not None and self._at[number & self._mask] + self.ttl <= now

    def made_at(self, number: int) -> int:
        """When a kept decision was made. O(1)."""
        return self._at[number & self._mask]

    def drop_oldest(self) -> tuple[int, IntArray]:
        """The oldest decision leaves: its number and those of its arms that waited. O(D)."""
        number = self.oldest
        slot = number & self._mask
        size = self._size[slot]
        waited = self.waiting_of(number)
        self.oldest += 1
        self.kept_arms -= size
        if self._left[slot]:
            self.pending -= 1
        if self.oldest == self.next:
            self._head = 0
        return number, waited

    # -- what one decision waits for ---------------------------------------------------------------------

    def arms_of(self, number: int) -> IntArray:
        """The arms of a kept decision, a view that the next `add` may change. O(1)."""
        slot = number & self._mask
        start = self._start[slot]
        return self._arms[start : start + self._size[slot]]

    def flags_of(self, number: int) -> bytearray:
        """For each arm of a kept decision `COUNTED`, `WAITS`, `GONE` or `DROPPED`; a copy. O(D)."""
        slot = number & self._mask
        start = self._start[slot]
        return self._flags[start : start + self._size[slot]]

    def waiting_of(self, number: int) -> IntArray:
        """Those arms of a kept decision that wait; a copy. O(D)."""
        slot = number & self._mask
        if not self._left[slot]:
            return np.empty(0, dtype=np.int64)
        arms = self.arms_of(number)
        if self._left[slot] == len(arms):
            return arms.copy()
        return arms[np.frombuffer(self.flags_of(number), dtype=np.uint8) == WAITS]

    def left_of(self, number: int) -> int:
        """How many arms of a kept decision wait. O(1)."""
        return self._left[number & self._mask]

    def settle(self, number: int, places: list[int] | None) -> None:
        """These places of a kept decision wait no longer, all if None: rewards came. O(places)."""
        slot = number & self._mask
        start, before = self._start[slot], self._left[slot]
        left = before
        if places is None:
            size = self._size[slot]
            self._flags[start : start + size] = bytes(size)
            left = 0
        else:
            for place in places:
                if self._flags[start + place] == WAITS:
                    self._flags[start + place] = COUNTED
                    left -= 1
                elif self._flags[start + place] == GONE:
                    self._flags[start + place] = DROPPED
        self._left[slot] = left
        if before and not left:
            self.pending -= 1

    def withdraw(self, gone: IntArray) -> IntArray:
        """These arms are to be something new: no decision waits for them any more. O(arms kept).

        Returns the arm of each play that waited, oldest decision first.
        """
        found: list[int] = []
        if not len(self):
            return np.empty(0, dtype=np.int64)
        waits = np.frombuffer(self._flags, dtype=np.uint8) == WAITS
        hit = waits & np.isin(self._arms, gone)
        del waits
        if not hit.any():
            return np.empty(0, dtype=np.int64)
        for number, start, size in self._all():
            places = np.flatnonzero(hit[start : start + size])
            for place in places.tolist():
                self._flags[start + place] = GONE
                found.append(int(self._arms[start + place]))
            if places.size:
                slot = number & self._mask
                self._left[slot] -= places.size
                if not self._left[slot]:
                    self.pending -= 1
        return np.array(found, dtype=np.int64)

    # -- files -------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """All of it, as MessagePack can hold it, however the rings lie. O(arms kept)."""
        numbers = np.arange(self.oldest, self.next) & self._mask
        columns = {
            name: np.frombuffer(ring, dtype=np.int64)[numbers].astype("<i8").tobytes()
            for name, ring in (("size", self._size), ("left", self._left), ("at", self._at))
        }
        pieces = [(start, start + size) for _, start, size in self._all()]
        return {
            "next": self.next,
            "oldest": self.oldest,
            **columns,
            "arms": b"".join(self._arms[a:b].astype("<i8").tobytes() for a, b in pieces),
            "flags": b"".join(self._flags[a:b] for a, b in pieces),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Put what `state` gave in place of this empty ledger's. O(arms kept)."""
        self.oldest, self.next = state["oldest"], state["next"]
        n = self.next - self.oldest
        size, left, at = (np.frombuffer(state[name], dtype="<i8") for name in ("size", "left", "at"))
        if not n == len(size) == len(left) == len(at) or size.sum() != len(state["flags"]):
            raise ValueError("the ledger makes no sense")
        while self._mask + 1 < n:
            self._mask = 2 * self._mask + 1
        slots = np.arange(self.oldest, self.next) & self._mask
        for name, column in (
            ("_start", np.cumsum(size) - size),
            ("_size", size),
            ("_left", left),
            ("_at", at),
        ):
            ring = _zeros(self._mask + 1)
            np.frombuffer(ring, dtype=np.int64)[slots] = column
            setattr(self, name, ring)
        self.kept_arms = self._head = int(size.sum())
        self.pending = int((left > 0).sum())
        total = max(_FEWEST, self.kept_arms)
        self._arms = np.zeros(total, dtype=np.int64)
        self._arms[: self._head] = np.frombuffer(state["arms"], dtype="<i8")
        self._flags = bytearray(total)
        self._flags[: self._head] = state["flags"]

    def _check(self) -> None:
        """Assert all invariants. O(arms kept)."""
        spans = []
        pending = arms = 0
        for number, start, size in self._all():
            flags = self.flags_of(number)
            assert len(flags) == size and set(flags) <= {COUNTED, WAITS, GONE, DROPPED}
            assert self._left[number & self._mask] == flags.count(WAITS)
            pending += WAITS in flags
            arms += size
            spans.append((start, start + size))
        assert (self.pending, self.kept_arms) == (pending, arms)
        assert len(self) <= self._mask + 1
        full = sorted(span for span in spans if span[0] < span[1])
        assert all(a[1] <= b[0] for a, b in pairwise(full)), "no two share a place"


def _zeros(n: int) -> array[int]:
    return array("q", bytes(8 * n))
