"""The log in a folder: SQLite in WAL mode with synchronous = FULL, one row per group.

A group is one INSERT outside any transaction, so a commit is one call into SQLite: one write, one sync, and Python's
lock is given up once. SQLite's own checksums drop a torn tail of the write-ahead log; the digest in each row tells
rows that the disk damaged later. A file that is locked (`flock`) keeps a second server out; it is let go by the
kernel, however the process ends.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

from semibandit.serve.store import Group, StoreError, Taken, sync_folder

_NAME = "log.sqlite"
_LOCK = "lock"
_FORMAT = 1
# Groups forgotten in one step, while which nothing is written.
_AT_ONCE = 200


def _digest(group: Group) -> bytes:
    head = group.first.to_bytes(8, "little") + group.size.to_bytes(8, "little")
    return blake2b(group.payload, digest_size=8, salt=head).digest()


class SqliteStore:
    """The log in `folder`, which is made if it is not there."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self.where = str(self.folder / _NAME)
        self._db: Any = None
        self._lock: int | None = None

    def open(self) -> None:
        self._take()
        if self._db is not None:
            with contextlib.suppress(sqlite3.Error):
                self._db.close()
            self._db = None
        try:
            self._db = self._connect()
        except sqlite3.DatabaseError as error:
            raise _told(error, self.where) from None

    def open_to_read(self) -> None:
        """Read the log beside whoever writes it; `append` and `prune` are not for this store then."""
        path = self.folder / _NAME
        if not path.is_file():
            raise StoreError(f"there is no log in {self.folder}: no {_NAME}", lasting=True)
        try:
            self._db = sqlite3.connect(
                f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False
            )
            self._db.execute("SELECT count(*) FROM log WHERE first < 0")
        except sqlite3.Error as error:
            raise _told(error, self.where) from None

    def _connect(self) -> Any:
        db = sqlite3.connect(self.where, isolation_level=None, check_same_thread=False, timeout=5.0)
        mode = db.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != "wal":
            raise StoreError(f"{self.where}: this file system has no write-ahead log ({mode})", lasting=True)
        db.execute("PRAGMA synchronous = FULL")
        # Moving pages into the main file holds a group up: rarely, then, and 16 MB at a time.
        db.execute("PRAGMA wal_autocheckpoint = 4000")
        db.execute("PRAGMA journal_size_limit = 67108864")
        found = db.execute("PRAGMA user_version").fetchone()[0]
        if found not in (0, _FORMAT):
            raise StoreError(f"{self.where} has format {found}: this semibandit is too old", lasting=True)
        if not found:
            db.execute(
                "CREATE TABLE IF NOT EXISTS log (first INTEGER PRIMARY KEY, count INTEGER NOT NULL, "
                "digest BLOB NOT NULL, payload BLOB NOT NULL) STRICT"
            )
            db.execute(f"PRAGMA user_version = {_FORMAT}")
            sync_folder(self.folder)
        return db

    def _take(self) -> None:
        """Lock the folder for this process; made if need be."""
        if self._lock is not None:
            return
        import fcntl

        try:
            if not self.folder.is_dir():
                self.folder.mkdir(parents=True)
                sync_folder(self.folder.parent)
            handle = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(f"{self.folder} cannot be used: {error.strerror}") from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(handle, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(handle)
            raise Taken(
                f"{self.folder} is served already, by process {holder}: one server per folder"
            ) from None
        with contextlib.suppress(OSError):  # a full disk must not keep the log from being read
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        self._lock = handle

    def last(self) -> int:
        row = self._ask("SELECT first + count - 1 FROM log ORDER BY first DESC LIMIT 1")
        return row[0] if row else 0

    def first(self) -> int:
        row = self._ask("SELECT first FROM log ORDER BY first LIMIT 1")
        return row[0] if row else 1

    def _ask(self, question: str, *values: Any) -> Any:
        try:
            return self._db.execute(question, values).fetchone()
        except sqlite3.Error as error:
            raise _told(error, self.where) from None

    def append(self, group: Group) -> None:
        try:
            self._db.execute(
                "INSERT INTO log VALUES (?, ?, ?, ?)", (*group[:2], _digest(group), group.payload)
            )
        except sqlite3.Error as error:
            raise _told(error, self.where) from None

    def read(self, after: int) -> Iterator[Group]:
        start = self._ask("SELECT max(first) FROM log WHERE first <= ?", after + 1)[0]
        expected = None
        try:
            rows = self._db.execute(
                "SELECT first, count, digest, payload FROM log WHERE first >= ? ORDER BY first", (start or 0,)
            )
            for first, count, digest, payload in rows:
                group = Group(first, count, payload)
                if digest != _digest(group):
                    raise StoreError(f"{self.where}: events {first} ff. are damaged", lasting=True)
                if expected is None and first > after + 1:
                    raise StoreError(
                        f"{self.where}: events {after + 1} to {first - 1} are missing", lasting=True
                    )
                if expected is not None and first != expected:
                    raise StoreError(
                        f"{self.where}: events {expected} to {first - 1} are missing", lasting=True
                    )
                expected = first + count
                if expected > after + 1:
                    yield group
        except sqlite3.Error as error:
            raise _told(error, self.where) from None

    def prune(self, before: int) -> bool:
        # The last group stays in any case: its number tells where the log goes on.
        old = (
            "SELECT first FROM log WHERE first + count <= ? AND first < (SELECT max(first) FROM log) "
            f"ORDER BY first LIMIT {_AT_ONCE}"
        )
        try:
            done = self._db.execute(f"DELETE FROM log WHERE first IN ({old})", (before,)).rowcount
        except sqlite3.Error as error:
            raise _told(error, self.where) from None
        return bool(done == _AT_ONCE)

    def size(self) -> int:
        total = 0
        for name in (_NAME, f"{_NAME}-wal"):
            with contextlib.suppress(OSError):
                total += (self.folder / name).stat().st_size
        return total

    def close(self) -> None:
        if self._db is not None:
            with contextlib.suppress(sqlite3.Error):
                self._db.close()
            self._db = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _told(error: sqlite3.Error, where: str) -> StoreError:
    """What SQLite complains of, and whether it will ever be different."""
    name = getattr(error, "sqlite_errorname", "")
    lasting = name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB"))
    return StoreError(f"{where}: {error}", lasting=lasting)
