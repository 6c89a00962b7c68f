"""`semibandit.bench`: our engines, numpy and a scan on an instance of one's own."""

from __future__ import annotations

import json

import numpy as np
import pytest

from semibandit.bench import Case, measure_instance
from semibandit.bench.contenders import gather
from semibandit.bench.numpy_rivals import Argpartition
from semibandit.bench.start import explore_start, late_start
from semibandit.bench.table import case_text
from semibandit.data.instances import random_environment
from semibandit.errors import ParameterError

SIZES = {
    "uniform": (60, 6),
    "partition": (63, 6),
    "laminar": (70, 9),
    "graphic": (60, 14),
    "transversal": (60, 8),
    "linear": (40, 5),
}
ROUNDS = 60


def _tiny(**changes: object) -> Case:
    settings = {"matroid": "uniform", "arms": 60, "rank": 6, "rounds": 30, "repeats": 2, "seconds": 0.002}
    return Case("tiny", latency_rounds=20, **{**settings, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("env_name", ["noise", "bernoulli"])
@pytest.mark.parametrize("name", SIZES)
def test_numpy_and_the_scan_make_our_decisions(name: str, env_name: str) -> None:
    start = explore_start(random_environment(env_name, name, *SIZES[name], seed=2))
    ours, *others = gather(start)
    assert ours.ours and ours.auto and others[-1].kind == "rival"
    expected = [arms.tolist() for arms in ours.play(ROUNDS)[1]]
    for other in others:
        assert [arms.tolist() for arms in other.play(ROUNDS)[1]] == expected, other.name


def test_numpy_breaks_ties_of_arms_never_pulled_by_id() -> None:
    from semibandit.bench.start import snapshot
    from semibandit.policies import CUCB

    for name, size in SIZES.items():
        env = random_environment("noise", name, *size, seed=5)
        ours, *others = gather(snapshot(CUCB(env.matroid), env))
        expected = [arms.tolist() for arms in ours.play(20)[1]]
        for other in others:
            assert [arms.tolist() for arms in other.play(20)[1]] == expected, (name, other.name)


def test_starts_are_what_they_say() -> None:
    env = random_environment("noise", "uniform", 50, 5, seed=1)
    start = explore_start(env)
    assert (start.records["count"] == 1).all() and start.t == 10 and start.policy is None
    assert (start.pulls == 1).all()
    late = late_start(env, 70, exploration=0.3)
    assert late.cucb().exploration == 0.3 and late.cucb().confidence_width == late.lam
    assert late.t == 70 and late.records["count"].sum() == 350 and late.policy is not None
    assert (env.pulls == 0).all(), "the world that was handed in stays as it was"


@pytest.mark.parametrize("phase", ["explore", "middle", "late"])
def test_a_measured_instance_is_complete(phase: str) -> None:
    told = json.loads(json.dumps(measure_instance(_tiny(phase=phase, late_rounds=80)), allow_nan=False))
    (case,) = told["cases"]
    assert case["agree"] and case["late_rounds"] == (None if phase == "explore" else 80)
    assert {(row["name"], row["way"]) for row in case["rows"]} == {
        ("kinetic", "python"),
        ("kinetic", "compiled"),
        ("resolve", "python"),
        ("resolve", "compiled"),
        ("numpy argpartition", "python"),
    }
    for row in case["rows"]:
        assert (
            row["us_per_round"] == pytest.approx(np.median(row["repeats_us"])) and row["times_bare"] is None
        )
        assert row["agrees"] and row["checked_rounds"] > 0 and row["bytes_per_arm"] > 8
        if row["ours"]:
            assert row["auto"] and row["times_ours"][row["way"]] == pytest.approx(1.0)
            assert 0 < row["latency_us"]["p50"] <= row["latency_us"]["max"]
    assert 0.0 < case["exchanges"] <= case["rank"] and "arms exchanged a round" in case_text(case)
    text = case_text(case)
    assert "kinetic (auto)" in text and "bare" not in text and "p99.9" in text


def test_engines_asked_for_come_first() -> None:
    rows = measure_instance(_tiny(engines=("resolve", "auto")))["cases"][0]["rows"]
    assert next(row for row in rows if row["ours"])["name"] == "resolve"
    assert {row["name"] for row in rows} == {"resolve", "kinetic", "numpy argpartition"}


def test_a_contender_that_decides_otherwise_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Argpartition, "_base", lambda self, lam: np.arange(self.rank, dtype=np.int64))
    case = measure_instance(_tiny())["cases"][0]
    assert case["agree"] is False and "DIFFERS" in case_text(case) and "WARNING" in case_text(case)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"phase": "midle"}, "phase = 'midle' is not known"),
        ({"exploration": 0.0}, "exploration must be positive"),
        ({"repeats": 0}, "repeats must be at least 1"),
        ({"seconds": 0.0}, "seconds must be positive"),
        ({"engines": ("warp",)}, "engine = 'warp' is not known: one of auto"),
    ],
)
def test_impossible_cases_are_refused(changes: dict[str, object], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        measure_instance(_tiny(**changes))
