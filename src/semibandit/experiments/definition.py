"""What an experiment file says: instances, policies, rounds, repeats and the seed, checked and with all defaults."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from semibandit.experiments.instance_table import InstanceSpec, plain, read_instance
from semibandit.experiments.tables import Source, Table
from semibandit.simulation.result import checkpoints
from semibandit.text import unknown

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_CHECKPOINTS = 100
_LONGEST_LABEL = 80


@dataclass(frozen=True)
class PolicySpec:
    """One policy: its name in the catalogue and its options. `table` is its place in the file."""

    label: str
    name: str
    options: dict[str, Any]
    table: Table

    @property
    def content(self) -> dict[str, Any]:
        """What determines the policy; the label does not."""
        return {"name": self.name, "options": self.options}


@dataclass(frozen=True)
class Experiment:
    """A checked experiment. `checkpoints` are the rounds at which every run is recorded."""

    name: str
    rounds: int
    repeats: int
    seed: int
    checkpoints: tuple[int, ...]
    instances: tuple[InstanceSpec, ...]
    policies: tuple[PolicySpec, ...]
    source: Source

    @property
    def n_cells(self) -> int:
        """Number of runs: instances x policies x repeats."""
        return len(self.instances) * len(self.policies) * self.repeats

    def resolved(self) -> dict[str, Any]:
        """Everything with its defaults filled in, as JSON can hold it."""
        return {
            "name": self.name,
            "rounds": self.rounds,
            "repeats": self.repeats,
            "seed": self.seed,
            "checkpoints": list(self.checkpoints),
            "instances": [{"label": one.label, **one.content} for one in self.instances],
            "policies": [{"label": one.label, **one.content} for one in self.policies],
        }


def load_experiment(path: str | Path) -> Experiment:
    """The experiment in the TOML file at `path`; an `ExperimentError` names the line and key of a mistake."""
    return _experiment(Source.read(Path(path)), Path(path).stem)


def parse_experiment(text: str, name: str = "experiment.toml") -> Experiment:
    """The experiment in a TOML `text`; `name` stands in error messages.

    >>> found = parse_experiment('''
    ... [experiment]
    ... rounds = 100
    ... [[instance]]
    ... matroid = "uniform"
    ... arms = 20
    ... rank = 3
    ... [[policy]]
    ... name = "cucb"
    ... ''')
    >>> found.name, found.n_cells, found.policies[0].label
    ('experiment', 10, 'cucb')
    """
    return _experiment(Source.parse(text, name), Path(name).stem)


def _experiment(source: Source, stem: str) -> Experiment:
    root = Table(source, (), source.values)
    for key in ("experiment", "instance", "policy"):
        root.has(key)
    root.done()
    main = Table(source, ("experiment",), root.get("experiment", {}))
    name = main.text("name", stem if _NAME.fullmatch(stem) else "experiment")
    if not _NAME.fullmatch(name):
        raise main.error(
            "name", f"must be letters, digits, '.', '_' and '-' (it names a folder), got {name!r}"
        )
    rounds = main.integer("rounds", least=1)
    repeats = main.integer("repeats", 10, least=1)
    seed = main.integer("seed", 0)
    marks = _checkpoints(main, rounds)
    main.done()
    instances = [read_instance(table, seed) for table in _tables(root, "instance")]
    policies = [_policy(table) for table in _tables(root, "policy")]
    _distinct([(one.label, one.table) for one in instances])
    _distinct([(one.label, one.table) for one in policies])
    return Experiment(name, rounds, repeats, seed, marks, tuple(instances), tuple(policies), source)


def _tables(root: Table, key: str) -> list[Table]:
    """The tables ``[[key]]``; a single ``[key]`` counts as a list of one."""
    if not root.has(key):
        raise root.source.error((key,), f"there is no [[{key}]]: give at least one")
    values = root.values[key]
    if isinstance(values, dict):
        return [Table(root.source, (key,), values)]
    if not isinstance(values, list) or not values:
        raise root.error(key, f"must be written as [[{key}]] tables")
    return [Table(root.source, (key, i), one) for i, one in enumerate(values)]


def _checkpoints(table: Table, rounds: int) -> tuple[int, ...]:
    given = table.get("checkpoints", _CHECKPOINTS)
    if isinstance(given, list):
        for one in given:
            if not isinstance(one, int) or isinstance(one, bool) or not 1 <= one <= rounds:
                raise table.error("checkpoints", f"must be rounds in 1 .. {rounds}, got {one!r}")
        marks = checkpoints(rounds, given or [rounds])
    else:
        n = table.integer("checkpoints", _CHECKPOINTS, least=1)
        marks = checkpoints(rounds, np.unique(np.round(np.geomspace(1, rounds, n))).astype(int).tolist())
    return tuple(marks.tolist())


def _policy(table: Table) -> PolicySpec:
    from semibandit.policies.catalogue import POLICIES

    name = table.text("name")
    if name not in POLICIES:
        raise table.error("name", unknown(f"{name!r} is not a policy", name, POLICIES))
    known = POLICIES[name].options
    table.has("label")
    options = {key: plain(table, key) for key in known if table.has(key)}
    table.done()
    words = [f"{key}={_word(value)}" for key, value in options.items()]
    label = table.text("label", " ".join([name, *words])[:_LONGEST_LABEL])
    return PolicySpec(_short(label, table), name, options, table)


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _short(label: str, table: Table) -> str:
    if len(label) > _LONGEST_LABEL:
        raise table.error("label", f"must be at most {_LONGEST_LABEL} characters, got {len(label)}")
    return label


def _distinct(labels: Sequence[tuple[str, Table]]) -> None:
    """Results are told apart by label, so two may not share one."""
    seen: dict[str, Table] = {}
    for label, table in labels:
        if label in seen:
            line = table.source.line(seen[label].path)
            raise table.error(
                "label" if "label" in table.values else None,
                f"{label!r} is also the label of the one on line {line}; give each a label of its own",
            )
        seen[label] = table
