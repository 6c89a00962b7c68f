"""A measured case as a table for reading."""

from __future__ import annotations

from typing import Any

from semibandit.text import number, table

CaseData = dict[str, Any]


def rows_of(case: CaseData, **wanted: Any) -> list[dict[str, Any]]:
    """The rows of a case with these values."""
    return [row for row in case["rows"] if all(row.get(key) == value for key, value in wanted.items())]


def _label(row: dict[str, Any]) -> str:
    marks = ["auto"] if row.get("auto") else []
    if row.get("agrees") is False:
        marks.append("DIFFERS")
    return f"{row['name']} ({', '.join(marks)})" if marks else str(row["name"])


def case_cells(case: CaseData) -> tuple[list[str], list[list[str]]]:
    """Header and rows: ours first, then our other engines, the rivals and the bare loop, each by time."""
    ways = sorted({way for row in case["rows"] for way in row["times_ours"]}, reverse=True)
    bare = any(row["times_bare"] is not None for row in case["rows"])
    header = [
        "who",
        "way",
        "us per round",
        *(f"/ ours {way}" for way in ways),
        *(["/ bare loop"] if bare else []),
        "bytes/arm",
    ]
    order = {"engine": 0, "rival": 1, "bare": 2}
    rows = sorted(
        case["rows"], key=lambda row: (order[row["kind"]], not row.get("ours"), row["us_per_round"])
    )
    lines = [
        [
            _label(row),
            row["way"],
            number(row["us_per_round"]),
            *(number(row["times_ours"].get(way)) for way in ways),
            *([number(row["times_bare"])] if bare else []),
            number(row["bytes_per_arm"]),
        ]
        for row in rows
    ]
    return header, lines


def case_heading(case: CaseData) -> str:
    """What was measured, in a line."""
    before = "" if case["late_rounds"] is None else f", after {case['late_rounds']:,} rounds"
    told = [f"{number(case['exchanges'])} arms exchanged a round"] if "exchanges" in case else []
    told += [f"exploration {case['exploration']:g}"] if case.get("exploration", 1.5) != 1.5 else []
    told += [f"clock {case['clock']}", f"{case['env']} rewards"]
    return f"{case['title']}{before} ({', '.join(told)})"


def latency_lines(case: CaseData) -> list[str]:
    """How single rounds of our engine are spread."""
    lines = []
    for row in rows_of(case, ours=True):
        spread = row["latency_us"]
        if spread is not None:
            lines.append(
                f"single rounds of {row['name']}, {row['way']}: median {number(spread['p50'])} us, "
                f"p99 {number(spread['p99'])}, p99.9 {number(spread['p99_9'])}, worst {number(spread['max'])} "
                f"(of {spread['n']:,})"
            )
    return lines


def case_text(case: CaseData) -> str:
    """One case for the terminal."""
    parts = [case_heading(case), table(*case_cells(case), left=2), *latency_lines(case)]
    if not case["agree"]:
        parts.append("WARNING: not every contender made our decisions; see the rows marked DIFFERS")
    return "\n".join(parts)
