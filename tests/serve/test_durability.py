"""What the disk can do to the service, in this process: failing writes, torn tails, damaged snapshots, clocks."""

from __future__ import annotations

import asyncio
import json
import random
import shutil

import pytest

from semibandit.errors import FileError
from semibandit.serve.clock import ServiceClock
from semibandit.serve.events import Opened, Rewarded, encode_group
from semibandit.serve.host import Host
from semibandit.serve.keeper import Upkeep
from semibandit.serve.refusals import Refusal
from semibandit.serve.service import Service
from semibandit.serve.snapshots import FolderShelf, read_snapshot, write_snapshot
from semibandit.serve.sqlite_store import SqliteStore
from semibandit.serve.store import Group, StoreError, Taken
from support.service import SMALL, events_in, running

CUCB = {"small": type(SMALL)(policy="cucb", matroid={"kind": "uniform", "arms": 40, "rank": 4})}


@pytest.fixture
def data(tmp_path):
    """The folder of the service; beside it there is room for others."""
    return tmp_path / "data"


def state_of(host, folder):
    """All bits of a host."""
    write_snapshot(host, folder)
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "MANIFEST.json"}


def replayed(folder):
    """A host that was fed the whole log and nothing else."""
    host = Host()
    for event in events_in(folder):
        host.apply(event)
    return host


async def some(service, n, rng=None, acknowledged=None):
    """`n` decisions with rewards for most of them; what was acknowledged."""
    rng = rng or random.Random(0)
    for _ in range(n):
        try:
            made, waiter = service.select("small")
            await waiter
            if rng.random() < 0.8:
                _, waiter = service.reward("small", made[0].decision, None, [rng.random()] * 4)
                await waiter
                if acknowledged is not None:
                    acknowledged.append(made[0].decision)
        except (Refusal, StoreError):
            await asyncio.sleep(0.05)


def test_a_restart_goes_on_from_the_snapshot_and_the_rest_of_the_log(data):
    async def main():
        async with running(data) as client:
            service = client.service
            await some(service, 30)
            await service.snapshot()
            await some(service, 20)
            shutil.copytree(data, data.parent / "crashed")
            return service.host, service.keeper.position

    host, at = asyncio.run(main())
    crashed = data.parent / "crashed"

    async def again():
        service = Service(SqliteStore(crashed), crashed)
        started = await service.start()
        assert (started.snapshot, started.replayed) == (at, host.position - at)
        # the opening is one event more, and a host knows the tags of its openings
        first = state_of(service.host, data.parent / "a")
        await service.stop()
        return first

    first, second = asyncio.run(again()), state_of(host, data.parent / "b")
    assert first["0.semibandit"] == second["0.semibandit"]
    assert state_of(replayed(crashed), data.parent / "c") == first


def test_a_clean_stop_leaves_nothing_to_replay(data):
    async def main():
        async with running(data) as client:
            await some(client.service, 10)
        service = Service(SqliteStore(data), data)
        started = await service.start()
        await service.stop()
        return started

    started = asyncio.run(main())
    assert started.replayed == 0 and started.snapshot > 10


class FailingStore(SqliteStore):
    """Fails now and then: before it writes, or after (so that nobody knows whether it did)."""

    def __init__(self, folder, every=1):
        super().__init__(folder)
        self.every, self.armed, self.asked, self.failed = every, False, 0, 0

    def append(self, group):
        self.asked += self.armed
        fails = self.armed and self.asked % self.every == 0
        self.failed += fails
        if fails and (self.every == 1 or self.failed % 2):
            raise StoreError("disk full")
        super().append(group)
        if fails:
            raise StoreError("the answer of the disk was lost")


