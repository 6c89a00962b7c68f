"""Shards in this process: no messages, no faults. For tests, and where only the split is wanted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from semibandit.distributed.featured_shard import make_shard
from semibandit.distributed.shard import Shard, Snapshot, Spec

#: In place of an answer: the shard is no longer there.
LOST = object()
#: In place of an answer: nothing was heard in time.
LATE = object()

#: One message: number of the first deed, deeds, question.
Message = tuple[int, list[Any], tuple[Any, ...]]


class Transport(Protocol):
    """Where shards live and how they are talked to."""

    #: Whether a shard can be lost while this process lives on.
    can_lose: bool

    @property
    def name(self) -> str:
        """What `describe` says of it."""

    def start(self, shard: int, spec: Spec, snapshot: Snapshot | None) -> None:
        """Make a shard, in place of the one with this number if there is one."""

    def ask(self, messages: Mapping[int, Message]) -> dict[int, Any]:
        """One message to each of these shards and what it answers (`Shard.handle`), or LOST or LATE."""

    def another(self) -> Transport:
        """A transport of the same kind without shards."""

    def close(self) -> None:
        """End all shards."""


class Here:
    """Shards as plain objects."""

    name = "this process"
    can_lose = False

    def __init__(self) -> None:
        self.shards: dict[int, Shard] = {}

    def start(self, shard: int, spec: Spec, snapshot: Snapshot | None) -> None:
        """Make a shard. O(n)."""
        self.shards[shard] = make_shard(spec, snapshot)

    def ask(self, messages: Mapping[int, Message]) -> dict[int, Any]:
        """One after the other."""
        return {i: self.shards[i].handle(*message) for i, message in messages.items()}

    def another(self) -> Here:
        """Another one, empty."""
        return type(self)()

    def close(self) -> None:
        """Forget the shards."""
        self.shards.clear()
