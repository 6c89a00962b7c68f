"""Load test of `semibandit serve`: requests a second against an empty endpoint of the same stack, in one run.

``python -m benchmarks.service`` starts two servers on this machine, an empty Starlette endpoint behind the same uvicorn
and the service itself, and loads them in turns with wrk (or, where that is missing, with a client of its own) over 64
connections. The best of the turns counts. ``--restart`` also measures a start with many events after the snapshot, and
``--soak SECONDS`` a long run at half of the peak.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from semibandit.text import number, table

CONNECTIONS = 64
BATCH = 64
_HEADERS = {"content-type": "application/json"}


@dataclass
class Load:
    """What one load gave."""

    name: str
    per_request: int
    rate: float = 0.0
    p50: float = 0.0
    p99: float = 0.0
    p999: float = 0.0
    cpu: float = 0.0
    errors: int = 0


class Process:
    """A server of ours; `port` is known when it says it is ready."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", *arguments], stderr=subprocess.PIPE, text=True, env=os.environ
        )
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


# -- loads -------------------------------------------------------------------------------------------------------


def _script(body: str, setup: str = "") -> str:
    """A wrk script: `body` is a Lua expression for the body of the next request."""
    return f"""
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
{setup}
local path = wrk.path
request = function() return wrk.format(nil, nil, nil, {body}) end
done = function(summary, latency, requests)
  local e = summary.errors
  local bad = e.connect + e.read + e.write + e.status + e.timeout
  io.write(string.format("RESULT %f %f %f %f %d\\n", summary.requests / (summary.duration / 1e6),
    latency:percentile(50) / 1e6, latency:percentile(99) / 1e6, latency:percentile(99.9) / 1e6, bad))
end
"""


