"""Projections on base polytopes satisfy their optimality conditions; sampled bases have the given marginals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import semibandit as sb
from oracles import ftrl as naive
from semibandit.compiled.handle import by_handle, make_handle
from semibandit.policies.ftrl.estimates import Estimates
from semibandit.policies.ftrl.families import Families
from semibandit.policies.ftrl.regularisers import CHOICES, ENOUGH, chance_at
from semibandit.policies.ftrl.sampling import sample_base
from support.leaders import HORIZON, leader
from support.random_matroids import RANDOM

FAMILIES = ("uniform", "partition", "laminar")


def check_optimal(policy, name, independent, t=50, x=None):
    """x is in the base polytope, and no base is better along the gradient there: the KKT conditions to 1e-9."""
    n = policy.n_arms
    x = policy.chances.tolist() if x is None else x
    assert naive.outside(x, n, independent) < 1e-9
    all_bases = naive.bases(n, independent)
    gamma = naive.gamma_of(name, n, len(all_bases[0]), HORIZON)
    est, eta = policy._est, naive.rate(name, t)
    loops = set(range(n)) - {k for base in all_bases for k in base}
    always = set(all_bases[0]).intersection(*all_bases)
    gradient = [
        0.0
        if k in loops or k in always
        else eta * est.cost[k] + est.scale[k] * naive.slope(name, gamma, x[k], est.rest[k])
        for k in range(n)
    ]
    size = max(map(abs, gradient)) + 1.0
    assert naive.gap(gradient, x, all_bases) < 1e-9 * size, (gradient, x)
    assert all(x[k] == 0.0 for k in loops) and all(x[k] > 1.0 - 1e-9 for k in always)


@pytest.mark.thin
@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("kind", FAMILIES)
def test_leaders_are_optimal(kind, name):
    rng = np.random.default_rng(5)
    for size in (1, 2, 5, 7, 7, 7):
        matroid, independent = RANDOM[kind](rng, size)
        for spread in (0.0, 5.0, 200.0):
            scale = rng.uniform(1.0, 4.0, size) if name.startswith("lbinf") else None
            policy = leader(matroid, name, rng.uniform(0.0, spread, size) if spread else 0.0, scale=scale)
            check_optimal(policy, name, independent)


@settings(max_examples=40, derandomize=True, deadline=None)
@given(st.data())
def test_leaders_of_deep_families_are_optimal(data):
    seed = data.draw(st.integers(0, 10_000))
    name = data.draw(st.sampled_from(list(CHOICES)))
    rng = np.random.default_rng(seed)
    matroid, independent = RANDOM["laminar"](rng, 7)
    costs = data.draw(st.lists(st.floats(-300.0, 300.0), min_size=7, max_size=7))
    check_optimal(leader(matroid, name, costs), name, independent)


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("seed", [1, 4])
def test_leaders_are_optimal_where_sums_hardly_fall_with_the_price(seed, name):
    """Two arms far behind three that are as good as sure: between their prices Newton's steps are to nowhere."""
    matroid, independent = RANDOM["laminar"](np.random.default_rng(seed), 7)
    for behind in (30.0, 100.0, 273.0, 300.0):
        for costs in ([0, 0, behind, behind + 7, 0, -1, -3], [behind, -behind, behind, 0, 0, -behind, 1]):
            check_optimal(leader(matroid, name, np.array(costs, dtype=np.float64)), name, independent)


