"""The log in PostgreSQL, written by one leader at a time.

The session that writes holds an advisory lock: who has lost the lock has lost the only way to write. A group is one
COPY, which is a transaction of its own, and the database checks its epoch (`postgres_link`), so even a session that
outlives its lock writes nothing.

A leader that hangs must lose the lock though its connection is open: the server ends sessions that are silent for
`lease` seconds, and a thread here breaks the silence. One that hangs in the middle of a COPY is not silent for the
server; whoever wants the lock has it ended.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Any

import psycopg

from semibandit.serve.postgres_link import Connection, Link
from semibandit.serve.store import Group, StoreError, Taken, in_order, nobody

# Rows asked for at once: so many to begin with, then so that an answer has about so many bytes.
_ROWS, _MOST_ROWS, _ANSWER = 64, 4096, 4_000_000
# Groups forgotten in one step, while which nothing is written.
_AT_ONCE = 1000
# Beyond the lease, for which a server that starts waits for the lock of one that was killed.
_GRACE = 1.0

_COPY = "COPY {s}.log (first, size, epoch, digest, payload) FROM STDIN (FORMAT BINARY)"
_ROWS_AFTER = "SELECT first, size, digest, payload FROM {s}.log WHERE first >= %s ORDER BY first LIMIT %s"
_OLD = """
DELETE FROM {s}.log WHERE first IN (
    SELECT first FROM {s}.log WHERE first + size <= %s AND first < (SELECT max(first) FROM {s}.log)
    ORDER BY first LIMIT %s)
