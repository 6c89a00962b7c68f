"""`semibandit replay`: a policy on logged decisions."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from semibandit.cli.options import instance_options


@click.command("replay")
@click.argument("log", type=click.Path(path_type=Path))
@instance_options(arms=1_000, rank=10, env="bernoulli")
@click.option("--dataset", metavar="NAME", help="Take the matroid of a data set (see `semibandit datasets`).")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    default=("cucb",),
    show_default=True,
    metavar="NAME[:OPTION=VALUE,...]",
)
@click.option(
    "--match",
    type=click.Choice(["arms", "base"]),
    default="arms",
    show_default=True,
    help="Count shared arms, weighted; or only rounds in which the whole base is the logged one.",
)
@click.option(
    "--bad",
    type=click.Choice(["reject", "skip"]),
    default="reject",
    show_default=True,
    help="Malformed rows.",
)
@click.option(
    "--warm",
    type=click.Path(path_type=Path),
    help="Also start the first policy from the log; save it here.",
)
@click.option(
    "--random",
    "rounds",
    type=click.IntRange(1),
    help="Write LOG instead: so many random decisions.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON in place of the table.")
def command(
    log: Path,
    matroid: str,
    arms: int,
    rank: int,
    env: str,
    seed: int,
    dataset: str | None,
    policies: tuple[str, ...],
    match: str,
    bad: str,
    warm: Path | None,
    rounds: int | None,
    as_json: bool,
) -> None:
    """Evaluate policies on a log of uniformly random decisions: columns round, arm, reward (Parquet).

    \b
    semibandit replay log.parquet --arms 100 --rank 5 --random 20000
    semibandit replay log.parquet --arms 100 --rank 5 --policy cucb --policy kl-osm
    semibandit replay log.parquet --arms 100 --rank 5 --warm policy.semibandit
    """
    from semibandit.cli.files import need, writable
    from semibandit.data.replay import random_log, read_log, replay, warm_start
    from semibandit.errors import ParameterError
    from semibandit.policies.catalogue import make_policy
    from semibandit.text import number, table

    need("polars", "replay")
    if warm is not None:
        writable(warm, "--warm")
    if dataset is not None:
        from semibandit.data import load

        world = load(dataset)
        if world.objective == "min":
            raise ParameterError(
                f"--dataset {dataset} is about costs: replay it from Python with semibandit.minimize"
            )
    else:
        from semibandit.data.instances import random_environment

        world = random_environment(env, matroid, arms, rank, seed=seed)
    if rounds is not None:
        writable(log, "LOG", (".parquet",))
        random_log(world, rounds, seed).write_parquet(log)
        click.echo(f"written: {log} ({rounds:,} random decisions, {world.matroid!r})")
        return
    found = read_log(log, world.matroid, world.reward_range, bad)
    context = {"horizon": max(3, len(found)), "means": world.means}
    results = {}
    for spec in dict.fromkeys(policies):
        policy = make_policy(spec, world.matroid, world.reward_range, seed, context)
        results[spec] = replay(policy, found, match)
    if warm is not None:
        started = make_policy(policies[0], world.matroid, world.reward_range, seed, context)
        count = warm_start(started, found)
        started.save(warm)
    if as_json:
        rows = {spec: {k: None if v != v else v for k, v in asdict(r).items()} for spec, r in results.items()}
        click.echo(json.dumps({"log": str(log), "skipped": found.skipped, "policies": rows}, indent=1))
        return
    for row, why in found.skipped[:5]:
        click.echo(f"skipped row {row}: {why}", err=True)
    if len(found.skipped) > 5:
        click.echo(f"skipped {len(found.skipped) - 5:,} more rows", err=True)
    click.echo(f"{log}: {len(found):,} rounds, {len(found.arms):,} rewards, {world.matroid!r}\n")
    header = ("policy", "value per round", "+-", "normalized", "eff. samples", "same base", "shared arms")
    lines = [
        (
            spec,
            number(r.value),
            number(r.standard_error),
            number(r.normalized),
            f"{r.effective_samples:,.0f}",
            f"{r.matched_rounds:,}",
            f"{r.matched_arms:,}",
        )
        for spec, r in results.items()
    ]
    click.echo(table(header, lines, left=1))
    if warm is not None:
        click.echo(f"\nwritten: {warm} ({policies[0]}, told {count:,} rewards); go on with semibandit.load")
