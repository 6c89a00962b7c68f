"""Events of the log, done again: how a `Host` becomes what it was.

Each event does what it did when it was written, and decisions are compared with those that the log holds. Where a
policy's kernels can go on alone, many events are done in one go, which is as one by one.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from semibandit.arms import IntArray
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
from semibandit.serve.ledger import BEYOND
from semibandit.serve.refusals import Refusal, ReplayError
from semibandit.serve.specs import build
from semibandit.serve.wire import PolicySpec

if TYPE_CHECKING:
    from semibandit.serve.host import Host


def apply_all(host: Host, events: list[AnyEvent]) -> None:
    """Do what events of the log say, in order; a `ReplayError` if they do not lead where they led before."""
    start = 0
    try:
        while start < len(events):
            end = _apply_some(host, events, start)
            if end == start:
                apply(host, events[start])
                end += 1
            start = end
    except Refusal as error:
        raise ReplayError(
            f"event {host.position + 1} of the log ({type(events[start]).__name__}) is refused now: {error.message}"
        ) from None


def _apply_some(host: Host, events: list[AnyEvent], start: int) -> int:
    """Decisions of one policy among all arms, and whole rewards of them, from `start` on in one go: where they end.

    That is before whatever is more than that, and before anything is past its time.
    """
    name = getattr(events[start], "policy", None)
    seat = host.seats.get(name) if name is not None else None
    room = 0 if seat is None or len(events) - start < 2 else seat.replays()
    if seat is None or not room:
        return start
    began = events[start].at
    seat.tick(began)
    until, oldest, following = seat.ledger.safe_until(began), seat.ledger.oldest, seat.ledger.next
    asked: list[int] = []
    rewards: list[bytes] = []
    made: list[Selected] = []
    for event in islice(events, start, start + BEYOND):
        if event.at >= until or getattr(event, "policy", None) != name:
            break
        if type(event) is Rewarded:
            if event.places or not oldest <= event.number < following + len(made):
                break
            asked.append(event.number)
            rewards.append(event.rewards)
        elif type(event) is Selected and len(made) < room and _is_plain(event):
            asked.append(-1)
            made.append(event)
        else:
            break
    if len(asked) < 2:
        return start
    counts = np.zeros(len(asked), dtype=np.int64)
    numbers = np.array(asked, dtype=np.int64)
    counts[numbers >= 0] = [len(one) // 8 for one in rewards]
    at = np.array([event.at for event in made], dtype=np.int64)
    done, first, arms, sizes = seat.replay(numbers, counts, unpack_numbers(b"".join(rewards)), at)
    if done:
        _compare(host, made, first, arms, sizes)
        host.position += done
        host.time = max(host.time, events[start + done - 1].at)
        seat.tick(host.time)
    return start + done


def _is_plain(event: Selected) -> bool:
    return not event.sizes and event.exclude is None and event.among is None and event.key is None


def _compare(host: Host, made: list[Selected], first: int, arms: IntArray, sizes: IntArray) -> None:
    """A `ReplayError` unless these are the decisions that the log tells of."""
    made = made[: len(sizes)]
    same = pack_arms(arms) == b"".join([event.arms for event in made])
    for number, (event, size) in enumerate(zip(made, sizes.tolist(), strict=True), first):
        if not same or event.first != number or len(event.arms) != 4 * size:
            raise _other_arms(host, event)


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
