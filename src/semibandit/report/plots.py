"""Pictures (extra ``plot``): regret of compared policies, benchmark results, the demo.

matplotlib is imported when a picture is drawn, never before; a picture needs no display. Lines are labelled
where they end, so that no legend has to be matched by colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from semibandit.bench.tables import duration, number
from semibandit.errors import MissingExtraError
from semibandit.simulation.result import Comparison

OURS, RIVAL, BARE, INK, FAINT = "#1257a6", "#c8601c", "#7a7a7a", "#222222", "#d8d8d8"
SERIES = ("#1257a6", "#c8601c", "#2a8a57", "#8a3f98", "#8c6d1f", "#b8324a", "#3f7f8c", "#5a5a5a")


def _figure(width: float, height: float, columns: int = 1, rows: int = 1, **options: Any) -> tuple[Any, Any]:
    """A figure drawn straight to a file, and its axes."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError(
            "pictures need matplotlib: install it with `pip install semibandit[plot]`"
        ) from None
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, **options)
    for axis in np.ravel(axes):
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(True, which="major", color=FAINT, linewidth=0.6)
        axis.set_axisbelow(True)
        axis.tick_params(which="both", colors=INK, labelsize=9)
    return figure, axes


def _save(figure: Any, path: str | Path) -> None:
    figure.savefig(Path(path), dpi=140)


def _title(axis: Any, text: str, below: str = "") -> None:
    axis.set_title(text, loc="left", fontsize=11, fontweight="bold", color=INK, pad=22 if below else 8)
    if below:
        axis.text(0, 1.02, below, transform=axis.transAxes, fontsize=8.5, color="#555555", va="bottom")


