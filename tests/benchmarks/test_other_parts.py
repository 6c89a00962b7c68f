"""The suite's other parts: large instances, real data, whole programs. Rivals are right, tables are whole."""

from __future__ import annotations

import json

import numpy as np
import pytest

import semibandit as sb
from benchmarks.large import LARGE, PlainSampler, kl_scan, large_cells, large_figures, measure_large, start
from benchmarks.real import REAL, SortedIndex, measure_real, real_cells
from benchmarks.rivals.kl_scan import kl_upper
from benchmarks.whole import measure_whole, whole_figures, whole_lines
from semibandit.data.instances import random_environment


def test_the_scan_of_kl_osm_decides_as_the_policy_does() -> None:
    env = random_environment("noise", "uniform", 60, 5, seed=3)
    policy = sb.KLOSM(env.matroid)
    everyone = np.arange(60)
    policy.update(everyone, env.draw(everyone, 1))
    for _ in range(5):  # in the first rounds the level is 0, which the rival does not know
        arms = policy.select()
        policy.update(arms, env.draw(arms, policy.t))
    rival = kl_scan(policy)
    for _ in range(200):
        arms = policy.select()
        assert rival.select().tolist() == arms.tolist()
        rewards = env.draw(arms, policy.t)
        policy.update(arms, rewards)
        rival.update(arms, rewards)


@pytest.mark.parametrize(("total", "count"), [(0.0, 3.0), (3.0, 3.0), (1.3, 4.0), (2.999, 3.0), (1e-9, 2.0)])
def test_the_root_of_the_scan_is_where_the_divergence_reaches_the_level(total: float, count: float) -> None:
    def kl(p: float, q: float) -> float:
        parts = [x * np.log(x / y) for x, y in ((p, q), (1.0 - p, 1.0 - q)) if x > 0.0]
        return float(np.sum(parts))

    mean, level = total / count, 2.5
    own = count * (kl(mean, 0.5) - np.log(2.0))
    q = kl_upper(total, count - total, own, level)
    if total > 0.99 * count:  # the root is 1, or nearer to it than floats can say
        assert q == 1.0
    else:
        assert count * kl(mean, q) == pytest.approx(level, rel=1e-9) and q > mean


def test_the_plain_sampler_knows_what_the_policy_knows() -> None:
    ours, theirs = start(LARGE[0].small(), "middle")
    rival = theirs.player
    assert isinstance(rival, PlainSampler)
    assert rival.wins.sum() + rival.losses.sum() == pytest.approx(
        2 * ours.env.n_arms + ours.player.counts.sum()
    )
    arms = rival.select()
    assert len(set(arms.tolist())) == ours.player.matroid.rank == len(ours.player.select())


def test_the_rival_on_costs_decides_as_the_policy_with_an_exact_clock() -> None:
    matroid = sb.Graphic([(0, 1), (1, 2), (0, 2), (2, 3), (1, 3)])
    env = sb.minimize(sb.Beta(matroid, [0.2, 0.4, 0.5, 0.7, 0.3], seed=2))
    policy = sb.minimize(sb.CUCB(matroid, clock="exact"))
    everyone = np.arange(5)
    policy.update(everyone, env.draw(everyone, 1))
    rival = SortedIndex(policy, costs=True)
    for _ in range(100):
        arms = policy.select()
        assert sorted(rival.select().tolist()) == arms.tolist()
        costs = env.draw(arms, policy.t)
        policy.update(arms, costs)
        rival.update(arms, costs)


@pytest.mark.slow
def test_large_instances_are_measured() -> None:
    found = measure_large(seconds=0.005, repeats=2, entries=[entry.small() for entry in LARGE])
    assert len(found) == sum(len(entry.phases) for entry in LARGE)
    assert all(row["ours_us"] > 0.0 and row["rival_us"] > 0.0 for row in found)
    assert len(large_figures(found)) == len(large_cells(found)[1]) == len(found)
    json.dumps(found, allow_nan=False)


@pytest.mark.slow
def test_real_data_is_measured() -> None:
    pytest.importorskip("bokeh_sampledata")
    some = [entry for entry in REAL if entry.title in ("flights partition", "movies laminar")]
    found = measure_real(seconds=0.005, repeats=2, entries=some, most_rounds=50)
    assert [row["phase"] for row in found] == ["explore", "middle"] * 2
    assert [row["costs"] for row in found] == [True, True, False, False]
    assert all(len(row) == len(real_cells(found)[0]) for row in real_cells(found)[1])


def test_whole_programs_are_measured() -> None:
    found = json.loads(json.dumps(measure_whole(quick=True), allow_nan=False))
    assert found["compare"]["same"], "the same numbers with any number of workers"
    figures = whole_figures(found)
    assert [figure["sense"] for figure in figures] == ["at most", "at least", "at least"]
    assert figures[0]["met"] == (figures[0]["reached"] <= 3.0)
    assert "OTHER NUMBERS" not in " ".join(whole_lines(found))
