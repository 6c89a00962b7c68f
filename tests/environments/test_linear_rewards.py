"""Worlds with linear rewards: fixed features, and contexts that change in every round."""

from __future__ import annotations

import math

import numpy as np
import pytest

import semibandit as sb
from semibandit.environments.codec import make_environment
from semibandit.environments.linear_rewards import told_features
from semibandit.policies.catalogue import make_policy
from semibandit.testing import check_environment

ROWS = np.random.default_rng(0).random((12, 3))
THETA = np.array([0.2, 0.1, 0.5])


@pytest.mark.parametrize("width", [None, 0.05])
def test_fixed_features_are_an_environment_like_others(width):
    matroid = sb.Partition(np.arange(12) % 3, 1)
    rows = 0.2 + 0.6 * ROWS
    env = sb.LinearRewards(matroid, rows, THETA, width=width, seed=3)
    check_environment(env)
    np.testing.assert_allclose(env.means, rows @ THETA)
    assert env.kernel_state() is not None and env.theta.tolist() == THETA.tolist()
    policy = sb.CombLinTS(matroid, features=env.features, seed=1)
    result = sb.simulate(policy, env, rounds=200)
    assert result.path == "compiled"
    stepwise = sb.CombLinTS(matroid, features=env.features, seed=1)
    again = sb.simulate(stepwise, env.clone(), rounds=200, path="stepwise")
    np.testing.assert_allclose(again.regret, result.regret)
    told = sb.simulate(sb.CombLinTS(matroid, dimension=3, seed=1), env.clone(), rounds=200)
    assert told.path == "stepwise"
    np.testing.assert_allclose(told.regret, result.regret)


@pytest.mark.parametrize("width", [None, 0.05])
def test_contexts_move_the_best_base(width):
    matroid = sb.Uniform(12, 4)
    rows = 0.2 + 0.6 * ROWS
    env = sb.LinearContexts(matroid, rows, THETA, width=width, seed=5)
    seen = set()
    for t in range(1, 40):
        context = env.context(t)
        assert context.shape == (12, 3)
        rewards = env.draw([0, 3, 5], t)
        means = context @ THETA
        np.testing.assert_allclose(env.means, means)
        assert env.optimal_base.tolist() == matroid.max_weight_base(env.means.copy()).tolist()
        assert env.optimal_value == pytest.approx(math.fsum(np.sort(means)[-4:]))
        assert env.regret(env.optimal_base) == 0.0
        assert env.regret([0, 1, 2, 3]) == pytest.approx(env.optimal_value - means[:4].sum())
        if width is None:
            assert np.isin(rewards, [0.0, 1.0]).all()
        else:
            assert (np.abs(rewards - means[[0, 3, 5]]) <= width / 2 + 1e-12).all()
        seen.add(tuple(env.optimal_base.tolist()))
    assert len(seen) > 10
    with pytest.raises(sb.ParameterError):
        env.context(0)


def test_contexts_are_those_of_seed_and_round():
    env = sb.LinearContexts(sb.Uniform(12, 4), ROWS, THETA, seed=5)
    first = [env.draw([1, 2], t).tolist() for t in (1, 2, 3)]
    twin, other = env.clone(), env.clone(seed=6)
    assert twin.round == 0 and not twin.pulls.any()
    assert [twin.draw([1, 2], t).tolist() for t in (1, 2, 3)] == first
    np.testing.assert_array_equal(twin.context(9), env.context(9))
    assert not np.array_equal(other.context(9), env.context(9))
    env.reset()
    np.testing.assert_allclose(env.means, env.context(1) @ THETA)
    assert [env.draw([1, 2], t).tolist() for t in (1, 2, 3)] == first
    # Averages of many rounds are those of the rows.
    drawn = np.concatenate([other.draw(np.arange(12), t) for t in range(1, 800)])
    assert abs(drawn.mean() - (ROWS @ THETA).mean()) < 4.0 * drawn.std() / math.sqrt(len(drawn))


def test_simulations_hand_the_features_of_the_round_over():
    env = sb.LinearContexts(sb.Uniform(30, 3), ROWS, THETA, width=0.02, seed=2)
    told, blind = sb.CombLinUCB(env.matroid, dimension=3, noise=0.1), sb.CUCB(env.matroid)
    found = sb.compare([told, blind], env, rounds=300, repeats=1, record_every=100)
    knows, knows_not = (runs[0].regret for runs in found.runs.values())
    assert knows[-1] < 0.1 * knows_not[-1]
    assert knows[-1] - knows[0] < 0.5 * knows[0] + 1.0, "hardly anything is lost once theta is known"
    costs = sb.simulate(
        sb.minimize(sb.CombLinTS(env.matroid, dimension=3, noise=0.1, seed=1)), sb.minimize(env), rounds=150
    )
    assert 0.0 <= costs.regret[-1] < 12.0
    with pytest.raises(sb.ParameterError, match="features of each round"):
        sb.simulate(told, sb.Bernoulli(env.matroid, np.linspace(0.1, 0.9, 30)), rounds=5)


def test_made_by_name_with_policies_that_know_the_features():
    matroid = sb.Uniform(12, 2)
    env = make_environment("linear", matroid, ROWS, theta=THETA, width=0.01)
    moving = make_environment("contexts", matroid, ROWS, theta=THETA)
    policy = make_policy("comb-lin-ucb", matroid, context=told_features(env))
    assert np.array_equal(policy.features, ROWS)
    policy = make_policy("comb-lin-ts:prior_scale=2", matroid, context=told_features(sb.minimize(moving)))
    assert policy.contextual and policy.dimension == 3 and policy.prior_scale == 2.0
    assert told_features(sb.Bernoulli(matroid, np.full(12, 0.5))) == {}


@pytest.mark.parametrize("cls", [sb.LinearRewards, sb.LinearContexts])
def test_bad_arguments_are_named(cls):
    matroid = sb.Uniform(2, 1)
    for rows, theta, options, match in (
        ([[1.0], [2.0]], [0.8], {}, r"means must be inside reward_range"),
        ([[1.0], [0.5]], [0.2, 0.1], {}, "2 columns"),
        ([1.0, 0.5], [0.2], {}, "matrix"),
        ([[1.0], [np.nan]], [0.2], {}, "finite"),
        ([["a"], ["b"]], [0.2], {}, "matrix of numbers"),
        ([[1.0], [0.5]], [np.inf], {}, "theta"),
        ([[1.0], [0.5]], [0.2], {"width": 0.5}, "width"),
        ([[1.0], [0.5]], [0.2], {"width": -0.5}, "width"),
    ):
        with pytest.raises(sb.ParameterError, match=match):
            cls(matroid, rows, theta, **options)
    with pytest.raises(sb.ParameterError, match="one row per arm"):
        sb.LinearRewards(matroid, [[1.0]], [0.5])
    # Rounding may miss the end of the range by a hair.
    assert sb.LinearRewards(matroid, [[0.1, 0.2], [0.7, 0.1]], [1.0, 3.0]).means[1] <= 1.0
