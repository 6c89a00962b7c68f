"""Draws docs/matroids.png: one base of each matroid class. Run from the project's root."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

import semibandit as sb

INK, PLAYED, FAINT = "#222222", "#1257a6", "#b9b9b9"
WEIGHTS = [0.2, 0.9, 0.4, 0.8, 0.3, 0.7, 0.6, 0.5]


def dots(axis: Any, places: list[tuple[float, float]], base: Any) -> None:
    for arm, (x, y) in enumerate(places):
        axis.plot(x, y, "o", markersize=15, color=PLAYED if arm in base else "white", markeredgecolor=INK)
        axis.text(x, y, str(arm), ha="center", va="center", fontsize=8, color="white" if arm in base else INK)


def box(axis: Any, x: float, y: float, width: float, height: float, text: str) -> None:
    style = "round,pad=0.02,rounding_size=0.12"
    axis.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=style, fill=False, edgecolor=FAINT))
    axis.text(x + width, y + height + 0.06, text, ha="right", fontsize=8, color="#666666")


def main() -> None:
    figure = Figure(figsize=(12.5, 2.7), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, 5)
    grid = [(k % 4, 1.0 - k // 4) for k in range(8)]
    for axis, title in zip(axes, ("uniform", "partition", "laminar", "graphic", "transversal"), strict=True):
        axis.set_title(title, loc="left", fontsize=11, fontweight="bold", color=INK)
        axis.set_axis_off()
        axis.set_xlim(-0.7, 3.7)
        axis.set_ylim(-0.8, 1.9)
    dots(axes[0], grid, sb.Uniform(8, 3).max_weight_base(WEIGHTS))
    axes[0].text(1.5, -0.7, "any 3 of 8", ha="center", fontsize=9)
    partition = sb.Partition([0, 0, 1, 1, 0, 0, 1, 1], [1, 2])
    box(axes[1], -0.4, -0.4, 1.8, 1.8, "at most 1")
    box(axes[1], 1.6, -0.4, 1.8, 1.8, "at most 2")
    dots(axes[1], grid, partition.max_weight_base(WEIGHTS))
    laminar = sb.Laminar(8, [(range(8), 3), ([0, 1, 4, 5], 2), ([1, 5], 1)])
    box(axes[2], -0.6, -0.55, 4.2, 2.15, "at most 3")
    box(axes[2], -0.45, -0.4, 1.9, 1.65, "2")
    box(axes[2], 0.68, -0.3, 0.64, 1.4, "1")
    dots(axes[2], grid, laminar.max_weight_base(WEIGHTS))
    edges = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 4), (2, 4), (3, 4)]
    at = [(0.0, 0.2), (1.0, 1.5), (2.0, 0.4), (1.2, -0.5), (3.2, 1.1)]
    tree = sb.Graphic(edges).max_weight_base(WEIGHTS)
    for arm, (a, b) in enumerate(edges):
        chosen = arm in tree
        line = {"color": PLAYED if chosen else FAINT, "linewidth": 3.5 if chosen else 1.2}
        axes[3].plot([at[a][0], at[b][0]], [at[a][1], at[b][1]], zorder=1, **line)
    for x, y in at:
        axes[3].plot(x, y, "o", markersize=7, color="white", markeredgecolor=INK, zorder=2)
    axes[3].text(1.5, -0.78, "arms are links, a base is a spanning tree", ha="center", fontsize=8)
    slots = [[0], [0, 1], [1], [1, 2], [2]]
    matched = sb.Transversal(slots, 3).max_weight_base(WEIGHTS[:5])
    left = [(0.2, 1.6 - 0.55 * k) for k in range(5)]
    right = [(2.9, 1.3 - 0.8 * k) for k in range(3)]
    for arm, places in enumerate(slots):
        for slot in places:
            ends = [left[arm][0], right[slot][0]], [left[arm][1], right[slot][1]]
            axes[4].plot(*ends, color=PLAYED if arm in matched else FAINT, linewidth=1.2, zorder=1)
    dots(axes[4], left, matched)
    for k, (x, y) in enumerate(right):
        axes[4].plot(x, y, "s", markersize=13, color="white", markeredgecolor=INK)
        axes[4].text(x, y, "ABC"[k], ha="center", va="center", fontsize=8)
    figure.savefig(Path(__file__).with_name("matroids.png"), dpi=130)


if __name__ == "__main__":
    main()
