"""The laminar kinetic engine in lockstep with re-solving: equal bases, ties included, after every action."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from semibandit.compiled.lanes import ABSENT
from semibandit.engines.kinetic.engine import KineticEngine
from semibandit.engines.laminar.engine import LaminarKineticEngine
from semibandit.engines.laminar.families import binding_families
from semibandit.engines.laminar.rounds import LaminarKineticState
from semibandit.engines.laminar.tree import _play_nodes, _play_slots
from semibandit.engines.resolve.oracle import resolve_engine
from semibandit.errors import ArmError, ClockError, ParameterError
from semibandit.matroids import Laminar, Partition, Uniform
from support.seeds import seeds

Families = list[tuple[list[int], int]]


def random_families(rng: np.random.Generator, n_arms: int, width: int = 3, loops: float = 0.05) -> Families:
    """Nested families over shuffled arms, of random depth, some of capacity 0, some that bind nothing."""
    arms = rng.permutation(n_arms)
    families: Families = []
    todo = [(0, n_arms)]
    if rng.random() < 0.5:
        families.append((arms.tolist(), int(rng.integers(1, n_arms + 1))))
    while todo:
        low, high = todo.pop()
        if high - low < 1:
            continue
        cuts = np.sort(rng.integers(low, high + 1, size=2 * int(rng.integers(0, width + 1))))
        for a, b in zip(cuts[::2], cuts[1::2]):
            if a < b < high or low < a < b:
                capacity = 0 if rng.random() < loops else int(rng.integers(1, min(b - a, 6) + 2))
                families.append((arms[a:b].tolist(), capacity))
                todo.append((int(a), int(b)))
    return families


def random_matroid(rng: np.random.Generator, n_arms: int, width: int = 3, loops: float = 0.05) -> Laminar:
    while True:
        matroid = Laminar(n_arms, random_families(rng, n_arms, width, loops))
        if matroid.rank > 0:
            return matroid


def chain(n_arms: int, step: int = 1) -> Laminar:
    """Families {0}, {0, 1}, {0, 1, 2}, ... with capacities that bind at every level."""
    return Laminar(n_arms, [(range(i + 1), max(1, (i + 1) // 2)) for i in range(0, n_arms, step)])


REWARDS = {
    "bernoulli": lambda rng, n: rng.integers(0, 2, size=n).astype(np.float64),
    "equal": lambda rng, n: np.full(n, 0.5),
    "coarse": lambda rng, n: rng.integers(0, 3, size=n) / 2.0,
    "real": lambda rng, n: rng.random(n),
}


class Lockstep:
    """The engine under test and `resolve`, given the same actions and compared after each."""

    def __init__(
        self, matroid: Laminar, seed: int, rewards: str, fanout: int = 16, check: bool = True
    ) -> None:
        self.matroid = matroid
        self.rng = np.random.default_rng(seed)
        self.rewards = REWARDS[rewards]
        self.fast = LaminarKineticEngine(matroid, fanout=fanout)
        self.slow = resolve_engine(matroid)
        self.check = check
        self.late: list[tuple[Any, Any]] = []
        self.compare()

    def compare(self) -> Any:
        base = self.fast.base()
        np.testing.assert_array_equal(base, self.slow.base())
        if self.check:
            self.fast._check()
        return base

    def both(self, method: str, *args: Any) -> Any:
        got, expected = (getattr(engine, method)(*args) for engine in (self.fast, self.slow))
        np.testing.assert_equal(got, expected)
        if self.check:
            self.fast._check()
        return got

    def some(self, n: int) -> Any:
        return self.rng.choice(self.matroid.n_arms, size=min(n, self.matroid.n_arms), replace=False)

    def feed(self, arms: Any, rewards: Any) -> None:
        assert self.both("observe", arms, rewards, 0.0, 1.0) == 0

    def advance(self) -> None:
        step = self.rng.choice([0.0, 1e-12, 1e-3, 0.1, 2.0], p=[0.2, 0.1, 0.4, 0.28, 0.02])
        self.both("advance", self.fast.lam + float(step))

    def play(self) -> None:
        """One round: feedback of all arms, or of a part now and the rest at some other time."""
        self.advance()
        arms = self.compare()
        rewards = self.rewards(self.rng, len(arms))
        if self.rng.random() < 0.3:
            now = self.rng.random(len(arms)) < 0.5
            self.late.append((arms[~now].copy(), rewards[~now].copy()))
            arms, rewards = arms[now].copy(), rewards[now].copy()
        self.feed(arms, rewards)

    def act(self) -> None:
        rng, k = self.rng, self.matroid.n_arms
        action = rng.choice(["play", "late", "set", "many", "delete", "insert", "exclude"], p=ACTIONS)
        if action == "play":
            self.play()
        elif action == "late" and self.late:
            self.feed(*self.late.pop(int(rng.integers(len(self.late)))))
        elif action == "set":
            arms = self.some(int(rng.integers(1, 4)))
            alpha = rng.choice([-1.0, 0.0, 0.25, 0.5, 1.0, 3.0, np.inf, rng.normal()], size=len(arms))
            beta = rng.choice([0.0, 0.5, 1.0, rng.random()], size=len(arms))
            self.both("set_weights", arms, alpha, np.where(np.isinf(alpha), 0.0, beta))
        elif action == "many":
            arms = rng.integers(0, k, size=k // 16 + 70)
            self.feed(arms, self.rewards(rng, len(arms)))
        elif action == "delete":
            present = np.setdiff1d(np.arange(k), self.fast.deleted)
            if len(present):
                n = int(rng.integers(1, max(2, len(present) // 3)))
                self.both("delete", rng.choice(present, size=n, replace=False))
        elif action == "insert":
            gone = self.fast.deleted
            if len(gone):
                self.both("insert", rng.choice(gone, size=int(rng.integers(1, len(gone) + 1)), replace=False))
        elif action == "exclude":
            self.both("base_excluding", self.some(int(rng.integers(0, k + 1))))
        self.compare()


ACTIONS = [0.6, 0.08, 0.1, 0.03, 0.05, 0.07, 0.07]
KINDS = sorted(REWARDS)


@pytest.mark.thin
@pytest.mark.bounds
@pytest.mark.parametrize("seed", seeds(110, 220))
def test_small_instances_with_every_invariant(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_arms = int(rng.integers(1, 30))
    matroid = random_matroid(rng, n_arms, loops=0.15 if seed % 5 == 0 else 0.03)
    run = Lockstep(matroid, seed, KINDS[seed % 4], fanout=[2, 4, 16][seed % 3])
    for _ in range(16):
        run.act()


@pytest.mark.thin(1)
@pytest.mark.bounds
@pytest.mark.parametrize("seed", seeds(45, 90))
def test_medium_instances(seed: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    matroid = random_matroid(rng, int(rng.integers(60, 700)), width=[2, 4, 8][seed % 3])
    run = Lockstep(matroid, seed, KINDS[seed % 4], fanout=[2, 8, 16][seed // 3 % 3], check=False)
    for i in range(60):
        run.act()
        if i % 20 == 19:
            run.fast._check()


SHAPES = {
    "one arm": Laminar(1, []),
    "one arm, capacity": Laminar(1, [([0], 1)]),
    "free: D = K": Laminar(7, []),
    "families that bind nothing: D = K": Laminar(7, [(range(7), 7), ([1, 2], 2), ([5], 3)]),
    "all but one are loops": Laminar(6, [([0, 1, 2, 3, 4], 0), ([1, 2], 1)]),
    "loops inside a full family": Laminar(9, [(range(8), 3), ([2, 3, 4], 0), ([3], 1), ([5, 6], 1)]),
    "chain": chain(40),
    "deep chain": chain(600, step=3),
    "one arm directly in each level": Laminar(9, [(range(i, 9), 5 - i // 2) for i in range(8)]),
    "whole set twice": Laminar(8, [(range(8), 5), (range(8), 3), ([0, 7], 1)]),
    "many tiny families under a cap": Laminar(
        200, [([2 * i, 2 * i + 1], 1) for i in range(100)] + [(range(200), 9)]
    ),
    "many tiny families": Laminar(200, [([i, 199 - i], 1) for i in range(100)]),
}


@pytest.mark.thin
@pytest.mark.bounds
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_special_shapes(name: str, kind: str) -> None:
    matroid = SHAPES[name]
    run = Lockstep(matroid, 5, kind, fanout=4 if kind in ("bernoulli", "real") else 16)
    for _ in range(30 if matroid.n_arms < 100 else 8):
        run.act()


@pytest.mark.parametrize("fanout", [2, 16])
def test_uniform_and_partition_as_laminar_match_the_kinetic_engine(fanout: int) -> None:
    rng = np.random.default_rng(3)
    groups = rng.integers(0, 20, size=500)
    capacities = rng.integers(1, 6, size=20)
    families = [(np.flatnonzero(groups == g), int(capacities[g])) for g in range(20)]
    for flat, nested in (
        (Uniform(500, 12), Laminar(500, [(range(500), 12)])),
        (Partition(groups, capacities), Laminar(500, families)),
    ):
        one, other = KineticEngine(flat, fanout=fanout), LaminarKineticEngine(nested, fanout=fanout)
        for t in range(1, 400):
            lam = float(np.sqrt(1.5 * np.log(t)))
            one.advance(lam)
            other.advance(lam)
            arms = one.base()
            np.testing.assert_array_equal(arms, other.base())
            rewards = (rng.random(len(arms)) < arms / 500).astype(np.float64)
            assert one.observe(arms, rewards, 0.0, 1.0) == other.observe(arms, rewards, 0.0, 1.0) == 0


def long_matroid() -> Laminar:
    """2,000 arms, three levels: a cap on all, on twenty blocks, on groups of ten; the last arms only capped."""
    families = [(range(2000), 40)]
    families += [(range(100 * i, 100 * i + 100), 3 + i % 4) for i in range(18)]
    families += [(range(10 * i, 10 * i + 10), 1 + i % 3) for i in range(150)]
    return Laminar(2000, families)


def long_run(rounds: int) -> None:
    rng = np.random.default_rng(11)
    matroid = long_matroid()
    means = rng.choice([0.2, 0.4, 0.5, 0.6], size=2000)
    fast, slow = LaminarKineticEngine(matroid), resolve_engine(matroid)
    for t in range(1, rounds + 1):
        lam = float(np.sqrt(1.5 * np.log(t)))
        fast.advance(lam)
        slow.advance(lam)
        arms = fast.base()
        expected = slow.base()
        if not np.array_equal(arms, expected):
            raise AssertionError(f"round {t}: {arms} in place of {expected}")
        rewards = (rng.random(len(arms)) < means[arms]).astype(np.float64)
        fast.observe(arms, rewards, 0.0, 1.0)
        slow.observe(arms, rewards, 0.0, 1.0)
    fast._check()


def test_long_run() -> None:
    long_run(5_000)


@pytest.mark.slow
def test_longer_run() -> None:
    long_run(100_000)


def test_the_work_of_a_round_is_what_changed() -> None:
    """The pass makes as few exchanges as possible: one for each arm that differs."""
    rng = np.random.default_rng(4)
    engine = LaminarKineticEngine(long_matroid())
    engine.set_weights(np.arange(2000), rng.random(2000))
    before = engine.base()
    for _ in range(50):
        arms = np.union1d(rng.choice(2000, size=30, replace=False), rng.choice(before, size=10))
        engine.set_weights(arms, rng.random(len(arms)))
        came = engine._state.answer.came
        came[:] = -1
        after = engine.base()
        np.testing.assert_array_equal(came[came >= 0], np.setdiff1d(after, before))
        before = after


def scalar_play(keys: Any, order: Any, fails: Any, lam: float) -> tuple[int, float]:
    """What a node must show, by plain arithmetic: the winner's place and how long that holds."""
    weight = keys[:, 0] + lam * keys[:, 1]
    best = int(np.lexsort((order, -weight))[0])
    alpha, beta = keys[best]
    fail = float(fails.min())
    if alpha in (np.inf, ABSENT):
        return best, fail
    for i, (a, b) in enumerate(keys):
        gap, slope = alpha - a, b - beta
        size_alpha, size_beta = 2.0**-49 * (abs(alpha) + abs(a)), 2.0**-49 * (beta + b)
        if i == best or a == ABSENT or (slope == 0.0 and gap >= 0.0 and order[best] < order[i]):
            continue
        if gap - lam * slope <= size_alpha + lam * size_beta:
            fail = min(fail, lam)
        elif slope + size_beta > 0.0:
            fail = min(fail, max((gap - size_alpha) / (slope + size_beta) * (1.0 - 2.0**-45), lam))
    return best, fail


