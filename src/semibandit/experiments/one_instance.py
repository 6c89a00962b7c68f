"""One instance described in full, from a file of its own or as a line of text: for commands that need its matroid."""

from __future__ import annotations

from pathlib import Path

from semibandit.errors import ExperimentError
from semibandit.experiments.instance_table import InstanceSpec, read_instance
from semibandit.experiments.tables import Source, Table
from semibandit.matroids import codec


def load_instance(given: str) -> InstanceSpec:
    """The instance in the TOML file `given`, or in `given` itself when that is an inline table. Nothing is built yet.

    A file has one table ``[instance]`` (or ``[[instance]]``) with the keys of experiment files; other tables are left
    alone. Its matroid must be described in full: a random one is refused.

    >>> load_instance('{ matroid = "uniform", arms = 20, rank = 3 }').content["rank"]
    3

    Raises
    ------
    ExperimentError
        When the text is malformed, or describes no instance, several, or a random matroid.
    """
    if given.lstrip().startswith("{"):
        source = Source.parse(f"instance = {given.strip()}", "matroid")
    else:
        source = Source.read(Path(given))
    tables = source.values.get("instance")
    many = isinstance(tables, list)
    if isinstance(tables, list) and len(tables) == 1:
        tables = tables[0]
    if not isinstance(tables, dict):
        found = f"has {len(tables)}" if isinstance(tables, list) else "has none"
        raise ExperimentError(f"{source.name}: one table [instance] is wanted, the file {found}")
    table = Table(source, ("instance", 0) if many else ("instance",), tables)
    spec = read_instance(table, seed=0)
    kind = spec.content.get("matroid")
    if kind is not None and kind != "uniform":
        first = next(iter(codec.row(kind).keys), None)
        if first is None:
            raise table.error("matroid", f"{kind} cannot be described in full in a file; use it from Python")
        if first not in spec.content:
            raise table.error(None, f"arms and rank make a random {kind} matroid; describe yours by {first}")
    return spec
