"""Servers that are loaded, as processes of their own: the service, and an empty endpoint of the same stack."""

from __future__ import annotations

import asyncio
import atexit
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import click


class Process:
    """A server of ours; `port` is known when it says it is ready."""

    def __init__(self, *arguments: str) -> None:
        # As an installed package has it: modules compiled once, not at each start.
        env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        env.setdefault("PYTHONPYCACHEPREFIX", str(Path(tempfile.gettempdir()) / "semibandit-bench-pyc"))
        self.process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=env,
        )
        atexit.register(self.process.kill)  # nothing if it has ended
        assert self.process.stderr is not None
        self.said: list[str] = []
        for line in self.process.stderr:
            self.said.append(line)
            if line.startswith(("state in ", "empty at ")):
                break
        found = re.search(r"http://[^:]+:(\d+)", "".join(self.said))
        if found is None:
            raise click.ClickException("".join(self.said) or "the server did not start")
        self.port = int(found.group(1))
        self.rest = threading.Thread(target=self._read, daemon=True)
        self.rest.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.said.extend(self.process.stderr)

    def cpu(self) -> float:
        """Seconds of the processor that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """Resident megabytes."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+)", text)
        return int(found.group(1)) / 1024 if found else 0.0

    def stop(self) -> None:
        """Told to stop, and waited for."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)

    def ask(self, path: str, body: Any) -> Any:
        """One request."""
        import httpx

        answer = httpx.post(f"http://127.0.0.1:{self.port}{path}", json=body, timeout=60)
        answer.raise_for_status()
        return answer.json()


def serve_empty() -> None:
    """The empty endpoint: Starlette behind the service's own uvicorn, no state, no log."""
    import msgspec
    import uvloop
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from semibandit.serve.run import make_server
    from semibandit.serve.settings import ServerSettings, Settings
    from semibandit.serve.wire import SelectRequest

    decode = msgspec.json.Decoder(SelectRequest).decode

    async def nothing(request: Request) -> Response:
        decode(await request.body())
        return Response(msgspec.json.encode({"ok": True}), media_type="application/json")

    app = Starlette(routes=[Route("/", nothing, methods=["POST"])])
    server = make_server(Settings(server=ServerSettings(port=0)), app)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, lambda: setattr(server, "should_exit", True))
        task = loop.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        click.echo(f"empty at http://127.0.0.1:{port}", err=True)
        await task

    uvloop.run(main())
