"""The table of README.md, between its two markers, from one run of the suite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.figures import fastest
from benchmarks.report import machine_words, markdown
from semibandit.bench.table import CaseData, rows_of
from semibandit.errors import ParameterError
from semibandit.text import number, times

START, END = "<!-- table:start -->", "<!-- table:end -->"

# What one writes first, by class of matroid.
_TEXTBOOK = ("numpy argpartition", "numpy group maximum", "argsort + ")

_INTRO = """\
Microseconds per round, median of {repeats} interleaved repeats in one process, warmed up;
{machine}. From Python a round is `select` and `update`, a compiled one also draws the
D rewards. Ratios are against our time from Python. Raw data, all rivals, latencies and the places where a rival wins:
[docs/performance.md](docs/performance.md), written by `make bench`.
"""


def readme_table(result: dict[str, Any]) -> str:
    """What stands between the markers."""
    cases = [case for case in result["cases"] if not case.get("part_of_scaling")]
    header = ("instance", "phase", "ours, from Python", "ours, compiled", "best rival", "numpy or textbook")
    rows = [_row(case) for case in cases]
    intro = _INTRO.format(
        repeats=max(len(row["repeats_us"]) for case in cases for row in case["rows"]),
        machine=machine_words(result["machine"]),
    )
    return f"{intro}\n{markdown(header, rows, 2)}\n"


def _row(case: CaseData) -> list[str]:
    mine = {row["way"]: row["us_per_round"] for row in rows_of(case, ours=True)}
    rivals = rows_of(case, kind="rival", way="python")
    first = next((row for row in rivals if row["name"].startswith(_TEXTBOOK)), None)
    return [
        f"{case['matroid']}, K = {case['arms']:,}, D = {case['rank']:,}",
        case["phase"],
        number(mine["python"]),
        number(mine.get("compiled")),
        _against(fastest({"rows": rivals}), mine["python"]),
        _against(first, mine["python"]),
    ]


def _against(row: dict[str, Any] | None, mine: float) -> str:
    if row is None:
        return "-"
    return f"{number(row['us_per_round'])} ({row['name']}, {times(row['us_per_round'] / mine)})"


def rewrite(path: Path, result: dict[str, Any]) -> None:
    """Put the table of `result` between the markers in the file."""
    path.write_text(replaced(path.read_text(encoding="utf-8"), readme_table(result)), encoding="utf-8")


def replaced(text: str, new: str) -> str:
    """`text` with `new` between its markers."""
    if text.count(START) != 1 or text.count(END) != 1 or text.index(START) > text.index(END):
        raise ParameterError(f"the file should have {START} once, and {END} once after it")
    return f"{text[: text.index(START)]}{START}\n{new}{text[text.index(END) :]}"
