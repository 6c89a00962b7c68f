"""Events of the log, done again: how a `Host` becomes what it was.

Each event does what it did when it was written, and decisions are compared with those that the log holds. Decisions
that follow each other without anything in between are made in one go, which is as one by one: see `_is_run`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from semibandit.errors import SemibanditError
from semibandit.serve.events import (
    VERSION,
    AnyEvent,
    Created,
    Deleted,
    Inserted,
    Opened,
    Removed,
    Rewarded,
    Selected,
    Updated,
    pack_arms,
    unpack_numbers,
)
from semibandit.serve.labelled import make_seat
from semibandit.serve.refusals import Refusal, ReplayError
from semibandit.serve.specs import build
from semibandit.serve.wire import PolicySpec

if TYPE_CHECKING:
    from semibandit.serve.host import Host


def apply_all(host: Host, events: list[AnyEvent]) -> None:
    """Do what events of the log say, in order; a `ReplayError` if they do not lead where they led before."""
    start, n = 0, len(events)
    try:
        while start < n:
            end = _end_of_run(events, start)
            if end - start > 1 and _is_run(host, events, start, end):
                _select_run(host, events, start, end)
                start = end
                continue
            end = _one_by_one(host, events, start, end) if n - start > 1 else start
            if end == start:
                apply(host, events[start])
                end += 1
            start = end
    except Refusal as error:
        raise ReplayError(
            f"event {host.position + 1} of the log ({type(events[start]).__name__}) is refused now: {error.message}"
        ) from None


def _one_by_one(host: Host, events: list[AnyEvent], start: int, no_run: int) -> int:
    """Decisions of one policy and whole rewards from `start` on, as `apply` does them but quicker: where they end.

    Before the next run of decisions (there is none before `no_run`), before whatever is more than that, and before
    anything is past its time.
    """
    name = getattr(events[start], "policy", None)
    seat = host.seats.get(name) if name is not None else None
    if seat is None or seat.labelled or seat.keys:
        return start
    ledger, learn, decide = seat.ledger, seat.learn, seat.decide_one
    until = ledger.safe_until()
    for at in range(start, len(events)):
        event = events[at]
        if event.at >= until:
            return at
        if type(event) is Rewarded:
            number = event.number
            if event.policy != name or event.places or not ledger.oldest <= number < ledger.next:
                return at
            try:
                learn(number, None, unpack_numbers(event.rewards))
            except SemibanditError:
                return at  # refused, so nothing was changed: `apply` says why
        elif type(event) is Selected:
            asked = event.exclude is not None or event.among is not None or event.key is not None
            if asked or event.sizes or event.policy != name:
                return at
            if at >= no_run and at + 1 < len(events) and type(events[at + 1]) is Selected:
                return at  # perhaps a run begins
            first, arms = decide(event.at)
            if first != event.first or pack_arms(arms) != event.arms:
                raise _other_arms(host, event)
        else:
            return at
        host._advance(event.at)
    return len(events)


def _end_of_run(events: list[AnyEvent], start: int) -> int:
    """Where the decisions that follow each other from `start` on end, if they are alike and about all arms."""
    name, end = "", start
    while end < len(events):
        event = events[end]
        if type(event) is not Selected or event.sizes or event.key is not None:
            break
        if event.exclude is not None or event.among is not None or (name and event.policy != name):
            break
        name = event.policy
        end += 1
    return end


def _is_run(host: Host, events: list[AnyEvent], start: int, end: int) -> bool:
    """Whether nothing happens between these decisions but that they are made.

    No decision may leave, unless that is nothing to the policy, and the oldest leave one for one.
    """
    seat = host.seats.get(events[start].policy)  # type: ignore[union-attr]
    if seat is None or seat.labelled:
        return False
    ledger, first, last, n = seat.ledger, events[start].at, events[end - 1].at, end - start
    if ledger.ttl is not None and (first + ledger.ttl <= last or ledger.due(last)):
        return False
    rank = seat.policy.matroid.rank
    if not ledger.surplus(n, n * rank):
        return True
    return n <= ledger.most and rank * ledger.most <= ledger.most_arms and not seat.heeds_waiting


def _select_run(host: Host, events: list[AnyEvent], start: int, end: int) -> None:
    asked: list[Selected] = events[start:end]  # type: ignore[assignment]
    seat = host.seat(asked[0].policy)
    at = np.array([event.at for event in asked], dtype=np.int64)
    seat.tick(int(at[-1]))
    first, arms, sizes = seat.decide_run(len(asked), at)
    same = pack_arms(arms) == b"".join([event.arms for event in asked])
    for i, (event, size) in enumerate(zip(asked, sizes.tolist(), strict=True)):
        if not same or event.first != first + i or len(event.arms) != 4 * size:
            raise _other_arms(host, event)
        host._advance(event.at)


def _other_arms(host: Host, event: Selected) -> ReplayError:
    return ReplayError(
        f"event {host.position + 1} of the log: policy {event.policy!r} chose other arms than when the log was "
        "written. The log is from another version of semibandit, or damaged"
    )


def apply(host: Host, event: AnyEvent) -> None:
    """Do what one event says; a `Refusal` or a `ReplayError` if that cannot be."""
    at = event.at
    if type(event) is Rewarded:
        seat = host.seat(event.policy)
        seat.tick(at)
        if not seat.ledger.oldest <= event.number < seat.ledger.next:
            raise ReplayError(f"event {host.position + 1}: decision {event.number} is not kept")
        places = np.frombuffer(event.places, dtype="<u4").tolist() if event.places else None
        host._reward(at, seat, event.number, places, unpack_numbers(event.rewards))
    elif type(event) is Selected:
        seat = host.seat(event.policy)
        seat.tick(at)
        n = len(event.sizes) or 1
        before = host.position
        first, arms, _ = host._select(at, seat, event.exclude, event.among, n, event.key)
        if pack_arms(arms) != event.arms or first != event.first:
            host.position = before
            raise _other_arms(host, event)
    elif type(event) is Updated:
        seat = host.seat(event.policy)
        seat.tick(at)
        host._update(at, seat, event.key, event.arms, unpack_numbers(event.rewards))
    elif type(event) is Deleted:
        host._arms(at, host.seat(event.policy), event.arms, None)
    elif type(event) is Inserted:
        host._arms(at, host.seat(event.policy), event.arms, event.attributes)
    elif type(event) is Opened:
        if event.version > VERSION:
            raise ReplayError(f"the log has events of version {event.version}: this semibandit is too old")
        host.open(at, event.tag)
    elif type(event) is Created:
        spec = msgspec.msgpack.decode(event.spec, type=PolicySpec)
        host._seat_in(make_seat(event.policy, host.serial, spec, build(spec)))
        host._advance(at)
    elif type(event) is Removed:
        host.remove(at, event.policy)
