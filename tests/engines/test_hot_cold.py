"""The hot/cold engine on every matroid class against greedy over all weights, and what it asks of an oracle."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from semibandit.arms import new_records
from semibandit.engines.layers.hot_cold import HotColdEngine
from semibandit.engines.layers.places import COLD
from semibandit.engines.layers.remembered_oracle import RememberedOracle
from semibandit.engines.layers.worth import LayersWorth
from semibandit.engines.resolve.oracle import OracleEngine, resolve_engine
from semibandit.errors import ParameterError
from semibandit.matroids import Graphic, Linear, Matroid, Partition, Transversal, Uniform
from semibandit.testing import check_engine
from support.random_matroids import RANDOM
from support.seeds import seeds

VALUES = [(0.0, 1.0), (0.5,), (float("nan"),), (0.0, 0.5, 1.0)]


def layered(matroid: Matroid, records: Any = None, reserve: int = 3) -> HotColdEngine:
    """An engine that uses layers even where they do not pay."""
    engine = HotColdEngine(matroid, records, reserve=reserve)
    engine._worth.may_skip = False
    return engine


class Oracle(Matroid):
    """A matroid known by its independence test only; counts how often it is asked."""

    def __init__(self, n_arms: int, independent: Any) -> None:
        super().__init__(n_arms)
        self.independent = independent
        self.asked = [0]

    def _is_independent(self, arms: Any) -> bool:
        self.asked[0] += 1
        answer = bool(self.independent(arms.tolist()))
        arms[:] = -1  # what it is handed is its own
        return answer


def partition_oracle(n_groups: int, n_arms: int, capacity: int) -> Oracle:
    """Arms k, k + n_groups, .. form a group."""

    def independent(arms: list[int]) -> bool:
        used = [0] * n_groups
        for arm in arms:
            used[arm % n_groups] += 1
        return max(used) <= capacity

    return Oracle(n_arms, independent)


@pytest.mark.thin
@pytest.mark.parametrize("kind", sorted(RANDOM))
@pytest.mark.parametrize("seed", seeds(6, 12))
def test_every_class_with_every_operation(kind, seed):
    rng = np.random.default_rng(500 + seed)
    for size in (1, 3, 6, 12):
        matroid, independent = RANDOM[kind](rng, size)
        for tested in (matroid, Oracle(size, independent)):
            check_engine(
                partial(HotColdEngine if seed % 6 == 5 else layered, reserve=seed % 4),
                tested,
                operations=30,
                seed=seed,
                moving_clock=seed % 3 == 0,
                values=VALUES[seed % len(VALUES)],
            )


def lockstep(fast: Any, slow: Any, rounds: int, seed: int, check_every: int = 0) -> None:
    """Rounds of CUCB with partial and late feedback, a clock that stands mostly, exclusions, deletions, insertions."""
    rng = np.random.default_rng(seed)
    n = fast.n_arms
    means = rng.random(n)
    for step in range(rounds):
        if rng.random() < 0.03:
            lam = fast.lam + 0.05
            for engine in (fast, slow):
                engine.advance(lam)
        arms = fast.base()
        np.testing.assert_array_equal(arms, slow.base())
        if check_every and step % check_every == 0:
            fast._check()
        what = rng.random()
        if what < 0.05:
            out = rng.integers(0, n, n // 3)
            np.testing.assert_array_equal(fast.base_excluding(out), slow.base_excluding(out))
        elif what < 0.08:
            gone = rng.permutation(np.setdiff1d(np.arange(n), fast.deleted))[: n // 10]
            for engine in (fast, slow):
                engine.delete(gone)
        elif what < 0.11 and len(fast.deleted):
            back = fast.deleted[::2]
            for engine in (fast, slow):
                engine.insert(back)
        elif what < 0.2:
            arms = rng.integers(0, n, 6)
        elif what < 0.3:
            arms = arms[::2].copy()
        rewards = (rng.random(len(arms)) < means[arms]).astype(np.float64)
        for engine in (fast, slow):
            assert engine.observe(arms, rewards, 0.0, 1.0) == 0


def medium(kind: str, rng: np.random.Generator) -> Matroid:
    if kind == "graphic":
        return Graphic(rng.integers(0, 20, (300, 2)))
    if kind == "transversal":
        return Transversal([rng.integers(0, 15, 3).tolist() for _ in range(300)])
    if kind == "linear":
        return Linear(rng.integers(-2, 3, (300, 8)))
    if kind == "uniform":
        return Uniform(300, 10)
    return partition_oracle(7, 300, 2)


@pytest.mark.thin
@pytest.mark.parametrize("kind", ["graphic", "transversal", "linear", "uniform", "oracle"])
@pytest.mark.parametrize("reserve", [0, 1, 4])
def test_medium_instances_in_lockstep(kind, reserve):
    matroid = medium(kind, np.random.default_rng(reserve))
    for seed in range(3):
        make = layered if seed else HotColdEngine
        lockstep(make(matroid, reserve=reserve), resolve_engine(matroid), 150, seed, check_every=10)


@pytest.mark.parametrize("rounds", [1500, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_long_run(rounds):
    matroid = Linear(np.random.default_rng(0).integers(-3, 4, (2000, 10)), field=10007)
    fast, slow = layered(matroid), OracleEngine(matroid)
    lockstep(fast, slow, rounds, seed=1)
    fast._check()
    assert fast.epochs < rounds / 2


def steady(engine: HotColdEngine, rounds: int, rivals: int, pulls: float = 100.0) -> list[int]:
    """Calls a round once every arm was played `pulls` times; arms from `rivals` on have no chance."""
    rng = np.random.default_rng(0)
    means = np.full(engine.n_arms, 0.01)
    means[:rivals] = np.round(0.1 + 0.9 * rng.random(rivals), 2)
    engine.records["count"], engine.records["total"] = pulls, pulls * means
    engine.set_weights(np.arange(engine.n_arms), means, 1.0 / np.sqrt(pulls))
    engine.advance(1.0)
    calls = []
    for _ in range(rounds):
        arms = engine.base()
        calls.append(engine.last_round_calls)
        engine.observe(arms, (rng.random(len(arms)) < means[arms]).astype(np.float64), 0.0, 1.0)
    return calls


@pytest.mark.parametrize("kind", ["oracle", "linear"])
def test_calls_of_a_round_do_not_grow_with_the_number_of_arms(kind):
    vectors = np.random.default_rng(1).integers(0, 101, (8000, 12))
    calls = []
    for n in (400, 8000):
        matroid = partition_oracle(10, n, 2) if kind == "oracle" else Linear(vectors[:n], field=101)
        engine = layered(matroid)
        calls.append(steady(engine, 200, rivals=400))
        assert engine.oracle_calls == sum(calls[-1]) + engine.epoch_calls
        assert max(calls[-1]) <= (engine.reserve + 1) * matroid.rank + engine._layers.most_hot
    assert calls[0] == calls[1]
    assert 0 < np.mean(calls[0]) < 80


def test_calls_are_those_the_oracle_saw():
    matroid = partition_oracle(5, 60, 2)
    assert matroid.rank == 10 and len(matroid.loops) == 0
    engine = HotColdEngine(matroid)
    before = matroid.asked[0]
    steady(engine, 100, rivals=60)
    assert engine.oracle_calls == matroid.asked[0] - before
    assert 0 < engine.epoch_calls < engine.oracle_calls


def test_a_quiet_round_hardly_asks_the_oracle():
    """Facts once learnt are not asked for again: far fewer calls than the 20 that show a base to be independent."""
    engine = HotColdEngine(partition_oracle(10, 1000, 2))
    calls = steady(engine, 300, rivals=1000, pulls=1e6)
    assert np.mean(calls[20:]) < 8
    base = engine.base()
    for _ in range(3):
        engine.touch(base)
        assert np.array_equal(engine.base(), base)
    assert engine.last_round_calls == 0


@pytest.mark.parametrize("kind", sorted(RANDOM))
@pytest.mark.parametrize("limit", [0, 4096])
def test_remembered_greedy_equals_greedy(kind, limit):
    rng = np.random.default_rng(3)
    for size in (1, 4, 9, 13):
        matroid, independent = RANDOM[kind](rng, size)
        memory = RememberedOracle(Oracle(size, independent), limit=limit)
        weight = rng.random(size)
        known: list[int] = []
        for _ in range(25):
            arms = np.flatnonzero(rng.random(size) < 0.9)
            order = arms[np.lexsort((arms, -weight[arms]))]
            before = memory.calls
            known = memory.greedy(order.tolist(), known)
            assert known == matroid._greedy(order).tolist()
            assert memory.calls - before <= len(order) + 6 * matroid.rank
            if limit:
                before = memory.calls
                assert memory.greedy(order.tolist(), known) == known
                assert memory.calls == before
            weight[rng.integers(size, size=3)] = rng.random(3)
        assert memory.memory() >= 0


def test_an_epoch_begins_when_layers_are_used_up_or_too_many_arms_are_hot():
    engine = layered(Uniform(100, 2), reserve=1)
    engine.set_weights(np.arange(100), np.linspace(1.0, 0.0, 100))
    assert engine.base().tolist() == [0, 1] and engine.epochs == 1
    engine.set_weight(0, 0.995)
    engine.set_weight(1, -1.0)
    assert engine.base().tolist() == [0, 2] and engine.epochs == 1
    assert [layer.tolist() for layer in engine._layers.members] == [[2, 3]]
    engine.set_weight(2, -1.0)
    assert engine.base().tolist() == [0, 3] and engine.epochs == 1
    assert [layer.tolist() for layer in engine._layers.members] == [[2, 3], [4, 5]]
    engine.set_weight(5, -1.0)
    assert engine.base().tolist() == [0, 3] and engine.epochs == 2
    engine.touch(np.arange(100))
    assert engine._places.n_hot > engine._layers.most_hot
    assert engine.base().tolist() == [0, 3] and engine.epochs == 3
    engine.advance(0.5)
    engine.base()
    assert engine.epochs == 4 and (engine._places.state.place == COLD).all()


@pytest.mark.parametrize("kind", ["built-in", "oracle"])
def test_rare_arms_far_down_the_order_are_found(kind):
    """Only the 40 lightest arms can fill the last place of a base: layers must look at the whole order."""
    groups = np.repeat([0, 1], [460, 40])
    matroid: Matroid = Partition(groups, [2, 1])
    if kind == "oracle":
        matroid = Oracle(
            500, lambda arms: sum(a < 460 for a in arms) <= 2 and sum(a >= 460 for a in arms) <= 1
        )
    fast, slow = layered(matroid, reserve=6), OracleEngine(matroid)
    for engine in (fast, slow):
        engine.set_weights(np.arange(500), np.linspace(1.0, 0.0, 500))
    rng = np.random.default_rng(0)
    for _ in range(300):
        base = fast.base()
        assert np.array_equal(base, slow.base())
        arms = base if rng.random() < 0.8 else rng.integers(0, 500, 30)
        alpha = rng.random(len(arms)) * np.where(arms < 460, 1.0, 0.05)
        for engine in (fast, slow):
            engine.set_weights(arms, alpha)
    fast._check()
    assert fast.epochs < 150


def test_excluding_cold_arms_heats_nothing():
    rng = np.random.default_rng(0)
    engine = HotColdEngine(Uniform(2000, 5))
    engine.set_weights(np.arange(2000), rng.random(2000))
    engine.base()
    engine.set_weight(0, 0.0)
    engine.base()
    hot, epochs = engine._places.n_hot, engine.epochs
    lightest = np.argsort(engine.records["alpha"])[:1500]
    for _ in range(5):
        engine.base_excluding(lightest)
    assert (engine._places.n_hot, engine.epochs) == (hot, epochs)


def test_layers_are_given_up_where_they_do_not_pay_and_tried_again():
    """Few arms that all change: a full greedy each round. Then only the base changes: layers again."""
    engine = HotColdEngine(Uniform(40, 5), reserve=1)
    rng = np.random.default_rng(0)
    for _ in range(300):
        engine.set_weights(engine.base(), rng.random())
    busy = engine.epochs
    assert busy > 100
    engine.set_weights(np.arange(5), 5.0)
    for step in range(300):
        engine.set_weights(np.arange(5), 5.0 + 0.001 * step)
        assert engine.base().tolist() == [0, 1, 2, 3, 4]
    assert engine.epochs - busy < 150


def test_layers_that_do_not_pay_are_tried_more_and_more_seldom():
    def epoch(rounds: int, calls: int) -> int:
        for _ in range(rounds):
            worth.count_round()
        worth.end_epoch(calls, n_layers=1, n_sorted=100.0)
        worth.begin_epoch(calls, full_calls=10)
        return worth.skip

    worth = LayersWorth(test_cost=1.0)
    assert epoch(0, 10) == 0
    # Ten tests and a layer in a round, for which a full greedy would have made ten tests.
    skips = []
    calls = 10
    for _ in range(8):
        calls += 10
        skips.append(epoch(1, calls))
        for left in range(skips[-1] - 1, -1, -1):
            assert epoch(0, calls) == left
    assert skips == [1, 3, 7, 15, 31, 63, 64, 64]
    # A long epoch in which hardly anything was tested: layers pay, and the memory of bad ones is gone.
    assert epoch(100, calls + 20) == 0
    assert epoch(1, calls + 40) == 1
    worth.skip, worth.may_skip = 0, False
    assert epoch(1, calls + 1000) == 0


def test_nothing_is_asked_when_nothing_changed():
    matroid = partition_oracle(4, 40, 1)
    engine = HotColdEngine(matroid)
    first = engine.base()
    calls = engine.oracle_calls
    first[:] = -1
    assert engine.base().tolist() == [0, 1, 2, 3]
    assert engine.oracle_calls == calls and engine.last_round_calls == 0


def test_parameters_are_checked():
    for bad in (-1, 1.5, True):
        with pytest.raises(ParameterError, match="reserve"):
            HotColdEngine(Uniform(3, 1), new_records(3), reserve=bad)
