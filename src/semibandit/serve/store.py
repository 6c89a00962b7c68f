"""Where the log is kept: what the service asks of a store.

A store is an append-only list of groups of events. `append` returns when the group is on disk, and raises `StoreError`
if it cannot promise that; the service then answers nobody, and asks the store anew what it holds before it goes on. One
process at a time may hold a store.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from semibandit.errors import SemibanditError


class StoreError(SemibanditError):
    """The log cannot be written or read now. `lasting`: trying again will not help, it is damaged or of other kind."""

    def __init__(self, message: str, *, lasting: bool = False) -> None:
        super().__init__(message)
        self.lasting = lasting


class Taken(StoreError):
    """Another process holds the store."""

    def __init__(self, message: str) -> None:
        super().__init__(message, lasting=True)


class Group(NamedTuple):
    """`size` events, of which the first is number `first` (counted from 1), as `events.encode_group` packs them."""

    first: int
    size: int
    payload: bytes


class Store(Protocol):
    """A log. All methods may be called from any thread, one at a time.

    `where`: what to call it in messages.
    """

    where: str

    def open(self) -> None:
        """Take the store for this process; `Taken` if another one has it. Again after an error: begin anew."""

    def last(self) -> int:
        """The number of the last event, 0 if there is none."""

    def first(self) -> int:
        """The number of the first event that is still kept, ``last() + 1`` if none is."""

    def append(self, group: Group) -> None:
        """The group follows the last one; on disk when this returns."""

    def read(self, after: int) -> Iterator[Group]:
        """Groups with events later than number `after`, in order; `StoreError` where one is damaged or missing."""

    def prune(self, before: int) -> bool:
        """Forget some groups all of whose events are earlier than number `before`; whether there are more of them."""

    def size(self) -> int:
        """Bytes on disk."""

    def close(self) -> None:
        """Let go of it; safe to call twice."""


def sync_folder(path: Path) -> None:
    """What was created or renamed in this folder is on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some file systems cannot
            os.fsync(handle)
    finally:
        os.close(handle)
