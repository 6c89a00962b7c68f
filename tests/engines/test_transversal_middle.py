"""Transversal engines between exploring and settled: near-ties, several exchanges a round, arms that come and go."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oracles.dynamic import transversal_base
from semibandit.engines.transversal.engine import TransversalAdaptiveEngine, TransversalChallengerEngine
from semibandit.engines.transversal.greedy_state import N_NEW
from semibandit.matroids import Transversal
from support.seeds import seeds


def greedy_only(matroid: Transversal) -> TransversalAdaptiveEngine:
    """An adaptive engine that stays with greedy, for changing solvers never pays."""
    engine = TransversalAdaptiveEngine(matroid)
    costs = engine._state.costs._replace(there_and_back=np.inf)
    engine._run_on(engine._state._replace(costs=costs))
    return engine


def random_instance(rng: np.random.Generator) -> tuple[list[list[int]], int]:
    """Loops, repeated neighbours, popular and lonely right nodes; one, two or more words of them."""
    n_right = int(rng.choice([1, 7, 40, 64, 65, 128, 129, 150]))
    n_arms = int(rng.integers(1 + n_right // 2, 4 * n_right + 4))
    popular = rng.random(n_right) ** 2 + 1e-3
    popular /= popular.sum()
    near = [rng.choice(n_right, size=rng.integers(0, 5), p=popular).tolist() for _ in range(n_arms)]
    near[0] = [0]
    return near, n_right


class Middle:
    """Engines and the oracle in the same rounds: late feedback, arms that go and come back, a clock that steps."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.near, n_right = random_instance(rng)
        matroid = Transversal(self.near, n_right)
        self.greedy = greedy_only(matroid)
        self.engines = [self.greedy, TransversalAdaptiveEngine(matroid), TransversalChallengerEngine(matroid)]
        k = matroid.n_arms
        self.means = 0.5 + rng.choice([0.0, 0.005, 0.05]) * rng.normal(size=k)
        self.digits = int(rng.choice([1, 3, 9]))  # few digits: many equal weights
        self.count = rng.integers(1, 60, size=k).astype(np.float64)
        self.alpha, self.beta = np.zeros(k), np.zeros(k)
        self.gone = np.empty(0, dtype=np.int64)
        self.late: list[Any] = []
        self.lam = 0.0
        self.most_new = 0
        self.weigh(np.arange(k))

    def weigh(self, arms: Any) -> None:
        arms = np.setdiff1d(arms, self.gone)
        self.count[arms] += 1.0
        noise = 0.1 * self.rng.normal(size=len(arms)) / np.sqrt(self.count[arms])
        self.beta[arms] = np.round(1.0 / np.sqrt(self.count[arms]), self.digits)
        self.alpha[arms] = np.round(self.means[arms] + noise, self.digits)
        for engine in self.engines:
            engine.set_weights(arms, self.alpha[arms], self.beta[arms])

    def answer(self) -> Any:
        weights = self.alpha + self.lam * self.beta
        present = [[] if k in self.gone else near for k, near in enumerate(self.near)]
        base = np.sort(transversal_base(present, weights.tolist())).astype(np.int64)
        for engine in self.engines:
            assert np.array_equal(engine.base(), base), (engine.name, engine is self.greedy)
            engine._check()
        self.most_new = max(self.most_new, int(self.greedy._greedy.size[N_NEW]))
        return base

    def step(self, t: int) -> None:
        base = self.answer()
        if t % 5 == 3:
            self.late.append(base[::3])
            base = np.setdiff1d(base, base[::3])
        if t % 7 == 6 and self.late:
            base = np.union1d(base, self.late.pop(0))
        self.weigh(base)
        if t % 11 == 5:
            self.gone = self.rng.permutation(len(self.near))[: self.rng.integers(0, len(self.near) // 2 + 1)]
            self.all("delete", self.gone)
        if t % 11 == 8:
            gone, self.gone = self.gone, self.gone[:0]
            self.all("insert", gone)
        if t % 13 == 12:
            self.lam += 0.1
            self.all("advance", self.lam)
        if t % 9 == 4:
            # Outsiders that change again and again leave loose entries behind.
            for _ in range(3):
                self.weigh(self.rng.integers(0, len(self.near), 5))

    def all(self, method: str, argument: Any) -> None:
        for engine in self.engines:
            getattr(engine, method)(argument)
            engine._check()

    def run(self, rounds: int) -> None:
        for t in range(rounds):
            self.step(t)
        assert self.greedy.solver == "greedy"


@pytest.mark.bounds
@pytest.mark.parametrize("part", seeds(1, 3))
def test_lockstep_in_the_middle(part: int) -> None:
    plays = [Middle(seed) for seed in range(5 * part, 5 * part + 5)]
    for play in plays:
        play.run(14)
    assert max(play.most_new for play in plays) >= 5


@pytest.mark.slow
def test_lockstep_in_the_middle_of_many() -> None:
    for seed in range(1000, 1300):
        Middle(seed).run(24)


def test_arms_heavier_than_every_outsider_are_not_looked_at() -> None:
    """Only the arm that fell is exchanged, and the matching of the others stays."""
    engine = greedy_only(Transversal([[r] for r in range(30)] * 2))
    engine.set_weights(np.arange(60), np.repeat([0.9, 0.3], 30))
    assert engine.base().tolist() == list(range(30))
    engine.set_weight(4, 0.2)
    assert engine.base().tolist() == [*range(4), *range(5, 30), 34]
    assert engine._greedy.size[N_NEW] == 1
    engine._check()


def test_a_base_that_cannot_be_full_is_not_searched_for_again() -> None:
    """Once all outsiders were refused, the largest size is known until arms come back."""
    engine = greedy_only(Transversal([[0], [0], [0], [1]]))
    engine.delete([3])
    assert engine.base().tolist() == [0]
    assert engine._greedy.size[1] == 1
    engine.insert([3])
    assert engine.base().tolist() == [0, 3]
    engine._check()


@pytest.mark.bounds
@pytest.mark.parametrize("n_right", [2, 130])
def test_more_loose_entries_than_gaps_are_noted(n_right: int) -> None:
    """Outsiders that fell are met behind one that enters: what was passed is put through while greedy walks."""
    fell = 3 * n_right
    near = [[r] for r in range(n_right)] + [[0]] + [[1]] * (fell + 2)
    engine = greedy_only(Transversal(near, n_right))
    weights = np.concatenate((np.full(n_right, 20.0), [10.0], np.linspace(9.0, 5.0, fell), [4.0, 3.0]))
    engine.set_weights(np.arange(len(near)), weights)
    assert engine.base().tolist() == list(range(n_right))
    arms = np.arange(n_right + 1, n_right + 1 + fell)
    weights[arms] = np.linspace(2.0, 1.0, fell)
    for arm in arms.tolist():
        engine.set_weight(arm, weights[arm])
    assert not engine._greedy.stale[0] and engine._greedy.order.loose.sum() == fell
    weights[[0, 1]] = 6.5, 0.5
    engine.set_weights([0, 1], weights[[0, 1]])
    assert engine.base().tolist() == np.sort(transversal_base(near, weights.tolist())).tolist()
    assert engine._greedy.order.loose.sum() == 0
    engine._check()
    weights[n_right] = 0.1
    engine.set_weight(n_right, 0.1)
    assert engine.base().tolist() == np.sort(transversal_base(near, weights.tolist())).tolist()
    engine._check()
