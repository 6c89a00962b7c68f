"""The results of an experiment, read back from its folder."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.errors import ExperimentError
from semibandit.experiments.store import Store
from semibandit.report.stats import half_width

_WINDOWS_PER_DECADE = 4


@dataclass(frozen=True)
class Entry:
    """A policy on an instance. The arrays are cumulative, repeats x checkpoints."""

    label: str
    rounds: IntArray
    regret: FloatArray
    reward: FloatArray
    select_seconds: FloatArray
    update_seconds: FloatArray
    engine: str
    clock: str
    path: str

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
    def select_us(self) -> float:
        """Microseconds a round in `select`: the median of the repeats."""
        return float(np.median(self.select_seconds[:, -1]) * 1e6 / self.rounds[-1])

    @property
    def update_us(self) -> float:
        """Microseconds a round in `update`: the median of the repeats."""
        return float(np.median(self.update_seconds[:, -1]) * 1e6 / self.rounds[-1])

    @property
    def microseconds(self) -> float:
        """The policy's microseconds a round."""
        return self.select_us + self.update_us

    def time_curve(self) -> tuple[FloatArray, FloatArray]:
        """Microseconds a round over the rounds, in a few windows a decade: (middle of a window, median)."""
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
    """An instance with all policies that played on it."""

    label: str
    facts: dict[str, Any]
    entries: list[Entry]


@dataclass(frozen=True)
class Sweep:
    """A whole experiment."""

    name: str
    definition: dict[str, Any]
    versions: dict[str, Any]
    source: str
    worlds: list[World]

    def world(self, label: str) -> World:
        """The instance with this label."""
        for one in self.worlds:
            if one.label == label:
                return one
        known = ", ".join(repr(one.label) for one in self.worlds)
        raise ExperimentError(f"instance = {label!r} is not in these results: one of {known}")


def load_sweep(folder: str | Path) -> Sweep:
    """The finished experiment in `folder`. O(rows)."""
    store = Store(folder)
    definition = store.definition()
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
            )
            entries.append(entry)
        worlds.append(World(instance, facts[i], entries))
    return Sweep(str(definition["name"]), definition, store.versions(), store.source(), worlds)


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
