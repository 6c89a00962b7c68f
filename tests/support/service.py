"""Services for tests: in this process behind an ASGI transport, or as a process of their own that can be killed."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import signal
import threading
import time

import httpx

from semibandit.serve.app import App
from semibandit.serve.events import decode_group
from semibandit.serve.routes import Routes
from semibandit.serve.service import Service
from semibandit.serve.sqlite_store import SqliteStore
from semibandit.serve.wire import PolicySpec
from support.forked import Forked

SMALL = PolicySpec(policy="cts", matroid={"kind": "uniform", "arms": 40, "rank": 4})


@contextlib.asynccontextmanager
async def running(
    folder, policies=None, *, store=None, tokens=None, host="127.0.0.1", log_requests=False, **options
):
    """A started service and an httpx client of it, in this event loop."""
    told = []
    options.setdefault("tell", lambda event, **facts: told.append((event, facts)))
    service = Service(store or SqliteStore(folder), folder, **options)
    app = App(service, tokens, Routes(service).application, log_requests=log_requests)
    await service.start({"small": SMALL} if policies is None else policies)
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=True)
    async with httpx.AsyncClient(transport=transport, base_url=f"http://{host}") as client:
        client.service, client.told = service, told
        try:
            yield client
        finally:
            await service.stop()


def events_in(folder):
    """All events in the log of a folder that nobody serves."""
    store = SqliteStore(folder)
    store.open()
    try:
        found = [event for group in store.read(0) for event in decode_group(group.payload)]
    finally:
        store.close()
    return found


class Server:
    """`semibandit serve` as a process. `address` is known when it has said so."""

    def __init__(self, folder, *options, env=None, port=0):
        words = ["serve", *map(str, options), "--data", str(folder), "--port", str(port)]
        self.process = Forked(words, {**os.environ, **(env or {})})
        self.lines = []
        self._found = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line.rstrip())
            if line.startswith("state in "):
                self._found.put(True)
        self._found.put(False)

    def wait(self, seconds=60.0):
        """Until it serves; its address."""
        assert self._found.get(timeout=seconds), "\n".join(self.lines)
        self.address = re.search(r"policies at (http://\S+)", "\n".join(self.lines)).group(1)
        return self

    def told(self, event):
        """The facts of the last line of JSON with this event, None if there is none."""
        for line in reversed(self.lines):
            if f'"event":"{event}"' in line:
                return json.loads(line)
        return None

    def kill(self):
        """As the kernel would: no goodbye."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)
        self._reader.join(30)

    def stop(self):
        """As an operator would; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        self._reader.join(30)
        return code

    def __enter__(self):
        return self.wait()

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()


def until(condition, seconds=20.0):
    """Wait for something to become true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.02)
