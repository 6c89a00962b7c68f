"""Curves of the literature, played again: who is better, by how much, on the instances of the papers.

Run them with ``python -m benchmarks curves``; docs/regret.md holds the results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from semibandit.arms import FloatArray
from semibandit.data import instances
from semibandit.environments import Bernoulli
from semibandit.matroids import Graphic, Matroid, Uniform
from semibandit.paper import theory
from semibandit.policies.catalogue import make_policy
from semibandit.simulation import compare
from semibandit.simulation.result import Comparison

Say = Callable[[str], None]

# Rounds after which both figures give the regret; other horizons have nothing to be compared with.
HORIZON = 10_000


@dataclass(frozen=True)
class Curve:
    """One policy of a published figure: its spec here, what the figure shows, and an independent reference run."""

    label: str
    spec: str
    published: float
    reference: float | None = None


# Wang and Chen 2018, "Thompson Sampling for Combinatorial Semi-Bandits", Figure 1(a): regret after 10^4 rounds of
# maximum spanning trees on G(30, 0.6) with uniform means. Plotted values are read off the figure.
WANG_CHEN: tuple[Curve, ...] = (
    Curve("CUCB", "cucb:clip=true", 8_400.0, 7_942.0),
    Curve("CUCB, sqrt(log t / 2N)", "cucb:exploration=0.5,clip=true", 3_530.0, 3_373.0),
    Curve("KL-OSM", "kl-osm", 2_500.0),
    Curve("KL-OSM, no log log", "kl-osm:loglog=0", 1_930.0),
    Curve("CTS", "cts", 1_850.0, 1_546.0),
)

# Zimmert, Luo and Wei 2019, Figure 1a: 5 of 10 arms, mean losses 1/4 apart in [-1, 1]; regret in [0, 1] units.
ZIMMERT: tuple[Curve, ...] = (
    Curve("CUCB", "cucb", 325.0, 343.0),
    Curve("CTS", "cts", 100.0, 108.0),
    Curve("FTRL, HYBRID", "ftrl", 323.0),
    Curve("FTRL, EXP2", "ftrl:regulariser=exp2", 396.0),
    Curve("FTRL, log-barrier", "ftrl:regulariser=log-barrier", 248.0),
)


def wang_chen_instance(seed: int, vertices: int = 30, density: float = 0.6) -> Bernoulli:
    """A connected random graph in which each pair of vertices is joined with probability `density`."""
    rng = np.random.default_rng([seed, vertices])
    pairs = np.array([(a, b) for a in range(vertices) for b in range(a + 1, vertices)])
    while True:
        matroid = Graphic(pairs[rng.random(len(pairs)) < density], n_vertices=vertices)
        if matroid.rank == vertices - 1:
            return Bernoulli(matroid, rng.random(matroid.n_arms), seed=seed)


def zimmert_instance(seed: int = 0) -> Bernoulli:
    """Ten arms, five of them better by 1/8."""
    return Bernoulli(Uniform(10, 5), [0.5625] * 5 + [0.4375] * 5, seed=seed)


def wang_chen(
    repeats: int = 10, rounds: int = 10_000, seed: int = 0, say: Say | None = None
) -> dict[str, FloatArray]:
    """Final regret of each policy of `WANG_CHEN` on `repeats` random graphs. About 7 s a graph."""
    found: dict[str, list[float]] = {curve.label: [] for curve in WANG_CHEN}
    for i in range(repeats):
        if say is not None:
            say(f"graph {i + 1} of {repeats}")
        env = wang_chen_instance(seed + i)
        players = {c.label: make_policy(c.spec, env.matroid, seed=seed + i) for c in WANG_CHEN}
        runs = compare(players, env, rounds, repeats=1, seed=seed + i, progress=False)
        for label in found:
            found[label].append(float(runs.mean_regret(label)[-1]))
    return {label: np.array(values) for label, values in found.items()}


def zimmert(
    repeats: int = 50, rounds: int = 10_000, seed: int = 0, say: Say | None = None
) -> dict[str, FloatArray]:
    """Final regret of each policy of `ZIMMERT`, one number a repeat."""
    if say is not None:
        say(f"{repeats} repeats of {rounds:,} rounds")
    env = zimmert_instance(seed)
    players = {c.label: make_policy(c.spec, env.matroid, seed=seed) for c in ZIMMERT}
    runs = compare(players, env, rounds, repeats=repeats, seed=seed, progress=False)
    return {label: np.asarray(runs.regret(label)[:, -1]) for label in players}


FIGURES: dict[str, tuple[tuple[Curve, ...], Callable[..., dict[str, FloatArray]]]] = {
    "wang-chen": (WANG_CHEN, wang_chen),
    "zimmert": (ZIMMERT, zimmert),
}

# One instance a matroid class, on which every policy that serves it is compared.
CLASSES: dict[str, tuple[int, int]] = {
    "uniform": (60, 5),
    "partition": (60, 6),
    "laminar": (60, 6),
    "graphic": (60, 14),
    "transversal": (60, 8),
    "linear": (30, 5),
}


_ALL = (
    "cucb",
    "cucb:exploration=0.5",
    "cucb:index=ucb-v,exploration=1.2",
    "faster-cucb",
    "kl-osm",
    "cts",
    "cts:posterior=gaussian,sigma=0.5",
    "maub",
    "epsilon-greedy",
    "fpl",
    "random",
)

# What is compared on the instance of a class; the first column of docs/regret.md.
POLICIES: dict[str, tuple[str, ...]] = {name: _ALL for name in CLASSES}


@dataclass(frozen=True)
class ClassCurves:
    """All policies on one instance of a class, with the theorem's bound and the lower bound at the checkpoints."""

    name: str
    matroid: Matroid
    comparison: Comparison
    bound: FloatArray
    lower: FloatArray


def class_curves(
    name: str,
    specs: tuple[str, ...],
    repeats: int = 50,
    rounds: int = 10_000,
    seed: int = 0,
    say: Say | None = None,
) -> ClassCurves:
    """Every policy of `specs` on the instance of class `name`, Bernoulli rewards, means in [0.1, 0.9]."""
    arms, rank = CLASSES[name]
    matroid = instances.random_matroid(name, arms, rank, seed)
    means = 0.1 + 0.8 * np.random.default_rng([seed, arms]).random(arms)
    env = Bernoulli(matroid, means, seed=seed)
    context: dict[str, Any] = {"horizon": rounds, "means": means}
    if say is not None:
        say(f"{name}: {matroid!r}, {len(specs)} policies, {repeats} repeats")
    players = {spec: make_policy(spec, matroid, seed=seed, context=context) for spec in specs}
    runs = compare(players, env, rounds, repeats=repeats, seed=seed, progress=False)
    times = np.maximum(runs.rounds, 3).astype(np.float64)
    bound = theory.regret_bound(matroid, means, times, reward_range=(0.0, 1.0))
    lower = theory.lower_bound_constant(matroid, means) * np.log(times)
    return ClassCurves(name, matroid, runs, np.asarray(bound), np.asarray(lower))
