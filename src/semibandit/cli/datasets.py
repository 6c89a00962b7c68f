"""`semibandit datasets`: instances from real data."""

from __future__ import annotations

import json
import textwrap
from typing import Any

import click


@click.command("datasets")
@click.option("--json", "as_json", is_flag=True, help="Print JSON in place of the list.")
def command(as_json: bool) -> None:
    """List the data sets with K, D, source and licence.

    They are read from packages that ship them: pip install 'semibandit[data]'.
    """
    from semibandit.data import DATASETS, load_dataset

    rows: list[dict[str, Any]] = []
    for entry in DATASETS.values():
        sizes = []
        if not entry.missing:
            for kind in entry.kinds or (None,):
                found = load_dataset(entry.name, **({} if kind is None else {"kind": kind}))
                matroid = found.env.matroid
                sizes.append({"matroid": matroid.name, "K": matroid.n_arms, "D": matroid.rank})
        rows.append(
            {
                "name": entry.name,
                "what": entry.what,
                "sizes": sizes,
                "source": entry.source,
                "licence": entry.licence,
                "missing": entry.missing,
            }
        )
    if as_json:
        click.echo(json.dumps(rows, indent=1))
        return
    for i, row in enumerate(rows):
        if i:
            click.echo()
        click.secho(str(row["name"]), bold=True)
        told = [f"{s['matroid']}: K = {s['K']:,}, D = {s['D']:,}" for s in row["sizes"]]
        missing = ", ".join(row["missing"])
        for label, text in (
            ("what", row["what"]),
            ("size", "; ".join(told) or f"not installed: {missing}; pip install 'semibandit[data]'"),
            ("source", row["source"]),
            ("licence", row["licence"]),
        ):
            lines = textwrap.wrap(str(text), 88)
            click.echo(f"  {label:<9}{lines[0]}")
            for line in lines[1:]:
                click.echo(f"  {'':<9}{line}")
