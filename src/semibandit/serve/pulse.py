"""How the service goes, second by second: what a page, or anybody who subscribes, is told."""

from __future__ import annotations

import asyncio
from array import array
from bisect import bisect_left
from collections import deque

import msgspec

from semibandit.serve.refusals import Refusal

#: Upper ends of the buckets of latencies, in seconds.
BUCKETS = tuple(
    base * 10.0**power for power in range(-5, 1) for base in (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
) + (10.0,)


class Histogram:
    """Latencies in buckets: no lock, no object per observation."""

    def __init__(self) -> None:
        self.counts = array("q", bytes(8 * (len(BUCKETS) + 1)))
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        """One more."""
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.sum += seconds

    @property
    def count(self) -> int:
        """How many so far."""
        return sum(self.counts)

    def quantiles(self, *shares: float, since: array[int] | None = None) -> list[float | None]:
        """The latencies below which these shares lie (since an earlier copy of `counts`), None if there are none."""
        counts = self.counts if since is None else array("q", map(int.__sub__, self.counts, since))
        total = sum(counts)
        found: list[float | None] = []
        for share in shares:
            seen, at = 0, 0
            while total and at < len(BUCKETS) and seen + counts[at] < share * total:
                seen += counts[at]
                at += 1
            found.append(BUCKETS[min(at, len(BUCKETS) - 1)] if total else None)
        return found


class PolicySample(msgspec.Struct, gc=False):
    """One policy, one second: totals since it was made, and decisions that wait.

    `expired` counts decisions that left with arms waiting, `late` the rewards that came after that.
    """

    decisions: int
    rewards: int
    reward_sum: float
    pending: int
    expired: int
    late: int = 0


class Sample(msgspec.Struct, gc=False):
    """One second of the service. Rates are those of this second; `latencies` those of the last few.

    `latencies` has the quantiles `SHARES`, in seconds, for each operation and for ``"all"`` that decide and learn.
    """

    at: float
    decisions_per_second: float
    rewards_per_second: float
    requests_per_second: float
    latencies: dict[str, list[float | None]]
    log_lag: int
    snapshot_age: float | None
    policies: dict[str, PolicySample]


#: Which quantiles of the latencies are told.
SHARES = (0.5, 0.9, 0.99)
#: Seconds of latencies that are looked at together: one alone would often hold a handful.
_WINDOW = 10


class Latencies:
    """Quantiles of the last seconds, of histograms that go on for ever."""

    def __init__(self, histograms: dict[str, Histogram]) -> None:
        self._histograms = histograms
        self._past: deque[dict[str, array[int]]] = deque(maxlen=_WINDOW)
        self.tick()

    def tick(self) -> dict[str, list[float | None]]:
        """Once a second: the quantiles since the oldest second that is remembered."""
        since = self._past[0] if self._past else {}
        zero = Histogram().counts
        whole, before = Histogram(), zero[:]
        found = {}
        for name, one in self._histograms.items():
            old = since.get(name, zero)
            found[name] = one.quantiles(*SHARES, since=old)
            if name != "other":
                whole.counts = array("q", map(int.__add__, whole.counts, one.counts))
                before = array("q", map(int.__add__, before, old))
        found["all"] = whole.quantiles(*SHARES, since=before)
        self._past.append({name: one.counts[:] for name, one in self._histograms.items()})
        return found


class Course:
    """A policy since the process began, in at most `most` points: when they are too many, every other one goes."""

    def __init__(self, most: int = 400) -> None:
        self.points: list[tuple[float, int, int, float]] = []
        self._most, self._every, self._seen = most, 1, 0

    def add(self, at: float, one: PolicySample) -> None:
        """One more second: time, decisions, rewards and their sum. O(1) amortised."""
        if self.points and one.decisions < self.points[-1][1]:
            # Another policy of the same name, or the state was made anew from the log.
            self.points, self._every, self._seen = [], 1, 0
        if self._seen % self._every == 0:
            self.points.append((at, one.decisions, one.rewards, one.reward_sum))
        self._seen += 1
        if len(self.points) > self._most:
            del self.points[1::2]
            self._every *= 2
            self._seen = (len(self.points) - 1) * self._every + 1


class Watcher:
    """One who wants each new sample: those that he is too slow for are lost to him, oldest first."""

    def __init__(self, room: int = 10) -> None:
        self._queue: asyncio.Queue[Sample | None] = asyncio.Queue(maxsize=room)
        self.missed = 0
        self.ended = False

    def put(self, sample: Sample | None) -> None:
        """One more; None is the last."""
        if self.ended:
            return
        self.ended = sample is None
        if self._queue.full():
            self._queue.get_nowait()
            self.missed += 1
        self._queue.put_nowait(sample)

    async def get(self) -> Sample | None:
        """The next sample, None when there will be no more."""
        return await self._queue.get()


class Pulse:
    """The last samples, the course of each policy, and those who look on. `watched`, `missed`: counted for ever."""

    def __init__(self, keep: int = 300, most: int = 64) -> None:
        self.samples: deque[Sample] = deque(maxlen=keep)
        self.courses: dict[str, Course] = {}
        self.most, self.watched, self.beats, self._missed = most, 0, 0, 0
        self._watchers: set[Watcher] = set()
        self._closed = False

    def __len__(self) -> int:
        return len(self._watchers)

    @property
    def missed(self) -> int:
        """Samples that were lost to somebody who was too slow."""
        return self._missed + sum(one.missed for one in self._watchers)

    def add(self, sample: Sample) -> None:
        """One more second."""
        self.samples.append(sample)
        self.beats += 1
        for gone in self.courses.keys() - sample.policies.keys():
            del self.courses[gone]
        for name, one in sample.policies.items():
            self.courses.setdefault(name, Course()).add(sample.at, one)
        for watcher in self._watchers:
            watcher.put(sample)

    def subscribe(self) -> Watcher:
        """Somebody who gets every new sample, until `unsubscribe`; a 429 if there are `most` already."""
        if len(self._watchers) >= self.most:
            raise Refusal(429, "too_many_watchers", f"{self.most} watch already: no more than that")
        watcher = Watcher()
        if self._closed:
            watcher.put(None)
        self._watchers.add(watcher)
        self.watched += 1
        return watcher

    def unsubscribe(self, watcher: Watcher) -> None:
        """He goes; safe to call twice."""
        if watcher in self._watchers:
            self._watchers.discard(watcher)
            self._missed += watcher.missed

    def close(self) -> None:
        """No more samples: everybody is told so, and whoever comes later too."""
        self._closed = True
        for watcher in self._watchers:
            watcher.put(None)
