"""The log and the snapshots in PostgreSQL: what they keep, who may write, what is never shown."""

from __future__ import annotations

import random
import threading
import time

import numpy as np
import pytest

from semibandit.errors import ParameterError
from semibandit.policies.files import to_bytes
from semibandit.serve.host import Host
from semibandit.serve.restoring import load, replay
from semibandit.serve.snapshots import first_needed, newest_whole, read_snapshot, write_snapshot
from semibandit.serve.store import Group, StoreError, Taken
from semibandit.serve.stores import open_to_read
from semibandit.serve.wire import PolicySpec
from support.postgres import PASSWORD
from support.service import until

psycopg = pytest.importorskip("psycopg", reason="psycopg is missing: pip install 'semibandit[postgres]'")

from semibandit.serve.postgres_link import Link  # noqa: E402
from semibandit.serve.postgres_shelf import PostgresShelf  # noqa: E402
from semibandit.serve.postgres_store import PostgresStore  # noqa: E402


def make(address, lease=3.0):
    return PostgresStore(Link(address), lease)


@pytest.fixture
def store(address):
    made = make(address)
    made.open()
    yield made
    made.close()


def group(first, size, payload=None):
    return Group(first, size, payload if payload is not None else random.Random(first).randbytes(50 + size))


def test_the_log_keeps_what_it_was_given(store, address):
    assert (store.first(), store.last(), list(store.read(0))) == (1, 0, [])
    kept, first = [], 1
    for size in [1, 3, 1, 40, 2, *range(1, 200)]:
        kept.append(group(first, size))
        store.append(kept[-1])
        first += size
    large = group(first, 5, np.random.default_rng(0).bytes(5_000_000))
    store.append(large)
    kept += [large, group(first + 5, 1, b"")]
    store.append(kept[-1])
    assert (store.first(), store.last()) == (1, first + 5)
    assert list(store.read(0)) == kept
    for after in (1, 2, 3, 4, 5, 44, 300, first, first + 4, first + 5, first + 90):
        assert list(store.read(after)) == [one for one in kept if one.first + one.size > after + 1]
    assert store.size() > 5_000_000
    other = make(address)
    other.attach()
    assert list(other.read(7)) == [one for one in kept if one.first + one.size > 8]
    other.close()
    store.close()
    store.close()
    store.open()
    assert store.last() == first + 5 and store.epoch == 2


def test_old_groups_go_and_the_last_one_stays(store):
    for first in range(1, 1101):
        store.append(group(first, 1, b"x"))
    assert store.prune(1050) and not store.prune(1050)
    assert (store.first(), store.last()) == (1050, 1100)
    assert not store.prune(5000)
    assert (store.first(), store.last()) == (1100, 1100)
    with pytest.raises(StoreError, match="events 2 to 1099 are missing") as caught:
        list(store.read(1))
    assert caught.value.lasting


def test_damage_is_told(store, postgres, database):
    for first in (1, 2, 3):
        store.append(group(first, 1))
    postgres.run(database, "UPDATE semibandit.log SET payload = 'other' WHERE first = 2")
    with pytest.raises(StoreError, match=r"events 2 ff\. are damaged"):
        list(store.read(0))
    postgres.run(database, "DELETE FROM semibandit.log WHERE first = 2")
    with pytest.raises(StoreError, match="events 2 to 2 are missing"):
        list(store.read(0))


def test_one_leads_and_the_next_is_refused_or_waits(store, address):
    second = make(address, lease=1.0)
    began = time.monotonic()
    with pytest.raises(Taken, match=r"served already, by process \d+ on .*--standby"):
        second.open()
    assert 1.0 < time.monotonic() - began < 6.0
    time.sleep(2.0)  # with the wait before: longer than its lease without a write; the thread keeps the lock
    store.append(group(1, 1))
    second.attach()
    assert not second.try_take()
    store.close()
    until(second.try_take, 5.0)
    assert second.last() == 1 and second.epoch == 2
    second.close()


def test_a_reader_makes_and_changes_nothing(address, postgres, database):
    reader = make(address)
    with pytest.raises(StoreError, match="there is no log in postgresql://learner@"):
        reader.open_to_read()
    reader.close()
    assert postgres.run(database, "SELECT to_regnamespace('semibandit')") == [(None,)]
    leader = make(address)
    leader.open()
    leader.append(group(1, 2))
    beside = open_to_read(address, "semibandit")
    assert list(beside.read(beside.first() - 1)) == [group(1, 2)]
    with pytest.raises(StoreError, match="read-only"):
        beside.append(group(3, 1))
    beside.close()
    leader.append(group(3, 1))
    leader.close()


