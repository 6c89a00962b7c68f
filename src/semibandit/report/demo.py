"""The picture of `semibandit demo` (extra ``plot``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from semibandit.report.canvas import (
    FAINT,
    OURS,
    RIVAL,
    SERIES,
    figure_of,
    label_ends,
    plain_ticks,
    save,
    title_of,
)
from semibandit.text import duration, number


def _draw_million(axis: Any, data: dict[str, Any]) -> None:
    """Average regret over time spent computing: ours as played, the rival measured and then projected."""
    lost, mine, theirs = data["lost"], data["seconds"], data["rival_seconds"]
    until = data["rival_measured"]
    there = float(np.interp(until, theirs, lost))
    covered = float(np.interp(data["covered"], data["marks"], mine))
    split = int(np.searchsorted(theirs, until))
    axis.plot(
        [until, *theirs[split:]], [there, *lost[split:]], color=RIVAL, linewidth=1.8, linestyle=(0, (4, 3))
    )
    axis.plot([*theirs[:split], until], [*lost[:split], there], color=RIVAL, linewidth=2.6)
    axis.plot(until, there, "o", color=RIVAL, markersize=5)
    axis.plot(mine, lost, color=OURS, linewidth=2.6, zorder=3)
    axis.plot(mine[-1], lost[-1], "o", color=OURS, markersize=6, zorder=3)
    axis.set_xscale("log")
    axis.set_xlim(mine[0], theirs[-1] * 1.8)
    axis.set_ylim(0, max(lost) * 1.15)
    axis.set_xlabel("time the policy has spent computing")
    axis.set_ylabel("average regret, % of the best reward")
    ticks = [t for t in (1e-3, 1e-2, 0.1, 1, 10, 60, 600, 3600, 36000) if mine[0] <= t <= theirs[-1] * 1.8]
    axis.set_xticks(ticks, [duration(t) for t in ticks])
    axis.set_xticks([], minor=True)
    rounds = f"{data['rounds']:,} rounds"
    # Between the two curves where they are this high: the same height, so the gap is as wide as the ratio.
    height = 0.5 * max(lost)
    down = next((i for i, value in enumerate(lost) if value <= height), len(lost) - 1)
    between = float(np.sqrt(mine[down] * theirs[down]))
    for x, y, across, colour, text in (
        (
            covered / 1.4,
            0.45 * max(lost),
            "right",
            OURS,
            f"semibandit\n{number(data['us'])} us per round\n{rounds}\nin {duration(mine[-1])}",
        ),
        (
            between,
            height,
            "center",
            RIVAL,
            f"{data['rival']}\n{number(data['rival_us'])} us per round\nthe same rounds\nin {duration(theirs[-1])}",
        ),
    ):
        axis.text(x, y, text, color=colour, fontsize=10, fontweight="bold", ha=across, va="center")
    title_of(
        axis,
        f"{data['arms']:,} arms, {data['rank']} per round: the same decisions, sooner",
        "average regret per round so far; numpy measured up to the dot, then projected",
    )


def _draw_classes(axis: Any, classes: Sequence[dict[str, Any]]) -> None:
    """Two dots per class: our time per round and that of sorting all weights every round."""
    for y, one in enumerate(reversed(classes)):
        axis.plot([one["us"], one["rival_us"]], [y, y], color=FAINT, linewidth=3, zorder=1)
        axis.plot(one["rival_us"], y, "o", color=RIVAL, markersize=8, zorder=2)
        axis.plot(one["us"], y, "o", color=OURS, markersize=9, zorder=3)
        left, right = sorted((one["us"], one["rival_us"]))
        ours_left = one["us"] <= one["rival_us"]
        for value, at_left in ((left, True), (right, False)):
            mine = at_left == ours_left
            axis.annotate(
                number(value),
                (value, y),
                (-9 if at_left else 9, 0),
                textcoords="offset points",
                ha="right" if at_left else "left",
                va="center",
                fontsize=9,
                color=OURS if mine else RIVAL,
                fontweight="bold" if mine else "normal",
            )
        axis.annotate(
            f"{number(one['rival_us'] / one['us'], 2)} x",
            (float(np.sqrt(left * right)), y),
            (0, 5),
            textcoords="offset points",
            ha="center",
            fontsize=8.5,
            color="#555555",
        )
    axis.set_xscale("log")
    low = min(min(one["us"], one["rival_us"]) for one in classes)
    high = max(max(one["us"], one["rival_us"]) for one in classes)
    axis.set_xlim(low / 6, high * 6)
    names = [f"{one['name']}\nK = {one['arms']:,}, D = {one['rank']:,}" for one in reversed(classes)]
    axis.set_yticks(range(len(classes)), names, fontsize=9)
    axis.set_ylim(-0.5, len(classes) - 0.4)
    axis.grid(False, axis="y")
    axis.set_xlabel("microseconds per round")
    plain_ticks(axis, "x")
    title_of(axis, "Time per round", "blue: semibandit; orange: sorting all weights every round (numpy)")


def _draw_learning(axis: Any, classes: Sequence[dict[str, Any]]) -> None:
    """Average regret over plays per arm, an axis that all classes share."""
    ends = []
    for i, one in enumerate(classes):
        colour = SERIES[i % len(SERIES)]
        plays = np.array(one["marks"]) * one["rank"] / one["arms"]
        axis.plot(plays, one["lost"], color=colour, linewidth=1.8)
        axis.plot(plays[-1], one["lost"][-1], "o", color=colour, markersize=4)
        ends.append(
            (float(plays[-1]), one["lost"][-1], f"{one['name']}  {number(one['lost'][-1], 2)}%", colour)
        )
    axis.set_xscale("log")
    axis.set_ylim(0, 1.08 * max(max(one["lost"]) for one in classes))
    axis.set_xlim(left=0.05)
    axis.axvline(1.0, color="#999999", linewidth=0.8, linestyle=":")
    axis.text(
        0.93, 1.5, "every arm tried once", fontsize=8, color="#777777", rotation=90, va="bottom", ha="right"
    )
    axis.set_xlabel("plays per arm (rounds x D / K)")
    axis.set_ylabel("average regret, % of the best reward")
    plain_ticks(axis, "x")
    title_of(axis, "Learning", "average regret per round so far, as far as each class came in a few seconds")
    label_ends(axis, ends, gap=0.05, size=9)


def plot_demo(million: dict[str, Any], classes: Sequence[dict[str, Any]], path: str | Path) -> None:
    """The demo in one picture: a million arms against numpy, every matroid class, and what is learnt."""
    figure, axes = figure_of(18.5, 5.6, 3, gridspec_kw={"width_ratios": [1.15, 1, 0.95]})
    figure.get_layout_engine().set(wspace=0.06)
    _draw_million(axes[0], million)
    _draw_classes(axes[1], classes)
    _draw_learning(axes[2], classes)
    save(figure, path)
