"""`semibandit run FILE`: an experiment in a file, into a folder."""

from __future__ import annotations

from pathlib import Path

import click

from semibandit.cli.group import STOPPED


def run_file(file: Path, out: Path | None, workers: int | None, check: bool, on: str | None = None) -> None:
    """Run the experiment in `file`, or only say what it would run."""
    from semibandit.cli.files import need

    need("polars", "an experiment file")
    if on is not None:
        from semibandit.distributed.cluster import is_cluster
        from semibandit.errors import ParameterError

        need("ray", "--on")
        if not is_cluster(on):
            raise ParameterError(f"--on {on}: a cluster is ray, ray://host:port or host:port")

    from semibandit.experiments import Stopped, load_experiment, run_experiment
    from semibandit.experiments.cells import build_all, check_policies
    from semibandit.machine import cores

    experiment = load_experiment(file)
    folder = out if out is not None else file.parent / "results" / experiment.name
    plan = (
        f"{experiment.name}: {_count(len(experiment.instances), 'instance')} x "
        f"{_count(len(experiment.policies), 'policy', 'policies')} x {_count(experiment.repeats, 'repeat')} = "
        f"{_count(experiment.n_cells, 'cell')} of {experiment.rounds:,} rounds"
    )
    if check:
        worlds = build_all(experiment)
        check_policies(experiment, worlds)
        click.echo(plan)
        for instance, env in zip(experiment.instances, worlds, strict=True):
            click.echo(f"  {instance.label}: {env.matroid!r}")
        for policy in experiment.policies:
            click.echo(f"  {policy.label}")
        click.echo(f"{file} is fine; results would go to {folder}")
        return
    click.echo(plan, err=True)
    try:
        outcome = run_experiment(experiment, folder, workers or (None if on else cores()), on=on)
    except KeyboardInterrupt as stopped:
        done = f"{stopped.done} of {stopped.total} cells" if isinstance(stopped, Stopped) else "no new cells"
        click.echo(
            f"\nstopped: {done} are finished and kept in {folder}. Run the same command again to go on.",
            err=True,
        )
        raise click.exceptions.Exit(STOPPED) from None
    if outcome.found:
        click.echo(f"{outcome.found} of {outcome.total} cells were there already", err=True)
    click.echo(_summary(outcome.folder))
    click.echo(f"\nresults: {outcome.folder}; next: semibandit report {outcome.folder}")


def _count(n: int, one: str, many: str | None = None) -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def _summary(folder: Path) -> str:
    from semibandit.report.data import load_sweep
    from semibandit.text import number, table

    rows = []
    for world in load_sweep(folder).worlds:
        for entry in (world.entries[i] for i in world.ranking()):
            mean, half = entry.final
            rows.append(
                (
                    _cut(world.label, 34),
                    _cut(entry.label, 28),
                    number(mean, 5),
                    "-" if half is None else number(half),
                    number(entry.microseconds),
                    entry.path,
                )
            )
    return table(("instance", "policy", "regret", "+- 95%", "us/round", "path"), rows, left=2)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
