"""Load test of `semibandit serve`: requests a second against an empty endpoint of the same stack, in one run.

``python -m benchmarks.service`` starts two servers on this machine, an empty Starlette endpoint behind the same uvicorn
and the service itself, and loads them in turns with wrk (or, where that is missing, with a client of its own) over 64
connections. The best of the turns counts. ``--restart`` also measures a start with many events after the snapshot, and
``--soak SECONDS`` a long run at half of the peak.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import click

from benchmarks.service.loads import Load, kinds
from benchmarks.service.long import restart, settings, soak
from benchmarks.service.servers import Process, serve_empty
from semibandit.text import number, table


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
@click.option("--soak", "soaking", default=0.0, help="Also run so many seconds at half of the peak.")
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
    soaking: float,
    as_json: bool,
) -> None:
    """Load an empty endpoint and the service in turns; ratios of one run."""
    if what == "empty":
        serve_empty()
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        about = (policy, arms, rank)
        nothing = Process("benchmarks.service", "empty")
        file = settings(place / "service.toml", data or place / "state", *about)
        service = Process("semibandit", "serve", str(file))
        empty, loads = kinds("default", rank)
        for kind in loads:  # whatever a first request of its sort costs
            kind.run(service, 1.0, place)
            kind.load.rate = 0.0
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
        if soaking:
            notes.append(soak(service, loads[2].load.rate, soaking))
        service.stop()
        nothing.stop()
        if events:
            # Another service, so that what it starts with is known.
            file = settings(place / "restart.toml", place / "restart", *about, snapshots=False)
            again, told = restart(file, events)
            notes.append(told)
            again.stop()
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
