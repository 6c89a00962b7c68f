"""A recording as one HTML page with a slider; it needs no network."""

from __future__ import annotations

import json
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray
from semibandit.errors import ParameterError
from semibandit.matroids import Graphic
from semibandit.report.style import page
from semibandit.report.svg import BOTTOM, LEFT, RIGHT, TOP, Axis, Line, line_chart
from semibandit.report.watch.recording import Recording

_MOST_LINKS = 5_000

_STYLE = """
main { max-width: 900px; }
.strip { max-width: 460px; }
.list { max-width: 520px; }
.watch { display: flex; gap: 12px; align-items: center; margin: 10px 0 2px; }
.watch input { flex: 1; min-width: 0; accent-color: var(--c0); }
#caption { font-variant-numeric: tabular-nums; min-height: 3em; }
.edge { stroke: var(--rule); stroke-width: 1.5; }
.edge.best { stroke: var(--soft); stroke-dasharray: 2 4; stroke-width: 2; }
.edge.played { stroke: var(--c1); stroke-width: 4; stroke-dasharray: 9 4; }
.edge.played.best { stroke: var(--c0); stroke-width: 4.5; stroke-dasharray: none; }
.node { fill: var(--paper); stroke: var(--ink); stroke-width: 1.8; }
.span { fill: var(--c7); opacity: .35; }
.mean { fill: var(--c7); }
.true { stroke: var(--ink); stroke-width: 2; }
.row text { font: 12px system-ui, sans-serif; fill: var(--soft); }
.row.played text { fill: var(--ink); font-weight: 600; }
.row.played .span { fill: var(--c1); opacity: .5; }
.row.played .mean { fill: var(--c1); }
.row.played.best .span { fill: var(--c0); }
.row.played.best .mean { fill: var(--c0); }
.limit { stroke: var(--soft); stroke-dasharray: 4 4; }
.now { fill: var(--ink); }
.key i { display: inline-block; width: 26px; height: 0; border-top: 4px solid; margin-right: 6px;
  vertical-align: middle; }
"""

# `show(frame)` of each kind is added; the slider, the button and the caption are the same for both.
_SCRIPT = """
const data = JSON.parse(document.getElementById("data").textContent);
const slider = document.getElementById("at"), button = document.getElementById("play");
const caption = document.getElementById("caption"), now = document.getElementById("now");
SHOW
function go(i) {
  const frame = data.frames[i];
  slider.value = i;
  slider.setAttribute("aria-valuetext", frame.caption);
  caption.textContent = frame.caption;
  now.setAttribute("cx", frame.x); now.setAttribute("cy", frame.y);
  show(frame);
}
let timer = null;
function stop() { clearInterval(timer); timer = null; button.textContent = "Play"; }
function play() {
  if (Number(slider.value) >= data.frames.length - 1) go(0);
  button.textContent = "Pause";
  timer = setInterval(() => {
    const next = Number(slider.value) + 1;
    if (next >= data.frames.length) stop(); else go(next);
  }, 180);
}
button.addEventListener("click", () => timer === null ? play() : stop());
slider.addEventListener("input", () => { stop(); go(Number(slider.value)); });
const asked = parseInt(location.hash.slice(1), 10);
go(Number.isNaN(asked) ? 0 : Math.max(0, Math.min(asked, data.frames.length - 1)));
"""

_SHOW_NETWORK = """
const edges = [...document.querySelectorAll(".edge")], best = new Set(data.best);
function show(frame) {
  const played = new Set(frame.arms);
  edges.forEach((edge, k) => {
    edge.classList.toggle("played", played.has(k));
    edge.classList.toggle("best", best.has(k));
    if (played.has(k)) edge.parentNode.appendChild(edge);
  });
}
"""

