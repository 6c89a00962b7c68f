"""What a policy's decisions wait for: each arm of each decision counts once.

Decisions are numbered from 0. The ledger keeps the youngest ones, in rings of plain numbers: no object per decision, so
that a million of them cost about 125 bytes each and a fork copies nothing. The rings have their full size from the
start, but memory is taken only as they fill. A decision leaves when its time to live is over, or, oldest first, when
there are too many. What that means depends on numbers and times in the log alone, never on how the rings happen to lie.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from semibandit.arms import IntArray
from semibandit.policies.many import Kept

# What is known of one arm of a decision.
COUNTED, WAITS, GONE, DROPPED = 0, 1, 2, 3

_ONES = bytes([WAITS]) * 64
_NONE: IntArray = np.empty(0, dtype=np.int64)
_FEWEST = 64
#: Decisions that may come in one go before the oldest leave for them.
BEYOND = 2000


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
    usual
        How many arms a decision usually has at most: how large the rings are made.
    """

    def __init__(self, ttl: int | None, most: int, most_arms: int, usual: int = 1) -> None:
        self.ttl, self.most, self.most_arms = ttl, most, most_arms
        self.next = self.oldest = 0
        #: Decisions of which at least one arm waits, and the arms of all that are kept.
        self.pending = self.kept_arms = 0
        self._make_slots(most)
        # Room for `BEYOND` more, in one piece wherever the ring is cut.
        self._make_places(min(most * usual, most_arms) + 2 * (1 + min(BEYOND, most)) * usual)
        self._head = 0

    def _make_slots(self, most: int) -> None:
        slots = 1 << max(most - 1, _FEWEST - 1).bit_length()
        self._mask = slots - 1
        self._columns = {name: np.zeros(slots, dtype=np.int64) for name in ("start", "size", "left", "at")}
        # One number of a memoryview is read in a third of the time that one of an array takes.
        self._start, self._size, self._left, self._at = (column.data for column in self._columns.values())

    def _make_places(self, total: int) -> None:
        total = max(total, _FEWEST)
        self._arms: IntArray = np.zeros(total, dtype=np.int64)
        self._marks: npt.NDArray[np.uint8] = np.zeros(total, dtype=np.uint8)
        self._flags = self._marks.data

    def __len__(self) -> int:
        return self.next - self.oldest

    def _all(self) -> Iterator[tuple[int, int, int]]:
        """(number, start, size) of all that are kept."""
        for number in range(self.oldest, self.next):
            slot = number & self._mask
            yield number, self._start[slot], self._size[slot]

    # -- decisions come ----------------------------------------------------------------------------------

    def surplus(self, decisions: int, arms: int) -> int:
        """How many of the oldest must leave before so many decisions with so many arms in all come. O(1) if none."""
        kept = self.next - self.oldest
        more = self.kept_arms + arms - self.most_arms
        if more <= 0 and kept + decisions <= self.most:
            return 0
        n = min(max(0, kept + decisions - self.most), kept)
        if more > 0:
            size = 0
            for number in range(self.oldest, self.next):
                if number - self.oldest >= n and size >= more:
                    break
                size += self._size[number & self._mask]
                n = max(n, number + 1 - self.oldest)
        return n

    def add(self, arms: IntArray, at: int) -> int:
        """The number of a new decision; all its arms wait. O(D)."""
        number, size = self.next, arms.shape[0]
        if number - self.oldest > self._mask:
            self._widen(2 * (self._mask + 1))
        start = self._room(size)
        end, slot = start + size, number & self._mask
        self._start[slot] = start
        self._size[slot] = self._left[slot] = size
        self._at[slot] = at
        self._arms[start:end] = arms
        self._flags[start:end] = _ONES[:size] if size <= 64 else bytes([WAITS]) * size
        self._head = end
        self.next = number + 1
        self.kept_arms += size
        if size:
            self.pending += 1
        return number

    def add_many(self, arms: IntArray, sizes: IntArray, at: Any) -> int:
        """`add` of several decisions, made at `at` (one time, or one each): the number of the first. O(arms)."""
        first, n, total = self.next, len(sizes), len(arms)
        while first + n - self.oldest > self._mask + 1:
            self._widen(2 * (self._mask + 1))
        start = self._room(total)
        ends = sizes.cumsum()
        columns, slot = self._columns, first & self._mask
        # Mostly one piece of the ring, which takes a third of the time.
        where: Any = slice(slot, slot + n)
        if slot + n > self._mask + 1:
            where = np.arange(first, first + n) & self._mask
        columns["start"][where] = ends + (start - sizes)
        columns["size"][where] = columns["left"][where] = sizes
        columns["at"][where] = at
        self._arms[start : start + total] = arms
        self._marks[start : start + total] = WAITS
        self._head = start + total
        self.next = first + n
        self.kept_arms += total
        self.pending += int(np.count_nonzero(sizes))
        return first

    def _widen(self, slots: int) -> None:
        """More places for decisions. O(decisions kept)."""
        numbers = np.arange(self.oldest, self.next)
        old = {name: column[numbers & self._mask] for name, column in self._columns.items()}
        self._make_slots(slots)
        for name, column in old.items():
            self._columns[name][numbers & self._mask] = column

    def _room(self, size: int) -> int:
        """Where `size` arms can stand in one piece."""
        total, head = len(self._flags), self._head
        if self.oldest == self.next:
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

    def _places(self, n: int | None = None) -> tuple[IntArray, IntArray]:
        """The sizes of the n oldest decisions (None: of all), and where each of their arms stands. O(these arms)."""
        end = self.next if n is None else self.oldest + n
        return self._places_of(np.arange(self.oldest, end) & self._mask)

    def _places_of(self, slots: IntArray) -> tuple[IntArray, IntArray]:
        size = self._columns["size"][slots]
        shift = self._columns["start"][slots] - (np.cumsum(size) - size)
        return size, np.repeat(shift, size) + np.arange(int(size.sum()))

    def _rebuild(self, total: int) -> None:
        """All arms side by side from the start, with room for `total`. O(arms kept)."""
        size, places = self._places()
        arms, marks = self._arms[places], self._marks[places]
        self._make_places(total)
        self._arms[: len(arms)], self._marks[: len(arms)] = arms, marks
        numbers = np.arange(self.oldest, self.next) & self._mask
        self._columns["start"][numbers] = np.cumsum(size) - size
        self._head = len(arms)

    # -- decisions leave ---------------------------------------------------------------------------------

    def due(self, now: int) -> int:
        """How many of the oldest decisions are past their time to live. O(1) if none is."""
        oldest = self.oldest
        if self.ttl is None or oldest == self.next or self._at[oldest & self._mask] + self.ttl > now:
            return 0
        number, at = oldest + 1, now - self.ttl
        while number < self.next and self._at[number & self._mask] <= at:
            number += 1
        return number - oldest

    def safe_until(self, now: int) -> float:
        """When the first decision will be past its time to live, of those that are kept or come from now on. O(1)."""
        if self.ttl is None:
            return math.inf
        return (now if self.oldest == self.next else self._at[self.oldest & self._mask]) + self.ttl

    def room(self, one_for_one: bool) -> int:
        """How many decisions may come before any leaves; or, `one_for_one`, before the rings must be larger. O(1)."""
        most = min(self.most + min(BEYOND, self.most), self._mask + 1) if one_for_one else self.most
        return most - (self.next - self.oldest)

    def is_late(self, number: int, now: int) -> bool:
        """Whether a kept decision is past its time to live. O(1)."""
        return self.ttl is not None and self._at[number & self._mask] + self.ttl <= now

    def made_at(self, number: int) -> int:
        """When a kept decision was made. O(1)."""
        return self._at[number & self._mask]

    def drop(self, n: int, named: bool = True) -> tuple[int, IntArray]:
        """The n oldest decisions leave: how many of them waited, and the arms that did, in order. O(their arms).

        `named`: whether anybody asks for these arms; O(n) if not.
        """
        lost = self._waiting_of_oldest(n) if named else _NONE
        slot = self.oldest & self._mask
        if n == 1:  # most often, and quicker by hand
            pending, size = int(self._left[slot] > 0), self._size[slot]
        else:
            slots: Any = slice(slot, slot + n)
            if slot + n > self._mask + 1:
                slots = np.arange(self.oldest, self.oldest + n) & self._mask
            pending = int(np.count_nonzero(self._columns["left"][slots]))
            size = int(self._columns["size"][slots].sum())
        self.kept_arms -= size
        self.pending -= pending
        self.oldest += n
        if self.oldest == self.next:
            self._head = 0
        return pending, lost

    def _waiting_of_oldest(self, n: int) -> IntArray:
        if n == 1:
            return self.waiting_of(self.oldest)
        places = self._places(n)[1]
        return self._arms[places[self._marks[places] == WAITS]]

    # -- what one decision waits for ---------------------------------------------------------------------

    def arms_of(self, number: int) -> IntArray:
        """The arms of a kept decision, a view that the next `add` may change. O(1)."""
        slot = number & self._mask
        start = self._start[slot]
        return self._arms[start : start + self._size[slot]]

    def size_of(self, number: int) -> int:
        """How many arms a kept decision has. O(1)."""
        return self._size[number & self._mask]

    def flags_of(self, number: int) -> bytes:
        """For each arm of a kept decision `COUNTED`, `WAITS`, `GONE` or `DROPPED`. O(D)."""
        slot = number & self._mask
        start = self._start[slot]
        return bytes(self._flags[start : start + self._size[slot]])

    def waiting_of(self, number: int) -> IntArray:
        """Those arms of a kept decision that wait; a copy. O(D)."""
        slot = number & self._mask
        left = self._left[slot]
        if not left:
            return np.empty(0, dtype=np.int64)
        arms = self.arms_of(number)
        if left == len(arms):
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

    def settle_many(self, numbers: IntArray) -> None:
        """`settle` of all places of each of these kept decisions. O(their arms)."""
        slots = numbers & self._mask
        left = self._columns["left"]
        self.pending -= int(np.count_nonzero(left[slots]))
        left[slots] = 0
        self._marks[self._places_of(slots)[1]] = COUNTED

    def kept(self) -> Kept:
        """Where the arms of the decisions that are kept stand; true until the next one comes or leaves. O(1)."""
        columns = self._columns
        return Kept(self.next, self._mask, self._arms, columns["start"], columns["size"])

    def withdraw(self, gone: IntArray) -> IntArray:
        """These arms are to be something new: no decision waits for them any more. O(arms kept).

        Returns the arm of each play that waited, oldest decision first.
        """
        size, places = self._places()
        hit = (self._marks[places] == WAITS) & np.isin(self._arms[places], gone)
        if not hit.any():
            return np.empty(0, dtype=np.int64)
        self._marks[places[hit]] = GONE
        owner = np.repeat(np.arange(self.oldest, self.next), size)[hit]
        lost = np.bincount(owner - self.oldest, minlength=len(size))
        numbers = np.arange(self.oldest, self.next) & self._mask
        before = self._columns["left"][numbers]
        self._columns["left"][numbers] = before - lost
        self.pending -= int(((before > 0) & (before == lost)).sum())
        return self._arms[places[hit]]

    # -- files -------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """All of it, as MessagePack can hold it, however the rings lie. O(arms kept)."""
        numbers = np.arange(self.oldest, self.next) & self._mask
        columns = {
            name: self._columns[name][numbers].astype("<i8").tobytes() for name in ("size", "left", "at")
        }
        _, places = self._places()
        return {
            "next": self.next,
            "oldest": self.oldest,
            **columns,
            "arms": self._arms[places].astype("<i8").tobytes(),
            "flags": self._marks[places].tobytes(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Put what `state` gave in place of this empty ledger's. O(arms kept)."""
        self.oldest, self.next = state["oldest"], state["next"]
        n = self.next - self.oldest
        size, left, at = (np.frombuffer(state[name], dtype="<i8") for name in ("size", "left", "at"))
        arms = np.frombuffer(state["arms"], dtype="<i8")
        marks = np.frombuffer(state["flags"], dtype=np.uint8)
        if not n == len(size) == len(left) == len(at) or not size.sum() == len(marks) == len(arms):
            raise ValueError("the ledger makes no sense")
        if n > self._mask + 1:
            self._make_slots(n)
        if len(arms) > len(self._arms):
            self._make_places(len(arms))
        numbers = np.arange(self.oldest, self.next) & self._mask
        for name, column in (("start", np.cumsum(size) - size), ("size", size), ("left", left), ("at", at)):
            self._columns[name][numbers] = column
        self.kept_arms = self._head = len(arms)
        self.pending = int((left > 0).sum())
        self._arms[: len(arms)], self._marks[: len(arms)] = arms, marks

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
