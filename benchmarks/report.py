"""Results for reading: text tables for the terminal, and docs/performance.md, from one run and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.figures import ours
from benchmarks.large import large_cells
from benchmarks.real import real_cells
from benchmarks.table1 import table_markdown
from benchmarks.whole import whole_lines
from semibandit.bench.table import CaseData, case_cells, case_heading, case_text, latency_lines, rows_of
from semibandit.text import number, table, times


def _scaling_cells(scaling: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    arms = sorted({k for line in scaling["lines"] for k in line["arms"]})
    header = [
        "who",
        "way",
        *(f"{k:,}" if k < 10**5 else f"{k:.0e}".replace("e+0", "e") for k in arms),
        "exponent",
    ]
    order = {"auto": 0, "engine": 1, "rival": 2, "bare": 3}
    lines = []
    for line in sorted(scaling["lines"], key=lambda line: (order[line["kind"]], line["name"], line["way"])):
        at = dict(zip(line["arms"], line["us_per_round"], strict=True))
        fitted = "-" if line["exponent"] is None else f"{line['exponent']:.2f}"
        lines.append([line["name"], line["way"], *(number(at.get(k)) for k in arms), fitted])
    return header, lines


def scaling_text(scaling: dict[str, Any]) -> str:
    """Time over K for the terminal."""
    heading = (
        f"{scaling['matroid']}, D = {scaling['rank']:,}, {scaling['phase']}: us per round over K "
        f"(exponent fitted from K = {scaling['fit_from']:,})"
    )
    return "\n".join([heading, table(*_scaling_cells(scaling), left=2)])


def figures_text(figures: Sequence[dict[str, Any]]) -> str:
    """Figures wanted and reached, for the terminal."""
    return table(("case", "figure", "wanted", "reached", "met"), _figure_cells(figures), left=2)


def _figure_cells(figures: Sequence[dict[str, Any]]) -> list[list[str]]:
    word = {True: "yes", False: "NO", None: "-"}
    return [
        [
            f["case"],
            f["figure"],
            f"{'<=' if f['sense'] == 'at most' else '>='} {f['wanted']:g}",
            number(f["reached"]),
            word[f["met"]],
        ]
        for f in figures
    ]


def result_text(result: dict[str, Any]) -> str:
    """A result for the terminal."""
    parts = [case_text(case) for case in result["cases"] if not case.get("part_of_scaling")]
    parts += [scaling_text(scaling) for scaling in result["scaling"]]
    if result.get("policies"):
        parts += [f"{title}\n{table(*cells)}" for title, cells in policy_tables(result["policies"])]
    parts += [f"{title}\n{table(*cells, left=2)}" for title, cells in _other_tables(result)]
    parts += whole_lines(result["whole"]) if "whole" in result else []
    if result["figures"]:
        parts.append(figures_text(result["figures"]))
    return "\n\n".join(parts)


def _other_tables(result: dict[str, Any]) -> list[tuple[str, tuple[list[str], list[list[str]]]]]:
    """Policies on large instances, and real data, as far as they were measured: (title, (header, rows))."""
    parts = []
    if result.get("large"):
        parts.append(("Other policies on large instances, from Python", large_cells(result["large"])))
    if result.get("real"):
        parts.append(("Real data, CUCB from Python", real_cells(result["real"])))
    return parts


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> str:
    """A table of Markdown, the first `left` columns flush left."""
    rule = ["---" if i < left else "---:" for i in range(len(header))]
    return "\n".join("| " + " | ".join(line) + " |" for line in [header, rule, *rows])


def rival_wins(result: dict[str, Any]) -> list[str]:
    """Every place where a rival, played in the same way, takes less time than we do."""
    wins = []
    for case in result["cases"]:
        for row in rows_of(case, kind="rival"):
            mine = ours(case, row["way"])
            if mine["way"] == row["way"] and row["us_per_round"] < mine["us_per_round"]:
                ratio = mine["us_per_round"] / row["us_per_round"]
                wins.append(
                    f"{case['title']} ({row['way']}): {row['name']} takes {number(row['us_per_round'])} us, "
                    f"we take {number(mine['us_per_round'])} us ({times(ratio)} as long)"
                )
    return wins


def policy_tables(found: Sequence[dict[str, Any]]) -> list[tuple[str, tuple[list[str], list[list[str]]]]]:
    """From Python beside the textbook, and compiled beside round by round: (title, (header, rows)) of both."""
    arms = sorted({row["arms"] for row in found})
    header = ["policy", *(f"K = {k:,}" for k in arms)]
    parts = []
    for title, mine, theirs in (
        ("From Python, ours / textbook numpy", "python_us", "textbook_us"),
        ("Compiled / round by round from Python, rewards drawn", "compiled_us", "stepwise_us"),
    ):
        rows = []
        for label in dict.fromkeys(row["policy"] for row in found):
            at = {row["arms"]: row for row in found if row["policy"] == label}
            cells = [_ratio(at[k][mine], at[k][theirs]) if k in at else "-" for k in arms]
            if any(cell != "-" for cell in cells):
                rows.append([label, *cells])
        parts.append((title, (header, rows)))
    return parts


def _ratio(mine: float | None, theirs: float | None) -> str:
    if mine is None or theirs is None:
        return "-"
    return f"{number(mine)} / {number(theirs)} ({times(theirs / mine)})"


def textbook_wins(found: Sequence[dict[str, Any]]) -> list[str]:
    """Every policy and K at which the textbook version takes less time than ours, both from Python."""
    return [
        f"{row['policy']}, K = {row['arms']:,}: the textbook version takes {number(row['textbook_us'])} us, "
        f"we take {number(row['python_us'])} us ({times(row['python_us'] / row['textbook_us'])} as long)"
        for row in found
        if row["textbook_us"] is not None and row["textbook_us"] < row["python_us"]
    ]


def _policies_markdown(found: Sequence[dict[str, Any]]) -> str:
    ranks = {row["arms"]: row["rank"] for row in found}
    few = ", ".join(f"K = {k:,}: {d}" for k, d in sorted(ranks.items()))
    parts = [
        "## Policies",
        "Microseconds per round, the ratio in brackets. Uniform matroids (D by K: "
        f"{few}), rewards of 0 or 1, from the state in which every arm was seen once; median of interleaved repeats. "
        "The textbook versions (benchmarks/textbook/) are plain numpy: state kept in arrays, indices of all arms in "
        'a few array calls, the best D by `argpartition`. *staircase* is `clock="auto"`, which rounds the width up a '
        "little.",
    ]
    for title, cells in policy_tables(found):
        parts.append(f"**{title}**\n\n{markdown(*cells, 1)}")
    wins = textbook_wins(found)
    lost = "\n".join(f"- {win}" for win in wins) if wins else "In this run, nowhere."
    parts.append(f"Where a textbook version wins:\n\n{lost}")
    return "\n\n".join(parts) + "\n"


_NOTES = {
    "Other policies on large instances, from Python": "Microseconds per `select` and `update`. *explore*: every arm "
    "seen once; *middle*: after 3 K / D rounds. Each policy beside the best linear-time version of itself: for CTS a "
    "draw for every arm by numpy and the best base, for KL-OSM one compiled pass that solves indices only for arms "
    "that can be played (benchmarks/large.py).",
    "Real data, CUCB from Python": "Instances of `semibandit.data`, costs through `minimize`, beside the same index by "
    "numpy with argsort and the class's compiled greedy. *explore*: every arm seen once; *middle*: after 1,000 "
    "K / D rounds, at most 100,000.",
}

_INTRO = """\
# Performance