@pytest.mark.parametrize("name", CHOICES)
def test_a_solver_that_knows_nothing_of_families_finds_the_same_leader(name):
    optimize = pytest.importorskip("scipy.optimize")
    families = [([0, 1, 2, 3], 2), ([0, 1], 1), ([4, 5, 6], 2)]
    matroid = sb.Laminar(8, [(list(range(8)), 4), *families])
    costs = np.array([0.0, 3.0, 9.0, 1.0, 2.0, 2.0, 30.0, 11.0])
    policy = leader(matroid, name, costs)
    gamma, eta = naive.gamma_of(name, 8, 4, HORIZON), naive.rate(name, 50)
    est = policy._est
    found = optimize.minimize(
        lambda x: sum(
            eta * est.cost[k] * x[k] + est.scale[k] * naive.phi(name, gamma, x[k]) for k in range(8)
        ),
        np.full(8, 0.4),
        bounds=[(1e-9, 1.0 - 1e-9)] * 8,
        constraints=[{"type": "eq", "fun": lambda x: x.sum() - 4}]
        + [{"type": "ineq", "fun": lambda x, a=arms, c=bound: c - x[a].sum()} for arms, bound in families],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert np.abs(found.x - policy.chances).max() < 2e-4


@pytest.mark.parametrize("name", CHOICES)
def test_a_price_gives_the_chance_whose_slope_it_is(name):
    """Over all prices that occur, warm and cold starts of Newton's method end at the same place."""
    phi = CHOICES[name][0]
    for gamma in (0.3, 1.0, 9.2):
        last = 0.0
        for a in np.concatenate((np.linspace(-40.0, 40.0, 81), np.logspace(2, 6, 9)))[::-1]:
            x, rest, place, _ = chance_at.py_func(phi, gamma, float(a), 0.0, ENOUGH)
            warm = chance_at.py_func(phi, gamma, float(a), last, ENOUGH)
            assert warm[:2] == pytest.approx((x, rest), rel=1e-9)
            last = place
            assert 0.0 < x <= 1.0 and x + rest == pytest.approx(1.0)
            if rest > 1e-6 and x > 1e-290:
                assert -naive.slope(name, gamma, x) == pytest.approx(float(a), rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("kind", FAMILIES)
def test_sampled_marginals_are_the_chances(kind):
    """Counts of arms and of unplayed ones against their expectation, at a fixed seed, over several leaders."""
    rng = np.random.default_rng(11)
    draws = 4000
    for _ in range(3):
        matroid, independent = RANDOM[kind](rng, 9)
        policy = leader(matroid, "hybrid", rng.uniform(0.0, 12.0, 9))
        x, way = policy.chances, policy._way
        counts = np.zeros(9)
        for _ in range(draws):
            base = way.draw()
            assert len(base) == matroid.rank and independent(base.tolist()) and (np.diff(base) > 0).all()
            counts[base] += 1
        free = (x > 1e-3) & (x < 1.0 - 1e-3)
        assert (counts[x > 1.0 - 1e-9] == draws).all() and (counts[x == 0.0] == 0).all()
        # Each count is binomial; the sum of squared standard scores has the mean of chi-square at most.
        scores = (counts[free] - draws * x[free]) ** 2 / (draws * x[free] * (1.0 - x[free]))
        n = int(free.sum())
        assert scores.sum() < n + 4.0 * math.sqrt(2.0 * n) + 4.0, scores


def test_every_family_gets_its_mass_rounded_down_or_up():
    matroid = sb.Laminar(12, [(list(range(6)), 3), ([0, 1, 2], 2), (list(range(6, 12)), 3)])
    policy = leader(matroid, "hybrid", np.linspace(0.0, 9.0, 12))
    x = policy.chances
    for family in (range(6), range(3), range(6, 12)):
        mass = x[list(family)].sum()
        sizes = {len(np.intersect1d(policy._way.draw(), family)) for _ in range(300)}
        assert sizes <= {math.floor(mass + 1e-9), math.ceil(mass - 1e-9)}


@pytest.mark.thin
@pytest.mark.parametrize("error", [-1e-3, 1e-3, 0.2, -0.5])
def test_bases_are_bases_whatever_the_rounding(error):
    """Chances that do not sum up to the rank, much further off than rounding is, still give bases."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        matroid, independent = RANDOM["laminar"](rng, 8)
        policy = leader(matroid, "hybrid", rng.uniform(0.0, 6.0, 8))
        est, families = policy._est, policy._way.families
        est.x[:] = np.clip(est.x * (1.0 + error), 0.0, 1.0)
        draw = by_handle(sample_base, Estimates, Families).entry
        out = np.empty(matroid.rank, dtype=np.int64)
        for _ in range(30):
            n = draw(make_handle(est), make_handle(families), out)
            assert n == matroid.rank and independent(out.tolist()) and (np.diff(out) > 0).all()
        assert not families.used.any()


def test_excluded_arms_leave_their_chances_to_others():
    rng = np.random.default_rng(9)
    for kind in FAMILIES:
        matroid, independent = RANDOM[kind](rng, 7)
        gone = [1, 4]
        policy = leader(matroid, "hybrid", rng.uniform(0.0, 9.0, 7), exclude=gone)

        def without(arms, independent=independent):
            return independent(arms) and not set(arms) & {1, 4}

        x = np.where(np.isin(np.arange(7), gone), 0.0, policy._est.x)
        size = len(naive.bases(7, without)[0])
        assert x.sum() == pytest.approx(size, abs=1e-9)
        assert naive.outside(x.tolist(), 7, without) < 1e-9
