"""What the log holds: all that changed the state, in the order in which it did.

An event says what was asked and when (`at`, microseconds of the service's own clock), never what follows from it; so
replaying the log runs the same code again, random numbers and waiting plays included. `Selected` also holds the arms
that were answered: replay checks them, and `semibandit log export` needs no replay.

Events are msgspec structs in array form, told apart by a letter. A group of them, which is committed at once, is one
MessagePack array.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np

from semibandit.arms import FloatArray, IntArray

#: Version of the events themselves; a log of a later one is refused.
VERSION = 1


class Event(msgspec.Struct, array_like=True, gc=False, tag_field="e"):
    """One change. `at`: when, in microseconds."""

    at: int


class Opened(Event, tag="o"):
    """A server took over the log; decisions from now on carry `tag` in their ids."""

    tag: str
    version: int = VERSION


class Created(Event, tag="c"):
    """A policy, as `specs.PolicySpec` in MessagePack."""

    policy: str
    spec: msgspec.Raw


class Removed(Event, tag="r"):
    """A policy is gone."""

    policy: str


class Selected(Event, tag="s"):
    """Decisions `first` and so on: what was asked, and the arms answered (`pack_arms`), `sizes` of them each.

    `sizes` is empty for one decision. `labels`: those of the arms, where there are any. `chances`: the propensity of
    each arm, where the policy knows it.
    """

    policy: str
    first: int
    arms: bytes
    sizes: list[int] = []
    exclude: list[Any] | None = None
    among: list[Any] | None = None
    key: str | None = None
    labels: list[Any] | None = None
    chances: bytes = b""


class Rewarded(Event, tag="w"):
    """Rewards of decision `number`, for its arms at `places`; for all of them if that is empty."""

    policy: str
    number: int
    rewards: bytes
    places: bytes = b""


class Updated(Event, tag="u"):
    """Rewards without a decision; `key` makes them count once."""

    policy: str
    key: str
    arms: list[Any]
    rewards: bytes


class Deleted(Event, tag="d"):
    """Arms, or labels, that are no longer there."""

    policy: str
    arms: list[Any]


class Inserted(Event, tag="i"):
    """Arms that are back; or new labels, with what is told of each in `attributes`."""

    policy: str
    arms: list[Any]
    attributes: list[Any] = []


AnyEvent = Opened | Created | Removed | Selected | Rewarded | Updated | Deleted | Inserted

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[AnyEvent])

encode_event = _encoder.encode


def encode_group(events: Iterable[bytes]) -> bytes:
    """Encoded events as one group. O(size)."""
    parts = list(events)
    return b"".join((b"\xdd", len(parts).to_bytes(4, "big"), *parts))


def decode_group(payload: bytes) -> list[AnyEvent]:
    """The events of a group; `msgspec.MsgspecError` for anything else. O(size)."""
    return _decoder.decode(payload)


def pack_arms(arms: IntArray) -> bytes:
    """Arm ids as they stand in the log."""
    return arms.astype("<i4").tobytes() if arms.size else b""


def unpack_arms(packed: bytes) -> IntArray:
    """The inverse of `pack_arms`."""
    return np.frombuffer(packed, dtype="<i4").astype(np.int64)


def pack_numbers(values: FloatArray) -> bytes:
    """Rewards as they stand in the log, bit for bit."""
    return values.astype("<f8", copy=False).tobytes()


def unpack_numbers(packed: bytes) -> FloatArray:
    """The inverse of `pack_numbers`."""
    return np.frombuffer(packed, dtype="<f8").astype(np.float64)
