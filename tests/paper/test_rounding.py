"""Feature rounding: bins, dominating points, Eq. (dynamic:approx) and Lemma (dynamic:approx)."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semibandit.errors import ParameterError
from semibandit.paper import Rounding
from semibandit.paper.rounding import bin_index, bin_indices, count_bins

ULPS = 1 + Fraction(8) * Fraction(np.finfo(float).eps)

positive = st.floats(1e-6, 1e6)
epsilons = st.floats(1e-3, 0.999)


@st.composite
def roundings(draw: st.DrawFn) -> Rounding:
    bounds = []
    for _ in range(2):
        lower = draw(positive)
        upper = lower * draw(st.sampled_from([1.0, 1.0 + 1e-12, 1.3, 10.0, 1e4]))
        bounds.append((lower, upper))
    return Rounding((bounds[0], bounds[1]), draw(epsilons))


@st.composite
def values(draw: st.DrawFn, bounds: tuple[float, float], edges: np.ndarray) -> float:
    """A legal coordinate, with a taste for zero, the bounds, the edges and their float neighbours."""
    lower, upper = bounds
    kind = draw(st.sampled_from(["zero", "lower", "upper", "edge", "below", "above", "any"]))
    if kind == "zero":
        return 0.0
    if kind == "lower":
        return lower
    if kind == "upper":
        return upper
    if kind == "any":
        return draw(st.floats(lower, upper))
    x = float(edges[draw(st.integers(1, len(edges) - 1))])
    x = {"edge": x, "below": math.nextafter(x, 0.0), "above": math.nextafter(x, math.inf)}[kind]
    return min(max(x, lower), upper)


@settings(deadline=None, derandomize=True, max_examples=300)
@given(st.data(), roundings())
def test_every_legal_feature_lies_in_its_bin_and_eq_approx_holds(data: st.DataObject, r: Rounding) -> None:
    feature = [data.draw(values(b, e)) for b, e in zip(r.bounds, (r.alpha_edges, r.beta_edges))]
    q = r.bin_of(feature)
    dom = r.dom(feature)
    growth = Fraction(r.growth)  # 1 + eta, rounded once
    for x, q_x, d, edges, (lower, _) in zip(feature, q, dom, (r.alpha_edges, r.beta_edges), r.bounds):
        assert d == edges[q_x]
        if x == 0.0:
            assert q_x == 0 and d == 0.0
        else:
            # exactly, in floats
            assert x <= edges[q_x]
            assert x > edges[q_x - 1] if q_x > 1 else x >= lower
            # the edge is what Eq. (dynamic:dom) says
            exact = Fraction(lower) * growth ** int(q_x)
            assert exact / ULPS <= Fraction(d) <= exact * ULPS
    # Eq. (dynamic:approx), in exact arithmetic, for queries at the corners and inside of the quadrant
    for query in [(1, 0), (0, 1), (0, 0), (1, 1), (Fraction(1, 1000), 7), (5, Fraction(1, 999))]:
        weight = sum(Fraction(f) * c for f, c in zip(feature, query))
        upper = sum(Fraction(float(d)) * c for d, c in zip(dom, query))
        assert weight <= upper <= growth * weight * ULPS


@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.data(), roundings())
def test_bins_are_those_of_a_plain_search(data: st.DataObject, r: Rounding) -> None:
    x = np.array([data.draw(values(r.bounds[0], r.alpha_edges)) for _ in range(5)])
    features = np.column_stack([x, np.zeros(5)])
    edges = r.alpha_edges.tolist()
    expected = [
        0 if v == 0.0 else min([q for q in range(1, len(edges)) if v <= edges[q]], default=len(edges) - 1)
        for v in x.tolist()
    ]
    assert r.bin_of(features)[:, 0].tolist() == expected
    assert r.dom(features)[:, 0].tolist() == [edges[q] for q in expected]
    assert [bin_index(r.alpha_bins, v) for v in x.tolist()] == expected


def test_kernel_is_exact_at_every_edge_of_a_fine_table() -> None:
    r = Rounding(((0.1, 1.0), (1e-3, 1.0)), epsilon=1 / math.log(1e6) ** 2)
    assert r.W == r.n_beta > 3900
    for bins in (r.alpha_bins, r.beta_bins):
        edges = bins.edges
        q = np.arange(1, len(edges))
        out = np.empty(len(q), dtype=np.int64)
        bin_indices(bins, edges[1:], out)
        assert (out == q).all()
        bin_indices(bins, np.nextafter(edges[1:-1], np.inf), out)
        assert (out[:-1] == q[1:]).all()
        assert bin_index(bins, bins.lower) == 1
        assert bin_index(bins, math.inf) == len(edges) - 1


def test_number_of_bins_is_eq_r() -> None:
    for epsilon, ratio in itertools.product([0.01, 0.1, 0.5, 0.9], [1.5, 7.0, 1e3, 1e6]):
        growth = 1 + epsilon / 3
        assert count_bins(0.3, 0.3 * ratio, growth) == math.ceil(math.log(ratio) / math.log(growth))
    r = Rounding(((0.1, 1.0), (1e-3, 1.0)), epsilon=1 / math.log(1e6))
    assert (r.n_alpha, r.n_beta, r.W) == (97, 290, 290)
    for power in range(1, 60):  # an exact power gets no bin of its own
        assert count_bins(0.7, 0.7 * 1.1**power, 1.1) == power
    assert count_bins(2.0, 2.0, 1.1) == 1


def test_the_closed_lower_edge_and_the_upper_bound() -> None:
    r = Rounding(((2.0, 2.0 * 1.25**3), (4.0, 4.0)), epsilon=0.75)
    assert r.bin_of([2.0, 4.0]).tolist() == [1, 1]
    assert r.bin_of([2.5, 4.0]).tolist() == [1, 1]
    assert r.bin_of([math.nextafter(2.5, 3.0), 0.0]).tolist() == [2, 0]
    assert r.bin_of([2.0 * 1.25**3, 4.0]).tolist() == [3, 1]
    assert r.dom([[0.0, 4.0], [2.0, 0.0]]).tolist() == [[0.0, 5.0], [2.5, 0.0]]
    assert r.point(3, 0).tolist() == [2.0 * 1.25**3, 0.0]
    assert r.points().shape == (8, 2)
    assert len(np.unique(r.points(), axis=0)) == 8


def test_the_last_edge_covers_an_upper_bound_a_hair_above_a_power() -> None:
    for power in range(1, 40):
        upper = math.nextafter(0.3 * 1.1**power, 1e9)
        r = Rounding(((0.3, upper), (0.3, 1.0)), epsilon=3 * (1.1 - 1.0))
        assert r.n_alpha == power
        assert r.dom([upper, 0.0])[0] >= upper


def test_a_mean_of_bounds_that_rounds_outside_them_is_clamped() -> None:
    r = Rounding(((0.1, 0.7), (0.1, 1.0)), epsilon=0.5)
    low, high = sum([0.1] * 10) / 10, math.nextafter(0.7, 1.0)
    assert low < 0.1 < 0.7 < high
    assert r.bin_of([low, 0.0]).tolist() == [1, 0]
    assert r.bin_of([high, 0.0]).tolist() == [r.n_alpha, 0]


@pytest.mark.parametrize(
    ("feature", "name"),
    [([0.05, 0.5], "alpha"), ([0.5, 1.1], "beta"), ([math.nan, 0.5], "alpha"), ([0.5, -0.0001], "beta")],
)
def test_features_outside_the_bounds_are_named(feature: list[float], name: str) -> None:
    r = Rounding(((0.1, 1.0), (0.1, 1.0)), epsilon=0.5)
    with pytest.raises(ParameterError, match=rf"{name} of feature 1 .*\[0\.1, 1\.0\]"):
        r.bin_of([[0.5, 0.5], feature])


@pytest.mark.parametrize(
    ("bounds", "epsilon"),
    [
        (((0.0, 1.0), (0.1, 1.0)), 0.5),
        (((0.2, 0.1), (0.1, 1.0)), 0.5),
        (((0.1, math.inf), (0.1, 1.0)), 0.5),
        (((0.1, 1.0), (math.nan, 1.0)), 0.5),
        ((0.1, 1.0), 0.5),
        (((0.1, 1.0), (0.1, 1.0)), 0.0),
        (((0.1, 1.0), (0.1, 1.0)), 1.0),
        (((0.1, 1.0), (0.1, 1.0)), 1e-9),
    ],
)
def test_impossible_settings_are_refused(bounds: object, epsilon: float) -> None:
    with pytest.raises(ParameterError):
        Rounding(bounds, epsilon)  # type: ignore[arg-type]


def spanning_trees(n: int) -> list[tuple[int, ...]]:
    """All spanning trees of the complete graph on n vertices, as tuples of edge numbers."""
    edges = list(itertools.combinations(range(n), 2))
    trees = []
    for choice in itertools.combinations(range(len(edges)), n - 1):
        part = list(range(n))
        for e in choice:
            u, v = part[edges[e][0]], part[edges[e][1]]
            part = [u if p == v else p for p in part]
        if len(set(part)) == 1:
            trees.append(choice)
    return trees


@pytest.mark.parametrize("bases", [list(itertools.combinations(range(6), 2)), spanning_trees(4)])
def test_lemma_approx_for_the_worst_base_that_algorithm_a_may_return(bases: list[tuple[int, ...]]) -> None:
    """Any (1+eta)-approximate base over dominating points is (1+epsilon)-approximate over the features."""
    rng = np.random.default_rng(1)
    tight = 0.0
    for _ in range(300):
        r = Rounding(((0.2, 1.0), (0.1, 2.0)), epsilon=float(rng.uniform(0.05, 0.99)))
        features = np.column_stack([rng.uniform(0.2, 1.0, 6), rng.uniform(0.1, 2.0, 6)])
        # just above an edge the rounding costs most
        near = np.nextafter(r.alpha_edges[rng.integers(1, r.n_alpha, 6)], np.inf)
        features[:, 0] = np.where(rng.random(6) < 0.5, near, features[:, 0])
        features[rng.random((6, 2)) < 0.15] = 0.0
        query = np.where(rng.random(2) < 0.2, 0.0, rng.exponential(size=2))
        dom = r.dom(features)
        assert (features <= dom).all() and (dom <= features * (1 + r.eta) * (1 + 1e-9)).all()  # eq. approx
        true = np.array([sum(features[k] @ query for k in x) for x in bases])
        rounded = np.array([sum(dom[k] @ query for k in x) for x in bases])
        allowed = rounded * (1 + r.eta) >= rounded.max() * (1 - 1e-12)
        worst = true[allowed].min()
        assert worst * (1 + r.epsilon) >= true.max() * (1 - 1e-12)
        if true.max() > 0.0:
            tight = max(tight, (true.max() / worst - 1) / r.epsilon)
    assert tight > 0.5  # the bound is nearly used up, so a coarser rounding would be noticed
