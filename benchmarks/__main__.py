"""``python -m benchmarks``: the suite, its page, two runs side by side, and published curves."""

from __future__ import annotations

import os
from pathlib import Path

import click

from benchmarks import curves, shards, sweep
from benchmarks.compare import compare_text
from benchmarks.readme import rewrite
from benchmarks.report import report_markdown, result_text
from benchmarks.runner import load, run_suite, save
from semibandit.cli.files import picture, writable
from semibandit.cli.group import Commands
from semibandit.errors import ParameterError


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """The evidence behind docs/performance.md and docs/regret.md."""


@main.command("suite")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the raw results here.")
@click.option("--quick", is_flag=True, help="Small instances, a few minutes.")
@click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    help="Only these cases or parts (scaling, policies, large, real, whole, table1); no page can be made of it.",
)
def suite_command(json_file: Path | None, quick: bool, only: tuple[str, ...]) -> None:
    """Measure every case beside every rival, the policies beside their textbook versions, and the paper's Table 1.

    About half an hour on an idle machine.
    """
    if json_file is not None:
        writable(json_file, "--json", (".json",))
    result = run_suite(quick, _say, only=only)
    if json_file is not None:
        save(result, json_file)
        _say(f"written: {json_file}")
    click.echo(result_text(result))
    if not all(case["agree"] for case in result["cases"]):
        raise click.exceptions.Exit(1)


@main.command("report")
@click.argument("source", type=click.Path(path_type=Path))
@click.option("--page", type=click.Path(path_type=Path), help="Write the page (.md).")
@click.option("--plot", type=click.Path(path_type=Path), help="Draw the page's pictures (.png, .svg).")
@click.option(
    "--readme", type=click.Path(path_type=Path), help="Rewrite the table between this file's markers."
)
def report_command(source: Path, page: Path | None, plot: Path | None, readme: Path | None) -> None:
    """Print the results in SOURCE, or make a page, pictures and README's table of them."""
    if page is not None:
        writable(page, "--page", (".md",))
    if plot is not None:
        picture(plot, "--plot")
    result = load(source)
    if page is None and plot is None and readme is None:
        click.echo(result_text(result))
        return
    if result.get("partial"):
        raise ParameterError(f"{source} holds a part of the suite: pages are made of whole runs")
    table_plot = None
    if plot is not None:
        from benchmarks.plots import plot_bench, plot_table

        plot_bench(result, plot)
        table_plot = plot.with_name(f"{plot.stem}-table1{plot.suffix}")
        plot_table(result["table1"], table_plot)
    if page is not None:
        links = [
            None if one is None else Path(os.path.relpath(one, page.parent)).as_posix()
            for one in (plot, table_plot)
        ]
        page.write_text(report_markdown(result, *links), encoding="utf-8")
    if readme is not None:
        rewrite(readme, result)
    for path in (page, plot, table_plot, readme):
        if path is not None:
            _say(f"written: {path}")


@main.command("compare")
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
def compare_command(before: Path, after: Path) -> None:
    """Print our times in two runs of the suite and their ratio, case by case; more than 5 % slower is marked."""
    click.echo(compare_text(load(before), load(after)))


main.add_command(curves.command)
main.add_command(shards.command)
main.add_command(sweep.command)


def _say(message: str) -> None:
    click.echo(message, err=True)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
