"""`semibandit plot`: a single figure of an experiment."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("plot")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--kind", type=click.Choice(["regret", "time", "cost"]), default="regret", show_default=True)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The picture (.png, .svg, .pdf).")
@click.option("--instance", metavar="LABEL", help="Only this instance.  [default: a panel each]")
@click.option(
    "--scale",
    type=click.Choice(["linear", "semi", "log"]),
    default="linear",
    show_default=True,
    help="Axes of regret: linear, logarithmic rounds, or both logarithmic.",
)
def command(folder: Path, kind: str, out: Path, instance: str | None, scale: str) -> None:
    """Draw one figure of the results in FOLDER (from `semibandit run FILE`).

    \b
    semibandit plot results/sweep --kind regret --scale log --out regret.png
    """
    from semibandit.cli.files import need, picture

    need("polars", "plot")
    picture(out, "--out")

    from semibandit.report.data import load_sweep
    from semibandit.report.figures import plot_sweep

    sweep = load_sweep(folder)
    plot_sweep(sweep, kind, out, instance, scale)
    for line in sweep.told_missing():
        click.echo(f"missing: {line}", err=True)
    click.echo(f"written: {out}")
