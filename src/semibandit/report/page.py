"""The report of an experiment as one HTML page that needs no network."""

from __future__ import annotations

import json
from html import escape
from typing import Any

import numpy as np

from semibandit.report.data import Entry, Sweep, World, difference
from semibandit.report.style import REPORT_CSS, REPORT_SCRIPT, SCALES, page
from semibandit.report.svg import COLOURS, Line, bar_chart, line_chart, scatter_chart
from semibandit.simulation.result import MIDDLE, middle_of
from semibandit.text import number

_POINTS = 160
_WIDE, _SLIM, _SMALL = (1080, 400), (390, 320), (390, 300)
_LONGEST_LIST = 24


def report_html(sweep: Sweep) -> str:
    """The page. O(rows). Text from the experiment is escaped; nothing is loaded from anywhere.

    Regret with 95 % bands on three scales, final regret with paired differences, time per round, cost against regret,
    and the definition of the experiment.
    """
    told = sweep.definition
    repeats = int(told["repeats"])
    lead = (
        f"{len(told['instances'])} instance{_s(len(told['instances']))}, {len(told['policies'])} "
        f"{'policy' if len(told['policies']) == 1 else 'policies'}, {repeats} repeat{_s(repeats)}, "
        f"{int(told['rounds']):,} rounds, seed {told['seed']}."
    )
    bands = (
        "Lines are means over the repeats and bands their 95 % intervals (Student's t)."
        if repeats > 1
        else "One repeat only: there are no intervals. Give repeats = 10 or more for them."
    )
    buttons = "".join(
        f'<button type="button" data-scale="{name}" aria-pressed="{str(name == SCALES[0][0]).lower()}">{text}</button>'
        for name, text in SCALES
    )
    parts = [
        f"<h1>{escape(sweep.name)}</h1>",
        f'<p>{lead} <span class="soft">{bands} In a repeat all policies meet the same rewards.</span></p>',
        _missing(sweep),
        f'<div class="bar"><span class="soft">Axes of the regret figures:</span>{buttons}</div>',
        *[_world(world, repeats) for world in sweep.worlds],
        _definition(sweep),
    ]
    return page(sweep.name, "\n".join(parts), REPORT_CSS, REPORT_SCRIPT, f' data-scale="{SCALES[0][0]}"')


def _missing(sweep: Sweep) -> str:
    """What has not been run yet, if anything."""
    if not sweep.missing:
        return ""
    told = sweep.definition
    total = len(told["instances"]) * len(told["policies"]) * int(told["repeats"])
    count = sum(n for _, _, n in sweep.missing)
    items = "".join(f"<li>{escape(line)}</li>" for line in sweep.told_missing()[:_LONGEST_LIST])
    more = len(sweep.missing) - _LONGEST_LIST
    rest = f"<li>and {more} more</li>" if more > 0 else ""
    return (
        f'<p class="bad">Not finished: {count:,} of {total:,} runs are missing. '
        "Go on with the same <code>semibandit run</code>, then write this page anew.</p>"
        f"<details><summary>What is missing</summary><ul>{items}{rest}</ul></details>"
    )


def _winner(world: World) -> str:
    """Who lost least, and whether that is more than luck."""
    order = [world.entries[i] for i in world.ranking()]
    dots = [_dot(i) for i in world.ranking()]
    if len(order) < 2:
        return ""
    first = f"{dots[0]}<strong>{escape(order[0].label)}</strong>"
    second = f"{dots[1]}{escape(order[1].label)}"
    mean, half = difference(order[1], order[0]) or (0.0, None)
    if half is None:
        return f"<p>Least regret: {first}; then {second}. One shared repeat or none: this may be luck.</p>"
    by = f"{number(abs(mean), 3)} ± {number(half, 2)}"
    if mean > half:
        return f"<p>Least regret: {first}, ahead of {second} by {by} (95 %).</p>"
    return f"<p>Least regret: {first}, but {second} is within the noise: they differ by {by} (95 %).</p>"


def _timed(world: World) -> str:
    """Where times come from, and that two kinds of them do not compare."""
    if len(world.paths) == 1:
        return f"All runs were {world.paths[0]}."
    return (
        "Compiled and stepwise runs are timed differently: a stepwise round includes two calls from Python, "
        "a compiled one does not."
    )


