"""`semibandit replay`: off-policy evaluation of policies on logged decisions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from semibandit.environments import Environment

_SAVED = ".semibandit"


@click.command("replay")
@click.argument("log", type=click.Path(path_type=Path))
@click.option(
    "--matroid",
    metavar="FILE|TABLE",
    help="What could be played: a TOML file with an [instance] as in experiment files, or such a table in braces.",
)
@click.option("--dataset", metavar="NAME", help="Take the matroid of a data set (see `semibandit datasets`).")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="NAME[:OPTION=VALUE,...]|FILE",
    help="A policy that starts anew, or one that was saved (.semibandit).  [default: cucb]",
)
@click.option("--base", "bases", multiple=True, metavar="ARM,ARM,...", help="Also: always these arms.")
@click.option(
    "--column",
    "names",
    multiple=True,
    metavar="ROLE=NAME",
    help="The column that is the round, arm, reward, propensity (per arm) or base_propensity.",
)
@click.option(
    "--estimator",
    "estimators",
    multiple=True,
    type=click.Choice(["ips", "snips", "clipped", "dr"]),
    help="How to estimate.  [default: all]",
)
@click.option(
    "--match",
    type=click.Choice(["arms", "base"]),
    help="Count shared arms, or only rounds in which the whole base is the logged one.  [default: by propensities]",
)
@click.option(
    "--clip",
    type=click.FloatRange(0, min_open=True),
    help="Largest weight of `clipped`.  [default: sqrt(rounds)]",
)
@click.option(
    "--assume",
    type=click.Choice(["uniform", "frequencies"]),
    help="Without propensities: bases are uniform, untested; or as probable as they are frequent in the log.",
)
@click.option("--frozen", is_flag=True, help="Policies learn nothing from the log.")
@click.option(
    "--resamples", type=click.IntRange(1), default=1000, show_default=True, help="Of the bootstrap."
)
@click.option(
    "--bad",
    type=click.Choice(["reject", "skip"]),
    default="reject",
    show_default=True,
    help="Malformed rows: refuse the log, or leave out their rounds.",
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
    help="Write LOG instead: so many uniformly random decisions.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON in place of the table.")
def command(
    log: Path,
    matroid: str | None,
    dataset: str | None,
    policies: tuple[str, ...],
    bases: tuple[str, ...],
    names: tuple[str, ...],
    estimators: tuple[str, ...],
    match: str | None,
    clip: float | None,
    assume: str | None,
    frozen: bool,
    resamples: int,
    bad: str,
    warm: Path | None,
    rounds: int | None,
    seed: int,
    as_json: bool,
) -> None:
    """Off-policy evaluation: what policies would have earned, from a log (CSV or Parquet) of another policy.

    A log has a row for each played arm: round, arm, reward, and with which probability the arm (propensity) or the
    whole base (base_propensity) was played; without probabilities its bases must be uniformly random.

    \b
    semibandit replay log.csv --matroid shop.toml
    semibandit replay log.csv --matroid '{ matroid = "uniform", arms = 20, rank = 3 }' --base 3,7,11
    semibandit replay log.csv --matroid shop.toml --column round=page --column arm=item --column propensity=p
    semibandit replay log.parquet --policy trained.semibandit --frozen --estimator dr
    semibandit replay log.csv --matroid shop.toml --warm policy.semibandit
    """
    from semibandit.cli.files import writable
    from semibandit.data.replay import random_log, read_log, replay, warm_start
    from semibandit.data.replay.result import HEADER
    from semibandit.errors import ParameterError
    from semibandit.policies import costs
    from semibandit.policies.catalogue import make_policy
    from semibandit.policies.files import load
    from semibandit.text import table

    if warm is not None:
        writable(warm, "--warm", (_SAVED,))
    if not policies and not bases:
        policies = ("cucb",)
    policies = tuple(dict.fromkeys(policies))
    world, means = _world(matroid, dataset)
    saved = {spec: load(spec) for spec in policies if spec.endswith(_SAVED)}
    if rounds is not None:
        if world is None:
            raise ParameterError("--random draws decisions for a matroid: give --matroid or --dataset")
        writable(log, "LOG", (".parquet", ".csv"))
        frame = random_log(world, rounds, seed)
        (frame.write_csv if log.suffix.lower() == ".csv" else frame.write_parquet)(log)
        click.echo(f"written: {log} ({rounds:,} random decisions, {world.matroid!r})")
        return
    if world is not None:
        played, reward_range = world.matroid, world.reward_range
    elif saved:
        one = next(iter(saved.values()))
        played, reward_range = one.matroid, one.reward_range
    else:
        raise ParameterError(
            "what could be played? Give --matroid FILE, --dataset NAME or a saved policy: nothing is made up"
        )
    found = read_log(log, played, reward_range, columns=_columns(names), bad=bad)
    context = {"horizon": max(3, len(found)), **means}

    def start(spec: str) -> Any:
        if spec in saved:
            return saved[spec].clone()
        policy = make_policy(spec, played, reward_range, seed, context)
        return costs.minimize(policy) if world is not None and world.objective == "min" else policy

    targets: dict[str, Any] = {spec: start(spec) for spec in policies}
    targets |= {f"arms {text}": _arms(text) for text in bases}
    started = start(policies[0]) if warm is not None and policies else None
    options: dict[str, Any] = {"estimators": estimators} if estimators else {}
    results = {
        label: replay(
            target,
            found,
            match,
            clip=clip,
            assume=assume,
            learn=not frozen,
            resamples=resamples,
            seed=seed,
            **options,
        )
        for label, target in targets.items()
    }
    count = 0
    if warm is not None:
        if started is None:
            raise ParameterError("--warm starts a policy: give --policy")
        count = warm_start(started, found)
        started.save(warm)
    if as_json:
        told = {label: one.to_dict() for label, one in results.items()}
        click.echo(json.dumps({"log": str(log), "skipped": found.skipped, "policies": told}, indent=1))
        return
    for row, why in found.skipped[:5]:
        click.echo(f"skipped row {row}: {why}", err=True)
    if len(found.skipped) > 5:
        click.echo(f"skipped {len(found.skipped) - 5:,} more rows", err=True)
    first = next(iter(results.values()))
    click.echo(f"{log}: {len(found):,} rounds, {len(found.arms):,} rewards, {played!r}")
    click.echo(f"matched by {first.match}, propensities: {first.propensities}\n")
    lines = [
        (label, *line, f"{one.matched_arms:,}", f"{one.matched_rounds:,}")
        for label, one in results.items()
        for line in one.lines()
    ]
    click.echo(table(("policy", *HEADER, "shared arms", "same base"), lines, left=2))
    for label, result in results.items():
        for note in result.notes()[1:]:
            click.echo(f"\n{label}: {note}")
    if warm is not None:
        click.echo(f"\nwritten: {warm} ({policies[0]}, told {count:,} rewards); go on with semibandit.load")


def _world(matroid: str | None, dataset: str | None) -> tuple[Environment | None, dict[str, Any]]:
    """The environment that says what could be played, and its means if they are given and not made up."""
    from semibandit.errors import ParameterError

    if matroid is not None and dataset is not None:
        raise ParameterError("--matroid and --dataset say the same thing: give one of them")
    if dataset is not None:
        from semibandit.data import load

        env = load(dataset)
        return env, {"means": env.means}
    if matroid is None:
        return None, {}
    from semibandit.experiments.instance_table import build_located
    from semibandit.experiments.one_instance import load_instance

    spec = load_instance(matroid)
    env = build_located(spec)
    return env, {} if isinstance(spec.content.get("means"), str) else {"means": env.means}


def _columns(names: tuple[str, ...]) -> dict[str, str]:
    from semibandit.errors import ParameterError

    columns: dict[str, str] = {}
    for text in names:
        role, equals, name = text.partition("=")
        if not equals or not name or role in columns:
            raise ParameterError(f"--column {text}: write ROLE=NAME, each role once, such as arm=item")
        columns[role] = name
    return columns


def _arms(text: str) -> list[int]:
    from semibandit.errors import ParameterError

    try:
        return [int(arm) for arm in text.split(",")]
    except ValueError:
        raise ParameterError(
            f"--base {text}: write arm ids with commas between them, such as 3,7,11"
        ) from None
