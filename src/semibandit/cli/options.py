"""Options that several commands share. Nothing heavy is imported for them, so that ``--help`` stays fast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from semibandit.environments.codec import DRAWN
from semibandit.matroids import codec
from semibandit.text import unknown


class KnownName(click.Choice):  # type: ignore[type-arg,unused-ignore]
    """One of a few names; another one is refused with the nearest of them."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(unknown(f"{value!r} is not known", value, map(str, self.choices)), param, ctx)


class MatroidName(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A name in the table of matroid classes, those that installed packages add among them."""

    name = "matroid"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"[{'|'.join(codec.names(everywhere=False))}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in codec.names(everywhere=False) and value not in codec.names():
            self.fail(unknown(f"{value!r} is not known", value, codec.names()), param, ctx)
        return str(value)


def instance_options(arms: int, rank: int, env: str) -> Callable[[Any], Any]:
    """`--matroid`, `--arms`, `--rank`, `--seed` and `--env`, with these defaults."""

    def decorate(command: Any) -> Any:
        options = [
            click.option("--matroid", type=MatroidName(), default="uniform", show_default=True),
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
                type=KnownName(DRAWN),
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
