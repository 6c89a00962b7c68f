"""Pictures (extra ``plot``): regret of compared policies, and a measured case.

matplotlib is imported when a picture is drawn, never before; a picture needs no display.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from semibandit.report.canvas import (
    BARE,
    OURS,
    RIVAL,
    SERIES,
    figure_of,
    label_ends,
    plain_ticks,
    save,
    title_of,
)
from semibandit.simulation.result import Comparison
from semibandit.text import number


def plot_comparison(comparison: Comparison, path: str | Path, title: str = "Regret") -> None:
    """Mean cumulative regret over rounds with a band of two standard errors, a line per policy. O(checkpoints)."""
    figure, axis = figure_of(9.0, 4.8)
    ends = []
    for i, name in enumerate(comparison.runs):
        colour = SERIES[i % len(SERIES)]
        rounds, mean = comparison.rounds, comparison.mean_regret(name)
        error = 2 * np.nan_to_num(comparison.standard_error(name))
        axis.plot(rounds, mean, color=colour, linewidth=1.8)
        axis.fill_between(rounds, mean - error, mean + error, color=colour, alpha=0.15, linewidth=0)
        ends.append((float(rounds[-1]), float(mean[-1]), f"{name}  {number(float(mean[-1]))}", colour))
    axis.set_xscale("log")
    axis.set_xlim(max(1, comparison.rounds[-1] / 1000), comparison.rounds[-1])
    axis.set_ylim(bottom=0)
    axis.set_xlabel("round")
    axis.set_ylabel("cumulative regret")
    plain_ticks(axis, "x")
    repeats = len(next(iter(comparison.runs.values())))
    title_of(axis, title, f"mean of {repeats} runs on the same reward streams; band: two standard errors")
    label_ends(axis, ends)
    save(figure, path)


def plot_case(case: dict[str, Any], path: str | Path) -> None:
    """A measured case (see `semibandit.bench`): a bar for each contender and way, the shortest on top."""
    rows = sorted(case["rows"], key=lambda row: -float(row["us_per_round"]))
    figure, axis = figure_of(9.0, 1.4 + 0.42 * len(rows))
    for y, row in enumerate(rows):
        colour = OURS if row.get("ours") else (BARE if row["kind"] == "engine" else RIVAL)
        axis.barh(y, row["us_per_round"], color=colour, height=0.62)
        axis.annotate(
            number(row["us_per_round"]),
            (row["us_per_round"], y),
            (5, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            color=colour,
        )
    axis.set_yticks(range(len(rows)), [f"{row['name']}, {row['way']}" for row in rows], fontsize=9)
    axis.set_xscale("log")
    smallest = float(rows[-1]["us_per_round"])
    axis.set_xlim(smallest / 3, 3 * float(rows[0]["us_per_round"]))
    axis.grid(False, axis="y")
    axis.set_xlabel("microseconds a round")
    plain_ticks(axis, "x")
    title_of(axis, case["title"], "median of the repeats; a compiled round also draws the rewards")
    save(figure, path)
