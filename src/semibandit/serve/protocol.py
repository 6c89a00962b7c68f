"""uvicorn's HTTP protocol, with patience that ends: a client that sends or reads too slowly is let go."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class PatientProtocol(HttpToolsProtocol):
    """Notes since when it waits for the rest of a request; `sweep` looks at all of them now and then."""

    waiting_since: float | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
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
