"""A recording as an animation (GIF) or a picture of three of its rounds (extra ``plot``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from semibandit.arms import FloatArray
from semibandit.report.canvas import FAINT, INK, OURS, RIVAL, figure_of, save
from semibandit.report.watch.page import fit
from semibandit.report.watch.recording import Frame, Recording

_MILLISECONDS, _HOLD = 160, 2500


def save_picture(recording: Recording, path: str | Path, positions: Any = None) -> None:
    """Early, in between and at the end, side by side; a map if `positions` are given, else a list."""
    n = len(recording.frames)
    chosen = [recording.frames[i] for i in sorted({int(0.25 * n), int(0.6 * n), n - 1})]
    tall = 4.0 if positions is not None else max(3.2, 0.22 * len(recording.shown()))
    figure, axes = figure_of(5.2 * len(chosen), tall, len(chosen), squeeze=False)
    for axis, frame in zip(axes[0], chosen, strict=True):
        _draw(axis, recording, frame, positions)
    save(figure, path)


def save_animation(recording: Recording, path: str | Path, positions: Any = None) -> None:
    """All frames as a GIF that repeats, the last one held for a while."""
    from PIL import Image

    shots = []
    tall = 4.1 if positions is not None else max(3.4, 0.22 * len(recording.shown()))
    figure, axis = figure_of(6.4, tall)
    figure.set_dpi(100)
    for frame in recording.frames:
        axis.clear()
        _draw(axis, recording, frame, positions)
        figure.canvas.draw()
        figure.set_layout_engine("none")  # laid out once: nothing moves but what is learnt
        shots.append(Image.fromarray(np.asarray(figure.canvas.buffer_rgba())[..., :3].copy()))
    # One set of colours for all frames, or a colour that is rare in a frame would change there.
    some = np.vstack([np.asarray(shots[i]) for i in (0, len(shots) // 2, -1)])
    palette = Image.fromarray(some).quantize(64, dither=Image.Dither.NONE)
    pictures = [shot.quantize(palette=palette, dither=Image.Dither.NONE) for shot in shots]
    lengths = [_MILLISECONDS] * (len(pictures) - 1) + [_HOLD]
    pictures[0].save(
        Path(path), save_all=True, append_images=pictures[1:], duration=lengths, loop=0, optimize=True
    )


def _draw(axis: Any, recording: Recording, frame: Frame, positions: Any) -> None:
    if positions is None:
        _draw_list(axis, recording, frame)
    else:
        places = fit(positions, recording.env.matroid.n_vertices, 8.0, 5.0, 0.2)  # type: ignore[attr-defined]
        _draw_network(axis, recording, frame, places)
    right = len(set(frame.arms) & set(recording.best))
    axis.set_title(f"round {frame.round:,}", loc="left", fontsize=11, fontweight="bold", color=INK)
    axis.set_title(
        f"regret {frame.regret:,.1f};  {right} of {len(recording.best)} right",
        loc="right",
        fontsize=9.5,
        color=INK,
    )


def _draw_network(axis: Any, recording: Recording, frame: Frame, places: FloatArray) -> None:
    matroid: Any = recording.env.matroid
    played, best = set(frame.arms), set(recording.best)
    size = 6.0 * min(1.0, (40 / len(places)) ** 0.5)
    for k, (a, b) in enumerate(zip(matroid._tail.tolist(), matroid._head.tolist(), strict=True)):
        x, y = places[[a, b], 0], 5.0 - places[[a, b], 1]
        if k in played and k in best:
            axis.plot(x, y, color=OURS, linewidth=3.2, zorder=3, solid_capstyle="round")
        elif k in played:
            axis.plot(x, y, color=RIVAL, linewidth=2.8, zorder=2, linestyle=(0, (2.4, 1.2)))
        else:
            axis.plot(x, y, color=FAINT, linewidth=1.2, zorder=1)
    axis.plot(
        places[:, 0], 5.0 - places[:, 1], "o", color="white", markeredgecolor=INK, markersize=size, zorder=4
    )
    axis.set_xlim(0, 8)
    axis.set_ylim(0, 5)
    axis.set_aspect("equal")
    axis.axis("off")


def _draw_list(axis: Any, recording: Recording, frame: Frame) -> None:
    env = recording.env
    order = recording.shown()
    low, high = env.reward_range
    played, best = set(frame.arms), set(recording.best)
    for y, k in enumerate(order):
        colour = (OURS if k in best else RIVAL) if k in played else "#9a9a9a"
        mean, index = frame.means[k], frame.index[k]
        start = low if mean is None else mean
        end = high if mean is None else start if index is None else min(max(index, low), high)
        axis.barh(y, end - start, left=start, height=0.5, color=colour, alpha=0.45 if k in played else 0.25)
        if mean is not None:
            axis.plot(mean, y, "o", color=colour, markersize=5)
        axis.plot([env.means[k]] * 2, [y - 0.36, y + 0.36], color=INK, linewidth=1.4)
    axis.axhline(len(best) - 0.5, color="#777777", linewidth=0.8, linestyle="--")
    axis.set_yticks(range(len(order)), [recording.name(k) for k in order], fontsize=8)
    axis.set_ylim(len(order) - 0.4, -0.6)
    axis.set_xlim(low - 0.02 * (high - low), high + 0.02 * (high - low))
    axis.set_axisbelow(True)
    axis.grid(True, axis="x", color=FAINT, linewidth=0.6)
    axis.grid(False, axis="y")
    axis.set_xlabel("mean (dot), index (bar), true mean (tick)", fontsize=9)
