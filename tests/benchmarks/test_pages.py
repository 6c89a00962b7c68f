"""What is made of results: the page, README's table, files, and two runs side by side."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from benchmarks.__main__ import main
from benchmarks.cases import SUITE
from benchmarks.compare import compare, compare_text, slower
from benchmarks.figures import judge
from benchmarks.policies import policy_figures
from benchmarks.readme import END, START, readme_table, replaced
from benchmarks.report import report_markdown, result_text, rival_wins, textbook_wins
from benchmarks.runner import load, save
from semibandit.errors import ParameterError
from support.measured import case_made_up

ROOT = Path(__file__).resolve().parents[2]
MACHINE = {
    "cores": 2,
    "system": "Linux",
    "architecture": "x86_64",
    "python": "3.12",
    "packages": {"numpy": "2.0"},
}


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


# From the committed run


@pytest.fixture(scope="module")
def committed() -> dict[str, Any]:
    return load(ROOT / "docs" / "performance.json")


def test_the_committed_page_is_what_the_committed_run_gives(committed: dict[str, Any]) -> None:
    page = report_markdown(committed, "performance.png", "performance-table1.png")
    assert page == (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")


def test_the_table_of_the_readme_is_what_the_committed_run_gives(committed: dict[str, Any]) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert replaced(text, readme_table(committed)) == text
    assert text[text.index(START) : text.index(END)].count("\n| ") == 2 + len(SUITE), (
        "a row a case, and nothing else"
    )


def test_the_committed_run_is_whole_and_has_no_words_in_it(committed: dict[str, Any]) -> None:
    assert not committed["quick"] and not committed.get("partial")
    assert "notes" not in committed and committed["scaling"] and committed["table1"]["classes"]


# Pages


def test_the_report_says_where_a_rival_wins_and_names_no_place() -> None:
    good, bad = (
        case_made_up(key, engine=10.0, rival=us, bare=0.5) for key, us in (("good", 900.0), ("bad", 20.0))
    )
    result = {
        "schema": 1,
        "machine": MACHINE,
        "cases": [good, bad],
        "scaling": [],
        "figures": judge([good], []),
    }
    wins = rival_wins(result)
    assert len(wins) == 1 and wins[0].startswith("bad (python): numpy argpartition takes 20.0 us")
    page = report_markdown(result, "performance.png")
    assert wins[0] in page and "![" in page and "2 cores" in page
    assert "nowhere" in report_markdown({**result, "cases": [good]})
    assert "quick run" in report_markdown({**result, "quick": True})
    assert not re.search(r"/(home|work|tmp|root)\b", page)


POLICIES = [
    {
        "policy": policy,
        "spec": policy.lower(),
        "arms": arms,
        "rank": 10,
        "python_us": 5.0,
        "textbook_us": textbook,
        "stepwise_us": 8.0,
        "compiled_us": compiled,
        "single_us": {"python": 5.0} if textbook is None else {"python": 5.0, "textbook": textbook},
    }
    for policy, arms, textbook, compiled in (
        ("CTS", 100, 20.0, 1.0),
        ("CTS", 200, 4.0, 2.0),
        ("FPL", 100, 6.0, None),
        ("MAUB", 100, None, None),
    )
]


def test_policies_have_tables_figures_and_a_list_of_losses() -> None:
    wins = textbook_wins(POLICIES)
    assert len(wins) == 1 and wins[0].startswith("CTS, K = 200: the textbook version takes 4.00 us")
    case = case_made_up("good", engine=10.0, rival=900.0, bare=0.5)
    result = {
        "schema": 1,
        "machine": MACHINE,
        "cases": [case],
        "scaling": [],
        "figures": policy_figures(POLICIES),
        "policies": POLICIES,
    }
    page = report_markdown(result)
    assert "| CTS | 5.00 / 20.0 (4.00 x) | 5.00 / 4.00 (0.800 x) |" in page and wins[0] in page
    assert "| CTS | 1.00 / 8.00 (8.00 x) | 2.00 / 8.00 (4.00 x) |" in page
    assert "| FPL | 5.00 / 6.00 (1.20 x) | - |" in page and "| MAUB" not in page
    assert "FPL" in result_text(result)
    judged = {(f["case"], f["figure"]): f for f in result["figures"]}
    worst = judged["CTS", "x textbook, from Python, worst K"]
    assert worst["reached"] == pytest.approx(0.8) and worst["met"] is False
    figure = "x round by round in 0.1 (34.5 us), compiled, K = 100"
    assert judged["CTS", figure]["reached"] == pytest.approx(34.5)
    assert judged["FPL", "x textbook, from Python, worst K"]["met"] is True


def test_the_table_goes_between_the_markers_and_nowhere_else() -> None:
    text = f"before\n{START}\nold\n{END}\nafter\n"
    assert replaced(text, "new\n") == f"before\n{START}\nnew\n{END}\nafter\n"
    for wrong in ("none", f"{END}{START}", f"{START}{START}{END}"):
        with pytest.raises(ParameterError, match="table:start"):
            replaced(wrong, "new\n")


# Files and commands


def test_results_survive_the_disk_and_others_are_refused(tmp_path: Path) -> None:
    result = {
        "schema": 1,
        "cases": [case_made_up("a", engine=1.0, rival=2.0, bare=0.1)],
        "scaling": [],
        "figures": [],
    }
    save(result, tmp_path / "a.json")
    assert load(tmp_path / "a.json") == result
    (tmp_path / "b.json").write_text('{"schema": 7}')
    (tmp_path / "c.json").write_text("{")
    for name in ("b.json", "c.json", "missing.json"):
        with pytest.raises(ParameterError, match="is not a benchmark result"):
            load(tmp_path / name)


@pytest.mark.slow
def test_report_writes_pages_and_pictures_and_refuses_parts(
    tmp_path: Path, committed: dict[str, Any]
) -> None:
    pytest.importorskip("matplotlib")
    source, page, plot, readme = (tmp_path / name for name in ("a.json", "a.md", "a.png", "R.md"))
    save(committed, source)
    readme.write_text(f"words\n{START}\n{END}\n")
    made = call("report", str(source), "--page", str(page), "--plot", str(plot), "--readme", str(readme))
    assert made.exit_code == 0, made.output
    assert "(a.png)" in page.read_text() and "(a-table1.png)" in page.read_text()
    assert "uniform, K = 1,000,000" in readme.read_text()
    for picture in (plot, tmp_path / "a-table1.png"):
        assert picture.read_bytes().startswith(b"\x89PNG")
    assert "argpartition" in call("report", str(source)).output
    save({**committed, "partial": True}, source)
    refused = call("report", str(source), "--page", str(page))
    assert refused.exit_code == 2 and "pages are made of whole runs" in refused.output


def test_two_runs_side_by_side(tmp_path: Path, committed: dict[str, Any]) -> None:
    after = copy.deepcopy(committed)
    case = next(case for case in after["cases"] if case["key"] == "uniform-late")
    for row in case["rows"]:
        if row.get("ours") and row["way"] == "python":
            row["us_per_round"] *= 1.2
            row["latency_us"]["p50"] *= 1.06
        if row["kind"] == "rival":
            row["us_per_round"] *= 1.5
    after["cases"] = [case for case in after["cases"] if case["key"] != "linear-explore"]
    rows = compare(committed, after)
    marked = [row for row in rows if slower(row["round"]) or slower(row["single"])]
    assert [(row["title"], row["way"]) for row in marked] == [
        ("uniform, K = 100,000, D = 10, late", "python")
    ]
    assert marked[0]["rivals"] == pytest.approx(1.5)
    assert not slower((100.0, 104.9)) and slower((100.0, 105.1)) and not slower(None)
    for name, result in (("before", committed), ("after", after)):
        save({**result, "policies": POLICIES}, tmp_path / f"{name}.json")
    told = call("compare", str(tmp_path / "before.json"), str(tmp_path / "after.json"))
    assert told.exit_code == 0
    assert "1.20 !" in told.output and "1.06 !" in told.output and told.output.count(" !") == 3
    assert "only in the first run: linear, K = 2,000, D = 10, explore" in told.output
    both = compare_text({**committed, "policies": POLICIES}, {**after, "policies": POLICIES})
    assert re.search(r"CTS +100 +5.00 +5.00 +1.00 +1.00 +8.00 +1.00 +8.00 x", both)
