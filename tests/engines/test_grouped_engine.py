"""The grouped engine: queries of either sign in any order, and weights that tie only because floats are rounded."""

from __future__ import annotations

import numpy as np
import pytest

import semibandit as sb
from semibandit.engines.grouped.engine import GroupedEngine
from semibandit.engines.grouped.state import LIVE
from semibandit.testing import check_engine


def best(matroid, engine, lam, without=()):
    """All weights sorted, ties by smaller id."""
    weights = engine.records["alpha"] + lam * engine.records["beta"]
    gone = set(engine.deleted.tolist()) | set(without)
    order = [k for k in sorted(range(matroid.n_arms), key=lambda k: (-weights[k], k)) if k not in gone]
    return np.sort(matroid._greedy(np.array(order, dtype=np.int64)))


def some_matroid(rng, n):
    if rng.random() < 0.5:
        return sb.Uniform(n, int(rng.integers(1, n + 1)))
    groups = rng.integers(0, 3, n)
    capacities = rng.integers(0, 5, 3)
    capacities[groups[0]] += 1
    return sb.Partition(groups, capacities)


@pytest.mark.bounds
@pytest.mark.parametrize("seed", range(8))
def test_against_sorting(seed):
    rng = np.random.default_rng(seed)
    check_engine(
        GroupedEngine, some_matroid(rng, int(rng.integers(1, 16))), seed=seed, values=(np.nan, 0.0, 1.0)
    )


@pytest.mark.bounds
@pytest.mark.parametrize("seed", range(12))
def test_weights_that_rounding_makes_equal(seed):
    """Alphas a few units in the last place apart: at most queries their weights are equal, and ids decide."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 25))
    matroid = some_matroid(rng, n)
    engine = GroupedEngine(matroid)
    engine.set_weights(np.arange(n), 0.0)
    unsure = 0
    for _ in range(150):
        arms = np.unique(rng.integers(0, n, 4))
        near = rng.choice([0.1, 0.5, 0.9]) + rng.integers(-3, 4, len(arms)) * 2.0**-55
        engine.set_weights(arms, near, rng.choice([0.0, 0.5, 1.0, -1.0], len(arms)))
        lam = float(rng.choice([0.0, 1e-9, 0.3, 7.0, -7.0, 1e3, -0.4]))
        answer = engine._select(lam)
        assert np.array_equal(answer, best(matroid, engine, lam))
        weights = engine.records["alpha"] + lam * engine.records["beta"]
        edge = weights[answer].min(initial=np.inf)
        unsure += len(np.unique(engine.records["alpha"][weights == edge])) > 1
        out = rng.choice(n, size=int(rng.integers(0, n)), replace=False)
        engine._lam = lam
        assert np.array_equal(engine.base_excluding(out), best(matroid, engine, lam, out.tolist()))
        engine._check()
    assert unsure > 0


def test_groups_open_and_close():
    engine = GroupedEngine(sb.Uniform(6, 2))
    assert engine.groups == 1
    engine.set_weights([0, 1, 2], 0.5, [1.0, 0.5, 0.5])
    assert engine.groups == 3
    engine.delete([0, 3, 4, 5])
    assert engine.groups == 1 and engine.base().tolist() == [1, 2]
    engine.delete([1, 2])
    assert engine.groups == 0 and engine.base().tolist() == []
    engine.insert([4, 0])
    assert engine.groups == 2 and engine.base().tolist() == [0, 4]
    engine._check()


@pytest.mark.bounds
def test_many_arms_in_few_groups_and_few_in_many():
    rng = np.random.default_rng(0)
    n = 3000
    matroid = sb.Partition(np.arange(n) % 5, [3, 0, 10, 1, 40])
    engine = GroupedEngine(matroid)
    for part in range(40):
        arms = rng.choice(n, size=200, replace=False)
        counts = rng.integers(1, 4 if part % 2 else 3000, 200)
        engine.set_weights(arms, rng.integers(0, 9, 200) / 8.0, 1.0 / np.sqrt(counts))
        for lam in (-1.3, 0.0, 0.7):
            assert np.array_equal(engine._select(lam), best(matroid, engine, lam))
    engine._check()
    engine.touch_all()
    engine._check()
    assert engine.groups == engine._state.meta[LIVE] > 1000
    assert np.array_equal(engine._select(0.4), best(matroid, engine, 0.4))
