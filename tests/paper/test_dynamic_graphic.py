"""The dynamic maximum spanning forest: sparsification tree, walking, chord diagrams."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_dynamic_laminar import POOL, drive

import oracles.dynamic as naive
from semibandit.errors import ParameterError
from semibandit.matroids import Graphic
from semibandit.paper.dynamic.graphic import DynamicGraphic
from semibandit.paper.dynamic.seats import ALLOWANCE, LIMIT, STEPS

# Tiny parameters, where edge cases crowd: split to the last edge, chunks of two half-edges.
WAYS = [
    {"chords": "never"},
    {"chords": "never", "spread": 0},
    {"chords": "never", "spread": 1},
    {"chords": "always", "chords_from": 0, "chunk": 2, "spread": 0},
    {"chords": "always", "chords_from": 0, "chunk": 3, "spread": 1},
    {"chords": "always", "chords_from": 0, "chunk": 8},
    {"chords": "always", "chords_from": 6, "chunk": 4, "spread": 0},
]


def random_edges(rng: np.random.Generator, n_vertices: int, n_edges: int) -> list[tuple[int, int]]:
    """Any graph: loops, parallel edges, several components, isolated vertices. At least one true edge."""
    edges = [tuple(edge) for edge in rng.integers(0, n_vertices, (n_edges, 2)).tolist()]
    return [(0, 1), *edges[1:]]


def grown(edges, weights, way) -> DynamicGraphic:
    return DynamicGraphic(Graphic(edges, 1 + max(map(max, edges))), weights, **way)


def ladder(length: int) -> list[tuple[int, int]]:
    rails = [(i, i + 1) for i in range(length - 1)]
    return [*rails, *((a + length, b + length) for a, b in rails), *((i, i + length) for i in range(length))]


@settings(deadline=None, derandomize=True, max_examples=120)
@given(
    st.integers(0, 10**6),
    st.integers(2, 7),
    st.integers(1, 14),
    st.sampled_from(WAYS),
    st.lists(st.tuples(st.integers(0, 13), st.sampled_from(POOL)), max_size=25),
)
def test_any_sequence_of_changes(seed, n_vertices, n_edges, way, changes):
    edges = random_edges(np.random.default_rng(seed), n_vertices, n_edges)
    weights = [0.0] * n_edges
    best = grown(edges, weights, way)
    for arm, weight in changes:
        weights[arm % n_edges] = weight
        best.set_weight(arm % n_edges, weight)
        best._check()
        assert best.base().tolist() == naive.forest_base(edges, weights)


@pytest.mark.thin
@pytest.mark.bounds
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_many_graphs(way):
    rng = np.random.default_rng(1)
    for _ in range(12):
        edges = random_edges(rng, int(rng.integers(2, 20)), int(rng.integers(1, 60)))
        best = grown(edges, rng.choice(POOL, len(edges)), way)
        drive(best, lambda w, edges=edges: naive.forest_base(edges, w), rng, 40, 8)


def long_run(rounds: int) -> None:
    rng = np.random.default_rng(2)
    for way in WAYS:
        edges = random_edges(rng, 8, 18)
        best = grown(edges, rng.random(18), way)
        drive(best, lambda w, edges=edges: naive.forest_base(edges, w), rng, rounds // len(WAYS), 200)


def test_ten_thousand_changes():
    long_run(10_000)


@pytest.mark.slow
def test_hundred_thousand_changes():
    long_run(100_000)


@pytest.mark.thin(1)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_special_graphs(way):
    rng = np.random.default_rng(3)
    n = 7
    graphs = {
        "one edge": [(0, 1)],
        "parallel edges": [(0, 1), (1, 0), (0, 1)] * 3,
        "loops": [(0, 0), (1, 1), (0, 1), (2, 2)],
        "a tree, D = K": [(i, (i - 1) // 2) for i in range(1, n)],
        "a ring": [(i, (i + 1) % n) for i in range(n)],
        "a star, doubled": [(0, i) for i in range(1, n)] * 2,
        "complete": [(i, j) for i in range(n) for j in range(i)],
        "components": [(0, 1), (1, 2), (2, 0), (5, 6), (6, 7), (7, 5), (5, 7), (9, 9)],
        "a ladder": ladder(5),
        "far apart": [(0, 60), (60, 63), (0, 63), (31, 32), (1, 62), (62, 63), (0, 1)],
    }
    for edges in graphs.values():
        best = grown(edges, np.zeros(len(edges)), way)
        drive(best, lambda w, edges=edges: naive.forest_base(edges, w), rng, 40, 2)


@pytest.mark.parametrize("way", [WAYS[0], WAYS[1], {"chords": "always", "chords_from": 32}], ids=str)
def test_larger_graphs(way):
    rng = np.random.default_rng(4)
    side = np.arange(144).reshape(12, 12)
    grid = [
        *zip(side[:-1].ravel(), side[1:].ravel(), strict=True),
        *zip(side[:, 1:].ravel(), side[:, :-1].ravel(), strict=True),
    ]
    for edges in (random_edges(rng, 60, 1500), ladder(150), [(int(a), int(b)) for a, b in grid]):
        best = grown(edges, rng.random(len(edges)), way)
        weights = best.weights().tolist()
        for i in range(600):
            arm = int(rng.integers(len(edges))) if i % 2 else int(rng.choice(best.base()))
            weights[arm] = float(rng.random()) * (1.0 if i % 3 else 0.5)
            best.set_weight(arm, weights[arm])
            if i % 20 == 0:
                assert best.base().tolist() == naive.forest_base(edges, weights)
        best._check()


def test_long_walks_bring_in_chord_diagrams():
    rng = np.random.default_rng(5)
    edges = ladder(2500)
    weights = rng.random(len(edges))
    best = grown(edges, weights, {"chords": "auto", "chords_from": 2048})
    assert not best._diagrams
    best._state.task[ALLOWANCE] //= 4  # or the ladder would have to be longer
    # Every cut of a ladder's forest has long sides, and every path between far ends is long.
    for _ in range(400):
        arm = int(rng.integers(len(edges)))
        weights[arm] = rng.random()
        best.set_weight(arm, weights[arm])
        if best._diagrams:
            break
    assert best._diagrams
    arms, news = rng.integers(0, len(edges), 50), rng.random(50)
    weights[arms] = news
    best.set_weights(arms, news)
    assert best.base().tolist() == naive.forest_base(edges, weights.tolist())


def test_going_over_in_the_middle():
    rng = np.random.default_rng(6)
    for batch in (False, True):
        edges = random_edges(rng, 9, 30)
        weights = rng.random(30)
        best = grown(edges, weights, {"chords_from": 4, "chunk": 4, "spread": 1})
        best._state.task[ALLOWANCE] = 0
        best._state.task[LIMIT] = 10
        best._rebuild_share = 2.0
        if batch:
            arms, news = rng.integers(0, 30, 40), rng.random(40)
            weights[arms] = news
            best.set_weights(arms, news)
        else:
            drive(best, lambda w, edges=edges: naive.forest_base(edges, w), rng, 40, 1)
            weights = best.weights()
        assert best._diagrams
        best._check()
        assert best.base().tolist() == naive.forest_base(edges, weights.tolist())


def test_steps_do_not_grow_with_the_number_of_edges():
    rng = np.random.default_rng(7)
    mean = {}
    for n_edges in (1_000, 30_000):
        edges = rng.integers(0, 40, (n_edges, 2))
        best = DynamicGraphic(Graphic(edges, 40), rng.random(n_edges), chords="never")
        total = 0
        for _ in range(300):
            best.set_weight(int(rng.choice(best.base())), float(rng.random()))
            total += int(best._state.task[STEPS])
        mean[n_edges] = total / 300
    # 30 times the edges; all are in graphs of at most 40 vertices, whatever their number.
    assert mean[30_000] < 4 * mean[1_000] + 200


def test_unknown_way():
    with pytest.raises(ParameterError):
        DynamicGraphic(Graphic([(0, 1)]), [1.0], chords="sometimes")