This page is written by code from one run of the suite, docs/performance.json; nothing in it is typed by hand. To repeat
it (`make bench`):

```
python -m benchmarks suite --json docs/performance.json
python -m benchmarks report docs/performance.json --page docs/performance.md --plot docs/performance.png \\
    --readme README.md
```

Machine: {machine}. One process, one thread.

How it is measured. All contenders play the same rounds of CUCB on the same instance in one process: the same
rewards (the n-th reward of an arm is a function of the seed, the arm and n), the same confidence width, and the
same ties. Their decisions are compared in the first rounds before any clock runs{agreement}. After a warm-up the
contenders take turns; a time is the median of the repeats, each repeat being the mean over its rounds. In this run the
slowest repeat of a row took {spread} % longer than its fastest (median over all rows; {worst} % for one row in ten).

- *explore*: every arm has been tried once, so nearly every round plays arms it has hardly seen.
- *middle*: the state after as many rounds as named, reached by playing them, on means drawn at random: many arms are
  close to the best ones, some are known well and some are not. Runs live here most of the time. Each case says how
  many arms of a round were not in the round before.
- *late*: the state after as many rounds as named, reached by playing them, on means with a gap of 0.4 between the
  best base and the rest, so that the base settles. (With means drawn at random, 10^5 of them, the best lie within
  10^-5 of each other: the base never settles and rounds cost what they cost in *explore*.)