def test_schemas_are_services_of_their_own(store, address):
    other = PostgresStore(Link(address, "another_one"))
    other.open()
    other.append(group(1, 1))
    assert store.last() == 0 and other.last() == 1
    other.close()


def test_a_leader_without_its_lock_writes_nothing(store, address, tmp_path):
    """The lock is taken away in the session, as a pooler would: only the epoch stands between two leaders."""
    store.append(group(1, 1))
    old, shelf = store._db, PostgresShelf(store)
    host = Host()
    host.open(0, "aaaa")
    workplace = shelf.room()
    write_snapshot(host, workplace)
    old.execute("SELECT pg_advisory_unlock_all()")
    new = make(address)
    new.open()
    assert new.epoch == store.epoch + 1
    with pytest.raises(StoreError, match="epoch 1 is over: another server leads now"):
        store.append(group(2, 1))
    with pytest.raises(StoreError, match="epoch 1 is over"):
        shelf.publish(workplace, 1)
    with pytest.raises(StoreError, match="epoch 1 is over"):
        store.prune(2)
    with pytest.raises(StoreError, match="epoch 1 is over"):
        shelf.retire(1, 1, 0.0)
    new.append(group(2, 3))
    assert new.last() == store.last() == 4
    assert PostgresShelf(new).positions() == []
    new.close()


def test_a_takeover_waits_for_a_write_under_way(store, address):
    """A group whose epoch was checked is committed before the epoch ends, or not at all."""
    new, taken = make(address), threading.Event()
    with store._session() as db, db.transaction():
        store.check_epoch(db, store.epoch)
        db.execute("INSERT INTO semibandit.log VALUES (1, 1, 1, 'd', 'p')")
        db.execute("SELECT pg_advisory_unlock_all()")
        new.attach()

        def take():
            assert new.try_take()
            taken.set()

        thread = threading.Thread(target=take)
        thread.start()
        assert not taken.wait(0.4)
    thread.join(10)
    assert taken.is_set() and new.last() == 1
    new.close()


def test_a_lost_session_is_noticed_without_a_write(store, postgres, database):
    told = []
    store.lost = told.append
    postgres.run(
        database,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'semibandit leader' "
        "AND datname = current_database()",
    )
    until(lambda: told, 5.0)
    assert not told[0].lasting
    with pytest.raises(StoreError):
        store.append(group(1, 1))
    store.open()
    store.append(group(1, 1))
    assert store.epoch == 2 and store.last() == 1


def test_a_leader_that_hangs_loses_the_lock(address):
    """Silent, and in the middle of a COPY: the server ends the first by itself, who waits has it end the second."""
    for how in ("silent", "copying"):
        store = make(address, lease=1.0)
        store.open()
        store._over.set()  # its thread says nothing any more
        store._beats.join()
        if how == "copying":
            copying = store._db.cursor().copy(store.link.query("COPY {s}.log FROM STDIN"))
            copying.__enter__()
        second, began = make(address, lease=1.0), time.monotonic()
        second.attach()
        until(second.try_take, 10.0)
        assert time.monotonic() - began < 5.0, how
        if how == "copying":
            with pytest.raises(psycopg.OperationalError):
                copying.__exit__(None, None, None)
        with pytest.raises(StoreError):
            store.append(group(1, 1))
        second.close()
        store.close()


def host_with(events=30, seed=0):
    host, rng = Host(), random.Random(seed)
    host.open(0, "aaaa")
    host.create(0, "p", PolicySpec(policy="cts", matroid={"arms": 5000, "rank": 3}))
    for t in range(events):
        _, (made,) = host.select(t, "p")
        host.reward(t, "p", made.decision, made.arms[1:], [rng.random(), 0.5])
    return host


def test_snapshots_come_back_bit_for_bit_and_old_ones_go(store, tmp_path, monkeypatch):
    monkeypatch.setattr("semibandit.serve.postgres_shelf._PIECE", 10_000)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    shelf = PostgresShelf(store)
    hosts = [host_with(events) for events in (5, 20, 40)]
    for host in hosts:
        workplace = shelf.room()
        write_snapshot(host, workplace)
        shelf.publish(workplace, host.position)
        shelf.retire(host.position, 2, 3600.0)
    assert shelf.positions() == [hosts[2].position, hosts[1].position]
    for host in hosts[1:]:
        restored = read_snapshot(shelf, host.position)
        assert to_bytes(restored.seats["p"].policy) == to_bytes(host.seats["p"].policy)
        assert restored.state() == host.state()
    assert shelf.retire(hosts[2].position, 2, 0.0) == hosts[1].position + 1
    assert not list(tmp_path.iterdir()), "nothing stays on the host"


