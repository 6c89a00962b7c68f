"""OSSB: in step with the naive form, and as much exploration as the lower bound asks for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import semibandit as sb
from oracles.escb import NaiveOSSB
from semibandit.testing import check_policy
from support.base_index import ACTIONS, KINDS, in_step, started
from support.random_matroids import RANDOM


@pytest.mark.parametrize("kind", sorted(RANDOM))
def test_contract_on_every_matroid(kind):
    for seed, n in ((0, 1), (1, 9)):
        matroid, _ = RANDOM[kind](np.random.default_rng(seed), n)
        check_policy(lambda m=matroid: sb.OSSB(m), rounds=24)
        check_policy(lambda m=matroid: sb.minimize(sb.OSSB(m, reward_range=(-1.0, 2.0))), rounds=24)


@pytest.mark.thin
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 8),
    actions=ACTIONS,
    options=st.sampled_from([{}, {"gamma": 0.5, "epsilon": 0.3}, {"rewards": "gaussian", "sigma": 0.7}]),
)
def test_decisions_are_those_of_the_naive_form(kind, seed, n, actions, options):
    matroid, known = started(kind, seed, n)
    slow = NaiveOSSB(known, **{key: value for key, value in options.items() if key != "rewards"})
    policy = sb.OSSB(matroid, **options)
    in_step(policy, known, actions, lambda policy, t, arms: slow.select(t, arms))


def test_arms_are_explored_as_the_lower_bound_asks_for():
    """N_k kl(mean_k, mean_sigma(k)) of every arm outside the best base is near log t, but for the last steps up."""
    matroid = sb.Partition([0, 0, 0, 1, 1, 1, 1], [1, 2])
    means = np.array([0.9, 0.4, 0.3, 0.8, 0.7, 0.4, 0.5])
    policy = sb.OSSB(matroid)
    rounds = 20_000
    sb.simulate(policy, sb.Bernoulli(matroid, means, seed=4), rounds)
    outside, partner = sb.theory.exchange_partners(matroid, policy.means)
    assert outside.tolist() == [1, 2, 5, 6] and partner.tolist() == [0, 0, 4, 4]
    known = policy.counts[outside] * sb.theory.kl_bernoulli(policy.means[outside], policy.means[partner])
    assert (known >= math.log(rounds) - 1.0).all(), known
    assert (known <= 4.0 * math.log(rounds)).all(), known
    assert 0 < policy.explored < 1000 and policy.describe()["explored"] == policy.explored


def test_partners_are_those_of_the_theory():
    matroid = sb.Graphic([(i, j) for i in range(6) for j in range(i)])
    rng = np.random.default_rng(2)
    policy = sb.OSSB(matroid)
    policy.update(np.repeat(np.arange(15), 4), rng.random(60))
    policy.select()
    outside, partner = sb.theory.exchange_partners(matroid, policy.means)
    assert np.array_equal(policy._partner[outside], partner)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"rewards": "poisson"}, "rewards"),
        ({"sigma": 1.0}, "sigma"),
        ({"gamma": -0.1}, "gamma"),
        ({"epsilon": 1.5}, "epsilon"),
    ],
)
def test_wrong_options_are_refused(options, name):
    with pytest.raises(sb.ParameterError, match=name):
        sb.OSSB(sb.Uniform(4, 2), **options)


@pytest.mark.slow
def test_regret_is_of_the_order_of_the_lower_bound():
    matroid = sb.Uniform(8, 3)
    means = np.linspace(0.2, 0.9, 8)
    constant = sb.theory.lower_bound_constant(matroid, means)
    runs = [
        sb.simulate(sb.OSSB(matroid), sb.Bernoulli(matroid, means, seed=seed), 100_000).regret[-1]
        for seed in range(20)
    ]
    assert 0.6 < np.mean(runs) / (constant * math.log(100_000)) < 1.6
