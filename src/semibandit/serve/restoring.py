"""From a snapshot and the rest of the log to a state: what a start does, and what a standby does all the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec

from semibandit.serve.events import AnyEvent, decode_group
from semibandit.serve.host import Host
from semibandit.serve.limits import Limits
from semibandit.serve.refusals import ReplayError
from semibandit.serve.snapshots import Shelf, newest_whole
from semibandit.serve.store import Store, StoreError

#: Events that are applied together: groups are often small.
_AT_ONCE = 4000


class Started(msgspec.Struct):
    """What a start found: the snapshot it began with, if any, and the events that it replayed."""

    snapshot: int | None
    replayed: int
    seconds: float


def load(store: Store, shelf: Shelf, limits: Limits, tell: Callable[..., Any]) -> tuple[Host, Started]:
    """The state that the newest whole snapshot and the log after it give."""
    began = time.perf_counter()

    def complain(why: str) -> None:
        tell("snapshot_damaged", error=why)

    shelf.open()
    begun = newest_whole(shelf, limits, complain)
    found, host = (None, Host(limits)) if begun is None else begun
    try:
        replayed = replay(store, host)
    except StoreError as error:
        if found is None and store.first() > 1:
            raise StoreError(f"{error}; and there is no whole snapshot to begin with", lasting=True) from None
        raise
    return host, Started(found, replayed, time.perf_counter() - began)


def replay(store: Store, host: Host) -> int:
    """Feed the rest of the log to `host`; how many events."""
    start = host.position
    waiting: list[AnyEvent] = []
    for group in store.read(start):
        try:
            events = decode_group(group.payload)
        except msgspec.MsgspecError as error:
            raise ReplayError(f"events {group.first} ff. of the log cannot be read: {error}") from None
        waiting += events[max(0, start - group.first + 1) :]
        if len(waiting) >= _AT_ONCE:
            host.apply_all(waiting)
            waiting = []
    host.apply_all(waiting)
    return host.position - start
