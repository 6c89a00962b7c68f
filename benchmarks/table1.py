"""The paper's Table 1 as measurements: time per round over K, and the cost of one change of a dynamic base.

For each matroid class CUCB by re-solving (the table's left column) and FasterCUCB (its right column) play from the
same state, every arm tried once, until every arm could have been tried twice, with the rank held fixed; the exponent is
that of a power law fitted over K.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from semibandit.data.instances import random_matroid, random_means
from semibandit.environments import UniformNoise
from semibandit.paper.dynamic import dynamic_base
from semibandit.policies import CUCB, FasterCUCB, Policy
from semibandit.simulation import simulate

Say = Callable[[str], None]

# Class: rank, and the numbers of arms it is measured at. A simple graph on 200 vertices has 19,900 edges at most.
SIZES: dict[str, tuple[int, tuple[int, ...]]] = {
    "uniform": (10, (1_000, 10_000, 100_000, 1_000_000)),
    "partition": (10, (1_000, 10_000, 100_000, 1_000_000)),
    "laminar": (12, (1_000, 10_000, 100_000)),
    "graphic": (199, (1_000, 3_000, 10_000, 19_900)),
    "transversal": (20, (1_000, 10_000, 100_000)),
}

# Largest exponent of FasterCUCB that the project holds itself to, by class.
WANTED = {"uniform": 0.2, "partition": 0.2, "graphic": 0.35, "transversal": 0.6}

HORIZON = 1_000_000
REWARDS = (0.1, 1.0)


def exponent(arms: list[int], values: list[float]) -> float:
    """Slope of a line through the points in log-log scale."""
    return float(np.polyfit(np.log(arms), np.log(values), 1)[0])


def _policies(matroid: Any) -> dict[str, Policy]:
    return {
        "CUCB (resolve)": CUCB(matroid, reward_range=REWARDS, engine="resolve"),
        "FasterCUCB": FasterCUCB(matroid, horizon=HORIZON, reward_range=REWARDS),
    }


def _time_policy(policy: Policy, env: Any, seconds: float, repeats: int) -> float:
    """Median microseconds per round, select and update, while every arm is tried for about the second time.

    Each repeat begins in the state in which every arm was tried once and plays at most K / D rounds, so that all K are
    measured in the same phase of learning: a thousand arms settle in the time in which a million are hardly touched.
    """
    everyone = np.arange(policy.n_arms, dtype=np.int64)
    policy.update(everyone, env.clone().draw(everyone, 1))
    most = max(20, policy.n_arms // policy.matroid.rank)
    took: list[float] = []
    begin, rounds = time.perf_counter(), min(most, 20)
    for repeat in range(10_000):
        run = simulate(policy.clone(), env.clone(seed=1 + repeat), rounds, progress=False)
        if repeat:  # the first one loads kernels and tells how many rounds there is time for
            took.append(run.microseconds_per_round)
        else:
            begin = time.perf_counter()
            rounds = int(np.clip(1e6 * seconds / max(run.microseconds_per_round, 1e-3), 20, most))
        if len(took) >= repeats and time.perf_counter() - begin > seconds * repeats:
            break
    return float(np.median(took))


def _time_updates(name: str, arms: int, rank: int, seed: int, seconds: float) -> float:
    """Median microseconds of one weight change of a dynamic base, random arms and random new weights."""
    matroid = random_matroid(name, arms, rank, seed)
    rng = np.random.default_rng([seed, arms])
    structure = dynamic_base(matroid, rng.random(arms))
    n = max(1024, arms // 64)
    took: list[float] = []
    stop = time.perf_counter() + seconds
    while len(took) < 3 or (time.perf_counter() < stop and len(took) < 50):
        which, values = rng.integers(0, arms, n), rng.random(n)
        begin = time.perf_counter()
        structure.set_weights(which, values)
        took.append((time.perf_counter() - begin) / n)
    return 1e6 * float(np.median(took))


def measure_table(
    say: Say, seconds: float = 0.5, repeats: int = 5, scale: int = 1, seed: int = 0
) -> dict[str, Any]:
    """All classes; `scale` divides the numbers of arms, for a quick look. Plain data for JSON."""
    found: dict[str, Any] = {"horizon": HORIZON, "classes": []}
    for name, (rank, sizes) in SIZES.items():
        # Different ones, however small the scale makes them.
        arms = sorted({max(k // scale, 2 * rank * (1 + i)) for i, k in enumerate(sizes)})
        lines: dict[str, dict[str, Any]] = {}
        updates = []
        for k in arms:
            say(f"Table 1: {name}, K = {k:,}, D = {rank}")
            matroid = random_matroid(name, k, rank, seed)
            means = 0.2 + 0.7 * random_means(k, seed)
            env = UniformNoise(matroid, means, 0.1, reward_range=REWARDS, seed=seed)
            for label, policy in _policies(matroid).items():
                line = lines.setdefault(label, {"name": label, "us_per_round": [], "instances": []})
                line["us_per_round"].append(_time_policy(policy, env, seconds, repeats))
                line["instances"].append(policy.describe().get("instances"))
            updates.append(_time_updates(name, k, rank, seed, seconds))
        for line in lines.values():
            line["exponent"] = exponent(arms, line["us_per_round"])
        found["classes"].append(
            {
                "matroid": name,
                "rank": rank,
                "arms": arms,
                "lines": list(lines.values()),
                "update_us": updates,
                "update_exponent": exponent(arms, updates),
                "wanted": WANTED.get(name),
            }
        )
    return found


def table_markdown(found: dict[str, Any], picture: str | None = None) -> str:
    """The section of docs/performance.md about Table 1."""
    parts = [
        "## The paper's Table 1, measured",
        "Microseconds per round from the state in which every arm was tried once, for at most K / D rounds (so that "
        "all K are measured in the same phase of learning), rank held fixed; the exponent is that "
        f'of K. FasterCUCB has horizon T = {found["horizon"]:,} and m = 1, `method="lazy"`. *update* is one change of '
        "one weight in the dynamic maximum-weight base of Assumption 4.2 (`paper.dynamic`). *instances* is how "
        "many dynamic instances FasterCUCB really holds, in place of one for each of the paper's cells.",
    ]
    if picture is not None:
        parts.append(f"![Time per round over K, one panel a matroid class]({picture})")
    for entry in found["classes"]:
        header = ["", *(f"K = {k:,}" for k in entry["arms"]), "exponent", "wanted"]
        rows = []
        for line in entry["lines"]:
            bound = (
                "-" if line["name"] != "FasterCUCB" or entry["wanted"] is None else f"<= {entry['wanted']}"
            )
            values = [f"{v:.3g}" for v in line["us_per_round"]]
            rows.append([line["name"], *values, f"{line['exponent']:.2f}", bound])
            if any(line["instances"]):
                rows.append([f"{line['name']}: instances", *(str(n) for n in line["instances"]), "", ""])
        rows.append(
            ["update", *(f"{v:.3g}" for v in entry["update_us"]), f"{entry['update_exponent']:.2f}", "-"]
        )
        rule = ["---"] + ["---:"] * (len(header) - 1)
        body = "\n".join("| " + " | ".join(row) + " |" for row in [header, rule, *rows])
        parts.append(f"**{entry['matroid']}**, D = {entry['rank']}\n\n{body}")
    return "\n\n".join(parts) + "\n"
