"""``python -m benchmarks shards``: what a round of a sharded policy costs, in time, memory and bytes on the wire.

The ground set is made by the shards themselves, each its own part, so that no process holds all of it.
"""

from __future__ import annotations

import json
import os
import resource
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np

from semibandit.distributed import Sharded
from semibandit.distributed.here import Here, Message
from semibandit.distributed.packing import pack

#: Figures of a long list of rounds: the least, and percentiles.
_SHOWN = (0, 25, 50, 99)


def _part(n_arms: int, rank: int, dimension: int, seed: int) -> Callable[[], dict[str, Any]]:
    def make() -> dict[str, Any]:
        part: dict[str, Any] = {"n_arms": n_arms, "rank": rank}
        if dimension:
            part["features"] = np.random.default_rng(seed).normal(size=(n_arms, dimension))
        return part

    return make


def _memory() -> int:
    """The most that this process ever held, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _spread(seconds: list[float]) -> dict[str, float]:
    values = np.percentile(np.array(seconds) * 1e6, _SHOWN)
    return {f"p{p}": round(float(value), 1) for p, value in zip(_SHOWN, values, strict=True)}


def _timed(action: Callable[[], Any], rounds: int) -> list[float]:
    seconds = []
    for _ in range(rounds):
        began = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - began)
    return seconds


class Wire:
    """Counts what goes to and from shards. Around the `ask` of a transport."""

    def __init__(self, transport: Any) -> None:
        self.messages, self.there, self.back = 0, 0, 0
        self._ask = transport.ask
        transport.ask = self.ask

    def ask(self, messages: Mapping[int, Message]) -> dict[int, Any]:
        replies: dict[int, Any] = self._ask(messages)
        self.messages += len(messages)
        self.there += sum(len(pack(one)) for one in messages.values())
        self.back += sum(len(pack(one)) for one in replies.values())
        return replies


def measure_shards(
    arms: int, rank: int, shards: int, policy: str, on: str | None, rounds: int, dimension: int = 0
) -> dict[str, Any]:
    """Build, play, count; on a cluster also plain calls to as many actors, in turns with the rounds.

    `dimension`: of features, for policies that have some. Of their rounds the first ones are shown, which weigh all
    arms; later ones look at short lists of arms.
    """
    sizes = [arms * (i + 1) // shards - arms * i // shards for i in range(shards)]
    transport: Any = Here() if on is None else None
    if transport is None:
        from semibandit.distributed.cluster import OnRay

        transport = OnRay(str(on), 3600.0)
    began = time.perf_counter()
    parts = [_part(n, rank, dimension, i) for i, n in enumerate(sizes)]
    made = Sharded.from_parts("uniform", parts, policy=policy, on=transport)
    rng = np.random.default_rng(0)

    def play() -> None:
        chosen = made.select()
        made.update(chosen, rng.random(len(chosen)))

    play()
    built = time.perf_counter() - began
    for _ in range(3 if dimension else min(50, rounds)):
        play()
    plain, own = [], []
    idle = None if on is None else _plain_calls(shards)
    for _ in range(5):
        if idle is not None:
            plain += _timed(idle, max(1, rounds // 5))
        own += _timed(play, max(1, rounds // 5))
    wire = Wire(transport)
    _timed(play, 10)
    found: dict[str, Any] = {
        "arms": arms,
        "rank": rank,
        "shards": shards,
        "policy": policy,
        "dimension": dimension,
        "on": on or "this process",
        "build_seconds": round(built, 2),
        "us_per_round": _spread(own),
        "messages_per_round": wire.messages / 10,
        "bytes_there": round(wire.there / 10),
        "bytes_back": round(wire.back / 10),
        "bytes_per_arm": round(made.describe()["bytes_per_arm"], 1),
        "coordinator_bytes": _memory(),
    }
    if on is not None:
        import ray

        calls = [actor.__ray_call__.remote(lambda self: _memory()) for actor in transport.actors.values()]
        found["shard_bytes"] = ray.get(calls)
        found["us_per_plain_call"] = _spread(plain)
    made.close()
    return found


def _plain_calls(shards: int) -> Callable[[], Any]:
    """A call to so many actors that do nothing, with messages of some 2,000 bytes."""
    import ray

    class Idle:
        def answer(self, message: bytes) -> bytes:
            return message

    actors = [ray.remote(Idle).options(num_cpus=0).remote() for _ in range(shards)]
    message = os.urandom(2000)

    def call() -> Any:
        return ray.get([actor.answer.remote(message) for actor in actors])

    call()
    return call


@click.command("shards")
@click.option("--arms", type=click.IntRange(1), default=1_000_000, show_default=True)
@click.option("--rank", type=click.IntRange(1), default=100, show_default=True)
@click.option("--shards", type=click.IntRange(1), multiple=True, default=(1, 4), show_default=True)
@click.option("--policy", default="cucb", show_default=True)
@click.option(
    "--dimension", type=click.IntRange(0), default=0, help="Of features: for comb-lin-ts, comb-lin-ucb."
)
@click.option(
    "--on", metavar="CLUSTER", help="ray, ray://host:port or host:port; without it, in this process."
)
@click.option("--rounds", type=click.IntRange(5), default=500, show_default=True)
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the figures here.")
def command(
    arms: int,
    rank: int,
    shards: tuple[int, ...],
    policy: str,
    dimension: int,
    on: str | None,
    rounds: int,
    json_file: Path | None,
) -> None:
    """Time to build, us and bytes a round, memory a shard. 10^8 arms over 4 shards: --arms 100000000 --on ray."""
    found = []
    for n in shards:
        found.append(measure_shards(arms, rank, n, policy, on, rounds, dimension))
        click.echo(json.dumps(found[-1], indent=1))
    if json_file is not None:
        json_file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