def _s(n: int) -> str:
    return "" if n == 1 else "s"


def _world(world: World, repeats: int) -> str:
    facts = world.facts
    about = ""
    if "matroid" in facts:
        what = "least expected cost" if facts.get("objective") == "min" else "best expected reward"
        at_first = " at first (it changes)" if facts.get("changes") else ""
        about = f"{facts['matroid']}; {what} per round{at_first}: {number(float(facts['best']), 4)}"
    times = [Line(i, one.label, *one.time_curve()) for i, one in enumerate(world.entries)]
    times = [line for line in times if len(line.x)]
    small = [
        _figure(
            line_chart(
                times, _SMALL, True, True, f"Time per round, {world.label}", "round", "microseconds per round"
            ),
            "Time per round while learning, median of the repeats; the first rounds include the call of the kernel.",
        )
        if times
        else "",
        _figure(
            bar_chart(
                [
                    (i, f"{one.label}, {one.path}", one.select_us, one.update_us)
                    for i, one in ((i, world.entries[i]) for i in world.ranking())
                ],
                _SMALL[0],
                f"Time per round in total, {world.label}",
                "µs",
            ),
            "Time per round over the whole run: select (dark) and update (light). " + _timed(world),
        ),
        _figure(
            scatter_chart(
                [(i, one.microseconds, *one.final) for i, one in enumerate(world.entries)],
                _SMALL,
                f"Cost against regret, {world.label}",
                "microseconds per round",
                "final regret",
            ),
            "Cost against regret: down and to the left is better.",
        ),
    ]
    return "\n".join(
        [
            f"<section><h2>{escape(world.label)}</h2>",
            f'<p class="soft">{escape(about)}</p>',
            "<figure>" + _regret(world) + "</figure>",
            _key(world),
            _winner(world),
            "<h3>Final regret</h3>",
            _final(world),
            _pairs(world, repeats),
            "<h3>Cost</h3>",
            f'<div class="grid">{"".join(small)}</div></section>',
        ]
    )


def _figure(svg: str, caption: str) -> str:
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def _regret(world: World) -> str:
    """The same curves on three scales, each wide and narrow; the style sheet shows one."""
    out = []
    for name, _ in SCALES:
        log_x, log_y = name != "linear", name == "log"
        lines = [_line(i, one, log_x) for i, one in enumerate(world.entries)]
        for size, kind in ((_WIDE, "wide"), (_SLIM, "slim")):
            title = f"Regret, {world.label}"
            out.append(
                line_chart(
                    lines, size, log_x, log_y, title, "round", "cumulative regret", f"scaled {name} {kind}"
                )
            )
    return "".join(out)


def _line(index: int, entry: Entry, log: bool) -> Line:
    """The curve with no more points than can be seen."""
    n, last = len(entry.rounds), entry.rounds[-1]
    if n > _POINTS:
        wanted = np.geomspace(1, last, _POINTS) if log else np.linspace(1, last, _POINTS)
        at = np.unique(np.append(np.minimum(np.searchsorted(entry.rounds, wanted), n - 1), n - 1))
    else:
        at = np.arange(n)
    half = entry.half_regret
    x = entry.rounds[at].astype(np.float64)
    return Line(index, entry.label, x, entry.mean_regret[at], None if half is None else half[at])


def _dot(index: int) -> str:
    return f'<span class="dot c{index % COLOURS}">{index + 1}</span>'


def _key(world: World) -> str:
    items = "".join(f"<li>{_dot(i)}{escape(world.entries[i].label)}</li>" for i in world.ranking())
    return f'<ul class="key">{items}</ul>'


