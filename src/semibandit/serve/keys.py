"""Idempotency keys: what a client calls a request, so that sending it again changes nothing."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from semibandit.serve.refusals import Refusal


class Known(NamedTuple):
    """A request that was served: when, a digest of what it asked, the decisions it made and the round of the first."""

    at: int
    digest: int
    first: int
    made: int
    round: int


class Keys:
    """The youngest `most` keys, each for `ttl` microseconds (None: for ever). O(1) each."""

    def __init__(self, ttl: int | None, most: int) -> None:
        self.ttl, self.most = ttl, most
        self._known: dict[str, Known] = {}

    def __len__(self) -> int:
        return len(self._known)

    def find(self, key: str, digest: int) -> Known | None:
        """What the request with this key did; a 409 if it asked something else."""
        known = self._known.get(key)
        if known is not None and known.digest != digest:
            raise Refusal(
                409, "key_reused", f"key {key!r} belongs to another request", field="key", value=key
            )
        return known

    def add(self, key: str, known: Known) -> None:
        """Remember a request that was served."""
        self._known[key] = known
        while len(self._known) > self.most:
            del self._known[next(iter(self._known))]

    def expire(self, now: int) -> None:
        """Forget keys past their time."""
        if self.ttl is None:
            return
        while self._known:
            key = next(iter(self._known))
            if self._known[key].at + self.ttl > now:
                return
            del self._known[key]

    def state(self) -> list[Any]:
        """As MessagePack can hold it."""
        return [[key, *known] for key, known in self._known.items()]

    def restore(self, state: list[Any]) -> None:
        """The inverse of `state`."""
        self._known = {key: Known(*known) for key, *known in state}


def digest_of(*parts: Any) -> int:
    """A number that two different requests hardly share. O(size)."""
    from hashlib import blake2b

    return int.from_bytes(blake2b(msgspec.msgpack.encode(parts), digest_size=7).digest(), "big")
