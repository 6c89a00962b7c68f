"""FTRL: its contract, its rounds against a naive copy, what late feedback is weighted by, arms that come and go."""

from __future__ import annotations

import numpy as np
import pytest

import semibandit as sb
from oracles import ftrl as naive
from semibandit.policies.ftrl.regularisers import CHOICES
from semibandit.testing import check_policy
from support.random_matroids import RANDOM


@pytest.mark.bounds
@pytest.mark.parametrize("kind", sorted(RANDOM))
def test_contract_on_every_matroid(kind):
    rng = np.random.default_rng(3)
    for size in (1, 5, 10):
        matroid, _ = RANDOM[kind](rng, size)
        check_policy(lambda m=matroid: sb.FTRL(m, seed=1), rounds=24)
        check_policy(
            lambda m=matroid: sb.FTRL(m, regulariser="lbinfv", reward_range=(-1.0, 2.0), horizon=500, seed=2),
            rounds=24,
        )


@pytest.mark.parametrize("name", CHOICES)
def test_contract_of_every_regulariser(name):
    for matroid in (sb.Uniform(6, 3), sb.Graphic([(0, 1), (1, 2), (2, 0), (2, 3), (3, 0), (0, 1)])):
        check_policy(lambda m=matroid: sb.FTRL(m, regulariser=name, seed=4))
        check_policy(lambda m=matroid: sb.minimize(sb.FTRL(m, regulariser=name, seed=4)), rounds=24)


@pytest.mark.thin
@pytest.mark.parametrize("name", CHOICES)
def test_rounds_equal_a_naive_copy(name):
    rng = np.random.default_rng(8)
    for n_arms, rank in ((6, 2), (5, 4)):
        policy = sb.FTRL(
            sb.Uniform(n_arms, rank), reward_range=(1.0, 3.0), regulariser=name, horizon=300, seed=2
        )
        slow = naive.NaiveFTRL(n_arms, rank, name, 300)
        for _ in range(10):
            arms = policy.select()
            assert policy.chances == pytest.approx(slow.chances(), abs=1e-9)
            rewards = rng.choice([1.0, 1.5, 3.0], rank)
            policy.update(arms, rewards)
            slow.update(arms.tolist(), ((3.0 - rewards) / 2.0).tolist())
            off = policy.losses - np.array(slow.sums)
            assert off == pytest.approx(np.full(n_arms, off[0]), abs=1e-7 * policy.losses.max())
            if name.startswith("lbinf"):
                assert policy._est.scale == pytest.approx([slow.scale(k) for k in range(n_arms)])
                assert policy._est.predicted == pytest.approx(slow.guess)


def test_feedback_counts_by_the_chance_of_the_round_in_which_the_arm_was_last_played():
    policy = sb.FTRL(sb.Uniform(5, 2), seed=3)
    policy.update([4], [0.25])
    assert policy.losses.tolist() == [0.0, 0.0, 0.0, 0.0, 1.5]  # never played: weight 1
    arms = policy.select()
    chance = policy.chances[arms]
    while np.intersect1d(policy.select(), arms).size:
        arms = np.setdiff1d(arms, policy.select())
        if not arms.size:
            arms = policy.select()
        chance = policy._est.chance[arms]
    before = policy.losses[arms]
    policy.update(arms, np.zeros(len(arms)))
    assert policy.losses[arms] - before == pytest.approx(2.0 / chance)