def test_a_damaged_snapshot_is_passed_over(store, postgres, database):
    shelf = PostgresShelf(store)
    for events in (5, 20):
        host = host_with(events)
        workplace = shelf.room()
        write_snapshot(host, workplace)
        shelf.publish(workplace, host.position)
    postgres.run(
        database,
        "UPDATE semibandit.pieces SET content = content || '!' WHERE position > 20 AND name = '0.semibandit'",
    )
    complaints = []
    found, _ = newest_whole(shelf, None, complaints.append)
    assert found == 12 and len(complaints) == 1 and "0.semibandit is damaged" in complaints[0]


def test_a_snapshot_out_of_reach_is_not_taken_for_damaged(store, monkeypatch):
    shelf, host = PostgresShelf(store), host_with(5)
    workplace = shelf.room()
    write_snapshot(host, workplace)
    shelf.publish(workplace, host.position)
    away = Link("postgresql://127.0.0.1:1/x")
    monkeypatch.setattr(shelf, "positions", lambda: [host.position])
    monkeypatch.setattr(shelf, "_link", away)
    with pytest.raises(StoreError, match="refused"):
        newest_whole(shelf, None, pytest.fail)


def test_what_a_killed_process_left_in_the_temporary_folder_goes(store, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left = tmp_path / "semibandit-snapshot-old"
    left.mkdir()
    (left / "lock").touch()
    (left / "content").write_text("large")
    one, two = PostgresShelf(store), PostgresShelf(store)
    mine = one.room()
    two.room()
    assert not left.exists() and mine.parent.exists(), "only what nobody holds"


def test_the_log_must_reach_back_to_the_oldest_snapshot_and_the_retention():
    marks = [(0.0, 10), (100.0, 20), (200.0, 30), (300.0, 40)]
    assert first_needed(marks, 300.0, 2, 0.0) == 31
    assert first_needed(marks, 300.0, 2, 150.0) == 21
    assert first_needed(marks, 300.0, 9, 0.0) == 11
    assert first_needed(marks, 300.0, 1, 1000.0) == 1


def test_load_replays_the_rest(store):
    host = host_with(3)
    shelf = PostgresShelf(store)
    told = []
    with pytest.raises(StoreError, match="no whole snapshot"):
        store.append(group(host.position + 1, 1))
        load(store, shelf, host.limits, lambda *a, **k: told.append(a))
    workplace = shelf.room()
    write_snapshot(host, workplace)
    shelf.publish(workplace, host.position)
    _, twin = newest_whole(shelf, None, pytest.fail)
    assert twin.position == host.position
    with pytest.raises(Exception, match="cannot be read"):
        replay(store, twin)


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://learner:{PASSWORD}@127.0.0.1/%zz",
        f"postgresql://learner:{PASSWORD}@[::1/db",
        f"postgresql://learner:{PASSWORD}@127.0.0.1/db?nothing=1",
    ],
)
def test_a_bad_address_is_refused_without_its_password(address):
    with pytest.raises(ParameterError) as caught:
        Link(address)
    assert PASSWORD not in str(caught.value) and "postgresql://user@host" in str(caught.value)


def test_no_message_holds_the_password(postgres):
    for address, told in (
        (postgres.address("nowhere"), "does not exist"),
        (postgres.address(password="wrong" + PASSWORD), "authentication failed"),
        (postgres.address().replace(str(postgres.port), "1"), "refused"),
    ):
        store = make(address)
        with pytest.raises(StoreError, match=told) as caught:
            store.open()
        for text in (str(caught.value), store.where, repr(store), repr(store.link)):
            assert PASSWORD not in text and PASSWORD.replace("&", "%26") not in text
    assert store.where.startswith("postgresql://learner@127.0.0.1:1/")
    link = Link("postgresql://u:abc%26d@h/x")
    assert str(link.told(ValueError("abc&d and abc%26d"))).endswith("*** and ***")


def test_a_schema_is_a_plain_name():
    for name in ("", "a b", 'x"; drop', "1a", "A", "x" * 60):
        with pytest.raises(ParameterError, match="schema"):
            Link("postgresql://h/x", name)


def test_tables_of_a_later_version_are_left_alone(store, postgres, database, address):
    store.close()
    postgres.run(database, "UPDATE semibandit.leader SET format = 2")
    with pytest.raises(StoreError, match="has format 2: this semibandit is too old") as caught:
        store.open()
    assert caught.value.lasting
