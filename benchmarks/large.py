"""Other policies than CUCB on large instances of every class, each beside the best linear-time version of itself.

Two states: *explore*, every arm seen once, and *middle*, after as many rounds of our policy that every arm could have
been played three times. Both contenders start from the same counts and play on from there; a randomised policy and its
rival draw other numbers from the same law.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks import textbook
from benchmarks.policies import figure_of, time_ways
from benchmarks.rivals.kl_scan import KlScan
from semibandit import simulate
from semibandit.arms import FloatArray, IntArray
from semibandit.bench.contenders import Contender
from semibandit.bench.measure import Say, silent
from semibandit.data.instances import random_environment
from semibandit.matroids import Matroid, Uniform
from semibandit.policies.base import Policy
from semibandit.policies.catalogue import make_policy
from semibandit.text import number, times

PHASES = ("explore", "middle")
_ROUNDS_PER_ARM = 3


class PlainSampler:
    """CTS as one writes it: a draw for every arm by numpy, then the best base. O(K log K), uniform O(K)."""

    name = "plain sampler + greedy"

    def __init__(self, policy: Policy, seed: int = 1) -> None:
        counts, means = policy.counts, policy.means
        totals = np.where(counts > 0, counts * np.nan_to_num(means), 0.0)
        self.matroid, self.t = policy.matroid, policy.t
        self.wins, self.losses = 1.0 + totals, 1.0 + counts - totals
        self.rng = np.random.default_rng(seed)

    def select(self) -> IntArray:
        """The arms of the next round."""
        self.t += 1
        theta = self.rng.beta(self.wins, self.losses)
        if isinstance(self.matroid, Uniform):
            cut = self.matroid.n_arms - self.matroid.rank
            return np.argpartition(theta, cut)[cut:]
        return self.matroid.max_weight_base(theta)

    def update(self, arms: IntArray, rewards: FloatArray) -> None:
        """Count one reward of each arm."""
        self.wins[arms] += rewards
        self.losses[arms] += 1.0 - rewards


def kl_scan(policy: Policy) -> KlScan:
    """One pass over all arms, from what `policy` has seen."""
    return KlScan(policy.matroid.rank, policy.counts, policy.counts * policy.means, policy.t)


@dataclass(frozen=True)
class Large:
    """One policy on one instance; `rival` makes the best linear-time version from the policy's own counts."""

    label: str
    spec: str
    matroid: str
    arms: int
    rank: int
    rival: Callable[[Policy], Any]
    rival_name: str
    wanted: float
    env: str = "bernoulli"
    phases: tuple[str, ...] = PHASES

    def small(self) -> Large:
        """The same in a second: for `--quick` and for tests."""
        return replace(self, arms=max(self.arms // 500, 200), rank=min(self.rank, 24))


def _thompson(matroid: str, arms: int, rank: int) -> Large:
    return Large("CTS", "cts", matroid, arms, rank, PlainSampler, PlainSampler.name, 100.0)


LARGE: tuple[Large, ...] = (
    _thompson("uniform", 1_000_000, 10),
    _thompson("partition", 1_000_000, 1_000),
    _thompson("laminar", 1_000_000, 30),
    _thompson("transversal", 1_000_000, 100),
    _thompson("graphic", 100_000, 499),
    Large(
        "KL-OSM, staircase",
        "kl-osm:clock=auto",
        "uniform",
        1_000_000,
        10,
        kl_scan,
        "one-pass scan",
        50.0,
        "noise",
        ("explore",),
    ),
    Large("KL-OSM", "kl-osm", "uniform", 100_000, 10, kl_scan, "one-pass scan", 1.0, "noise", ("explore",)),
)


def start(entry: Large, phase: str, seed: int = 0) -> tuple[Contender, Contender]:
    """Our policy and its rival in the state of `phase`, each in a world of its own. O(K), or the rounds before."""
    env = random_environment(entry.env, entry.matroid, entry.arms, entry.rank, seed=seed)
    policy = make_policy(entry.spec, env.matroid, seed=seed, context={"horizon": 10**6})
    textbook.seen_once(policy, env)
    policy._t = -(-entry.arms // entry.rank)  # the rounds that it takes to see every arm
    if phase == "middle":
        simulate(policy, env, _rounds_before(env.matroid), progress=False)
    ours = Contender(entry.label, "policy", policy, env.clone(), ours=True)
    theirs = Contender(entry.rival_name, "rival", entry.rival(policy), env.clone())
    return ours, theirs


def _rounds_before(matroid: Matroid) -> int:
    return _ROUNDS_PER_ARM * matroid.n_arms // matroid.rank


def measure_large(
    say: Say = silent, seconds: float = 0.5, repeats: int = 5, entries: Sequence[Large] = LARGE
) -> list[dict[str, Any]]:
    """Every entry in every phase: medians of interleaved repeats, microseconds per select and update."""
    found = []
    for entry in entries:
        for phase in entry.phases:
            say(f"large: {entry.label}, {entry.matroid}, K = {entry.arms:,}, {phase}")
            gc.collect()
            ours, theirs = start(entry, phase)
            ways = time_ways({"ours": ours, "rival": theirs}, seconds, repeats)
            found.append(
                {
                    "policy": entry.label,
                    "spec": entry.spec,
                    "matroid": entry.matroid,
                    "arms": entry.arms,
                    "rank": ours.player.matroid.rank,
                    "phase": phase,
                    "rival": entry.rival_name,
                    "wanted": entry.wanted,
                    "ours_us": ways["ours"].median,
                    "rival_us": ways["rival"].median,
                    "repeats_us": {name: way.policy_us for name, way in ways.items()},
                    "rounds": {name: way.rounds for name, way in ways.items()},
                }
            )
    return found


def large_figures(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the project wants of them, for the page's table of figures."""
    return [
        figure_of(
            f"{row['policy']}, {row['matroid']}, K = {row['arms']:,}, D = {row['rank']:,}, {row['phase']}",
            f"x {row['rival']}, from Python",
            row["wanted"],
            row["rival_us"] / row["ours_us"],
        )
        for row in found
    ]


def large_cells(found: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Header and rows for a table."""
    header = ["policy", "matroid", "K", "D", "phase", "ours, us", "rival, us", "ratio", "rival"]
    rows = [
        [
            row["policy"],
            row["matroid"],
            f"{row['arms']:,}",
            f"{row['rank']:,}",
            row["phase"],
            number(row["ours_us"]),
            number(row["rival_us"]),
            times(row["rival_us"] / row["ours_us"]),
            row["rival"],
        ]
        for row in found
    ]
    return header, rows
