"""The transversal engines in lockstep with re-solving: equal bases, ties included, after every action."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from semibandit.compiled.handle import by_handle, make_handle
from semibandit.compiled.jit import kernel
from semibandit.compiled.words import lowest_bit
from semibandit.engines import resolve_engine
from semibandit.engines.switch import CHANGES, IN_USE
from semibandit.engines.transversal.bits import all_of, contains, discard, empty_sets, insert
from semibandit.engines.transversal.challengers import MOST_SEARCHES
from semibandit.engines.transversal.engine import TransversalAdaptiveEngine, TransversalChallengerEngine
from semibandit.engines.transversal.state import SEARCHES, SOLVES, BestOutsiders, TopTournament
from semibandit.engines.transversal.top_tournament import play_top, replay_top
from semibandit.environments import Bernoulli
from semibandit.matroids import Transversal, Uniform
from semibandit.testing import check_engine
from support.engine_loop import EngineLoop
from support.random_matroids import random_transversal

pytestmark = pytest.mark.bounds

VALUES = [(0.0, 1.0), (0.5,), (float("nan"),), (0.0, 0.5, 1.0)]


def fluttering(matroid: Any, records: Any = None) -> TransversalAdaptiveEngine:
    """An adaptive engine for which changing solvers is free, so that it does so all the time."""
    engine = TransversalAdaptiveEngine(matroid, records)
    costs = engine._state.costs._replace(
        there_and_back=0.0,
        play_anew=0.0,
        solve=500.0 * (matroid.n_arms % 3),
        greedy_round=300.0 * (1 + matroid.n_arms % 4),
    )
    engine._run_on(engine._state._replace(costs=costs))
    engine._state.switch[IN_USE] = matroid.n_arms % 2
    return engine


MAKERS = {
    "challenger": TransversalChallengerEngine,
    "adaptive": TransversalAdaptiveEngine,
    "fluttering": fluttering,
}


@pytest.mark.thin
@pytest.mark.parametrize("maker", sorted(MAKERS))
@pytest.mark.parametrize("seed", range(24))
def test_small_instances_with_every_operation(maker, seed):
    rng = np.random.default_rng(100 + seed)
    for size in (1, 2, 4, 7, 13):
        matroid, _ = random_transversal(rng, size)
        check_engine(
            MAKERS[maker],
            matroid,
            operations=30,
            seed=seed,
            moving_clock=seed % 3 == 0,
            values=VALUES[seed % len(VALUES)],
        )


def random_instance(rng: np.random.Generator, n_arms: int, n_right: int) -> Transversal:
    """Degrees 0 to 5 with repeats, some right nodes much more popular than others."""
    popular = rng.random(n_right) ** 3
    popular /= popular.sum()
    neighbours = [rng.choice(n_right, size=rng.integers(0, 6), p=popular).tolist() for _ in range(n_arms)]
    neighbours[0] = [0]
    return Transversal(neighbours, n_right)


class Lockstep:
    """An engine and `resolve` with the same history; `play` and `disturb` compare them after each step."""

    def __init__(self, make: Any, matroid: Transversal, seed: int) -> None:
        self.matroid, self.rng = matroid, np.random.default_rng(seed)
        self.fast, self.slow = make(matroid), resolve_engine(matroid)
        self.late: list[Any] = []
        self.kind = seed % 3

    def both(self, method: str, *args: Any) -> Any:
        got, expected = (getattr(engine, method)(*args) for engine in (self.fast, self.slow))
        np.testing.assert_equal(got, expected)
        return got

    def rewards(self, n: int) -> Any:
        if self.kind == 0:
            return self.rng.integers(0, 2, n).astype(np.float64)
        return np.full(n, 0.5) if self.kind == 1 else self.rng.random(n)

    def play(self) -> None:
        arms = self.both("base")
        heard = self.rng.random(len(arms)) < self.rng.choice([1.0, 0.6])
        self.late.extend(arms[~heard].tolist())
        self.both("observe", arms[heard], self.rewards(int(heard.sum())), 0.0, 1.0)

    def disturb(self) -> None:
        rng, n = self.rng, self.matroid.n_arms
        what = int(rng.integers(7))
        if what == 0:
            self.both("advance", self.fast.lam + float(rng.choice([0.01, 0.2])))
        elif what == 1 and self.late:
            arms = np.array(self.late, dtype=np.int64)
            self.late = []
            self.both("observe", arms, self.rewards(len(arms)), 0.0, 1.0)
        elif what == 2:
            gone = self.fast.deleted
            self.both(
                "delete", rng.permutation(np.setdiff1d(np.arange(n), gone))[: rng.integers(1, n // 4 + 2)]
            )
        elif what == 3 and len(self.fast.deleted):
            gone = rng.permutation(self.fast.deleted)
            self.both("insert", gone[: rng.integers(1, len(gone) + 1)])
        elif what == 4:
            self.both("base_excluding", rng.integers(0, n, rng.integers(0, n // 2 + 2)))
        elif what == 5:
            arms = rng.choice(n, size=int(rng.integers(1, min(n, 8) + 1)), replace=False)
            alpha = rng.choice([-1.0, 0.0, 0.5, 1.0, 2.0, np.inf], size=len(arms))
            self.both("set_weights", arms, alpha, np.where(np.isinf(alpha), 0.0, 0.5))
        else:
            arms = rng.integers(0, n, rng.integers(1, n + 20))
            self.both("observe", arms, self.rewards(len(arms)), 0.0, 1.0)
        self.both("base")


@pytest.mark.thin(1)
@pytest.mark.parametrize("maker", sorted(MAKERS))
@pytest.mark.parametrize("seed", range(12))
def test_medium_instances_in_lockstep(maker, seed):
    rng = np.random.default_rng(seed)
    n_right = [3, 20, 63, 64, 65, 130][seed % 6]
    matroid = random_instance(rng, int(rng.integers(n_right // 2 + 1, 6 * n_right)), n_right)
    game = Lockstep(MAKERS[maker], matroid, seed)
    for step in range(60):
        game.play()
        if rng.random() < 0.4:
            game.disturb()
        if step % 10 == 0:
            game.fast._check()


@pytest.mark.parametrize("maker", sorted(MAKERS))
def test_all_arms_are_the_base(maker):
    game = Lockstep(MAKERS[maker], Transversal([[k] for k in range(70)]), 0)
    for _ in range(10):
        game.play()
        game.disturb()
        game.fast._check()


def test_both_ways_of_repair_are_used():
    matroid = random_instance(np.random.default_rng(5), 600, 80)
    game = Lockstep(TransversalChallengerEngine, matroid, 2)
    game.both("advance", 1.0)
    for _ in range(150):
        game.play()
    work = game.fast._challengers.work
    assert work[SOLVES] > 20 and work[SEARCHES] > 100
    assert matroid.rank > MOST_SEARCHES


def test_solvers_change_with_the_load():
    """Many exchanges at first, few later: greedy begins, the challengers take over and stay."""
    rng = np.random.default_rng(0)
    matroid = Transversal(np.argsort(rng.random((1000, 40)), axis=1)[:, :3])
    engine = TransversalAdaptiveEngine(matroid)
    assert engine.solver == "greedy"
    EngineLoop(engine, Bernoulli(matroid, rng.random(1000), seed=1)).rounds(20_000)
    assert engine.solver == "challengers"
    # A change costs about ten rounds of greedy: so few of them are nothing in 20,000 rounds.
    assert engine._state.switch[CHANGES] < 100
    # Played arms that fall below all others make every round a busy one.
    for step in range(100):
        arms = engine.base()
        engine.set_weights(arms, -1.0 - step - rng.random(len(arms)), 0.0)
    assert engine.solver == "greedy"
    engine._check()


@pytest.mark.parametrize(
    ("maker", "rounds"),
    [(name, 3000) for name in sorted(MAKERS)]
    + [pytest.param("adaptive", 100_000, marks=pytest.mark.slow)]
    + [pytest.param("challenger", 100_000, marks=pytest.mark.slow)],
)
def test_long_runs_play_the_same_arms(maker, rounds):
    rng = np.random.default_rng(8)
    matroid = Transversal(np.argsort(rng.random((2000, 50)), axis=1)[:, :4])
    means = rng.random(2000)
    expected = EngineLoop(resolve_engine(matroid), Bernoulli(matroid, means, seed=3)).rounds(rounds)
    engine = MAKERS[maker](matroid)
    np.testing.assert_array_equal(
        EngineLoop(engine, Bernoulli(matroid, means, seed=3)).rounds(rounds), expected
    )
    engine._check()


def test_a_quiet_round_touches_nothing():
    """With bounds in place, playing arms that stay well ahead costs no search."""
    matroid = Transversal([[r] for r in range(30)] * 4)
    engine = TransversalChallengerEngine(matroid)
    alpha = np.repeat([0.9, 0.3, 0.2, 0.1], 30)
    engine.set_weights(np.arange(120), alpha)
    base = engine.base()
    assert base.tolist() == list(range(30))
    before = engine._challengers.work.copy()
    for step in range(20):
        engine.set_weights(base, 0.9 - 0.02 * step)
        assert engine.base().tolist() == list(range(30))
    assert np.array_equal(engine._challengers.work[[SEARCHES, SOLVES]], before[[SEARCHES, SOLVES]])


def test_a_rising_outsider_enters_where_it_beats_the_lightest():
    """Arm 3 reaches the arms 0 and 1 along 3 - r1 - arm 1 - r0 - arm 0 and replaces the lighter one."""
    engine = TransversalChallengerEngine(Transversal([[0], [0, 1], [2], [1]]))
    engine.set_weights(np.arange(4), np.array([0.5, 0.7, 0.9, 0.1]))
    assert engine.base().tolist() == [0, 1, 2]
    engine.set_weight(3, 0.6)
    assert engine.base().tolist() == [1, 2, 3]
    engine._check()
    engine.set_weight(0, 0.6)
    assert engine.base().tolist() == [0, 1, 2]
    engine._check()


def test_large_changes_make_everything_anew():
    matroid = random_instance(np.random.default_rng(1), 200, 20)
    for make in (TransversalChallengerEngine, TransversalAdaptiveEngine):
        engine = make(matroid)
        engine.base()
        engine.touch(np.arange(200))
        assert engine._challengers.best_stale[0]
        engine.delete(np.arange(150))
        engine._check()
        assert engine.base().min() >= 150
        engine.delete(np.arange(150, 200))
        assert engine.base().tolist() == []
        assert (engine._challengers.matching.matched_arm < 0).all()
        engine.insert(np.arange(200))
        engine._check()
        assert np.array_equal(engine.base(), resolve_engine(matroid).base())


@pytest.mark.parametrize("maker", sorted(MAKERS))
def test_all_records_at_once(maker):
    """Records written by their owner, then one `touch_all`, with some arms away."""
    rng = np.random.default_rng(4)
    matroid = random_instance(rng, 150, 20)
    fast, slow = MAKERS[maker](matroid), resolve_engine(matroid)
    for step in range(8):
        alpha = rng.integers(0, 4, 150) / 4.0
        for engine in (fast, slow):
            engine.records["alpha"], engine.records["beta"] = alpha, 0.5
            engine.touch_all()
            if step % 2:
                engine.delete(np.arange(0, 150, 7))
        assert np.array_equal(fast.base(), slow.base())
        fast._check()
        if step % 2:
            for engine in (fast, slow):
                engine.insert(np.arange(0, 150, 7))


def test_much_feedback_at_once_is_not_worked_off_arm_by_arm():
    matroid = random_instance(np.random.default_rng(1), 200, 20)
    engine = TransversalChallengerEngine(matroid)
    engine.base()
    engine.observe(np.arange(20), np.full(20, 0.5), 0.0, 1.0)
    assert not engine._challengers.best_stale[0]
    engine.observe(np.arange(100), np.full(100, 0.5), 0.0, 1.0)
    assert engine._challengers.best_stale[0]


def test_other_matroids_are_refused():
    for make in (TransversalChallengerEngine, TransversalAdaptiveEngine):
        with pytest.raises(TypeError, match="transversal"):
            make(Uniform(3, 1))


@kernel
def _lowest(word):
    return lowest_bit(word)


def test_lowest_bit():
    for i in range(64):
        assert _lowest(np.int64(-1) << np.int64(i)) == i


@kernel
def _change_set(words, inserted, discarded):
    for i in inserted:
        insert(words, i)
    for i in discarded:
        discard(words, i)


@kernel
def _list_set(words, out):
    for i in range(out.shape[0]):
        out[i] = contains(words, i)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 130])
def test_sets_of_bits(n):
    rng = np.random.default_rng(n)
    words, expected, got = all_of(n), np.ones(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
    for _ in range(10):
        _list_set(words, got)
        assert np.array_equal(got, expected)
        inserted, discarded = rng.integers(0, n, 3), rng.integers(0, n, n // 2 + 1)
        _change_set(words, inserted, discarded)
        expected[inserted] = True
        expected[discarded] = False
    assert empty_sets(2, n).shape == (2, len(words))


@pytest.mark.parametrize("n_right", [1, 8, 9, 70])
def test_the_top_tournament_knows_the_heaviest_key(n_right):
    """Keys fall one after another, ties by arm, until all are -inf."""
    rng = np.random.default_rng(n_right)
    matroid = Transversal([rng.integers(0, n_right, 3).tolist() for _ in range(5 * n_right)], n_right)
    engine = TransversalChallengerEngine(matroid)
    engine.set_weights(np.arange(matroid.n_arms), rng.integers(0, 3, matroid.n_arms).astype(np.float64))
    engine.base()
    top, best = engine._challengers.top, engine._challengers.best
    handles = make_handle(top), make_handle(best)
    root = by_handle(play_top, TopTournament, BestOutsiders)(*handles)
    assert np.array_equal(top.weight, best.node_weight[:n_right])
    while True:
        winner = top.winner[root]
        keys = list(zip(-top.weight, top.arm, strict=True))
        assert keys[winner] == min(keys)
        if top.weight[winner] == -np.inf:
            break
        fallen = winner if rng.random() < 0.5 else rng.integers(n_right)
        top.weight[fallen] = rng.choice([top.weight[fallen] - 1.0, -np.inf])
        by_handle(replay_top, TopTournament)(handles[0], fallen)
