"""Measure and draw what docs/which-policy.md shows of heavy tails and unknown scales.

    python docs/draw_tails.py

Writes docs/tails.png and prints the table. Fixed seeds; half a minute.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import semibandit as sb

HERE = Path(__file__).resolve().parent
MEDIAN, ROUNDS, BLOCK, SEEDS = 135.0, 20_000, 500, 3
FAR, FARTHER = 8_000.0, 1_000_000.0


def matroids() -> dict[str, Any]:
    """10 of 1,000 servers, and spanning trees of a network with 40 nodes and 300 links."""
    rng = np.random.default_rng(7)
    tree = [(i, int(rng.integers(0, i))) for i in range(1, 40)]
    links = [tuple(map(int, rng.choice(40, 2, replace=False))) for _ in range(300 - len(tree))]
    return {"10 of 1,000": sb.Uniform(n_arms=1_000, rank=10), "spanning tree": sb.Graphic(tree + links, 40)}


def world(matroid: Any, far: float) -> Any:
    """Latencies with medians around 135 and rare outliers that reach `far`."""
    medians = MEDIAN * np.exp(0.5 * np.random.default_rng(8).standard_normal(matroid.n_arms))
    tail = {"outliers": 0.002, "start": 2_000.0, "exponent": 2.0}
    if far > FAR:
        tail = {"outliers": 0.01, "start": 1_000.0, "exponent": 1.5}
    return sb.minimize(sb.HeavyTailed(matroid, medians, 0.5, reward_range=(0.0, far), **tail))


def contenders(matroid: Any, far: float) -> dict[str, Any]:
    clip: Any = {"reward_range": (0.0, 500.0), "outside": "clip"}
    given: Any = {"reward_range": None, "scale": 100.0, "exploration": 0.02}
    return {
        "`Random`": sb.Random(matroid, reward_range=(0.0, far)),
        "`CUCB`, a range that holds everything": sb.CUCB(matroid, reward_range=(0.0, far), clock="auto"),
        '`CUCB`, the same, `exploration="practical"`': sb.CUCB(
            matroid, reward_range=(0.0, far), exploration="practical", clock="auto"
        ),
        '`CUCB`, clipped at 500, `exploration="practical"`': sb.CUCB(
            matroid, exploration="practical", clock="auto", **clip
        ),
        '`CUCB(index="ucb-v")`, clipped at 500': sb.CUCB(matroid, index="ucb-v", clock="auto", **clip),
        "`RobustCUCB`, no range": sb.RobustCUCB(matroid, reward_range=None, clock="auto"),
        "`RobustCUCB`, clipped at 500": sb.RobustCUCB(matroid, clock="auto", **clip),
        "`scale=100, exploration=0.02`, empirical mean": sb.RobustCUCB(matroid, clock="auto", **given),
        "the same, truncated mean": sb.RobustCUCB(
            matroid, clock="auto", mean="truncated", center=-MEDIAN, **given
        ),
        "the same, median of means": sb.RobustCUCB(matroid, clock="auto", mean="median-of-means", **given),
    }


def play(policy: Any, env: Any) -> Any:
    """What each round costs more than the best base, by block of rounds, on average over the seeds."""
    marks = list(range(BLOCK, ROUNDS + 1, BLOCK))
    lost = []
    for seed in range(SEEDS):
        run = sb.simulate(
            sb.minimize(policy), env.clone(seed=seed), ROUNDS, record_every=marks, progress=False
        )
        lost.append(np.diff(run.regret, prepend=0.0) / BLOCK)
    return np.mean(lost, axis=0)


def draw(curves: dict[str, Any], best: float) -> None:
    shown = {
        "`CUCB`, a range that holds everything": ("CUCB, range (0, 8000)", "#7a7a7a"),
        '`CUCB`, clipped at 500, `exploration="practical"`': ("CUCB, clipped at 500", "#c77700"),
        "`RobustCUCB`, no range": ("RobustCUCB, no range", "#0b6e4f"),
        "`RobustCUCB`, clipped at 500": ("RobustCUCB, clipped at 500", "#1f5fa8"),
    }
    figure, axes = plt.subplots(figsize=(8.0, 4.2), dpi=150)
    at = np.arange(1, ROUNDS // BLOCK + 1) * BLOCK / 1000
    for name, (label, color) in shown.items():
        cost = best + curves[name]
        axes.plot(at, cost, color=color, lw=2)
        lift = {"RobustCUCB, no range": 11, "RobustCUCB, clipped at 500": 0}.get(label, 0)
        axes.annotate(
            label, (at[-1], cost[-1]), (4, lift), textcoords="offset points", va="center", color=color
        )
    axes.axhline(best, color="#444444", lw=1, ls=":")
    axes.annotate(
        "best possible", (at[-1], best), (4, -11), textcoords="offset points", va="center", color="#444444"
    )
    axes.set(xlim=(0, at[-1]), ylim=(0, None), xlabel="rounds (thousands)", ylabel="latency per round, ms")
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title("10 of 1,000 servers, median 135 ms, outliers up to 8,000 ms", loc="left")
    figure.tight_layout()
    figure.subplots_adjust(right=0.72)
    figure.savefig(HERE / "tails.png")


def main() -> None:
    made = matroids()
    worlds = {
        "10 of 1,000": (made["10 of 1,000"], FAR),
        "spanning tree": (made["spanning tree"], FAR),
        "10 of 1,000, outliers up to 10^6": (made["10 of 1,000"], FARTHER),
    }
    rows: dict[str, list[str]] = {}
    for name, (matroid, far) in worlds.items():
        env = world(matroid, far)
        curves = {label: play(policy, env) for label, policy in contenders(matroid, far).items()}
        for label, curve in curves.items():
            late = curve[len(curve) // 2 :].mean()
            rows.setdefault(label, []).append(f"{curve.sum() * BLOCK / 1e6:.2f} ({late:,.0f})")
        if name == "10 of 1,000":
            draw(curves, env.optimal_value)
        print(f"{name}: best {env.optimal_value:,.0f} per round")
    print(f"| policy | {' | '.join(worlds)} |\n|{'---|' * (len(worlds) + 1)}")
    for label, cells in rows.items():
        print(f"| {label} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
