"""Numbers for Prometheus, collected when they are asked for from the counters that the service keeps anyway."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from semibandit.serve.pulse import BUCKETS, Histogram
from semibandit.serve.service import Service

__all__ = ["CONTENT_TYPE_LATEST", "Metrics"]

# Every third bucket is enough for Prometheus.
_SHOWN = range(0, len(BUCKETS), 3)


class Metrics:
    """What `service` has counted."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def text(self) -> bytes:
        """In Prometheus' format."""
        return generate_latest(self._registry)

    def describe(self) -> list[Any]:
        """Nothing in advance."""
        return []

    def collect(self) -> Iterator[Any]:
        """All metrics."""
        service = self._service
        seats = service.host.seats
        per_policy: list[tuple[str, str, Any, Any]] = [
            ("decisions", "Decisions made.", CounterMetricFamily, lambda seat: seat.ledger.next),
            ("rewards", "Rewards counted.", CounterMetricFamily, lambda seat: seat.rewards),
            ("reward_sum", "Sum of all rewards counted.", GaugeMetricFamily, lambda seat: seat.total),
            (
                "expired",
                "Decisions that left with arms waiting.",
                CounterMetricFamily,
                lambda seat: seat.expired,
            ),
            ("evicted", "Of these, before their time.", CounterMetricFamily, lambda seat: seat.evicted),
            (
                "late",
                "Requests with rewards that came after their decision's time.",
                CounterMetricFamily,
                lambda seat: service.late.get(seat.name, 0),
            ),
            ("pending", "Decisions that wait for rewards.", GaugeMetricFamily, lambda s: s.ledger.pending),
        ]
        for name, told, kind, value in per_policy:
            family = kind(f"semibandit_{name}", told, labels=["policy"])
            for policy, seat in seats.items():
                family.add_metric([policy], value(seat))
            yield family
        for name, told, count in (
            ("requests", "Requests served or refused.", service.requests),
            ("refused", "Requests refused (4xx, 5xx).", service.refused),
            ("duplicates", "Rewards that had been counted before.", service.duplicates),
            ("recoveries", "Times the state was made anew after a failure of the log.", service.recoveries),
            ("snapshots", "Snapshots written by this process.", service.keeper.written),
            ("watched", "Streams of the page that were opened.", service.pulse.watched),
            ("watch_missed", "Seconds that a stream lost, its reader being slow.", service.pulse.missed),
            ("log_written_bytes", "Bytes appended to the log by this process.", service.log_bytes),
        ):
            yield CounterMetricFamily(f"semibandit_{name}", told, value=count)
        age = service.keeper.age
        for name, told, now in (
            ("up", "1 while requests are served.", float(service.down is None)),
            ("watchers", "Streams of the page that are open.", len(service.pulse)),
            ("log_lag_events", "Events that are not on disk yet.", service.lag),
            ("log_position", "Events in the log, ever.", service.host.position),
            ("snapshot_position", "Events that the last snapshot covers.", service.keeper.position),
            ("snapshot_age_seconds", "Since this process' last snapshot.", -1.0 if age is None else age),
        ):
            yield GaugeMetricFamily(f"semibandit_{name}", told, value=now)
        family = HistogramMetricFamily(
            "semibandit_request_seconds", "From request to answer.", labels=["operation"]
        )
        for operation, histogram in service.latencies.items():
            family.add_metric([operation], *_buckets(histogram))
        yield family
        for name, told, histogram in (
            ("commit_seconds", "To write one group.", service.commit_times),
            ("snapshot_pause_seconds", "For which decisions waited for a snapshot.", service.keeper.pauses),
        ):
            one = HistogramMetricFamily(f"semibandit_{name}", told)
            one.add_metric([], *_buckets(histogram))
            yield one


def _buckets(histogram: Histogram) -> tuple[list[tuple[str, float]], float]:
    """Cumulative counts at the buckets shown, and the sum."""
    total, sums = 0, []
    for count in histogram.counts:
        total += count
        sums.append(total)
    shown = [(f"{BUCKETS[i]:g}", float(sums[i])) for i in _SHOWN]
    return [*shown, ("+Inf", float(total))], histogram.sum
