"""Graphic engines between exploring and settled: several exchanges a round, edges that wait long, clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from semibandit.engines import resolve_engine
from semibandit.engines.graphic.engine import (
    GraphicAdaptiveEngine,
    GraphicChallengerEngine,
    GraphicHotColdEngine,
    GraphicOrderedEngine,
)
from semibandit.engines.graphic.state import N_DORMANT, SEARCHES
from semibandit.matroids import Graphic
from support.seeds import seeds

ENGINES = (GraphicChallengerEngine, GraphicHotColdEngine, GraphicOrderedEngine, GraphicAdaptiveEngine)


def random_instance(rng: np.random.Generator) -> tuple[Graphic, Any]:
    """Edges anywhere (parallel ones, loops, several components), with means that nearly tie."""
    n = int(rng.integers(8, 60))
    edges = np.append(rng.integers(0, n, size=(int(rng.integers(n, 5 * n)), 2)), [[0, 1]], axis=0)
    spread = rng.choice([0.0, 0.005, 0.05])
    return Graphic(edges, n), 0.5 + spread * rng.normal(size=len(edges))


def clusters(rng: np.random.Generator) -> tuple[Graphic, Any]:
    """A complete graph of vertices in clusters: all edges inside one are heavier than those between two."""
    n = int(rng.integers(24, 40))
    u, v = np.triu_indices(n, 1)
    home = rng.integers(0, 3, size=n)
    spread = rng.choice([0.0, 0.005, 0.05])
    means = np.where(home[u] == home[v], 0.7, 0.3) + spread * rng.normal(size=len(u))
    return Graphic(np.stack([u, v], axis=1), n), means


class Middle:
    """Engines that go through the same rounds: late feedback, arms that go and come back, a step of the clock."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.matroid, self.means = clusters(rng) if seed % 2 else random_instance(rng)
        self.engines = [resolve_engine(self.matroid), *(make(self.matroid) for make in ENGINES)]
        k = self.matroid.n_arms
        self.count = rng.integers(1, 60, size=k).astype(np.float64)
        self.gone = np.empty(0, dtype=np.int64)
        self.late: list[Any] = []
        self.lam = 0.05
        self.most_loose = self.most_dormant = 0
        self.weigh(np.arange(k))

    def weigh(self, arms: Any) -> None:
        arms = np.setdiff1d(arms, self.gone)
        self.count[arms] += 1.0
        beta = 1.0 / np.sqrt(self.count[arms])
        alpha = self.means[arms] + np.round(0.1 * self.rng.normal(size=len(arms)) * beta, 3)
        for engine in self.engines:
            engine.set_weights(arms, alpha, beta)

    def answer(self) -> Any:
        base = self.engines[0].base()
        for engine in self.engines[1:]:
            forest = engine._forest
            before = forest.counters[SEARCHES]
            assert np.array_equal(engine.base(), base), engine.name
            self.most_loose = max(self.most_loose, int(forest.counters[SEARCHES] - before))
            self.most_dormant = max(self.most_dormant, int(forest.lengths[N_DORMANT]))
            engine._check()
        return base

    def run(self, rounds: int) -> None:
        for t in range(rounds):
            base = self.answer()
            if t % 5 == 3:
                self.late.append(base[::3])
                base = np.concatenate([base[1::3], base[2::3]])
            if t % 7 == 6:
                base = np.union1d(base, self.late.pop(0))
            self.weigh(base)
            if t % 11 == 5:
                self.gone = base[:3]
            for engine in self.engines:
                if t % 11 == 5:
                    engine.delete(self.gone)
                if t % 11 == 8 and len(self.gone):
                    engine.insert(self.gone)
                if t % 13 == 12:
                    engine.advance(self.lam * 1.1)
                if engine is not self.engines[0]:
                    engine._check()
            if t % 11 == 8:
                self.gone = self.gone[:0]
            if t % 13 == 12:
                self.lam *= 1.1


@pytest.mark.bounds
@pytest.mark.parametrize("part", seeds(1, 3))
def test_lockstep_in_the_middle(part: int) -> None:
    plays = [Middle(seed) for seed in range(6 * part, 6 * part + 6)]
    for play in plays:
        play.run(14)
    assert max(play.most_loose for play in plays) >= 5
    assert max(play.most_dormant for play in plays) > 0


@pytest.mark.slow
def test_lockstep_in_the_middle_of_many() -> None:
    for seed in range(1000, 1300):
        Middle(seed).run(40)


def test_the_order_is_left_where_the_base_lies_deep_in_it() -> None:
    """Even weights: one order of all edges. Then a vertex has only light ones, so that Kruskal would see all others."""
    rng = np.random.default_rng(3)
    u, v = np.triu_indices(100, 1)
    matroid = Graphic(np.stack([u, v], axis=1), 100)
    engine, oracle = GraphicAdaptiveEngine(matroid), resolve_engine(matroid)
    seen = []
    for lonely in (False, True, False):
        weights = rng.random(len(u)) - 9.0 * (lonely & (u == 0))
        for either in (engine, oracle):
            either.set_weights(np.arange(len(u)), weights)
        for _ in range(120):
            base = engine.base()
            assert np.array_equal(base, oracle.base())
            weights[base] -= (0.3 + rng.random(len(base))) * ~(lonely & (u[base] == 0))
            for either in (engine, oracle):
                either.set_weights(base, weights[base])
        seen.append(engine.solver)
    engine._check()
    assert seen == ["ordered", "hot-cold", "ordered"]
