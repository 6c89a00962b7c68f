"""`semibandit bench`: how long a round takes on an instance like yours."""

from __future__ import annotations

from pathlib import Path

import click

from semibandit.cli.options import instance_options


@click.command("bench")
@instance_options(arms=100_000, rank=10, env="noise")
@click.option(
    "--phase",
    type=click.Choice(["explore", "middle", "late"]),
    default="explore",
    show_default=True,
    help="Arms hardly seen; means that are close, and partly known; means with a gap, and a base that has settled.",
)
@click.option(
    "--late-rounds",
    type=click.IntRange(1),
    help="Rounds played before --phase middle or late is measured.  [default: 40 K / D, 400 K / D]",
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
    help="Measure these of our engines; the first one is what the ratios are about.  [default: auto]",
)
@click.option("--clock", type=click.Choice(["auto", "exact", "staircase"]), default="auto", show_default=True)
@click.option("--exploration", type=click.FloatRange(0, min_open=True), default=1.5, show_default=True)
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the raw results here.")
@click.option("--plot", type=click.Path(path_type=Path), help="Draw the results (.png, .svg).")
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
    clock: str,
    exploration: float,
    json_file: Path | None,
    plot: Path | None,
) -> None:
    """Measure CUCB on one instance beside numpy and a scan of all weights, on the same rounds, in one run.

    From Python a round is select and update; a compiled one also draws the rewards. The scan is our engine "resolve",
    which looks at every arm once per round.

    \b
    semibandit bench --arms 1000000                       uniform, D = 10, exploring
    semibandit bench --matroid graphic --arms 20000 --rank 999 --phase late
    semibandit bench --engine kinetic --json mine.json --plot mine.png
    """
    from semibandit.cli.files import picture, writable

    if json_file is not None:
        writable(json_file, "--json", (".json",))
    if plot is not None:
        picture(plot, "--plot")

    import json

    from semibandit.bench import Case, measure_instance
    from semibandit.bench.table import case_text

    asked = Case(
        key=f"{matroid}-{phase}",
        matroid=matroid,
        arms=arms,
        rank=rank,
        phase=phase,
        env=env,
        clock=clock,
        exploration=exploration,
        seed=seed,
        rounds=rounds,
        repeats=repeats,
        seconds=seconds,
        late_rounds=late_rounds,
        engines=engines,
    )
    result = measure_instance(asked, _say)
    case = result["cases"][0]
    if json_file is not None:
        json_file.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    click.echo(case_text(case))
    if plot is not None:
        from semibandit.report.plots import plot_case

        plot_case(case, plot)
    for path in (json_file, plot):
        if path is not None:
            _say(f"written: {path}")
    if not case["agree"]:
        raise click.exceptions.Exit(1)


def _say(message: str) -> None:
    click.echo(message, err=True)
