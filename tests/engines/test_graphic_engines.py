"""The sublinear graphic engines against re-solving: the same base after every step of random histories."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from semibandit.engines import resolve_engine
from semibandit.engines.graphic.check import check_edges
from semibandit.engines.graphic.edges import COLD, HOT, STATUS, new_edges, reweigh_cold, set_status
from semibandit.engines.graphic.engine import (
    GraphicAdaptiveEngine,
    GraphicChallengerEngine,
    GraphicHotColdEngine,
    GraphicOrderedEngine,
    GraphicPrimEngine,
)
from semibandit.engines.graphic.state import components, parallel_arms
from semibandit.environments import Bernoulli, UniformNoise
from semibandit.errors import ArmError, MatroidError
from semibandit.matroids import Graphic, Uniform
from support.engine_loop import EngineLoop

ENGINES = (
    GraphicChallengerEngine,
    GraphicHotColdEngine,
    GraphicOrderedEngine,
    GraphicPrimEngine,
    GraphicAdaptiveEngine,
)


def random_graph(rng: np.random.Generator, small: bool) -> Graphic:
    """Parallel edges, self-loops, several components, trees (D = K) and single edges all come up."""
    while True:
        kind = rng.integers(6)
        n = int(rng.integers(2, 9) if small else rng.integers(10, 60))
        k = int(rng.integers(1, 25) if small else rng.integers(n, 400))
        edges = rng.integers(0, n, size=(k, 2))
        if kind == 0:
            edges = rng.integers(0, 2, size=(int(rng.integers(1, 40 if small else 600)), 2))
        elif kind == 1:  # hardly an edge between the two halves
            edges[:, 1] = np.where(edges[:, 1] < n // 2, edges[:, 0] % max(n // 2, 1), edges[:, 1])
        elif kind == 2:
            edges = np.stack([rng.integers(0, np.arange(1, n)), np.arange(1, n)], axis=1)
        elif kind == 3:
            edges[:, 1] = np.where(edges[:, 0] == edges[:, 1], (edges[:, 1] + 1) % n, edges[:, 1])
        try:
            return Graphic(edges, max(n, 2) + int(rng.integers(0, 3)))
        except MatroidError:  # nothing but self-loops
            continue


class History:
    """Plays CUCB's part for several engines at once and compares their bases with the first one's."""

    def __init__(self, seed: int, small: bool, makers: tuple[Any, ...], check: bool) -> None:
        self.rng = np.random.default_rng(seed)
        self.matroid = random_graph(self.rng, small)
        self.engines = [resolve_engine(self.matroid), *(make(self.matroid) for make in makers)]
        k = self.matroid.n_arms
        self.means = self.rng.random(k) if self.rng.random() < 0.7 else np.full(k, 0.5)
        self.binary = self.rng.random() < 0.5
        self.odd = self.rng.choice([0.1, 0.4])
        self.check = check
        self.where = f"seed {seed}"
        self.lam = 0.5
        self.gone: set[int] = set()
        self.late: list[Any] = []
        self.base = np.empty(0, dtype=np.int64)

    def each(self, action: Any) -> list[Any]:
        results = [action(engine) for engine in self.engines]
        if self.check and self.rng.random() < 0.6:
            for engine in self.engines[1:]:
                engine._check()
        return results

    def agree(self, results: list[Any]) -> Any:
        for engine, result in zip(self.engines[1:], results[1:], strict=True):
            assert np.array_equal(results[0], result), (self.where, engine.name, results[0], result)
        return results[0]

    def feed(self, arms: Any) -> None:
        arms = np.asarray(arms, dtype=np.int64)
        if self.binary:
            rewards = (self.rng.random(len(arms)) < self.means[arms]).astype(np.float64)
        else:
            rewards = np.clip(self.means[arms] + self.rng.normal(0.0, 0.2, len(arms)), 0.0, 1.0)
        self.agree(self.each(lambda e: e.observe(arms, rewards, 0.0, 1.0)))

    def some(self, most: int) -> Any:
        return self.rng.integers(0, self.matroid.n_arms, size=int(self.rng.integers(0, most)))

    def do_something_odd(self) -> None:
        rng, k = self.rng, self.matroid.n_arms
        what = rng.integers(7)
        here = [a for a in range(k) if a not in self.gone]
        if what == 0 and here:
            ids = rng.choice(here, size=min(len(here), int(rng.integers(1, 5))), replace=False)
            self.each(lambda e: e.delete(ids))
            self.gone |= set(ids.tolist())
        elif what == 1 and self.gone:
            most = min(len(self.gone), int(rng.integers(1, 12)))
            ids = rng.choice(sorted(self.gone), size=most, replace=False)
            self.each(lambda e: e.insert(ids))
            self.gone -= set(ids.tolist())
        elif what == 2:
            ids = self.some(5)
            self.agree(self.each(lambda e: e.base_excluding(ids)))
        elif what == 3:
            self.lam *= 1.0 + rng.random() * 0.1
            self.each(lambda e: e.advance(self.lam))
        elif what == 4:
            self.feed(self.some(6))
        elif what == 5:
            ids = self.some(4)
            alpha = rng.choice([0.0, -0.0, -1.0, 0.5, np.inf, rng.random()], size=len(ids))
            self.each(lambda e: e.set_weights(ids, alpha, 0.1))
        elif rng.random() < 0.2:
            self.feed(rng.integers(0, k, size=k + 100))

    def run(self, rounds: int) -> None:
        for t in range(rounds):
            self.where = f"{self.where.split(',')[0]}, round {t}"
            if self.rng.random() < self.odd:
                self.do_something_odd()
            if self.rng.random() < 0.9:
                self.base = self.agree(self.each(lambda e: e.base()))
            what = self.rng.random()
            if what < 0.7:
                self.feed(self.base)
            elif what < 0.8:
                self.feed(self.base[self.rng.random(len(self.base)) < 0.5])
            elif what < 0.85:
                self.late.append(self.base)
            elif what < 0.9 and self.late:
                self.feed(self.late.pop())


@pytest.mark.thin
@pytest.mark.bounds
@pytest.mark.parametrize("part", range(8))
def test_lockstep_small(part: int) -> None:
    for seed in range(34 * part, 34 * part + 34):
        History(seed, True, ENGINES, check=True).run(16)


@pytest.mark.thin
@pytest.mark.bounds
@pytest.mark.parametrize("part", range(4))
def test_lockstep_medium(part: int) -> None:
    for seed in range(1000 + 12 * part, 1000 + 12 * part + 12):
        History(seed, False, ENGINES, check=False).run(60)


@pytest.mark.slow
def test_lockstep_many() -> None:
    for seed in range(2000, 2300):
        History(seed, seed % 2 == 0, ENGINES, check=True).run(60)


def kruskal(weights: Any, edges: Any, n: int) -> list[int]:
    """The base by definition: heaviest first, then the smaller arm, kept if it joins two trees."""
    tree = list(range(n))
    base = []
    for arm in sorted(range(len(edges)), key=lambda a: (-weights[a], a)):
        u, v = (tree[x] for x in edges[arm])
        if u != v:
            tree = [u if x == v else x for x in tree]
            base.append(arm)
    return sorted(base)


@pytest.mark.parametrize("make", ENGINES)
def test_against_the_definition(make: Any) -> None:
    rng = np.random.default_rng(5)
    edges = rng.integers(0, 12, size=(60, 2))
    engine = make(Graphic(edges, 12))
    weights = np.full(60, np.inf)
    for _ in range(100):
        arms = rng.integers(0, 60, size=rng.integers(1, 8))
        values = rng.integers(0, 10, size=len(arms)) / 4.0
        weights[arms] = values
        for arm, value in zip(arms, values, strict=True):  # the last of repeated arms counts, as in numpy
            engine.set_weight(int(arm), float(value))
        weights[arms] = engine.records["alpha"][arms]
        assert engine.base().tolist() == kruskal(weights, edges, 12)


@pytest.mark.parametrize("make", ENGINES)
def test_tiny_graphs_and_loops(make: Any) -> None:
    one = make(Graphic([(0, 1)]))
    assert one.base().tolist() == [0]
    one.delete([0])
    assert one.base().tolist() == []
    one.insert([0])
    assert one.base().tolist() == [0]
    loops = make(Graphic([(0, 0), (0, 1), (1, 1)]))
    loops.delete([0])
    loops.insert([0])
    loops.touch(np.array([0, 2]))
    loops._check()
    assert loops.base().tolist() == [1] and loops.base_excluding([1]).tolist() == []
    with pytest.raises(ArmError, match="deleted already"):
        one.delete([0])
        one.delete([0])
    with pytest.raises(TypeError, match="graphic"):
        make(Uniform(4, 2))
    assert loops.memory() > 0


@pytest.mark.bounds
@pytest.mark.parametrize("make", ENGINES)
def test_falling_apart_and_coming_together(make: Any) -> None:
    """Two complete graphs and three bridges: without the bridges each half is a component of its own."""
    rng = np.random.default_rng(3)
    half = [(u, v) for u in range(9) for v in range(u)]
    edges = half + [(u + 9, v + 9) for u, v in half] + [(0, 9), (3, 12), (8, 17)]
    bridges = np.arange(len(edges) - 3, len(edges))
    engine, oracle = make(Graphic(edges)), resolve_engine(Graphic(edges))
    for step in range(60):
        if step % 20 == 5:
            engine.delete(bridges)
            oracle.delete(bridges)
        if step % 20 == 15:
            engine.insert(bridges)
            oracle.insert(bridges)
        base = oracle.base()
        assert np.array_equal(engine.base(), base)
        assert len(base) == (16 if 5 <= step % 20 < 15 else 17)
        engine._check()
        rewards = rng.random(len(base))
        engine.observe(base, rewards, 0.0, 1.0)
        oracle.observe(base, rewards, 0.0, 1.0)


@pytest.mark.parametrize("make", ENGINES)
def test_any_clock(make: Any) -> None:
    """A new lam in every round, also a smaller one."""
    rng = np.random.default_rng(8)
    matroid = Graphic(rng.integers(0, 30, size=(300, 2)), 30)
    engine, oracle = make(matroid), resolve_engine(matroid)
    for t in range(200):
        lam = float(np.sqrt(np.log(t + 1.0))) if t < 150 else float(rng.random())
        engine.advance(lam)
        oracle.advance(lam)
        base = oracle.base()
        assert np.array_equal(engine.base(), base)
        rewards = rng.random(len(base))
        engine.observe(base, rewards, 0.0, 1.0)
        oracle.observe(base, rewards, 0.0, 1.0)


def graph_of(n_vertices: int, n_edges: int, seed: int) -> Graphic:
    """A simple random graph."""
    rng = np.random.default_rng(seed)
    u, v = np.triu_indices(n_vertices, 1)
    chosen = rng.permutation(len(u))[:n_edges]
    return Graphic(np.stack([u[chosen], v[chosen]], axis=1), n_vertices)


def noise(matroid: Graphic, means: Any, seed: int) -> UniformNoise:
    return UniformNoise(matroid, means, 0.2, seed=seed)


def long_run(make: Any, n_vertices: int, n_edges: int, rounds: int, env: Any = noise) -> Any:
    matroid = graph_of(n_vertices, n_edges, 1)
    means = np.random.default_rng(2).random(n_edges) * 0.6 + 0.2
    plays = [EngineLoop(m(matroid), env(matroid, means, seed=4)) for m in (resolve_engine, make)]
    solvers = set()
    for start in range(0, rounds, 1000):
        logs = [play.rounds(min(1000, rounds - start)) for play in plays]
        assert np.array_equal(*logs), f"first difference within 1000 rounds after {start}"
        solvers.add(plays[1].engine.solver)
    plays[1].engine._check()
    return solvers


@pytest.mark.thin
@pytest.mark.parametrize("make", ENGINES)
def test_long_run(make: Any) -> None:
    long_run(make, 150, 2000, 5000)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "n_vertices"),
    [*((make, 150) for make in ENGINES), (GraphicAdaptiveEngine, 64), (GraphicAdaptiveEngine, 500)],
)
def test_longer_run(make: Any, n_vertices: int) -> None:
    long_run(make, n_vertices, 2000, 100_000)


@pytest.mark.parametrize("env", [noise, Bernoulli])
def test_adaptive_goes_from_busy_to_quiet(env: Any) -> None:
    assert long_run(GraphicAdaptiveEngine, 120, 300, 10_000, env) >= {"challengers"}
    assert "ordered" in long_run(GraphicAdaptiveEngine, 120, 7000, 1000, env)
    assert long_run(GraphicAdaptiveEngine, 40, 780, 1000, env) == {"prim"}


@pytest.mark.bounds
@pytest.mark.parametrize(("n_edges", "busy"), [(60, "hot-cold"), (90, "ordered"), (170, "prim")])
def test_adaptive_changes_over_and_back(n_edges: int, busy: str) -> None:
    """Twenty vertices, with neither, with an order, with a matrix: quiet stretches, and others where much changes."""
    rng = np.random.default_rng(6)
    matroid = graph_of(20, n_edges, 3)
    engine, oracle = GraphicAdaptiveEngine(matroid), resolve_engine(matroid)
    weights = rng.random(n_edges)
    seen = []
    for stretch in range(6):
        quiet = stretch % 2 == 0
        for _ in range(300):
            arms = oracle.base()[:1] if quiet else rng.integers(0, n_edges, size=60)
            weights[arms] = weights[arms] + 1e-9 if quiet else rng.random(len(arms))
            for either in (engine, oracle):
                either.set_weights(arms, weights[arms])
            assert np.array_equal(engine.base(), oracle.base())
        engine._check()
        seen.append(engine.solver)
    assert seen == ["challengers", busy] * 3


@pytest.mark.bounds
def test_a_vertex_with_many_levels_of_winners() -> None:
    """One vertex has 5,000 edges: slots, blocks, and winners of winners twice over."""
    rng = np.random.default_rng(9)
    tail = np.zeros(5003, dtype=np.int64)
    head = rng.integers(1, 9, size=5003)
    recs = np.zeros((5003, 4))
    recs[:, 2] = rng.integers(0, 40, size=5003)
    edges = new_edges(tail, head, 9)
    reweigh_cold(edges, recs, 0.0, np.bool_(False))
    check_edges(edges, recs, 0.0)
    for _ in range(30):
        best = np.int64(edges.heaviest_arm[0])
        assert best == np.flatnonzero((edges.table[:, STATUS] == COLD) & (recs[:, 2] == edges.heaviest[0]))[0]
        set_status(edges, best, -np.inf, np.int64(HOT))
        arm = np.int64(rng.integers(5003))
        recs[arm, 2] = rng.integers(0, 60)
        set_status(edges, arm, recs[arm, 2], np.int64(COLD))
    check_edges(edges, recs, 0.0)
    reweigh_cold(edges, recs, 0.0, np.bool_(True))
    check_edges(edges, recs, 0.0)


def test_components_and_parallel_arms() -> None:
    tail, head = np.array([0, 5, 2, 1, 3, 2]), np.array([1, 4, 3, 0, 2, 2])
    assert components(tail, head, 7).tolist() == [0, 0, 2, 2, 4, 4, 6]
    assert parallel_arms(tail, head).tolist() == [3, 1, 4, 0, 2, 5]
    chain = np.random.default_rng(1).permutation(500)
    assert (components(chain[:-1], chain[1:], 500) == 0).all()
