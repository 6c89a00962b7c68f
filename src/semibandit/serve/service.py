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
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec

from semibandit.errors import FileError, SemibanditError
from semibandit.serve.clock import ServiceClock
from semibandit.serve.committer import Committer, Waiter
from semibandit.serve.events import Event, Rewarded, encode_event, encode_group
from semibandit.serve.host import Host
from semibandit.serve.keeper import Keeper, Upkeep
from semibandit.serve.limits import Limits
from semibandit.serve.pulse import Histogram, Latencies, PolicySample, Pulse, Sample
from semibandit.serve.refusals import Refusal
from semibandit.serve.restoring import Started, load
from semibandit.serve.seats import Seat
from semibandit.serve.several import Several
from semibandit.serve.snapshots import FolderShelf, Shelf
from semibandit.serve.standby import Follower
from semibandit.serve.store import Group, SharedStore, Store, StoreError, Taken
from semibandit.serve.wire import Learnt, Made, PolicySpec, RewardsOperation

Teller = Callable[..., None]
T = TypeVar("T")


class Service:
    """Policies, decided and learnt, logged and kept. `data`: the folder of snapshots, unless a `shelf` is given."""

    def __init__(
        self,
        store: Store,
        data: Path,
        *,
        shelf: Shelf | None = None,
        limits: Limits | None = None,
        upkeep: Upkeep | None = None,
        clock: ServiceClock | None = None,
        tell: Teller = lambda *a, **k: None,
    ) -> None:
        self.store, self.limits = store, limits or Limits()
        self.keeper = Keeper(shelf or FolderShelf(Path(data) / "snapshots"), upkeep or Upkeep(), tell)
        self.clock = clock or ServiceClock()
        self.tell = tell
        self.host = Host(self.limits)
        self.committer: Committer | None = None
        #: None while requests are served; otherwise why they are not.
        self.down: str | None = "starting"
        self.started: Started | None = None
        #: Why this process will never serve again, and who is told so.
        self.fatal: SemibanditError | None = None
        self.gave_up: Callable[[], None] = lambda: None
        self._standby = False
        self.pulse = Pulse()
        self.commit_times = Histogram()
        self.latencies: dict[str, Histogram] = {}
        self.duplicates = self.requests = self.refused = self.recoveries = self.log_bytes = 0
        #: Requests with rewards that came after their decision's time, by policy.
        self.late: dict[str, int] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    # -- start, stop -------------------------------------------------------------------------------------

    async def start(self, policies: dict[str, PolicySpec] | None = None, *, standby: bool = False) -> Started:
        """Take the store, restore the state, make the policies that are not there yet, and serve.

        `standby`: the store may be another's (it is a `SharedStore`); follow the log until that one is gone.
        """
        self._loop = asyncio.get_running_loop()
        self._standby = standby
        self.store.lost = self._lost
        if standby:
            await self._follow()
        else:
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

    async def _take_over(self, host: Host | None = None) -> None:
        """From nothing, from a failure, or from a `host` that followed a log that is ours now, to serving."""
        if host is None:
            host, self.started = await self._loop.run_in_executor(None, self._load)
        assert host is not None and self.started is not None
        self.keeper.begin(self.started.snapshot or 0)
        self.clock.begin(host.time)
        event = host.open(self.clock.now(), secrets.token_hex(3))
        group = Group(host.position, 1, encode_group([encode_event(event)]))
        await self._loop.run_in_executor(None, self.store.append, group)
        self.host = host
        self.committer = Committer(self.store, host.position, self._loop, self._fail, self._written)
        self.down = None

    def _load(self) -> tuple[Host, Started]:
        self.store.open()
        return load(self.store, self.keeper.shelf, self.limits, self.tell)

    async def _follow(self) -> None:
        """Wait for the store to be free, with a state as near as can be, and take it."""
        follower = Follower(cast(SharedStore, self.store), self.keeper.shelf, self.limits, self.tell)
        while True:
            async for how in follower.wait():
                self.down = how
            self.started = follower.started
            try:
                await self._take_over(follower.host)
            except (SemibanditError, OSError) as error:
                self.tell("takeover_failed", error=str(error))
                follower.forget()  # its state is ahead of the log
                continue
            self.tell("took_over", position=self.host.position)
            return

    def _lost(self, error: StoreError) -> None:
        """The store says that it can no longer be written; from any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is served any more
            self._loop.call_soon_threadsafe(self._fail, error)

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
            await self.keeper.wait()
            old = self.committer
            if old is not None:
                self.committer = None
                await self._loop.run_in_executor(None, old.stop)
            try:
                await self._take_over()
            except Taken as error:
                self.tell("stepped_down", error=str(error))
                if not self._standby:
                    self.down, self.fatal = str(error), error
                    self.gave_up()
                    return
                await self._follow()
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
        await self.keeper.wait()
        if self.committer is not None:
            await self._loop.run_in_executor(None, self.committer.stop)
            if was_up and self.committer.error is None:
                with contextlib.suppress(FileError, OSError, StoreError):
                    await self.keeper.write(self.host, self.committer)
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
        return self.log_all([] if event is None else [event])

    def log_all(self, events: list[Event]) -> Waiter | None:
        """`_log` for several events, which are written together; None if there is nothing to wait for."""
        if self.committer is None:
            return None
        if not events:
            return self.committer.barrier()
        try:
            encoded = [encode_event(event) for event in events]
        except Exception as error:  # they are in the state, and cannot be in the log
            raise self._broke(error) from error
        return self.committer.put(encoded)

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

    def decide_several(self, name: str, n: int) -> tuple[Event, Several] | None:
        """`Host.select_several`, None where decisions must be made one by one; the event is the caller's to log."""
        if not 1 <= n <= self.ready().most_at_once(name):
            return None
        return self._do(self.host.select_several, name, n)

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

    def learn_together(self, name: str, told: list[RewardsOperation]) -> tuple[list[Rewarded], list[Learnt]]:
        """`Host.reward_together`; the events are the caller's to log."""
        return self._do(self.host.reward_together, name, told)

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

    async def snapshot(self) -> int:
        """Write a snapshot, or wait for the one that is being written: how many events it covers."""
        host = self.ready()
        assert self.committer is not None
        return await self.keeper.write(host, self.committer)

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
            if self.down is None and not self.keeper.busy and self.keeper.is_due(self.host.position):
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
            time.time(), rates[0], rates[1], rates[2], latencies, self.lag, self.keeper.age, policies
        )

    def sample_of(self, seat: Seat) -> PolicySample:
        """One policy as it stands. O(1)."""
        late = self.late.get(seat.name, 0)
        return PolicySample(
            seat.ledger.next, seat.rewards, seat.total, seat.ledger.pending, seat.expired, late
        )