"""
# The lock of this database with these two halves of the key; its holder, if that waits for its client in a command.
_HOLDERS = """
FROM pg_locks l JOIN pg_stat_activity a USING (pid)
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND l.classid::bigint = %s AND l.objid::bigint = %s
"""
_END_STUCK = (
    "SELECT pg_terminate_backend(a.pid) "
    + _HOLDERS
    + "AND a.state = 'active' AND a.wait_event = 'ClientRead' "
    + "AND a.query_start < clock_timestamp() - make_interval(secs => %s)"
)


class PostgresStore:
    """The log behind `link`. `lease`: seconds that a leader may hang before it loses it. `epoch`: 0 if not leading."""

    def __init__(self, link: Link, lease: float = 3.0) -> None:
        self.link, self.lease, self.where = link, lease, link.where
        self.lost: Callable[[StoreError], None] = nobody
        self.epoch = 0
        digest = blake2b(f"semibandit lead {link.schema}".encode(), digest_size=8).digest()
        self._key = int.from_bytes(digest, "big", signed=True)
        self._halves = [int.from_bytes(digest[:4], "big"), int.from_bytes(digest[4:], "big")]
        self._holder = f"process {os.getpid()} on {socket.gethostname()}"
        self._db: Connection | None = None
        self._one_at_a_time = threading.RLock()
        self._used = 0.0
        self._over = threading.Event()
        self._beats: threading.Thread | None = None

    # -- who leads ---------------------------------------------------------------------------------------

    def attach(self) -> None:
        self.close()
        db = self.link.connect("standby")
        try:
            self.link.prepare(db)
        except StoreError:
            db.close()
            raise
        self._db = db

    def open_to_read(self) -> None:
        """Read the log beside whoever writes it; nothing is made, and nothing may be written."""
        self._db = self.link.connect("reader")
        if self._ask("SELECT to_regclass('{s}.log')")[0] is None:
            raise StoreError(f"there is no log in {self.where}", lasting=True)
        self._ask("SELECT set_config('default_transaction_read_only', 'on', false)")

    def open(self) -> None:
        self.attach()
        end = time.monotonic() + self.lease + _GRACE
        while not self.try_take():
            if time.monotonic() > end:
                holder = self._ask("SELECT holder FROM {s}.leader")[0]
                raise Taken(
                    f"{self.where} is served already, by {holder}: one leader per schema; --standby waits for it to end"
                )
            time.sleep(0.1)

    def try_take(self) -> bool:
        if not self._ask("SELECT pg_try_advisory_lock(%s)", self._key)[0]:
            self._ask(_END_STUCK, *self._halves, self.lease)
            return False
        # From here on silence costs the lock. Who held it can still be about to commit a snapshot: this waits for it.
        milliseconds = str(round(self.lease * 1000))
        self._ask(
            "SELECT set_config('idle_session_timeout', %s, false), "
            "set_config('idle_in_transaction_session_timeout', %s, false), "
            "set_config('application_name', 'semibandit leader', false)",
            milliseconds,
            milliseconds,
        )
        self.epoch = self._ask(
            "UPDATE {s}.leader SET epoch = epoch + 1, holder = %s RETURNING epoch", self._holder
        )[0]
        self._over = threading.Event()
        self._beats = threading.Thread(
            target=self._beat, args=[self._over], name="semibandit-lease", daemon=True
        )
        self._beats.start()
        return True

    def _beat(self, over: threading.Event) -> None:
        """Keep the session, and with it the lock; tell the service when it is gone."""
        while not over.wait(self.lease / 6):
            if time.monotonic() - self._used < self.lease / 6:
                continue
            try:
                self._ask("SELECT 1")
            except StoreError as error:
                if not over.is_set():
                    self.lost(error)
                return

    def close(self) -> None:
        self._over.set()
        # A command under way ends, or its connection is given up by the kernel, within this time.
        waited = self._one_at_a_time.acquire(timeout=10.0)
        db, self._db, self.epoch = self._db, None, 0
        if db is not None:
            with contextlib.suppress(psycopg.Error):
                db.close()
        if waited:
            self._one_at_a_time.release()
        if self._beats is not None and self._beats is not threading.current_thread():
            self._beats.join()
            self._beats = None

    # -- the log -----------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _session(self) -> Iterator[Connection]:
        """The connection, for one command or transaction; its errors are the store's."""
        with self._one_at_a_time:
            if self._db is None:
                raise StoreError(f"{self.where}: not connected")
            try:
                yield self._db
            except psycopg.Error as error:
                raise self.link.told(error) from None
            self._used = time.monotonic()

    def _ask(self, question: str, *values: Any) -> Any:
        with self._session() as db:
            return db.execute(self.link.query(question), values).fetchone()

    def last(self) -> int:
        row = self._ask("SELECT first + size - 1 FROM {s}.log ORDER BY first DESC LIMIT 1")
        return row[0] if row else 0

    def first(self) -> int:
        row = self._ask("SELECT first FROM {s}.log ORDER BY first LIMIT 1")
        return row[0] if row else 1

    def append(self, group: Group) -> None:
        with self._session() as db, db.cursor() as cursor, cursor.copy(self.link.query(_COPY)) as copy:
            copy.set_types(["int8", "int4", "int8", "bytea", "bytea"])
            copy.write_row((group.first, group.size, self.epoch, group.digest(), group.payload))

    def read(self, after: int) -> Iterator[Group]:
        return in_order(self._rows(after), after, self.where)

    def _rows(self, after: int) -> Iterator[tuple[int, int, bytes, bytes]]:
        """From the group with the event after `after` on, in pages, so that the lease is kept meanwhile."""
        row = self._ask(
            "SELECT first, size FROM {s}.log WHERE first <= %s ORDER BY first DESC LIMIT 1", after + 1
        )
        start = row[0] if row and row[0] + row[1] > after + 1 else after + 1
        most = _ROWS
        while True:
            with self._session() as db, db.cursor(binary=True) as cursor:
                page = cursor.execute(self.link.query(_ROWS_AFTER), [start, most]).fetchall()
            yield from page
            if len(page) < most:
                return
            start = page[-1][0] + 1
            size = sum(len(payload) for *_, payload in page)
            most = max(1, min(_MOST_ROWS, 4 * most, most * _ANSWER // max(1, size)))

    def prune(self, before: int) -> bool:
        # The last group stays in any case: its number tells where the log goes on.
        with self._session() as db, db.transaction():
            self.check_epoch(db, self.epoch)
            done = db.execute(self.link.query(_OLD), [before, _AT_ONCE]).rowcount
        return done == _AT_ONCE

    def check_epoch(self, db: Connection, epoch: int) -> None:
        """In a transaction: whoever leads now leads until it is committed; a `StoreError` if that is not us."""
        found = db.execute(
            self.link.query("SELECT 1 FROM {s}.leader WHERE epoch = %s FOR SHARE"), [epoch]
        ).fetchone()
        if found is None:
            raise StoreError(f"{self.where}: epoch {epoch} is over: another server leads now")

    def size(self) -> int:
        return int(
            self._ask("SELECT pg_total_relation_size('{s}.log') + pg_total_relation_size('{s}.pieces')")[0]
        )
