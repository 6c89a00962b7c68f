"""Snapshots of a running service: when they are due, written, published, and what may then be forgotten."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import msgspec

from semibandit.serve.committer import Committer
from semibandit.serve.host import Host
from semibandit.serve.pulse import Histogram
from semibandit.serve.snapshots import Shelf
from semibandit.serve.snapshotter import begin


class Upkeep(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """When snapshots are written, and how long the log is kept."""

    #: A snapshot after so many events, or seconds if anything happened.
    snapshot_events: int = 500_000
    snapshot_seconds: float = 300.0
    #: Snapshots that are kept; the log reaches back to the oldest of them at least.
    snapshots: int = 2
    #: Seconds for which the log is kept besides, for export.
    retention: float = 7 * 86_400.0


class Keeper:
    """The snapshots on `shelf`. `position`: events that the newest covers; `written`: how many it wrote."""

    def __init__(self, shelf: Shelf, upkeep: Upkeep, tell: Callable[..., None]) -> None:
        self.shelf, self.upkeep, self._tell = shelf, upkeep, tell
        self.position = self.written = 0
        self.pauses = Histogram()
        self._since = time.monotonic()
        self._task: asyncio.Task[int] | None = None

    @property
    def age(self) -> float | None:
        """Seconds since the last snapshot of this process, None if it wrote none."""
        return time.monotonic() - self._since if self.written else None

    @property
    def busy(self) -> bool:
        """Whether a snapshot is being written."""
        return self._task is not None

    def begin(self, position: int) -> None:
        """The service starts from the snapshot of `position` events (0: from none)."""
        self.position, self._since = position, time.monotonic()

    def is_due(self, position: int) -> bool:
        """Whether it is time for a snapshot, after so many events."""
        new = position - self.position
        late = time.monotonic() - self._since >= self.upkeep.snapshot_seconds
        return new >= self.upkeep.snapshot_events or (new > 1 and late)

    async def write(self, host: Host, committer: Committer) -> int:
        """Write a snapshot, or wait for the one that is being written: how many events it covers."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._write(host, committer))
            self._task.add_done_callback(self._over)
        return await asyncio.shield(self._task)

    async def wait(self) -> None:
        """Until no snapshot is being written."""
        if self._task is not None:
            await asyncio.wait([self._task])

    def _over(self, task: asyncio.Task[int]) -> None:
        self._task = None
        if not task.cancelled() and task.exception() is not None:
            self._tell("snapshot_failed", error=str(task.exception()))

    async def _write(self, host: Host, committer: Committer) -> int:
        if host.position == self.position:
            return self.position
        loop = asyncio.get_running_loop()
        new = begin(host, self.shelf.room())
        self.pauses.observe(new.pause)
        barrier = committer.barrier()
        await loop.run_in_executor(None, new.wait)
        if barrier is not None:
            await barrier  # a snapshot never covers what is not in the log
        await loop.run_in_executor(None, self.shelf.publish, new.folder, new.position)
        self.written += 1
        self.position, self._since = new.position, time.monotonic()
        self._tell("snapshot", position=new.position, pause_ms=round(new.pause * 1e3, 2))
        before = await loop.run_in_executor(
            None, self.shelf.retire, new.position, self.upkeep.snapshots, self.upkeep.retention
        )
        if before > 1:
            committer.add_chore(lambda: committer.store.prune(before))
        return new.position
