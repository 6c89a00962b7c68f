"""Costs: a minimising policy decides as one that is told mirrored rewards; the world knows its cheapest base."""

from __future__ import annotations

import inspect
import itertools

import numpy as np
import pytest

import semibandit as sb
from semibandit.errors import ParameterError, RewardError
from semibandit.policies.catalogue import POLICIES, build_policy
from semibandit.testing import check_policy
from support.random_matroids import RANDOM


@pytest.mark.parametrize("kind", RANDOM)
def test_the_cheapest_base_is_found(kind):
    rng = np.random.default_rng(0)
    for _ in range(10):
        matroid, independent = RANDOM[kind](rng, int(rng.integers(1, 8)))
        costs = rng.integers(1, 10, matroid.n_arms).astype(float)
        env = sb.minimize(sb.UniformNoise(matroid, costs, 0.5, reward_range=(0.0, 12.0), seed=3))
        bases = [
            arms
            for arms in itertools.combinations(range(matroid.n_arms), matroid.rank)
            if independent(list(arms))
        ]
        cheapest = min(sum(costs[list(arms)]) for arms in bases)
        assert env.optimal_value == pytest.approx(cheapest)
        for arms in bases[:20]:
            assert env.regret(arms) == pytest.approx(sum(costs[list(arms)]) - cheapest)
            assert env.regret(arms) >= 0.0


@pytest.mark.parametrize("kind", RANDOM)
def test_decisions_are_those_of_mirrored_rewards(kind):
    matroid, _ = RANDOM[kind](np.random.default_rng(1), 9)
    policy = sb.minimize(sb.CUCB(matroid, reward_range=(1.0, 3.0)))
    plain = sb.CUCB(matroid, reward_range=(1.0, 3.0))
    rng = np.random.default_rng(2)
    for _ in range(100):
        arms = policy.select()
        assert arms.tolist() == plain.select().tolist()
        costs = 1.0 + 2.0 * rng.random(len(arms))
        policy.update(arms, costs)
        plain.update(arms, 4.0 - costs)
    assert np.allclose(policy.means, 4.0 - plain.means, equal_nan=True)
    assert policy.describe()["objective"] == "min" and policy.t == 100


@pytest.mark.parametrize("kind", RANDOM)
def test_contract(kind):
    matroid, _ = RANDOM[kind](np.random.default_rng(3), 9)
    check_policy(lambda: sb.minimize(sb.CUCB(matroid, reward_range=(0.0, 0.7))))


def test_it_learns_and_is_simulated():
    matroid = sb.Graphic([(0, 1), (1, 2), (2, 0), (2, 3), (3, 0)])
    env = sb.minimize(sb.Beta(matroid, [3.0, 8.0, 5.0, 2.0, 9.0], reward_range=(0.0, 10.0), seed=1))
    assert env.optimal_base.tolist() == [0, 2, 3]
    runs = sb.compare(
        {
            "cucb": sb.minimize(sb.CUCB(matroid, reward_range=(0.0, 10.0))),
            "kl": sb.minimize(sb.KLOSM(matroid, reward_range=(0.0, 10.0))),
        },
        env,
        3000,
        repeats=3,
    )
    for results in runs.runs.values():
        for run in results:
            # Playing some other base all the time would cost at least 2 a round.
            assert 0.0 <= run.regret[-1] < 3000
            assert run.reward[-1] >= 3000 * 9.0
    twin = env.clone()
    assert twin.draw([0, 2, 3], 1).tolist() == env.clone().draw([0, 2, 3], 1).tolist()


def test_a_changing_world_of_costs():
    m = sb.Uniform(3, 1)
    parts = [sb.Bernoulli(m, [0.9, 0.1, 0.5]), sb.Bernoulli(m, [0.1, 0.9, 0.5])]
    env = sb.minimize(sb.Switching(parts, [1, 11]))
    assert env.optimal_base.tolist() == [1]
    env.draw([0], 11)
    assert env.optimal_base.tolist() == [0] and env.regret([1]) == pytest.approx(0.8)
    assert env.clone().optimal_base.tolist() == [1]


def test_mixing_costs_and_rewards_is_refused():
    m = sb.Uniform(3, 1)
    env, policy = sb.Bernoulli(m, [0.1, 0.2, 0.3]), sb.CUCB(m)
    for pair in ((sb.minimize(policy), env), (policy, sb.minimize(env))):
        with pytest.raises(ParameterError, match="costs"):
            sb.simulate(*pair, rounds=5)
    for what in (sb.minimize(policy), sb.minimize(env), 3):
        with pytest.raises(ParameterError, match="what"):
            sb.minimize(what)


def test_refused_costs_change_nothing_and_the_original_stays():
    inner = sb.CUCB(sb.Uniform(3, 1), reward_range=(0.0, 2.0))
    policy = sb.minimize(inner)
    policy.update(policy.select(), [2.0])
    assert inner.t == 0 and inner.counts.sum() == 0
    for bad in (np.nan, 2.5, -0.1):
        with pytest.raises(RewardError):
            policy.update([0], [bad])
    assert policy.counts.tolist() == [1, 0, 0] and policy.means[0] == 2.0


