"""The suite: measuring a case, scalings, the figures wanted, and which cases there are."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks.cases import SUITE, Scaling, SuiteCase, suite
from benchmarks.figures import fit_exponent, judge, worst_auto
from benchmarks.measure import measure_case
from benchmarks.report import result_text
from benchmarks.runner import run_bench, run_suite
from semibandit.data.instances import random_matroid
from semibandit.engines import ENGINES
from semibandit.errors import ParameterError
from support.measured import case_made_up


def _tiny(**changes: object) -> SuiteCase:
    settings = {"rounds": 30, "repeats": 2, "seconds": 0.002, "latency_rounds": 20, **changes}
    return SuiteCase("tiny", **settings)  # type: ignore[arg-type]


ROW_KEYS = {
    "name",
    "kind",
    "way",
    "us_per_round",
    "repeats_us",
    "rounds",
    "times_ours",
    "times_bare",
    "latency_us",
}


@pytest.mark.thin(1)
@pytest.mark.parametrize("phase", ["explore", "middle", "late"])
def test_a_measured_case_is_complete(phase: str) -> None:
    case = _tiny(matroid="uniform", arms=60, rank=6, phase=phase, late_rounds=100)
    measured = json.loads(json.dumps(measure_case(case), allow_nan=False))
    assert measured["agree"] is True
    assert measured["late_rounds"] == (None if phase == "explore" else 100)
    rows = measured["rows"]
    assert all(set(row) >= ROW_KEYS for row in rows)
    assert {row["kind"] for row in rows} == {"engine", "rival", "bare"}
    assert {(row["name"], row["way"]) for row in rows if row["kind"] == "bare"} == {
        ("bare loop", "python"),
        ("bare loop", "compiled"),
    }
    assert {row["name"] for row in rows if row["kind"] == "engine"} == {
        name
        for name, spec in ENGINES.items()
        if spec.fits(random_matroid("uniform", 60, 6), measured["clock"])
    }
    assert sum(row.get("auto", False) for row in rows) == 2
    for row in rows:
        assert len(row["repeats_us"]) == 2 and row["us_per_round"] > 0
        assert row["us_per_round"] == pytest.approx(np.median(row["repeats_us"]))
        if row.get("ours"):
            assert row["times_ours"][row["way"]] == pytest.approx(1.0)
            assert 0 < row["latency_us"]["p50"] <= row["latency_us"]["p99_9"] <= row["latency_us"]["max"]
        if row["kind"] != "bare":
            assert row["agrees"] is True and row["checked_rounds"] > 0 and row["bytes_per_arm"] > 8


def test_a_matroid_without_a_compiled_engine_is_measured_from_python() -> None:
    measured = measure_case(_tiny(matroid="linear", arms=20, rank=3, engines=("resolve",)))
    assert {row["way"] for row in measured["rows"]} == {"python"}
    assert measured["agree"]


def test_chosen_engines_and_rivals_only() -> None:
    case = _tiny(matroid="uniform", arms=60, rank=6, engines=("resolve", "auto"), rivals=("one-pass scan",))
    rows = measure_case(case)["rows"]
    assert {row["name"] for row in rows if row["kind"] == "rival"} == {"one-pass scan"}
    assert next(row for row in rows if row.get("ours"))["name"] == "resolve"


def test_a_contender_that_decides_otherwise_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from semibandit.bench.numpy_rivals import Argpartition

    monkeypatch.setattr(Argpartition, "_base", lambda self, lam: np.arange(self.rank, dtype=np.int64))
    measured = measure_case(_tiny(matroid="uniform", arms=60, rank=6, rivals=("numpy argpartition",)))
    assert measured["agree"] is False
    result = {"cases": [measured], "scaling": [], "figures": [], "machine": {"cores": 2}}
    assert "DIFFERS" in result_text(result) and "WARNING" in result_text(result)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"phase": "midle"}, "phase = 'midle' is not known"),
        ({"repeats": 0}, "repeats must be at least 1"),
        ({"seconds": 0.0}, "seconds must be positive"),
        ({"engines": ("warp",)}, "engine = 'warp' is not known: one of auto"),
        ({"rivals": ("dense Prim",)}, "rival = 'dense Prim' does not play here"),
    ],
)
def test_impossible_cases_are_refused(changes: dict[str, object], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        measure_case(_tiny(**{"matroid": "uniform", "arms": 60, "rank": 6, **changes}))


def test_scaling_has_lines_with_exponents() -> None:
    scaling = Scaling(_tiny(matroid="uniform", arms=60, rank=6, rivals=()), (10, 100, 400), fit_from=100)
    assert [case.rank for case in scaling.cases()] == [5, 6, 6]
    result = run_bench([], [scaling])
    lines = result["scaling"][0]["lines"]
    auto = next(line for line in lines if line["name"] == "auto" and line["way"] == "compiled")
    assert auto["arms"] == [10, 100, 400] and auto["exponent"] is not None and auto["ours"]
    assert any("exponent" in figure["figure"] for figure in result["figures"])
    assert "us per round over K" in result_text(result)


def test_the_exponent_of_a_power_law() -> None:
    arms = [10.0, 100.0, 1000.0]
    assert fit_exponent(arms, [3.0 * k**0.7 for k in arms]) == pytest.approx(0.7)
    assert fit_exponent(arms[:1], [1.0]) is None


def test_figures_are_judged_by_the_right_ratio() -> None:
    found = judge([case_made_up("uniform-explore", engine=10.0, rival=6300.0, bare=0.5)], [])
    by_name = {figure["figure"]: figure for figure in found}
    assert by_name["x numpy argpartition, from Python"]["reached"] == pytest.approx(210.0)
    assert by_name["x numpy argpartition, from Python"]["met"] is True
    assert by_name["x numpy argpartition, compiled"]["reached"] == pytest.approx(630.0)
    assert by_name["x one-pass scan, compiled"]["met"] is None, "that rival was not measured"
    assert by_name["bytes per arm"]["met"] is True
    late = judge([case_made_up("uniform-late", engine=10.0, rival=6300.0, bare=0.5)], [])
    assert [figure["met"] for figure in late] == [False, False]
    assert worst_auto([case_made_up("x", engine=1.0, rival=1.0, bare=1.0)]) is None


def test_table_1_is_measured_and_written() -> None:
    from benchmarks.table1 import SIZES, measure_table, table_markdown

    said: list[str] = []
    found = measure_table(said.append, seconds=0.002, repeats=1, scale=1000)
    assert [entry["matroid"] for entry in found["classes"]] == list(SIZES)
    for entry in found["classes"]:
        assert len(entry["arms"]) == len(SIZES[entry["matroid"]][1]) >= 3
        for line in entry["lines"]:
            assert all(us > 0.0 for us in line["us_per_round"]) and abs(line["exponent"]) < 10.0
        assert all(us > 0.0 for us in entry["update_us"])
    text = table_markdown(json.loads(json.dumps(found, allow_nan=False)), "picture.png")
    assert "FasterCUCB: instances" in text and "picture.png" in text and len(said) > 10


def test_the_quick_suite_has_the_same_cases_smaller() -> None:
    cases, scaling = suite(quick=True)
    assert [case.key for case in cases] == [case.key for case in SUITE]
    for case in cases:
        assert case.arms <= 20_000 and case.seconds < 0.1
        assert random_matroid(case.matroid, case.arms, case.rank).rank == case.rank
    assert max(scaling.arms) <= 10_000


def test_parts_of_the_suite_and_names_that_are_none() -> None:
    result = run_suite(quick=True, only=("linear-explore",))
    assert [case["key"] for case in result["cases"]] == ["linear-explore"]
    assert result["partial"] and result["quick"] and "table1" not in result and "policies" not in result
    with pytest.raises(ParameterError, match="only = 'linear' is not known, did you mean 'linear-"):
        run_suite(quick=True, only=("linear",))
