"""Hitting set: number of cells, Lemmas unique-base and covering, Corollary covering-new."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semibandit.errors import ParameterError
from semibandit.paper import HittingSet, Rounding, count_cells, count_slopes, generate_hitting_set

Point = tuple[Fraction, Fraction]


def exact_points(growth: Fraction, n_alpha: int, n_beta: int, copies: bool) -> list[Point]:
    """Dominating points over alpha_lb = beta_lb = 1 in exact arithmetic, and copies divided by growth."""
    first = [Fraction(0), *(growth**q for q in range(1, n_alpha + 1))]
    second = [Fraction(0), *(growth**r for r in range(1, n_beta + 1))]
    points = set(itertools.product(first, second))
    if copies:
        points |= {(x / growth, y / growth) for x, y in points}
    return sorted(points)


def exact_slopes(points: list[Point]) -> list[Fraction]:
    """Every positive slope at which two points tie: the definition, by brute force."""
    found = set()
    for (x, y), (u, v) in itertools.combinations(points, 2):
        if (x - u) * (v - y) > 0:
            found.add((x - u) / (v - y))
    return sorted(found)


def quarter_rounding(n_alpha: int, n_beta: int, scale: float = 1.0) -> Rounding:
    """growth = 5/4 and bounds that are powers of two: all dominating points are exact floats."""
    r = Rounding(((scale, scale * 1.25**n_alpha), (1.0, 1.25**n_beta)), epsilon=0.75)
    assert (r.n_alpha, r.n_beta, r.growth) == (n_alpha, n_beta, 1.25)
    return r


@pytest.mark.parametrize("copies", [True, False])
def test_slopes_are_those_of_all_pairs_and_the_count_is_exact(copies: bool) -> None:
    for n_alpha, n_beta in itertools.product(range(1, 6), range(1, 6)):
        expected = exact_slopes(exact_points(Fraction(5, 4), n_alpha, n_beta, copies))
        h = HittingSet(quarter_rounding(n_alpha, n_beta, scale=8.0), copies=copies)
        assert len(expected) == count_slopes(n_alpha, n_beta, copies=copies) == len(h.breakpoints)
        assert h.n_cells == len(h.slopes) == len(h.directions) == len(expected) + 1
        np.testing.assert_allclose(h.breakpoints / 8.0, [float(x) for x in expected], rtol=4e-15, atol=0)


@pytest.mark.parametrize("epsilon", [0.999, 0.5, 0.3, 0.01])
def test_different_keys_are_different_slopes_for_float_growth(epsilon: float) -> None:
    """The theorem behind merging without a tolerance, for growths that are ugly dyadic rationals."""
    growth = 1.0 + epsilon / 3.0
    slopes = exact_slopes(exact_points(Fraction(growth), 6, 6, copies=True))
    assert len(slopes) == count_slopes(6) == 6**3 + 3 * 6 + 1
    h = HittingSet(Rounding(((0.1, 0.1 * growth**6), (0.3, 0.3 * growth**6)), epsilon))
    np.testing.assert_allclose(h.breakpoints, [float(x) / 3 for x in slopes], rtol=1e-14, atol=0)


def test_closed_form_and_growth_of_the_number_of_cells() -> None:
    for w in range(1, 200):
        assert count_cells(w) == w**3 + 3 * w + 2 <= 16 * w**4
    assert count_cells(24) == 13_898
    for w in (8, 24):
        growth = 1.1
        h = HittingSet(Rounding(((1.0, growth**w), (1.0, growth**w)), epsilon=0.3))
        assert w == h.rounding.W and len(h.breakpoints) + 1 == h.n_cells == count_cells(w)
    r = Rounding(((0.1, 1.0), (1e-3, 1.0)), epsilon=1 / math.log(1e6))
    assert HittingSet(r).n_cells == count_cells(97, 290) == 5_462_170
    assert HittingSet(r, square=True).n_cells == count_cells(290) == 24_389_872


def check_covering(points: list[Point], h: tuple[Fraction, Fraction], q: tuple[Fraction, Fraction]) -> bool:
    """Lemma covering for one query: strictly heavier under h implies at least as heavy under q."""
    ranked = sorted(points, key=lambda f: f[0] * h[0] + f[1] * h[1])
    under_h = [f[0] * h[0] + f[1] * h[1] for f in ranked]
    under_q = [f[0] * q[0] + f[1] * q[1] for f in ranked]
    # h lies inside its cell: no two different points tie
    assert all(a < b for a, b in itertools.pairwise(under_h))
    return all(a <= b for a, b in itertools.pairwise(under_q))


def exact_queries(points: list[Point], seed: int) -> list[tuple[float, float]]:
    """Axes, origin, random queries, and queries exactly on every critical line (all of them exact floats)."""
    rng = np.random.default_rng(seed)
    queries = [(1.0, 0.0), (0.0, 1.0), (0.0, 0.0), (3.5, 0.0), (0.0, 1e-300), (1e300, 1e-300)]
    queries += [(float(a), float(b)) for a, b in rng.exponential(size=(100, 2))]
    queries += [(1.0, float(x)) for x in np.exp(rng.normal(0.0, 2.0, size=100))]
    for (x, y), (u, v) in itertools.combinations(points, 2):
        if (x - u) * (v - y) > 0:
            q = (float(abs(v - y)), float(abs(x - u)))
            assert Fraction(q[0]) == abs(v - y) and Fraction(q[1]) == abs(x - u)
            queries.append(q)
    return list(dict.fromkeys(queries))


@pytest.mark.parametrize(("n_alpha", "n_beta"), [(1, 1), (2, 2), (3, 3), (2, 4), (4, 1)])
def test_lemma_covering_and_corollary_covering_new(n_alpha: int, n_beta: int) -> None:
    growth = Fraction(5, 4)
    with_copies = exact_points(growth, n_alpha, n_beta, copies=True)
    h = HittingSet(quarter_rounding(n_alpha, n_beta))
    cells = set()
    for query in exact_queries(with_copies, seed=n_alpha):
        q = (Fraction(query[0]), Fraction(query[1]))
        cell = h.locate(query)
        cells.add(cell)
        direction = (Fraction(1), Fraction(float(h.slopes[cell])))
        # the set holds dom and dom / (1 + eta), so the order on it is both lines of the corollary
        assert check_covering(with_copies, direction, q), query
    assert cells == set(range(h.n_cells))  # boundary queries reach every cell


def test_corollary_needs_the_copies() -> None:
    """Without the copies a cell may straddle <dom, q> = <dom', q> / (1 + eta): the test above has teeth."""
    growth = Fraction(5, 4)
    h = HittingSet(quarter_rounding(3, 3), copies=False)
    plain = exact_points(growth, 3, 3, copies=False)
    with_copies = exact_points(growth, 3, 3, copies=True)
    straddled = 0
    for query in exact_queries(plain, seed=5):
        q = (Fraction(query[0]), Fraction(query[1]))
        direction = (Fraction(1), Fraction(float(h.slopes[h.locate(query)])))
        assert check_covering(plain, direction, q)
        straddled += not check_covering(with_copies, direction, q)
    assert straddled > 0


