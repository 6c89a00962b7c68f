"""CUCB against a naive CUCB, its clocks, its input checks, and its regret."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import semibandit as sb
from oracles.cucb import NaiveCUCB
from semibandit.engines import ENGINES
from semibandit.engines.clock import new_clock, tick
from semibandit.testing import check_policy
from support.random_matroids import RANDOM


def engines_for(matroid, clock="exact"):
    return [name for name, spec in ENGINES.items() if spec.fits(matroid, clock)]


@pytest.mark.bounds
@pytest.mark.parametrize("kind", sorted(RANDOM))
def test_contract_on_every_matroid_and_engine(kind):
    rng = np.random.default_rng(5)
    for size in (1, 4, 12):
        matroid, _ = RANDOM[kind](rng, size)
        for clock in ("exact", "staircase", "auto"):
            names = ["auto"] if clock == "auto" else engines_for(matroid, clock)
            for engine in names:
                check_policy(lambda m=matroid, e=engine, c=clock: sb.CUCB(m, engine=e, clock=c), rounds=24)


@pytest.mark.thin
@pytest.mark.bounds
@pytest.mark.parametrize("kind", sorted(RANDOM))
@pytest.mark.parametrize("stair", [None, 0.01, 0.3])
def test_decisions_equal_naive_cucb(kind, stair):
    """Late, partial and repeated feedback, exclusions, few reward values (ties), every engine."""
    clock = "exact" if stair is None else "staircase"
    for seed in range(4):
        rng = np.random.default_rng(100 * seed + 3)
        matroid, independent = RANDOM[kind](rng, int(rng.integers(1, 12)))
        naive = NaiveCUCB(matroid.n_arms, independent, stair=stair)
        policies = [
            sb.CUCB(matroid, engine=name, clock=clock, step=stair or 0.01)
            for name in engines_for(matroid, clock)
        ]
        waiting = []
        for t in range(60):
            exclude = rng.integers(0, matroid.n_arms, 2).tolist() if t % 9 == 8 else []
            expected = naive.select(exclude)
            for policy in policies:
                arms = policy.select(exclude=exclude) if exclude else policy.select()
                assert arms.tolist() == expected, (policy, t)
            rewards = rng.choice([0.0, 0.5, 1.0], len(expected)).tolist()
            waiting.append((expected, rewards))
            if rng.random() < 0.6:
                for arms, values in waiting:
                    naive.update(arms, values)
                    for policy in policies:
                        policy.update(arms, values)
                waiting.clear()


@settings(deadline=None, max_examples=25, derandomize=True)
@given(
    st.integers(1, 40),
    st.integers(1, 40),
    st.lists(st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=40, max_size=40), max_size=25),
)
def test_uniform_decisions_equal_naive_cucb(n_arms, rank, table):
    rank = min(rank, n_arms)
    policy = sb.CUCB(sb.Uniform(n_arms, rank), engine="kinetic")
    naive = NaiveCUCB(n_arms, lambda arms: len(arms) <= rank)
    for row in table:
        arms = policy.select()
        assert arms.tolist() == naive.select()
        policy.update(arms, row[:rank])
        naive.update(arms.tolist(), row[:rank])
        policy._engine._check()


def test_all_arms_are_covered_in_about_k_over_d_rounds():
    policy = sb.CUCB(sb.Uniform(1000, 10))
    for _ in range(100):
        arms = policy.select()
        policy.update(arms, np.zeros(10))
    assert (policy.counts == 1).all()


def test_loops_are_never_waited_for():
    matroid = sb.Graphic([(0, 1), (1, 1), (1, 2), (0, 2)])
    policy = sb.CUCB(matroid)
    for _ in range(50):
        arms = policy.select()
        assert 1 not in arms
        policy.update(arms, np.full(len(arms), 0.5))
    assert policy.counts[1] == 0 and np.isnan(policy.means[1])


def test_order_of_feedback_is_immaterial_for_exact_sums():
    rng = np.random.default_rng(0)
    arms = rng.integers(0, 30, 400)
    rewards = rng.integers(0, 5, 400) / 4
    shuffle = rng.permutation(400)
    one, two = sb.CUCB(sb.Uniform(30, 4)), sb.CUCB(sb.Uniform(30, 4))
    one.update(arms, rewards)
    for i in shuffle:
        two.update([int(arms[i])], [float(rewards[i])])
    assert np.array_equal(one.means, two.means)
    assert one.select().tolist() == two.select().tolist()


def test_means_use_the_number_of_pulls():
    policy = sb.CUCB(sb.Uniform(3, 1))
    for _ in range(7):
        policy.select()
    policy.update([1, 1, 1, 2], [1.0, 0.0, 0.5, 0.25])
    assert policy.counts.tolist() == [0, 3, 1]
    assert policy.means[1] == 0.5 and policy.means[2] == 0.25 and np.isnan(policy.means[0])
    assert policy.t == 7


def test_staircase_is_at_most_one_step_too_wide_and_rarely_moves():
    exact, stairs = new_clock(1.5), new_clock(1.5, 0.01)
    widths = []
    for t in range(1, 200_000, 7):
        lam, up = tick(exact, t), tick(stairs, t)
        assert lam == np.sqrt(1.5 * np.log(t)) or abs(lam - np.sqrt(1.5 * np.log(t))) < 1e-15 * lam
        assert lam <= up <= 1.01 * lam * (1 + 1e-12)
        widths.append(up)
    assert len(set(widths)) <= 2 + np.log(widths[-1] / widths[1]) / np.log1p(0.01)


def test_any_schedule_may_be_passed_and_a_falling_one_is_refused():
    matroid = sb.Uniform(300, 3)
    rng = np.random.default_rng(2)
    up = {name: sb.CUCB(matroid, engine=name, schedule=lambda t: 0.1 * t) for name in ("kinetic", "resolve")}
    for _ in range(150):
        arms = {name: policy.select() for name, policy in up.items()}
        assert np.array_equal(arms["kinetic"], arms["resolve"])
        rewards = rng.random(3)
        for policy in up.values():
            policy.update(arms["kinetic"], rewards)
    falling = sb.CUCB(matroid, engine="kinetic", schedule=lambda t: 5.0 - t)
    falling.select()
    with pytest.raises(sb.ClockError, match=r"went down from 4\.0 to 3\.0"):
        falling.select()
    assert falling.t == 1
    any_way = sb.CUCB(matroid, engine="resolve", schedule=lambda t: 5.0 / t)
    assert len([any_way.select() for _ in range(5)]) == 5
    with pytest.raises(sb.ClockError, match="schedule"):
        sb.CUCB(matroid, schedule=lambda t: float("nan")).select()


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"reward_range": (1.0, 0.0)}, sb.ParameterError, "reward_range"),
        ({"reward_range": (0.0, float("inf"))}, sb.ParameterError, "reward_range"),
        ({"reward_range": 3}, sb.ParameterError, "reward_range"),
        ({"exploration": -1.0}, sb.ParameterError, "exploration"),
        ({"exploration": float("nan")}, sb.ParameterError, "exploration"),
        ({"clock": "sundial"}, sb.ParameterError, "sundial"),
        ({"engine": "steam"}, sb.ParameterError, "steam"),
        ({"step": 0.0}, sb.ParameterError, "step"),
        ({"schedule": 3}, sb.ParameterError, "schedule"),
    ],
)
def test_bad_parameters_are_named(arguments, error, words):
    with pytest.raises(error, match=words):
        sb.CUCB(sb.Uniform(3, 1), **arguments)


def test_a_policy_needs_a_matroid():
    with pytest.raises(sb.ParameterError, match="matroid"):
        sb.CUCB(10)


def test_refused_feedback_names_the_entry():
    policy = sb.CUCB(sb.Uniform(5, 2), reward_range=(0.0, 2.0))
    with pytest.raises(sb.RewardError, match=r"rewards\[1\] = nan for arm 3"):
        policy.update([1, 3], [0.5, float("nan")])
    with pytest.raises(
        sb.RewardError, match=r"rewards\[0\] = 2.5 for arm 1 is outside reward_range = \(0.0, 2.0\)"
    ):
        policy.update([1, 3], [2.5, 0.0])
    with pytest.raises(sb.ArmError, match=r"arms\[1\] = 5 is not an arm: ids are 0 .. 4"):
        policy.update(np.array([1, 5]), np.array([0.5, 0.5]))
    with pytest.raises(sb.ArmError, match="integers"):
        policy.update([0.0], [0.5])
    with pytest.raises(sb.RewardError, match="one reward per arm"):
        policy.update([0, 1], [0.5])
    assert policy.counts.sum() == 0


def test_arms_that_come_and_go():
    policy = sb.CUCB(sb.Uniform(6, 2))
    policy.delete([0, 1])
    assert policy.select().tolist() == [2, 3]
    policy.update([2, 3, 4, 5], [0.1, 0.2, 0.3, 0.4])
    policy.insert([1])
    assert 1 in policy.select()
    other = policy.clone()
    assert other.select().tolist() == policy.select().tolist()
    assert 0 not in other.select()


def test_a_ground_set_that_grows_goes_on_as_if_it_had_been_large():
    large = sb.Uniform(40, 3)
    grown, whole = sb.CUCB(sb.Uniform(10, 3)), sb.CUCB(large)
    whole.delete(np.arange(10, 40))
    rng = np.random.default_rng(4)
    for t in range(60):
        if t == 20:
            grown.grow(large)
            grown.delete(np.arange(25, 40))
            whole.insert(np.arange(10, 25))
        if t == 40:
            grown.insert([30, 31])
            whole.insert([30, 31])
        arms = grown.select()
        assert arms.tolist() == whole.select().tolist()
        rewards = rng.integers(0, 2, 3)
        grown.update(arms, rewards)
        whole.update(arms, rewards)
    with pytest.raises(sb.ParameterError, match="at least 40 arms"):
        grown.grow(sb.Uniform(39, 3))
    with pytest.raises(sb.ParameterError, match="Uniform"):
        grown.grow(sb.Partition(np.zeros(50, dtype=int)))
    assert grown.n_arms == 40


def test_describe_tells_engine_clock_reason_and_memory():
    about = sb.CUCB(sb.Uniform(10_000, 10)).describe()
    assert about["engine"] == "kinetic" and about["clock"] == "exact" and about["why"]
    assert 32 <= about["bytes_per_arm"] <= 96
    assert sb.CUCB(sb.Uniform(5, 3)).describe()["engine"] == "resolve"


# Mean and standard error of 40 runs of a numpy loop (argsort of all indices each round, numpy's own generator).
REFERENCE = (967.1, 5.8)
MEANS = np.array([0.15, 0.12, 0.10] + [0.05] * 9 + [0.03] * 8)


def test_regret_on_the_reference_instance():
    """K = 20, D = 3, 10^4 rounds, 200 seeds, against a plain numpy run of CUCB with its own random numbers."""
    matroid = sb.Uniform(20, 3)
    result = sb.compare({"cucb": sb.CUCB(matroid)}, sb.Bernoulli(matroid, MEANS), 10_000, repeats=200, seed=1)
    regret, error = result.mean_regret("cucb")[-1], result.standard_error("cucb")[-1]
    print(f"mean regret {regret:.1f} +- {error:.1f}")
    assert error < 0.01 * regret
    assert abs(regret - REFERENCE[0]) < 4 * np.hypot(error, REFERENCE[1])
