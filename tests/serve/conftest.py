"""A PostgreSQL server for those tests that ask for one."""

from __future__ import annotations

from itertools import count

import pytest

from support.postgres import MISSING, Postgres, binaries

_numbers = count()


@pytest.fixture(scope="session")
def postgres():
    """A server for all tests of this process."""
    pytest.importorskip("psycopg", reason="psycopg is missing: pip install 'semibandit[postgres]'")
    folder = binaries()
    if folder is None:
        pytest.skip(MISSING)
    server = Postgres(folder)
    yield server
    server.remove()


@pytest.fixture
def database(postgres):
    """The name of a new database."""
    name = f"test{next(_numbers)}"
    postgres.run("postgres", f"CREATE DATABASE {name}")
    return name


@pytest.fixture
def address(postgres, database):
    """Where it is."""
    return postgres.address(database)
