"""The results of an experiment, read back from its folder."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.errors import ExperimentError
from semibandit.experiments.cells import cells_of
from semibandit.experiments.definition import parse_experiment
from semibandit.experiments.store import Store
from semibandit.report.stats import half_width, paired
from semibandit.simulation.result import quantiles_of
from semibandit.text import unknown

_WINDOWS_PER_DECADE = 4


@dataclass(frozen=True)
class Entry:
    """A policy on an instance. The arrays are cumulative, repeats x checkpoints; `repeats` are the numbers of those."""

    label: str
    rounds: IntArray
    regret: FloatArray
    reward: FloatArray
    select_seconds: FloatArray
    update_seconds: FloatArray
    engine: str
    clock: str
    path: str
    repeats: tuple[int, ...]

    @cached_property
    def mean_regret(self) -> FloatArray:
        """Mean over repeats at each checkpoint."""
        return np.asarray(self.regret.mean(axis=0))

    @cached_property
    def half_regret(self) -> FloatArray | None:
        """Half of the 95 % interval at each checkpoint; None for a single repeat."""
        return half_width(self.regret)

    @property
    def final(self) -> tuple[float, float | None]:
        """Mean regret at the end and half of its interval."""
        half = self.half_regret
        return float(self.mean_regret[-1]), None if half is None else float(half[-1])

    @property
    def quantiles(self) -> FloatArray:
        """Regret at the end that 10, 50 and 90 % of the repeats stay below."""
        return quantiles_of(self.regret[:, -1])

    @property
    def select_us(self) -> float:
        """Microseconds per round in `select`: the median of the repeats."""
        return float(np.median(self.select_seconds[:, -1]) * 1e6 / self.rounds[-1])

    @property
    def update_us(self) -> float:
        """Microseconds per round in `update`: the median of the repeats."""
        return float(np.median(self.update_seconds[:, -1]) * 1e6 / self.rounds[-1])

    @property
    def microseconds(self) -> float:
        """The policy's microseconds per round."""
        return self.select_us + self.update_us

    def time_curve(self) -> tuple[FloatArray, FloatArray]:
        """Microseconds per round over the rounds, in a few windows a decade: (middle of a window, median)."""
        marks = np.concatenate(([0], self.rounds))
        spent = self.select_seconds + self.update_seconds
        spent = np.concatenate((np.zeros((len(spent), 1)), spent), axis=1)
        grid = np.geomspace(1, marks[-1], 1 + max(1, int(_WINDOWS_PER_DECADE * np.log10(max(marks[-1], 10)))))
        ends = np.unique(np.searchsorted(marks, grid, side="right") - 1)
        ends = np.unique(np.concatenate(([0], ends, [len(marks) - 1])))
        width = np.diff(marks[ends])
        each = np.median(np.diff(spent[:, ends], axis=1), axis=0) * 1e6 / width
        middle = np.sqrt((marks[ends[:-1]] + 1.0) * marks[ends[1:]])
        keep = each > 0
        return middle[keep], each[keep]


@dataclass(frozen=True)
class World:
    """An instance with all policies that played on it, in the order of the experiment."""

    label: str
    facts: dict[str, Any]
    entries: list[Entry]

    def ranking(self) -> list[int]:
        """Places of the entries, least mean regret at the end first."""
        return sorted(range(len(self.entries)), key=lambda i: self.entries[i].final[0])

    @property
    def paths(self) -> list[str]:
        """The paths that times come from: compiled, stepwise, or both."""
        return sorted({entry.path for entry in self.entries})


@dataclass(frozen=True)
class Sweep:
    """An experiment; `missing` tells (instance, policy, number of repeats) of what has not been run yet."""

    name: str
    definition: dict[str, Any]
    versions: dict[str, Any]
    source: str
    worlds: list[World]
    missing: tuple[tuple[str, str, int], ...] = ()

    def told_missing(self) -> list[str]:
        """What has not been run yet, a line per instance and policy."""
        repeats = int(self.definition["repeats"])
        word = "repeat" if repeats == 1 else "repeats"
        return [f"{instance}, {policy}: {n} of {repeats} {word}" for instance, policy, n in self.missing]

    def world(self, label: str) -> World:
        """The instance with this label."""
        for one in self.worlds:
            if one.label == label:
                return one
        known = [one.label for one in self.worlds]
        raise ExperimentError(unknown(f"instance = {label!r} is not in these results", label, known))


