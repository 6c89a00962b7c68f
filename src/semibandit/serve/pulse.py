"""How the service goes, second by second: what a page, or anybody who subscribes, is told."""

from __future__ import annotations

import asyncio
from array import array
from bisect import bisect_left
from collections import deque

import msgspec

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


class PolicySample(msgspec.Struct):
    """One policy, one second: totals since it was made, and decisions that wait."""

    decisions: int
    rewards: int
    reward_sum: float
    pending: int
    expired: int


class Sample(msgspec.Struct):
    """One second of the service. Rates are those of this second, latencies (seconds) too."""

    at: float
    decisions_per_second: float
    rewards_per_second: float
    requests_per_second: float
    p50: float | None
    p99: float | None
    log_lag: int
    snapshot_age: float | None
    policies: dict[str, PolicySample]


class Pulse:
    """The last samples, and those who want each new one."""

    def __init__(self, keep: int = 900) -> None:
        self.samples: deque[Sample] = deque(maxlen=keep)
        self._subscribers: set[asyncio.Queue[Sample]] = set()

    def add(self, sample: Sample) -> None:
        """One more second; who does not listen misses it."""
        self.samples.append(sample)
        for queue in self._subscribers:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(sample)

    def subscribe(self) -> asyncio.Queue[Sample]:
        """A queue that gets every new sample, until `unsubscribe`."""
        queue: asyncio.Queue[Sample] = asyncio.Queue(maxsize=10)
        self._subscribers.add(queue)
        return queue

    def unsubscribe(self, queue: asyncio.Queue[Sample]) -> None:
        """No more samples."""
        self._subscribers.discard(queue)