@pytest.mark.parametrize("ends", [(0.0, None), (None, 50.0), None], ids=["from 0", "up to 50", "any"])
def test_costs_without_an_end(ends, tmp_path):
    """A latency has no largest value: the mean costs are those told, on every path, also after a file."""
    matroid = sb.Uniform(4, 2)
    policy = sb.minimize(sb.RobustCUCB(matroid, reward_range=ends))
    costs = np.array([4.0, 3.0, 1.0, 2.0])
    for _ in range(policy.least):
        policy.update([0, 1, 2, 3], costs)
    policy.save(tmp_path / "p")
    for one in (policy, policy.clone(), sb.load(tmp_path / "p")):
        assert one.means.tolist() == costs.tolist() and one.reward_range == policy.reward_range
        assert one.select().tolist() == [2, 3]
        one.grow(sb.Uniform(5, 2))
        one.update([4], [0.5])
        assert one.means.tolist() == [*costs.tolist(), 0.5]
    if ends is not None:
        outside = -1.0 if ends[0] == 0.0 else 51.0
        with pytest.raises(RewardError, match=r"rewards\[0\]"):
            policy.update([0], [outside])
        clipped = sb.minimize(sb.RobustCUCB(matroid, reward_range=ends, outside="clip"))
        clipped.update([0, 1], [outside, 5.0])
        assert (
            clipped.means[:2].tolist() == [ends[0] if ends[0] == 0.0 else 50.0, 5.0] and clipped.clipped == 1
        )


def test_costs_without_an_end_by_kernels_and_by_calls():
    matroid = sb.Uniform(6, 2)
    env = sb.minimize(sb.HeavyTailed(matroid, np.linspace(100.0, 200.0, 6), seed=1))
    low = env.reward_range[0]
    assert low == 0.0
    policy = sb.minimize(sb.RobustCUCB(matroid, reward_range=(0.0, None)))
    other, world = policy.clone(), env.clone()
    result = sb.simulate(policy, env, rounds=200, record_arms=True)
    assert result.path == "compiled"
    for t in range(1, 201):
        arms = other.select()
        assert arms.tolist() == result.arms[t - 1].tolist()
        other.update(arms, world.draw(arms, t))
    assert np.array_equal(policy.means, other.means) and (policy.means > 50.0).all()


def test_saved_and_loaded(tmp_path):
    policy = sb.minimize(sb.CUCB(sb.Uniform(5, 2)))
    policy.update(policy.select(), [0.3, 0.8])
    policy.save(tmp_path / "p")
    other = sb.load(tmp_path / "p")
    assert other.objective == "min"
    for _ in range(20):
        arms = policy.select()
        assert arms.tolist() == other.select().tolist()
        policy.update(arms, [0.1, 0.9])
        other.update(arms, [0.1, 0.9])
    assert np.array_equal(policy.means, other.means)


@pytest.mark.parametrize("name", list(POLICIES))
def test_what_the_policy_inside_shows(name):
    context = {"horizon": 100, "means": np.linspace(0, 1, 6)}
    inside = build_policy(name, {}, sb.Uniform(6, 2), context=context)
    inside.select(), inside.select(), inside.select()
    policy = sb.minimize(inside)
    assert isinstance(inside.engine, str) and policy.engine == inside.engine
    shown = [
        key
        for key in {*vars(inside), *dir(type(inside))}
        if not key.startswith("_") and not inspect.ismethod(getattr(inside, key))
    ]
    assert {"engine", "seed", "prior"} <= set(shown)
    for key in shown:
        assert hasattr(policy, key), key
    for key in (
        "clock",
        "confidence_width",
        "exploration",
        "window",
        "discount",
        "step",
        "epsilon",
        "horizon",
    ):
        assert hasattr(inside, key) == hasattr(policy, key)
        if hasattr(inside, key):
            assert getattr(policy, key) == getattr(inside, key)
            with pytest.raises(AttributeError):
                setattr(policy, key, 1.0)
    for hidden in ("_engine", "_own", "nonsense"):
        assert not hasattr(policy, hidden)
    policy.note = "mine"
    assert policy.note == "mine" and not hasattr(policy.inner, "note")


def test_which_policies_have_a_clock():
    clocked = {"cucb", "kl-osm", "faster-cucb", "maub", "sliding-window-cucb", "discounted-cucb"}
    context = {"horizon": 100, "means": np.linspace(0, 1, 6)}
    for name in POLICIES:
        policy = build_policy(name, {}, sb.Uniform(6, 2), context=context)
        if name in clocked:
            for _ in range(20):
                policy.select()
            assert policy.clock in ("exact", "staircase") and policy.confidence_width > 0.0
    kl, plain = sb.MAUB(sb.Uniform(6, 2)), sb.MAUB(sb.Uniform(6, 2), index="ucb", reward_range=(0, 2))
    kl.select(), plain.select(), kl.select(), plain.select()
    assert plain.confidence_width == pytest.approx(np.sqrt(1.5 * 4 * np.log(2)))
    assert kl.confidence_width == pytest.approx(np.log(2))


def test_methods_of_the_policy_inside_are_found_there():
    policy = sb.minimize(sb.EpsilonGreedy(sb.Uniform(4, 2)))
    with pytest.raises(AttributeError, match=r"inner\.chance"):
        policy.chance(3)
    assert policy.inner.chance(3) == 0.1


def test_priors_of_costs():
    policy = sb.minimize(sb.CUCB(sb.Uniform(3, 1), reward_range=(1.0, 3.0), prior=([1.5, 2.0, 3.0], 4.0)))
    mean, strength = policy.prior
    assert mean.tolist() == [2.5, 2.0, 1.0] and strength == 4.0
    assert sb.minimize(sb.CTS(sb.Uniform(3, 1), prior=(0.25, 4.0))).prior == (0.75, 4.0)
    assert sb.minimize(sb.CUCB(sb.Uniform(3, 1))).prior is None
