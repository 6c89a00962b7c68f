"""Charts as SVG that takes its colours from the page around it, so that it follows light and dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

import numpy as np

from semibandit.arms import FloatArray
from semibandit.report.canvas import apart
from semibandit.text import number

COLOURS = 8
# Room around the frame of a chart, in the units of its view box.
LEFT, RIGHT, TOP, BOTTOM = 52, 30, 28, 44


@dataclass(frozen=True)
class Line:
    """A curve with an optional band, drawn in the colour of its `index`."""

    index: int
    label: str
    x: FloatArray
    y: FloatArray
    half: FloatArray | None = None


@dataclass(frozen=True)
class Axis:
    """A scale from data to pixels: linear from 0, or logarithmic."""

    low: float
    high: float
    first: float
    last: float
    log: bool = False

    def at(self, value: FloatArray | float) -> FloatArray:
        """Pixels of `value`, kept within the frame."""
        given = np.asarray(value, dtype=np.float64)
        if self.log:
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.log(np.maximum(given, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = (given - self.low) / (self.high - self.low)
        return np.asarray(self.first + np.clip(share, 0.0, 1.0) * (self.last - self.first))

    def ticks(self, wanted: int = 5) -> list[float]:
        """Round numbers inside the range."""
        if self.log:
            decades = math.log10(self.high / self.low)
            steps = (1,) if decades >= 2.5 else (1, 3) if decades >= 1.4 else (1, 2, 5)
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            found = [s * 10.0**e for e in range(first, last + 1) for s in steps]
            found = [v for v in found if self.low * 0.999 <= v <= self.high * 1.001]
            stride = max(1, math.ceil(len(found) / (wanted + 2)))
            return found[::stride]
        rough = (self.high - self.low) / wanted
        size = 10.0 ** math.floor(math.log10(rough))
        step = next(s * size for s in (1, 2, 5, 10) if s * size >= rough * 0.999)
        first_tick = math.ceil(self.low / step - 1e-9)
        return [i * step for i in range(first_tick, int(self.high / step + 1e-9) + 1)]


def short(value: float) -> str:
    """A tick's number: 0.5, 300, 20k, 1M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


@dataclass
class Frame:
    """A chart under construction: a grid, labels, and what is drawn on them."""

    width: int
    height: int
    x: Axis
    y: Axis
    title: str
    x_label: str
    y_label: str
    body: list[str] = field(default_factory=list)

    def grid(self) -> None:
        """Lines and numbers of both axes."""
        left, right, top, bottom = self.x.first, self.x.last, self.y.last, self.y.first
        for value in self.y.ticks():
            y = float(self.y.at(value))
            self.body.append(f'<path class="g" d="M{left:.1f} {y:.1f}H{right:.1f}"/>')
            self.body.append(f'<text x="{left - 6:.1f}" y="{y + 4:.1f}" class="t e">{short(value)}</text>')
        for value in self.x.ticks(6 if self.width > 600 else 4):
            x = float(self.x.at(value))
            self.body.append(f'<path class="g" d="M{x:.1f} {top:.1f}V{bottom:.1f}"/>')
            self.body.append(f'<text x="{x:.1f}" y="{bottom + 17:.1f}" class="t m">{short(value)}</text>')
        self.body.append(f'<path class="a" d="M{left:.1f} {top:.1f}V{bottom:.1f}H{right:.1f}"/>')
        middle = (left + right) / 2
        self.body.append(
            f'<text x="{middle:.1f}" y="{bottom + 36:.1f}" class="t m">{escape(self.x_label)}</text>'
        )
        self.body.append(f'<text x="{left:.1f}" y="{top - 10:.1f}" class="t">{escape(self.y_label)}</text>')

    def badge(self, x: float, y: float, index: int) -> None:
        """The number of a policy, in its colour: colours alone do not tell policies apart for everyone."""
        self.body.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="9" class="b c{index % COLOURS}"/>'
            f'<text x="{x:.1f}" y="{y + 4:.1f}" class="n m">{index + 1}</text>'
        )

    def svg(self, classes: str = "") -> str:
        """The finished chart."""
        return (
            f'<svg class="chart {classes}" viewBox="0 0 {self.width} {self.height}" role="img" '
            f'aria-label="{escape(self.title)}"><title>{escape(self.title)}</title>{"".join(self.body)}</svg>'
        )


def _frame(
    size: tuple[int, int], x: tuple[float, float], y: tuple[float, float], log: tuple[bool, bool], *words: str
) -> Frame:
    width, height = size
    across = Axis(*x, LEFT, width - RIGHT, log[0])
    up = Axis(*y, height - BOTTOM, TOP, log[1])
    title, x_label, y_label = words
    return Frame(width, height, across, up, title, x_label, y_label)


def _points(x: FloatArray, y: FloatArray) -> str:
    return "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True))


