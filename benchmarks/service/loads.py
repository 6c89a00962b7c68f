"""What the servers are loaded with: requests of one sort over many connections, by wrk or by a client of our own."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from benchmarks.service.servers import Process

CONNECTIONS = 64
BATCH = 64


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
    port: int, path: str, bodies: Any, seconds: float, connections: int = CONNECTIONS, every: float = 0.0
) -> tuple[float, float, float, float, int]:
    """As `run_wrk`, in Python: slower, and enough for a soak at half of the peak.

    `every`: seconds from one request of a connection to its next, on average, if it is answered by then.
    """
    latencies: list[float] = []
    errors = 0
    end = time.perf_counter() + seconds

    async def one() -> None:
        nonlocal errors
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        due = time.perf_counter()
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
            due += every  # who was answered late makes up for it
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
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
