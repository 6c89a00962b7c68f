"""Snapshots while decisions go on: a fork writes, the parent pays for the copy of its page tables only.

The child has all of the state as it was between two requests, for ever unchanged, and may take its time. Copying arrays
instead, K = 10^6, took 55 to 65 ms in which nobody decides; a fork takes 2 to 5 ms, whatever the policies are made of.
The price: pages that change while the child writes are copied, at most once each.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import time
import warnings
from pathlib import Path
from typing import Any

from semibandit.errors import FileError
from semibandit.serve.host import Host
from semibandit.serve.snapshots import write_snapshot

CAN_FORK = hasattr(os, "fork")


class Written:
    """A snapshot that is being written to `folder`, in a process of its own or (`pid` None) already."""

    def __init__(self, folder: Path, position: int, pause: float, pid: int | None) -> None:
        self.folder, self.position, self.pause, self.pid = folder, position, pause, pid

    def wait(self) -> None:
        """Until it is written; a `FileError` if it could not be. Blocks."""
        if self.pid is None:
            return
        _, status = os.waitpid(self.pid, 0)
        if status != 0:
            told = self.folder.with_suffix(".error")
            try:
                why = told.read_text()
                told.unlink()
            except OSError:
                why = f"its process ended with status {status}"
            raise FileError(f"the snapshot could not be written: {why}")


def begin(host: Host, folder: Path) -> Written:
    """Start writing `host` to the new folder `folder`. Returns after the pause that decisions feel."""
    began = time.perf_counter()
    if not CAN_FORK:
        write_snapshot(host, folder)
        return Written(folder, host.position, time.perf_counter() - began, None)
    with warnings.catch_warnings():
        # Python 3.12 warns of forks beside threads: the child runs none of theirs, and takes no lock they could hold.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        _write_and_leave(host, folder)
    return Written(folder, host.position, time.perf_counter() - began, pid)


def _write_and_leave(host: Host, folder: Path) -> Any:
    """In the child: never returns, never runs anything of the parent's."""
    status = 1
    try:
        gc.disable()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(-1)
        # The parent's lock, sockets and log: whoever comes after it must be able to have them.
        os.closerange(3, 65536)
        with contextlib.suppress(OSError):
            os.nice(5)
        write_snapshot(host, folder)
        status = 0
    except BaseException as error:
        with contextlib.suppress(Exception):
            folder.with_suffix(".error").write_text(f"{type(error).__name__}: {error}")
    finally:
        os._exit(status)
