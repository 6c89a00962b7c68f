"""Pictures of the suite: time over K, case by case, the paper's Table 1, and regret of every policy on a class."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from semibandit.report.canvas import (
    BARE,
    FAINT,
    INK,
    OURS,
    RIVAL,
    SERIES,
    apart,
    figure_of,
    label_ends,
    plain_ticks,
    save,
    title_of,
)
from semibandit.text import number


def _colour(kind: str) -> str:
    return {"rival": RIVAL, "bare": BARE}.get(kind, OURS)


def _draw_scaling(axis: Any, scaling: dict[str, Any]) -> None:
    ends = []
    for line in scaling["lines"]:
        if line["kind"] == "engine" or (line["kind"] == "bare" and line["way"] == "python"):
            continue
        ours = line["kind"] == "auto"
        name = "semibandit" if ours else line["name"]
        colour, dashed = _colour(line["kind"]), line["way"] == "python" and ours
        axis.plot(
            line["arms"],
            line["us_per_round"],
            color=colour,
            linewidth=2.4 if ours else 1.3,
            linestyle="--" if dashed else "-",
            marker="o",
            markersize=4 if ours else 3,
        )
        slope = "" if line["exponent"] is None else f"  K^{line['exponent']:.2f}"
        text = f"{name}, {line['way']}{slope}"
        ends.append((line["arms"][-1], line["us_per_round"][-1], text, colour))
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("number of arms K")
    axis.set_ylabel("microseconds per round")
    plain_ticks(axis, "xy")
    title_of(
        axis,
        "Time per round over K",
        f"{scaling['matroid']}, D = {scaling['rank']:,}, {scaling['phase']}; exponent fitted from "
        f"K = {scaling['fit_from']:,}",
    )
    label_ends(axis, ends)


def _draw_cases(axis: Any, cases: Sequence[dict[str, Any]]) -> None:
    """A line of dots per case: bare loop, ours, each rival in its fastest way."""
    for y, case in enumerate(reversed(cases)):
        fastest: dict[str, dict[str, Any]] = {}
        for row in case["rows"]:
            if row["kind"] == "engine" and not row["ours"]:
                continue
            known = fastest.get(row["name"])
            if known is None or row["us_per_round"] < known["us_per_round"]:
                fastest[row["name"]] = row
        values = [row["us_per_round"] for row in fastest.values()]
        axis.plot([min(values), max(values)], [y, y], color=FAINT, linewidth=2, zorder=1)
        for row in fastest.values():
            mine = bool(row.get("ours"))
            axis.plot(
                row["us_per_round"],
                y,
                marker="|" if row["kind"] == "bare" else "o",
                markersize=11 if row["kind"] == "bare" else (8 if mine else 5.5),
                color=_colour(row["kind"]),
                zorder=3 if mine else 2,
            )
        us = next(row for row in fastest.values() if row.get("ours"))["us_per_round"]
        rivals = [row for row in fastest.values() if row["kind"] == "rival"]
        text = f"{number(us)} us"
        if rivals:
            best = min(rivals, key=lambda row: float(row["us_per_round"]))
            text += f";  best rival {best['name']}: {number(best['us_per_round'] / us)} x"
        axis.text(min(values), y + 0.22, text, fontsize=8, color=INK)
    axis.set_xscale("log")
    axis.set_yticks(
        range(len(cases)), [case["title"].replace(", ", "\n", 1) for case in reversed(cases)], fontsize=8
    )
    axis.set_ylim(-0.5, len(cases) - 0.3)
    axis.grid(False, axis="y")
    axis.set_xlabel("microseconds per round (each in its fastest way)")
    plain_ticks(axis, "x")
    title_of(
        axis,
        "Case by case",
        "blue: semibandit; orange: rivals; grey bar: the bare loop, which decides nothing",
    )


def plot_bench(result: dict[str, Any], path: str | Path) -> None:
    """A result of the suite (see `benchmarks.runner`) on logarithmic axes."""
    cases = [case for case in result["cases"] if not case.get("part_of_scaling")]
    panels = len(result["scaling"]) + bool(cases)
    height = max(4.8, 1.6 + 0.55 * len(cases))
    figure, axes = figure_of(9.5 * panels, height, panels, squeeze=False)
    for axis, scaling in zip(axes[0], result["scaling"], strict=False):
        _draw_scaling(axis, scaling)
    if cases:
        _draw_cases(axes[0][-1], cases)
    save(figure, path)


_COLOUR = {"CUCB (resolve)": RIVAL, "FasterCUCB": OURS}


def plot_table(found: dict[str, Any], path: str | Path) -> None:
    """Draw what `benchmarks.table1.measure_table` found (.png, .svg)."""
    classes = found["classes"]
    figure, axes = figure_of(3.4 * len(classes), 3.6, columns=len(classes), sharey=True)
    for axis, entry in zip(axes, classes):
        arms = entry["arms"]
        for line in entry["lines"]:
            colour = _COLOUR.get(line["name"], BARE)
            axis.loglog(arms, line["us_per_round"], "o-", color=colour, lw=2, ms=4)
            above = line["name"] != "FasterCUCB"
            axis.annotate(
                f"{line['name']}, K^{line['exponent']:.2f}",
                (arms[-1], line["us_per_round"][-1]),
                xytext=(0, 9 if above else -14),
                textcoords="offset points",
                ha="right",
                color=colour,
                fontsize=8.5,
            )
        axis.loglog(arms, entry["update_us"], "o:", color=BARE, lw=1.2, ms=3)
        axis.annotate(
            f"one update, K^{entry['update_exponent']:.2f}",
            (arms[-1], entry["update_us"][-1]),
            xytext=(0, -12),
            textcoords="offset points",
            ha="right",
            color=BARE,
            fontsize=8.5,
        )
        title_of(axis, f"{entry['matroid']}, D = {entry['rank']}")
        axis.set_xlabel("arms K")
        axis.margins(y=0.18)
    axes[0].set_ylabel("microseconds per round")
    save(figure, path)


def plot_class(curves: Any, path: str | Path) -> None:
    """Regret of every policy on one instance, 95 % bands, the theorem's bound and the lower bound (log-log)."""
    figure, axis = figure_of(9.0, 5.2)
    runs = curves.comparison
    ends, labels, colours = [], [], []
    for i, name in enumerate(runs.runs):
        mean, error = runs.mean_regret(name), runs.standard_error(name)
        colour = SERIES[i % len(SERIES)]
        style = "-" if i < len(SERIES) else "--"
        axis.plot(runs.rounds, mean, style, color=colour, linewidth=1.6)
        axis.fill_between(
            runs.rounds, mean - 1.96 * error, mean + 1.96 * error, color=colour, alpha=0.15, linewidth=0
        )
        ends.append(float(mean[-1]))
        labels.append(name)
        colours.append(colour)
    for values, name in ((curves.bound, "bound of the theorem"), (curves.lower, "lower bound")):
        axis.plot(runs.rounds, values, color=BARE, linewidth=1.2, linestyle=":")
        ends.append(float(values[-1]))
        labels.append(name)
        colours.append(BARE)
    axis.set_xscale("log")
    axis.set_yscale("log")
    positive = [value for value in ends if value > 0.0]
    axis.set_ylim(max(0.5, 0.02 * min(positive)), 3.0 * max(positive))
    axis.set_xlim(1, runs.rounds[-1])
    low, high = np.log(axis.get_ylim())
    heights = [(np.log(max(value, 1e-12)) - low) / (high - low) for value in ends]
    shown = [i for i, height in enumerate(heights) if height > 0.0]
    places = apart([heights[i] for i in shown], 0.042)
    for i, height in zip(shown, places, strict=True):
        axis.text(
            1.01, height, labels[i], transform=axis.transAxes, color=colours[i], fontsize=8.5, va="center"
        )
    plain_ticks(axis, "xy")
    axis.set_xlabel("round", color=INK)
    axis.set_ylabel("cumulative regret", color=INK)
    repeats = len(next(iter(runs.runs.values())))
    title_of(axis, f"Regret, {curves.name}", f"{curves.matroid!r}, Bernoulli, {repeats} repeats, 95 % bands")
    save(figure, path)
