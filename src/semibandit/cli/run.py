"""`semibandit run`: policies against each other on one random instance, or an experiment in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from semibandit.cli.options import instance_options


@click.command("run")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@instance_options(arms=1_000, rank=10, env="bernoulli")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    default=("cucb",),
    show_default=True,
    metavar="NAME[:OPTION=VALUE,...]",
    help="A policy, e.g. cucb or cucb:clock=staircase,engine=resolve. Repeat it to compare several.",
)
@click.option("--rounds", type=click.IntRange(1), default=100_000, show_default=True)
@click.option("--repeats", type=click.IntRange(1), default=3, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON in place of the table.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Every checkpoint of every run, as a Parquet file; with FILE, the folder of results.",
)
@click.option(
    "--plot", type=click.Path(path_type=Path), help="Regret over rounds, as a picture (.png, .svg)."
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    help="Runs at a time: threads, with FILE processes.  [default: 1, with FILE all cores]",
)
@click.option(
    "--on",
    metavar="CLUSTER",
    help="With FILE: a cluster of Ray to run on: ray (RAY_ADDRESS, or this machine), ray://host:port, host:port.",
)
@click.option("--check", is_flag=True, help="With FILE: only say whether it is right and what it would run.")
@click.pass_context
def command(
    ctx: click.Context,
    file: Path | None,
    matroid: str,
    arms: int,
    rank: int,
    env: str,
    seed: int,
    policies: tuple[str, ...],
    rounds: int,
    repeats: int,
    as_json: bool,
    out: Path | None,
    plot: Path | None,
    workers: int | None,
    on: str | None,
    check: bool,
) -> None:
    """Play policies on a random instance and show regret and time per round.

    With FILE, run the experiment that it describes (see docs/experiments.md). Ctrl-C keeps what is finished;
    the same command goes on.

    Every policy meets the same rewards: the n-th reward of an arm is the same for all.

    \b
    semibandit run --matroid graphic --arms 2000 --rank 99 --rounds 20000 \\
        --policy cucb --policy cucb:engine=resolve --plot regret.png
    semibandit run experiment.toml --workers 2
    semibandit run experiment.toml --on ray://head:10001
    """
    if _with_file(ctx, file):
        from semibandit.cli.run_file import run_file

        assert file is not None
        run_file(file, out, workers, check, on)
        return
    from semibandit.cli.files import need, picture, writable

    if out is not None:
        need("polars", "--out")
        writable(out, "--out", (".parquet",))
    if plot is not None:
        picture(plot, "--plot")

    from semibandit.data.instances import random_environment
    from semibandit.policies.catalogue import make_policy
    from semibandit.simulation import compare

    world = random_environment(env, matroid, arms, rank, seed=seed)
    context = {"horizon": rounds, "means": world.means}
    players = {
        spec: make_policy(spec, world.matroid, world.reward_range, seed, context)
        for spec in dict.fromkeys(policies)
    }
    comparison = compare(players, world, rounds, repeats=repeats, seed=seed, workers=workers or 1)
    if out is not None:
        comparison.to_frame().write_parquet(out)
    if plot is not None:
        from semibandit.report.plots import plot_comparison

        plot_comparison(comparison, plot, title=f"{world.matroid!r}, {env} rewards")
    if as_json:
        about = {"matroid": matroid, "arms": arms, "rank": rank, "env": env, "seed": seed}
        rows = [_plain(row) for row in comparison.summary()]
        click.echo(json.dumps({"instance": about, "policies": rows}, indent=1))
        return
    click.echo(f"{world.matroid!r}, {env} rewards, {rounds:,} rounds, {repeats} repeats, seed {seed}")
    click.echo(f"best possible reward per round: {world.optimal_value:.4g}\n")
    rows = sorted(comparison.summary(), key=lambda row: float(row["regret"]))
    click.echo(_table(rows, rounds * world.optimal_value))
    if len(rows) > 1:
        click.echo(f"\n{_winner(comparison)}")
    written = [
        f"{path} ({what})" for path, what in ((out, "all checkpoints"), (plot, "picture")) if path is not None
    ]
    if written:
        click.echo(f"\nwritten: {', '.join(written)}")


def _with_file(ctx: click.Context, file: Path | None) -> bool:
    """Whether a file is given; options that do not go with that are refused."""
    from semibandit.errors import ParameterError

    given = [
        name
        for name in ctx.params
        if name != "file" and ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    ]
    with_file = ("workers", "check", "out", "on")
    for name in given:
        option = {"policies": "--policy", "as_json": "--json"}.get(name, f"--{name}")
        if file is None and name in ("check", "on"):
            raise ParameterError(f"{option} goes with an experiment file: semibandit run FILE {option}")
        if file is not None and name not in with_file:
            raise ParameterError(f"{option} does not go with an experiment file: say it in {file}")
    return file is not None


def _winner(comparison: Any) -> str:
    """Who lost least, and whether that is more than luck."""
    from semibandit.report.stats import paired
    from semibandit.text import number

    first, second = comparison.ranking[:2]
    mean, half = paired(comparison.regret(second)[:, -1], comparison.regret(first)[:, -1])
    told = f"least regret: {first}; {second} lost {number(mean)} more"
    if half is None:
        return f"{told}, in one run (--repeats 10 tells how sure that is)"
    return f"{told}, +- {number(half, 2)} (95 %)" + ("" if mean > half else ": that may be luck")


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """NaN (one repeat has no standard error) is null in JSON."""
    return {key: None if value != value else value for key, value in row.items()}


def _table(rows: list[dict[str, Any]], best: float) -> str:
    from semibandit.text import number, table

    header = (
        "policy",
        "engine",
        "clock",
        "regret",
        "+-",
        "90 %",
        "of best",
        "select us",
        "update us",
        "path",
    )
    lines = [
        (
            row["policy"] if len(row["policy"]) <= 27 else row["policy"][:24] + "...",
            str(row.get("engine", "-")),
            str(row.get("clock", "-")),
            number(row["regret"], 5),
            number(row["standard_error"]),
            number(row["regret_90"]) if row["repeats"] > 1 else "-",
            f"{100 * row['regret'] / best:.2g}%" if best > 0 else "-",
            number(row["select_us"]),
            number(row["update_us"]),
            row["path"],
        )
        for row in rows
    ]
    return table(header, lines, left=3)
