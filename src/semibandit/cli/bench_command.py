"""`semibandit bench`: our engines and their rivals side by side."""

from __future__ import annotations

import os
from pathlib import Path

import click

from semibandit.cli.options import instance_options


@click.command("bench")
@instance_options(arms=100_000, rank=10, env="noise")
@click.option("--phase", type=click.Choice(["explore", "late"]), default="explore", show_default=True)
@click.option(
    "--late-rounds",
    type=click.IntRange(1),
    help="Rounds played before --phase late is measured.  [default: 400 K / D]",
)
@click.option(
    "--rounds", type=click.IntRange(1), default=20_000, show_default=True, help="Most rounds in a repeat."
)
@click.option("--repeats", type=click.IntRange(1), default=5, show_default=True)
@click.option(
    "--seconds",
    type=click.FloatRange(0.001),
    default=0.3,
    show_default=True,
    help="About how long each contender plays in a repeat; slow ones play fewer rounds.",
)
@click.option(
    "--engine",
    "engines",
    multiple=True,
    metavar="NAME",
    help="Measure only these of our engines; the first one is what the ratios are about.  [default: all that fit]",
)
@click.option("--rival", "rivals", multiple=True, metavar="NAME", help="Measure only these rivals.")
@click.option("--clock", type=click.Choice(["auto", "exact", "staircase"]), default="auto", show_default=True)
@click.option("--scaling", is_flag=True, help="Over K: --arms, a tenth, a hundredth, a thousandth of them.")
@click.option("--suite", is_flag=True, help="Everything behind docs/performance.md (a quarter of an hour).")
@click.option("--quick", is_flag=True, help="With --suite: small instances, about a minute.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the raw results here.")
@click.option("--plot", type=click.Path(path_type=Path), help="Draw the results (.png, .svg).")
@click.option("--report", type=click.Path(path_type=Path), help="Write the results as a Markdown page.")
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path),
    help="Measure nothing; take the results in this file.",
)
def command(
    matroid: str,
    arms: int,
    rank: int,
    env: str,
    seed: int,
    phase: str,
    late_rounds: int | None,
    rounds: int,
    repeats: int,
    seconds: float,
    engines: tuple[str, ...],
    rivals: tuple[str, ...],
    clock: str,
    scaling: bool,
    suite: bool,
    quick: bool,
    json_file: Path | None,
    plot: Path | None,
    report: Path | None,
    source: Path | None,
) -> None:
    """Measure our engines beside their rivals and the bare loop, on the same rounds, in one run.

    \b
    semibandit bench --arms 1000000                       uniform, D = 10, exploring
    semibandit bench --matroid graphic --arms 20000 --rank 999 --phase late
    semibandit bench --arms 1000000 --scaling --plot scaling.png
    semibandit bench --suite --json all.json
    semibandit bench --from all.json --report page.md --plot page.png
    """
    from semibandit.cli.files import picture as check_picture
    from semibandit.cli.files import writable
    from semibandit.errors import ParameterError

    if json_file is not None:
        writable(json_file, "--json", (".json",))
    if plot is not None:
        check_picture(plot, "--plot")
    if report is not None:
        writable(report, "--report", (".md",))
    if quick and not suite:
        raise ParameterError("--quick goes with --suite; for one case choose smaller --arms and --seconds")
    if source is not None and (suite or scaling):
        raise ParameterError("--from takes results that exist: leave out --suite and --scaling")

    from semibandit.bench.report import report_markdown, result_text

    if source is not None:
        from semibandit.bench.runner import load

        result = load(source)
    elif suite:
        from semibandit.bench.runner import run_suite

        result = run_suite(quick, _say)
    else:
        from semibandit.bench.cases import Case, Scaling, decades
        from semibandit.bench.runner import run_bench

        case = Case(
            key=f"{matroid}-{phase}",
            matroid=matroid,
            arms=arms,
            rank=rank,
            phase=phase,
            env=env,
            clock=clock,
            seed=seed,
            rounds=rounds,
            repeats=repeats,
            seconds=seconds,
            late_rounds=late_rounds,
            engines=engines,
            rivals=rivals or None,
        )
        if scaling:
            over = decades(arms, rank, matroid)
            result = run_bench([], [Scaling(case, over, fit_from=over[0])], _say)
        else:
            result = run_bench([case], [], _say)
        result["figures"] = []
    if json_file is not None:
        from semibandit.bench.runner import save

        save(result, json_file)
    click.echo(result_text(result))
    table_plot: Path | None = None
    if plot is not None:
        from semibandit.report.plots import plot_bench

        plot_bench(result, plot)
        if "table1" in result:
            from semibandit.report.plots_table import plot_table

            table_plot = plot.with_name(f"{plot.stem}-table1{plot.suffix}")
            plot_table(result["table1"], table_plot)
    if report is not None:
        links = [
            None if picture is None else Path(os.path.relpath(picture, report.parent)).as_posix()
            for picture in (plot, table_plot)
        ]
        report.write_text(report_markdown(result, *links), encoding="utf-8")
    for path in (json_file, plot, table_plot, report):
        if path is not None:
            _say(f"written: {path}")
    if not all(case["agree"] for case in result["cases"]):
        raise click.exceptions.Exit(1)


def _say(message: str) -> None:
    click.echo(message, err=True)
