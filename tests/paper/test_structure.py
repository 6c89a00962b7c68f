"""InnerProductBase: Theorem dynamic by exhaustion, cells against lazy, rules of updating, and bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest

import oracles.matroids as naive
from semibandit.compiled.handle import by_handle, make_handle
from semibandit.errors import ArmError, ParameterError
from semibandit.matroids import Uniform
from semibandit.paper import HittingSet, InnerProductBase, Rounding, direction_slopes
from semibandit.paper.directions import direction_of
from semibandit.paper.dynamic import dynamic_base
from semibandit.paper.hitting_set import SLOPE
from semibandit.paper.instances import OnDemand, Points
from semibandit.paper.locate import CellFinder, cell_finder, find_cell
from support.random_matroids import RANDOM

CLASSES = ["uniform", "partition", "laminar", "graphic", "transversal"]
METHODS = ["cells", "lazy", "directions"]


def random_matroid(rng, kind, size):
    """A random matroid and its slow oracle; of transversal ones, one in which no arm names a right node twice."""
    while True:
        matroid, independent = RANDOM[kind](rng, size)
        if kind != "transversal":
            return matroid, independent
        named = np.split(matroid._indices, matroid._indptr[1:-1])
        if all(len(set(nodes.tolist())) == len(nodes) for nodes in named):
            return matroid, independent


class Exhaustive:
    """All bases of a small matroid as rows of zeros and ones."""

    def __init__(self, rng, kind, size):
        self.matroid, independent = random_matroid(rng, kind, size)
        bases = naive.bases(independent, size)
        self.rows = np.zeros((len(bases), size))
        for row, base in zip(self.rows, bases):
            row[list(base)] = 1.0

    def best(self, weights):
        return float((self.rows @ weights).max())


def random_bounds(rng, growth, most):
    """Bounds that n_alpha and n_beta of 1 .. most bins cover, at times exactly, at times with a part of a bin."""
    bounds = []
    for _ in range(2):
        lower = float(np.exp(rng.normal()))
        bins = int(rng.integers(1, most + 1))
        bounds.append((lower, lower * growth ** (bins - float(rng.choice([0.0, 0.4])))))
    return tuple(bounds)


def random_features(rng, bounds, growth, n):
    """Legal features with a taste for zero, the bounds, the edges of bins, and repeats."""
    columns = []
    for lower, upper in bounds:
        x = np.exp(rng.uniform(math.log(lower), math.log(upper), n))
        edge = np.clip(lower * growth ** rng.integers(0, 4, n).astype(float), lower, upper)
        kind = rng.integers(0, 6, n)
        x = np.where(kind == 0, 0.0, np.where(kind == 1, lower, np.where(kind == 2, upper, x)))
        columns.append(np.where(kind == 3, edge, x))
    return np.column_stack(columns)


def random_queries(rng, hitting):
    """Axes, the origin, a query on the boundary of two cells, and any others."""
    fixed = [(1.0, 0.0), (0.0, 1.0), (0.0, 0.0), (0.0, 3e-5)]
    boundary = float(rng.choice(hitting.breakpoints))
    scale = float(np.exp(rng.normal(0.0, 3.0)))
    return [
        fixed[int(rng.integers(4))],
        (scale, scale * boundary),
        (1.0, float(np.exp(rng.normal(0.0, 2.0)))),
        tuple(rng.exponential(size=2).tolist()),
    ]


def run_instance(rng, world, epsilon, most, rounds, check=False):
    growth = 1.0 + epsilon / 3.0
    n = world.matroid.n_arms
    bounds = random_bounds(rng, growth, most)
    features = random_features(rng, bounds, growth, n)
    hitting = HittingSet(Rounding(bounds, epsilon))
    structures = {
        method: InnerProductBase(
            world.matroid, features, bounds, epsilon, method, max_instances=2 if method != "cells" else None
        )
        for method in METHODS
    }
    for _ in range(rounds):
        for query in random_queries(rng, hitting):
            weights = query[0] * features[:, 0] + query[1] * features[:, 1]
            best = world.best(weights)
            found = {method: s.find_base(query) for method, s in structures.items()}
            assert np.array_equal(found["cells"], found["lazy"]), (query, found)
            for method, arms in found.items():
                assert arms.dtype == np.int64 and (np.diff(arms) > 0).all()
                assert len(arms) == world.matroid.rank and world.matroid.is_independent(arms)
                total = float(weights[arms].sum())
                assert total * (1.0 + epsilon) >= best * (1.0 - 1e-12), (method, query, total, best)
        arms = rng.integers(0, n, int(rng.integers(1, 4)))
        news = random_features(rng, bounds, growth, len(arms))
        for arm, new in zip(arms, news):
            features[arm] = new
        for method, s in structures.items():
            if method == "lazy" and len(arms) == 1:
                s.update_feature(int(arms[0]), news[0])
            else:
                s.update_features(arms, news)
            assert np.array_equal(s.features, features)
            if check:
                s._check()


def run_instances(kind, seed, trials, most):
    rng = np.random.default_rng([CLASSES.index(kind), seed])
    for trial in range(trials):
        if trial % 5 == 0:
            world = Exhaustive(rng, kind, int(rng.integers(1, 7)))
        epsilon = float(rng.choice([0.95, 0.6, 0.3]))
        run_instance(rng, world, epsilon, most, rounds=2, check=trial % 50 == 0)


@pytest.mark.thin
@pytest.mark.parametrize("kind", CLASSES)
def test_every_method_is_within_epsilon_of_the_exhaustive_optimum(kind):
    """Theorem dynamic: two rounds of four queries and updates an instance; a matroid serves five instances."""
    run_instances(kind, seed=0, trials=75, most=2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CLASSES)
def test_a_thousand_more_instances_of_every_class(kind):
    run_instances(kind, seed=1, trials=1100, most=3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CLASSES)
def test_larger_instances_and_finer_cells(kind):
    rng = np.random.default_rng(50 + CLASSES.index(kind))
    for _ in range(40):
        world = Exhaustive(rng, kind, int(rng.integers(4, 9)))
        run_instance(rng, world, float(rng.choice([0.9, 0.4])), most=6, rounds=4)


@pytest.mark.thin(1)
@pytest.mark.bounds
@pytest.mark.parametrize("kind", CLASSES)
def test_lazy_equals_cells_over_long_runs(kind):
    """Queries that come back, instances that are dropped and made again, many arms moved between two questions."""
    rng = np.random.default_rng(7)
    matroid, _ = random_matroid(rng, kind, 14)
    bounds, epsilon = ((0.5, 1.0), (0.1, 0.4)), 0.9
    features = random_features(rng, bounds, 1.3, 14)
    cells = InnerProductBase(matroid, features, bounds, epsilon, "cells")
    lazy = InnerProductBase(matroid, features, bounds, epsilon, "lazy", max_instances=3)
    assert cells.n_instances == cells.n_cells == lazy.n_cells > 90
    slopes = np.exp(rng.uniform(-1.0, 4.0, 6))
    for step in range(150):
        for slope in rng.choice(slopes, 3):
            assert np.array_equal(cells.find_base((1.0, slope)), lazy.find_base((2.0, 2.0 * slope)))
        n = 14 if step % 40 == 39 else int(rng.integers(1, 3))
        for _ in range(4 if step % 40 == 39 else 1):
            arms, news = rng.permutation(14)[:n], random_features(rng, bounds, 1.3, n)
            cells.update_features(arms, news)
            lazy.update_features(arms, news)
        assert lazy.n_instances <= 3
        if step % 30 == 0:
            lazy._check()
    cells._check()
    assert lazy.n_built > 3, "instances were dropped and made again"
    assert lazy.memory() < cells.memory() / 10


def test_a_feature_that_stays_in_its_bin_costs_no_update(monkeypatch):
    bounds, epsilon = ((1.0, 2.0), (1.0, 2.0)), 0.75
    structures = [
        InnerProductBase(Uniform(3, 1), [[1.1, 1.1]] * 3, bounds, epsilon, method) for method in METHODS
    ]
    for s in structures:
        s.find_base((1.0, 1.0))
        s.find_base((1.0, 1.0))
    told = []
    for cls in {type(instance) for instance in structures[0]._all._instances}:
        monkeypatch.setattr(cls, "_set_weights", lambda self, arms, weights: told.append(arms.tolist()))
    for s in structures:
        told.clear()
        s.update_feature(1, (1.2, 1.24))  # bin (1, 1) ends at 1.25
        s.find_base((1.0, 1.0))
        assert told == ([] if s.method != "directions" else [[1]])
        assert s.features[1].tolist() == [1.2, 1.24]
        told.clear()
        s.update_feature(1, (1.2, 1.26))
        s.find_base((1.0, 1.0))
        assert told == [[1]] * (s.n_instances if s.method == "cells" else 1)


def test_equal_points_tie_by_arm_id():
    for method in METHODS:
        s = InnerProductBase(Uniform(5, 2), [[1.0, 1.0]] * 5, ((1.0, 2.0), (1.0, 2.0)), 0.75, method)
        for query in [(1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.0, 0.0)]:
            assert s.find_base(query).tolist() == [0, 1]
        s.update_feature(4, (2.0, 2.0))
        assert s.find_base((1.0, 1.0)).tolist() == [0, 4]


def test_finder_gives_the_floats_of_the_brute_force_search():
    """Also next to every breakpoint, on it, far outside, and where a whole period holds no slope."""
    rng = np.random.default_rng(2)
    for n_alpha, n_beta, epsilon in [
        (1, 1, 0.9),
        (1, 2, 0.5),
        (3, 3, 0.75),
        (1, 12, 0.3),
        (12, 1, 0.3),
        (9, 14, 0.2),
    ]:
        growth = 1.0 + epsilon / 3.0
        rounding = Rounding(((0.3, 0.3 * growth**n_alpha), (0.02, 0.02 * growth**n_beta)), epsilon)
        for copies in (True, False):
            hitting = HittingSet(rounding, copies=copies)
            finder = cell_finder(hitting)
            find, handle, cell = by_handle(find_cell, CellFinder), make_handle(finder), np.empty(3)
            near = rng.permutation(hitting.breakpoints)[:300]
            lams = [
                near,
                np.nextafter(near, 0.0),
                np.nextafter(near, np.inf),
                near * (1 + 1e-13),
                near * (1 - 1e-13),
            ]
            lams += [np.exp(rng.normal(math.log(15.0), 5.0, 300)), [0.0, 1e-300, 1e300, math.inf]]
            for lam in np.concatenate(lams).tolist():
                find(handle, lam, cell)
                assert tuple(cell) == hitting._cell_slopes(lam)
                assert cell[SLOPE] == hitting.slopes[hitting._locate(lam)]


def test_directions_cover_the_quadrant_and_are_as_many_as_the_theory_says():
    for bounds, epsilon in [(((0.1, 1.0), (0.001, 1.0)), 1 / math.log(1e6)), (((2.0, 2.0), (5.0, 5.0)), 0.5)]:
        (alpha_lb, alpha_ub), (beta_lb, beta_ub) = bounds
        slopes = direction_slopes(bounds, epsilon)
        low = epsilon / (1 + epsilon) * alpha_lb / beta_ub
        high = (1 + epsilon) / epsilon * alpha_ub / beta_lb
        assert slopes[0] <= low * (1 + 1e-11) and slopes[-1] >= high * (1 - 1e-11)
        assert (slopes[1:] / slopes[:-1] <= (1 + epsilon) * (1 + 1e-15)).all()
        count = 1 + math.ceil(math.log(high / low) / math.log1p(epsilon))
        assert abs(len(slopes) - count) <= 1
        for lam in np.geomspace(low, high, 500).tolist():
            slope = direction_of(slopes, lam)
            assert slope >= lam * (1 - 1e-11) and slope <= lam * (1 + epsilon)
        assert direction_of(slopes, 0.0) == slopes[0] and direction_of(slopes, math.inf) == slopes[-1]
    assert len(direction_slopes(((0.1, 1.0), (0.001, 1.0)), 1 / math.log(1e6))) < 250


def test_instances_on_demand_follow_moves_however_late():
    rng = np.random.default_rng(1)
    matroid = Uniform(6, 2)
    points = Points(rng.random(6), rng.random(6))
    some = OnDemand(matroid, points, capacity=2, patience=0)
    for step in range(200):
        for _ in range(int(rng.integers(0, 30))):
            arm = rng.integers(0, 6, 1)
            points.move(arm, rng.choice([0.0, 0.5, np.inf, -np.inf, rng.random()], 1), rng.random(1))
        slope = float(rng.choice([0.5, 1.0, 2.0]))
        expected = dynamic_base(matroid, points.alpha + slope * points.beta).base()
        assert np.array_equal(some.base(slope), expected), step
        assert len(some) <= 2
        some._check()


def test_the_number_of_cells_and_instances_is_reported():
    features = np.full((50, 2), 0.5)
    bounds = ((0.1, 1.0), (0.001, 1.0))
    lazy = InnerProductBase(Uniform(50, 3), features, bounds, 1 / math.log(1e6))
    assert (lazy.n_cells, lazy.n_instances) == (5_462_170, 0)
    for slope in np.geomspace(0.1, 10.0, 50):
        lazy.find_base((1.0, slope))
        lazy.find_base((1.0, slope))
    assert lazy.n_instances == 16 and lazy.n_built == 50
    directions = InnerProductBase(Uniform(50, 3), features, bounds, 1 / math.log(1e6), "directions")
    directions.find_base((1.0, 1.0))
    assert directions.n_instances == 1 and directions.n_cells < 250
    assert "method='directions'" in repr(directions)


def test_absurdly_many_instances_are_refused_with_numbers():
    features, bounds = np.full((50, 2), 0.5), ((0.1, 1.0), (0.001, 1.0))
    with pytest.raises(ParameterError, match=r"5,462,170 instances .* bytes each, [\d,.]+ GB in all"):
        InnerProductBase(Uniform(50, 3), features, bounds, 1 / math.log(1e6), "cells")
    with pytest.raises(ParameterError, match=r"max_bytes = 10,000"):
        InnerProductBase(Uniform(50, 3), features, ((0.1, 1.0), (0.1, 1.0)), 0.9, "cells", max_bytes=10_000)
    with pytest.raises(ParameterError, match=r"max_instances = 5 "):
        InnerProductBase(Uniform(50, 3), features, ((0.1, 1.0), (0.1, 1.0)), 0.9, "cells", max_instances=5)


@pytest.mark.parametrize("method", METHODS)
def test_bad_input_is_named_and_changes_nothing(method):
    features = np.array([[0.5, 0.5], [0.0, 1.0], [1.0, 0.0]])
    bounds = ((0.5, 1.0), (0.5, 1.0))
    make = lambda f=features, b=bounds, e=0.9, m=method: InnerProductBase(Uniform(3, 1), f, b, e, m)  # noqa: E731
    s = make()
    before = [s.find_base((1.0, x)).tolist() for x in (0.0, 0.9, 5.0)]
    bad = [
        (ParameterError, "alpha of feature 0 is 1.5", lambda: s.update_feature(1, (1.5, 0.5))),
        (
            ParameterError,
            "beta of feature 1 is 0.2",
            lambda: s.update_features([0, 1], [[0.7, 0.7], [0.7, 0.2]]),
        ),
        (ParameterError, "nan", lambda: s.update_feature(1, (math.nan, 0.5))),
        (ParameterError, "two numbers", lambda: s.update_feature(1, (0.5,))),
        (ParameterError, "one row an arm", lambda: s.update_features([0, 1], [[0.7, 0.7]])),
        (ArmError, "is not an arm", lambda: s.update_feature(3, (0.5, 0.5))),
        (ArmError, "integers", lambda: s.update_feature(0.5, (0.5, 0.5))),
        (ArmError, "one arm id", lambda: s.update_feature([0], (0.5, 0.5))),
        (ParameterError, "query", lambda: s.find_base((1.0, -1.0))),
        (ParameterError, "query", lambda: s.find_base((math.inf, 1.0))),
        (ParameterError, "query", lambda: s.find_base((math.nan, 1.0))),
        (ParameterError, "query", lambda: s.find_base((1.0, 1.0, 1.0))),
        (ParameterError, "shape", lambda: make(f=features[:2])),
        (ParameterError, "declared by bounds", lambda: make(f=features * 3)),
        (ParameterError, "epsilon", lambda: make(e=1.0)),
        (ParameterError, "bounds", lambda: make(b=((0.0, 1.0), (0.5, 1.0)))),
        (ParameterError, "method = 'fast'", lambda: make(m="fast")),
        (ParameterError, "matroid", lambda: InnerProductBase("uniform", features, bounds, 0.9)),
        (
            ParameterError,
            "max_instances",
            lambda: InnerProductBase(Uniform(3, 1), features, bounds, 0.9, max_instances=0),
        ),
    ]
    for error, message, call in bad:
        with pytest.raises(error, match=message):
            call()
    assert np.array_equal(s.features, features)
    assert [s.find_base((1.0, x)).tolist() for x in (0.0, 0.9, 5.0)] == before
    s._check()


def test_of_an_arm_named_twice_the_last_feature_stays():
    for method in METHODS:
        s = InnerProductBase(Uniform(3, 1), np.full((3, 2), 0.6), ((0.5, 1.0), (0.5, 1.0)), 0.9, method)
        s.update_features([1, 2, 1], [[1.0, 1.0], [0.9, 0.9], [0.5, 0.5]])
        assert s.features.tolist() == [[0.6, 0.6], [0.5, 0.5], [0.9, 0.9]]
        assert s.find_base((1.0, 1.0)).tolist() == [2]
        s.update_features([], [])
        s._check()
