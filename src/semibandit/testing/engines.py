"""`check_engine`: an engine against sorting all weights and running greedy, operation by operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from semibandit.arms import IntArray, new_records
from semibandit.engines.base import Engine
from semibandit.errors import ArmError, ClockError
from semibandit.matroids import Matroid


class _Model:
    """What the engine should hold, kept the slow and obvious way."""

    def __init__(self, matroid: Matroid) -> None:
        self.matroid = matroid
        self.count = np.zeros(matroid.n_arms)
        self.total = np.zeros(matroid.n_arms)
        self.alpha = np.full(matroid.n_arms, np.inf)
        self.beta = np.zeros(matroid.n_arms)
        self.gone: set[int] = set()
        self.lam = 0.0

    def reward(self, arm: int, value: float) -> None:
        self.count[arm] += 1
        self.total[arm] += value
        self.alpha[arm] = self.total[arm] / self.count[arm]
        self.beta[arm] = 1.0 / np.sqrt(self.count[arm])

    def base(self, without: tuple[int, ...] = ()) -> IntArray:
        weights = self.alpha + self.lam * self.beta
        absent = self.gone | set(without)
        order = [k for k in sorted(range(len(weights)), key=lambda k: (-weights[k], k)) if k not in absent]
        return np.sort(self.matroid._greedy(np.array(order, dtype=np.int64)))


def check_engine(
    make: Callable[[Matroid, Any], Engine],
    matroid: Matroid,
    *,
    operations: int = 120,
    seed: int = 0,
    moving_clock: bool = True,
    values: tuple[float, ...] = (0.0, 1.0),
) -> None:
    """Drive an engine with random operations and assert that it always gives the unique maximum-weight base.

    Rewards come from `values` (few values make many ties), a value of NaN stands for a uniform number. Operations:
    feedback for the base, late and repeated feedback for any arms, weights set up and down, deletions, insertions,
    exclusions, the clock standing still or moving on (`moving_clock`: at every round, else rarely). `_check` runs after
    each. Raises AssertionError on the first difference. O(operations * K log K) and more: for small matroids.
    """
    rng = np.random.default_rng(seed)
    engine = make(matroid, new_records(matroid.n_arms))
    model = _Model(matroid)
    n = matroid.n_arms
    chance = np.array([0.45, 0.15, 0.08, 0.08, 0.08, 0.08, 0.08])
    for step in range(operations):
        if rng.random() < (0.7 if moving_clock else 0.05):
            model.lam += float(rng.choice([0.0, 1e-9, 0.01, 0.3]))
            engine.advance(model.lam)
        base = engine.base()
        expected = model.base()
        assert base.dtype == np.int64, "base() must be an int64 array"
        assert np.array_equal(base, expected), (
            f"step {step}: base {base.tolist()}, should be {expected.tolist()}"
        )
        what = int(rng.choice(7, p=chance))
        if what == 0:
            _feed(engine, model, base, rng, values)
        elif what == 1:
            _feed(engine, model, rng.integers(0, n, size=int(rng.integers(1, n + 3))), rng, values)
        elif what == 2:
            arms = np.unique(rng.integers(0, n, size=3))
            alpha = rng.choice([0.0, 0.25, 0.5, 1.0, rng.random()], size=len(arms))
            beta = rng.choice([0.0, 0.5, 1.0], size=len(arms))
            engine.set_weights(arms, alpha, beta)
            model.alpha[arms], model.beta[arms] = alpha, beta
            # The records' counts and sums no longer match these weights; the next reward starts from them all the same.
        elif what == 3:
            alive = [k for k in range(n) if k not in model.gone]
            if len(alive) > 1:
                arms = rng.choice(alive, size=int(rng.integers(1, min(4, len(alive)))), replace=False)
                engine.delete(arms)
                model.gone |= set(arms.tolist())
        elif what == 4:
            if model.gone:
                arms = rng.permutation(sorted(model.gone))[: int(rng.integers(1, 4))]
                engine.insert(arms)
                model.gone -= set(arms.tolist())
        elif what == 5:
            arms = rng.choice(n, size=int(rng.integers(1, min(n, 4) + 1)), replace=False)
            answer = engine.base_excluding(arms)
            expected = model.base(tuple(arms.tolist()))
            assert np.array_equal(answer, expected), f"step {step}: base_excluding({arms.tolist()})"
        else:
            _check_refusals(engine, n)
        engine._check()
        assert np.array_equal(engine.deleted, np.array(sorted(model.gone), dtype=np.int64))
    assert engine.memory() >= engine.records.nbytes


def _feed(
    engine: Engine, model: _Model, arms: IntArray, rng: np.random.Generator, values: tuple[float, ...]
) -> None:
    rewards = rng.choice(values, size=len(arms))
    rewards = np.where(np.isnan(rewards), rng.random(len(arms)), rewards)
    assert engine.observe(np.ascontiguousarray(arms, dtype=np.int64), rewards, 0.0, 1.0) == 0
    for arm, reward in zip(arms.tolist(), rewards.tolist()):
        model.reward(arm, reward)


def _check_refusals(engine: Engine, n: int) -> None:
    """Bad calls raise and change nothing."""
    before = engine.records.copy()
    for bad in (np.array([-1]), np.array([n]), np.array([0.5])):
        try:
            engine.set_weights(bad, 0.5)
        except ArmError:
            continue
        raise AssertionError(f"set_weights accepted arm {bad[0]}")
    assert engine.observe(np.array([0, n]), np.array([0.5, 0.5]), 0.0, 1.0) == 1 + 4
    assert engine.observe(np.array([0, 0]), np.array([0.5, np.nan]), 0.0, 1.0) == 2 + 4
    assert engine.observe(np.array([0]), np.array([1.5]), 0.0, 1.0) == 2
    if engine.monotone_clock and engine.lam > 0.0:
        try:
            engine.advance(engine.lam / 2)
        except ClockError:
            pass
        else:
            raise AssertionError("a clock that goes down was accepted")
    assert np.array_equal(before, engine.records), "a refused call changed a record"
