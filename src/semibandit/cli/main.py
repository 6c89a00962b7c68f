"""`semibandit`: the commands."""

from __future__ import annotations

from importlib import import_module

import click

from semibandit import __version__
from semibandit.cli.group import Commands

# command -> module of this package that holds it as `command`; loaded on first use
_COMMANDS = {
    "demo": "demo",
    "run": "run",
    "report": "report",
    "plot": "plot",
    "watch": "watch",
    "bench": "bench_command",
    "policies": "policies",
    "datasets": "datasets",
    "replay": "replay",
    "serve": "serve",
    "log": "log",
    "info": "info",
    "warmup": "warmup",
}


class _Lazy(Commands):
    """Loads a command's module when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"semibandit.cli.{_COMMANDS[cmd_name]}")
        command: click.Command = module.command
        return command


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="semibandit")
def main() -> None:
    """Matroid semi-bandits: choose D of K arms under constraints, in microseconds, for K in the millions."""


if __name__ == "__main__":
    main()
