"""Options that several commands share. Names are spelled out here because the lists they come from are heavy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

MATROIDS = ("uniform", "partition", "laminar", "graphic", "transversal", "linear")
ENVIRONMENTS = ("bernoulli", "beta", "gaussian", "noise", "correlated")


def instance_options(arms: int, rank: int, env: str) -> Callable[[Any], Any]:
    """`--matroid`, `--arms`, `--rank`, `--seed` and `--env`, with these defaults."""

    def decorate(command: Any) -> Any:
        options = [
            click.option("--matroid", type=click.Choice(MATROIDS), default="uniform", show_default=True),
            click.option(
                "--arms", type=click.IntRange(1), default=arms, show_default=True, help="Number of arms K."
            ),
            click.option(
                "--rank",
                type=click.IntRange(1),
                default=rank,
                show_default=True,
                help="Size D of a base (graphic: vertices less one).",
            ),
            click.option(
                "--env",
                type=click.Choice(ENVIRONMENTS),
                default=env,
                show_default=True,
                help="How rewards are drawn around the random means.",
            ),
            click.option("--seed", type=click.IntRange(0), default=0, show_default=True),
        ]
        for option in reversed(options):
            command = option(command)
        return command

    return decorate