@pytest.mark.parametrize("every", [3, 5, 8])
def test_a_failing_disk_loses_nothing_acknowledged_and_counts_nothing_twice(every, data):
    rng = random.Random(every)
    store, done = FailingStore(data, every), []

    async def main():
        async with running(data, CUCB, store=store) as client:
            store.armed = True
            await asyncio.gather(*(some(client.service, 8, rng, done) for _ in range(6)))
            store.armed = False
            for _ in range(200):
                if client.service.down is None:
                    break
                await asyncio.sleep(0.05)
            assert client.service.down is None
            assert client.service.recoveries >= 1 and store.failed >= 1
            assert any(event == "log_failed" for event, _ in client.told)
            before = state_of(client.service.host, data.parent / "a")
            made, waiter = client.service.select("small")
            await waiter
            return before, client.service.host, made[0].decision

    before, host, last = asyncio.run(main())
    events = events_in(data)
    rewarded = [event.number for event in events if type(event) is Rewarded]
    assert len(rewarded) == len(set(rewarded)), "each decision was rewarded once, whole"
    assert {int(one.rsplit("-", 1)[1]) for one in done} <= set(rewarded)
    seat = host.seats["small"]
    assert seat.rewards == 4 * len(rewarded) == int(seat.policy.counts.sum())
    assert state_of(replayed(data), data.parent / "b") == state_of(host, data.parent / "c")
    assert len({event.tag for event in events if type(event) is Opened}) > 1 and last and before


def test_while_the_log_cannot_be_written_requests_are_told_to_come_again(data):
    store = FailingStore(data)

    async def main():
        async with running(data, store=store) as client:
            made = (await client.post("/v1/policies/small/select", json={})).json()
            store.armed = True
            told = {"decision": made["decision"], "rewards": [1.0] * 4}
            answer = await client.post("/v1/policies/small/rewards", json=told)
            assert answer.status_code == 503 and answer.headers["retry-after"] == "1"
            assert (await client.post("/v1/policies/small/select", json={})).status_code == 503
            ready = await client.get("/readyz")
            assert ready.status_code == 503 and "disk full" in ready.json()["reason"]
            assert (await client.get("/healthz")).status_code == 200
            store.armed = False
            for _ in range(200):
                answer = await client.post("/v1/policies/small/rewards", json=told)
                if answer.status_code == 200:
                    break
                await asyncio.sleep(0.05)
            assert answer.json() == {"counted": 4, "duplicates": 0, "dropped": 0, "waiting": 0}

    asyncio.run(main())


def test_a_duplicate_is_acknowledged_only_when_the_first_is_on_disk(data):
    store = FailingStore(data)

    async def main():
        async with running(data, store=store) as client:
            service = client.service
            made, waiter = service.select("small")
            await waiter
            store.armed = True
            _, first = service.reward("small", made[0].decision, None, [1.0] * 4)
            learnt, second = service.reward("small", made[0].decision, None, [1.0] * 4)
            assert learnt.duplicates == 4
            for waiter in (first, second):
                with pytest.raises(StoreError):
                    await waiter
            store.armed = False

    asyncio.run(main())


def test_a_request_that_breaks_the_state_is_undone(data):
    async def main():
        async with running(data, CUCB) as client:
            service = client.service
            await some(service, 10)
            good = service.host
            kept = state_of(good, data.parent / "a")["0.semibandit"]

            def broken(*_):
                raise RuntimeError("half way")

            good.seats["small"].policy._wait = broken
            answer = await client.post("/v1/policies/small/select", json={})
            assert answer.status_code == 503
            for _ in range(200):
                if service.down is None:
                    break
                await asyncio.sleep(0.05)
            assert service.host is not good and service.recoveries == 1
            assert state_of(service.host, data.parent / "b")["0.semibandit"] == kept
            assert (await client.post("/v1/policies/small/select", json={})).status_code == 200

    asyncio.run(main())


def crash(data, snapshots=2, n=15):
    """A folder as a crash leaves it: `snapshots` of them, and more in the log."""
    copy = data.parent / "crashed"

    async def main():
        async with running(data, CUCB) as client:
            for _ in range(snapshots):
                await some(client.service, n)
                await client.service.snapshot()
            await some(client.service, n)
            shutil.copytree(data, copy)
            return client.service.host

    return copy, asyncio.run(main())