def test_points_are_the_dominating_points_and_their_copies() -> None:
    for copies in (True, False):
        h = HittingSet(quarter_rounding(2, 3), copies=copies)
        expected = exact_points(Fraction(5, 4), 2, 3, copies)
        assert [(Fraction(x), Fraction(y)) for x, y in h.points().tolist()] == expected


def test_the_literal_algorithm_finds_the_same_cells() -> None:
    for n_alpha, n_beta in [(1, 1), (2, 3), (4, 4)]:
        h = HittingSet(quarter_rounding(n_alpha, n_beta))
        literal = generate_hitting_set(h.points())
        inside = literal.angles[(literal.angles > 1e-9) & (literal.angles < math.pi / 2 - 1e-9)]
        np.testing.assert_allclose(np.tan(inside), h.breakpoints, rtol=1e-9)
        x, y = literal.directions.T
        quadrant = literal.directions[(x > 0) & (y > 0)]
        assert [h.locate(d) for d in quadrant] == list(range(h.n_cells))


def all_bases(edges: list[tuple[int, int]], vertices: int) -> list[tuple[int, ...]]:
    bases = []
    for choice in itertools.combinations(range(len(edges)), vertices - 1):
        part = list(range(vertices))
        for e in choice:
            u, v = part[edges[e][0]], part[edges[e][1]]
            part = [u if p == v else p for p in part]
        if len(set(part)) == 1:
            bases.append(choice)
    return bases


