"""Dynamic bases of uniform, partition and laminar matroids, and the contract that all dynamic bases share."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles.dynamic as naive
from semibandit.errors import ArmError, ParameterError
from semibandit.matroids import Graphic, Laminar, Linear, Partition, Transversal, Uniform
from semibandit.paper.dynamic import DynamicBase, dynamic_base
from semibandit.paper.dynamic.laminar import DynamicLaminar
from support.seeds import seeds

INF = math.inf
POOL = [0.0, -0.0, 0.5, 1.0, 1.0, 2.0, 3.0, -1.0, 1e-300, INF, -INF]


def random_families(rng: np.random.Generator, n_arms: int) -> list[tuple[list[int], int]]:
    """Nested intervals of a random order of the arms, some of capacity 0, some that bind nothing."""
    order = rng.permutation(n_arms).tolist()
    families = []
    stack = [(0, n_arms)]
    while stack:
        lo, hi = stack.pop()
        if rng.random() < 0.8:
            families.append((order[lo:hi], int(rng.integers(0, hi - lo + 2))))
        if hi - lo > 1 and len(families) < 12:
            mid = int(rng.integers(lo + 1, hi))
            stack += [(lo, mid), (mid, hi)] if rng.random() < 0.7 else [(lo, mid)]
    return families


def random_instance(rng: np.random.Generator, n_arms: int):
    """A uniform, partition or laminar matroid and its families."""
    kind = rng.integers(3)
    if kind == 0:
        rank = int(rng.integers(1, n_arms + 1))
        return Uniform(n_arms, rank), [(list(range(n_arms)), rank)]
    if kind == 1:
        groups = rng.integers(0, 3, n_arms)
        capacities = [int(c) for c in rng.integers(0, 4, int(groups.max()) + 1)]
        capacities[groups[0]] = max(1, capacities[groups[0]])
        families = [(np.flatnonzero(groups == g).tolist(), c) for g, c in enumerate(capacities)]
        return Partition(groups, capacities), families
    while True:
        families = random_families(rng, n_arms)
        if naive.laminar_base(families, [1.0] * n_arms):
            return Laminar(n_arms, families), families


def drive(best: DynamicBase, oracle, rng: np.random.Generator, rounds: int, check_every: int) -> None:
    """Random changes of single weights, the base compared with the oracle's after each."""
    weights = best.weights().tolist()
    pool = rng.choice(POOL, size=rounds)
    wild = rng.random(rounds)
    arms = rng.integers(0, best.n_arms, rounds).tolist()
    for i, arm in enumerate(arms):
        # Half the weights come from a small pool, so that ties abound.
        weights[arm] = float(pool[i]) if wild[i] < 0.5 else float(wild[i])
        best.set_weight(arm, weights[arm])
        assert best.base().tolist() == oracle(weights), (i, arm)
        if i % check_every == 0:
            best._check()


@settings(deadline=None, derandomize=True, max_examples=150)
@given(
    st.integers(0, 10**6),
    st.integers(1, 9),
    st.lists(st.tuples(st.integers(0, 8), st.sampled_from(POOL)), max_size=40),
)
def test_any_sequence_of_changes(seed, n_arms, changes):
    matroid, families = random_instance(np.random.default_rng(seed), n_arms)
    weights = [0.0] * n_arms
    best = DynamicLaminar(matroid, weights)
    for arm, weight in changes:
        weights[arm % n_arms] = weight
        best.set_weight(arm % n_arms, weight)
        best._check()
        assert best.base().tolist() == naive.laminar_base(families, weights)


@pytest.mark.bounds
@pytest.mark.parametrize("seed", seeds(1, 3))
def test_many_instances(seed):
    rng = np.random.default_rng(1 + seed)
    for _ in range(50):
        matroid, families = random_instance(rng, int(rng.integers(1, 16)))
        best = DynamicLaminar(matroid, rng.choice(POOL, matroid.n_arms))
        drive(best, lambda w, families=families: naive.laminar_base(families, w), rng, 40, 1)


