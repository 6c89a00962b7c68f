"""`semibandit log`: what the service wrote down."""

from __future__ import annotations

from pathlib import Path

import click

from semibandit.cli.group import Commands


@click.group("log", cls=Commands)
def command() -> None:
    """The log of a service: `semibandit log export`."""


@command.command("export")
@click.argument("data", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--policy", default="default", show_default=True, help="Whose decisions.")
@click.option(
    "--missing",
    type=click.Choice(["drop", "zero", "keep"]),
    default="drop",
    show_default=True,
    help="Decisions not all of whose rewards came: leave them out, count 0, or keep the known rows.",
)
def export_command(data: Path, out: Path, policy: str, missing: str) -> None:
    """Write the decisions in the folder DATA, with their rewards, to OUT (.parquet or .csv).

    A row per played arm, as `semibandit replay` reads it, with propensities where the policy knows them. The service
    may be running.

    \b
    semibandit log export state/ log.parquet
    semibandit replay log.parquet --matroid '{ matroid = "uniform", arms = 1000, rank = 10 }'
    """
    from semibandit.cli.files import need, writable

    need("msgspec", "log export")
    need("polars", "log export")
    writable(out, "OUT", (".parquet", ".csv"))

    import polars

    from semibandit.serve.export import export
    from semibandit.serve.sqlite_store import SqliteStore

    store = SqliteStore(data)
    store.open_to_read()
    try:
        columns = export(store.read(store.first() - 1), policy, missing)
    finally:
        store.close()
    frame = polars.DataFrame(columns)
    (frame.write_csv if out.suffix.lower() == ".csv" else frame.write_parquet)(out)
    rounds = int(columns["round"][-1]) + 1
    click.echo(f"written: {out} ({rounds:,} decisions, {frame.height:,} rewards: {', '.join(columns)})")
