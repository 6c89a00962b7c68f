"""simulate and compare: both paths, checkpoints, common random numbers, bad input."""

from __future__ import annotations

import numpy as np
import pytest

import semibandit as sb
from semibandit.simulation.result import checkpoints
from semibandit.simulation.side_by_side import Agenda
from support.random_matroids import RANDOM


def environments(matroid):
    means = np.linspace(0.2, 0.8, matroid.n_arms)
    rng = np.random.default_rng(0)
    return [
        sb.Bernoulli(matroid, means, seed=4),
        sb.Beta(matroid, means, seed=4),
        sb.Gaussian(matroid, means, 0.2, seed=4),
        sb.UniformNoise(matroid, means, 0.2, seed=4),
        sb.Table(matroid, [rng.random(5) for _ in means], reward_range=(0.0, 1.0), seed=4),
        sb.Correlated(matroid, means, seed=4),
    ]


@pytest.mark.thin
@pytest.mark.parametrize("kind", ["uniform", "partition", "laminar", "graphic", "transversal"])
@pytest.mark.parametrize("clock", ["exact", "staircase"])
def test_compiled_and_stepwise_paths_play_the_same_arms(kind, clock):
    matroid, _ = RANDOM[kind](np.random.default_rng(8), 13)
    for env in environments(matroid):
        runs = {}
        for path in ("compiled", "stepwise"):
            policy = sb.CUCB(matroid, clock=clock)
            runs[path] = sb.simulate(policy, env.clone(), 300, path=path, record_arms=True)
            assert runs[path].path == path
            assert policy.t == 300
        one, two = runs["compiled"], runs["stepwise"]
        assert np.array_equal(one.arms, two.arms)
        assert np.array_equal(one.rounds, two.rounds)
        assert np.allclose(one.regret, two.regret, rtol=1e-12, atol=1e-9)
        assert np.allclose(one.reward, two.reward, rtol=1e-12)


def test_kinetic_and_resolve_give_one_run_at_medium_size():
    matroid = sb.Uniform(2000, 7)
    env = sb.Bernoulli(matroid, np.random.default_rng(1).random(2000), seed=2)
    runs = [
        sb.simulate(sb.CUCB(matroid, engine=engine), env.clone(), 20_000, record_arms=True)
        for engine in ("kinetic", "resolve")
    ]
    assert np.array_equal(runs[0].arms, runs[1].arms)


@pytest.mark.slow
@pytest.mark.parametrize("values", ["bernoulli", "beta"])
def test_long_lockstep_uniform_and_partition(values):
    rng = np.random.default_rng(9)
    for matroid in (sb.Uniform(2000, 10), sb.Partition(rng.integers(0, 25, 2000), 2)):
        env = (sb.Bernoulli if values == "bernoulli" else sb.Beta)(matroid, rng.random(2000), seed=5)
        runs = [
            sb.simulate(sb.CUCB(matroid, engine=engine), env.clone(), 100_000, record_arms=True)
            for engine in ("kinetic", "resolve")
        ]
        assert np.array_equal(runs[0].arms, runs[1].arms)


def test_a_run_can_be_continued():
    matroid = sb.Uniform(300, 4)
    means = np.linspace(0, 1, 300)
    whole = sb.simulate(sb.CUCB(matroid), sb.Bernoulli(matroid, means, seed=3), 500, record_arms=True)
    policy, env = sb.CUCB(matroid), sb.Bernoulli(matroid, means, seed=3)
    parts = [
        sb.simulate(policy, env, n, record_arms=True, path=p)
        for n, p in ((200, "auto"), (100, "stepwise"), (200, "auto"))
    ]
    assert np.array_equal(np.concatenate([part.arms for part in parts]), whole.arms)