def test_vector_play_equals_scalar_play_to_the_bit() -> None:
    rng = np.random.default_rng(6)
    arm_of = np.arange(100, 132)
    for _ in range(1500):
        keys = np.column_stack(
            [rng.choice([0.0, 0.5, 0.5 + 1e-16, rng.random()], 32), rng.choice([0.25, 0.5, rng.random()], 32)]
        )
        keys[rng.random(32) < rng.choice([0.0, 0.1, 0.9]), 0] = ABSENT
        if rng.random() < 0.2:
            keys[rng.random(32) < 0.2] = np.inf, 0.0
        lam = float(rng.choice([0.0, 1.0, 3.7, rng.random()]))
        fails = rng.choice([np.inf, lam + 1.0, lam + rng.random()], 32)
        ids = rng.permutation(100)[:32].astype(np.float64)
        lo = int(rng.integers(16, 32))
        hi = int(rng.integers(lo + 1, 33))
        part = slice(lo, hi)
        leaf = keys.reshape(2, 16, 2).transpose(0, 2, 1).copy()
        node = np.zeros((3, 4, 16))
        node[:2] = np.column_stack([keys, fails, ids]).reshape(2, 16, 4).transpose(0, 2, 1)
        _play_nodes(node, lo, hi, 40, lam)
        best, fail = scalar_play(keys[part], ids[part], fails[part], lam)
        np.testing.assert_array_equal(node[2, :, 8], [*keys[lo + best], fail, ids[lo + best]])
        _play_slots(leaf, arm_of, lo, hi, node, 41, lam)
        best, fail = scalar_play(keys[part], np.arange(hi - lo), np.array([np.inf]), lam)
        np.testing.assert_array_equal(node[2, :, 9], [*keys[lo + best], fail, arm_of[lo + best]])


