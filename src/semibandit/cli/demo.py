"""`semibandit demo`: the main job in a minute, as a table and a picture."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("demo")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("demo.png"),
    show_default=True,
    help="Where the picture goes (.png, .svg).",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--quick", is_flag=True, help="Small instances, a few seconds.")
@click.pass_context
def command(ctx: click.Context, out: Path, seed: int, quick: bool) -> None:
    """CUCB on a large instance of every matroid class: regret, time per round, a table and a picture.

    The first instance has a million arms and is played beside numpy, which makes the same decisions. The picture needs
    matplotlib; without it there is the table alone.
    """
    from semibandit.cli.files import have, picture

    asked = ctx.get_parameter_source("out") is click.core.ParameterSource.COMMANDLINE
    drawn = asked or have("matplotlib")
    if drawn:
        picture(out, "--out")

    from semibandit.cli.demo_runs import play_all
    from semibandit.report.demo import plot_demo
    from semibandit.text import duration, needs, number, table

    million, classes = play_all(seed, quick, lambda message: click.echo(message, err=True))
    if drawn:
        plot_demo(million, classes, out)
    header = (
        "matroid",
        "arms",
        "rank",
        "engine",
        "rounds",
        "us/round",
        "numpy us",
        "faster",
        "regret",
    )
    rows = [
        (
            one["name"],
            f"{one['arms']:,}",
            f"{one['rank']:,}",
            one["engine"],
            f"{one['rounds']:,}",
            number(one["us"]),
            number(one["rival_us"]),
            f"{number(one['rival_us'] / one['us'], 2)} x",
            f"{one['lost'][0]:.0f} > {one['lost'][-1]:.1f}%",
        )
        for one in classes
    ]
    click.echo(table(header, rows))
    compared = sum(one["checked"] for one in classes)
    click.echo(
        "\nregret    average per round, as a share of the best reward: in the first rounds > in all of them\n"
        "us/round  select and update, in the later rounds\n"
        "numpy us  the same CUCB sorting all weights every round (uniform: argpartition); "
        f"{compared:,} rounds\n"
        "          were played by both, and their decisions compared"
    )
    if not all(one["same"] for one in classes):
        click.echo(
            "WARNING: some decisions differed; please report this with the output of `semibandit info`"
        )
    click.echo(
        f"\n{million['arms']:,} arms: {million['rounds']:,} rounds took {duration(million['seconds'][-1])}; "
        f"numpy would need {duration(million['rival_seconds'][-1])}."
    )
    click.echo(f"picture: {out}" if drawn else f"picture: none; {needs('it', 'matplotlib')}")
    click.echo(
        "next: semibandit run --help (your own comparison), semibandit bench --help (your own instance)"
    )