def test_checkpoints_end_at_the_last_round():
    for rounds in (1, 2, 3, 10, 999, 10**6):
        marks = checkpoints(rounds, None)
        assert marks[0] == 1 and marks[-1] == rounds and (np.diff(marks) > 0).all()
        assert len(marks) <= 45 * max(np.log10(rounds), 1)
    assert checkpoints(10, 4).tolist() == [4, 8, 10]
    assert checkpoints(10, 20).tolist() == [10]


def test_result_is_cumulative_and_timed():
    matroid = sb.Uniform(50, 5)
    env = sb.Bernoulli(matroid, np.linspace(0, 1, 50), seed=1)
    for path in ("compiled", "stepwise"):
        result = sb.simulate(sb.CUCB(matroid), env.clone(), 400, path=path)
        n = len(result.rounds)
        for column in (result.regret, result.reward, result.select_seconds, result.update_seconds):
            assert column.shape == (n,) and (np.diff(column) >= -1e-9).all()
        assert result.select_seconds[-1] > 0 and result.update_seconds[-1] > 0
        assert result.microseconds_per_round > 0
        frame = result.to_frame()
        assert frame.columns[:4] == ["policy", "round", "regret", "reward"] and len(frame) == n


def test_regret_is_that_of_the_played_arms():
    matroid = sb.Uniform(9, 3)
    means = np.linspace(0.1, 0.9, 9)
    result = sb.simulate(
        sb.CUCB(matroid), sb.Bernoulli(matroid, means, seed=6), 50, record_every=1, record_arms=True
    )
    lost = means[-3:].sum() - means[result.arms].sum(axis=1)
    assert np.allclose(result.regret, np.cumsum(lost))


def test_rounds_to_record_at_may_be_listed():
    matroid = sb.Uniform(9, 3)
    env = sb.Bernoulli(matroid, np.linspace(0.1, 0.9, 9), seed=6)
    every = sb.simulate(sb.CUCB(matroid), env.clone(), 50, record_every=1)
    for path in ("compiled", "stepwise"):
        some = sb.simulate(sb.CUCB(matroid), env.clone(), 50, record_every=[30, 7, 7], path=path)
        assert some.rounds.tolist() == [7, 30, 50]
        assert np.allclose(some.regret, every.regret[[6, 29, 49]])


def test_compare_pairs_policies_and_leaves_them_alone():
    matroid = sb.Uniform(12, 2)
    env = sb.Bernoulli(matroid, np.linspace(0.1, 0.9, 12))
    policies = {
        "a": sb.CUCB(matroid),
        "b": sb.CUCB(matroid, engine="resolve"),
        "c": sb.CUCB(matroid, exploration=0.2),
    }
    result = sb.compare(policies, env, 200, repeats=4, seed=7)
    assert np.array_equal(result.regret("a"), result.regret("b"))
    assert not np.array_equal(result.regret("a"), result.regret("c"))
    assert len(np.unique(result.regret("a")[:, -1])) > 1, "repeats must differ"
    assert result.regret("a").shape == (4, len(result.rounds))
    assert all(policy.t == 0 for policy in policies.values()) and env.round == 0
    again = sb.compare(policies, env, 200, repeats=4, seed=7)
    assert np.array_equal(result.regret("c"), again.regret("c"))
    rows = result.summary()
    assert [row["policy"] for row in rows] == ["a", "b", "c"]
    assert len(result.to_frame()) == 3 * 4 * len(result.rounds)
    names = list(sb.compare([sb.CUCB(matroid), sb.CUCB(matroid)], env, 10, repeats=1).runs)
    assert names == ["cucb", "cucb-2"]


def test_runs_that_take_longest_come_first_once_that_is_known():
    tasks = [(name, repeat) for repeat in range(3) for name in "abc"]
    agenda = Agenda(tasks)
    first = [agenda.next() for _ in range(3)]
    assert first == [("a", 0), ("b", 0), ("c", 0)]
    for (name, _), seconds in zip(first, (1.0, 3.0, 2.0), strict=True):
        agenda.took((name, 0), seconds)
    rest = [agenda.next() for _ in range(6)]
    assert rest == [("b", 1), ("b", 2), ("c", 1), ("c", 2), ("a", 1), ("a", 2)]


