"""Priors: pseudo plays in the index, and the practical exploration that goes with them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import semibandit as sb
from semibandit.data.instances import random_environment
from semibandit.policies.prior import as_prior


@pytest.mark.parametrize("kind", ["uniform", "partition", "laminar", "graphic", "transversal", "linear"])
def test_decisions_are_those_of_the_formula(kind):
    n = 14
    matroid = random_environment("bernoulli", kind, n, 5, seed=2).matroid
    rng = np.random.default_rng(4)
    mean, strength = rng.uniform(0.1, 0.5, n), rng.uniform(0.5, 9.0, n)
    policy = sb.CUCB(matroid, prior=(mean, strength), exploration="practical")
    v = float(np.mean(mean * (1 - mean)))
    count, total = np.zeros(n), np.zeros(n)
    for t in range(1, 150):
        arms = policy.select()
        lam = math.sqrt(2 * v * (math.log(t) + math.log(n / matroid.rank)))
        index = (total + mean * strength) / (count + strength) + lam / np.sqrt(count + strength)
        best = matroid.max_weight_base(index)
        assert index[arms].sum() == pytest.approx(index[best].sum(), rel=1e-12)
        rewards = rng.integers(0, 2, len(arms)).astype(float)
        policy.update(arms, rewards)
        count[arms] += 1
        total[arms] += rewards
    assert policy.counts.tolist() == count.tolist()
    seen = count > 0
    np.testing.assert_allclose(policy.means[seen], (total / np.maximum(count, 1))[seen], atol=1e-9)
    assert np.isnan(policy.means[~seen]).all()
    policy._engine._check()
    twin = policy.clone()
    assert [twin.select().tolist() for _ in range(3)] == [policy.select().tolist() for _ in range(3)]


def test_the_simulation_makes_the_same_decisions():
    matroid = sb.Partition(np.arange(60) % 6, 1)
    env = sb.Bernoulli(matroid, np.random.default_rng(1).beta(1, 10, 60), seed=3)
    make = lambda: sb.CUCB(matroid, prior=sb.beta_prior(1, 10), exploration="practical")  # noqa: E731
    one = sb.simulate(make(), env.clone(), rounds=500, record_arms=True, path="compiled")
    other = sb.simulate(make(), env.clone(), rounds=500, record_arms=True, path="stepwise")
    assert np.array_equal(one.arms, other.arms)


def test_a_better_prior_comes_first_and_not_all_arms_are_tried():
    prior = np.full(1000, 0.05)
    prior[700:710] = 0.4
    policy = sb.CUCB(sb.Uniform(n_arms=1000, rank=3), prior=(prior, 20.0), exploration="practical")
    assert policy.select().tolist() == [700, 701, 702]
    for _ in range(300):
        arms = policy.select()
        policy.update(arms, np.where((arms >= 700) & (arms < 710), 1.0, 0.0))
    assert (policy.counts > 0).sum() <= 12


def test_kl_osm_counts_the_prior():
    policy = sb.KLOSM(sb.Uniform(n_arms=3, rank=1), prior=([0.2, 0.5, 0.3], [30.0, 30.0, 1.0]))
    policy.select()
    policy.update([0, 1], [1.0, 0.0])
    level = math.log(2) + 3 * math.log(max(1.0, math.log(2)))
    index = []
    for n, total in ((31, 7.0), (31, 15.0), (1, 0.3)):
        p, low, high = total / n, total / n, 1.0
        for _ in range(100):
            q = 0.5 * (low + high)
            inside = n * (p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))) <= level
            low, high = (q, high) if inside else (low, q)
        index.append(low)
    arms = policy.select()
    assert arms.tolist() == [int(np.argmax(index))]
    np.testing.assert_allclose(policy.scores([0, 1, 2]), index, atol=1e-9)


def test_saved_grown_and_refused(tmp_path):
    policy = sb.CUCB(sb.Uniform(n_arms=4, rank=2), prior=([0.1, 0.2, 0.3, 0.4], 5.0), exploration="practical")
    policy.update(policy.select(), [1.0, 0.0])
    policy.save(tmp_path / "p")
    loaded = sb.load(tmp_path / "p")
    assert loaded.counts.tolist() == policy.counts.tolist()
    assert loaded.select().tolist() == policy.select().tolist()
    policy.grow(sb.Uniform(n_arms=6, rank=2))
    assert policy.counts.tolist() == [0, 0, 1, 1, 0, 0]
    assert policy.records["alpha"][4] == pytest.approx(0.25)
    for wrong in (
        0.5,
        (0.5,),
        (2.0, 1.0),
        (0.5, 0.0),
        (0.5, math.inf),
        ([0.5], 1.0),
        ("a", 1.0),
        (math.nan, 1.0),
    ):
        with pytest.raises(sb.ParameterError):
            sb.CUCB(sb.Uniform(n_arms=4, rank=2), prior=wrong)
    with pytest.raises(sb.ParameterError, match="exploration"):
        sb.CUCB(sb.Uniform(n_arms=4, rank=2), exploration="bold")
    assert sb.CUCB(sb.Uniform(n_arms=4, rank=2), exploration="theorem").exploration == 1.5
    assert as_prior(None, 4, (0.0, 1.0)) is None


def test_priors_fitted_to_data():
    rng = np.random.default_rng(3)
    group = np.repeat([0, 1], 3000)
    rate = np.where(group == 0, rng.beta(1, 30, 6000), rng.beta(8, 8, 6000))
    shown = rng.integers(1, 60, 6000)
    clicks = rng.binomial(shown, rate)
    mean, strength = sb.fit_prior(clicks, shown, group)
    assert mean[0] == pytest.approx(1 / 31, rel=0.15) and strength[0] == pytest.approx(31, rel=0.35)
    assert mean[-1] == pytest.approx(0.5, rel=0.05) and strength[-1] == pytest.approx(16, rel=0.25)
    # On another scale of rewards the same.
    scaled = sb.fit_prior(
        10 + 5 * clicks[:3000] / 1.0 - 10 + 10 * shown[:3000], shown[:3000], reward_range=(10, 15)
    )
    alone = sb.fit_prior(clicks[:3000], shown[:3000])
    assert scaled[0] == pytest.approx(10 + 5 * alone[0]) and scaled[1] == pytest.approx(alone[1])
    # Arms that do not differ: as strong as a prior can be. A group of one: that of all.
    assert sb.fit_prior([5, 5, 5], [10, 10, 10])[1] == 1e6
    few = sb.fit_prior([3, 0, 9, 1], [10, 10, 10, 10], [0, 0, 0, 1])
    assert few[0][3] == pytest.approx(13 / 40)
    for wrong in (([1], [2]), ([0, 0], [5, 5]), ([3, 1], [2, 2]), ([1, 1], [-1, 2]), ([1, 2, 3], [5, 5])):
        with pytest.raises(sb.ParameterError):
            sb.fit_prior(*wrong)


@pytest.mark.parametrize("sampler", ["plain", "grouped"])
def test_thompson_sampling_draws_from_the_prior(sampler):
    """Arms are played as often as their Beta sample is the largest, before and after some feedback."""
    a, b = np.array([1, 2, 5, 1, 1]), np.array([30, 40, 20, 3, 30])
    policy = sb.CTS(sb.Uniform(n_arms=5, rank=1), prior=(a / (a + b), a + b), sampler=sampler, seed=1)
    rng = np.random.default_rng(2)
    for wins, losses in (([0] * 5, [0] * 5), ([0, 3, 1, 0, 4], [2, 1, 0, 9, 1])):
        for arm in range(5):
            policy.update([arm] * (wins[arm] + losses[arm]), [1.0] * wins[arm] + [0.0] * losses[arm])
        expected = np.bincount(
            np.argmax(rng.beta(a + wins, b + losses, size=(200_000, 5)), axis=1), minlength=5
        )
        played = np.bincount([int(policy.select()[0]) for _ in range(4000)], minlength=5)
        share = expected / expected.sum()
        z = (played - 4000 * share) / np.sqrt(4000 * share * (1 - share) + 1.0)
        assert np.abs(z).max() < 4.5
        policy._check()
    assert policy.successes.tolist() == [0, 3, 1, 0, 4] and policy.failures.tolist() == [2, 1, 0, 9, 1]
    assert policy.counts.tolist() == [2, 4, 1, 9, 5]
    twin = policy.clone()
    assert [twin.select().tolist() for _ in range(5)] == [policy.select().tolist() for _ in range(5)]
    policy.reset([1, 4])
    assert policy.successes.tolist() == [0, 0, 1, 0, 0] and policy.counts.tolist() == [2, 0, 1, 9, 0]
    policy._check()


def test_thompson_sampling_with_a_prior_is_saved_and_refused(tmp_path):
    policy = sb.CTS(sb.Partition([0, 0, 1, 1], 1), prior=sb.beta_prior(1, 30), seed=2)
    policy.update(policy.select(), [1.0, 0.0])
    policy.save(tmp_path / "p")
    loaded = sb.load(tmp_path / "p")
    assert [loaded.select().tolist() for _ in range(9)] == [policy.select().tolist() for _ in range(9)]
    policy.delete([0])
    policy.reset([0])
    policy.insert([0])
    policy._check()
    with pytest.raises(sb.ParameterError, match="beta"):
        sb.CTS(sb.Uniform(4, 2), posterior="gaussian", prior=(0.5, 2.0))
