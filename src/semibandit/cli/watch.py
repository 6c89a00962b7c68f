"""`semibandit watch`: a policy learning on a small instance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


@click.command("watch")
@click.option("--kind", type=click.Choice(["network", "list"]), default="network", show_default=True)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("watch.html"),
    show_default=True,
    help="A page with a slider (.html), an animation (.gif), or three of its rounds (.png, .svg, .pdf).",
)
@click.option(
    "--policy",
    metavar="NAME[:OPTION=VALUE,...]",
    help="Who learns.  [default: cucb, its width set to the noise]",
)
@click.option("--rounds", type=click.IntRange(1), default=20_000, show_default=True)
@click.option("--frames", type=click.IntRange(2, 500), default=60, show_default=True)
@click.option(
    "--nodes", type=click.IntRange(3, 500), default=30, show_default=True, help="Nodes of the network."
)
@click.option("--arms", type=click.IntRange(2, 100), default=20, show_default=True, help="Arms of the list.")
@click.option("--rank", type=click.IntRange(1), default=5, show_default=True, help="Length of the list.")
@click.option(
    "--dataset",
    metavar="NAME[:OPTION=VALUE,...]",
    help="A data set in place of a random instance (see `datasets`).",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
def command(
    kind: str,
    out: Path,
    policy: str | None,
    rounds: int,
    frames: int,
    nodes: int,
    arms: int,
    rank: int,
    dataset: str | None,
    seed: int,
) -> None:
    """Show a policy learn: a spanning tree on a map settles, or a list of items with confidence bars.

    \b
    semibandit watch --kind network --out watch.html
    semibandit watch --kind list --out watch.gif
    semibandit watch --dataset isp:network=sndlib/germany50
    """
    from semibandit.cli.files import need, writable

    writable(out, "--out", (".html", ".gif", ".png", ".svg", ".pdf"))
    page = out.suffix.lower() == ".html"
    if not page:
        need("matplotlib", "--out")

    from semibandit.experiments.cells import player
    from semibandit.policies.catalogue import parse_policy
    from semibandit.report.watch import list_page, network_page, random_list, random_network, record
    from semibandit.report.watch.worlds import EXPLORATION

    positions: Any = None
    labels: list[str] | None = None
    spec = policy or "cucb"
    if dataset is not None:
        found = _load(dataset)
        env, labels = found.env, found.labels
        positions = _places(found, dataset, seed) if kind == "network" else None
    elif kind == "network":
        env, positions = random_network(nodes, seed)
        spec = policy or f"cucb:exploration={EXPLORATION:g}"
    else:
        env = random_list(arms, rank, seed)
        spec = policy or "cucb:exploration=0.5"
    entry, options = parse_policy(spec)
    learner = player(env, {"name": entry.name, "options": options}, rounds, seed)
    recording = record(learner, env, rounds, frames, spec, labels)
    title = {} if dataset is None else {"title": f"Learning: {found.about}"}
    if page and kind == "network":
        out.write_text(network_page(recording, positions, **title), encoding="utf-8")
    elif page:
        out.write_text(list_page(recording, **title), encoding="utf-8")
    else:
        from semibandit.report.watch.pictures import save_animation, save_picture

        (save_animation if out.suffix.lower() == ".gif" else save_picture)(recording, out, positions)
    click.echo(recording.caption(recording.last))
    click.echo(f"written: {out}")


def _places(found: Any, dataset: str, seed: int) -> Any:
    """Where the vertices of a data set are, on a map that keeps distances about right."""
    import numpy as np

    from semibandit.errors import ParameterError
    from semibandit.matroids import Graphic
    from semibandit.report.watch import layout

    if not isinstance(found.env.matroid, Graphic):
        raise ParameterError(
            f"--dataset {dataset}: not a network but {found.env.matroid!r}; take --kind list"
        )
    if found.positions is None:
        return layout(found.env.matroid, seed)
    places = np.array(found.positions, dtype=float)
    places[:, 0] *= np.cos(np.radians(places[:, 1].mean()))
    return places


def _load(dataset: str) -> Any:
    """The data set ``NAME`` or ``NAME:OPTION=VALUE,...``."""
    from semibandit.data import load_dataset
    from semibandit.errors import ParameterError
    from semibandit.policies.catalogue import _value

    name, _, rest = dataset.partition(":")
    options = {}
    for part in filter(None, rest.split(",")):
        key, equals, text = part.partition("=")
        if not equals:
            raise ParameterError(f"--dataset {dataset}: {part!r} should be OPTION=VALUE")
        options[key.strip()] = _value(text.strip())
    return load_dataset(name.strip(), **options)
