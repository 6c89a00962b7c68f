"""The posterior of theta against exact fractions: after a million rewards, for rows of all sizes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import semibandit as sb
from oracles.linear_bandit import exact_posterior
from semibandit.policies.linear.comb_lin import theorem_width
from semibandit.policies.linear.posterior import REFRESH, REFRESHED


def rows_of(kind, rng, n=40, d=5):
    rows = rng.standard_normal((n, d))
    if kind == "alike":  # two columns that differ in the fourth digit
        rows[:, 1] = rows[:, 0] + 1e-4 * rng.standard_normal(n)
    if kind == "sizes":
        rows *= 10.0 ** np.linspace(-3.0, 3.0, d)
    if kind == "counts":
        rows = (rng.random((n, d)) < 0.3).astype(float)
    return rows


@pytest.mark.parametrize(
    ("kind", "close"), [("usual", 1e-12), ("alike", 1e-7), ("sizes", 1e-12), ("counts", 1e-12)]
)
def test_a_million_rewards(kind, close):
    """Errors are counted in standard deviations of the posterior: what decisions would notice."""
    rng = np.random.default_rng(3)
    rows, n = rows_of(kind, rng), 1_000_000
    policy = sb.CombLinTS(
        sb.Uniform(40, 3), features=rows, reward_range=None, noise=0.75, prior_scale=8.0, seed=1
    )
    arms = rng.integers(0, 40, n)
    rewards = np.round(2**20 * rng.standard_normal(n)) / 2**20  # whose sums are exact
    for begin in range(0, n, 50_000):
        policy.update(arms[begin : begin + 50_000], rewards[begin : begin + 50_000])
        assert (np.diag(policy._posterior.root) > 0.0).all()
    totals = np.bincount(arms, weights=rewards, minlength=40)
    mean, covariance = exact_posterior(rows, np.bincount(arms, minlength=40), totals, 8.0, 0.75)
    found = policy.covariance
    assert np.array_equal(found, found.T)
    assert (np.linalg.eigvalsh(found / np.sqrt(np.outer(np.diag(found), np.diag(found)))) > 0.0).all()
    assert (np.abs(policy.theta - mean) <= close * np.sqrt(np.diag(covariance))).all()
    back = np.linalg.inv(np.linalg.cholesky(covariance))
    np.testing.assert_allclose(back @ found @ back.T, np.eye(5), atol=close)
    assert policy._posterior.meta[REFRESHED] == n // REFRESH
    policy._check()


def test_no_root_of_the_sums_leaves_the_rotated_one():
    """Sums of rows that agree in all digits have no root; the rotated one is positive definite all the same."""
    rows = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-12]])
    policy = sb.CombLinUCB(sb.Uniform(2, 1), features=rows, prior_scale=1e9)
    policy.update(np.arange(2 * REFRESH) % 2, np.full(2 * REFRESH, 0.5))
    assert policy._posterior.meta[REFRESHED] == 0
    assert (np.diag(policy._posterior.root) > 0.0).all()
    for _ in range(3):
        decision = policy.decide()
        assert np.isfinite(decision.scores).all() and abs(decision.account.low[0] - 0.5) < 0.1
    policy.drop(0)
    policy.learn(1, [0.5])
    assert np.isfinite(policy.select()).all()


def test_draws_are_those_of_the_posterior():
    rng = np.random.default_rng(4)
    rows = rows_of("usual", rng, n=9, d=3)
    policy = sb.CombLinTS(sb.Uniform(9, 2), features=rows, noise=0.4, prior_scale=1.5, seed=8)
    counts, totals = np.arange(9), np.arange(9) * 0.5
    policy.update(np.repeat(np.arange(9), counts), np.full(36, 0.5))
    mean, covariance = exact_posterior(rows, counts, totals, 1.5, 0.4)
    drawn = []
    for _ in range(6000):
        policy.select()
        drawn.append(policy._posterior.drawn.copy())
    drawn = np.array(drawn) - mean
    squares = np.einsum("ij,jk,ik->i", drawn, np.linalg.inv(covariance), drawn)
    assert stats.kstest(squares, stats.chi2(3).cdf).pvalue > 1e-3
    standard = drawn @ np.linalg.inv(np.linalg.cholesky(covariance)).T
    assert stats.kstest(standard.reshape(-1), stats.norm.cdf).pvalue > 1e-3
    assert np.abs(np.corrcoef(standard.T) - np.eye(3)).max() < 4.0 / np.sqrt(6000)


def test_the_width_of_the_theorem():
    # (1/sigma) sqrt(d ln(1 + n D lambda^2 / (d sigma^2)) + 2 ln(1/delta)) + |theta| / lambda, by hand
    found = theorem_width(4, 3, 200, prior_scale=2.0, noise=0.5, norm=1.5, delta=0.1)
    assert found == pytest.approx(2.0 * np.sqrt(4 * np.log(1 + 600 * 4 / (4 * 0.25)) + 2 * np.log(10)) + 0.75)
    for wrong in ({"delta": 0.0}, {"delta": 1.0}, {"noise": 0.0}, {"prior_scale": -1.0}, {"norm": -1.0}):
        with pytest.raises(sb.ParameterError, match=next(iter(wrong))):
            theorem_width(4, 3, 200, **wrong)
