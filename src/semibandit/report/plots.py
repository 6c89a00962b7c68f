"""Pictures (extra ``plot``): regret of compared policies, and a measured case.

matplotlib is imported when a picture is drawn, never before; a picture needs no display.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from semibandit.checks import one_of
from semibandit.report.canvas import (
    BARE,
    OURS,
    RIVAL,
    SCALES,
    SERIES,
    figure_of,
    label_ends,
    plain,
    plain_ticks,
    regret_axes,
    save,
    title_of,
)
from semibandit.simulation.result import Comparison
from semibandit.text import number


def plot_comparison(
    comparison: Comparison,
    path: str | Path | None = None,
    title: str = "Regret",
    scale: str = "linear",
) -> Any:
    """Mean cumulative regret over rounds with a band of two standard errors, a line per policy. O(checkpoints).

    `scale`: ``"linear"``, ``"semi"`` (logarithmic rounds) or ``"log"`` (both axes). Returns the figure, and writes it
    to `path` if one is given.
    """
    one_of(scale, "scale", SCALES)
    figure, axis = figure_of(9.0, 4.8)
    ends = []
    rounds = comparison.rounds
    for i, name in enumerate(comparison.runs):
        colour = SERIES[i % len(SERIES)]
        mean = comparison.mean_regret(name)
        error = 2 * np.nan_to_num(comparison.standard_error(name))
        axis.plot(rounds, mean, color=colour, linewidth=1.8)
        axis.fill_between(rounds, mean - error, mean + error, color=colour, alpha=0.15, linewidth=0)
        label = plain(f"{name}  {number(float(mean[-1]), 4)}")
        ends.append((float(rounds[-1]), float(mean[-1]), label, colour))
    regret_axes(axis, scale, int(rounds[-1]))
    repeats = len(next(iter(comparison.runs.values())))
    below = (
        f"mean of {repeats} runs on the same reward streams; band: two standard errors"
        if repeats > 1
        else "one run"
    )
    title_of(axis, plain(title), below)
    label_ends(axis, ends)
    if path is not None:
        save(figure, path)
    return figure


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
    axis.set_xlabel("microseconds per round")
    plain_ticks(axis, "x")
    title_of(axis, case["title"], "median of the repeats; a compiled round also draws the rewards")
    save(figure, path)
