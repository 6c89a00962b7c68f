"""Results for reading: text tables for the terminal, and docs/performance.md, from one run and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


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
        f"{scaling['matroid']}, D = {scaling['rank']:,}, {scaling['phase']}: us a round over K "
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
    """A whole result for the terminal."""
    parts = [case_text(case) for case in result["cases"] if not case.get("part_of_scaling")]
    parts += [scaling_text(scaling) for scaling in result["scaling"]]
    if result["figures"]:
        parts.append(figures_text(result["figures"]))
    return "\n\n".join(parts)


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> str:
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


_INTRO = """\
# Performance

This page is generated from a run of `semibandit bench`; do not edit it by hand. To repeat it:

```
semibandit bench --suite --json docs/performance.json
semibandit bench --report docs/performance.md --from docs/performance.json --plot docs/performance.png
```

Machine: {machine}. One process, one thread.

How it is measured. All contenders play the same rounds of CUCB on the same instance in one process: the same
rewards (the n-th reward of an arm is a function of the seed, the arm and n), the same confidence width, and the
same ties. Their decisions are compared in the first rounds before any clock runs{agreement}. After a warm-up the
contenders take turns; a time is the median of the repeats, each repeat being the mean over its rounds.

- *explore*: every arm has been tried once, so nearly every round plays arms it has hardly seen.
- *late*: the state after as many rounds as named, reached by playing them, on means with a gap of 0.4 between the
  best base and the rest, so that the base settles. (With means drawn at random, 10^5 of them, the best lie within
  10^-5 of each other: the base never settles and rounds cost what they cost in *explore*.)
- *python*: through `select` and `update`, drawing rewards not counted. *compiled*: policy and environment in one
  kernel, drawing counted.
- *bare loop*: draws the rewards of the same arms and updates their records, with no decision at all.
- "/ ours" is a contender's time divided by ours, "/ bare loop" the same against the bare loop.
"""


def _machine_line(machine: dict[str, Any]) -> str:
    packages = ", ".join(f"{name} {found}" for name, found in machine["packages"].items())
    return (
        f"{machine['cores']} cores, {machine['system']} on {machine['architecture']}, Python {machine['python']}, "
        f"{packages}"
    )


def report_markdown(
    result: dict[str, Any], picture: str | None = None, table_picture: str | None = None
) -> str:
    """docs/performance.md for a result; the pictures are the file names of its plots, if there are any."""
    agree = all(case["agree"] for case in result["cases"])
    agreement = "; here they agreed everywhere" if agree else "; **here some differed, see the tables**"
    parts = [_INTRO.format(machine=_machine_line(result["machine"]), agreement=agreement)]
    if result.get("quick"):
        parts.append(
            "**This is a quick run on small instances: its figures say nothing about large ones.**\n"
        )
    if picture is not None:
        parts.append(f"![Time per round of every contender]({picture})\n")
    if result["figures"]:
        cells = _figure_cells(result["figures"])
        parts.append(
            "## Figures\n\n" + _markdown(("case", "figure", "wanted", "reached", "met"), cells, 2) + "\n"
        )
    if result.get("notes"):
        parts.append("## Notes on this run\n\n" + "\n".join(f"- {note}" for note in result["notes"]) + "\n")
    wins = rival_wins(result)
    lost = "\n".join(f"- {win}" for win in wins) if wins else "In this run, nowhere."
    parts.append(f"## Where a rival wins\n\n{lost}\n")
    for scaling in result["scaling"]:
        header, lines = _scaling_cells(scaling)
        title = f"## Over K: {scaling['matroid']}, D = {scaling['rank']:,}, {scaling['phase']}"
        note = f"Microseconds a round; the exponent is fitted from K = {scaling['fit_from']:,} on."
        parts.append(f"{title}\n\n{note}\n\n{_markdown(header, lines, 2)}\n")
    if "table1" in result:
        parts.append(table_markdown(result["table1"], table_picture))
    parts.append("## Case by case\n")
    for case in result["cases"]:
        if case.get("part_of_scaling"):
            continue
        header, lines = _cells(case)
        body = [
            f"### {_heading(case)}",
            _markdown(header, lines, 2),
            *(f"- {x}" for x in _latency_lines(case)),
        ]
        parts.append("\n\n".join(body[:2]) + "\n\n" + "\n".join(body[2:]) + ("\n" if body[2:] else ""))
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)
