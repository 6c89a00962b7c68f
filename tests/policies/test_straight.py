"""Rounds in one call of the extension module are those of the methods in Python, and end when arrays are replaced."""

from __future__ import annotations

import gc
import sys
import threading
import weakref

import numpy as np
import pytest

import semibandit as sb
from semibandit.compiled import native
from semibandit.errors import ArmError, RewardError
from semibandit.policies.straight import Straight, no_feedback, no_turn

ahead = pytest.mark.skipif(native.module() is None, reason="kernels come from the compiler here")

MAKERS = {
    "cucb": lambda m: sb.CUCB(m),
    "cucb, clipped": lambda m: sb.CUCB(m, outside="clip"),
    "cucb, stairs": lambda m: sb.CUCB(m, clock="staircase"),
    "cucb, index clipped": lambda m: sb.CUCB(m, clip=True),
    "greedy": lambda m: sb.Greedy(m),
    "kl-osm": lambda m: sb.KLOSM(m),
    "one-seed": lambda m: sb.OneSeedTS(m),
    "costs": lambda m: sb.minimize(sb.CUCB(m)),
}


def _in_python(monkeypatch, make):
    """A policy that never goes straight."""
    with monkeypatch.context() as patch:
        patch.setattr(Straight, "turn", lambda *args: no_turn)
        patch.setattr(Straight, "feedback", lambda *args: no_feedback)
        policy = make()
        inner = getattr(policy, "inner", policy)
        inner.select()
        assert inner._turn is no_turn and inner._feed is no_feedback
    return policy


@pytest.mark.parametrize("name", MAKERS)
def test_decisions_are_those_of_the_methods(monkeypatch, name):
    """With everything that happens to a policy in between, and the same state at the end."""
    matroid = sb.Uniform(n_arms=40, rank=4)
    slow, fast = _in_python(monkeypatch, lambda: MAKERS[name](matroid)), MAKERS[name](matroid)
    fast.select()
    rng = np.random.default_rng(5)
    for i in range(400):
        mine, other = fast.select(), slow.select()
        assert mine.tolist() == other.tolist() and mine.flags.owndata and fast.t == slow.t
        rewards = rng.random(len(mine))
        late = rng.integers(0, 40, size=3)
        for policy in (fast, slow):
            policy.update(mine, rewards)
            policy.update(late, [0.25, 0.5, 0.75])
            if i % 50 == 10:
                policy.delete([1, 2, 3])
                policy.select()
                policy.insert([1, 2, 3])
            if i % 50 == 20:
                policy.select(exclude=mine[:2])
            if i % 50 == 30:
                policy.select(among=[4, 5, 6, 7, 8])
            if i == 333:
                policy.learn(policy.decide(), np.full(4, 0.5))
    assert np.array_equal(fast.counts, slow.counts) and np.array_equal(fast.means, slow.means, equal_nan=True)
    assert np.array_equal(fast.scores(np.arange(40)), slow.scores(np.arange(40)))


@ahead
def test_rounds_do_go_straight():
    policy = sb.CUCB(sb.Uniform(n_arms=40, rank=4))
    assert policy._turn is no_turn
    arms = policy.select()
    assert policy._turn is not no_turn and policy._feed is not no_feedback
    assert policy._feed(arms, np.full(4, 0.5)) and policy.counts[arms].tolist() == [1] * 4
    assert policy._turn(policy).tolist() == [4, 5, 6, 7] and policy.t == 2


def test_a_base_may_be_short():
    policy = sb.CUCB(sb.Uniform(n_arms=5, rank=3))
    policy.select()
    policy.delete([0, 1, 3])
    for _ in range(3):
        arms = policy.select()
        assert arms.tolist() == [2, 4] and arms.base is None


@pytest.mark.parametrize(
    ("arms", "rewards", "error"),
    [
        (np.array([0, 9]), np.array([0.5, 0.5]), ArmError),
        (np.array([0, -1]), np.array([0.5, 0.5]), ArmError),
        (np.array([0, 1]), np.array([0.5, 1.5]), RewardError),
        (np.array([0, 1]), np.array([0.5, np.nan]), RewardError),
        (np.array([0, 1]), np.array([0.5]), RewardError),
        ([0, 1.5], [0.5, 0.5], ArmError),
        (None, [0.5], ArmError),
    ],
)
def test_what_is_refused_is_refused_and_changes_nothing(arms, rewards, error):
    policy = sb.CUCB(sb.Uniform(n_arms=9, rank=2))
    policy.update(policy.select(), [0.25, 0.75])
    before = policy.records.copy()
    with pytest.raises(error):
        policy.update(arms, rewards)
    assert np.array_equal(policy.records, before)
    policy.update([0, 1], [0.5, 1.0])
    assert policy.counts.tolist() == [2, 2] + [0] * 7


