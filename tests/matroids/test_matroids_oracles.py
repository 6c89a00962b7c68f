"""Greedy against plain greedy, networkx and scipy; constructors by hypothesis; a million arms."""

from __future__ import annotations

import math
from typing import Any

import hypothesis.strategies as st
import networkx
import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.csgraph
from hypothesis import given, settings

import oracles.matroids as naive
from semibandit.matroids import Graphic, Laminar, Partition, Transversal, Uniform
from semibandit.matroids.base import heaviest_first
from support.random_matroids import RANDOM

MILLION = 1_000_000


@pytest.mark.bounds
@pytest.mark.parametrize("kind", [kind for kind in RANDOM if kind != "transversal"])
def test_medium_instances_agree_with_plain_greedy(kind: str) -> None:
    rng = np.random.default_rng(list(RANDOM).index(kind))
    for n in (20, 60):
        m, independent = RANDOM[kind](rng, n)
        for weights in (rng.standard_normal(n), rng.integers(-2, 3, n) * 1.0, rng.choice([0.0, np.inf], n)):
            order = naive.heaviest_first(weights.tolist())
            assert m.max_weight_base(weights).tolist() == sorted(naive.greedy(independent, order))
        part = rng.permutation(n)[: n // 2]
        assert m._greedy(part).tolist() == naive.greedy(independent, part.tolist())


@pytest.mark.bounds
@pytest.mark.parametrize("seed", range(6))
def test_transversal_against_kuhn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 120
    n_right = int(rng.choice([10, 40, 100, 300]))
    # Few right nodes are popular, so that most searches must re-arrange the matching, and many fail.
    neighbours = [(rng.random(rng.integers(0, 5)) ** 3 * n_right).astype(int).tolist() for _ in range(n)]
    m, independent = Transversal(neighbours, n_right), naive.transversal_kuhn(neighbours)
    for weights in (rng.standard_normal(n), rng.integers(0, 4, n) * 1.0):
        order = naive.heaviest_first(weights.tolist())
        assert m.max_weight_base(weights).tolist() == sorted(naive.greedy(independent, order))
    graph = scipy.sparse.csr_array(
        (np.ones(len(m._indices)), m._indices.copy(), m._indptr.copy()), shape=(n, n_right), dtype=np.float64
    )
    graph.sum_duplicates()
    matching = scipy.sparse.csgraph.maximum_bipartite_matching(graph, perm_type="column")
    assert m.rank == int((matching >= 0).sum())


@pytest.mark.parametrize(("n_vertices", "n_edges"), [(30, 40), (200, 150), (100, 2000), (1000, 5000)])
def test_graphic_against_networkx_and_scipy(n_vertices: int, n_edges: int) -> None:
    rng = np.random.default_rng(n_edges)
    edges = rng.integers(0, n_vertices, (n_edges, 2))  # parallel edges, self-loops, several components
    weights = rng.random(n_edges) + 0.5
    m = Graphic(edges, n_vertices)
    base = m.max_weight_base(weights)
    total = math.fsum(weights[base])

    graph = networkx.MultiGraph()
    graph.add_nodes_from(range(n_vertices))
    graph.add_weighted_edges_from(
        (int(a), int(b), float(w)) for (a, b), w in zip(edges, weights, strict=True)
    )
    forest = networkx.maximum_spanning_edges(graph, data=True, keys=False)
    assert total == pytest.approx(math.fsum(data["weight"] for _, _, data in forest))
    assert m.rank == n_vertices - networkx.number_connected_components(graph)
    assert m.loops.tolist() == [k for k, (a, b) in enumerate(edges.tolist()) if a == b]

    heaviest = np.zeros((n_vertices, n_vertices))  # scipy knows no parallel edges: keep the heaviest
    np.maximum.at(heaviest, (edges.min(axis=1), edges.max(axis=1)), weights)
    np.fill_diagonal(heaviest, 0.0)
    minimum = scipy.sparse.csgraph.minimum_spanning_tree(-scipy.sparse.csr_array(heaviest))
    assert total == pytest.approx(-minimum.sum())

    tree = networkx.Graph([tuple(edge) for edge in edges[base].tolist()])
    assert networkx.is_forest(tree) and m.is_independent(base)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.data())
def test_hypothesis_partition(groups: list[int], data: st.DataObject) -> None:
    capacities = data.draw(st.lists(st.integers(0, 4), min_size=max(groups) + 1, max_size=8))
    if not any(capacities[g] for g in groups):
        capacities[groups[0]] = 1
    m = Partition(groups, capacities)
    assert m.rank == sum(min(capacities[g], groups.count(g)) for g in set(groups))
    assert m.loops.tolist() == [k for k, g in enumerate(groups) if capacities[g] == 0]
    weights = data.draw(st.lists(st.integers(-2, 2), min_size=len(groups), max_size=len(groups)))
    order = naive.heaviest_first(weights)
    assert m.max_weight_base(weights).tolist() == sorted(
        naive.greedy(naive.partition(groups, capacities), order)
    )