@pytest.mark.parametrize("workers", [2, 5])
def test_compare_in_threads_finds_the_same(workers):
    """Compiled and stepwise runs, random and deterministic policies: the same numbers in the same order."""
    matroid = sb.Partition(np.arange(30) % 5, 2)
    worlds = [
        sb.Bernoulli(matroid, np.linspace(0.1, 0.9, 30)),
        Slow(matroid, np.linspace(0.1, 0.9, 30)),
    ]
    policies = {"cucb": sb.CUCB(matroid), "cts": sb.CTS(matroid), "random": sb.Random(matroid)}
    for env in worlds:
        one = sb.compare(policies, env, 300, repeats=5, seed=3)
        other = sb.compare(policies, env, 300, repeats=5, seed=3, workers=workers)
        assert list(one.runs) == list(other.runs)
        for name in policies:
            assert np.array_equal(one.regret(name), other.regret(name))
            assert [run.reward.tolist() for run in one.runs[name]] == [
                run.reward.tolist() for run in other.runs[name]
            ]
    assert all(policy.t == 0 for policy in policies.values())


def test_compare_in_threads_hands_on_what_went_wrong():
    class Broken(Slow):
        def _draw(self, arms, t):
            raise ZeroDivisionError("the world ends")

    matroid = sb.Uniform(5, 2)
    with pytest.raises(ZeroDivisionError, match="the world ends"):
        sb.compare([sb.CUCB(matroid)], Broken(matroid, np.full(5, 0.5)), 50, repeats=6, workers=3)
    with pytest.raises(sb.ParameterError, match="workers"):
        sb.compare([sb.CUCB(matroid)], sb.Bernoulli(matroid, np.full(5, 0.5)), 50, workers=0)


class Slow(sb.Environment):
    def _draw(self, arms, t):
        return self.means[arms]


def test_user_environments_run_stepwise():
    matroid = sb.Uniform(5, 2)
    env = Slow(matroid, np.linspace(0, 1, 5))
    assert sb.simulate(sb.CUCB(matroid), env, 20).path == "stepwise"
    with pytest.raises(sb.ParameterError, match="compiled"):
        sb.simulate(sb.CUCB(matroid), env, 20, path="compiled")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"rounds": 0}, "rounds"),
        ({"rounds": 2.5}, "rounds"),
        ({"rounds": 5, "record_every": 0}, "record_every"),
        ({"rounds": 5, "record_every": [2, 6]}, "record_every"),
        ({"rounds": 5, "record_every": []}, "record_every"),
        ({"rounds": 5, "record_every": "often"}, "record_every"),
        ({"rounds": 5, "path": "scenic"}, "scenic"),
    ],
)
def test_bad_runs_are_refused(arguments, words):
    matroid = sb.Uniform(5, 2)
    with pytest.raises(sb.ParameterError, match=words):
        sb.simulate(sb.CUCB(matroid), sb.Bernoulli(matroid, np.full(5, 0.5)), **arguments)


def test_mismatches_are_refused_before_anything_runs():
    small, large = sb.Uniform(5, 2), sb.Uniform(6, 2)
    env = sb.Bernoulli(large, np.full(6, 0.5))
    policy = sb.CUCB(small)
    with pytest.raises(sb.ParameterError, match="5 arms but env has 6"):
        sb.simulate(policy, env, 10)
    with pytest.raises(sb.ParameterError, match="reward_range"):
        sb.simulate(sb.CUCB(large, reward_range=(0.0, 0.5)), env, 10)
    with pytest.raises(sb.ParameterError, match="repeats"):
        sb.compare([sb.CUCB(large)], env, 10, repeats=0)
    with pytest.raises(sb.ParameterError, match="empty"):
        sb.compare([], env, 10)
    assert policy.t == 0 and env.round == 0
