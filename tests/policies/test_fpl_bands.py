"""FPL by bands of losses: the law of its draws, and the bands themselves."""

from __future__ import annotations

import collections
import math

import numpy as np
import pytest

import semibandit as sb
from semibandit.policies import fpl
from semibandit.policies.loss_bands import ASIDE, MADE
from semibandit.testing import check_policy
from support.random_matroids import RANDOM


@pytest.fixture
def bands_of_any_size(monkeypatch):
    monkeypatch.setattr(fpl, "_BANDS_FROM", 1)


def policy_with(matroid, losses, **options):
    """A policy that has these estimated losses."""
    policy = sb.FPL(matroid, **options)
    policy._losses[:] = losses
    policy._bands.meta[:] = 0
    return policy


def bases_of(policy, n, exclude=None):
    found = collections.Counter()
    for _ in range(n):
        policy._bands.meta[ASIDE] = 0
        found[tuple(policy.select(exclude=exclude).tolist())] += 1
    assert policy._bands.meta[MADE] == 1
    return found


def naive_bases(rng, independent, losses, eta, n, out=()):
    found = collections.Counter()
    for _ in range(n):
        weight = rng.exponential(size=len(losses)) - eta * losses
        base = []
        for k in np.argsort(-weight).tolist():
            if k not in out and independent([*base, k]):
                base.append(k)
        found[tuple(sorted(base))] += 1
    return found


def assert_alike(one, two):
    """Chi-square of two samples over what they hold, rare values together: far below a p-value of 1e-6."""
    n, m = sum(one.values()), sum(two.values())
    common = [key for key in one | two if one[key] + two[key] >= 20]
    pairs = [(one[key], two[key]) for key in common]
    pairs.append((n - sum(a for a, _ in pairs), m - sum(b for _, b in pairs)))
    pairs = [(a, b) for a, b in pairs if a + b > 0]
    chi = sum((a * math.sqrt(m / n) - b * math.sqrt(n / m)) ** 2 / (a + b) for a, b in pairs)
    freedom = max(1, len(pairs) - 1)
    assert chi < freedom + 5.0 * math.sqrt(2.0 * freedom) + 12.0, (chi, freedom)


@pytest.mark.thin
@pytest.mark.bounds
@pytest.mark.parametrize("kind", ["uniform", "partition", "laminar", "graphic", "transversal"])
@pytest.mark.parametrize("spread", [0.0, 1.5, 30.0])
def test_the_law_of_a_draw(kind, spread, bands_of_any_size):
    rng = np.random.default_rng(5)
    matroid, independent = RANDOM[kind](rng, 7)
    losses = np.where(rng.random(7) < 0.4, 0.0, spread * rng.random(7)) / 0.5
    policy = policy_with(matroid, losses, eta=0.5, cap=1, seed=3)
    assert_alike(bases_of(policy, 3000), naive_bases(rng, independent, losses, 0.5, 3000))
    policy._check()


def test_the_law_with_arms_left_out(bands_of_any_size):
    rng = np.random.default_rng(6)
    matroid, independent = RANDOM["uniform"](rng, 8)
    losses = 4.0 * rng.random(8)
    policy = policy_with(matroid, losses, eta=0.5, cap=1, seed=4)
    policy.delete([2])
    policy.insert([2])
    policy.delete([5])
    assert_alike(bases_of(policy, 3000, [1]), naive_bases(rng, independent, losses, 0.5, 3000, (1, 5)))
    policy._check()


def chance_of_the_best(losses, eta):
    """P(arm k has the largest weight), by integrating over the weight of arm k."""
    low = -eta * losses
    z = (np.arange(400_000) + 0.5) * 1e-4
    density = np.exp(-z) * 1e-4
    chances = []
    for k in range(len(losses)):
        x = z + low[k]
        below = np.ones_like(x)
        for j in range(len(losses)):
            if j != k:
                below *= np.where(x > low[j], -np.expm1(np.minimum(0.0, low[j] - x)), 0.0)
        chances.append(float((density * below).sum()))
    return np.array(chances)


def test_chances_of_the_best_arm_by_integration(bands_of_any_size):
    losses = np.array([0.0, 0.0, 0.4, 1.1, 2.5, 7.0, 19.0])
    policy = policy_with(sb.Uniform(7, 1), losses, eta=0.7, cap=1, seed=9)
    n = 20_000
    found = bases_of(policy, n)
    chances = chance_of_the_best(losses, 0.7)
    assert chances.sum() == pytest.approx(1.0, abs=1e-3)
    for k, chance in enumerate(chances):
        assert abs(found[(k,)] - n * chance) < 5.0 * math.sqrt(n * chance * (1.0 - chance)) + 3.0


def test_weights_of_feedback_have_the_mean_of_one_over_the_chance(bands_of_any_size):
    losses = np.array([0.0, 0.0, 1.0, 2.0])
    policy = policy_with(sb.Uniform(4, 1), losses, eta=0.6, cap=4000, seed=2)
    chances, weights = chance_of_the_best(losses, 0.6), [[], [], [], []]
    for _ in range(3000):
        policy._bands.meta[ASIDE] = 0
        arm = int(policy.select()[0])
        weights[arm].append(policy._weights[arm])
    for arm in range(4):
        sample = np.array(weights[arm])
        assert abs(sample.mean() - 1.0 / chances[arm]) < 5.0 * sample.std() / math.sqrt(len(sample))


@pytest.mark.parametrize("kind", ["uniform", "partition", "graphic"])
def test_contract(kind, bands_of_any_size):
    matroid, _ = RANDOM[kind](np.random.default_rng(3), 12)
    check_policy(lambda: sb.FPL(matroid, horizon=500, seed=2), rounds=24)


@pytest.mark.bounds
def test_bands_follow_the_losses(bands_of_any_size, tmp_path):
    rng = np.random.default_rng(1)
    for trial in range(20):
        matroid, _ = RANDOM["partition"](rng, int(rng.integers(1, 30)))
        policy = sb.FPL(matroid, seed=trial, cap=5)
        for t in range(80):
            policy._bands.meta[ASIDE] = 0
            arms = policy.select()
            policy.update(arms, rng.random(len(arms)))
            if t % 20 == 7:
                policy.save(tmp_path / "fpl.npz")
                twin = sb.load(tmp_path / "fpl.npz")
                copy = policy.clone()
                ahead = [copy.select().tolist() for _ in range(5)]
                assert ahead == [twin.select().tolist() for _ in range(5)]
        policy._check()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["uniform", "partition", "laminar", "graphic", "transversal"])
def test_the_law_on_many_instances(kind, bands_of_any_size):
    rng = np.random.default_rng(12)
    for trial in range(60):
        matroid, independent = RANDOM[kind](rng, int(rng.integers(1, 9)))
        n = matroid.n_arms
        losses = np.where(rng.random(n) < 0.3, 0.0, 10.0 ** rng.uniform(-1, 2) * rng.random(n))
        policy = policy_with(matroid, losses, eta=0.5, cap=1, seed=trial)
        assert_alike(bases_of(policy, 1500), naive_bases(rng, independent, losses, 0.5, 1500))


def test_a_draw_looks_at_few_of_many_arms():
    policy = sb.FPL(sb.Uniform(20_000, 5), cap=4, seed=1)
    env = sb.Bernoulli(policy.matroid, np.linspace(0.1, 0.9, 20_000), seed=1)
    sb.simulate(policy, env, rounds=400)
    assert policy._bands.meta[MADE] == 1
    assert policy._bands.meta[1] < 400 * 5 * 5 * 3
    policy._check()