def line_chart(
    lines: Sequence[Line],
    size: tuple[int, int],
    log_x: bool,
    log_y: bool,
    title: str,
    x_label: str,
    y_label: str,
    classes: str = "",
    badges: bool = True,
) -> str:
    """Curves with bands, and (with `badges`) each policy's number where its curve ends."""
    tops = [
        float(np.max(line.y + (0.0 if line.half is None else line.half))) for line in lines if len(line.y)
    ]
    top = max([*tops, 0.0]) or 1.0
    x_low = min(float(line.x[0]) for line in lines if len(line.x)) if log_x else 0.0
    x_high = max(float(line.x[-1]) for line in lines if len(line.x))
    if log_x:
        x_low, x_high = max(x_low, 1e-12), max(x_high, x_low * 1.01)
    y_low = 0.0
    if log_y:
        positive = [float(v) for line in lines for v in line.y if v > 0.0]
        y_low = max(min(positive, default=top / 10), top * 1e-5) * 0.9
    chart = _frame(
        size,
        (x_low, x_high),
        (y_low, top * (1.2 if log_y else 1.04)),
        (log_x, log_y),
        title,
        x_label,
        y_label,
    )
    chart.grid()
    for line in lines:
        across, colour = chart.x.at(line.x), f"c{line.index % COLOURS}"
        if line.half is not None:
            above, below = chart.y.at(line.y + line.half), chart.y.at(np.maximum(line.y - line.half, y_low))
            outline = f"M{_points(across, above)}L{_points(across[::-1], below[::-1])}Z"
            chart.body.append(f'<path class="f {colour}" d="{outline}"/>')
        dashed = " d" if line.index >= COLOURS else ""
        chart.body.append(f'<path class="l {colour}{dashed}" d="M{_points(across, chart.y.at(line.y))}"/>')
    span = chart.y.first - chart.y.last
    ends = [(chart.y.first - float(chart.y.at(float(line.y[-1])))) / span for line in lines]
    for line, height in zip(lines, apart(ends, 19 / span) if badges else [], strict=badges):
        chart.badge(size[0] - 14, chart.y.first - height * span, line.index)
    return chart.svg(classes)


def bar_chart(
    rows: Sequence[tuple[int, str, float, float]], size_x: int, title: str, unit: str, classes: str = ""
) -> str:
    """A bar a policy in two shades, (index, label, first part, second part), with the sum beside it."""
    top = max((a + b for _, _, a, b in rows), default=0.0) or 1.0
    height = 14 + 46 * len(rows)
    body, room = [], size_x - 36 - 84
    for i, (index, label, a, b) in enumerate(rows):
        y, colour = 8 + 46 * i, f"c{index % COLOURS}"
        wide_a, wide_b = room * a / top, room * b / top
        total = f"{number(a + b)} {unit}"
        body.append(
            f'<circle cx="13" cy="{y + 24}" r="9" class="b {colour}"/>'
            f'<text x="13" y="{y + 28}" class="n m">{index + 1}</text>'
            f'<text x="30" y="{y + 13}" class="t">{escape(_fit(label, size_x - 40))}</text>'
            f'<rect x="30" y="{y + 19}" width="{wide_a:.1f}" height="14" class="b {colour}"/>'
            f'<rect x="{30 + wide_a:.1f}" y="{y + 19}" width="{wide_b:.1f}" height="14" class="b h {colour}"/>'
            f'<text x="{36 + wide_a + wide_b:.1f}" y="{y + 31}" class="t">{escape(total)}</text>'
        )
    name = escape(title)
    return (
        f'<svg class="chart {classes}" viewBox="0 0 {size_x} {height}" role="img" aria-label="{name}">'
        f"<title>{name}</title>{''.join(body)}</svg>"
    )


def scatter_chart(
    points: Sequence[tuple[int, float, float, float | None]],
    size: tuple[int, int],
    title: str,
    x_label: str,
    y_label: str,
    classes: str = "",
) -> str:
    """A numbered dot a policy, (index, x, y, half of y's interval), x logarithmic."""
    xs = [max(x, 1e-6) for _, x, _, _ in points]
    top = max([y + (half or 0.0) for _, _, y, half in points] + [0.0]) or 1.0
    chart = _frame(size, (min(xs) / 2, max(xs) * 2), (0.0, top * 1.1), (True, False), title, x_label, y_label)
    chart.grid()
    for (index, _, y, half), x in zip(points, xs, strict=True):
        at = float(chart.x.at(x))
        if half is not None:
            low, high = float(chart.y.at(max(y - half, 0.0))), float(chart.y.at(y + half))
            chart.body.append(f'<path class="l c{index % COLOURS}" d="M{at:.1f} {low:.1f}V{high:.1f}"/>')
        chart.badge(at, float(chart.y.at(y)), index)
    return chart.svg(classes)


def _fit(label: str, pixels: int) -> str:
    most = max(8, int(pixels / 7))
    return label if len(label) <= most else label[: most - 1] + "…"
