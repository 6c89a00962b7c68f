"""uvicorn's HTTP protocol, with patience that ends, and answers that leave in one piece.

A client that sends or reads too slowly is let go. uvicorn writes head and body of an answer one after the other, and
each would be a call of the system's that wakes the client: for small answers that is a third of the work.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class Together:
    """A transport that sends in one go what is written to it in one turn of the event loop."""

    __slots__ = ("_call_soon", "_inner", "_parts")

    def __init__(self, inner: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._inner, self._call_soon = inner, loop.call_soon
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._call_soon(self._flush)
        self._parts.append(data)

    def _flush(self) -> None:
        if self._parts:
            data = b"".join(self._parts)
            self._parts.clear()
            if not self._inner.is_closing():
                self._inner.write(data)

    def close(self) -> None:
        self._flush()
        self._inner.close()

    def abort(self) -> None:
        self._parts.clear()
        self._inner.abort()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class PatientProtocol(HttpToolsProtocol):
    """Notes since when it waits for the rest of a request; `sweep` looks at all of them now and then."""

    waiting_since: float | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(Together(transport, self.loop))  # type: ignore[arg-type]
        self.waiting_since = time.monotonic()

    def on_message_begin(self) -> None:
        self.waiting_since = time.monotonic()
        super().on_message_begin()

    def on_message_complete(self) -> None:
        self.waiting_since = None
        super().on_message_complete()

    def pause_writing(self) -> None:
        self.waiting_since = time.monotonic()
        super().pause_writing()

    def resume_writing(self) -> None:
        self.waiting_since = None
        super().resume_writing()


async def sweep(connections: set[Any], patience: float) -> None:
    """For ever: close connections that have kept us waiting for more than `patience` seconds."""
    while True:
        await asyncio.sleep(min(1.0, patience / 4))
        limit = time.monotonic() - patience
        for one in list(connections):
            since = getattr(one, "waiting_since", None)
            if since is not None and since < limit:
                one.transport.abort()
