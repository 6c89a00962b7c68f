"""What a shard was told, kept until a snapshot of the shard holds it.

Deeds are numbered from 1. Those that the shard has not yet acknowledged go along with the next question. If it is lost,
a new one begins at its last snapshot and is told all deeds since.
"""

from __future__ import annotations

from typing import Any

from semibandit.distributed.shard import Deed, Snapshot


class Ledger:
    """The deeds of one shard. `keeps`: whether they are kept until a snapshot covers them.

    >>> ledger = Ledger(keeps=True)
    >>> ledger.add(("delete", [3]), 1); ledger.add(("insert", [3]), 1)
    >>> ledger.waiting()
    (1, [('delete', [3]), ('insert', [3])])
    >>> ledger.done(2); ledger.waiting(), ledger.rows
    ((3, []), 2)
    >>> ledger.cover(1, b"..."); ledger.begin_anew(); ledger.waiting()
    (2, [('insert', [3])])
    """

    def __init__(self, keeps: bool) -> None:
        self.keeps = keeps
        self.snapshot: Snapshot | None = None
        self._covered = 0
        self._done = 0
        self._deeds: list[Deed] = []
        self._sizes: list[int] = []
        #: How many arms are named by the deeds that are kept, and by those that are not acknowledged.
        self.rows, self.behind = 0, 0

    @property
    def told(self) -> int:
        """The number of the last deed."""
        return self._covered + len(self._deeds)

    def add(self, deed: Deed, rows: int) -> None:
        """One more deed, that names so many arms. O(1)."""
        self._deeds.append(deed)
        self._sizes.append(rows)
        self.rows += rows
        self.behind += rows

    def waiting(self) -> tuple[int, list[Deed]]:
        """The number of the first deed that is not acknowledged, and all such. O(their number)."""
        return self._done + 1, self._deeds[self._done - self._covered :]

    def since(self) -> tuple[int, list[Deed]]:
        """The number of the first deed that no snapshot holds, and all such."""
        return self._covered + 1, self._deeds

    def done(self, number: int) -> None:
        """All deeds up to this one are acknowledged."""
        if number > self._done:
            self.behind -= sum(self._sizes[self._done - self._covered : number - self._covered])
            self._done = number
        if not self.keeps:
            self._drop(self._done)

    def cover(self, number: int, snapshot: Snapshot) -> None:
        """There is a snapshot that holds all deeds up to this one."""
        self.snapshot = snapshot
        self._drop(number)

    def _drop(self, number: int) -> None:
        n = number - self._covered
        self.rows -= sum(self._sizes[:n])
        del self._deeds[:n], self._sizes[:n]
        self._covered = number

    def begin_anew(self) -> None:
        """A new shard was made from the snapshot: what came later is to be told again."""
        self._done, self.behind = self._covered, self.rows

    def take_over(self, number: int, snapshot: Snapshot) -> None:
        """Begin with a shard that has done so many deeds elsewhere."""
        self._covered = self._done = number
        self.snapshot = snapshot

    def state(self) -> dict[str, Any]:
        """For `describe`."""
        return {"deeds": self.told, "kept": len(self._deeds)}