def restart(folder):
    told = []

    async def main():
        service = Service(
            SqliteStore(folder), folder, tell=lambda event, **facts: told.append((event, facts))
        )
        started = await service.start()
        host = service.host
        service.down = "looked at"  # no last snapshot: the folder stays as it is
        await service.stop()
        return started, host

    return *asyncio.run(main()), told


@pytest.mark.parametrize("what", ["0.semibandit", "host.msgpack", "MANIFEST.json", "missing"])
def test_a_damaged_newest_snapshot_gives_way_to_the_one_before(what, data):
    folder, host = crash(data)
    newest, before = FolderShelf(folder / "snapshots").positions()
    path = folder / "snapshots" / f"{newest:020d}"
    if what == "missing":
        (path / "0.semibandit").unlink()
    else:
        raw = bytearray((path / what).read_bytes())
        raw[len(raw) // 2] ^= 64
        (path / what).write_bytes(raw)
    started, found, told = restart(folder)
    assert started.snapshot == before and started.replayed == host.position - before
    assert told[0][0] == "snapshot_damaged" and str(newest) in told[0][1]["error"]
    mine, theirs = state_of(found, data.parent / "a"), state_of(host, data.parent / "b")
    assert mine["0.semibandit"] == theirs["0.semibandit"]


def test_without_any_whole_snapshot_the_whole_log_is_replayed(data):
    folder, host = crash(data)
    for position in FolderShelf(folder / "snapshots").positions():
        (folder / "snapshots" / f"{position:020d}" / "MANIFEST.json").unlink()
    started, found, _ = restart(folder)
    assert (started.snapshot, started.replayed) == (None, host.position)
    assert found.seats["small"].policy.counts.tolist() == host.seats["small"].policy.counts.tolist()


def test_an_unfinished_snapshot_is_no_snapshot(data):
    folder, _ = crash(data, snapshots=1)
    (folder / "snapshots" / ".writing-abcd").mkdir()
    started, _, _ = restart(folder)
    assert started.snapshot == FolderShelf(folder / "snapshots").positions()[0]


@pytest.mark.parametrize("cut", [1, 100, 5000, 0.5, 0.9])
def test_a_torn_tail_of_the_log_is_cut_off(cut, data):
    folder, host = crash(data, snapshots=1)
    wal = folder / "log.sqlite-wal"
    size = wal.stat().st_size
    assert size > 20_000
    keep = size - cut if cut >= 1 else int(size * (1 - cut))
    raw = wal.read_bytes()[:keep]
    wal.write_bytes(raw[:-50] + bytes(reversed(raw[-50:])))
    started, found, _ = restart(folder)
    # What the snapshot covers is there in any case; after it, a prefix of the log.
    assert started.snapshot == FolderShelf(folder / "snapshots").positions()[0]
    assert 0 <= started.replayed <= host.position - started.snapshot
    if cut == 1:
        assert host.position - found.position + 1 <= 2


def test_a_damaged_row_of_the_log_is_told(data):
    store = SqliteStore(data)
    store.open()
    for first in (1, 2, 3):
        store.append(Group(first, 1, encode_group([b"\xc0"])))
    store._db.execute("UPDATE log SET payload = x'00' WHERE first = 2")
    with pytest.raises(StoreError, match=r"events 2 ff\. are damaged"):
        list(store.read(0))
    assert [group.first for group in store.read(2)] == [3]
    store._db.execute("DELETE FROM log WHERE first = 2")
    with pytest.raises(StoreError, match="events 2 to 2 are missing"):
        list(store.read(0))
    with pytest.raises(StoreError, match="UNIQUE"):
        store.append(Group(3, 1, b""))
    store.close()
    (data / "log.sqlite").write_bytes(b"no database at all, but long enough to look like one" * 100)
    for name in ("log.sqlite-wal", "log.sqlite-shm"):
        (data / name).unlink(missing_ok=True)
    with pytest.raises(StoreError, match="not a database") as told:
        SqliteStore(data).open()
    assert told.value.lasting


def test_one_server_per_folder(data):
    first, second = SqliteStore(data), SqliteStore(data)
    first.open()
    first.open()
    with pytest.raises(Taken, match="is served already, by process"):
        second.open()
    first.close()
    second.open()
    second.close()


def test_a_folder_that_cannot_be_made_is_told(data):
    data.mkdir()
    (data / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be used: Not a directory"):
        SqliteStore(data / "file" / "data").open()


def test_old_log_is_forgotten_when_a_snapshot_covers_it(data):
    upkeep = Upkeep(retention=0.0, snapshots=2)

    async def main():
        async with running(data, CUCB, upkeep=upkeep) as client:
            service = client.service
            for _ in range(3):
                await some(service, 10)
                await service.snapshot()
            for _ in range(100):
                if service.store.first() > 1:
                    break
                await asyncio.sleep(0.02)
            oldest = FolderShelf(data / "snapshots").positions()[-1]
            assert len(FolderShelf(data / "snapshots").positions()) == 2
            assert 1 < service.store.first() <= oldest + 1
            return [mark[1] for mark in json.loads((data / "marks.json").read_text())]

    assert len(asyncio.run(main())) >= 2
    started, _, _ = restart(data)
    assert started.replayed == 0
    shutil.rmtree(data / "snapshots")
    with pytest.raises(StoreError, match="no whole snapshot"):
        restart(data)


def test_a_snapshot_that_cannot_be_written_harms_nobody(data):
    async def main():
        async with running(data, CUCB) as client:
            await some(client.service, 5)
            shutil.rmtree(data / "snapshots")
            (data / "snapshots").write_text("in the way")
            answer = await client.post("/v1/snapshot")
            assert answer.status_code == 503 and "snapshot" in answer.json()["message"]
            (data / "snapshots").unlink()
            (data / "snapshots").mkdir()
            answer = await client.post("/v1/snapshot")
            assert answer.json() == {"position": client.service.host.position}
            assert client.service.keeper.pauses.count == 2

    asyncio.run(main())


def test_snapshots_are_written_when_they_are_due(data):
    async def main():
        async with running(data, CUCB, upkeep=Upkeep(snapshot_events=20)) as client:
            await some(client.service, 30)
            for _ in range(100):
                if client.service.keeper.written:
                    break
                await asyncio.sleep(0.05)
            assert client.service.keeper.written == 1
            queue = client.service.pulse.subscribe()
            sample = await asyncio.wait_for(queue.get(), 5)
            client.service.pulse.unsubscribe(queue)
            assert sample.policies["small"].decisions == 30 and sample.snapshot_age is not None

    asyncio.run(main())


def test_a_clock_set_back_or_forth_while_it_runs_is_not_looked_at():
    date, steady = [10**18], [0]
    clock = ServiceClock(lambda: date[0], lambda: steady[0])
    clock.begin(0)
    start = clock.now()
    date[0] = 5 * 10**17
    steady[0] += 2_000_000
    assert clock.now() == start + 2000
    clock.begin(clock.now())
    assert clock.now() == start + 2000, "after a restart with a clock set back, time goes on from the log's"
    date[0] = 2 * 10**18
    clock.begin(0)
    assert clock.now() == 2 * 10**15


def test_a_clock_set_back_between_two_runs_expires_nothing_early(data):
    day = 86_400 * 10**9
    spec = {"small": type(SMALL)(policy="cucb", matroid={"arms": 40, "rank": 4}, ttl=3600.0)}

    async def run(date, decision=None):
        async with running(data, spec, clock=ServiceClock(lambda: date)) as client:
            if decision is None:
                return (await client.post("/v1/policies/small/select", json={})).json()["decision"]
            told = {"decision": decision, "rewards": [1.0] * 4}
            return (await client.post("/v1/policies/small/rewards", json=told)).status_code

    made = asyncio.run(run(100 * day))
    assert asyncio.run(run(50 * day, made)) == 200
    times = [event.at for event in events_in(data)]
    assert times == sorted(times)
    made = asyncio.run(run(100 * day))
    assert asyncio.run(run(101 * day, made)) == 410


def test_a_damaged_snapshot_is_told_as_such(data):
    with pytest.raises(FileError, match="is damaged"):
        read_snapshot(FolderShelf(data), 7)
