"""Which store a setting or an argument means. What PostgreSQL needs is imported only where it is meant."""

from __future__ import annotations

from pathlib import Path

from semibandit.serve.settings import ServerSettings
from semibandit.serve.snapshots import FolderShelf, Shelf
from semibandit.serve.sqlite_store import SqliteStore
from semibandit.serve.store import Store


def make_store(server: ServerSettings) -> tuple[Store, Shelf]:
    """The store that the settings name, and where its snapshots are; neither is opened."""
    if server.store == "sqlite":
        return SqliteStore(Path(server.data)), FolderShelf(Path(server.data) / "snapshots")
    from semibandit.serve.postgres_link import Link
    from semibandit.serve.postgres_shelf import PostgresShelf
    from semibandit.serve.postgres_store import PostgresStore

    store = PostgresStore(Link(server.store, server.schema), server.lease)
    return store, PostgresShelf(store)


def open_to_read(data: str, schema: str) -> Store:
    """The log in a folder or, by its address, in a database; beside whoever writes it."""
    if not data.startswith(("postgresql://", "postgres://")):
        files = SqliteStore(Path(data))
        files.open_to_read()
        return files
    from semibandit.serve.postgres_link import Link
    from semibandit.serve.postgres_store import PostgresStore

    store = PostgresStore(Link(data, schema))
    store.open_to_read()
    return store
