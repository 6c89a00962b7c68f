"""Where snapshots are kept: what the service asks of an archive, and the one in a folder."""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from semibandit.serve.host import Host
from semibandit.serve.limits import Limits
from semibandit.serve.snapshots import newest_whole, publish, tidy


class Archive(Protocol):
    """Whole states. Methods may be called from any thread; one snapshot is written at a time."""

    def workplace(self) -> Path:
        """The name of a new folder, to which a snapshot can be written."""

    def restore(self, limits: Limits | None, complain: Callable[[str], None]) -> Iterator[tuple[int, Host]]:
        """Whole snapshots, newest first, each with its position; damaged ones are complained of."""

    def publish(self, written: Path, position: int) -> None:
        """What was written to a workplace is a snapshot from now on, or not at all."""

    def retire(self, position: int, keep: int, retention: float) -> int:
        """After the one of `position`: all but the newest `keep` go. The first event that the log must still hold."""


def first_needed(marks: list[tuple[float, int]], now: float, keep: int, retention: float) -> int:
    """The first event that must stay, given when each snapshot was made and what it covers, oldest first.

    The log reaches back to the oldest of the `keep` newest, and to what is younger than `retention` seconds.
    """
    old = [position for at, position in marks if at <= now - retention]
    kept = marks[-max(1, keep) :]
    return min(old[-1] if old else 0, kept[0][1] if kept else 0) + 1


class FolderArchive:
    """Snapshots in the folder `data`, one folder each (`snapshots`)."""

    def __init__(self, data: Path) -> None:
        self._root = Path(data) / "snapshots"
        self._marks = Path(data) / "marks.json"

    def workplace(self) -> Path:
        return self._root / f".writing-{secrets.token_hex(4)}"

    def restore(self, limits: Limits | None, complain: Callable[[str], None]) -> Iterator[tuple[int, Host]]:
        self._root.mkdir(parents=True, exist_ok=True)
        return newest_whole(self._root, limits, complain)

    def publish(self, written: Path, position: int) -> None:
        publish(written, self._root, position)

    def retire(self, position: int, keep: int, retention: float) -> int:
        tidy(self._root, keep)
        marks: list[tuple[float, int]] = []
        with contextlib.suppress(OSError, ValueError):
            marks = [(at, place) for at, place in json.loads(self._marks.read_text())]
        now = time.time()
        marks.append((now, position))
        before = first_needed(marks, now, keep, retention)
        marks = [mark for mark in marks if mark[1] + 1 >= before][-10_000:]
        new = self._marks.with_suffix(".new")
        new.write_text(json.dumps(marks))
        new.replace(self._marks)
        return before