def load_sweep(folder: str | Path) -> Sweep:
    """The experiment in `folder`, as far as it was run. O(rows)."""
    store = Store(folder)
    definition = store.definition()
    if not store.finished:
        return _unfinished(store, definition)
    results, timings = store.frames()
    try:
        instances = [one["label"] for one in definition["instances"]]
        policies = [one["label"] for one in definition["policies"]]
        marks = np.asarray(definition["checkpoints"], dtype=np.int64)
        shape = (len(instances), len(policies), definition["repeats"], len(marks))
        for frame in (results, timings):
            _check(frame, instances, policies, marks, shape)
        series = {name: results[name].to_numpy().reshape(shape) for name in ("regret", "reward")}
        series |= {
            name: timings[name].to_numpy().reshape(shape) for name in ("select_seconds", "update_seconds")
        }
        words = {name: timings[name].to_list() for name in ("engine", "clock", "path")}
        facts = [one.get("facts", {}) for one in definition["instances"]]
    except Exception as error:  # whatever a foreign file makes polars or numpy raise
        raise ExperimentError(
            f"{store.path}: the Parquet files and experiment.json do not belong together ({error}); run it again"
        ) from None
    rows = shape[2] * shape[3]
    worlds = []
    for i, instance in enumerate(instances):
        entries = []
        for j, policy in enumerate(policies):
            at = (i * len(policies) + j) * rows
            entry = Entry(
                label=policy,
                rounds=marks,
                regret=series["regret"][i, j],
                reward=series["reward"][i, j],
                select_seconds=series["select_seconds"][i, j],
                update_seconds=series["update_seconds"][i, j],
                engine=str(words["engine"][at]),
                clock=str(words["clock"][at]),
                path=str(words["path"][at]),
                repeats=tuple(range(shape[2])),
            )
            entries.append(entry)
        worlds.append(World(instance, facts[i], entries))
    return Sweep(str(definition["name"]), definition, store.versions(), store.source(), worlds)


def difference(one: Entry, other: Entry) -> tuple[float, float | None] | None:
    """Final regret of `one` less that of `other`: mean over the repeats they share, half of its 95 % interval."""
    shared = sorted(set(one.repeats) & set(other.repeats))
    if not shared:
        return None
    first, second = (
        entry.regret[[entry.repeats.index(number) for number in shared], -1] for entry in (one, other)
    )
    return paired(first, second)


def _unfinished(store: Store, definition: dict[str, Any]) -> Sweep:
    """What the finished cells of a run tell so far."""
    experiment = parse_experiment(store.source(), str(store.path / "experiment.toml"))
    found: dict[tuple[int, int], dict[int, dict[str, Any]]] = {}
    for cell in cells_of(experiment):
        result = store.load_cell(cell)
        if result is not None:
            found.setdefault((cell.instance, cell.policy), {})[cell.repeat] = result
    if not found:
        raise ExperimentError(
            f"{store.path}: the run is not finished, and no cell of it is. Go on with the same `semibandit run`"
        )
    marks = np.asarray(experiment.checkpoints, dtype=np.int64)
    worlds, missing = [], []
    for i, instance in enumerate(experiment.instances):
        entries = []
        for j, policy in enumerate(experiment.policies):
            done = found.get((i, j), {})
            if len(done) < experiment.repeats:
                missing.append((instance.label, policy.label, experiment.repeats - len(done)))
            if not done:
                continue
            entries.append(_entry(policy.label, marks, done))
        if entries:
            facts = definition["instances"][i].get("facts", {})
            worlds.append(World(instance.label, facts, entries))
    name = str(definition["name"])
    return Sweep(name, definition, store.versions(), store.source(), worlds, tuple(missing))


def _entry(label: str, marks: IntArray, done: dict[int, dict[str, Any]]) -> Entry:
    """The entry of a policy from the results of its finished cells, by repeat."""
    first = next(iter(done.values()))

    def series(name: str) -> FloatArray:
        return np.array([result[name] for result in done.values()], dtype=np.float64)

    return Entry(
        label=label,
        rounds=marks,
        regret=series("regret"),
        reward=series("reward"),
        select_seconds=series("select_seconds"),
        update_seconds=series("update_seconds"),
        engine=str(first["engine"]),
        clock=str(first["clock"]),
        path=str(first["path"]),
        repeats=tuple(done),
    )


def _check(frame: Any, instances: list[str], policies: list[str], marks: IntArray, shape: Any) -> None:
    """Raise ValueError unless the rows are those of the definition, in its order."""
    if frame.height != int(np.prod(shape)):
        raise ValueError(f"{frame.height} rows in place of {int(np.prod(shape))}")
    rows = shape[2] * shape[3]
    if frame["instance"].to_list()[:: rows * len(policies)] != instances:
        raise ValueError("other instances")
    if frame["policy"].to_list()[::rows] != policies * len(instances):
        raise ValueError("other policies")
    if not np.array_equal(frame["round"].to_numpy().reshape(shape), np.broadcast_to(marks, shape)):
        raise ValueError("other checkpoints")
