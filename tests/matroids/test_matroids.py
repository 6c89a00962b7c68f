"""Every matroid class: axioms on random instances, kernel data, equality, immutability, custom classes."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import networkx
import numpy as np
import pytest

import oracles.matroids as naive
from semibandit.matroids import Graphic, Laminar, Linear, Matroid, Partition, Transversal, Uniform
from semibandit.testing import check_matroid
from support.random_matroids import RANDOM, random_laminar


class Cographic(Matroid):
    """Edges that can be taken away without disconnecting the graph. Only the independence test is given."""

    def __init__(self, edges: Sequence[tuple[int, int]]) -> None:
        super().__init__(len(edges))
        self.edges = tuple(edges)

    def _is_independent(self, arms: np.ndarray[Any, Any]) -> bool:
        away = set(arms.tolist())
        arms.sort()  # what a user may do; the library must not mind
        graph = networkx.Graph()
        graph.add_nodes_from(v for edge in self.edges for v in edge)
        graph.add_edges_from(edge for k, edge in enumerate(self.edges) if k not in away)
        return bool(networkx.is_connected(graph))


@pytest.mark.thin
@pytest.mark.bounds
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", RANDOM)
def test_random_instances(kind: str, seed: int) -> None:
    """7 kinds x 5 seeds x 7 sizes = 245 instances: axioms, oracle, exhaustive optimum."""
    rng = np.random.default_rng([seed, list(RANDOM).index(kind)])
    for n in (1, 2, 3, 4, 5, 6, 7):
        m, independent = RANDOM[kind](rng, n)
        check_matroid(m, seed=seed)
        for arms in naive.subsets(range(n)):
            assert m.is_independent(arms) == independent(arms), (m, arms)
        assert m.rank == len(naive.greedy(independent, range(n)))
        for weights in (rng.standard_normal(n), rng.integers(-1, 2, n) * 1.0):
            base = m.max_weight_base(weights)
            assert base.tolist() == sorted(naive.greedy(independent, naive.heaviest_first(weights.tolist())))
            total = math.fsum(weights[base])
            assert total == pytest.approx(naive.best_total(independent, weights.tolist()), abs=1e-12)


@pytest.mark.bounds
def test_laminar_kernel_data() -> None:
    rng = np.random.default_rng(3)
    for _ in range(60):
        n = int(rng.integers(1, 8))
        m, independent = random_laminar(rng, n)
        assert isinstance(m, Laminar)
        members = [
            [k for k in range(n) if f in ancestors(m._parent, int(m._leaf[k]))] for f in range(len(m._parent))
        ]
        assert members[0] == list(range(n)) and m._parent[0] == -1
        assert all(0 <= m._parent[f] < f for f in range(1, len(m._parent)))
        assert len({tuple(arms) for arms in members}) == len(members)
        # The effective capacity of a family is its rank.
        assert m._capacity.tolist() == [len(naive.greedy(independent, arms)) for arms in members]


def ancestors(parent: np.ndarray[Any, Any], f: int) -> list[int]:
    found = []
    while f >= 0:
        found.append(f)
        f = int(parent[f])
    return found


def test_deep_laminar_chain() -> None:
    n = 2000
    m = Laminar(n, [(range(k, n), (n - k + 1) // 2) for k in range(n)])
    assert m.rank == n // 2
    assert m.max_weight_base(np.arange(n)).tolist() == list(range(1, n, 2))


def test_kernel_data_of_the_plain_classes() -> None:
    p = Partition(np.array([2, 0, 2, 2], dtype=np.uint8), [5, 1, 2])
    assert p._group.tolist() == [2, 0, 2, 2] and p._capacity.tolist() == [1, 0, 2] and p.rank == 3
    g = Graphic([(0, 3), (1, 1)])
    assert (g.n_vertices, g._tail.tolist(), g._head.tolist()) == (4, [0, 1], [3, 1])
    t = Transversal([[2], [], [0, 2]])
    assert (t.n_right, t._indptr.tolist(), t._indices.tolist()) == (3, [0, 1, 1, 3], [2, 0, 2])
    for array in (p._group, p._capacity, g._tail, g._head, t._indptr, t._indices):
        assert array.dtype == np.int64 and array.flags.c_contiguous and not array.flags.writeable


@pytest.mark.parametrize(
    ("one", "same", "other", "text"),
    [
        (Uniform(5, 2), Uniform(5, 2), Uniform(5, 3), "Uniform(n_arms=5, rank=2)"),
        (
            Partition([0, 0, 1], 1),
            Partition(np.array([0, 0, 1]), [1, 7]),
            Partition([0, 1, 1], 1),
            "Partition(n_arms=3, n_groups=2, rank=2)",
        ),
        (
            Laminar(3, [([0, 1], 1)]),
            Laminar(3, [((1, 0), 1), ({0, 1}, 4)]),
            Laminar(3, [([0, 1], 2)]),
            "Laminar(n_arms=3, n_families=1, rank=2)",
        ),
        (
            Graphic([(0, 1), (1, 2)]),
            Graphic(np.array([[0, 1], [1, 2]]), 3),
            Graphic([(0, 1), (1, 2)], 4),
            "Graphic(n_arms=2, n_vertices=3, rank=2)",
        ),
        (
            Transversal([[0], [1]]),
            Transversal(np.array([[0], [1]])),
            Transversal([[0], [0, 1]]),
            "Transversal(n_arms=2, n_right=2, rank=2)",
        ),
        (
            Linear([[1, 0], [0, 1]], field=3),
            Linear([[1.0, 3.0], [0.0, 1.0]], field=3),
            Linear([[1, 0], [0, 1]], field=5),
            "Linear(n_arms=2, dimension=2, field=3, rank=2)",
        ),
    ],
)
def test_equality_hash_repr(one: Matroid, same: Matroid, other: Matroid, text: str) -> None:
    assert one == same and hash(one) == hash(same) and one is not same
    assert one != other and one != "matroid" and one != Uniform(99, 1)
    assert repr(one) == text
    assert one.name == type(one).__name__.lower()
    assert copy.copy(one) is one and copy.deepcopy(one) is one


def test_immutable_and_independent_of_its_input() -> None:
    groups = np.array([0, 1, 1])
    edges = np.array([[0, 1], [1, 2]])
    vectors = np.array([[1, 0], [0, 1]])
    made = [
        Partition(groups),
        Graphic(edges),
        Linear(vectors),
        Transversal(edges),
        Laminar(3, [(groups[:2], 1)]),
    ]
    keys = [[np.array(part) for part in m._key() or ()] for m in made]
    groups[:] = edges[:] = vectors[:] = 0
    for m, key in zip(made, keys, strict=True):
        for mine, before in zip(m._key() or (), key, strict=True):
            assert np.array_equal(mine, before)
            if isinstance(mine, np.ndarray):
                with pytest.raises(ValueError, match="read-only"):
                    mine[0] = 1
        with pytest.raises(AttributeError, match="immutable"):
            m.extra = 1  # type: ignore[attr-defined]
        with pytest.raises(AttributeError, match="immutable"):
            del m.n_arms
        assert not m.loops.flags.writeable


def test_a_copy_sent_to_a_worker_stays_read_only() -> None:
    m = Partition([0, 1, 1], [0, 1])
    state = {name: np.array(v) if isinstance(v, np.ndarray) else v for name, v in vars(m).items()}
    other = Partition.__new__(Partition)
    other.__setstate__(state)
    assert other == m and not other._group.flags.writeable
    with pytest.raises(AttributeError, match="immutable"):
        other.n_arms = 7


def test_custom_matroid_from_an_independence_test_alone() -> None:
    edges = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (3, 4)]
    m = Cographic(edges)
    check_matroid(m)
    # Duality: the complement of the heaviest base is the lightest spanning tree.
    weights = np.random.default_rng(0).random(6)
    tree = Graphic(edges).max_weight_base(-weights)
    assert m.max_weight_base(weights).tolist() == sorted(set(range(6)) - set(tree.tolist()))
    assert (m.rank, m.loops.tolist(), m.name) == (2, [5], "cographic")
    assert m == m and m != Cographic(edges) and len({m, Cographic(edges)}) == 2
    assert repr(m) == "Cographic(n_arms=6)"


def test_check_matroid_finds_what_is_wrong() -> None:
    class Path(Matroid):
        def _is_independent(self, arms: np.ndarray[Any, Any]) -> bool:
            return all(a + 1 not in arms for a in arms)

    class NotHereditary(Matroid):
        def _is_independent(self, arms: np.ndarray[Any, Any]) -> bool:
            return len(arms) != 1

    class NoEmptySet(Matroid):
        def _is_independent(self, arms: np.ndarray[Any, Any]) -> bool:
            return len(arms) == 1

    class Fickle(Matroid):
        def __init__(self) -> None:
            super().__init__(3)
            self.calls: list[int] = []

        def _is_independent(self, arms: np.ndarray[Any, Any]) -> bool:
            self.calls.append(len(arms))
            return len(arms) <= (2 if len(self.calls) < 150 else 1)

    class WrongRank(Uniform):
        def _find_rank(self) -> int:
            return 1

    class WrongLoops(Uniform):
        def _find_loops(self) -> np.ndarray[Any, Any]:
            return np.array([1])

    class WrongTies(Uniform):
        def _max_weight_base(self, weights: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            return np.sort(np.argsort(weights, kind="stable")[-self.rank :])

    class WrongGreedy(Uniform):
        def _greedy(self, order: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            return np.sort(order[: self.rank])

    class Open(Uniform):
        def __setattr__(self, name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

    for broken, word in [
        (Path(4), "augmentation"),
        (NotHereditary(3), "hereditary"),
        (NoEmptySet(3), "empty set"),
        (Fickle(), "changed|_greedy|max_weight_base"),
        (WrongRank(4, 2), "rank is 1"),
        (WrongLoops(4, 2), "loops are"),
        (WrongTies(4, 2), "max_weight_base"),
        (WrongGreedy(4, 2), "_greedy"),
        (Open(4, 2), "immutable"),
    ]:
        with pytest.raises(AssertionError, match=word):
            check_matroid(broken)


def test_greedy_takes_any_int64_array() -> None:
    for m in (
        Uniform(6, 2),
        Partition([0, 1, 0, 1, 0, 1]),
        Graphic([(0, 1), (1, 2), (2, 0), (0, 1), (2, 3), (3, 0)]),
    ):
        order = np.array([5, 4, 3, 2, 1, 0])
        want = m._greedy(order).tolist()
        frozen = order.copy()
        frozen.setflags(write=False)
        assert m._greedy(frozen).tolist() == want
        assert m._greedy(np.repeat(order, 2)[::2]).tolist() == want
        assert m._greedy(order[:0]).tolist() == []
        weights = np.arange(6.0)
        weights.setflags(write=False)
        assert m.max_weight_base(weights).tolist() == m.max_weight_base(range(6)).tolist()


def test_many_ways_to_name_arms_and_weights() -> None:
    m = Partition([0, 0, 1, 1])
    for arms in ([0, 2], (0, 2), {0, 2}, range(0, 4, 2), np.array([0, 2], dtype=np.uint8), iter([0, 2])):
        assert m.is_independent(arms)
    assert m.is_independent([]) and m.is_independent(np.array([])) and not m.is_independent([np.int32(0), 1])
    assert m.max_weight_base([1, 2, 3, 3]).tolist() == [1, 2]
    assert m.max_weight_base(np.array([[1.0, 9.0], [2.0, 9.0], [3.0, 9.0], [4.0, 9.0]])[:, 0]).tolist() == [
        1,
        3,
    ]
