"""Reaching PostgreSQL: the address without its secrets, connections that notice when the other side is gone, tables.

One schema holds one service. `leader` has one row, the epoch: who takes the store counts it up, and a trigger of the
database itself refuses a group or a snapshot of any other epoch. The row is share-locked until such a write is
committed, so an epoch never ends between the check and the commit.
"""

from __future__ import annotations

import re
from typing import Any, cast
from urllib.parse import quote

from semibandit.errors import MissingExtraError, ParameterError
from semibandit.serve.store import StoreError
from semibandit.text import needs

try:
    import psycopg
    from psycopg import sql
    from psycopg.conninfo import conninfo_to_dict
except ImportError:
    raise MissingExtraError(needs('store = "postgresql://..."', "psycopg")) from None

Connection = psycopg.Connection[Any]

FORMAT = 1
_OLDEST = 140000  # idle_session_timeout, by which a leader that hangs loses its lock
#: SQLSTATE of our own: a write of an epoch that is over.
OVER = "SB001"
_SECRETS = ("password", "sslpassword")
# Unless the address says otherwise: a server that is gone is noticed within seconds.
_PATIENCE = {
    "connect_timeout": "3",
    "keepalives_idle": "2",
    "keepalives_interval": "1",
    "keepalives_count": "3",
    "tcp_user_timeout": "5000",
}
# Trying the same again can help: the server is away, starting, full, or chose to end what we did.
_PASSING = ("08", "25", "40", "53", "55", "57", "58")

_TABLES = """
CREATE SCHEMA IF NOT EXISTS {s};
CREATE TABLE {s}.leader (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    format integer NOT NULL, epoch bigint NOT NULL, holder text NOT NULL
);
CREATE TABLE {s}.log (
    first bigint PRIMARY KEY, size integer NOT NULL, epoch bigint NOT NULL,
    digest bytea NOT NULL, payload bytea NOT NULL
);
ALTER TABLE {s}.log ALTER payload SET STORAGE EXTERNAL;
CREATE TABLE {s}.snapshots (
    position bigint PRIMARY KEY, epoch bigint NOT NULL, kept boolean NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE {s}.pieces (
    position bigint NOT NULL, name text NOT NULL, part integer NOT NULL, content bytea NOT NULL,
    PRIMARY KEY (position, name, part)
);
ALTER TABLE {s}.pieces ALTER content SET STORAGE EXTERNAL;
CREATE FUNCTION {s}.fence() RETURNS trigger LANGUAGE plpgsql AS $fence$
BEGIN
    PERFORM 1 FROM {s}.leader WHERE epoch = NEW.epoch FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'epoch % is over: another server leads now', NEW.epoch USING ERRCODE = 'SB001';
    END IF;
    RETURN NEW;
END
$fence$;
CREATE TRIGGER fence BEFORE INSERT ON {s}.log FOR EACH ROW EXECUTE FUNCTION {s}.fence();
CREATE TRIGGER fence BEFORE INSERT ON {s}.snapshots FOR EACH ROW EXECUTE FUNCTION {s}.fence();
INSERT INTO {s}.leader (format, epoch, holder) VALUES (1, 0, 'nobody');
"""


class Link:
    """How to reach the database at `address`, and the tables of one service in `schema`.

    `where` is the address as it may be shown.
    """

    def __init__(self, address: str, schema: str = "semibandit") -> None:
        try:
            found = conninfo_to_dict(address)
        except psycopg.Error:
            # libpq quotes the address in its complaint, password and all.
            raise ParameterError(
                "store is no address that PostgreSQL understands (not shown, it may hold a password): "
                "postgresql://user@host:5432/database"
            ) from None
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,50}", schema):
            raise ParameterError(f"schema = {schema!r}: a-z, 0-9 and '_', at most 51, no digit first")
        self.schema = schema
        self._options = {**_PATIENCE, **found}
        self._secrets = [str(found[name]) for name in _SECRETS if found.get(name)]
        user = f"{found['user']}@" if "user" in found else ""
        port = f":{found['port']}" if "port" in found else ""
        host, name = found.get("host", "localhost"), found.get("dbname", "")
        self.where = f"postgresql://{user}{host}{port}/{name}, schema {schema}"

    def query(self, text: str) -> sql.Composed:
        """A command, with the schema in place of ``{s}``."""
        # The text is ours: nothing of a request or a setting but the schema, quoted, gets into it.
        return sql.SQL(cast(Any, text)).format(s=sql.Identifier(self.schema))

    def connect(self, name: str) -> Connection:
        """A new connection, called `name` in the server's lists. Every command is a transaction of its own."""
        options: dict[str, Any] = {"application_name": f"semibandit {name}", **self._options}
        try:
            db: Connection = psycopg.connect(autocommit=True, **options)
        except psycopg.Error as error:
            raise self.told(error) from None
        try:
            self._check(db)
        except psycopg.Error as error:
            db.close()
            raise self.told(error) from None
        except StoreError:
            db.close()
            raise
        return db

    def _check(self, db: Connection) -> None:
        if db.info.server_version < _OLDEST:
            raise StoreError(
                f"{self.where}: PostgreSQL {db.info.server_version // 10000} is too old: 14 or later",
                lasting=True,
            )
        # What is acknowledged is on disk, whatever the server does by default.
        db.execute(
            "SELECT set_config('synchronous_commit', 'on', false) "
            "WHERE current_setting('synchronous_commit') IN ('off', 'local')"
        )

    def prepare(self, db: Connection) -> None:
        """Make the tables if they are not there, and see that they are ours."""
        try:
            with db.transaction():
                # Two servers that start at once: one makes them, the other waits and finds them.
                db.execute(
                    "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))",
                    [f"semibandit make {self.schema}"],
                )
                if self._one(db, "SELECT to_regclass(%s)", f"{self.schema}.leader") is None:
                    db.execute(self.query(_TABLES))
                found = self._one(db, "SELECT format FROM {s}.leader")
        except psycopg.Error as error:
            raise self.told(error) from None
        if found != FORMAT:
            raise StoreError(f"{self.where} has format {found}: this semibandit is too old", lasting=True)

    def _one(self, db: Connection, text: str, *values: Any) -> Any:
        row = db.execute(self.query(text), values).fetchone()
        return row[0] if row else None

    def told(self, error: Exception) -> StoreError:
        """What the database complains of, without secrets, and whether it will ever be different."""
        told = error.diag.message_primary if isinstance(error, psycopg.Error) else None
        text = " ".join((told or str(error)).split()) or type(error).__name__
        for secret in self._secrets:
            for form in (secret, quote(secret), quote(secret, safe="")):
                text = text.replace(form, "***")
        state = getattr(error, "sqlstate", None)
        lasting = state is not None and state != OVER and not state.startswith(_PASSING)
        return StoreError(f"{self.where}: {text}", lasting=lasting)
