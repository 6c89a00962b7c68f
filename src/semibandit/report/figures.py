"""Figures of an experiment for papers (extra ``plot``): regret, time per round, cost against regret."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from semibandit.checks import one_of
from semibandit.report.canvas import (
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
from semibandit.report.data import Sweep, World

KINDS = ("regret", "time", "cost")
_MOST_COLUMNS = 3


def plot_sweep(
    sweep: Sweep, kind: str, path: str | Path, instance: str | None = None, scale: str = "linear"
) -> None:
    """Draw one kind of figure, a panel per instance (or `instance` alone), to a PNG, SVG or PDF file.

    `scale` is for regret: ``"linear"``, ``"semi"`` (logarithmic rounds) or ``"log"`` (both axes).
    """
    one_of(kind, "kind", KINDS)
    one_of(scale, "scale", SCALES)
    worlds = sweep.worlds if instance is None else [sweep.world(instance)]
    columns = min(_MOST_COLUMNS, len(worlds))
    rows = -(-len(worlds) // columns)
    figure, axes = figure_of(7.2 * columns, 4.4 * rows, columns, rows=rows, squeeze=False)
    for axis, world in zip(np.ravel(axes), worlds, strict=False):
        _DRAW[kind](axis, world, scale)
    for axis in np.ravel(axes)[len(worlds) :]:
        axis.set_visible(False)
    save(figure, path)


def save_figures(sweep: Sweep, folder: str | Path) -> list[Path]:
    """Every kind of figure of every instance as PNG and SVG; returns what was written."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for number_, world in enumerate(sweep.worlds, 1):
        slug = re.sub(r"[^a-z0-9]+", "-", world.label.lower()).strip("-")[:40]
        stem = f"{number_}-{slug}" if slug else str(number_)
        for kind, scale, name in (
            ("regret", "linear", "regret"),
            ("regret", "semi", "regret-semi"),
            ("regret", "log", "regret-log"),
            ("time", "", "time"),
            ("cost", "", "cost"),
        ):
            for suffix in (".png", ".svg"):
                path = folder / f"{name}-{stem}{suffix}"
                plot_sweep(sweep, kind, path, world.label, scale or "linear")
                written.append(path)
    return written


def _short(text: str) -> str:
    return plain(text if len(text) <= 34 else text[:31] + "...")


def _timed(world: World, label: str, path: str) -> str:
    """A label beside a time: the path is told where there are two, because they do not compare."""
    return _short(label) if len(world.paths) == 1 else f"{_short(label)} ({path})"


def _colour(index: int) -> str:
    return SERIES[index % len(SERIES)]


def _regret(axis: Any, world: World, scale: str) -> None:
    ends = []
    for i, entry in enumerate(world.entries):
        mean, half = entry.mean_regret, entry.half_regret
        dash = "--" if i >= len(SERIES) else "-"
        axis.plot(entry.rounds, mean, color=_colour(i), linewidth=1.8, linestyle=dash)
        if half is not None:
            axis.fill_between(
                entry.rounds, mean - half, mean + half, color=_colour(i), alpha=0.15, linewidth=0
            )
        ends.append((float(entry.rounds[-1]), float(mean[-1]), _short(entry.label), _colour(i)))
    regret_axes(axis, scale, int(world.entries[0].rounds[-1]))
    few, most = (pick(len(entry.regret) for entry in world.entries) for pick in (min, max))
    count = f"{most}" if few == most else f"{few} to {most}"
    below = f"mean of {count} repeats, 95 % intervals" if most > 1 else "one repeat"
    title_of(axis, _short(world.label), below)
    label_ends(axis, ends, gap=0.055)


def _time(axis: Any, world: World, scale: str) -> None:
    del scale
    ends = []
    for i, entry in enumerate(world.entries):
        x, y = entry.time_curve()
        if not len(x):
            continue
        axis.plot(x, y, color=_colour(i), linewidth=1.6, marker="o", markersize=3)
        ends.append((float(x[-1]), float(y[-1]), _timed(world, entry.label, entry.path), _colour(i)))
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("round")
    axis.set_ylabel("microseconds per round")
    plain_ticks(axis, "xy")
    title_of(axis, _short(world.label), "select and update, median of the repeats")
    label_ends(axis, ends, gap=0.055)


def _cost(axis: Any, world: World, scale: str) -> None:
    del scale
    for i, entry in enumerate(world.entries):
        mean, half = entry.final
        axis.errorbar(entry.microseconds, mean, yerr=half, fmt="o", color=_colour(i), capsize=3)
        axis.annotate(
            _timed(world, entry.label, entry.path),
            (entry.microseconds, mean),
            (7, 5),
            textcoords="offset points",
            fontsize=8.5,
            color=_colour(i),
        )
    axis.set_xscale("log")
    low, high = axis.get_xlim()
    axis.set_xlim(low / 1.5, high * 4)
    axis.set_ylim(bottom=0)
    axis.set_xlabel("microseconds per round")
    axis.set_ylabel("final regret")
    plain_ticks(axis, "x")
    title_of(axis, _short(world.label), "down and to the left is better")


_DRAW = {"regret": _regret, "time": _time, "cost": _cost}