_SHOW_LIST = """
const rows = [...document.querySelectorAll(".row")], best = new Set(data.best);
const [left, right] = data.pixels, [low, high] = data.range;
const at = value => left + (Math.min(Math.max(value, low), high) - low) / (high - low) * (right - left);
function show(frame) {
  const played = new Set(frame.arms);
  for (const row of rows) {
    const k = Number(row.dataset.row), mean = frame.means[k], index = frame.index[k];
    row.classList.toggle("played", played.has(k));
    row.classList.toggle("best", best.has(k));
    const span = row.querySelector(".span"), dot = row.querySelector(".mean");
    const from = mean === null ? left : at(mean), to = mean === null ? right : index === null ? from : at(index);
    span.setAttribute("x", Math.min(from, to)); span.setAttribute("width", Math.abs(to - from));
    dot.setAttribute("visibility", mean === null ? "hidden" : "visible");
    dot.setAttribute("cx", from);
    row.querySelector(".n").textContent = frame.counts[k].toLocaleString("en");
  }
}
"""


def network_page(
    recording: Recording, positions: npt.ArrayLike, title: str = "A spanning tree, learning"
) -> str:
    """The links of a `Graphic` matroid on a map, with the played tree at every frame. O(frames K)."""
    matroid = recording.env.matroid
    if not isinstance(matroid, Graphic):
        raise ParameterError(f"a network needs a Graphic matroid, got {matroid!r}")
    if matroid.n_arms > _MOST_LINKS:
        raise ParameterError(
            f"the network has {matroid.n_arms:,} links: a page can show at most {_MOST_LINKS:,}"
        )
    places = fit(positions, matroid.n_vertices, 800, 500, 18)
    lines = [
        f'<line class="edge" x1="{places[a, 0]:.1f}" y1="{places[a, 1]:.1f}" '
        f'x2="{places[b, 0]:.1f}" y2="{places[b, 1]:.1f}"/>'
        for a, b in zip(matroid._tail.tolist(), matroid._head.tolist(), strict=True)
    ]
    radius = 6.0 * min(1.0, (40 / len(places)) ** 0.5)
    nodes = [f'<circle class="node" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>' for x, y in places]
    picture = (
        '<svg viewBox="0 0 800 500" role="img" aria-label="the network">'
        f"<g>{''.join(lines)}</g>{''.join(nodes)}</svg>"
    )
    key = (
        '<ul class="key"><li><i style="border-color:var(--c0)"></i>played, in the best tree</li>'
        '<li><i style="border-color:var(--c1);border-top-style:dashed"></i>played, not in the best tree</li>'
        '<li><i style="border-color:var(--soft);border-top:2px dotted"></i>in the best tree, not played</li></ul>'
    )
    frames = [{"arms": frame.arms} for frame in recording.frames]
    return _page(recording, title, picture + key, frames, _SHOW_NETWORK, {})


def fit(positions: npt.ArrayLike, n: int, width: float, height: float, margin: float) -> FloatArray:
    """Places scaled into a frame of this size, north up, proportions kept."""
    places = np.asarray(positions, dtype=np.float64)
    if places.shape != (n, 2) or not np.isfinite(places).all():
        raise ParameterError(f"positions must be {n} pairs of finite numbers, got shape {places.shape}")
    low, high = places.min(axis=0), places.max(axis=0)
    scale = min(
        (width - 2 * margin) / max(high[0] - low[0], 1e-9),
        (height - 2 * margin) / max(high[1] - low[1], 1e-9),
    )
    middle = (low + high) / 2
    moved = (places - middle) * (scale, -scale)
    return np.asarray(moved + (width / 2, height / 2))