def greedy(order: list[int], bases: list[tuple[int, ...]]) -> tuple[int, ...]:
    """Algorithm greedy on a list of bases: independence is being part of a base."""
    picked: list[int] = []
    for k in order:
        if any(set(picked) | {k} <= set(base) for base in bases):
            picked.append(k)
    return tuple(sorted(picked))


@pytest.mark.parametrize(
    "bases",
    [
        list(itertools.combinations(range(6), 3)),
        all_bases(list(itertools.combinations(range(4), 2)), 4),
        all_bases([(0, 1), (0, 1), (1, 2), (2, 0), (2, 3), (2, 3)], 4),
    ],
)
def test_lemma_unique_base(bases: list[tuple[int, ...]]) -> None:
    """The greedy base under the cell's direction is a maximum-weight base under the query, ties or not."""
    rng = np.random.default_rng(3)
    growth = Fraction(5, 4)
    points = exact_points(growth, 3, 3, copies=False)
    boundary = exact_queries(points, seed=9)
    h = HittingSet(quarter_rounding(3, 3))
    for trial in range(150):
        dom = [points[i] for i in rng.integers(len(points), size=6)]  # repeats: arms of one bin tie always
        query = boundary[int(rng.integers(len(boundary)))] if trial % 3 else (1.0, float(rng.exponential()))
        slope = Fraction(float(h.slopes[h.locate(query)]))
        under_h = [x + slope * y for x, y in dom]
        under_q = [x * Fraction(query[0]) + y * Fraction(query[1]) for x, y in dom]
        base = greedy(sorted(range(6), key=lambda k: (-under_h[k], k)), bases)
        best = max(sum(under_q[k] for k in x) for x in bases)
        assert sum(under_q[k] for k in base) == best


