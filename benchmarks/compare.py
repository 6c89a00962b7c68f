"""Two runs side by side: what became slower, case by case."""

from __future__ import annotations

from typing import Any

import numpy as np

from semibandit.bench.table import CaseData, rows_of
from semibandit.text import number, table

#: More than this much slower is marked.
SLACK = 1.05


def compare(before: dict[str, Any], after: dict[str, Any]) -> list[dict[str, Any]]:
    """Our times of every case and way that both runs have: one dict a row.

    `single` is the median of single rounds (None where they were not measured), `round` the mean time of a round in the
    middle repeat and `fastest` in the fastest one, each as (before, after). `rivals` is how many times as long the
    rivals' rounds took in the second run, median over those that both have: their code is the same, so it tells how
    the machine was.
    """
    old = {case["key"]: case for case in before["cases"]}
    found = []
    for case in after["cases"]:
        other = old.get(case["key"])
        if other is None:
            continue
        for way in ("python", "compiled"):
            mine, theirs = rows_of(case, ours=True, way=way), rows_of(other, ours=True, way=way)
            if mine and theirs:
                found.append(_row(case, other, theirs[0], mine[0]))
    return found


def _row(case: CaseData, other: CaseData, before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    spread = before["latency_us"], after["latency_us"]
    single = None if spread[0] is None or spread[1] is None else (spread[0]["p50"], spread[1]["p50"])
    names = before["name"], after["name"]
    return {
        "title": case["title"],
        "way": after["way"],
        "engine": names[0] if names[0] == names[1] else f"{names[0]} > {names[1]}",
        "round": (before["us_per_round"], after["us_per_round"]),
        "single": single,
        "fastest": (min(before["repeats_us"]), min(after["repeats_us"])),
        "rivals": _machine(other, case),
    }


def _machine(before: CaseData, after: CaseData) -> float | None:
    old = {(row["name"], row["way"]): row["us_per_round"] for row in rows_of(before, kind="rival")}
    ratios = [
        row["us_per_round"] / old[row["name"], row["way"]]
        for row in rows_of(after, kind="rival")
        if (row["name"], row["way"]) in old
    ]
    return float(np.median(ratios)) if ratios else None


def slower(pair: tuple[float, float] | None) -> bool:
    """Whether the second time is more than the slack above the first."""
    return pair is not None and pair[1] > SLACK * pair[0]


def _cells(pair: tuple[float, float] | None) -> list[str]:
    if pair is None:
        return ["-", "-", "-"]
    return [number(pair[0]), number(pair[1]), _ratio(pair)]


def _ratio(pair: tuple[float, float]) -> str:
    return f"{pair[1] / pair[0]:.2f}{' !' if slower(pair) else '  '}"


def compare_text(before: dict[str, Any], after: dict[str, Any]) -> str:
    """Both runs for the terminal."""
    rows = compare(before, after)
    header = ("case", "way", "single", "after", "ratio  ", "round", "after", "ratio  ", "fastest  ", "rivals")
    lines = [
        [
            f"{row['title']} ({row['engine']})",
            row["way"],
            *_cells(row["single"]),
            *_cells(row["round"]),
            _ratio(row["fastest"]),
            "-" if row["rivals"] is None else f"{row['rivals']:.2f}",
        ]
        for row in rows
    ]
    worse = sum(slower(row["single"]) for row in rows)
    worse_rounds = sum(slower(row["round"]) for row in rows)
    parts = [
        table(header, lines, left=2),
        "single: microseconds of a single round, median; round: mean of a round in a repeat, median of the repeats;\n"
        "ratio: after / before, ! is more than 5 % slower; fastest: the ratio of the fastest repeats;\n"
        "rivals, textbook: the ratio of those whose code did not change, which tells how the machine was.",
        f"more than 5 % slower: {worse} of {sum(row['single'] is not None for row in rows)} in single rounds, "
        f"{worse_rounds} of {len(rows)} in whole repeats",
    ]
    policies = _policies(before, after)
    if policies:
        parts.insert(1, policies)
    missing = [
        case["title"] for case in before["cases"] if case["key"] not in {c["key"] for c in after["cases"]}
    ]
    if missing and not after.get("partial"):
        parts.append(f"only in the first run: {'; '.join(missing)}")
    return "\n\n".join(parts)


def _policies(before: dict[str, Any], after: dict[str, Any]) -> str:
    """Single rounds of policies from Python before and after, and compiled after against round by round before."""
    old = {(row["policy"], row["arms"]): row for row in before.get("policies", [])}
    lines = []
    for row in after.get("policies", []):
        known = old.get((row["policy"], row["arms"]))
        if known is None:
            continue
        single, was = row["single_us"], known["single_us"]
        compiled = None if row["compiled_us"] is None else known["stepwise_us"] / row["compiled_us"]
        lines.append(
            [
                row["policy"],
                f"{row['arms']:,}",
                *_cells((was["python"], single["python"])),
                f"{single['textbook'] / was['textbook']:.2f}"
                if "textbook" in single and "textbook" in was
                else "-",
                number(known["stepwise_us"]),
                number(row["compiled_us"]),
                "-" if compiled is None else f"{number(compiled)} x",
            ]
        )
    header = (
        "policy",
        "K",
        "single",
        "after",
        "ratio  ",
        "textbook",
        "stepwise",
        "compiled after",
        "speed-up",
    )
    return table(header, lines) if lines else ""
