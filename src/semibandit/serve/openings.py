"""What decisions are called: an id names the opening of the log in which it was made, the policy, and a number.

A state that was copied away and taken back later gives the same numbers again, but in another opening. So a decision
that was made in between, and lost, is unknown, and is not taken for the other one of its number.
"""

from __future__ import annotations

from typing import Any

#: Openings that are remembered; decisions of earlier ones are unknown.
_MOST = 1000


class Openings:
    """The tags of all openings, and for each the number of the first decision of every policy. O(1) for the last."""

    def __init__(self) -> None:
        self._known: list[tuple[str, dict[int, int]]] = []
        self.tag = ""

    def add(self, tag: str, first: dict[int, int]) -> None:
        """The log is opened again: policy `serial` goes on with decision ``first[serial]``."""
        self._known.append((tag, first))
        del self._known[:-_MOST]
        self.tag = tag

    def id_of(self, serial: int, number: int) -> str:
        """What clients call a decision, perhaps of an earlier opening."""
        for tag, first in reversed(self._known):
            if number >= first.get(serial, 0):
                return f"{tag}-{serial}-{number}"
        return f"{self.tag}-{serial}-{number}"

    def number_of(self, serial: int, decision: str) -> int:
        """The number of a decision of this policy, if its opening could have made it; -1 if not."""
        tag, other, number = _parts(decision)
        return number if other == serial and self._was_made(tag, serial, number) else -1

    def _was_made(self, tag: str, serial: int, number: int) -> bool:
        if tag == self.tag:
            return bool(self._known) and number >= self._known[-1][1].get(serial, 0)
        end: int | None = None
        for name, first in reversed(self._known):
            if name == tag:
                return end is not None and first.get(serial, 0) <= number < end
            end = first.get(serial)
            if end is None:  # the policy is younger than this opening
                return False
        return False

    def state(self) -> list[Any]:
        """As MessagePack can hold it."""
        return [[tag, list(first.items())] for tag, first in self._known]

    def restore(self, state: list[Any]) -> None:
        """The inverse of `state`."""
        self._known = [(tag, dict(first)) for tag, first in state]
        self.tag = self._known[-1][0] if self._known else ""


def _parts(decision: str) -> tuple[str, int, int]:
    """Tag, serial and number of an id; numbers that no decision has if it is none."""
    parts = decision.split("-")
    if len(parts) == 3 and parts[1].isdecimal() and parts[2].isdecimal() and len(decision) < 60:
        if parts[1].isascii() and parts[2].isascii():
            return parts[0], int(parts[1]), int(parts[2])
    return "", -1, -1
