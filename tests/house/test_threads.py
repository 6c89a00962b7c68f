"""Objects that threads share: no call lost or counted twice, states whole, also after a fork and under spawn."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import semibandit as sb
from semibandit.data.instances import random_environment
from semibandit.engines import ENGINES, make_engine
from semibandit.locking import Guarded, bare, unguarded
from semibandit.policies.catalogue import POLICIES, build_policy

KINDS = ["uniform", "partition", "laminar", "graphic", "transversal"]
#: Policies that meet every class also in the fast run, and with bounds checks.
CHECKED = ("cucb", "cts", "kl-osm")


@pytest.fixture(autouse=True)
def restless() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(*tasks: Callable[[], Any], seconds: float = 60.0) -> None:
    """Run all tasks at once; the first error of one of them is raised here."""
    errors: list[BaseException] = []
    gate = threading.Barrier(len(tasks))

    def run(task: Callable[[], Any]) -> None:
        try:
            gate.wait(seconds)
            task()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(task,), daemon=True) for task in tasks]
    for thread in threads:
        thread.start()
    until = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    assert not any(thread.is_alive() for thread in threads), "some thread hangs"
    if errors:
        raise errors[0]


def small_matroid(kind: str, n_arms: int) -> Any:
    return random_environment("bernoulli", kind, n_arms, 12, seed=0).matroid


def policy_of(name: str, kind: str, n_arms: int = 60) -> Any:
    matroid = small_matroid(kind, n_arms)
    context = {"horizon": 1000, "means": np.linspace(0.1, 0.9, matroid.n_arms)}
    return build_policy(name, {}, matroid, context=context)


def play(policy: Any, rounds: int, seed: int, played: list[int]) -> None:
    rng = np.random.default_rng(seed)
    for i in range(rounds):
        arms = policy.select()
        assert policy.matroid.is_independent(arms) and len(arms) > 0
        policy.update(arms, rng.integers(0, 2, len(arms)).astype(float))
        played.append(len(arms))
        if i % 16 == 7:
            policy.select(exclude=[int(arms[0])])


def look(policy: Any, times: int) -> None:
    for _ in range(times):
        twin = policy.clone()
        assert twin.counts.sum() == twin.counts.sum()
        assert twin.select().size > 0
        assert policy.describe()["policy"] == policy.name
        again = pickle.loads(pickle.dumps(policy))
        # A whole number of rounds: plays and their feedback are calls of their own, each of which is whole.
        assert again.t >= twin.t - 1
        means = policy.means
        assert means.shape == (policy.n_arms,)


@pytest.mark.thin
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", POLICIES)
def test_threads_share_a_policy(name, kind):
    policy = policy_of(name, kind)
    rounds, played = (15, []) if name in ("fpl", "maub") else (60, [])  # type: tuple[int, list[int]]
    players = [lambda seed=seed: play(policy, rounds, seed, played) for seed in range(4)]
    together(*players, lambda: look(policy, 5))
    assert policy.t == 4 * (rounds + len(range(7, rounds, 16)))
    assert policy.counts.sum() == sum(played)
    engine = getattr(policy, "_engine", None)
    if engine is not None:
        engine._check()


def test_threads_delete_and_insert_while_others_play():
    policy = sb.CUCB(sb.Partition(np.arange(200) % 20, 1))

    def churn(arms: list[int]) -> None:
        for _ in range(40):
            policy.delete(arms)
            policy.insert(arms)

    played: list[int] = []
    together(
        lambda: play(policy, 150, 1, played),
        lambda: play(policy, 150, 2, played),
        lambda: churn([1, 50, 77]),
        lambda: churn([3, 4, 160]),
    )
    assert policy.counts.sum() == sum(played)
    policy._engine._check()


def decide_and_learn(policy: Any, rounds: int, seed: int) -> None:
    rng, late = np.random.default_rng(seed), []
    for _ in range(rounds):
        late.append(policy.decide())
        if len(late) > 3:
            one = late.pop(int(rng.integers(len(late))))
            policy.learn(one, rng.integers(0, 2, len(one.arms)).astype(float))
    for one in late:
        policy.drop(one.id)


@pytest.mark.thin(1)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.bounds] * (name in CHECKED)) for name in POLICIES]
)
def test_threads_churn_arms_while_others_decide(name, kind):
    """Arms are deleted, reset, inserted and given room for while decisions wait and copies are made."""
    policy = policy_of(name, kind, 40)
    rounds = 6 if name in ("fpl", "maub") else 16
    can = [method for method in ("delete", "insert", "grow") if hasattr(policy, method)]
    more = {"means": np.linspace(0.1, 0.9, policy.n_arms)} if name == "oracle" else {}

    def churn(arms: list[int]) -> None:
        for i in range(rounds):
            if "delete" in can:
                policy.delete(arms)
                if name != "fpl":
                    policy.reset(arms)
                policy.insert(arms)
            if "grow" in can and i % 8 == 3:
                policy.grow(policy.matroid, **more)

    decide_and_learn(policy, 5, 0)  # kernels that are still to be compiled are not waited for by threads
    churn([1, 2])
    together(
        lambda: decide_and_learn(policy, rounds, 1),
        lambda: decide_and_learn(policy, rounds, 2),
        lambda: churn([0, 7, 11]),
        lambda: churn([3, 4, 20]),
        lambda: look(policy, 2),
    )
    assert policy.waiting == 0
    assert policy.matroid.is_independent(policy.select())
    engine = getattr(policy, "_engine", None)
    if engine is not None:
        engine._check()


def test_threads_see_all_arms_of_a_million_once_each():
    """Every base of the first pass is of arms never seen, so a lost or doubled call would show."""
    policy = sb.CUCB(sb.Uniform(n_arms=40_000, rank=10))
    seen: list[np.ndarray[Any, Any]] = []
    lock = threading.Lock()

    def task() -> None:
        for _ in range(500):
            with lock:  # together they are one round
                arms = policy.select()
                policy.update(arms, np.zeros(10))
            seen.append(arms)

    together(*[task] * 4)
    assert len(np.unique(np.concatenate(seen))) == 20_000


@pytest.mark.thin
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", list(ENGINES))
def test_threads_share_an_engine(name, kind):
    matroid = small_matroid(kind, 60)
    if ENGINES[name].way(matroid) is None:
        pytest.skip("made for other matroids")
    clock = "exact" if "exact" in ENGINES[name].way(matroid).clocks else "staircase"
    engine, _ = make_engine(matroid, None, name, clock)
    n = matroid.n_arms
    engine.set_weights(np.arange(n), np.linspace(0.0, 1.0, n), 0.5)
    final = np.random.default_rng(5).random(n)

    def task(mine: np.ndarray[Any, Any], seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(30):
            engine.set_weights(mine, rng.random(mine.size), 0.25)
            assert matroid.is_independent(engine.base())
            engine.base_excluding(mine[:1])
            gone = mine[1:3]
            engine.delete(gone)
            engine.insert(gone)
        engine.set_weights(mine, final[mine], 0.0)

    together(*(lambda i=i: task(np.arange(i, n, 4), i) for i in range(4)))
    assert engine.base().tolist() == sorted(matroid.max_weight_base(final).tolist())
    engine._check()


def test_threads_share_an_environment():
    matroid = sb.Uniform(n_arms=10, rank=3)
    for env in (
        sb.Bernoulli(matroid, np.full(10, 0.5), seed=1),
        sb.minimize(sb.Gaussian(matroid, np.full(10, 0.5), 0.1, seed=1)),
    ):
        together(*[lambda env=env: [env.draw([1, 2, 3]) for _ in range(2000)]] * 4)
        assert env.pulls.tolist() == [0, 8000, 8000, 8000] + [0] * 6
        assert env.round == 8000
        assert pickle.loads(pickle.dumps(env)).draw([4]).tolist() == env.draw([4]).tolist()


def test_threads_share_an_inner_product_base():
    matroid = small_matroid("partition", 60)
    n = matroid.n_arms
    base = sb.InnerProductBase(matroid, np.full((n, 2), 0.5), ((0.1, 1.0), (0.1, 1.0)), epsilon=0.3)
    final = 0.1 + 0.9 * np.random.default_rng(1).random((n, 2))

    def task(mine: range) -> None:
        rng = np.random.default_rng(mine.start)
        for _ in range(20):
            arm = int(rng.choice(mine))
            base.update_feature(arm, 0.1 + 0.9 * rng.random(2))
            assert matroid.is_independent(base.find_base((1.0, 0.7)))
        base.update_features(list(mine), final[mine.start :: mine.step])

    together(*(lambda i=i: task(range(i, n, 4)) for i in range(4)))
    fresh = sb.InnerProductBase(matroid, final, ((0.1, 1.0), (0.1, 1.0)), epsilon=0.3)
    assert base.find_base((1.0, 0.7)).tolist() == fresh.find_base((1.0, 0.7)).tolist()


def test_threads_simulate_with_one_policy():
    matroid = sb.Uniform(n_arms=50, rank=5)
    policy, env = sb.CUCB(matroid), sb.Bernoulli(matroid, np.linspace(0.1, 0.9, 50), seed=1)
    together(*[lambda: sb.simulate(policy, env, rounds=500, progress=False)] * 4)
    assert policy.t == 2000 and policy.counts.sum() == 10_000 and env.pulls.sum() == 10_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_while_threads_play_has_a_whole_policy():
    policy = sb.CUCB(sb.Laminar(40, [(list(range(20)), 3), (list(range(20, 40)), 2)]))
    stop = threading.Event()

    def task() -> None:
        while not stop.is_set():
            arms = policy.select()
            policy.update(arms, np.full(len(arms), 0.5))

    def fork() -> None:
        try:
            for _ in range(10):
                child = os.fork()
                if child == 0:
                    status = 1
                    try:
                        policy._engine._check()
                        before = policy.t
                        play(policy, 20, 3, [])
                        status = 0 if policy.t == before + 21 else 2
                    finally:
                        os._exit(status)
                assert os.waitpid(child, 0)[1] == 0
        finally:
            stop.set()

    together(task, task, task, fork)
    policy._engine._check()


def _go_on(policy: Any, queue: Any) -> None:
    queue.put([policy.select().tolist() for _ in range(3)])


def test_a_policy_can_be_handed_to_a_process_that_was_spawned():
    policy = sb.CTS(sb.Uniform(n_arms=30, rank=4), seed=3)
    play(policy, 20, 1, [])
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=_go_on, args=(policy, queue))
    process.start()
    there = queue.get(timeout=60)
    process.join(60)
    assert there == [policy.select().tolist() for _ in range(3)]


def test_copies_are_clones_and_engines_are_not_copied():
    policy = sb.CUCB(sb.Uniform(n_arms=6, rank=2))
    play(policy, 10, 1, [])
    for twin in (copy.copy(policy), copy.deepcopy(policy)):
        twin.update([0, 1], [1.0, 1.0])
        assert twin.counts.sum() == policy.counts.sum() + 2
        twin._engine._check()
    for thing in (
        policy._engine,
        sb.InnerProductBase(policy.matroid, np.full((6, 2), 0.5), ((0.1, 1), (0.1, 1)), epsilon=0.5),
    ):
        with pytest.raises(TypeError, match="cannot be copied"):
            copy.deepcopy(thing)
        with pytest.raises(TypeError, match="cannot be copied"):
            pickle.dumps(thing)


def test_classes_of_users_are_guarded_too():
    class Till(Guarded):
        def __init__(self) -> None:
            self.money = 0

        def put(self, amount: int) -> None:
            """Put money in."""
            before = self.money
            time.sleep(0)
            self.money = before + amount

        @property
        def content(self) -> int:
            return self.money

        @unguarded
        def look(self) -> bool:
            return self._lock.acquire(blocking=False)

    till = Till()
    together(*[lambda: [till.put(1) for _ in range(500)]] * 4)
    assert till.content == 2000
    assert till.put.__doc__ == "Put money in."
    holder = threading.Thread(target=till._lock.acquire)
    holder.start()
    holder.join()
    assert not till.look()


def test_the_owner_of_an_object_can_do_without_its_lock():
    engine = sb.CUCB(sb.Uniform(n_arms=5, rank=2))._engine
    inside = bare(engine.touch)
    held, done = threading.Event(), threading.Event()

    def hold():
        with engine._lock:
            held.set()
            done.wait(10.0)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(10.0)
    inside(np.array([1]))  # would wait for ever if it took the lock
    done.set()
    holder.join()
    assert bare(inside) is inside
