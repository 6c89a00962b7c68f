"""`semibandit policies`: all policies with when to take them, what they cost, promise and come from."""

from __future__ import annotations

import json
import textwrap

import click


@click.command("policies")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON in place of the list.")
def command(name: str | None, as_json: bool) -> None:
    """List the policies, or show one: when to take it, cost of a round, guarantee, reference and options.

    \b
    semibandit policies
    semibandit policies cucb
    """
    from semibandit.errors import ParameterError
    from semibandit.policies.catalogue import POLICIES
    from semibandit.text import unknown

    if name is not None and name not in POLICIES:
        raise ParameterError(unknown(f"policy = {name!r} is not known", name, POLICIES))
    entries = list(POLICIES.values()) if name is None else [POLICIES[name]]
    if as_json:
        rows = [
            {
                "name": entry.name,
                "take": entry.take,
                "cost": entry.cost,
                "guarantee": entry.guarantee,
                "reference": entry.reference,
                "options": list(entry.options),
            }
            for entry in entries
        ]
        click.echo(json.dumps(rows, indent=1))
        return
    for i, entry in enumerate(entries):
        if i:
            click.echo()
        click.secho(entry.name, bold=True)
        for label, text in (
            ("take", entry.take),
            ("cost", entry.cost),
            ("promise", entry.guarantee),
            ("from", entry.reference),
            ("options", ", ".join(entry.options) or "none"),
        ):
            lines = textwrap.wrap(text, 88)
            if not lines:
                continue
            click.echo(f"  {label:<9}{lines[0]}")
            for line in lines[1:]:
                click.echo(f"  {'':<9}{line}")
    if name is None:
        click.echo("\nPlay them: semibandit run --policy NAME:OPTION=VALUE,... --policy ...")
