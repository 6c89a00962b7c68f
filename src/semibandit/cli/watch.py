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
@click.option("--dataset", metavar="NAME", help="A data set in place of a random network (see the docs).")
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
    """
    from semibandit.cli.files import need, writable

    writable(out, "--out", (".html", ".gif", ".png", ".svg", ".pdf"))
    page = out.suffix.lower() == ".html"
    if not page:
        need("matplotlib", "--out")

    from semibandit.policies.catalog import make_policy
    from semibandit.watch import list_page, network_page, random_list, record
    from semibandit.watch.worlds import EXPLORATION

    positions: Any = None
    if kind == "network":
        env, positions = _network(dataset, nodes, seed)
        spec = policy or ("cucb" if dataset else f"cucb:exploration={EXPLORATION:g}")
    else:
        env = random_list(arms, rank, seed) if dataset is None else _load(dataset)
        spec = policy or "cucb:exploration=0.5"
    player = make_policy(spec, env.matroid, env.reward_range, seed, {"horizon": rounds, "means": env.means})
    recording = record(player, env, rounds, frames, label=spec)
    if page and kind == "network":
        out.write_text(network_page(recording, positions), encoding="utf-8")
    elif page:
        out.write_text(list_page(recording), encoding="utf-8")
    else:
        from semibandit.watch.pictures import save_animation, save_picture

        (save_animation if out.suffix.lower() == ".gif" else save_picture)(recording, out, positions)
    click.echo(recording.caption(recording.last))
    click.echo(f"written: {out}")


def _network(dataset: str | None, nodes: int, seed: int) -> tuple[Any, Any]:
    from semibandit.errors import ParameterError
    from semibandit.matroids import Graphic
    from semibandit.watch import layout, random_network

    if dataset is None:
        return random_network(nodes, seed)
    env = _load(dataset)
    if not isinstance(env.matroid, Graphic):
        raise ParameterError(f"--dataset {dataset}: not a network but {env.matroid!r}; take --kind list")
    positions = getattr(env, "positions", None)
    return env, layout(env.matroid, seed) if positions is None else positions


def _load(dataset: str) -> Any:
    from semibandit.experiments.instance_table import build_environment

    return build_environment({"dataset": dataset, "options": {}})