def _plain_ticks(axis: Any, which: str) -> None:
    """1,000 in place of 10^3, and no labels between the decades."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    for name in which:
        side = axis.xaxis if name == "x" else axis.yaxis
        side.set_major_formatter(FuncFormatter(lambda value, _: number(value, 1)))
        side.set_minor_formatter(NullFormatter())


def _apart(heights: Sequence[float], gap: float) -> list[float]:
    """Heights near these, in the same order, at least `gap` apart and between 0 and 1. O(n^2)."""
    order = np.argsort(heights, kind="stable")
    wanted = np.asarray(heights, dtype=float)[order]
    placed = wanted.copy()
    for _ in range(200):
        placed[0] = max(placed[0], 0.01)
        placed[-1] = min(placed[-1], 0.99)
        moved = False
        for i in range(len(placed) - 1):
            missing = gap - (placed[i + 1] - placed[i])
            if missing > 1e-9:
                placed[i] -= missing / 2
                placed[i + 1] += missing / 2
                moved = True
        if not moved:
            break
    out = np.empty(len(placed))
    out[order] = placed
    return [float(height) for height in out]


def _label_ends(
    axis: Any, ends: Sequence[tuple[float, float, str, str]], gap: float = 0.045, size: float = 8.5
) -> None:
    """Write each label to the right of the end (x, y) of its line, in its colour, moved apart where they meet."""
    to_axis = axis.transData + axis.transAxes.inverted()
    heights = [float(to_axis.transform((x, y))[1]) for x, y, _, _ in ends]
    for (x, y, text, colour), height in zip(ends, _apart(heights, gap), strict=True):
        axis.annotate(
            text,
            xy=(x, y),
            xytext=(1.02, height),
            textcoords="axes fraction",
            color=colour,
            fontsize=size,
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.5, "alpha": 0.5, "shrinkB": 2},
        )


def plot_comparison(comparison: Comparison, path: str | Path, title: str = "Regret") -> None:
    """Mean cumulative regret over rounds with a band of two standard errors, a line per policy. O(checkpoints)."""
    figure, axis = _figure(9.0, 4.8)
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
    _plain_ticks(axis, "x")
    repeats = len(next(iter(comparison.runs.values())))
    _title(axis, title, f"mean of {repeats} runs on the same reward streams; band: two standard errors")
    _label_ends(axis, ends)
    _save(figure, path)


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
    axis.set_ylabel("microseconds a round")
    _plain_ticks(axis, "xy")
    _title(
        axis,
        "Time per round over K",
        f"{scaling['matroid']}, D = {scaling['rank']:,}, {scaling['phase']}; exponent fitted from "
        f"K = {scaling['fit_from']:,}",
    )
    _label_ends(axis, ends)


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
    axis.set_xlabel("microseconds a round (each in its fastest way)")
    _plain_ticks(axis, "x")
    _title(
        axis,
        "Case by case",
        "blue: semibandit; orange: rivals; grey bar: the bare loop, which decides nothing",
    )


def plot_bench(result: dict[str, Any], path: str | Path) -> None:
    """A benchmark result (see `semibandit.bench.runner`) on logarithmic axes."""
    cases = [case for case in result["cases"] if not case.get("part_of_scaling")]
    panels = len(result["scaling"]) + bool(cases)
    height = max(4.8, 1.6 + 0.55 * len(cases))
    figure, axes = _figure(9.5 * panels, height, panels, squeeze=False)
    for axis, scaling in zip(axes[0], result["scaling"], strict=False):
        _draw_scaling(axis, scaling)
    if cases:
        _draw_cases(axes[0][-1], cases)
    _save(figure, path)


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
            f"semibandit\n{number(data['us'])} us a round\n{rounds}\nin {duration(mine[-1])}",
        ),
        (
            between,
            height,
            "center",
            RIVAL,
            f"{data['rival']}\n{number(data['rival_us'])} us a round\nthe same rounds\nin {duration(theirs[-1])}",
        ),
    ):
        axis.text(x, y, text, color=colour, fontsize=10, fontweight="bold", ha=across, va="center")
    _title(
        axis,
        f"{data['arms']:,} arms, {data['rank']} a round: the same decisions, sooner",
        "average regret of a round so far; numpy measured up to the dot, then projected",
    )


def _draw_classes(axis: Any, classes: Sequence[dict[str, Any]]) -> None:
    """Two dots a class: our time a round and that of sorting all weights every round."""
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
    axis.set_xlabel("microseconds a round")
    _plain_ticks(axis, "x")
    _title(axis, "Time per round", "blue: semibandit; orange: sorting all weights every round (numpy)")


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
    _plain_ticks(axis, "x")
    _title(axis, "Learning", "average regret of a round so far, as far as each class came in a few seconds")
    _label_ends(axis, ends, gap=0.05, size=9)


def plot_demo(million: dict[str, Any], classes: Sequence[dict[str, Any]], path: str | Path) -> None:
    """The demo in one picture: a million arms against numpy, every matroid class, and what is learnt."""
    figure, axes = _figure(18.5, 5.6, 3, gridspec_kw={"width_ratios": [1.15, 1, 0.95]})
    figure.get_layout_engine().set(wspace=0.06)
    _draw_million(axes[0], million)
    _draw_classes(axes[1], classes)
    _draw_learning(axes[2], classes)
    _save(figure, path)


def plot_class(curves: Any, path: str | Path) -> None:
    """Regret of every policy on one instance, 95 % bands, the theorem's bound and the lower bound (log-log)."""
    figure, axis = _figure(9.0, 5.2)
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
    apart = _apart([heights[i] for i in shown], 0.042)
    for i, height in zip(shown, apart, strict=True):
        axis.text(
            1.01, height, labels[i], transform=axis.transAxes, color=colours[i], fontsize=8.5, va="center"
        )
    _plain_ticks(axis, "xy")
    axis.set_xlabel("round", color=INK)
    axis.set_ylabel("cumulative regret", color=INK)
    repeats = len(next(iter(runs.runs.values())))
    _title(axis, f"Regret, {curves.name}", f"{curves.matroid!r}, Bernoulli, {repeats} repeats, 95 % bands")
    _save(figure, path)
