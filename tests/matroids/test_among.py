"""The heaviest base of some arms: against all sets by definition, for every class and both ways to count."""

from __future__ import annotations

import numpy as np
import pytest

import oracles.matroids as naive
import semibandit as sb
from semibandit.matroids import graphic, laminar, partition, transversal
from support.random_matroids import RANDOM


def best_by_definition(independent, arms, weights):
    """Of the largest independent sets the one whose places in the order (heavier, then smaller id) come first."""
    order = sorted(range(len(arms)), key=lambda i: (-weights[i], arms[i]))
    place = {arms[i]: p for p, i in enumerate(order)}
    sets = [part for part in naive.subsets(arms) if independent(part)]
    most = max(map(len, sets))
    return sorted(min((s for s in sets if len(s) == most), key=lambda s: sorted(place[k] for k in s)))


@pytest.mark.parametrize("numbered_anew", [True, False])
@pytest.mark.parametrize("kind", list(RANDOM))
def test_best_of_some_arms(kind, numbered_anew, monkeypatch):
    if numbered_anew:
        for module in (graphic, laminar, partition, transversal):
            monkeypatch.setattr(module, "MANY", 0)
    rng = np.random.default_rng(5)
    for _ in range(12):
        matroid, independent = RANDOM[kind](rng, int(rng.integers(3, 12)))
        for _ in range(4):
            n = int(rng.integers(0, min(matroid.n_arms, 7) + 1))
            arms = rng.permutation(matroid.n_arms)[:n]
            weights = rng.integers(-2, 3, n).astype(float)
            found = matroid.max_weight_base(weights, among=arms)
            assert found.dtype == np.int64
            assert found.tolist() == best_by_definition(independent, arms.tolist(), weights.tolist())


def test_all_arms_are_some_arms():
    matroid, weights = sb.Graphic([(0, 1), (1, 2), (2, 0), (2, 3)]), np.array([0.5, 0.1, 0.5, 0.2])
    assert matroid.max_weight_base(weights[::-1], among=[3, 2, 1, 0]).tolist() == [0, 2, 3]
    assert matroid.max_weight_base(weights).tolist() == [0, 2, 3]


def test_few_arms_of_a_large_matroid():
    """The counters of what the arms do not touch are left alone."""
    edges = np.stack([np.arange(40_000), np.arange(40_000) + 1], axis=1)
    edges[7] = (100, 102)
    large = sb.Graphic(edges)
    assert large.max_weight_base([3.0, 2.0, 1.0], among=[101, 100, 7]).tolist() == [100, 101]
    assert sb.Partition(np.arange(40_000) // 2, 1).max_weight_base([1, 2, 3], among=[8, 9, 3]).tolist() == [
        3,
        9,
    ]


def test_a_class_of_ones_own_is_asked_by_its_own_test():
    class Short(sb.Graphic):
        def _is_independent(self, arms):
            return len(arms) <= 1 and super()._is_independent(arms)

    edges = np.stack([np.arange(400), np.arange(400) + 1], axis=1)
    assert Short(edges).max_weight_base([1.0, 2.0, 3.0], among=[5, 9, 2]).tolist() == [2]


def test_what_is_refused():
    matroid = sb.Uniform(5, 2)
    for among, error in (
        ([1, 1], sb.ArmError),
        ([5], sb.ArmError),
        ([-1], sb.ArmError),
        ([0.5], sb.ArmError),
    ):
        with pytest.raises(error, match="among"):
            matroid.max_weight_base([1.0] * len(among), among=among)
    with pytest.raises(sb.ParameterError, match="weights"):
        matroid.max_weight_base([1.0, 2.0, 3.0, 4.0, 5.0], among=[0, 1])
    with pytest.raises(sb.ParameterError, match="NaN"):
        matroid.max_weight_base([1.0, np.nan], among=[0, 1])
