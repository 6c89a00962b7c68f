"""Group commit: one thread that writes, one write for all who wait.

Whoever changed the state hands its encoded event over and waits; the thread takes all that came while it wrote the last
group (and a moment longer, where many wait), appends them as one, and wakes everybody with one call into the event
loop. After a failure nobody is woken with success any more, until the service has begun anew from what the log really
holds.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

from semibandit.serve.events import encode_group
from semibandit.serve.store import Group, Store, StoreError

# Where more than _FEW waited for the last group, the next one is gathered for so many seconds a waiter, at most for
# _LONGEST: every group takes Python's lock from the event loop several times, so larger ones leave it more time for
# requests (64 connections: 30 to 40 % more of them, and shorter waits).
_FEW, _EACH, _LONGEST = 4, 50e-6, 2e-3

Waiter = asyncio.Future[None]


class Committer:
    """Writes groups of events to `store`, from the one that follows number `position`.

    `failed`: called in the event loop, once, with the error, when a group could not be written. `written`: called in
    the event loop after each group with its events, the seconds it took, and its number of bytes.
    """

    def __init__(
        self,
        store: Store,
        position: int,
        loop: asyncio.AbstractEventLoop,
        failed: Callable[[StoreError], None],
        written: Callable[[int, float, int], None],
    ) -> None:
        self.store, self._loop, self._failed, self._written = store, loop, failed, written
        self._next = position + 1
        self._events: list[bytes] = []
        self._waiters: list[Waiter] = []
        self._change = threading.Lock()
        self._wake = threading.Event()
        self._stopping = False
        self._crowd = 0  # how many waited for the last group
        self._chores: list[Callable[[], bool]] = []
        self.error: StoreError | None = None
        #: Events handed over, and events on disk.
        self.handed = self.durable = position
        self._thread = threading.Thread(target=self._run, name="semibandit-log", daemon=True)
        self._thread.start()

    def put(self, events: list[bytes]) -> Waiter:
        """Hand over events that belong together; done when they are on disk. In the event loop only."""
        waiter = self._loop.create_future()
        if self.error is not None:
            waiter.set_exception(self.error)
            waiter.exception()  # perhaps nobody fetches it
            return waiter
        with self._change:
            self._events += events
            self._waiters.append(waiter)
        self.handed += len(events)
        if not self._wake.is_set():
            self._wake.set()
        return waiter

    def barrier(self) -> Waiter | None:
        """Done when all that was handed over is on disk; None if it is."""
        if self.error is None and self.durable == self.handed:
            return None
        return self.put([])

    def add_chore(self, chore: Callable[[], bool]) -> None:
        """Let the thread call `chore` between groups, again and again while it returns True."""
        with self._change:
            self._chores.append(chore)
        self._wake.set()

    def _do_chore(self) -> None:
        with self._change:
            chore = self._chores[0] if self._chores else None
        if chore is None:
            return
        try:
            more = chore()
        except StoreError:
            more = False  # it will be asked for again; nothing that was promised depends on it
        if not more:
            with self._change:
                self._chores.remove(chore)
        self._wake.set()

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._crowd > _FEW and not self._stopping:
                time.sleep(min(_LONGEST, _EACH * self._crowd))
            self._do_chore()
            with self._change:
                events, waiters = self._events, self._waiters
                self._events, self._waiters = [], []
            self._crowd = len(waiters)
            if waiters:
                self._write(events, waiters)
                if self.error is not None:
                    return
            elif self._stopping:
                return

    def _write(self, events: list[bytes], waiters: list[Waiter]) -> None:
        began, size = time.perf_counter(), 0
        error: StoreError | None = None
        if events:
            payload = encode_group(events)
            size = len(payload)
            try:
                self.store.append(Group(self._next, len(events), payload))
            except StoreError as caught:
                error = caught
            except Exception as caught:  # whatever a store raises, it has promised nothing
                error = StoreError(f"{type(caught).__name__}: {caught}")
        if error is None:
            self._next += len(events)
            took = time.perf_counter() - began
            self._tell(self._done, waiters, len(events), took, size)
        else:
            self.error = error
            self._tell(self._broken, waiters, error)

    def _tell(self, function: Callable[..., None], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:  # the loop is closed: nobody is there to be told
            self._stopping = True

    def _done(self, waiters: list[Waiter], n: int, took: float, size: int) -> None:
        self.durable += n
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
        if n:
            self._written(n, took, size)

    def _broken(self, waiters: list[Waiter], error: StoreError) -> None:
        with self._change:
            waiters = waiters + self._waiters
            self._events, self._waiters = [], []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_exception(error)
                waiter.exception()  # whoever is gone does not fetch it
        self._failed(error)

    def stop(self) -> None:
        """End the thread when all that was handed over is written. Blocks."""
        self._stopping = True
        self._wake.set()
        self._thread.join()
