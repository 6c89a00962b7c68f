"""The dynamic vertex-weighted matching, and weights rounded to powers of 1 + eta."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_dynamic_laminar import POOL, drive, random_instance

import oracles.dynamic as naive
from semibandit.errors import ParameterError
from semibandit.matroids import Graphic, Transversal
from semibandit.paper.dynamic import dynamic_base
from semibandit.paper.dynamic.rounded import RoundedBase
from semibandit.paper.dynamic.transversal import DynamicTransversal

INF = math.inf


def random_neighbours(rng: np.random.Generator, n_arms: int, n_right: int) -> list[list[int]]:
    """Arms without neighbours among them, and arms that name one twice; at least one with."""
    lists = [
        rng.integers(0, n_right, int(rng.integers(0, min(n_right, 4) + 1))).tolist() for _ in range(n_arms)
    ]
    lists[0] = lists[0] or [0]
    return lists


@settings(deadline=None, derandomize=True, max_examples=150)
@given(
    st.integers(0, 10**6),
    st.integers(1, 9),
    st.integers(1, 6),
    st.lists(st.tuples(st.integers(0, 8), st.sampled_from(POOL)), max_size=40),
)
def test_any_sequence_of_changes(seed, n_arms, n_right, changes):
    neighbours = random_neighbours(np.random.default_rng(seed), n_arms, n_right)
    weights = [0.0] * n_arms
    best = DynamicTransversal(Transversal(neighbours, n_right), weights)
    for arm, weight in changes:
        weights[arm % n_arms] = weight
        best.set_weight(arm % n_arms, weight)
        best._check()
        assert best.base().tolist() == naive.transversal_base(neighbours, weights)


@pytest.mark.bounds
def test_many_instances():
    rng = np.random.default_rng(1)
    for _ in range(80):
        n_right = int(rng.integers(1, 9))
        neighbours = random_neighbours(rng, int(rng.integers(1, 18)), n_right)
        best = DynamicTransversal(Transversal(neighbours, n_right), rng.choice(POOL, len(neighbours)))
        drive(best, lambda w, lists=neighbours: naive.transversal_base(lists, w), rng, 40, 1)


def long_run(rounds: int) -> None:
    rng = np.random.default_rng(2)
    for n_right in (2, 4, 6, 8, 12):
        neighbours = random_neighbours(rng, 14, n_right)
        best = DynamicTransversal(Transversal(neighbours, n_right), rng.random(14))
        drive(best, lambda w, lists=neighbours: naive.transversal_base(lists, w), rng, rounds // 5, 100)


def test_ten_thousand_changes():
    long_run(10_000)


@pytest.mark.slow
def test_hundred_thousand_changes():
    long_run(100_000)


def test_special_instances():
    rng = np.random.default_rng(3)
    for neighbours in (
        [[0]],
        [[k] for k in range(6)],  # D = K
        [[0, 1, 2]] * 7,  # uniform in disguise
        [[k // 2] for k in range(8)],  # partition in disguise
        [[k, k + 1] for k in range(7)] + [[0], [7], [3]],  # long alternating paths
        [[], [0], [], [0, 5]],  # loops, and right nodes that no arm needs
    ):
        best = DynamicTransversal(Transversal(neighbours, 9), np.zeros(len(neighbours)))
        drive(best, lambda w, lists=neighbours: naive.transversal_base(lists, w), rng, 150, 1)


def test_larger_instance():
    rng = np.random.default_rng(4)
    neighbours = [rng.choice(30, 3, replace=False).tolist() for _ in range(1500)]
    best = DynamicTransversal(Transversal(neighbours, 30), rng.random(1500))
    weights = best.weights().tolist()
    for i in range(600):
        arm = int(rng.integers(1500)) if i % 2 else int(rng.choice(best.base()))
        weights[arm] = float(rng.random()) * (1.0 if i % 3 else 0.5)
        best.set_weight(arm, weights[arm])
        if i % 20 == 0:
            assert best.base().tolist() == naive.transversal_base(neighbours, weights)
    best._check()


def test_the_matching_is_moved_along_a_whole_path():
    # Arm k sits between right nodes k and k + 1; the last arm can only come in if all others shift.
    n = 50
    neighbours = [[k, k + 1] for k in range(n)] + [[n], [0]]
    weights = [1.0] * n + [0.5, 0.4]
    best = DynamicTransversal(Transversal(neighbours, n + 1), weights)
    assert best.base().tolist() == list(range(n + 1))
    for arm, weight in [(n + 1, 2.0), (n, 3.0), (0, 0.1), (n + 1, 0.0), (n // 2, 0.05)]:
        weights[arm] = weight
        best.set_weight(arm, weight)
        best._check()
        assert best.base().tolist() == naive.transversal_base(neighbours, weights)


# -- rounded weights --------------------------------------------------------------------------------------


def rounded_instance(rng: np.random.Generator, kind: int):
    if kind == 0:
        matroid, families = random_instance(rng, 7)
        return matroid, lambda w: naive.laminar_base(families, w)
    if kind == 1:
        edges = [(0, 1), *map(tuple, rng.integers(0, 5, (8, 2)).tolist())]
        return Graphic(edges, 5), lambda w: naive.forest_base(edges, w)
    neighbours = random_neighbours(rng, 8, 4)
    return Transversal(neighbours, 4), lambda w: naive.transversal_base(neighbours, w)


@pytest.mark.parametrize("eta", [1e-6, 0.05, 0.5, 3.0])
def test_rounding_loses_at_most_a_factor(eta):
    rng = np.random.default_rng(5)
    lost = 1.0
    for trial in range(90):
        matroid, oracle = rounded_instance(rng, trial % 3)
        weights = (10.0 ** rng.uniform(-3, 3, matroid.n_arms)).tolist()
        best = dynamic_base(matroid, weights, eta=eta)
        assert isinstance(best, RoundedBase) and best.approximation == 1 + eta
        for _ in range(30):
            arm = int(rng.integers(matroid.n_arms))
            factor = rng.choice([0.0, 1 - eta / 3, 1 + eta / 3, (1 + eta) ** rng.integers(-2, 3)])
            weights[arm] = weights[arm] * factor or float(rng.random())
            best.set_weight(arm, weights[arm])
            optimum = sum(weights[k] for k in oracle(weights))
            got = sum(weights[k] for k in best.base())
            assert got >= optimum / (1 + eta)
            assert matroid.is_independent(best.base()) and len(best.base()) == matroid.rank
            lost = max(lost, optimum / got)
        best._check()
    assert eta < 0.05 or lost > 1.0  # it does round


def test_optimum_by_exhaustion():
    rng = np.random.default_rng(6)
    for _ in range(20):
        matroid, _ = rounded_instance(rng, 2)
        weights = rng.random(matroid.n_arms).tolist()
        optimum = naive.best_weight_by_exhaustion(matroid.is_independent, weights, matroid.rank)
        assert dynamic_base(matroid, weights).base_weight == pytest.approx(optimum, rel=1e-12)
        assert dynamic_base(matroid, weights, eta=0.2).base_weight >= optimum / 1.2


def test_a_change_inside_a_bin_costs_nothing():
    best = dynamic_base(Transversal([[0], [0], [1]]), [1.0, 1.0, 1.0], eta=0.1)
    seen = []
    best.inner._set_weight = lambda *change: seen.append(change)
    best.set_weight(0, 1.01)
    best.set_weight(0, 1.09)
    assert not seen and best.weight(0) == 1.09
    best.set_weight(0, 1.11)
    assert len(seen) == 1


def test_rounding_keeps_the_order_of_bins():
    best = dynamic_base(Transversal([[0], [0], [0], [0], [0]]), [0.0, 5e-324, 1e-3, 1e300, INF], eta=0.01)
    for expected in (4, 3, 2, 1, 0):
        assert best.base().tolist() == [expected]
        best.set_weight(expected, -INF)
    assert best.base().tolist() == []


def test_rounding_refuses_negative_weights():
    best = dynamic_base(Transversal([[0], [0]]), [1.0, 2.0], eta=0.1)
    with pytest.raises(ParameterError):
        best.set_weight(0, -0.5)
    with pytest.raises(ParameterError):
        best.set_weights([1, 0], [3.0, -0.5])
    with pytest.raises(ParameterError):
        dynamic_base(Transversal([[0], [0]]), [1.0, -2.0], eta=0.1)
    assert best.weights().tolist() == [1.0, 2.0] and best.base().tolist() == [1]