def test_locating_without_enumeration_gives_the_same_floats() -> None:
    rng = np.random.default_rng(11)
    for epsilon, copies, square in [(0.75, True, False), (0.4, False, True), (0.9, True, True)]:
        r = Rounding(((0.1, 1.0), (0.02, 1.0)), epsilon)
        h = HittingSet(r, copies=copies, square=square)
        b = h.breakpoints
        assert (np.diff(b) > 0).all() and not b.flags.writeable and not h.slopes.flags.writeable
        assert len(b) + 1 == h.n_cells
        ends = np.concatenate([[0.0], b, [np.inf]])
        assert (h.slopes > ends[:-1]).all() and (h.slopes < ends[1:]).all()
        lams = np.concatenate(
            [
                np.exp(rng.uniform(np.log(b[0]) - 1, np.log(b[-1]) + 1, 300)),
                rng.choice(b, 100),
                np.nextafter(rng.choice(b, 100), 0.0),
                np.nextafter(rng.choice(b, 100), np.inf),
                [0.0, b[0], b[-1], 1e-300, 1e300],
            ]
        )
        for lam in lams.tolist():
            cell = h.locate((1.0, lam))
            assert ends[cell] <= lam < ends[cell + 1]
            assert h.cell_slopes((1.0, lam)) == (ends[cell], h.slopes[cell], ends[cell + 1])
        assert h.cell_slopes((0.0, 2.0)) == (b[-1], h.slopes[-1], np.inf)
        assert h.locate((0.0, 2.0)) == len(b)
        assert h.locate((0.0, 0.0)) == h.locate((5.0, 0.0)) == 0
        low, high = float(b[len(b) // 4]), float(b[len(b) // 2])
        assert h.breakpoints_between(low, high).tolist() == b[(b > low) & (b <= high)].tolist()
        assert h.breakpoints_between(0.0, math.inf).tolist() == b.tolist()


@pytest.mark.slow
def test_locating_works_where_cells_cannot_be_enumerated() -> None:
    r = Rounding(((0.1, 1.0), (1e-3, 1.0)), epsilon=1 / math.log(1e6) ** 2)
    h = HittingSet(r)
    assert h.n_cells > 10**10
    with pytest.raises(ParameterError, match=r"13,\d{3},\d{3},\d{3} cells"):
        h.locate((1.0, 2.0))
    low, slope, high = h.cell_slopes((1.0, 2.0))
    assert low <= 2.0 < high and low < slope < high
    # an independent look: the nearest critical slopes by numpy over all (a, b), without limits on c
    log_g = math.log(r.growth)
    place = np.log(np.expm1(np.arange(1, r.n_beta + 1) * log_g)) / log_g
    x = math.log(2.0 * r.bounds[1][0] / r.bounds[0][0]) / log_g - place[: r.n_alpha, None] + place[None, :]
    assert math.log(2.0 / low) / log_g >= (x - np.floor(x)).min() - 1e-9
    with pytest.raises(ParameterError, match="max_cells"):
        h.breakpoints_between(0.1, 10.0)
    near = h.breakpoints_between(low, high)
    assert near.tolist() == [high]


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=1, max_size=6, unique=True),
    st.tuples(st.integers(-6, 6), st.integers(-6, 6)),
)
def test_literal_algorithm_covers_the_whole_plane(points: list[tuple[int, int]], q: tuple[int, int]) -> None:
    """Lemma covering for distinct points and queries of any sign, and one vector for each cell only."""
    arrangement = generate_hitting_set(np.array(points, dtype=float))
    covering = 0
    orders = set()
    for hx, hy in arrangement.directions.tolist():
        weight = [x * hx + y * hy for x, y in points]
        order = sorted(range(len(points)), key=lambda k: -weight[k])
        assert all(weight[a] - weight[b] > 1e-9 for a, b in itertools.pairwise(order))
        orders.add(tuple(order))
        under_q = [points[k][0] * q[0] + points[k][1] * q[1] for k in order]
        covering += all(a >= b for a, b in itertools.pairwise(under_q))
    assert covering >= 1
    # a bijection between cells and representable permutations: no cell is hit twice
    assert len(orders) == len(arrangement.directions)
    lines = {
        Fraction(x - u, v - y) if v != y else None for (x, y), (u, v) in itertools.combinations(points, 2)
    }
    assert len(arrangement.directions) == max(1, 2 * len(lines))


def test_wrong_queries_and_points_are_refused() -> None:
    h = HittingSet(quarter_rounding(1, 1))
    for query in [(1.0,), (1.0, -0.1), (math.nan, 1.0), (1.0, math.inf), ((1.0, 1.0),)]:
        with pytest.raises(ParameterError, match="query"):
            h.locate(query)
        with pytest.raises(ParameterError, match="query"):
            h.cell_slopes(query)
    with pytest.raises(ParameterError, match="distinct"):
        generate_hitting_set([[1.0, 2.0], [1.0, 2.0]])
    with pytest.raises(ParameterError, match="shape"):
        generate_hitting_set([1.0, 2.0])
    with pytest.raises(ParameterError, match="low"):
        h.breakpoints_between(2.0, 1.0)
    with pytest.raises(ParameterError, match="bins"):
        count_cells(0)
    with pytest.raises(ParameterError, match="magnitude"):
        HittingSet(Rounding(((1e-150, 1e150), (1e-150, 1e150)), epsilon=0.9))
