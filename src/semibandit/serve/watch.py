"""The stream that the page shows: server-sent events, one a second, the same bytes for all who watch one policy.

A client that reads too slowly loses seconds (`pulse.Watcher`), and its connection if it stops reading
(`protocol.sweep`). A client that goes, and a service that stops, end the stream.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec
from starlette.responses import Response

from semibandit import __version__
from semibandit.serve.answers import about_policy
from semibandit.serve.peek import Peek, peek
from semibandit.serve.pulse import Pulse, Watcher
from semibandit.serve.service import Service

#: Seconds without a sample (while the log is replayed) after which the stream says that it is there.
_QUIET = 3.0
#: Beats between two tellings of what hardly ever changes.
_ABOUT = 15


class PolicyFrame(msgspec.Struct, gc=False):
    """A policy as it stands; `late` and the rest as in `pulse.PolicySample`."""

    name: str
    round: int
    decisions: int
    rewards: int
    reward_sum: float
    pending: int
    expired: int
    late: int
    peek: Peek | None
    #: What it is: told now and then.
    about: dict[str, Any] | None = None


class Frame(msgspec.Struct, gc=False):
    """What is sent each second; the rest of `first` once, when the stream begins."""

    at: float
    down: str | None
    policies: list[str]
    requests_per_second: float
    latencies: dict[str, list[float | None]]
    position: int
    log_lag: int
    snapshot_age: float | None
    watchers: int
    policy: PolicyFrame | None


class First(msgspec.Struct, gc=False):
    """The past, as far as this process knows it.

    `course`: time, decisions, rewards and their sum since the process began. `seconds`: the same, and
    pending and the 99 % latency of the last ones.
    """

    version: str
    course: list[tuple[float, int, int, float]]
    seconds: list[tuple[float, int, int, float, int, float | None]]


class Watch:
    """Makes frames of `service`: each second once for each policy that is watched."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._made: dict[str | None, bytes] = {}
        self._made_at = -1
        self._about: dict[str, tuple[int, Any, dict[str, Any]]] = {}

    def open(self, name: str | None) -> Stream:
        """A stream about this policy (None: the first there is)."""
        return Stream(self, self.service.pulse, self.service.pulse.subscribe(), name)

    def first(self, name: str | None) -> bytes:
        """The past, and the frame of now."""
        pulse, name = self.service.pulse, self._chosen(name)
        course = pulse.courses.get(name or "")
        past = [
            (one.at, p.decisions, p.rewards, p.reward_sum, p.pending, one.latencies["all"][-1])
            for one in pulse.samples
            if (p := one.policies.get(name or "")) is not None
        ]
        told = First(__version__, list(course.points) if course else [], past)
        return _event("first", told) + _event("now", self._frame(name, True))

    def now(self, name: str | None) -> bytes:
        """The frame of this second. O(1)."""
        name, beats = self._chosen(name), self.service.pulse.beats
        if beats != self._made_at or self.service.down is not None:
            self._made.clear()
            self._made_at = beats
        made = self._made.get(name)
        if made is None:
            made = self._made[name] = _event("now", self._frame(name, beats % _ABOUT == 0))
        return made

    def _chosen(self, name: str | None) -> str | None:
        return name if name is not None else next(iter(self.service.host.seats), None)

    def _frame(self, name: str | None, tell_about: bool) -> Frame:
        service = self.service
        last = service.pulse.samples[-1] if service.pulse.samples else None
        return Frame(
            at=time.time(),
            down=service.down,
            policies=list(service.host.seats),
            requests_per_second=last.requests_per_second if last else 0.0,
            latencies=last.latencies if last else {},
            position=service.host.position,
            log_lag=service.lag,
            snapshot_age=service.keeper.age,
            watchers=len(service.pulse),
            policy=self._policy(name, tell_about),
        )

    def _policy(self, name: str | None, tell_about: bool) -> PolicyFrame | None:
        seat = self.service.host.seats.get(name or "")
        if seat is None:
            return None
        one = self.service.sample_of(seat)
        return PolicyFrame(
            name=seat.name,
            round=seat.policy.t,
            decisions=one.decisions,
            rewards=one.rewards,
            reward_sum=one.reward_sum,
            pending=one.pending,
            expired=one.expired,
            late=one.late,
            peek=peek(seat, self.service.clock.now()),
            about=self._describe(seat) if tell_about else None,
        )

    def _describe(self, seat: Any) -> dict[str, Any]:
        """What a policy is, not older than a few seconds: who comes and goes quickly does not make it anew."""
        beats = self.service.pulse.beats
        known = self._about.get(seat.name)
        if known is None or known[1] is not seat or beats - known[0] >= _ABOUT:
            if len(self._about) > len(self.service.host.seats):
                self._about.clear()
            answer = about_policy(seat)
            told = {
                **answer.about,
                "n_arms": answer.n_arms,
                "rank": answer.rank,
                "reward_range": list(seat.policy.reward_range),
                "objective": seat.policy.objective,
                "ttl": seat.spec.ttl,
                "labelled": seat.labelled,
            }
            known = self._about[seat.name] = beats, seat, told
        return known[2]


class Stream(Response):
    """The answer that does not end before the client goes or the service stops."""

    media_type = "text/event-stream"

    def __init__(self, watch: Watch, pulse: Pulse, watcher: Watcher, name: str | None) -> None:
        # A proxy that gathers answers before it hands them on must not do so here.
        super().__init__(headers={"cache-control": "no-store", "x-accel-buffering": "no"})
        self._watch, self._pulse, self._watcher, self._name = watch, pulse, watcher, name
        self.raw_headers = [pair for pair in self.raw_headers if pair[0] != b"content-length"]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        gone = asyncio.get_running_loop().create_task(self._until_gone(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await self._send(send, self._watch.first(self._name))
            while True:
                try:
                    async with asyncio.timeout(_QUIET):
                        sample = await self._watcher.get()
                except TimeoutError:
                    await self._send(send, self._watch.now(self._name))
                    continue
                if sample is None:
                    break
                await self._send(send, self._watch.now(self._name))
            if not gone.done():
                await send({"type": "http.response.body", "body": b"event: bye\ndata: {}\n\n"})
        finally:
            gone.cancel()
            self._pulse.unsubscribe(self._watcher)

    async def _until_gone(self, receive: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._watcher.put(None)

    async def _send(self, send: Any, body: bytes) -> None:
        await send({"type": "http.response.body", "body": body, "more_body": True})


def _event(kind: str, value: Any) -> bytes:
    # JSON has no line ends of its own, so one line is enough.
    return b"event: " + kind.encode() + b"\ndata: " + msgspec.json.encode(value) + b"\n\n"
