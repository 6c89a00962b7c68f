"""Where the log is kept: what the service asks of a store.

A store is an append-only list of groups of events. `append` returns when the group is on disk, and raises `StoreError`
if it cannot promise that; the service then answers nobody, and asks the store anew what it holds before it goes on. One
process at a time may hold a store.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
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

    def digest(self) -> bytes:
        """What tells a group that was damaged."""
        head = self.first.to_bytes(8, "little") + self.size.to_bytes(8, "little")
        return blake2b(self.payload, digest_size=8, salt=head).digest()


def in_order(rows: Iterable[tuple[int, int, bytes, bytes]], after: int, where: str) -> Iterator[Group]:
    """Groups from rows of (first, size, digest, payload) that end after `after`; each is whole, none missing."""
    expected = None
    for first, size, digest, payload in rows:
        group = Group(first, size, payload)
        if digest != group.digest():
            raise StoreError(f"{where}: events {first} ff. are damaged", lasting=True)
        if first > after + 1 if expected is None else first != expected:
            raise StoreError(
                f"{where}: events {expected or after + 1} to {first - 1} are missing", lasting=True
            )
        expected = first + size
        if expected > after + 1:
            yield group


def nobody(error: StoreError, /) -> None:
    """Who is told of a loss before anybody asked to be."""


class Store(Protocol):
    """A log. All methods may be called from any thread, one at a time.

    `where`: what to call it in messages, without any secret. `lost`: set by the service; called from any thread by a
    store that notices by itself that it can no longer be written.
    """

    where: str
    lost: Callable[[StoreError], None]

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


class SharedStore(Store, Protocol):
    """A store that several processes can reach, of which one leads and writes; the others can read and wait."""

    def attach(self) -> None:
        """Reach it without taking it. Again after an error: begin anew."""

    def try_take(self) -> bool:
        """Take it if nobody has it; whether it is taken now. Nobody who had it before can write after this."""


def sync_folder(path: Path) -> None:
    """What was created or renamed in this folder is on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some file systems cannot
            os.fsync(handle)
    finally:
        os.close(handle)
