"""Snapshots in PostgreSQL, beside the log: nothing that must be kept is on the host.

A snapshot is written to a temporary folder as anywhere (`snapshots`), copied into the database in pieces, in one
transaction with the row that makes it one, and removed from the host. It goes over a connection of its own, so groups
are written meanwhile.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from semibandit.errors import FileError
from semibandit.serve.postgres_link import Connection
from semibandit.serve.postgres_store import PostgresStore
from semibandit.serve.snapshots import first_needed

_PIECE = 1 << 20
_PREFIX = "semibandit-snapshot-"
_COPY = "COPY {s}.pieces (position, name, part, content) FROM STDIN (FORMAT BINARY)"


class PostgresShelf:
    """Snapshots in the database of `store`, written while that one leads."""

    def __init__(self, store: PostgresStore) -> None:
        self._store, self._link = store, store.link
        self._room: _Workplace | None = None
        self._fetched: _Workplace | None = None

    def open(self) -> None:
        pass  # the tables are made with those of the log

    def room(self) -> Path:
        self._leave()
        self._room = _Workplace()
        return self._room.path / "written"

    def _leave(self) -> None:
        if self._room is not None:
            self._room.close()
            self._room = None

    def release(self) -> None:
        if self._fetched is not None:
            self._fetched.close()
            self._fetched = None

    @contextlib.contextmanager
    def _session(self) -> Iterator[Connection]:
        db = self._link.connect("snapshots")
        try:
            yield db
        except psycopg.Error as error:
            raise self._link.told(error) from None
        finally:
            with contextlib.suppress(psycopg.Error):
                db.close()

    def publish(self, written: Path, position: int) -> None:
        epoch = self._store.epoch
        try:
            with self._session() as db, db.transaction(), db.cursor() as cursor:
                # Who hangs here must not keep the next leader from leading.
                cursor.execute(
                    "SELECT set_config('idle_in_transaction_session_timeout', %s, true)",
                    [str(round(self._store.lease * 1000))],
                )
                if self._is_there(db, position):
                    return
                with cursor.copy(self._link.query(_COPY)) as copy:
                    copy.set_types(["int8", "text", "int4", "bytea"])
                    for path in sorted(written.iterdir()):
                        for part, content in enumerate(_pieces(path)):
                            copy.write_row((position, path.name, part, content))
                cursor.execute(
                    self._link.query(
                        "INSERT INTO {s}.snapshots (position, epoch, kept) VALUES (%s, %s, true)"
                    ),
                    [position, epoch],
                )
        finally:
            self._leave()

    def _is_there(self, db: Connection, position: int) -> bool:
        found = db.execute(self._link.query("SELECT 1 FROM {s}.snapshots WHERE position = %s"), [position])
        return found.fetchone() is not None

    def positions(self) -> list[int]:
        with self._session() as db:
            found = db.execute(
                self._link.query("SELECT position FROM {s}.snapshots WHERE kept ORDER BY position DESC")
            ).fetchall()
        return [position for (position,) in found]

    def fetch(self, position: int) -> Path:
        """Bring the files of a snapshot back, piece by piece; until `release`."""
        self.release()
        self._fetched = _Workplace()
        folder = self._fetched.path / f"{position:020d}"
        folder.mkdir()
        ask = self._link.query(
            "SELECT content FROM {s}.pieces WHERE position = %s AND name = %s AND part = %s"
        )
        with self._session() as db:
            names = db.execute(
                self._link.query("SELECT name, max(part) FROM {s}.pieces WHERE position = %s GROUP BY name"),
                [position],
            ).fetchall()
            for name, last in names:
                if Path(name).name != name:
                    raise FileError(f"{name!r} is no name of a file")
                with (folder / name).open("wb") as file, db.cursor(binary=True) as cursor:
                    for part in range(last + 1):
                        row: Any = cursor.execute(ask, [position, name, part]).fetchone()
                        file.write(row[0] if row else b"")  # the file's digest tells that a piece is missing
        return folder

    def retire(self, position: int, keep: int, retention: float) -> int:
        with self._session() as db, db.transaction():
            self._store.check_epoch(db, self._store.epoch)
            rows = db.execute(
                self._link.query(
                    "SELECT extract(epoch FROM at)::float8, position, extract(epoch FROM now())::float8 "
                    "FROM {s}.snapshots ORDER BY position"
                )
            ).fetchall()
            if not rows:
                return 1
            before = first_needed([(at, place) for at, place, _ in rows], rows[0][2], keep, retention)
            oldest = rows[-keep][1] if len(rows) >= keep else 0
            for command, value in (
                ("DELETE FROM {s}.pieces WHERE position < %s", oldest),
                ("UPDATE {s}.snapshots SET kept = false WHERE kept AND position < %s", oldest),
                ("DELETE FROM {s}.snapshots WHERE NOT kept AND position + 1 < %s", before),
            ):
                db.execute(self._link.query(command), [value])
        return before


def _pieces(path: Path) -> Iterator[bytes]:
    """A file in pieces, one at least."""
    with path.open("rb") as file:
        piece = file.read(_PIECE)
        yield piece
        while piece := file.read(_PIECE):
            yield piece


class _Workplace:
    """A temporary folder for one snapshot, told from those of processes that were killed by a lock."""

    def __init__(self) -> None:
        import fcntl

        for old in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
            with contextlib.suppress(OSError), (old / "lock").open("w") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(old, ignore_errors=True)
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock = (self.path / "lock").open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()
