"""Real data, as its user plays it: networks and films from `semibandit.data`, costs through `minimize`.

Each policy stands beside what one writes without this library: the same index by numpy for all arms, and the best base
by argsort and the class's own greedy, which is compiled. Two states: *explore*, every arm seen once, and *middle*,
after so many rounds that every arm could have been played a thousand times.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.policies import time_ways
from benchmarks.textbook import seen_once
from benchmarks.textbook.indices import EXPLORATION
from semibandit import data, minimize, simulate
from semibandit.arms import FloatArray, IntArray
from semibandit.bench.contenders import Contender
from semibandit.bench.measure import Say, silent
from semibandit.policies import CUCB
from semibandit.policies.base import Policy
from semibandit.policies.costs import CostEnvironment
from semibandit.text import number, times

_ROUNDS_PER_ARM = 1_000
_MOST_ROUNDS = 100_000


class SortedIndex:
    """CUCB over all arms by numpy, the base by argsort and greedy. Costs are mirrored. O(K log K) a round."""

    name = "numpy index, argsort + greedy"

    def __init__(self, policy: Policy, costs: bool) -> None:
        low, high = policy.reward_range
        self.matroid, self.t, self.scale = policy.matroid, policy.t, high - low
        self.sign = -1.0 if costs else 1.0
        self.counts = policy.counts.astype(np.float64)
        self.totals = self.counts * np.nan_to_num(policy.means)
        self.widths = self.scale / np.sqrt(self.counts)
        self.means = self.sign * self.totals / self.counts

    def select(self) -> IntArray:
        """The arms of the next round."""
        self.t += 1
        return self.matroid.max_weight_base(
            self.means + math.sqrt(EXPLORATION * math.log(self.t)) * self.widths
        )

    def update(self, arms: IntArray, rewards: FloatArray) -> None:
        """Count one reward (or cost) of each arm."""
        self.counts[arms] += 1.0
        self.totals[arms] += rewards
        self.means[arms] = self.sign * self.totals[arms] / self.counts[arms]
        self.widths[arms] = self.scale / np.sqrt(self.counts[arms])


@dataclass(frozen=True)
class Real:
    """A data set of the catalogue with its options."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The data set in a few words."""
        return " ".join([self.name, *(str(value) for value in self.options.values())])


REAL: tuple[Real, ...] = (
    Real("isp"),
    Real("flights", {"kind": "graphic"}),
    Real("flights", {"kind": "partition"}),
    Real("movies", {"kind": "partition"}),
    Real("movies", {"kind": "laminar"}),
    Real("movies", {"kind": "transversal"}),
)


def start(entry: Real, phase: str, most_rounds: int = _MOST_ROUNDS) -> tuple[Contender, Contender]:
    """Our policy and the rival in the state of `phase`, each in a world of its own."""
    env: Any = data.load(entry.name, **entry.options)
    inner = CUCB(env.matroid, reward_range=env.reward_range, clock="auto")
    costs = isinstance(env, CostEnvironment)
    policy: Any = minimize(inner) if costs else inner
    seen_once(policy, env)
    if phase == "middle":
        rounds = min(most_rounds, _ROUNDS_PER_ARM * env.n_arms // env.matroid.rank)
        simulate(policy, env, rounds, progress=False)
    ours = Contender("ours", "policy", policy, env.clone(), ours=True)
    return ours, Contender(SortedIndex.name, "rival", SortedIndex(policy, costs), env.clone())


def measure_real(
    say: Say = silent,
    seconds: float = 0.2,
    repeats: int = 5,
    entries: Sequence[Real] = REAL,
    most_rounds: int = _MOST_ROUNDS,
) -> list[dict[str, Any]]:
    """Every data set in both phases; those whose package is missing are left out."""
    found = []
    for entry in entries:
        if data.DATASETS[entry.name].missing:
            continue
        for phase in ("explore", "middle"):
            say(f"real data: {entry.title}, {phase}")
            gc.collect()
            ours, theirs = start(entry, phase, most_rounds)
            ways = time_ways({"ours": ours, "rival": theirs}, seconds, repeats)
            took, _ = ours.play(ways["ours"].rounds)
            found.append(
                {
                    "data": entry.title,
                    "matroid": ours.env.matroid.name,
                    "arms": ours.env.n_arms,
                    "rank": ours.env.matroid.rank,
                    "costs": isinstance(ours.env, CostEnvironment),
                    "phase": phase,
                    "engine": ours.player.engine,
                    "ours_us": ways["ours"].median,
                    "single_us": float(np.median(took)) * 1e-3,
                    "rival_us": ways["rival"].median,
                    "repeats_us": {name: way.policy_us for name, way in ways.items()},
                }
            )
    return found


def real_cells(found: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Header and rows for a table."""
    header = ["data", "matroid", "K", "D", "phase", "engine", "ours, us", "numpy + greedy, us", "ratio"]
    rows = [
        [
            row["data"] + (" (costs)" if row["costs"] else ""),
            row["matroid"],
            f"{row['arms']:,}",
            f"{row['rank']:,}",
            row["phase"],
            row["engine"],
            number(row["ours_us"]),
            number(row["rival_us"]),
            times(row["rival_us"] / row["ours_us"]),
        ]
        for row in found
    ]
    return header, rows
