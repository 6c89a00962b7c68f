"""Rivals make our decisions, both ways of playing, in every phase; the bare loop leaves our records."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.bare import Bare
from benchmarks.cases import SUITE
from benchmarks.figures import FIGURES
from benchmarks.measure import gather
from benchmarks.rivals.registry import RIVALS, rivals_for
from semibandit.bench.contenders import Contender
from semibandit.bench.start import explore_start, late_start, snapshot
from semibandit.data.instances import random_environment, random_matroid
from semibandit.environments.codec import make_environment
from semibandit.matroids.codec import BUILT_IN

SIZES = {
    "uniform": (60, 6),
    "partition": (63, 6),
    "laminar": (70, 9),
    "graphic": (60, 14),
    "transversal": (60, 8),
    "linear": (40, 5),
}
ROUNDS = 120

# The class whose rivals are held against ours by the fast tests.
FAST = "partition"
every_class = pytest.mark.parametrize(
    "name", [FAST, *(pytest.param(name, marks=pytest.mark.slow) for name in SIZES if name != FAST)]
)


def _play(contender: Contender, n: int) -> list[list[int]]:
    return [arms.tolist() for arms in contender.play(n)[1]]


@pytest.mark.parametrize("env_name", ["noise", pytest.param("bernoulli", marks=pytest.mark.slow)])
@pytest.mark.parametrize("phase", ["explore", "late"])
@every_class
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


@every_class
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


@every_class
def test_rivals_agree_from_the_very_first_round(name: str) -> None:
    """Never-pulled arms tie at +inf: smaller ids first, in every rival that breaks ties itself."""
    from semibandit.policies import CUCB

    env = random_environment("noise", name, *SIZES[name], seed=5)
    start = snapshot(CUCB(env.matroid), env)
    contenders = [c for c in gather(start) if c.exact_ties]
    expected = _play(contenders[0], 30)
    for other in contenders[1:]:
        assert _play(other, 30) == expected, other.name


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
    assert {case.matroid for case in SUITE} == set(BUILT_IN)
    assert {"numpy argpartition", "one-pass scan", "dense Prim", "kept-order Kruskal"} <= set(RIVALS)


def test_the_bare_loop_leaves_the_records_that_the_policy_has() -> None:
    env = random_environment("beta", "uniform", 50, 5, seed=1)
    start = explore_start(env)
    ours = Contender("ours", "engine", start.cucb(), start.world())
    log = np.full((80, 5), -1, dtype=np.int64)
    ours.play_compiled(80, log)
    bare = Bare(start)
    bare.replay(log)
    assert np.array_equal(bare.records, ours.player.records)
    assert bare.t == ours.player.t
    bare.update(np.array([3]), np.array([0.25]))
    assert bare.records["count"][3] == ours.player.records["count"][3] + 1