- *python*: through `select` and `update`, drawing rewards not counted. *compiled*: policy and environment in one
  kernel, drawing counted.
- *bare loop*: draws the rewards of the same arms and updates their records, with no decision at all. It and the
  compiled rivals draw by the code that our compiled loop draws by.
- "/ ours" is a contender's time divided by ours, "/ bare loop" the same against the bare loop.
"""


def machine_words(machine: dict[str, Any]) -> str:
    """The machine in a few words."""
    return f"{machine['cores']} cores, {machine['system']} on {machine['architecture']}, Python {machine['python']}"


def _machine_line(machine: dict[str, Any]) -> str:
    packages = ", ".join(f"{name} {found}" for name, found in machine["packages"].items())
    return f"{machine_words(machine)}, {packages}"


def _spread(cases: Sequence[CaseData]) -> tuple[str, str]:
    """By how many percent repeats of one row differ: median and ninth decile over all rows."""
    apart = [
        100 * (max(row["repeats_us"]) / min(row["repeats_us"]) - 1) for case in cases for row in case["rows"]
    ]
    middle, high = np.percentile(apart, [50, 90])
    return f"{middle:.0f}", f"{high:.0f}"


def report_markdown(
    result: dict[str, Any], picture: str | None = None, table_picture: str | None = None
) -> str:
    """docs/performance.md for a result; the pictures are the file names of its plots, if there are any."""
    agree = all(case["agree"] for case in result["cases"])
    agreement = "; here they agreed everywhere" if agree else "; **here some differed, see the tables**"
    spread, worst = _spread(result["cases"])
    machine = _machine_line(result["machine"])
    parts = [_INTRO.format(machine=machine, agreement=agreement, spread=spread, worst=worst)]
    if result.get("quick"):
        parts.append(
            "**This is a quick run on small instances: its figures say nothing about large ones.**\n"
        )
    if picture is not None:
        parts.append(f"![Time per round of every contender]({picture})\n")
    if result["figures"]:
        cells = _figure_cells(result["figures"])
        parts.append(
            "## Figures\n\n" + markdown(("case", "figure", "wanted", "reached", "met"), cells, 2) + "\n"
        )
    wins = rival_wins(result)
    lost = "\n".join(f"- {win}" for win in wins) if wins else "In this run, nowhere."
    parts.append(f"## Where a rival wins\n\n{lost}\n")
    for scaling in result["scaling"]:
        header, lines = _scaling_cells(scaling)
        title = f"## Over K: {scaling['matroid']}, D = {scaling['rank']:,}, {scaling['phase']}"
        note = f"Microseconds per round; the exponent is fitted from K = {scaling['fit_from']:,} on."
        parts.append(f"{title}\n\n{note}\n\n{markdown(header, lines, 2)}\n")
    if result.get("policies"):
        parts.append(_policies_markdown(result["policies"]))
    for title, (names, told) in _other_tables(result):
        parts.append(f"## {title}\n\n{_NOTES[title]}\n\n{markdown(names, told, 2)}\n")
    if "whole" in result:
        parts.append(
            "## Whole programs\n\n" + "\n".join(f"- {x}" for x in whole_lines(result["whole"])) + "\n"
        )
    if "table1" in result:
        parts.append(table_markdown(result["table1"], table_picture))
    parts.append("## Case by case\n")
    for case in result["cases"]:
        if case.get("part_of_scaling"):
            continue
        header, lines = case_cells(case)
        body = [
            f"### {case_heading(case)}",
            markdown(header, lines, 2),
            *(f"- {x}" for x in latency_lines(case)),
        ]
        parts.append("\n\n".join(body[:2]) + "\n\n" + "\n".join(body[2:]) + ("\n" if body[2:] else ""))
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)
