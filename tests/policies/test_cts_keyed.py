"""Thompson sampling with draws keyed by arm and round: the law of the plain sampler, whoever draws."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy import stats

import semibandit as sb
from semibandit.testing import check_policy
from support.random_matroids import RANDOM

LEVEL = 1e-4


def fed(matroid: sb.Matroid, **options: object) -> sb.CTS:
    """Arms with quite different posteriors."""
    policy = sb.CTS(matroid, sampler="keyed", **options)
    n = matroid.n_arms
    wins, losses = np.arange(n) % 4, np.arange(n) % 3 * 2
    policy.update(np.repeat(np.arange(n), wins), np.ones(wins.sum()))
    policy.update(np.repeat(np.arange(n), losses), np.zeros(losses.sum()))
    return policy


def test_samples_have_the_law_of_the_posterior_and_nothing_in_common() -> None:
    policy, n, rounds = fed(sb.Uniform(12, 2), seed=3), 12, 4000
    drawn = np.array([policy._indices_of(np.arange(n), t) for t in range(1, rounds + 1)])
    levels = np.empty_like(drawn)
    for k in range(n):
        law = stats.beta(1 + k % 4, 1 + k % 3 * 2)
        assert stats.kstest(drawn[:, k], law.cdf).pvalue > LEVEL
        levels[:, k] = law.cdf(drawn[:, k])
    # Between arms, between rounds, and between seeds: correlations of independent numbers.
    pairs = np.corrcoef(levels.T)[np.triu_indices(n, 1)]
    after = [np.corrcoef(levels[:-1, k], levels[1:, k])[0, 1] for k in range(n)]
    other = fed(sb.Uniform(12, 2), seed=4)
    seeds = np.array([other._indices_of(np.arange(n), t) for t in range(1, rounds + 1)])
    across = [np.corrcoef(drawn[:, k], seeds[:, k])[0, 1] for k in range(n)]
    assert np.abs(np.concatenate([pairs, after, across])).max() < 5.0 / np.sqrt(rounds)


def test_gaussian_samples_have_their_law() -> None:
    policy = sb.CTS(sb.Uniform(3, 1), sampler="keyed", posterior="gaussian", sigma=0.3)
    policy.update([0, 0, 1], [0.2, 0.6, 0.9])
    drawn = np.array([policy._indices_of(np.arange(3), t) for t in range(1, 4001)])
    assert np.isinf(drawn[:, 2]).all()
    for k, law in enumerate((stats.norm(0.4, 0.3 / np.sqrt(2)), stats.norm(0.9, 0.3))):
        assert stats.kstest(drawn[:, k], law.cdf).pvalue > LEVEL


def test_plays_bases_as_often_as_the_plain_sampler() -> None:
    matroid = sb.Graphic([(0, 1), (1, 2), (2, 0), (2, 3), (3, 0)])
    seen = []
    for sampler in ("keyed", "plain"):
        policy = sb.CTS(matroid, sampler=sampler, seed=2)
        policy.update([0, 0, 1, 2, 3, 4, 4], [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0])
        seen.append(Counter(tuple(policy.select().tolist()) for _ in range(6000)))
    bases = sorted(set(seen[0]) | set(seen[1]))
    assert stats.chi2_contingency([[one[base] for base in bases] for one in seen]).pvalue > LEVEL


def test_a_draw_depends_on_seed_arm_and_round_alone() -> None:
    whole, part = fed(sb.Uniform(40, 3), seed=9), sb.CTS(sb.Uniform(4, 2), sampler="keyed", seed=9)
    names = np.array([5, 17, 29, 38])
    part._call_arms(0, names)
    whole.reset(names)
    whole.select()  # whatever was drawn in between
    for t in (1, 2, 1000):
        assert np.array_equal(whole._indices_of(names, t), part._indices_of(np.arange(4), t))
    part._call_arms(21, np.zeros(0, dtype=np.int64))
    whole.reset(np.arange(21, 25))
    assert np.array_equal(whole._indices_of(np.arange(21, 25), 7), part._indices_of(np.arange(4), 7))


def test_rewards_inside_the_range_count_as_successes_in_proportion_whatever_their_order() -> None:
    policy = sb.CTS(sb.Uniform(200, 1), sampler="keyed", seed=1)
    arms = np.arange(200).repeat(40)
    policy.update(arms, np.full(8000, 0.3))
    assert stats.binomtest(int(policy.successes.sum()), 8000, 0.3).pvalue > LEVEL
    shuffled = sb.CTS(sb.Uniform(200, 1), sampler="keyed", seed=1)
    shuffled.update(np.random.default_rng(0).permutation(arms), np.full(8000, 0.3))
    assert np.array_equal(policy.successes, shuffled.successes)
    policy.reseed(2)
    again = sb.CTS(sb.Uniform(200, 1), sampler="keyed", seed=2)
    again.update(arms, np.full(8000, 0.3))
    assert not np.array_equal(policy.successes, again.successes)


@pytest.mark.parametrize("kind", ["uniform", "laminar", "rational"])
@pytest.mark.parametrize("posterior", ["beta", "gaussian"])
def test_keeps_the_contract(kind: str, posterior: str) -> None:
    matroid = RANDOM[kind](np.random.default_rng(2), 9)[0]
    check_policy(lambda: sb.CTS(matroid, sampler="keyed", posterior=posterior, seed=5))