def test_what_is_outside_can_be_clipped():
    policy = sb.CUCB(sb.Uniform(n_arms=3, rank=3), outside="clip")
    policy.update(policy.select(), np.array([0.5, 7.0, -1.0]))
    assert policy.means.tolist() == [0.5, 1.0, 0.0] and policy.clipped == 2


def test_a_subclass_that_learns_otherwise_is_asked():
    class Halved(sb.CUCB):
        def _update(self, arms, rewards):
            super()._update(arms, rewards / 2.0)

    policy = Halved(sb.Uniform(n_arms=3, rank=3))
    policy.update(policy.select(), np.ones(3))
    policy.update(policy.select(), np.ones(3))
    assert policy.means.tolist() == [0.5, 0.5, 0.5]


@pytest.mark.parametrize("cls", [sb.CUCB, sb.Greedy])
def test_growing_ends_old_calls(cls):
    policy = cls(sb.Uniform(n_arms=4, rank=2))
    policy.update(policy.select(), np.array([0.9, 0.8]))
    turn, feed = policy._turn, policy._feed
    policy.grow(sb.Uniform(n_arms=6, rank=2))
    assert turn(policy) is None and policy.t == 1
    assert not feed(np.array([0, 1]), np.array([0.5, 0.5])) and policy.counts.tolist() == [1, 1, 0, 0, 0, 0]
    assert policy.select().tolist() == [2, 3]


def test_plays_that_wait_end_straight_feedback():
    """From the first decision on, feedback must look at what waits."""
    policy = sb.CUCB(sb.Uniform(n_arms=4, rank=2))
    policy.select()
    feed = policy._feed
    decision = policy.decide()
    assert not feed(np.array([0, 1]), np.array([0.5, 0.5]))
    policy.learn(decision, [1.0, 1.0])
    policy.select()
    assert policy._feed is no_feedback and policy.counts.tolist() == [1, 1, 0, 0]


def test_nothing_is_kept_of_a_policy_that_is_gone():
    policy = sb.CUCB(sb.Uniform(n_arms=40, rank=4))
    policy.update(policy.select(), np.full(4, 0.5))
    gone = weakref.ref(policy._engine)
    del policy
    gc.collect()
    assert gone() is None


@ahead
def test_no_reference_is_lost_or_kept():
    policy = sb.CUCB(sb.Uniform(n_arms=40, rank=4))
    rewards, refused = np.full(4, 0.5), np.full(4, 1.5)
    arms = policy.select()

    def play(rounds: int) -> None:
        for _ in range(rounds):
            policy.update(policy.select(), rewards)
            assert not policy._feed(arms, refused)
            policy.delete([39])
            policy.insert([39])

    play(10)
    watched = (policy, policy._engine, rewards, refused, arms, policy._turn, policy._lock, None, np.empty)
    counts, blocks = [sys.getrefcount(one) for one in watched], sys.getallocatedblocks()
    play(2000)
    assert [sys.getrefcount(one) for one in watched][:7] == counts[:7]
    assert abs(sys.getrefcount(np.empty) - counts[8]) < 10
    assert sys.getallocatedblocks() - blocks < 500


@ahead
@pytest.mark.parametrize("cls", [sb.CUCB, sb.Greedy])
def test_threads_that_play_while_arrays_are_replaced(cls):
    """Every round and every reward counts once, whoever replaces the arrays meanwhile."""
    policy = cls(sb.Uniform(n_arms=8, rank=2))
    policy.select()
    grown, played = threading.Event(), []

    def play() -> None:
        rounds = 0
        while rounds < 1000 or not grown.is_set():
            policy.select()
            policy.update(np.array([0, 1]), np.array([0.5, 0.5]))
            rounds += 1
        played.append(rounds)

    threads = [threading.Thread(target=play) for _ in range(3)]
    for thread in threads:
        thread.start()
    for size in range(9, 60):
        policy.grow(sb.Uniform(n_arms=size, rank=2))
    grown.set()
    for thread in threads:
        thread.join()
    assert policy.t == 1 + sum(played)
    assert policy.counts[:2].tolist() == [sum(played)] * 2
    policy._engine._check()