def long_run(rounds: int) -> None:
    rng = np.random.default_rng(2)
    for _ in range(5):
        matroid, families = random_instance(rng, 14)
        best = DynamicLaminar(matroid, rng.random(14))
        drive(best, lambda w, families=families: naive.laminar_base(families, w), rng, rounds // 5, 100)


def test_ten_thousand_changes():
    long_run(10_000)


@pytest.mark.slow
def test_hundred_thousand_changes():
    long_run(100_000)


def test_one_arm_and_full_rank():
    for matroid, families in [
        (Uniform(1, 1), [([0], 1)]),
        (Uniform(6, 6), [(list(range(6)), 6)]),
        (Partition([0, 1, 2, 3]), [([k], 1) for k in range(4)]),
        (Laminar(3, []), []),
    ]:
        drive(
            DynamicLaminar(matroid, np.zeros(matroid.n_arms)),
            lambda w, families=families: naive.laminar_base(families, w),
            np.random.default_rng(3),
            200,
            1,
        )


def test_ties_go_to_the_smaller_id():
    best = DynamicLaminar(Uniform(5, 2), np.ones(5))
    assert best.base().tolist() == [0, 1]
    best.set_weight(0, 0.0)
    assert best.base().tolist() == [1, 2]
    best.set_weight(0, 1.0)
    assert best.base().tolist() == [0, 1]
    best.set_weight(4, -0.0)
    best.set_weight(3, 0.0)
    best._check()


def test_a_deep_chain_takes_linear_memory():
    held = []
    for depth in (60, 120):
        families = [(list(range(3 * i, 3 * depth)), depth - i) for i in range(depth)]
        chain = DynamicLaminar(Laminar(3 * depth, families), np.zeros(3 * depth))
        drive(chain, lambda w, f=families: naive.laminar_base(f, w), np.random.default_rng(4), 300, 20)
        held.append(chain.memory())
    assert held[1] < 2.2 * held[0]


def test_exchanges_are_those_that_the_base_shows():
    best = DynamicLaminar(Uniform(6, 2), [6.0, 5.0, 4.0, 3.0, 2.0, 1.0])
    best.set_weight(0, 0.0)
    assert best.exchanges == 1 and best.base().tolist() == [1, 2]
    best.set_weights([3, 4], [9.0, 8.0])
    assert best.exchanges == 3 and best.base().tolist() == [3, 4]
    best.set_weight(3, -INF)
    best.set_weight(3, 9.0)
    assert best.base().tolist() == [3, 4] and best.exchanges == 3


def test_weights_that_stand_for_nothing_are_refused():
    best = dynamic_base(Uniform(3, 1), [1.0, 2.0, 3.0])
    for refused in (-1e300, -1.7e308):
        with pytest.raises(ParameterError, match="above -1e"):
            best.set_weight(0, refused)
        with pytest.raises(ParameterError, match="above -1e"):
            best.set_weights([0, 1], [1.0, refused])
        with pytest.raises(ParameterError, match="above -1e"):
            dynamic_base(Uniform(3, 1), [1.0, refused, 3.0])
    assert best.weights().tolist() == [1.0, 2.0, 3.0] and best.base().tolist() == [2]
    best.set_weights([0, 1, 2], [-9e299, -1e299, -9.9e299])
    assert best.base().tolist() == [1]


def test_large_against_sorting():
    rng = np.random.default_rng(5)
    n_arms = 3000
    best = DynamicLaminar(Uniform(n_arms, 25), rng.random(n_arms))
    for i in range(400):
        arms, weights = rng.integers(0, n_arms, 20), rng.choice([0.1, 0.5, 0.999, 1.0, rng.random()], 20)
        if i % 2:
            arms[:10] = best.base()[:10]
        best.set_weights(arms, weights)
        order = np.lexsort((np.arange(n_arms), -best.weights()))
        assert np.array_equal(best.base(), np.sort(order[:25]))
    best._check()


# -- the contract, for every class ------------------------------------------------------------------------


def every_class() -> list[DynamicBase]:
    rng = np.random.default_rng(6)
    graph = Graphic(rng.integers(0, 6, (12, 2)), 6)
    bipartite = Transversal([[0, 1], [1, 2], [2], [0, 3], [3], [1]] * 2, 4)
    vectors = Linear(rng.integers(-1, 2, (12, 3)))
    plain = [
        Uniform(12, 4),
        Partition(np.arange(12) % 3, 2),
        Laminar(12, [(range(6), 2), (range(3), 1)]),
        graph,
    ]
    exact = [dynamic_base(m, rng.random(12)) for m in [*plain, bipartite, vectors]]
    return exact + [dynamic_base(m, rng.random(12), eta=0.3) for m in [Uniform(12, 4), bipartite]]


@pytest.mark.parametrize("best", every_class(), ids=repr)
def test_bad_calls_change_nothing(best):
    before, weights = best.base(), best.weights()
    for arm in (-1, 12, True, 1.0, "1", None):
        with pytest.raises(ArmError):
            best.set_weight(arm, 1.0)
        with pytest.raises(ArmError):
            best.set_weights([0, arm], [1.0, 1.0])
    for weight in (math.nan, "heavy", None):
        with pytest.raises(ParameterError):
            best.set_weight(0, weight)
    for arms, ws in [([0, 1], [1.0]), ([0, 1], [1.0, math.nan]), ([0], 1.0)]:
        with pytest.raises(ParameterError):
            best.set_weights(arms, ws)
    with pytest.raises(ArmError):
        best.weight(12)
    assert np.array_equal(best.base(), before) and np.array_equal(best.weights(), weights)
    best._check()


@pytest.mark.parametrize("best", every_class(), ids=repr)
def test_together_is_one_by_one(best):
    rng = np.random.default_rng(7)
    other = type(best)(best.matroid, best.weights(), *([best.eta] if best.approximation > 1 else []))
    for size in (1, 2, 12, 30, 0):
        arms, weights = rng.integers(0, 12, size), rng.random(size).round(1)
        best.set_weights(arms, weights)
        for arm, weight in zip(arms, weights, strict=True):
            other.set_weight(int(arm), float(weight))
        best._check()
        other._check()
        assert np.array_equal(best.base(), other.base())
        assert [best.weight(k) for k in range(12)] == best.weights().tolist() == other.weights().tolist()
        assert best.base_weight == pytest.approx(sum(best.weights()[best.base()]))
    frozen = np.array([0, 1]), np.array([9.0, 8.0])
    for array in frozen:
        array.setflags(write=False)
    best.set_weights(*frozen)
    assert best.weight(1) == 8.0


@pytest.mark.parametrize("best", every_class(), ids=repr)
def test_absent_arms_are_left_out(best):
    arm = int(best.base()[-1])
    best.set_weights(np.arange(12), np.full(12, -INF))
    assert best.base().tolist() == [] and best.base_weight == 0.0
    best.set_weight(arm, 0.25)
    assert best.base().tolist() == [arm] and best.base_weight == 0.25
    best._check()


@pytest.mark.parametrize("best", every_class(), ids=repr)
def test_what_is_handed_out_is_a_copy(best):
    base, weights = best.base(), best.weights()
    best.base()[:] = -1
    best.weights()[:] = -1
    assert (
        base.dtype == np.int64
        and np.array_equal(best.base(), base)
        and np.array_equal(best.weights(), weights)
    )
    assert best.memory() > weights.nbytes and best.exchanges == 0 and best.approximation >= 1.0
    assert type(best).__name__ in repr(best)


def test_the_factory_refuses_nonsense():
    with pytest.raises(ParameterError):
        dynamic_base("uniform", [1.0])
    with pytest.raises(ParameterError):
        dynamic_base(Uniform(3, 1), [1.0, 2.0])
    for eta in (0.0, -1.0, math.nan, INF, True, "0.1", 1e-9):
        with pytest.raises(ParameterError):
            dynamic_base(Uniform(3, 1), [1.0, 2.0, 3.0], eta=eta)


def test_any_other_matroid_is_solved_anew():
    rng = np.random.default_rng(8)
    groups = [0, 0, 0, 1, 1, 2]
    vectors = np.eye(3, dtype=int)[groups]  # arms of a group are parallel: a partition matroid in disguise
    best = dynamic_base(Linear(vectors), np.zeros(6))
    families = [([0, 1, 2], 1), ([3, 4], 1), ([5], 1)]
    drive(best, lambda w: naive.laminar_base(families, w), rng, 300, 1)
