"""`semibandit report`: what came out of an experiment, as a page."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("report")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="The page.  [default: report.html in FOLDER]")
@click.option(
    "--figures",
    type=click.Path(path_type=Path),
    help="Also write every figure as PNG and SVG into this folder.",
)
def command(folder: Path, out: Path | None, figures: Path | None) -> None:
    """Write one self-contained HTML page about the results in FOLDER (from `semibandit run FILE`).

    Regret with 95 % bands, final table with intervals and differences in pairs, time per round, cost against
    regret, and the definition of the experiment. The page needs no network. Of a run that is not finished it shows what
    there is and names what is missing.
    """
    from semibandit.cli.files import need, output_folder, writable

    need("polars", "report")
    if figures is not None:
        need("matplotlib", "--figures")
    from semibandit.report.data import load_sweep

    sweep = load_sweep(folder)
    if figures is not None:
        output_folder(figures, "--figures")
    page = writable(out if out is not None else folder / "report.html", "--out", (".html", ".htm"))
    from semibandit.report.page import report_html

    page.write_text(report_html(sweep), encoding="utf-8")
    for line in sweep.told_missing():
        click.echo(f"missing: {line}", err=True)
    click.echo(f"written: {page}")
    if figures is not None:
        from semibandit.report.figures import save_figures

        written = save_figures(sweep, figures)
        click.echo(f"written: {len(written)} figures in {figures}")