def test_families_that_bind_nothing_are_dropped_and_nothing_else() -> None:
    rng = np.random.default_rng(21)
    dropped = 0
    for _ in range(60):
        n = int(rng.integers(1, 14))
        matroid = random_matroid(rng, n)
        home, parent, capacity = binding_families(matroid)
        dropped += len(matroid._parent) - len(parent)
        members: list[list[int]] = [[] for _ in parent]
        for arm in range(n):
            f = home[arm]
            while f >= 0:
                members[f].append(arm)
                f = parent[f]
        # Along a branch the capacities fall, and a family holds more than it may.
        outer = parent[parent >= 0]
        assert (capacity[parent >= 0] < capacity[outer]).all()
        assert all(members)
        for _ in range(40):
            some = np.flatnonzero(rng.random(n) < rng.random())
            fits = all(np.isin(some, m).sum() <= c for m, c in zip(members, capacity, strict=True))
            assert fits == matroid.is_independent(some)
    assert dropped > 0


def test_memory_is_linear_in_arms_and_families() -> None:
    flat = LaminarKineticEngine(Laminar(20_000, [(range(20_000), 10)]))
    assert flat.memory() <= 70 * 20_000
    deep = LaminarKineticEngine(chain(2_000))
    assert deep.memory() <= 500 * 2_000


