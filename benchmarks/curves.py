"""``python -m benchmarks curves``: figures of the literature, played again."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command("curves")
@click.argument(
    "figure",
    type=click.Choice(
        [
            "wang-chen",
            "zimmert",
            "zimmert-adversary",
            "tsuchiya-wide",
            "tsuchiya-narrow",
            "jin",
            "tails",
            "classes",
        ]
    ),
)
@click.option(
    "--repeats",
    type=click.IntRange(2),
    help="Instances or repeats.  [default: wang-chen 10, jin 20, tails 400, others 50]",
)
@click.option("--rounds", type=click.IntRange(10), help="[default: 10000; jin: 7500]")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write every final regret here.")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("."), help="classes: folder for the pictures."
)
@click.option("--matroid", "names", multiple=True, help="classes: only these classes.")
@click.option(
    "--policy", "policies", multiple=True, help="classes: only these policies.  [default: see the docs]"
)
def command(
    figure: str,
    repeats: int | None,
    rounds: int | None,
    seed: int,
    json_file: Path | None,
    out: Path,
    names: tuple[str, ...],
    policies: tuple[str, ...],
) -> None:
    """Play published experiments again, or all policies on one instance of each matroid class.

    \b
    python -m benchmarks curves wang-chen        Wang and Chen 2018, Figure 1(a)
    python -m benchmarks curves zimmert          Zimmert et al. 2019, Figure 1a
    python -m benchmarks curves zimmert-adversary        the same, Figure 1b
    python -m benchmarks curves tsuchiya-wide    Tsuchiya et al. 2023, Figure 1a; tsuchiya-narrow: 1b
    python -m benchmarks curves jin              Jin et al. 2026: spanning trees, 20, 30 and 50 vertices
    python -m benchmarks curves tails            quantiles of the regret of Thompson sampling
    python -m benchmarks curves classes --out docs
    """
    from benchmarks.both_worlds import FIGURES as BOTH_WORLDS
    from benchmarks.jin import ROUNDS
    from benchmarks.published import CLASSES, FIGURES, HORIZON, POLICIES, class_curves
    from semibandit.checks import one_of
    from semibandit.cli.files import need, output_folder, writable
    from semibandit.text import number, table

    if json_file is not None:
        writable(json_file, "--json", (".json",))
    rounds = rounds or (ROUNDS if figure == "jin" else HORIZON)
    kept: dict[str, dict[str, list[float]]] = {}
    if figure in ("jin", "tails"):
        kept = _quantiles(figure, repeats, rounds, seed)
    elif figure == "classes":
        need("matplotlib", "curves classes")
        for name in names:
            one_of(name, "--matroid", tuple(CLASSES))
        output_folder(out, "--out")
        from benchmarks.plots import plot_class

        for name in names or CLASSES:
            specs = policies or POLICIES[name]
            found = class_curves(name, specs, repeats or 50, rounds, seed, _say)
            plot_class(found, out / f"regret-{name}.png")
            runs = found.comparison
            kept[name] = {spec: runs.regret(spec)[:, -1].tolist() for spec in specs}
            rows = [
                (spec, number(runs.mean_regret(spec)[-1]), number(1.96 * runs.standard_error(spec)[-1]))
                for spec in sorted(specs, key=lambda s: float(runs.mean_regret(s)[-1]))
            ]
            rows += [
                ("lower bound", number(found.lower[-1]), "-"),
                ("bound of the theorem", number(found.bound[-1]), "-"),
            ]
            click.echo(f"\n{found.matroid!r}")
            click.echo(table(("policy", f"regret at {rounds:,}", "+- 95 %"), rows, left=1))
            _say(f"written: {out / f'regret-{name}.png'}")
    else:
        curves, play = {**FIGURES, **BOTH_WORLDS}[figure]
        results = play(repeats or (10 if figure == "wang-chen" else 50), rounds, seed, _say)
        kept[figure] = {label: values.tolist() for label, values in results.items()}
        comparable = rounds == HORIZON
        header = ["curve", "policy", f"regret at {rounds:,}", "+-"]
        if comparable:
            header += ["published", "reference run"]
        lines = []
        for curve in curves:
            found_regret = results[curve.label]
            line = [
                curve.label,
                curve.spec,
                number(float(found_regret.mean())),
                number(float(found_regret.std(ddof=1) / len(found_regret) ** 0.5)),
            ]
            if comparable:
                line += [
                    number(curve.published),
                    "-" if curve.reference is None else number(curve.reference),
                ]
            lines.append(line)
        click.echo(table(header, lines, left=2))
        if not comparable:
            click.echo(
                f"\nThe published figures are for {HORIZON:,} rounds: --rounds {HORIZON} compares with them."
            )
    if json_file is not None:
        about = {"figure": figure, "rounds": rounds, "seed": seed, "final_regret": kept}
        json_file.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
        _say(f"written: {json_file}")


def _quantiles(figure: str, repeats: int | None, rounds: int, seed: int) -> dict[str, dict[str, list[float]]]:
    """Means and quantiles of the regrets of `benchmarks.jin`; all of them for the file."""
    import numpy as np

    from benchmarks.jin import PUBLISHED, QUANTILES, ROUNDS, TAILS, jin, tails
    from semibandit.text import number, table

    kept: dict[str, dict[str, list[float]]] = {}
    header = ["curve", "regret", "+-", *(f"{100 * level:g} %" for level in QUANTILES), "worst", "published"]
    for case in PUBLISHED if figure == "jin" else TAILS:
        if isinstance(case, int):
            name, told = f"{case} vertices", PUBLISHED[case] if rounds == ROUNDS else {}
            found = jin(case, repeats or 20, rounds, seed, _say)
        else:
            name, told = case, {}
            found = tails(case, repeats or 400, rounds, seed, _say)
        kept[name] = {label: values.tolist() for label, values in found.items()}
        lines = [
            [
                label,
                number(float(values.mean())),
                number(float(values.std(ddof=1) / len(values) ** 0.5)),
                *(number(float(value)) for value in np.quantile(values, QUANTILES)),
                number(float(values.max())),
                number(told.get(label)),
            ]
            for label, values in found.items()
        ]
        click.echo(f"\n{name}, {rounds:,} rounds\n{table(header, lines)}")
    return kept


def _say(message: str) -> None:
    click.echo(message, err=True)
