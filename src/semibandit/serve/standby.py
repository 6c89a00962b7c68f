"""Standing by: follow the log that another server writes, and be there when it is gone.

Groups are applied as they are committed, so a takeover finds the state made: it applies what came since the last look
and serves. How soon a leader is gone for the store is the store's affair (`postgres_store`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from semibandit.errors import SemibanditError
from semibandit.serve.host import Host
from semibandit.serve.limits import Limits
from semibandit.serve.restoring import Started, load, replay
from semibandit.serve.snapshots import Shelf
from semibandit.serve.store import SharedStore, StoreError

# Seconds between two looks at the log and the lock, and after a failure at most.
_LOOK = 0.2
_MOST = 2.0


class Follower:
    """`host` is the state of the log as far as it was read; None before the first look, or after `forget`."""

    def __init__(self, store: SharedStore, shelf: Shelf, limits: Limits, tell: Callable[..., Any]) -> None:
        self._store, self._shelf, self._limits, self._tell = store, shelf, limits, tell
        self._attached = False
        self.host: Host | None = None
        self.started: Started | None = None

    def forget(self) -> None:
        """Begin anew: another connection, and the state from snapshot and log."""
        self._attached, self.host = False, None

    async def wait(self) -> AsyncIterator[str]:
        """Until the store is ours and `host` is what its log says; how it goes meanwhile, look by look."""
        loop = asyncio.get_running_loop()
        pause, failing = _LOOK, False
        yield f"standby of {self._store.where}"
        while True:
            try:
                if await loop.run_in_executor(None, self._look):
                    return
            except (SemibanditError, OSError) as error:
                if not failing:
                    self._tell("standby_failed", error=str(error))
                self._attached, failing, pause = False, True, min(2 * pause, _MOST)
                if not isinstance(error, StoreError) or error.lasting:
                    self.host = None  # not only out of reach: what was read so far does not lead on
                yield f"standby of {self._store.where}: {error}"
            else:
                if failing:
                    self._tell("standby_recovered")
                pause, failing = _LOOK, False
                assert self.host is not None
                yield f"standby of {self._store.where}, at event {self.host.position}"
            await asyncio.sleep(pause)

    def _look(self) -> bool:
        """Read what is new, then see whether the leader is gone."""
        if not self._attached:
            self._store.attach()
            self._attached = True
        if self.host is None:
            self.host, self.started = load(self._store, self._shelf, self._limits, self._tell)
            self._tell("standing_by", position=self.host.position, snapshot=self.started.snapshot)
        else:
            replay(self._store, self.host)
        if not self._store.try_take():
            return False
        # Nobody else can write any more; what was written until then is read now.
        began = time.perf_counter()
        replay(self._store, self.host)
        if (
            self._store.last() != self.host.position
        ):  # the database was put back to an earlier state meanwhile
            self.host, self.started = load(self._store, self._shelf, self._limits, self._tell)
        assert self.started is not None
        self.started.seconds = time.perf_counter() - began
        return True
