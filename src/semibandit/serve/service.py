"""The service while it runs: host, log, clock and snapshots, held together for requests that come at any time.

Everything that touches the host runs in one event loop, between two awaits, so requests are served in one order, and
that order is the log's. An answer waits until its event, and all before it, are on disk.

If the log cannot be written, the host is ahead of it. Nobody who waited gets an answer but "try again" (503); the host
is thrown away and made anew from the newest snapshot and what the log really holds, and requests are refused until
that is done and the log can be written again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from semibandit.errors import FileError, SemibanditError
from semibandit.serve.clock import ServiceClock
from semibandit.serve.committer import Committer, Waiter
from semibandit.serve.events import Event, decode_group, encode_event, encode_group
from semibandit.serve.host import Host, Limits
from semibandit.serve.pulse import Histogram, Latencies, PolicySample, Pulse, Sample
from semibandit.serve.refusals import Refusal, ReplayError
from semibandit.serve.seats import Seat
from semibandit.serve.snapshots import newest_whole, publish, tidy
from semibandit.serve.snapshotter import begin
from semibandit.serve.store import Group, Store, StoreError
from semibandit.serve.wire import Learnt, Made, PolicySpec

Teller = Callable[..., None]
T = TypeVar("T")


class Upkeep(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """When snapshots are written, and how long the log is kept."""

    #: A snapshot after so many events, or seconds if anything happened.
    snapshot_events: int = 500_000
    snapshot_seconds: float = 300.0
    #: Snapshots that are kept; the log reaches back to the oldest of them at least.
    snapshots: int = 2
    #: Seconds for which the log is kept besides, for export.
    retention: float = 7 * 86_400.0


class Started(msgspec.Struct):
    """What a start found: the snapshot it began with, if any, and the events that it replayed."""

    snapshot: int | None
    replayed: int
    seconds: float


class Service:
    """Policies, decided and learnt, logged and kept. `data`: the folder of snapshots."""

    def __init__(
        self,
        store: Store,
        data: Path,
        *,
        limits: Limits | None = None,
        upkeep: Upkeep | None = None,
        clock: ServiceClock | None = None,
        tell: Teller = lambda *a, **k: None,
    ) -> None:
        self.store, self.data = store, Path(data)
        self.limits, self.upkeep = limits or Limits(), upkeep or Upkeep()
        self.clock = clock or ServiceClock()
        self.tell = tell
        self.host = Host(self.limits)
        self.committer: Committer | None = None
        #: None while requests are served; otherwise why they are not.
        self.down: str | None = "starting"
        self.started: Started | None = None
        self.pulse = Pulse()
        self.commit_times, self.pauses = Histogram(), Histogram()
        self.latencies: dict[str, Histogram] = {}
        self.duplicates = self.requests = self.refused = self.recoveries = self.snapshots = 0
        self.log_bytes = 0
        #: Requests with rewards that came after their decision's time, by policy.
        self.late: dict[str, int] = {}
        self.snapshot_at: float | None = None
        self.snapshot_position = 0
        self._snapshot_task: asyncio.Task[int] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    # -- start, stop -------------------------------------------------------------------------------------

    @property
    def _snapshots(self) -> Path:
        return self.data / "snapshots"

    async def start(self, policies: dict[str, PolicySpec] | None = None) -> Started:
        """Take the store, restore the state, make the policies that are not there yet, and serve."""
        self._loop = asyncio.get_running_loop()
        await self._take_over()
        for name, spec in (policies or {}).items():
            seat = self.host.seats.get(name)
            if seat is None:
                waiter = self.create(name, spec)
                assert waiter is not None
                await waiter
            elif msgspec.msgpack.encode(seat.spec) != msgspec.msgpack.encode(spec):
                self.tell("policy_differs", policy=name, note="the one in the data folder goes on as it is")
        self._spawn(self._beat())
        assert self.started is not None
        return self.started

    async def _take_over(self) -> None:
        """From nothing, or from a failure, to serving."""
        host, self.started = await self._loop.run_in_executor(None, self._load)
        self.clock.begin(host.time)
        event = host.open(self.clock.now(), secrets.token_hex(3))
        group = Group(host.position, 1, encode_group([encode_event(event)]))
        await self._loop.run_in_executor(None, self.store.append, group)
        self.host = host
        self.committer = Committer(self.store, host.position, self._loop, self._fail, self._written)
        self.down = None

    def _load(self) -> tuple[Host, Started]:
        began = time.perf_counter()
        self.store.open()
        self._snapshots.mkdir(parents=True, exist_ok=True)

        def complain(why: str) -> None:
            self.tell("snapshot_damaged", error=why)

        found: int | None = None
        host = Host(self.limits)
        for found, host in newest_whole(self._snapshots, self.limits, complain):  # noqa: B007  the first one
            break
        self.snapshot_position = found or 0
        self.snapshot_at = None
        try:
            replayed = self._replay(host)
        except StoreError as error:
            if found is None and self.store.first() > 1:
                raise StoreError(
                    f"{error}; and there is no whole snapshot to begin with", lasting=True
                ) from None
            raise
        return host, Started(found, replayed, time.perf_counter() - began)

    def _replay(self, host: Host) -> int:
        """Feed the rest of the log to `host`; how many events."""
        start = host.position
        for group in self.store.read(start):
            try:
                events = decode_group(group.payload)
            except msgspec.MsgspecError as error:
                raise ReplayError(f"events {group.first} ff. of the log cannot be read: {error}") from None
            for event in events[max(0, start - group.first + 1) :]:
                host.apply(event)
        return host.position - start

    def _fail(self, error: StoreError) -> None:
        """The log could not be written: begin anew."""
        if self.down is None:
            self.down = str(error)
            self.tell("log_failed", error=str(error))
            self._spawn(self._recover())

    async def _recover(self) -> None:
        wait = 0.2
        while True:
            await asyncio.sleep(wait)
            if self._snapshot_task is not None:
                await asyncio.wait([self._snapshot_task])
            old = self.committer
            if old is not None:
                self.committer = None
                await self._loop.run_in_executor(None, old.stop)
            try:
                await self._take_over()
            except (SemibanditError, OSError) as error:
                self.down = str(error)
                self.tell("recovery_failed", error=str(error))
                wait = min(2 * wait, 5.0)
                continue
            self.recoveries += 1
            assert self.started is not None
            self.tell("recovered", snapshot=self.started.snapshot, replayed=self.started.replayed)
            return

    async def stop(self) -> None:
        """Write what is handed over, a last snapshot, and let go of the store."""
        was_up, self.down = self.down is None, self.down or "stopping"
        self.pulse.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._snapshot_task is not None:
            await asyncio.wait([self._snapshot_task])
        if self.committer is not None:
            await self._loop.run_in_executor(None, self.committer.stop)
            if was_up and self.committer.error is None and self.host.position > self.snapshot_position:
                with contextlib.suppress(FileError, OSError, StoreError):
                    await self._snapshot()
        self.store.close()

    def _spawn(self, work: Any) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- requests: each returns its answer, and what to wait for before it may be sent -----------------------

    def ready(self) -> Host:
        """The host, or a 503."""
        if self.down is not None:
            raise Refusal(503, "unavailable", f"not serving now: {self.down}")
        return self.host

    def _log(self, event: Event | None) -> Waiter | None:
        """Hand an event over; without one, wait for those of others that the answer may rest on."""
        assert self.committer is not None
        return self.committer.barrier() if event is None else self.committer.put([encode_event(event)])

    def log_all(self, events: list[Event]) -> Waiter | None:
        """`_log` for several events, which are written together; None if there is nothing to wait for."""
        if self.committer is None:
            return None
        if not events:
            return self.committer.barrier()
        return self.committer.put([encode_event(event) for event in events])

    def _do(self, work: Callable[..., T], *given: Any) -> T:
        """Let the host do something now. What it refuses changes nothing; whatever else it raises breaks the state."""
        if self.down is not None:
            raise Refusal(503, "unavailable", f"not serving now: {self.down}")
        try:
            return work(self.clock.now(), *given)
        except Refusal:
            raise
        except Exception as error:
            raise self._broke(error) from error

    def _broke(self, error: Exception) -> Refusal:
        """Something that must not happen happened half way: what is in memory cannot be trusted."""
        assert self.committer is not None
        self.committer.error = StoreError(f"the state broke: {type(error).__name__}: {error}")
        self._fail(self.committer.error)
        return Refusal(503, "unavailable", "the request broke the state, which is made anew from the log")

    def decide(
        self,
        name: str,
        exclude: Any = None,
        among: Any = None,
        count: int | None = None,
        key: str | None = None,
    ) -> tuple[Event | None, list[Made]]:
        """`Host.select`; the event is the caller's to log."""
        return self._do(self.host.select, name, exclude, among, count, key)

    def learn(
        self, name: str, decision: str, arms: list[Any] | None, rewards: list[Any]
    ) -> tuple[Event | None, Learnt]:
        """`Host.reward`; the event is the caller's to log."""
        try:
            event, learnt = self._do(self.host.reward, name, decision, arms, rewards)
        except Refusal as error:
            if error.status == 410:
                self.late[name] = self.late.get(name, 0) + 1
            raise
        self.duplicates += learnt.duplicates
        return event, learnt

    def count(self, name: str, key: str, arms: list[Any], rewards: list[Any]) -> tuple[Event | None, Learnt]:
        """`Host.update`; the event is the caller's to log."""
        event, learnt = self._do(self.host.update, name, key, arms, rewards)
        self.duplicates += learnt.duplicates
        return event, learnt

    def select(
        self,
        name: str,
        exclude: Any = None,
        among: Any = None,
        count: int | None = None,
        key: str | None = None,
    ) -> tuple[list[Made], Waiter | None]:
        """`decide`, logged."""
        event, made = self._do(self.host.select, name, exclude, among, count, key)
        return made, self._log(event)

    def reward(
        self, name: str, decision: str, arms: list[Any] | None, rewards: list[Any]
    ) -> tuple[Learnt, Waiter | None]:
        """`learn`, logged."""
        event, learnt = self.learn(name, decision, arms, rewards)
        return learnt, self._log(event)

    def create(self, name: str, spec: PolicySpec) -> Waiter | None:
        """`Host.create`, logged."""
        return self._log(self.ready().create(self.clock.now(), name, spec))

    def remove(self, name: str) -> Waiter | None:
        """`Host.remove`, logged."""
        waiter = self._log(self.ready().remove(self.clock.now(), name))
        self.late.pop(name, None)
        return waiter

    def change_arms(
        self, name: str, arms: list[Any], attributes: list[Any] | None, insert: bool
    ) -> Waiter | None:
        """`Host.insert` or `Host.delete`, logged."""
        if insert:
            return self._log(self._do(self.host.insert, name, arms, attributes))
        return self._log(self._do(self.host.delete, name, arms))

    # -- snapshots ---------------------------------------------------------------------------------------

    async def snapshot(self) -> int:
        """Write a snapshot, or wait for the one that is being written: how many events it covers."""
        self.ready()
        if self._snapshot_task is None:
            self._snapshot_task = self._loop.create_task(self._snapshot())
            self._snapshot_task.add_done_callback(self._snapshot_over)
        return await asyncio.shield(self._snapshot_task)

    def _snapshot_over(self, task: asyncio.Task[int]) -> None:
        self._snapshot_task = None
        if not task.cancelled() and task.exception() is not None:
            self.tell("snapshot_failed", error=str(task.exception()))

    async def _snapshot(self) -> int:
        committer = self.committer
        assert committer is not None
        if self.host.position == self.snapshot_position:
            return self.snapshot_position
        folder = self._snapshots / f".writing-{secrets.token_hex(4)}"
        written = begin(self.host, folder)
        self.pauses.observe(written.pause)
        barrier = committer.barrier() if self.down is None else None
        await self._loop.run_in_executor(None, written.wait)
        if barrier is not None:
            await barrier  # a snapshot never covers what is not in the log
        await self._loop.run_in_executor(None, publish, folder, self._snapshots, written.position)
        self.snapshots += 1
        self.snapshot_position, self.snapshot_at = written.position, time.monotonic()
        self.tell("snapshot", position=written.position, pause_ms=round(written.pause * 1e3, 2))
        await self._loop.run_in_executor(None, self._retire, written.position)
        return written.position

    def _retire(self, position: int) -> None:
        """Old snapshots go, and the log before the oldest one that stays, if it is old enough."""
        tidy(self._snapshots, self.upkeep.snapshots)
        path = self.data / "marks.json"
        marks: list[list[float]] = []
        with contextlib.suppress(OSError, ValueError):
            marks = json.loads(path.read_text())
        now = time.time()
        marks.append([now, position])
        old = [mark for mark in marks if mark[0] <= now - self.upkeep.retention]
        kept = marks[-max(1, self.upkeep.snapshots) :]
        before = min(int(old[-1][1]) if old else 0, int(kept[0][1])) + 1
        marks = [mark for mark in marks if mark[1] + 1 >= before][-10_000:]
        new = path.with_suffix(".new")
        new.write_text(json.dumps(marks))
        new.replace(path)
        if before > 1 and self.committer is not None:
            self.committer.add_chore(lambda: self.store.prune(before))

    # -- second by second ----------------------------------------------------------------------------------

    def _written(self, n: int, took: float, size: int) -> None:
        self.commit_times.observe(took)
        self.log_bytes += size

    @property
    def lag(self) -> int:
        """Events that are not on disk yet."""
        return 0 if self.committer is None else self.committer.handed - self.committer.durable

    async def _beat(self) -> None:
        """Every second: a sample for those who look on, and a snapshot when it is due."""
        last, latencies = self._totals(), Latencies(self.latencies)
        began = due = time.monotonic()
        while True:
            due += 1.0
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            now = time.monotonic()
            totals, took = self._totals(), max(now - began, 1e-3)
            began = now
            rates = [max(0, a - b) / took for a, b in zip(totals, last, strict=True)]
            last = totals
            self.pulse.add(self._sample(rates, latencies.tick()))
            if self.down is None and self._snapshot_task is None and self._is_due():
                self._spawn(self._snapshot_now())
            due = max(due, now - 0.5)  # after a standstill: no two beats at once

    async def _snapshot_now(self) -> None:
        """A snapshot that nobody waits for, so that the beat goes on; what went wrong is told already."""
        with contextlib.suppress(SemibanditError, OSError):
            await self.snapshot()

    def _totals(self) -> tuple[int, int, int]:
        seats = self.host.seats.values()
        return sum(seat.ledger.next for seat in seats), sum(seat.rewards for seat in seats), self.requests

    def _sample(self, rates: list[float], latencies: dict[str, list[float | None]]) -> Sample:
        policies = {name: self.sample_of(seat) for name, seat in self.host.seats.items()}
        return Sample(
            time.time(), rates[0], rates[1], rates[2], latencies, self.lag, self.snapshot_age, policies
        )

    def sample_of(self, seat: Seat) -> PolicySample:
        """One policy as it stands. O(1)."""
        late = self.late.get(seat.name, 0)
        return PolicySample(
            seat.ledger.next, seat.rewards, seat.total, seat.ledger.pending, seat.expired, late
        )

    @property
    def snapshot_age(self) -> float | None:
        """Seconds since the last snapshot of this process, None if it wrote none."""
        return None if self.snapshot_at is None else time.monotonic() - self.snapshot_at

    def _is_due(self) -> bool:
        waiting = self.host.position - self.snapshot_position
        if waiting >= self.upkeep.snapshot_events:
            return True
        since = self.snapshot_at if self.snapshot_at is not None else self._began
        return waiting > 1 and time.monotonic() - since >= self.upkeep.snapshot_seconds

    @property
    def _began(self) -> float:
        if not hasattr(self, "_up_since"):
            self._up_since = time.monotonic()
        return self._up_since
