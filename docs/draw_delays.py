"""Measure and draw what docs/which-policy.md and docs/regret.md show of rare clicks and of late feedback.

    python docs/draw_delays.py

Writes docs/news.png and prints the two tables. Fixed seeds; a minute or two.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import semibandit as sb

HERE = Path(__file__).resolve().parent
ITEMS, CATEGORIES, PER_CATEGORY, PER_PAGE, PAGES, LATE = 200_000, 40, 3, 20, 100_000, 50
BLOCK = 2_000


def news() -> tuple[Any, Any]:
    """200,000 items in 40 categories, at most 3 of each on a page of 20; click rates from Beta(1, 30)."""
    rng = np.random.default_rng(0)
    category, rate = rng.integers(0, CATEGORIES, ITEMS), rng.beta(1, 30, ITEMS)
    families = [(np.flatnonzero(category == c).tolist(), PER_CATEGORY) for c in range(CATEGORIES)]
    return sb.Laminar(ITEMS, [*families, (list(range(ITEMS)), PER_PAGE)]), rate


def play(policy: Any, rate: Any, pages: int, late: int, waits: bool = True) -> Any:
    """Expected clicks of each page, when clicks are known `late` pages later."""
    rng, queue, clicks = np.random.default_rng(1), deque(), np.zeros(pages)
    for page in range(pages):
        shown = policy.decide() if waits else policy.select()
        arms = shown.arms if waits else shown
        clicks[page] = rate[arms].sum()
        queue.append((shown, (rng.random(len(arms)) < rate[arms]).astype(float)))
        if len(queue) > late:
            (policy.learn if waits else policy.update)(*queue.popleft())
    return clicks


def draw_news() -> None:
    matroid, rate = news()
    best = rate[matroid.max_weight_base(rate)].sum()
    prior = sb.beta_prior(1, 30)
    contenders = {
        'prior, exploration="practical"': sb.CUCB(matroid, prior=prior, exploration="practical"),
        "exploration=0.01, no prior": sb.CUCB(matroid, exploration=0.01),
        'exploration="theorem"': sb.CUCB(matroid, exploration="theorem"),
    }
    figure, axes = plt.subplots(figsize=(8.0, 4.2), dpi=150)
    print(f"| CUCB with | clicks, last 10,000 pages | of the best ({best:.2f}) |\n|---|---|---|")
    for (label, policy), color in zip(contenders.items(), ("#0b6e4f", "#c77700", "#7a7a7a"), strict=True):
        clicks = play(policy, rate, PAGES, LATE)
        blocks = clicks.reshape(-1, BLOCK).mean(axis=1)
        axes.plot(np.arange(1, len(blocks) + 1) * BLOCK / 1000, blocks, color=color, lw=2)
        axes.annotate(
            label, (PAGES / 1000, blocks[-1]), (4, -4), textcoords="offset points", va="center", color=color
        )
        last = clicks[-10_000:].mean()
        print(f"| {label} | {last:.2f} | {100 * last / best:.0f} % |")
    anyone = rate.mean() * PER_PAGE
    print(f"| random pages | {anyone:.2f} | {100 * anyone / best:.0f} % |")
    for level, label in ((best, "best possible"), (anyone, "random")):
        axes.axhline(level, color="#444444", lw=1, ls=":")
        axes.annotate(
            label, (PAGES / 1000, level), (4, 5), textcoords="offset points", va="center", color="#444444"
        )
    axes.set(
        xlim=(0, PAGES / 1000), ylim=(0, None), xlabel="pages shown (thousands)", ylabel="clicks per page"
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title("200,000 items, clicks known 50 pages later", loc="left")
    figure.tight_layout()
    figure.subplots_adjust(right=0.7)
    figure.savefig(HERE / "news.png")


def table_of_delays() -> None:
    """Regret per arm played when feedback is late, with and without what waits."""
    arms, rank, rounds = 1_000, 10, 50_000
    matroid = sb.Uniform(n_arms=arms, rank=rank)
    rate = np.random.default_rng(2).beta(2, 8, arms)
    best = np.sort(rate)[-rank:].sum()
    print("\n| rounds late | `decide` and `learn` | `select` and `update` |\n|---|---|---|")
    for late in (0, 10, 100, 1000):
        lost = [
            rounds * best - play(sb.CUCB(matroid, exploration="practical"), rate, rounds, late, waits).sum()
            for waits in (True, False)
        ]
        print(f"| {late:,} | {lost[0]:,.0f} | {lost[1]:,.0f} |")


if __name__ == "__main__":
    draw_news()
    table_of_delays()
