"""A group of commands whose mistakes are one clear line: what every command line of this project is made of."""

from __future__ import annotations

import errno
from typing import Any

import click

from semibandit.errors import SemibanditError
from semibandit.text import unknown

#: What a shell expects of a program that Ctrl-C stopped.
STOPPED = 130


class Mistake(click.ClickException):
    """A mistake of the caller: one line, exit code 2."""

    exit_code = 2


class Commands(click.Group):
    """Turns the package's errors into one line with exit code 2, and Ctrl-C into exit code 130."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name and not name.startswith("-") and self.get_command(ctx, name) is None:
            known = self.list_commands(ctx)
            raise click.UsageError(unknown(f"no command {name!r}", name, known), ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SemibanditError as error:
            raise Mistake(str(error)) from None
        except KeyboardInterrupt:
            click.echo("\nstopped", err=True)
            raise click.exceptions.Exit(STOPPED) from None
        except OSError as error:
            if error.errno == errno.EPIPE or error.filename is None:
                raise
            raise Mistake(f"{error.filename}: {error.strerror}") from None
