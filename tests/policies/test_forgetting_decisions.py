"""Decisions that wait, for policies that forget: what waits is in the width, and nothing of it stays."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

import semibandit as sb
from semibandit.policies.index.discounted import LARGEST_UNIT, UNIT

KINDS = [
    ("window", {"window": 12}),
    ("window", {"window": 12, "clock": "staircase"}),
    ("discount", {"discount": 0.8}),
]


def make(kind, matroid, **options):
    return (sb.SlidingWindowCUCB if kind == "window" else sb.DiscountedCUCB)(matroid, **options)


class Naive:
    """Indices by their formulas from everything that ever happened."""

    def __init__(self, kind, n_arms, options):
        self.kind, self.n_arms, self.options, self.t = kind, n_arms, options, 0
        self.seen, self.waiting, self.changed = [], np.zeros(n_arms, dtype=int), np.zeros(n_arms, dtype=int)

    def learn(self, arms, rewards):
        for arm, reward in zip(arms, rewards, strict=True):
            self.seen.append((self.t, arm, reward))
            self.changed[arm] = self.t

    def wait(self, arms, change):
        self.waiting[arms] += change
        self.changed[arms] = self.t

    def index(self, arm):
        t = self.t
        if self.kind == "window":
            window = self.options["window"]
            mine = [r for s, k, r in self.seen if k == arm and s >= t - window]
            n, lam = len(mine) + self.waiting[arm], math.sqrt(1.5 * math.log(min(t, window)))
            if self.options.get("clock") == "staircase" and lam > 0:
                lam = 1.01 ** math.ceil(math.log(lam) / math.log(1.01) - 1e-12)
            mean = sum(mine) / len(mine) if mine else 1.0
            return mean + lam / math.sqrt(n) if n else math.inf
        rate = self.options["discount"]
        weights = [(rate ** (t - s), k, r) for s, k, r in self.seen]
        seen = sum(w for w, k, _ in weights if k == arm)
        mean = sum(w * r for w, k, r in weights if k == arm) / seen if seen else 1.0
        n = seen + self.waiting[arm] * rate ** (t - self.changed[arm])
        level = math.log(max(math.e, sum(w for w, _, _ in weights)))
        return mean + math.sqrt(1.5 * level / n) if n else math.inf


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_decisions_are_those_of_the_formula(kind, options, tmp_path):
    matroid = sb.Partition(np.arange(12) % 3, 2)
    policy, naive = make(kind, matroid, **options), Naive(kind, 12, options)
    rng, late = np.random.default_rng(3), []
    for t in range(1, 100):
        naive.t = t
        among = rng.permutation(12)[:8] if t % 4 == 0 else None
        decision = policy.decide(among=among)
        weights = np.array([naive.index(arm) for arm in range(12)])
        if among is None:
            best = matroid.max_weight_base(weights)
        else:
            best = matroid.max_weight_base(weights[among], among=among)
        if decision.arms.tolist() != best.tolist():  # ties that rounding breaks are the only excuse
            np.testing.assert_allclose(np.sort(weights[decision.arms]), np.sort(weights[best]), atol=1e-9)
        finite = np.isfinite(weights[decision.arms])
        np.testing.assert_allclose(decision.scores[finite], weights[decision.arms][finite], rtol=1e-9)
        naive.wait(decision.arms, 1)
        late.append(decision)
        while len(late) > 2 + t % 5:
            one = late.pop(int(rng.integers(len(late))))
            rewards = rng.integers(0, 2, len(one.arms)).astype(float)
            if t % 7 == 0:
                policy.drop(one.id)
            else:
                policy.learn(one, rewards)
                naive.learn(one.arms.tolist(), rewards)
            naive.wait(one.arms, -1)
        if t % 11 == 0:
            policy = copy.deepcopy(policy)
        if t % 23 == 0:
            policy.save(tmp_path / "policy")
            policy = sb.load(tmp_path / "policy")
    assert policy.waiting == len(late)
    policy._engine._check()


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_simultaneous_requests_spread(kind, options):
    for policy in (
        make(kind, sb.Uniform(60, 3), **options),
        sb.minimize(make(kind, sb.Uniform(60, 3), **options)),
    ):
        arms = np.concatenate([decision.arms for decision in policy.decide(count=20)])
        assert len(np.unique(arms)) == 60
    policy = make(kind, sb.Uniform(40, 2), **options)
    policy.update(np.arange(40), np.full(40, 0.5))
    policy.select()
    assert len(np.unique(np.concatenate([d.arms for d in policy.decide(count=20)]))) == 40


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_nothing_of_the_waiting_stays(kind, options):
    late, at_once = (make(kind, sb.Uniform(20, 3), **options) for _ in range(2))
    rng = np.random.default_rng(1)
    for _ in range(30):
        decisions = late.decide(count=2)
        at_once.select(), at_once.select()
        for decision in decisions:
            if rng.random() < 0.3:
                late.drop(decision)
                continue
            rewards = rng.random(3)
            late.learn(decision, rewards)
            at_once.update(decision.arms, rewards)
    assert late.waiting == 0 and late.records.tolist() == at_once.records.tolist()
    assert late.select().tolist() == at_once.select().tolist()


@pytest.mark.parametrize("costs", [False, True])
def test_copies_of_discounted_decisions_go_on_exactly(costs):
    policy = sb.DiscountedCUCB(sb.Uniform(15, 2), discount=0.7)
    policy = sb.minimize(policy) if costs else policy
    rng, waiting = np.random.default_rng(2), []
    for t in range(60):
        waiting += [policy.decide(), policy.decide()]
        policy.learn(waiting.pop(int(rng.integers(len(waiting)))), rng.random(2))
        if len(waiting) > 6:
            policy.drop(waiting.pop(0))
        if t % 9 == 8:
            other = policy.clone()
            for _ in range(3):
                mine, theirs = policy.decide(), other.decide()
                assert (
                    mine.arms.tolist() == theirs.arms.tolist()
                    and mine.scores.tolist() == theirs.scores.tolist()
                )
                policy.drop(mine)
                other.drop(theirs)
                rewards, one = rng.random(2), waiting.pop()
                policy.learn(one.id, rewards)
                other.learn(one.id, rewards)
            inner = [getattr(p, "inner", p).records.tolist() for p in (policy, other)]
            assert inner[0] == inner[1]


def test_a_larger_unit_leaves_what_waits_alone():
    policy = sb.DiscountedCUCB(sb.Uniform(6, 2), discount=0.5)
    policy.update(np.arange(5), np.linspace(0, 1, 5))
    waits = policy.decide()
    before = policy.records["beta"][waits.arms] / np.sqrt(1 / policy._now[UNIT])
    while policy._now[UNIT] < LARGEST_UNIT / 4:
        policy.select()
    policy.select(), policy.select(), policy.select()
    assert policy._now[UNIT] < 16
    rounds = policy.t - 1
    after = policy.records["beta"][waits.arms] / np.sqrt(1 / policy._now[UNIT])
    np.testing.assert_allclose(after / before, 0.5 ** (-rounds / 2), rtol=1e-9)
    policy.learn(waits, [0.5, 0.5])
    assert len(policy.select()) == 2 and policy.waiting == 0


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_arms_that_come_and_are_reset_while_decisions_wait(kind, options):
    policy = make(kind, sb.Uniform(4, 2), **options)
    first = policy.decide()
    policy.grow(sb.Uniform(8, 2))
    assert policy.decide().arms.tolist() == [2, 3]
    policy.reset(first.arms)
    assert policy.decide().arms.tolist() == [4, 5] and policy.decide().arms.tolist() == [6, 7]
    policy.learn(first, [0.0, 0.0])
    assert policy.counts.tolist() == [1, 1, 0, 0, 0, 0, 0, 0]
    policy._engine._check()


def test_nonlinear_indices_keep_what_waits_when_they_grow():
    for policy in (sb.KLOSM(sb.Uniform(4, 2)), sb.CUCB(sb.Uniform(4, 2), clip=True)):
        first = policy.decide()
        policy.grow(sb.Uniform(8, 2))
        assert policy.decide().arms.tolist() == [2, 3]
        policy.learn(first, [1.0, 1.0])
        assert policy._index.own.waiting.tolist() == [0, 0, 1, 1, 0, 0, 0, 0]