def test_bad_input_is_named_and_changes_nothing() -> None:
    with pytest.raises(TypeError, match="laminar"):
        LaminarKineticEngine(Uniform(4, 2))
    for fanout in (0, 1, 3, 12):
        with pytest.raises(ParameterError, match="fanout"):
            LaminarKineticEngine(chain(5), fanout=fanout)
    engine = LaminarKineticEngine(chain(8))
    engine.advance(1.0)
    base = engine.base()
    with pytest.raises(ClockError, match="nondecreasing"):
        engine.advance(0.5)
    with pytest.raises(ParameterError, match="nonnegative"):
        engine.set_weight(0, 1.0, -0.5)
    engine.delete([0])
    with pytest.raises(ArmError, match="deleted already"):
        engine.delete([0])
    engine.insert([0])
    assert engine.observe(np.array([1, 2]), np.array([0.5, 1.5]), 0.0, 1.0) != 0
    np.testing.assert_array_equal(engine.base(), base)
    engine._check()


def test_in_the_compiled_loop() -> None:
    """The state is known to the generic kernels: same arms as round by round in Python."""
    from semibandit.compiled.handle import by_handle
    from semibandit.engines.kernels import observe_entry, select_entry, touch_entry

    matroid = random_matroid(np.random.default_rng(8), 60)
    one, other = LaminarKineticEngine(matroid), LaminarKineticEngine(matroid)
    assert isinstance(one._state, LaminarKineticState)
    select, observe, touch = (
        by_handle(entry, LaminarKineticState) for entry in (select_entry, observe_entry, touch_entry)
    )
    out = np.empty(matroid.rank, dtype=np.int64)
    for t in range(1, 60):
        lam = float(np.log(t))
        n = select(one._handle, lam, out)
        other.advance(lam)
        np.testing.assert_array_equal(out[:n], other.base())
        rewards = np.arange(n) / n
        assert observe(one._handle, out[:n].copy(), rewards, 0.0, 1.0) == 0
        other.observe(out[:n].copy(), rewards, 0.0, 1.0)
    touch(one._handle, np.arange(60))
    one._check()
