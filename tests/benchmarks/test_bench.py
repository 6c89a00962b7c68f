"""The benchmark: instances, rivals that make our decisions, measuring, figures, report."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from semibandit.bench.bare import Bare
from semibandit.bench.cases import SUITE, Case, Scaling, decades, suite
from semibandit.bench.figures import FIGURES, fit_exponent, judge, worst_auto
from semibandit.bench.report import report_markdown, result_text, rival_wins
from semibandit.bench.rivals import RIVALS, rivals_for
from semibandit.bench.runner import load, run_bench, save

from semibandit.bench.contenders import Contender, gather
from semibandit.bench.measure import measure_case
from semibandit.bench.start import explore_start, late_start
from semibandit.data.instances import (
    ENVIRONMENTS,
    MATROIDS,
    make_environment,
    random_environment,
    random_matroid,
)
from semibandit.engines import ENGINES
from semibandit.errors import MatroidError, ParameterError
from semibandit.text import duration, number, table

SIZES = {
    "uniform": (60, 6),
    "partition": (63, 6),
    "laminar": (70, 9),
    "graphic": (60, 14),
    "transversal": (60, 8),
    "linear": (40, 5),
}
ROUNDS = 120


# Instances


@pytest.mark.parametrize("name", MATROIDS)
@pytest.mark.parametrize(("arms", "rank"), [(1, 1), (6, 6), (30, 9), (45, 9), (600, 40)])
def test_instances_have_the_arms_and_the_rank_asked_for(name: str, arms: int, rank: int) -> None:
    built = random_matroid(name, arms, rank, seed=3)
    assert (built.n_arms, built.rank, built.name) == (arms, rank, name)


@pytest.mark.parametrize("name", MATROIDS)
def test_instances_are_functions_of_the_seed(name: str) -> None:
    assert random_matroid(name, 40, 9, seed=5) == random_matroid(name, 40, 9, seed=5)
    if name in ("graphic", "transversal", "linear"):
        assert random_matroid(name, 40, 9, seed=5) != random_matroid(name, 40, 9, seed=6)


def test_random_graphs_are_simple_and_connected() -> None:
    networkx = pytest.importorskip("networkx")
    for arms in (19, 30, 100, 189, 190):
        built = random_matroid("graphic", arms, 19, seed=arms)
        graph = networkx.Graph(zip(built._tail.tolist(), built._head.tolist(), strict=True))
        assert graph.number_of_edges() == arms
        assert networkx.is_connected(graph)
        assert not list(networkx.selfloop_edges(graph))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: random_matroid("matching", 5, 2), "matroid = 'matching' is not known: one of uniform"),
        (lambda: random_matroid("uniform", 0, 1), "arms must be a positive integer, got 0"),
        (lambda: random_matroid("uniform", 3, 4), "rank = 4 is larger than arms = 3"),
        (lambda: random_matroid("graphic", 100, 9), "9 to 45 edges"),
        (lambda: random_environment("dice", "uniform", 3, 2), "env = 'dice' is not known"),
    ],
)
def test_impossible_instances_are_refused(call: object, says: str) -> None:
    with pytest.raises((ParameterError, MatroidError), match=says):
        call()  # type: ignore[operator]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_environment_by_name(name: str) -> None:
    env = make_environment(name, random_matroid("uniform", 4, 2), [0.2, 0.4, 0.6, 0.8], seed=1)
    rewards = env.draw([0, 3])
    assert ((rewards >= 0) & (rewards <= 1)).all()


# Rivals make our decisions


def _play(contender: Contender, n: int) -> list[list[int]]:
    return [arms.tolist() for arms in contender.play(n)[1]]


@pytest.mark.parametrize("env_name", ["noise", "bernoulli"])
@pytest.mark.parametrize("phase", ["explore", "late"])
@pytest.mark.parametrize("name", SIZES)
def test_rivals_and_engines_play_the_same_arms(name: str, phase: str, env_name: str) -> None:
    env = random_environment(env_name, name, *SIZES[name], seed=2)
    start = explore_start(env) if phase == "explore" else late_start(env, 200)
    contenders = gather(start)
    ours = contenders[0]
    assert ours.ours and ours.kind == "engine"
    expected = _play(ours, ROUNDS)
    assert {c.name for c in contenders if c.kind == "rival"} == {
        spec.name for spec in rivals_for(env.matroid)
    }
    for other in contenders[1:]:
        if env_name == "bernoulli" and not other.exact_ties:
            continue
        assert _play(other, ROUNDS) == expected, other.name


@pytest.mark.parametrize("name", SIZES)
def test_the_compiled_way_plays_the_same_arms(name: str) -> None:
    env = random_environment("noise", name, *SIZES[name], seed=4)
    start = explore_start(env)
    rank = env.matroid.rank
    expected = _play(Contender("ours", "engine", start.cucb(), start.world()), ROUNDS)
    for contender in gather(start):
        if "compiled" in contender.ways:
            log = np.full((ROUNDS, rank), -1, dtype=np.int64)
            assert contender.play_compiled(ROUNDS, log) > 0.0
            assert log.tolist() == expected, contender.name


def test_rivals_agree_from_the_very_first_round() -> None:
    """Never-pulled arms tie at +inf: smaller ids first, in every rival that breaks ties itself."""
    from semibandit.bench.start import snapshot
    from semibandit.policies import CUCB

    for name, size in SIZES.items():
        env = random_environment("noise", name, *size, seed=5)
        start = snapshot(CUCB(env.matroid), env)
        contenders = [c for c in gather(start) if c.exact_ties]
        expected = _play(contenders[0], 30)
        for other in contenders[1:]:
            assert _play(other, 30) == expected, (name, other.name)


def test_uneven_groups_and_capacities() -> None:
    from semibandit.matroids import Partition, Uniform

    rng = np.random.default_rng(0)
    for capacities in ([1, 1, 1, 1], [2, 0, 1, 3]):
        matroid = Partition(np.append(rng.integers(0, 4, 40), [0, 1, 2, 3]), capacities)
        env = make_environment("bernoulli", matroid, rng.uniform(0.1, 0.9, 44), seed=1)
        contenders = gather(explore_start(env))
        expected = _play(contenders[0], ROUNDS)
        for other in contenders[1:]:
            assert _play(other, ROUNDS) == expected, (capacities, other.name)
    whole = Uniform(5, 5)
    everyone = gather(explore_start(make_environment("noise", whole, [0.5] * 5)))
    assert all(_play(c, 3) == [[0, 1, 2, 3, 4]] * 3 for c in everyone)


def test_every_rival_named_in_a_figure_exists_and_every_class_has_one() -> None:
    for name, size in SIZES.items():
        assert rivals_for(random_matroid(name, *size)), name
    keys = {case.key for case in SUITE}
    assert all(figure.key in keys for figure in FIGURES)
    assert {case.matroid for case in SUITE} == set(MATROIDS)
    assert {"numpy argpartition", "one-pass scan", "dense Prim", "kept-order Kruskal"} <= set(RIVALS)


def test_the_bare_loop_leaves_the_records_that_the_policy_has() -> None:
    env = random_environment("beta", "uniform", 50, 5, seed=1)
    start = explore_start(env)
    ours = Contender("ours", "engine", start.cucb(), start.world())
    log = np.full((80, 5), -1, dtype=np.int64)
    ours.play_compiled(80, log)
    bare = Bare(start)
    bare.replay(log)
    assert np.array_equal(bare._records, ours.player.records)
    assert bare.t == ours.player.t
    bare.update(np.array([3]), np.array([0.25]))
    assert bare._records["count"][3] == ours.player.records["count"][3] + 1


def test_starts_are_what_they_say() -> None:
    env = random_environment("noise", "uniform", 50, 5, seed=1)
    start = explore_start(env)
    assert (start.records["count"] == 1).all() and start.t == 10 and start.policy is None
    assert (start.pulls == 1).all()
    late = late_start(env, 70)
    assert late.t == 70 and late.records["count"].sum() == 350 and late.policy is not None
    assert (env.pulls == 0).all(), "the world that was handed in stays as it was"


# Measuring


def _tiny(**changes: object) -> Case:
    settings = {"rounds": 30, "repeats": 2, "seconds": 0.002, "latency_rounds": 20, **changes}
    return Case("tiny", **settings)  # type: ignore[arg-type]


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


@pytest.mark.parametrize("phase", ["explore", "late"])
def test_a_measured_case_is_complete(phase: str) -> None:
    case = _tiny(matroid="uniform", arms=60, rank=6, phase=phase, late_rounds=100)
    measured = json.loads(json.dumps(measure_case(case), allow_nan=False))
    assert measured["agree"] is True
    assert measured["late_rounds"] == (100 if phase == "late" else None)
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
    from semibandit.bench.array_rivals import Argpartition

    monkeypatch.setattr(Argpartition, "_base", lambda self, lam: np.arange(self.rank, dtype=np.int64))
    measured = measure_case(_tiny(matroid="uniform", arms=60, rank=6, rivals=("numpy argpartition",)))
    assert measured["agree"] is False
    result = {"cases": [measured], "scaling": [], "figures": [], "machine": {"cores": 2}}
    assert "DIFFERS" in result_text(result) and "WARNING" in result_text(result)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"phase": "middle"}, "phase = 'middle' is not known"),
        ({"repeats": 0}, "repeats must be at least 1"),
        ({"seconds": 0.0}, "seconds must be positive"),
        ({"engines": ("warp",)}, "engine = 'warp' is not known: one of auto"),
        ({"rivals": ("dense Prim",)}, "rival = 'dense Prim' does not play here"),
    ],
)
def test_impossible_cases_are_refused(changes: dict[str, object], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        measure_case(_tiny(**{"matroid": "uniform", "arms": 60, "rank": 6, **changes}))


def test_scaling_has_lines_with_exponents(tmp_path: object) -> None:
    scaling = Scaling(_tiny(matroid="uniform", arms=60, rank=6, rivals=()), (10, 100, 400), fit_from=100)
    assert [case.rank for case in scaling.cases()] == [5, 6, 6]
    result = run_bench([], [scaling])
    lines = result["scaling"][0]["lines"]
    auto = next(line for line in lines if line["name"] == "auto" and line["way"] == "compiled")
    assert auto["arms"] == [10, 100, 400] and auto["exponent"] is not None and auto["ours"]
    assert any("exponent" in figure["figure"] for figure in result["figures"])
    assert "us a round over K" in result_text(result)


# Figures, report, tables


def test_the_exponent_of_a_power_law() -> None:
    arms = [10.0, 100.0, 1000.0]
    assert fit_exponent(arms, [3.0 * k**0.7 for k in arms]) == pytest.approx(0.7)
    assert fit_exponent(arms[:1], [1.0]) is None


def _case(key: str, **us: float) -> dict[str, object]:
    """A measured case made by hand: ours, a rival, the bare loop, both ways."""
    rows: list[dict[str, object]] = []
    for way in ("python", "compiled"):
        for name, kind in (("kinetic", "engine"), ("numpy argpartition", "rival"), ("bare loop", "bare")):
            if name == "numpy argpartition" and way == "compiled":
                continue
            value = us[kind] * (3.0 if way == "python" and kind == "engine" else 1.0)
            mine = us["engine"]
            rows.append(
                {
                    "name": name,
                    "kind": kind,
                    "way": way,
                    "us_per_round": value,
                    "repeats_us": [value],
                    "rounds": 5,
                    "times_ours": {"python": value / (3 * mine), "compiled": value / mine},
                    "times_bare": value / us["bare"],
                    "latency_us": {"p50": 1.0, "p99": 2.0, "p99_9": 3.0, "max": 4.0, "n": 5},
                    "bytes_per_arm": 50.0,
                    "agrees": True,
                    "ours": kind == "engine",
                    "auto": kind == "engine",
                }
            )
    return {
        "key": key,
        "title": key,
        "phase": "explore",
        "matroid": "uniform",
        "arms": 1000,
        "rank": 10,
        "env": "noise",
        "clock": "exact",
        "late_rounds": None,
        "agree": True,
        "rows": rows,
    }


def test_figures_are_judged_by_the_right_ratio() -> None:
    found = judge([_case("uniform-explore", engine=10.0, rival=6300.0, bare=0.5)], [])
    by_name = {figure["figure"]: figure for figure in found}
    assert by_name["x numpy argpartition, from Python"]["reached"] == pytest.approx(210.0)
    assert by_name["x numpy argpartition, from Python"]["met"] is True
    assert by_name["x numpy argpartition, compiled"]["reached"] == pytest.approx(630.0)
    assert by_name["x one-pass scan, compiled"]["met"] is None, "that rival was not measured"
    assert by_name["bytes an arm"]["met"] is True
    late = judge([_case("uniform-late", engine=10.0, rival=6300.0, bare=0.5)], [])
    assert [figure["met"] for figure in late] == [False, False]
    assert worst_auto([_case("x", engine=1.0, rival=1.0, bare=1.0)]) is None


def test_the_report_says_where_a_rival_wins_and_names_no_place() -> None:
    good, bad = (_case(key, engine=10.0, rival=us, bare=0.5) for key, us in (("good", 900.0), ("bad", 20.0)))
    machine = {
        "cores": 2,
        "system": "Linux",
        "architecture": "x86_64",
        "python": "3.12",
        "packages": {"numpy": "2.0"},
    }
    result = {
        "schema": 1,
        "machine": machine,
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


def test_results_survive_the_disk_and_others_are_refused(tmp_path: object) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path))
    result = {
        "schema": 1,
        "cases": [_case("a", engine=1.0, rival=2.0, bare=0.1)],
        "scaling": [],
        "figures": [],
    }
    save(result, folder / "a.json")
    assert load(folder / "a.json") == result
    (folder / "b.json").write_text('{"schema": 7}')
    (folder / "c.json").write_text("{")
    for name in ("b.json", "c.json", "missing.json"):
        with pytest.raises(ParameterError, match="is not a benchmark result"):
            load(folder / name)


def test_the_quick_suite_has_the_same_cases_smaller() -> None:
    cases, scaling = suite(quick=True)
    assert [case.key for case in cases] == [case.key for case in SUITE]
    for case in cases:
        assert case.arms <= 20_000 and case.seconds < 0.1
        assert random_matroid(case.matroid, case.arms, case.rank).rank == case.rank
    assert max(scaling.arms) <= 10_000
    assert decades(1_000_000, 10, "uniform") == (1_000, 10_000, 100_000, 1_000_000)
    with pytest.raises(ParameterError, match="too few to scale"):
        decades(30, 10, "uniform")


def test_numbers_as_people_read_them() -> None:
    values = [0.2134, 7.94, 49.96, 523.4, 3120.0, 0.0, float("nan"), None]
    assert [number(v) for v in values] == ["0.213", "7.94", "50.0", "523", "3,120", "0", "-", "-"]
    seconds = (0.01, 0.1, 8.2, 60, 750, 3 * 3600, 4 * 86400)
    assert [duration(s) for s in seconds] == ["10 ms", "0.1 s", "8.2 s", "1 min", "12 min", "3 h", "4 days"]
    lines = table(("a", "b"), [("x", "10"), ("long", "7")]).splitlines()
    assert lines == ["a      b", "----  --", "x     10", "long   7"]


def test_table_1_is_measured_and_written() -> None:
    from semibandit.bench.paper import SIZES, measure_table, table_markdown

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
