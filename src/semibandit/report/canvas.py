"""What all pictures share (extra ``plot``): a figure, colours, ticks, and labels at the ends of lines.

matplotlib is imported when a picture is drawn, never before; a picture needs no display. Lines are labelled
where they end, so that no legend has to be matched by colour.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from semibandit.errors import MissingExtraError
from semibandit.text import needs, number

OURS, RIVAL, BARE, INK, FAINT = "#1257a6", "#c8601c", "#7a7a7a", "#222222", "#d8d8d8"
SERIES = ("#1257a6", "#c8601c", "#2a8a57", "#8a3f98", "#8c6d1f", "#b8324a", "#3f7f8c", "#5a5a5a")

# Of regret over rounds: both axes linear, rounds logarithmic, both logarithmic. The first is where learning shows.
SCALES = ("linear", "semi", "log")


def figure_of(
    width: float, height: float, columns: int = 1, rows: int = 1, **options: Any
) -> tuple[Any, Any]:
    """A figure drawn straight to a file, and its axes. A notebook shows it without further ado."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError(needs("a picture", "matplotlib")) from None

    class Picture(Figure):
        def _repr_png_(self) -> bytes:
            out = io.BytesIO()
            self.savefig(out, format="png", dpi=110)
            return out.getvalue()

    figure = Picture(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, **options)
    for axis in np.ravel(axes):
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(True, which="major", color=FAINT, linewidth=0.6)
        axis.set_axisbelow(True)
        axis.tick_params(which="both", colors=INK, labelsize=9)
    return figure, axes


def save(figure: Any, path: str | Path) -> None:
    """Write a figure to a file."""
    figure.savefig(Path(path), dpi=140)


def title_of(axis: Any, text: str, below: str = "") -> None:
    """A title in bold, and a smaller line below it."""
    axis.set_title(text, loc="left", fontsize=11, fontweight="bold", color=INK, pad=22 if below else 8)
    if below:
        # In points, so that it stays under the title however tall the picture is.
        axis.annotate(
            below,
            (0, 1),
            xycoords="axes fraction",
            xytext=(0, 6),
            textcoords="offset points",
            fontsize=8.5,
            color="#555555",
            va="bottom",
        )


def plain_ticks(axis: Any, which: str) -> None:
    """1,000 in place of 10^3, and no labels between the decades."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    for name in which:
        side = axis.xaxis if name == "x" else axis.yaxis
        side.set_major_formatter(FuncFormatter(lambda value, _: number(value, 1)))
        side.set_minor_formatter(NullFormatter())


def plain(text: str) -> str:
    """matplotlib reads $...$ as mathematics; a name is text."""
    return text.replace("$", r"\$")


def regret_axes(axis: Any, scale: str, last: int) -> None:
    """Axes of cumulative regret over rounds 1 .. `last`, on one of `SCALES`."""
    from matplotlib.ticker import FuncFormatter

    whole = FuncFormatter(lambda value, _: f"{value:,.10g}")
    if scale == "linear":
        axis.set_xlim(0, last)
        axis.xaxis.set_major_formatter(whole)
    else:
        axis.set_xscale("log")
        axis.set_xlim(max(1, last / 1000), max(2, last))
        plain_ticks(axis, "x")
    if scale == "log":
        axis.set_yscale("log")
        plain_ticks(axis, "y")
    else:
        axis.set_ylim(bottom=0)
        axis.yaxis.set_major_formatter(whole)
    axis.set_xlabel("round")
    axis.set_ylabel("cumulative regret")


def apart(heights: Sequence[float], gap: float) -> list[float]:
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


def label_ends(
    axis: Any, ends: Sequence[tuple[float, float, str, str]], gap: float = 0.045, size: float = 8.5
) -> None:
    """Write each label to the right of the end (x, y) of its line, in its colour, moved apart where they meet."""
    to_axis = axis.transData + axis.transAxes.inverted()
    low = axis.get_ylim()[0]
    ends = [
        (x, max(y, low), text, colour) for x, y, text, colour in ends
    ]  # 0 is nowhere on a logarithmic axis
    heights = [float(to_axis.transform((x, y))[1]) for x, y, _, _ in ends]
    for (x, y, text, colour), height in zip(ends, apart(heights, gap), strict=True):
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
