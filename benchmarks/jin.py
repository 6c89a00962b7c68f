"""Jin, Zhao, Tan and Gu 2026: one seed for all arms beside one for each, and how regret varies from run to run.

Run it with ``python -m benchmarks curves jin``; docs/regret.md holds the results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.published import Curve, wang_chen_instance
from semibandit.arms import FloatArray
from semibandit.environments import Bernoulli, Gaussian
from semibandit.matroids import Uniform
from semibandit.policies.catalogue import make_policy
from semibandit.simulation import compare

Say = Callable[[str], None]

ROUNDS = 7_500

# Normal rewards have no range. Nine standard deviations beyond the means [0, 1] nothing is ever clipped.
RANGE = (-9.0, 10.0)

# The radius sqrt(2 ln t / N), as a share of the squared range.
_SHARE = 2.0 / (RANGE[1] - RANGE[0]) ** 2

SPECS = {
    "CUCB": f"cucb:exploration={_SHARE!r}",
    "CTS": "cts:posterior=gaussian,sigma=1",
    "CTS3": "one-seed:sigma=1",
    "CL-SG": f"one-seed:variant=cl-sg,epsilon={0.1 / (RANGE[1] - RANGE[0]) ** 2!r}",
}

# Regret after 7,500 rounds of maximum spanning trees on G(n, 0.6), read off the paper's plots by eye. CL-SG is of
# another paper, which plots something else.
PUBLISHED: dict[int, dict[str, float]] = {
    20: {"CUCB": 3_700.0, "CTS": 2_750.0, "CTS3": 2_550.0},
    30: {"CUCB": 8_700.0, "CTS": 6_600.0, "CTS3": 5_100.0},
    50: {"CUCB": 23_000.0, "CTS": 18_400.0, "CTS3": 11_600.0},
}

QUANTILES = (0.1, 0.5, 0.9, 0.99)


def curves(vertices: int) -> tuple[Curve, ...]:
    """The policies of the figure for graphs of so many vertices."""
    return tuple(Curve(label, SPECS[label], value) for label, value in PUBLISHED[vertices].items())


def jin_instance(seed: int, vertices: int) -> Gaussian:
    """A connected G(n, 0.6) with means uniform in [0, 1] and unit normal noise."""
    graph = wang_chen_instance(seed, vertices)
    return Gaussian(graph.matroid, graph.means, 1.0, reward_range=RANGE, seed=seed)


def _players(env: Any, specs: dict[str, str], seed: int) -> dict[str, Any]:
    return {
        label: make_policy(spec, env.matroid, env.reward_range, seed=seed) for label, spec in specs.items()
    }


def jin(
    vertices: int, repeats: int = 20, rounds: int = ROUNDS, seed: int = 0, say: Say | None = None
) -> dict[str, FloatArray]:
    """Final regret of each policy of `SPECS` on `repeats` random graphs. 1 to 4 s a graph."""
    found: dict[str, list[float]] = {label: [] for label in SPECS}
    for i in range(repeats):
        if say is not None:
            say(f"{vertices} vertices, graph {i + 1} of {repeats}")
        env = jin_instance(seed + i, vertices)
        runs = compare(_players(env, SPECS, seed + i), env, rounds, repeats=1, seed=seed + i, progress=False)
        for label in found:
            found[label].append(float(runs.mean_regret(label)[-1]))
    return {label: np.array(values) for label, values in found.items()}


# -- from run to run on one instance -----------------------------------------------------------------------------

TAIL_SPECS = {
    "CUCB, radius sqrt(log t / 2N)": "cucb:exploration=0.5",
    "CTS, Beta": "cts",
    "CTS, Gaussian": "cts:posterior=gaussian",
    "CTS3": "one-seed",
    "CL-SG": "one-seed:variant=cl-sg",
}


def tail_instance(seed: int = 0) -> Bernoulli:
    """Five of ten arms, 1/8 apart, as Zimmert, Luo and Wei have them: luck decides how long a mistake lasts."""
    return Bernoulli(Uniform(10, 5), [0.5625] * 5 + [0.4375] * 5, seed=seed)


def wide_instance(seed: int = 0) -> Bernoulli:
    """10 of 200 arms, means uniform in [0, 1]."""
    return Bernoulli(Uniform(200, 10), np.random.default_rng(7).random(200), seed=seed)


TAILS = {"5 of 10, gap 1/8": tail_instance, "10 of 200, uniform means": wide_instance}


def tails(
    name: str, repeats: int = 400, rounds: int = 10_000, seed: int = 0, say: Say | None = None
) -> dict[str, FloatArray]:
    """Final regret of each policy of `TAIL_SPECS` in `repeats` runs on one instance."""
    if say is not None:
        say(f"{name}: {repeats} runs of {rounds:,} rounds")
    env = TAILS[name](seed)
    runs = compare(_players(env, TAIL_SPECS, seed), env, rounds, repeats=repeats, seed=seed, progress=False)
    return {label: np.asarray(runs.regret(label)[:, -1]) for label in TAIL_SPECS}
