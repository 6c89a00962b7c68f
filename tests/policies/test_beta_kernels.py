"""The Beta survival function, its inverse, and the generator of the kernels, against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from semibandit.compiled.random import new_state, next_beta, next_exponential, next_normal, next_uniform
from semibandit.policies.thompson.beta import inverse_survival, log_beta, log_survival

SHAPES = [1.0, 2.0, 3.0, 7.0, 20.0, 64.0, 500.0, 3000.0, 20_000.0, 300_000.0]


@pytest.mark.parametrize("a", SHAPES)
def test_survival_equals_scipys(a):
    for b in SHAPES:
        for v in (1e-250, 1e-60, 1e-12, 1e-6, 0.01, 0.3, 0.5, 0.9, 0.999999):
            x = special.betainccinv(a, b, v)
            if not 1e-12 < x < 1.0 - 1e-12:
                continue
            ours = np.exp(log_survival(x, a, b, log_beta(a, b)))
            assert ours == pytest.approx(special.betaincc(a, b, x), rel=1e-8 + 1e-13 * (a + b)), (a, b, v)


@pytest.mark.parametrize("a", SHAPES)
def test_inverse_survival_equals_scipys(a):
    for b in SHAPES:
        spread = np.sqrt(a * b / (a + b + 1.0)) / (a + b)
        for v in (1e-100, 1e-12, 1e-6, 0.01, 0.3, 0.5, 0.9, 0.999999):
            expected = special.betainccinv(a, b, v)
            for low in (0.0, 0.999 * expected):
                x = inverse_survival(np.log(v), a, b, log_beta(a, b), low)
                assert abs(x - expected) <= 1e-8 * spread + 1e-15, (a, b, v, low)


def test_round_trip_where_scipy_is_not_needed():
    for a, b in [(1.0, 1.0), (1.0, 40.0), (40.0, 1.0), (2.0, 2.0), (30.0, 5.0), (1e6, 10.0)]:
        for log_v in (-500.0, -50.0, -5.0, -0.5, -1e-3):
            x = inverse_survival(log_v, a, b, log_beta(a, b), 0.0)
            if 0.0 < x < 1.0 - 1e-10:
                assert log_survival(x, a, b, log_beta(a, b)) == pytest.approx(log_v, rel=1e-6, abs=1e-9)


def test_the_generator_is_uniform_and_can_be_set():
    state = new_state(5)
    u = np.array([next_uniform(state) for _ in range(20_000)])
    assert u.min() > 0.0 and u.max() < 1.0
    assert stats.kstest(u, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 4 / np.sqrt(len(u))
    again = new_state(5)
    assert [next_uniform(again) for _ in range(5)] == u[:5].tolist()
    assert new_state(6)[0] != new_state(5)[0]


def test_normal_and_beta_numbers_have_their_law():
    state = new_state(9)
    normal = np.array([next_normal(state) for _ in range(200_000)])
    assert stats.kstest(normal, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(normal[1:], normal[:-1])[0, 1]) < 4 / np.sqrt(len(normal))
    # Beyond 3 there are the tail and the widest layers, on both sides.
    for side in (normal, -normal):
        beyond = side[side > 3.0]
        assert abs(len(beyond) - 200_000 * stats.norm.sf(3.0)) < 4 * np.sqrt(270)
        assert stats.kstest(stats.norm.sf(beyond) / stats.norm.sf(3.0), "uniform").pvalue > 1e-3
    for a, b in [(1.0, 1.0), (2.0, 1.0), (3.0, 9.0), (200.0, 100.0)]:
        drawn = [next_beta(state, a, b) for _ in range(5000)]
        assert stats.kstest(drawn, "beta", (a, b)).pvalue > 1e-3


def test_exponential_numbers_have_their_law():
    state = new_state(5)
    drawn = np.array([next_exponential(state) for _ in range(200_000)])
    assert stats.kstest(drawn, "expon").pvalue > 1e-3
    # The tail beyond the widest layer, which few draws reach.
    beyond = drawn[drawn > 7.69711747013104972] - 7.69711747013104972
    assert abs(len(beyond) - 200_000 * np.exp(-7.69711747013104972)) < 4 * np.sqrt(91)
    assert stats.kstest(beyond, "expon").pvalue > 1e-3