@pytest.mark.parametrize("costs", [False, True])
@pytest.mark.parametrize("name", ["hybrid", "lbinfv", "lbinfv-gd"])
def test_decisions_remember_their_chances(name, costs):
    """Feedback that comes late, in any order, in copies and files too, weighs what it did when it was played."""
    policy = sb.FTRL(sb.Uniform(6, 2), regulariser=name, horizon=100, seed=5)
    policy = sb.minimize(policy) if costs else policy
    inner = policy.inner if costs else policy
    rng = np.random.default_rng(1)
    made, known = [], []
    for _ in range(30):
        decision = policy.decide()
        made.append(decision)
        est = inner._est
        known.append((est.x[decision.arms].copy(), est.predicted[decision.arms].copy()))
        if len(made) % 3 == 0:  # some feedback in between moves chances and predictions
            arms = inner.select()
            policy.update(arms, rng.random(2))
    from semibandit.policies.files import from_bytes, to_bytes

    for twin in (policy, policy.clone(), from_bytes(to_bytes(policy))):
        inside = twin.inner if costs else twin
        assert len(inside._made) == 30
        for i in rng.permutation(30)[:10].tolist():
            arms, (chance, guess) = made[i].arms, known[i]
            before, last = inside.losses[arms], inside._est.chance[arms].copy()
            twin.learn(made[i].id, [0.0, 1.0])
            loss = np.array([0.0, 1.0]) if costs else np.array([1.0, 0.0])
            expected = 2.0 * loss / chance if name == "hybrid" else (loss - guess) / chance
            assert inside.losses[arms] - before == pytest.approx(expected)
            assert np.array_equal(inside._est.chance[arms], last), "what plain updates go by stays"
        waiting = twin.waiting
        assert waiting == len(inside._made) == 20
        number = next(iter(inside._made._kept))
        twin.drop(number)
        assert len(inside._made) == 19


def test_a_refused_learn_changes_nothing():
    policy = sb.FTRL(sb.Uniform(6, 2), seed=5)
    decision = policy.decide()
    for _ in range(5):
        policy.update(policy.select(), [0.1, 0.9])
    before = policy.losses, policy._est.chance.copy()
    for wrong in ([2.0, 0.5], [np.nan, 0.0], [0.5]):
        with pytest.raises(sb.RewardError):
            policy.learn(decision, wrong)
    assert np.array_equal(policy.losses, before[0]) and np.array_equal(policy._est.chance, before[1])
    policy.learn(decision, [0.5, 0.5])


def test_weights_of_others_are_certain_to_be_played():
    policy = sb.FTRL(sb.Uniform(6, 2), seed=5)
    arms = policy.select(weights=[0, 1, 2, 3, 4, 5])
    policy.update(arms, [0.0, 0.5])
    assert policy.losses.tolist() == [0.0, 0.0, 0.0, 0.0, 2.0, 1.0]


@pytest.mark.parametrize("kind", ["uniform", "laminar", "graphic"])
def test_an_arm_that_was_away_comes_back_where_it_stood(kind):
    """Others' losses grow in the meantime; without care the arm would come back as the best of all."""
    matroid = {
        "uniform": sb.Uniform(8, 3),
        "laminar": sb.Laminar(8, [([0, 1, 2, 3], 2), (list(range(8)), 3)]),
        "graphic": sb.Graphic([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3), (0, 1), (2, 3)]),
    }[kind]
    env = sb.Bernoulli(matroid, [0.1, 0.8, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5], seed=2)
    policy = sb.FTRL(matroid, seed=1)
    sb.simulate(policy, env, rounds=400, path="stepwise")
    low, high = policy.chances[0], policy.chances[1]
    policy.delete([0, 1])
    for _ in range(200):
        arms = policy.select()
        assert not np.isin(arms, [0, 1]).any()
        policy.update(arms, env.draw(arms))
    policy.insert([0, 1])
    policy.select()
    assert policy.chances[0] == pytest.approx(low, abs=0.15) and policy.chances[1] > policy.chances[0]
    assert policy.chances[1] == pytest.approx(high, abs=0.35)


@pytest.mark.parametrize("name", CHOICES)
def test_a_forgotten_arm_gets_its_even_share(name):
    matroid = sb.Uniform(10, 3)
    policy = sb.FTRL(matroid, regulariser=name, horizon=1000, seed=1)
    env = sb.Bernoulli(matroid, np.linspace(0.1, 0.9, 10), seed=2)
    sb.simulate(policy, env, rounds=500, path="stepwise")
    for gone in (False, True):
        if gone:
            policy.delete([0])
        policy.reset([0])
        if gone:
            policy.insert([0])
        policy.select()
        # 3 of 10 but for what the price moves when an arm comes in.
        assert 0.12 < policy.chances[0] < 0.45, policy.chances