@settings(deadline=None, derandomize=True, max_examples=80)
@given(st.lists(st.tuples(st.sets(st.integers(0, 5), max_size=6), st.integers(0, 4)), max_size=5))
def test_hypothesis_laminar(families: list[tuple[set[int], int]]) -> None:
    crossing = any(a & b and not a <= b and not b <= a for a, _ in families for b, _ in families)
    independent = naive.laminar([(sorted(a), c) for a, c in families])
    if crossing:
        with pytest.raises(ValueError, match="cross"):
            Laminar(6, families)
    elif not any(independent([k]) for k in range(6)):
        with pytest.raises(ValueError, match="loop"):
            Laminar(6, families)
    else:
        m = Laminar(6, families)
        for arms in naive.subsets(range(6)):
            assert m.is_independent(arms) == independent(arms)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=9))
def test_hypothesis_graphic(edges: list[tuple[int, int]]) -> None:
    if all(a == b for a, b in edges):
        with pytest.raises(ValueError, match="loop"):
            Graphic(edges)
        return
    m, independent = Graphic(edges), naive.graphic(edges)
    assert m.n_vertices == max(max(edge) for edge in edges) + 1
    assert m.max_weight_base(range(len(edges))).tolist() == sorted(
        naive.greedy(independent, reversed(range(len(edges))))
    )


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.lists(st.lists(st.integers(0, 4), max_size=4), min_size=1, max_size=7))
def test_hypothesis_transversal(neighbours: list[list[int]]) -> None:
    if not any(neighbours):
        with pytest.raises(ValueError, match="loop"):
            Transversal(neighbours)
        return
    m, independent = Transversal(neighbours), naive.transversal(neighbours)
    assert m.max_weight_base([1.0] * m.n_arms).tolist() == naive.greedy(independent, range(m.n_arms))


def million_weights(rng: np.random.Generator) -> list[np.ndarray[Any, Any]]:
    tied = rng.integers(-20, 20, MILLION).astype(np.float64)
    tied[rng.integers(0, MILLION, 1000)] = np.inf
    return [rng.standard_normal(MILLION), tied]


def test_order_of_a_million_arms_is_exact() -> None:
    rng = np.random.default_rng(0)
    for weights in [*million_weights(rng), np.zeros(MILLION), rng.choice([0.0, -0.0, -np.inf], MILLION)]:
        assert np.array_equal(heaviest_first(weights), np.argsort(-weights, kind="stable"))


@pytest.mark.thin
@pytest.mark.parametrize("rank", [1, 10, 1024, 1025, 400_000, MILLION])
def test_a_million_arms_uniform(rank: int) -> None:
    for weights in million_weights(np.random.default_rng(rank)):
        want = np.sort(np.argsort(-weights, kind="stable")[:rank])
        assert np.array_equal(Uniform(MILLION, rank).max_weight_base(weights), want)


@pytest.mark.thin
@pytest.mark.parametrize(("n_groups", "capacity"), [(1, 50), (1000, 1), (300, 40), (200_000, 2)])
def test_a_million_arms_partition(n_groups: int, capacity: int) -> None:
    rng = np.random.default_rng(n_groups)
    groups = rng.integers(0, n_groups, MILLION)
    m = Partition(groups, capacity)
    for weights in million_weights(rng):
        order = np.lexsort((np.arange(MILLION), -weights, groups))
        start = np.searchsorted(groups[order], np.arange(n_groups))
        place = np.arange(MILLION) - start[groups[order]]
        assert np.array_equal(m.max_weight_base(weights), np.sort(order[place < capacity]))


def test_a_million_arms_laminar_graphic_transversal() -> None:
    rng = np.random.default_rng(1)
    arms = np.arange(MILLION)
    blocks = [(arms[lo : lo + 1000], 3) for lo in range(0, MILLION, 1000)]
    nested = Laminar(MILLION, [*blocks, *((block[:10], 1) for block, _ in blocks), (arms, 1500)])
    pairs = Partition(arms // 2)
    same = Laminar(MILLION, [(block, 3) for block, _ in blocks])
    edges = rng.integers(0, 50_000, (MILLION, 2))
    graph = Graphic(edges)
    matching = Transversal(arms[:, None] // 1000)
    assert (nested.rank, pairs.rank, matching.rank) == (1500, MILLION // 2, 1000)
    for weights in million_weights(rng):
        base = nested.max_weight_base(weights)
        assert len(base) == 1500 and nested.is_independent(base)
        assert np.bincount(base // 1000).max() <= 3
        as_partition = Partition(arms // 1000, 3).max_weight_base(weights)
        assert np.array_equal(same.max_weight_base(weights), as_partition)
        as_partition = Partition(arms // 1000, 1).max_weight_base(weights)
        assert np.array_equal(matching.max_weight_base(weights), as_partition)
        forest = graph.max_weight_base(weights)
        costs = (
            np.argsort(np.argsort(-weights, kind="stable"), kind="stable") + 1.0
        )  # distinct, so one optimum
        pair = np.sort(edges, axis=1)
        cheapest = np.lexsort((costs, pair[:, 1], pair[:, 0]))
        first = np.r_[True, np.any(np.diff(pair[cheapest], axis=0) != 0, axis=1)]
        kept = cheapest[first & (pair[cheapest, 0] != pair[cheapest, 1])]
        sparse = scipy.sparse.csr_array((costs[kept], (pair[kept, 0], pair[kept, 1])), shape=(50_000, 50_000))
        tree = scipy.sparse.csgraph.minimum_spanning_tree(sparse)
        assert math.fsum(costs[forest]) == math.fsum(tree.data)