def run_wrk(
    port: int, path: str, script: str, seconds: float, folder: Path
) -> tuple[float, float, float, float, int]:
    """Requests a second, three latencies in seconds, and how many requests failed."""
    file = folder / "load.lua"
    file.write_text(script)
    done = subprocess.run(
        [
            "wrk",
            "-t1",
            f"-c{CONNECTIONS}",
            f"-d{seconds:g}s",
            "-s",
            str(file),
            f"http://127.0.0.1:{port}{path}",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.search(r"RESULT (\S+) (\S+) (\S+) (\S+) (\d+)", done.stdout)
    if found is None:
        raise click.ClickException(done.stdout + done.stderr)
    rate, p50, p99, p999 = (float(value) for value in found.groups()[:4])
    return rate, p50, p99, p999, int(found.group(5))


async def own_client(
    port: int, path: str, bodies: Any, seconds: float, connections: int = CONNECTIONS, pause: float = 0.0
) -> tuple[float, float, float, float, int]:
    """As `run_wrk`, in Python: slower, and enough for a soak at half of the peak."""
    latencies: list[float] = []
    errors = 0
    end = time.perf_counter() + seconds

    async def one() -> None:
        nonlocal errors
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() < end:
            body = next(bodies)
            head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: "
            began = time.perf_counter()
            writer.write(f"{head}{len(body)}\r\n\r\n".encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", answer)
            await reader.readexactly(int(length.group(1)) if length else 0)
            latencies.append(time.perf_counter() - began)
            errors += b" 200 " not in answer[:20]
            if pause:
                await asyncio.sleep(pause)
        writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(connections)))
    took = time.perf_counter() - began
    latencies.sort()
    n = len(latencies)
    quantiles = [latencies[min(n - 1, int(n * share))] for share in (0.5, 0.99, 0.999)]
    return n / took, quantiles[0], quantiles[1], quantiles[2], errors


_REWARDS = json.dumps([0.5, 1, 0, 0.25, 1, 0, 0, 1, 0.75, 0])


class Kind:
    """One sort of request: its path, and how its next body is made in Lua and in Python."""

    def __init__(self, load: Load, path: str, lua: str, python: str, setup: str = "") -> None:
        self.load, self.path, self.lua, self.python, self.setup = load, path, lua, python, setup

    def run(self, server: Process, seconds: float, folder: Path) -> None:
        """Load the server once; the best turn is kept."""
        before = server.cpu()
        if shutil.which("wrk"):
            result = run_wrk(server.port, self.path, _script(self.lua, self.setup), seconds, folder)
        else:
            body = self.python.encode()
            result = asyncio.run(own_client(server.port, self.path, iter(lambda: body, None), seconds))
        rate, p50, p99, p999, errors = result
        if rate > self.load.rate:
            used = (server.cpu() - before) / (rate * seconds)
            self.load.rate, self.load.p50, self.load.p99, self.load.p999 = rate, p50, p99, p999
            self.load.cpu, self.load.errors = used, errors


class Rewards(Kind):
    """Rewards of decisions that are made beforehand, `n` in one request."""

    def __init__(self, load: Load, policy: str, n: int) -> None:
        super().__init__(load, f"/v1/policies/{policy}/rewards" if n == 1 else "/v1/batch", "", "")
        self.policy, self.n = policy, n

    def run(self, server: Process, seconds: float, folder: Path) -> None:
        needed = int(max(8_000, 1.5 * self.load.rate or 12_000 if self.n == 1 else 60_000) * seconds)
        needed = min(needed, 600_000)
        first = last = ""
        for _ in range(0, needed, 1000):
            made = server.ask(f"/v1/policies/{self.policy}/select", {"count": 1000})["decisions"]
            first, last = first or made[0]["decision"], made[-1]["decision"]
        start, n0 = first.rsplit("-", 1)
        one = f'\\"op\\":\\"rewards\\",\\"policy\\":\\"{self.policy}\\",' if self.n > 1 else ""
        told = _REWARDS
        # Numbers beyond the last decision start again from the first: then they are duplicates.
        self.setup = f"""
local n, first, last = {n0}, {n0}, {last.rsplit("-", 1)[1]}
local function body()
  local parts = {{}}
  for i = 1, {self.n} do
    parts[i] = "{{{one}\\"decision\\":\\"{start}-" .. n .. "\\",\\"rewards\\":{told}}}"
    n = n + 1
    if n > last then n = first end
  end
  return table.concat(parts, ",")
end
"""
        self.lua = "body()" if self.n == 1 else '"{\\"operations\\":[" .. body() .. "]}"'
        self.python = json.dumps({"decision": first, "rewards": json.loads(told)})
        if self.n > 1:
            operation = {"op": "rewards", "policy": self.policy, **json.loads(self.python)}
            self.python = json.dumps({"operations": [operation] * self.n})
        super().run(server, seconds, folder)


def kinds(policy: str, rank: int) -> tuple[Kind, list[Kind]]:
    """The empty endpoint, and what is asked of the service."""
    empty = Kind(Load("empty endpoint", 1), "/", '"{}"', "{}")
    select = f"/v1/policies/{policy}/select"
    one = '{\\"op\\":\\"select\\",\\"policy\\":\\"' + policy + '\\"}'
    operations = ",".join([one] * BATCH)
    batch = '"{\\"operations\\":[' + operations + ']}"'
    return empty, [
        Kind(Load("select, logged", 1), select, '"{}"', "{}"),
        Rewards(Load(f"rewards of a decision ({rank} arms)", rank), policy, 1),
        Kind(
            Load(f"{BATCH} decisions, one select", BATCH),
            select,
            f'"{{\\"count\\":{BATCH}}}"',
            f'{{"count":{BATCH}}}',
        ),
        Kind(
            Load(f"{BATCH} selects, one batch", BATCH), "/v1/batch", batch, batch.strip('"').replace("\\", "")
        ),
        Rewards(Load(f"rewards of {BATCH} decisions, one batch", BATCH * rank), policy, BATCH),
    ]


# -- the command -------------------------------------------------------------------------------------------------


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


def _restart(service: Process, data: Path, options: list[str], events: int) -> tuple[Process, str]:
    """Kill the service with `events` after its snapshot, half decisions and half rewards, and start it again."""
    service.ask("/v1/snapshot", None)
    made: list[Any] = []
    for _ in range(0, events // 2, 500):
        operations = [{"op": "select", "policy": "default"}] * 500
        made = service.ask("/v1/batch", {"operations": operations})["results"]
        told = [
            {
                "op": "rewards",
                "policy": "default",
                "decision": one["decision"],
                "rewards": [0.5] * len(one["arms"]),
            }
            for one in made
        ]
        service.ask("/v1/batch", {"operations": told})
    service.process.kill()
    service.process.wait()
    began = time.perf_counter()
    again = Process("semibandit", "serve", *options, "--data", str(data), "--port", "0")
    return again, f"start: {time.perf_counter() - began:.2f} s; {again.said[-1].strip()}"


def _soak(service: Process, rate: float, seconds: float) -> str:
    """Decisions at half of the peak; memory at a tenth of the time, and at the end."""
    body = json.dumps({"count": BATCH}).encode()
    readings: list[float] = []
    pause = CONNECTIONS / (rate / 2)

    async def main() -> tuple[float, float, float, float, int]:
        async def watch() -> None:
            for _ in range(10):
                await asyncio.sleep(seconds / 10.5)
                readings.append(service.memory())

        task = asyncio.create_task(watch())
        bodies = iter(lambda: body, None)
        result = await own_client(service.port, "/v1/policies/default/select", bodies, seconds, pause=pause)
        await task
        return result

    found = asyncio.run(main())
    return (
        f"soak of {seconds:g} s: {found[0] * BATCH:,.0f} decisions/s, p99 {found[2] * 1e3:.1f} ms, "
        f"p99.9 {found[3] * 1e3:.1f} ms, {found[4]} errors, memory {', '.join(f'{one:.0f}' for one in readings)} MB"
    )


@click.command()
@click.argument("what", default="run", type=click.Choice(["run", "empty"]))
@click.option("--policy", default="cts", show_default=True)
@click.option("--arms", default=1_000_000, show_default=True)
@click.option("--rank", default=10, show_default=True)
@click.option("--seconds", default=4.0, show_default=True, help="Of each load.")
@click.option("--turns", default=3, show_default=True, help="The best of so many counts.")
@click.option(
    "--data", type=click.Path(path_type=Path), help="Folder of the log.  [default: a temporary one]"
)
@click.option("--restart", "events", default=0, help="Also start with so many events after the snapshot.")
@click.option("--soak", default=0.0, help="Also run so many seconds at half of the peak.")
@click.option("--json", "as_json", is_flag=True)
def main(
    what: str,
    policy: str,
    arms: int,
    rank: int,
    seconds: float,
    turns: int,
    data: Path | None,
    events: int,
    soak: float,
    as_json: bool,
) -> None:
    """Load an empty endpoint and the service in turns; ratios of one run."""
    if what == "empty":
        serve_empty()
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        state = data or place / "state"
        options = ["--arms", str(arms), "--rank", str(rank), "--policy", policy]
        nothing = Process("benchmarks.service", "empty")
        service = Process("semibandit", "serve", *options, "--data", str(state), "--port", "0")
        empty, loads = kinds("default", rank)
        for _ in range(turns):
            empty.run(nothing, seconds, place)
            for kind in loads:
                kind.run(service, seconds, place)
        notes = []
        for _ in range(5):
            service.ask("/v1/policies/default/select", {})
            service.ask("/v1/snapshot", None)
        pauses = [json.loads(line)["pause_ms"] for line in service.said if '"snapshot"' in line]
        notes.append(f"pause for a snapshot: {', '.join(f'{one:.1f}' for one in pauses)} ms")
        if soak:
            notes.append(_soak(service, loads[2].load.rate, soak))
        if events:
            service, told = _restart(service, state, options, events)
            notes.append(told)
        service.stop()
        nothing.stop()
    _show(empty.load, [kind.load for kind in loads], notes, as_json)


def _show(empty: Load, loads: list[Load], notes: list[str], as_json: bool) -> None:
    if as_json:
        rows = [vars(one) for one in (empty, *loads)]
        click.echo(json.dumps({"loads": rows, "notes": notes}, indent=1))
        return
    lines = [
        (
            one.name,
            number(one.rate, 5),
            number(one.rate * one.per_request, 6),
            number(one.p50 * 1e3),
            number(one.p99 * 1e3),
            number(one.cpu * 1e6),
            number(one.rate / empty.rate, 2),
            str(one.errors),
        )
        for one in (empty, *loads)
    ]
    header = ("load", "requests/s", "items/s", "p50 ms", "p99 ms", "server us", "of empty", "errors")
    click.echo(table(header, lines))
    for note in notes:
        click.echo(note)


if __name__ == "__main__":
    main()