def list_page(recording: Recording, title: str = "A list, learning") -> str:
    """Arms, best first, each with its mean and index; the played ones stand out. O(frames K).

    Of many arms 60 are shown: the best base, and those that were tried most.
    """
    env, shown = recording.env, recording.shown()
    low, high = env.reward_range
    names = [recording.name(k) for k in shown]
    left, right, tall = 62.0 if max(map(len, names)) <= 8 else 154.0, 350.0, 24
    rows = []
    for i, (k, name) in enumerate(zip(shown, names, strict=True)):
        y = 12 + tall * i
        mark = left + (float(env.means[k]) - low) / (high - low) * (right - left)
        rows.append(
            f'<g class="row" data-row="{i}"><text x="{left - 8}" y="{y + 4}" text-anchor="end">{escape(name)}</text>'
            f'<rect class="span" y="{y - 6}" height="12" x="{left}" width="0"/>'
            f'<path class="true" d="M{mark:.1f} {y - 8}V{y + 8}"/><circle class="mean" r="5" cy="{y}" cx="{left}"/>'
            f'<text class="n" x="412" y="{y + 4}" text-anchor="end"></text></g>'
        )
    cut = 12 + tall * len(recording.best) - tall / 2
    picture = (
        f'<svg class="list" viewBox="0 0 420 {12 + tall * len(shown)}" role="img" '
        'aria-label="arms with their confidence bars">'
        f'<path class="limit" d="M0 {cut}H420"/>{"".join(rows)}</svg>'
    )
    some = f"{len(shown)} of {env.n_arms:,} arms. " if len(shown) < env.n_arms else ""
    key = (
        f'<p class="soft">{some}Dot: mean so far. Bar: from there to the index, the best that it may be (all the '
        "way for an arm never tried). Tick: the true mean. Right: how often tried. Above the dashed line: the best "
        "choice. Coloured: played in this round (blue: rightly, orange: not).</p>"
    )
    row_of = {k: i for i, k in enumerate(shown)}
    frames = [
        {
            "arms": [row_of[k] for k in one.arms if k in row_of],
            "counts": [one.counts[k] for k in shown],
            "means": [_rounded(one.means[k]) for k in shown],
            "index": [_rounded(one.index[k]) for k in shown],
        }
        for one in recording.frames
    ]
    best = [row_of[k] for k in recording.best]
    return _page(
        recording,
        title,
        picture + key,
        frames,
        _SHOW_LIST,
        {"pixels": [left, right], "range": [low, high], "best": best},
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _page(
    recording: Recording,
    title: str,
    picture: str,
    frames: list[dict[str, Any]],
    show: str,
    more: dict[str, Any],
) -> str:
    rounds = np.array([frame.round for frame in recording.frames], dtype=np.float64)
    regret = np.array([frame.regret for frame in recording.frames])
    strip, places = _strip(rounds, regret)
    for frame, one, (x, y) in zip(frames, recording.frames, places, strict=True):
        frame.update(caption=recording.caption(one), x=round(x, 1), y=round(y, 1))
    data = json.dumps(
        {"best": recording.best, "frames": frames, **more}, allow_nan=False, separators=(",", ":")
    )
    body = (
        f"<h1>{escape(title)}</h1>"
        f'<p class="soft">{escape(repr(recording.env.matroid))}, policy {escape(recording.policy)}</p>'
        f"{picture}"
        '<div class="watch"><button type="button" id="play">Play</button>'
        f'<input type="range" id="at" min="0" max="{len(frames) - 1}" value="0" aria-label="round"></div>'
        f'<p id="caption"></p>{strip}<noscript>The slider needs JavaScript.</noscript>'
        f'<script type="application/json" id="data">{data.replace("<", chr(92) + "u003c")}</script>'
    )
    return page(title, body, _STYLE, _SCRIPT.replace("SHOW", show))


def _strip(rounds: FloatArray, regret: FloatArray) -> tuple[str, list[tuple[float, float]]]:
    """Regret over rounds with a dot that marks the frame, and where that dot is at every frame."""
    width, height = 400, 160
    line = Line(0, "regret", rounds, regret)
    chart = line_chart(
        [line], (width, height), True, False, "Regret", "round", "cumulative regret", "strip", False
    )
    x = Axis(float(rounds[0]), max(float(rounds[-1]), 1.01 * float(rounds[0])), LEFT, width - RIGHT, True)
    y = Axis(0.0, (float(regret.max()) or 1.0) * 1.04, height - BOTTOM, TOP)
    dot = '<circle id="now" class="now" r="5" cx="0" cy="0"/></svg>'
    return chart.removesuffix("</svg>") + dot, list(
        zip(x.at(rounds).tolist(), y.at(regret).tolist(), strict=True)
    )