def test_new_arms_come_in_with_an_even_share():
    policy = sb.FTRL(sb.Partition([0, 0, 0, 1, 1], [1, 1]), seed=1)
    env = sb.Bernoulli(policy.matroid, [0.9, 0.1, 0.1, 0.2, 0.8], seed=2)
    sb.simulate(policy, env, rounds=400)
    policy.select()
    before = policy.chances
    policy.grow(sb.Partition([0, 0, 0, 1, 1, 1, 0], [1, 1]))
    policy.select()
    # An even share but for what the price moves when an arm comes in: above those known to be bad, below the best.
    assert policy.chances[[1, 2]].max() < policy.chances[6] < policy.chances[0]
    assert policy.chances[3] < policy.chances[5] < policy.chances[4]
    assert policy.chances.sum() == pytest.approx(2.0)
    order = np.argsort(before[:3])
    assert (np.argsort(policy.chances[:3]) == order).all()


@pytest.mark.parametrize("kind", ["uniform", "partition", "laminar", "graphic", "transversal"])
def test_compiled_rounds_are_those_of_python(kind):
    from semibandit.data.instances import random_environment

    env = random_environment("bernoulli", kind, 12, 5, seed=1)
    played = {}
    for path in ("compiled", "stepwise"):
        policy = sb.FTRL(env.matroid, seed=7)
        run = sb.simulate(policy, env.clone(), rounds=60, path=path, record_arms=True)
        played[path] = run.arms
    assert np.array_equal(played["compiled"], played["stepwise"])


@pytest.mark.parametrize("kind", ["uniform", "laminar", "graphic", "linear"])
def test_files_go_on_and_refuse_nonsense(kind, tmp_path):
    from semibandit.data.instances import random_environment

    env = random_environment("bernoulli", kind, 12, 5, seed=1)
    policy = sb.FTRL(env.matroid, regulariser="lbinfv", horizon=200, seed=7)
    sb.simulate(policy, env, rounds=30)
    policy.delete([2])
    policy.save(tmp_path / "ftrl")
    twin = sb.load(tmp_path / "ftrl")
    for _ in range(20):
        arms = policy.select()
        assert np.array_equal(arms, twin.select())
        rewards = env.draw(arms)
        policy.update(arms, rewards)
        twin.update(arms, rewards)
    assert twin.describe() == policy.describe()
    for name, wrong in (
        ("cost", np.full(12, np.nan)),
        ("chance", np.zeros(12)),
        ("spread", np.full(12, -1.0)),
        ("plays", {**policy._made.state(), "ids": np.array([3])}),
    ):
        state = {**policy._state(), name: wrong}
        with pytest.raises(sb.FileError):
            sb.FTRL(env.matroid, regulariser="lbinfv", horizon=200)._set_state(state)


def test_it_learns_where_rewards_are_not_random():
    """A table of rewards written down by an adversary: regret stays below the order of the bound."""
    rounds, matroid = 3000, sb.Uniform(6, 1)
    table = np.zeros((rounds, 6))
    table[np.arange(rounds), np.arange(rounds) // 500] = 1.0
    table[:, 3] = 0.7
    for name in CHOICES:
        policy = sb.FTRL(matroid, regulariser=name, horizon=rounds, seed=4)
        run = sb.simulate(policy, sb.Trace(matroid, table), rounds=rounds)
        assert run.reward[-1] > table.sum(axis=0).max() - 4.0 * np.sqrt(6 * rounds), name


@pytest.mark.parametrize(
    "arguments",
    [
        {"horizon": 0},
        {"horizon": 1.5},
        {"regulariser": "tsallis"},
        {"regulariser": None},
        {"tolerance": 0.0},
        {"tolerance": "small"},
    ],
)
def test_bad_parameters_are_named(arguments):
    with pytest.raises(sb.ParameterError, match=next(iter(arguments))):
        sb.FTRL(sb.Uniform(3, 1), **arguments)