def _final(world: World) -> str:
    best = 0.0 if world.facts.get("changes") else float(world.facts.get("best", 0.0))
    rows = []
    for i in world.ranking():
        one = world.entries[i]
        mean, half = one.final
        interval = "\u2013" if half is None else f"{number(mean - half, 4)} … {number(mean + half, 4)}"
        low, middle, high = one.quantiles.tolist()
        usual = "\u2013" if half is None else middle_of(middle, low, high)
        total = best * float(one.rounds[-1])
        share = f"{number(100 * mean / total, 2)} %" if total > 0 else "\u2013"
        what = " ".join(filter(None, (one.engine, one.clock)))
        rows.append(
            f'<tr><td class="name">{_dot(i)}{escape(one.label)}</td><td>{number(mean, 4)}</td><td>{interval}</td>'
            f"<td>{usual}</td><td>{share}</td><td>{number(one.select_us)}</td><td>{number(one.update_us)}</td>"
            f'<td class="left">{escape(one.path)}</td><td class="left">{escape(what)}</td></tr>'
        )
    head = (
        '<tr><th class="left">policy</th><th>regret</th><th>95 % interval</th>'
        f"<th>{MIDDLE}</th><th>of the best</th>"
        '<th>select µs</th><th>update µs</th><th class="left">timed</th><th class="left">engine, clock</th></tr>'
    )
    return f'<div class="scroll"><table><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table></div>'


def _pairs(world: World, repeats: int) -> str:
    entries = world.entries
    if len(entries) < 2:
        return ""
    head = "".join(f"<th>{_dot(i)}</th>" for i in range(len(entries)))
    rows = []
    for i, one in enumerate(entries):
        cells = []
        for j, other in enumerate(entries):
            if i == j:
                cells.append('<td class="soft">\u2013</td>')
                continue
            found = difference(one, other)
            if found is None:
                cells.append('<td class="soft">none shared</td>')
                continue
            mean, half = found
            sure = half is not None and abs(mean) > half
            kind = (' class="good"' if mean < 0 else ' class="bad"') if sure else ""
            spread = "" if half is None else f' <span class="soft">± {number(half, 2)}</span>'
            cells.append(f"<td{kind}>{_signed(mean)}{spread}</td>")
        name = f'{_dot(i)}<span class="label">{escape(one.label)}</span>'
        rows.append(f'<tr><td class="name">{name}</td>{"".join(cells)}</tr>')
    note = (
        "Regret of the row less that of the column, repeat by repeat (they share the rewards), with half of the "
        "95 % interval. Coloured where the interval leaves out 0: green if the row lost less. Each interval holds by "
        "itself; they are not corrected for their number."
        if repeats > 1
        else "Regret of the row less that of the column in the only repeat."
    )
    head = f'<thead><tr><th class="left"><span class="label">row \u2212 column</span></th>{head}</tr></thead>'
    table = f'<table class="pairs">{head}<tbody>{"".join(rows)}</tbody></table>'
    return f'<h3>Differences in pairs</h3><div class="scroll">{table}</div><p class="soft">{note}</p>'


def _signed(value: float) -> str:
    return "0" if value == 0 else ("+" if value > 0 else "\u2212") + number(abs(value), 3)


def _definition(sweep: Sweep) -> str:
    shown = {key: value for key, value in sweep.definition.items() if key != "format"}
    machine = sweep.versions
    packages = machine.get("packages", {}) if isinstance(machine.get("packages"), dict) else {}
    versions = ", ".join(f"{name} {found}" for name, found in packages.items())
    told = [f"{machine.get(key, '?')}" for key in ("python", "system", "cores")]
    about = f"Python {told[0]}, {told[1]}, {told[2]} cores; {versions}"
    source = f"<pre>{escape(sweep.source.strip())}</pre>" if sweep.source.strip() else ""
    resolved = escape(json.dumps(_brief(shown), indent=1, ensure_ascii=False))
    return (
        f"<section><h2>The experiment</h2>{source}"
        f"<details><summary>With all defaults filled in</summary><pre>{resolved}</pre></details>"
        f'<p class="soft">{escape(about)}</p></section>'
    )


def _brief(value: Any) -> Any:
    """Long lists cut short: a page is to be read."""
    if isinstance(value, dict):
        return {key: _brief(one) for key, one in value.items()}
    if isinstance(value, list):
        if len(value) > _LONGEST_LIST:
            return [*map(_brief, value[:3]), f"... {len(value):,} in all", _brief(value[-1])]
        return [_brief(one) for one in value]
    return value
