"""Where shards live, by what the user calls it."""

from __future__ import annotations

from typing import Any

from semibandit.distributed.here import Here, Transport
from semibandit.errors import ParameterError


def transport_for(on: Any, timeout: float) -> Transport:
    """None: this process; the name of a cluster: there; a `Transport` of your own: that one, with no shards yet."""
    if on is None:
        return Here()
    if not isinstance(on, str):
        if all(hasattr(on, name) for name in ("start", "ask", "another", "close", "can_lose")):
            return on  # type: ignore[no-any-return]
        raise ParameterError(f"on must be None, 'ray', 'ray://host:port' or a transport, got {on!r}")
    from semibandit.distributed.cluster import OnRay

    return OnRay(on, timeout)
