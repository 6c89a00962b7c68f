"""What takes longer: a start with many events after the snapshot, and a long run at half of the peak."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

from benchmarks.service.loads import BATCH, CONNECTIONS, own_client
from benchmarks.service.servers import Process

_OPERATIONS = 500


def settings(path: Path, data: Path, policy: str, arms: int, rank: int, snapshots: bool = True) -> Path:
    """A file of settings for the service; without `snapshots` it writes them when it is asked to only."""
    path.write_text(
        f'[server]\nport = 0\ndata = "{data}"\n'
        + ("" if snapshots else "[upkeep]\nsnapshot_events = 1000000000\nsnapshot_seconds = 1e9\n")
        + f'[policies.default]\npolicy = "{policy}"\n'
        + f'matroid = {{ kind = "uniform", arms = {arms}, rank = {rank} }}\n'
    )
    return path


def restart(file: Path, events: int) -> tuple[Process, str]:
    """Kill a service with so many events after its snapshot, decisions and rewards in turns, and start it again.

    `file`: its settings, in which snapshots are written on request only.
    """
    service = Process("semibandit", "serve", str(file))
    service.ask("/v1/snapshot", None)
    made: list[Any] = []
    done = 0
    while done < events:
        # Each an event of its own: no two decisions stand side by side.
        operations: list[Any] = []
        for one in made or [None] * _OPERATIONS:
            operations.append({"op": "select", "policy": "default"})
            if one is not None:
                told = {"decision": one["decision"], "rewards": [0.5] * len(one["arms"])}
                operations.append({"op": "rewards", "policy": "default", **told})
        results = service.ask("/v1/batch", {"operations": operations})["results"]
        made = [one for one in results if "decision" in one]
        done += len(operations) if len(operations) > len(made) else 1
    service.process.kill()
    service.process.wait()
    began = time.perf_counter()
    again = Process("semibandit", "serve", str(file))
    took = time.perf_counter() - began
    return again, f"start: {took:.2f} s, of them {again.cpu():.2f} s of processor; {again.said[-1].strip()}"


def soak(service: Process, rate: float, seconds: float) -> str:
    """Decisions at half of the peak `rate` (requests a second), and what becomes of the memory meanwhile."""
    body = json.dumps({"count": BATCH}).encode()
    readings: list[float] = []

    async def main() -> tuple[float, float, float, float, int]:
        async def watch() -> None:
            for _ in range(10):
                await asyncio.sleep(seconds / 10.5)
                readings.append(service.memory())

        task = asyncio.create_task(watch())
        bodies, every = iter(lambda: body, None), CONNECTIONS / (rate / 2)
        path = "/v1/policies/default/select"
        result = await own_client(service.port, path, bodies, seconds, every=every)
        await task
        return result

    found = asyncio.run(main())
    first, last = readings[0], readings[-1]
    return (
        f"soak of {seconds:g} s: {found[0] * BATCH:,.0f} decisions/s (half of the peak: {rate * BATCH / 2:,.0f}), "
        f"p99 {found[2] * 1e3:.1f} ms, p99.9 {found[3] * 1e3:.1f} ms, {found[4]} errors, memory "
        f"{first:.0f} MB after a tenth of the time, {last:.0f} MB at its end: {100 * (last / first - 1):+.1f} % "
        f"(least {min(readings):.0f}, most {max(readings):.0f} MB)"
    )
