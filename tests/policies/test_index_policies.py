"""KL-OSM and the variants of CUCB: indices against bisection, decisions against naive policies, all engines alike."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import semibandit as sb
from oracles.cucb import NaiveCUCB
from semibandit.compiled.jit import njit
from semibandit.engines import ENGINES
from semibandit.errors import ParameterError
from semibandit.policies.index.formulas import kl_upper
from semibandit.testing import check_policy
from support.random_matroids import RANDOM


@njit
def kl_upper_here(p, d):
    return kl_upper(p, d)


def kl(p, q):
    total = 0.0
    if p > 0.0:
        total += p * math.log(p / q)
    if p < 1.0:
        total += (1.0 - p) * (math.log1p(-p) - math.log1p(-q))
    return total


def kl_upper_by_bisection(p, d):
    """The largest q with kl(p, q) <= d; 1 - q is what is bisected, so that it stays precise near 1."""
    if p >= 1.0:
        return 1.0
    low, high = 0.0, 1.0 - p  # 1 - q: kl at low is infinite, at high 0
    for _ in range(200):
        middle = 0.5 * (low + high) if low > 0.0 else high * 1e-3
        q = 1.0 - middle
        if q < 1.0 and kl(p, q) <= d:
            high = middle
        else:
            low = middle
            if high - low < 1e-300:
                break
    return 1.0 - high


@settings(deadline=None, derandomize=True, max_examples=400)
@given(st.floats(0.0, 1.0).map(lambda p: p if p > 1e-12 else 0.0), st.floats(0.0, 40.0))
def test_kl_index_by_bisection(p, d):
    q = kl_upper_here(p, d)
    assert p <= q <= 1.0
    # Near p the divergence is flat: what rounding does to it is divided by its slope, of order sqrt(d).
    slack = 1e-12 + 1e-15 / math.sqrt(max(d, 1e-16))
    assert q == pytest.approx(kl_upper_by_bisection(p, d), abs=slack)


def test_kl_index_at_the_ends():
    assert kl_upper_here(1.0, 3.0) == 1.0
    assert kl_upper_here(0.3, 0.0) == 0.3
    assert kl_upper_here(0.0, 2.0) == pytest.approx(1.0 - math.exp(-2.0), abs=1e-15)
    assert kl_upper_here(0.5, 1e4) == 1.0


class NaiveLevels(NaiveCUCB):
    """Any index, all arms sorted every round."""

    def __init__(self, kind, *arguments, loglog=3.0, **options):
        super().__init__(*arguments, **options)
        self.kind, self.loglog, self.squares = kind, loglog, [0.0] * self.n_arms

    def index(self, k):
        n = self.count[k]
        if n == 0:
            return math.inf
        mean = self.total[k] / n
        if self.kind == "kl":
            level = math.log(self.t)
            level += self.loglog * math.log(max(1.0, level))
            return kl_upper_by_bisection(min(1.0, mean), level / n)
        lam = math.sqrt(self.scale * math.log(self.t))
        if self.kind == "clip":
            return min(1.0, mean + lam / math.sqrt(n))
        variance = max(0.0, self.squares[k] / n - mean * mean)
        return mean + math.sqrt(2.0 * variance * lam**2 / n) + 3.0 * lam**2 / n

    def select(self, exclude=()):
        self.t += 1
        index = [round(self.index(k), 13) for k in range(self.n_arms)]
        base = []
        for k in sorted(range(self.n_arms), key=lambda k: (-index[k], k)):
            if k not in exclude and self.independent([*base, k]):
                base.append(k)
        return sorted(base)

    def update(self, arms, rewards):
        super().update(arms, rewards)
        for k, reward in zip(arms, rewards):
            self.squares[k] += reward * reward


MAKERS = {
    "kl": lambda m, **o: sb.KLOSM(m, **o),
    "kl0": lambda m, **o: sb.KLOSM(m, loglog=0.0, **o),
    "clip": lambda m, **o: sb.CUCB(m, clip=True, **o),
    "ucb-v": lambda m, **o: sb.CUCB(m, index="ucb-v", exploration=1.2, **o),
}


def naive(name, matroid, independent):
    kind = "kl" if name == "kl0" else name
    loglog = 0.0 if name == "kl0" else 3.0
    exploration = 1.2 if name == "ucb-v" else 1.5
    return NaiveLevels(kind, matroid.n_arms, independent, exploration=exploration, loglog=loglog)


@pytest.mark.thin
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("kind", RANDOM)
def test_decisions_equal_a_naive_policy(kind, name):
    rng = np.random.default_rng(11)
    for trial in range(6):
        matroid, independent = RANDOM[kind](rng, int(rng.integers(1, 9)))
        policy, slow = MAKERS[name](matroid), naive(name, matroid, independent)
        for t in range(60):
            out = [int(rng.integers(matroid.n_arms))] if t % 9 == 8 else []
            arms = policy.select(exclude=out) if out else policy.select()
            assert arms.tolist() == slow.select(out), (trial, t)
            rewards = rng.integers(0, 2, len(arms)).astype(float) if trial % 2 else rng.random(len(arms))
            if t % 5:
                policy.update(arms, rewards)
                slow.update(arms.tolist(), rewards.tolist())


@pytest.mark.thin(1)
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("kind", ["uniform", "partition", "laminar", "graphic", "transversal", "rational"])
def test_all_engines_decide_alike_under_the_staircase(kind, name):
    rng = np.random.default_rng(5)
    for trial in range(4):
        matroid, _ = RANDOM[kind](rng, int(rng.integers(2, 25)))
        names = [key for key, spec in ENGINES.items() if spec.fits(matroid, "staircase")]
        policies = [MAKERS[name](matroid, clock="staircase", step=0.05, engine=engine) for engine in names]
        assert len(policies) > 1
        for t in range(150):
            bases = [policy.select() for policy in policies]
            assert all(np.array_equal(bases[0], other) for other in bases[1:]), (trial, t, names)
            rewards = rng.integers(0, 2, len(bases[0])).astype(float)
            for policy in policies:
                policy.update(bases[0], rewards)
                if t % 25 == 0:
                    policy._engine._check()


@pytest.mark.thin
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("kind", RANDOM)
@pytest.mark.parametrize("clock", ["exact", "staircase"])
def test_contract(kind, name, clock):
    matroid, _ = RANDOM[kind](np.random.default_rng(3), 9)
    check_policy(lambda: MAKERS[name](matroid, clock=clock))


def test_the_staircase_is_never_too_low_and_at_most_a_step_too_high():
    policy = sb.KLOSM(sb.Uniform(300, 2), clock="staircase", step=0.02)
    seen = set()
    for t in range(1, 3000):
        policy.select()
        level = math.log(t) + 3.0 * math.log(max(1.0, math.log(t)))
        if level > 0.0:
            assert level <= policy.confidence_width <= level * 1.02**2 * (1 + 1e-12)
        seen.add(policy.confidence_width)
    assert len(seen) < 200


def test_auto_clock_takes_the_staircase_for_many_arms():
    few, many = sb.KLOSM(sb.Uniform(50, 2), clock="auto"), sb.KLOSM(sb.Uniform(500, 2), clock="auto")
    assert (few.clock, few.engine) == ("exact", "kinetic")
    assert (many.clock, many.engine) == ("staircase", "kinetic")
    assert sb.CUCB(sb.Uniform(500, 2), clip=True, clock="auto").engine == "kinetic"


def test_a_falling_schedule_is_fine_for_computed_indices():
    policy = sb.CUCB(sb.Uniform(40, 3), clip=True, engine="kinetic", schedule=lambda t: 1.0 / t)
    slow = sb.CUCB(sb.Uniform(40, 3), clip=True, engine="resolve", schedule=lambda t: 1.0 / t)
    rng = np.random.default_rng(0)
    for t in range(1, 80):
        arms = policy.select()
        assert arms.tolist() == slow.select().tolist()
        assert policy.confidence_width == pytest.approx(1.0 / t)
        rewards = rng.random(3)
        policy.update(arms, rewards)
        slow.update(arms, rewards)


def test_scaled_rewards_give_the_same_decisions():
    one = sb.KLOSM(sb.Uniform(12, 3))
    two = sb.KLOSM(sb.Uniform(12, 3), reward_range=(-2.0, 6.0))
    rng = np.random.default_rng(1)
    for _ in range(200):
        arms = one.select()
        assert arms.tolist() == two.select().tolist()
        rewards = rng.integers(0, 2, 3).astype(float)
        one.update(arms, rewards)
        two.update(arms, 8.0 * rewards - 2.0)


@pytest.mark.bounds
def test_grown_and_deleted_arms():
    for make in MAKERS.values():
        policy = make(sb.Uniform(5, 2), clock="staircase")
        for _ in range(20):
            policy.update(policy.select(), [0.5, 1.0])
        policy.delete([0])
        policy.grow(sb.Uniform(8, 2))
        assert 0 not in policy.select()
        assert set(policy.select().tolist()) <= {5, 6, 7}  # never pulled
        policy.insert([0])
        assert policy.counts[:5].sum() == 40


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda m: sb.KLOSM(m, loglog=-1.0), "loglog"),
        (lambda m: sb.KLOSM(m, clock="sundial"), "clock"),
        (lambda m: sb.KLOSM(m, step=0.0), "step"),
        (lambda m: sb.CUCB(m, index="best"), "index"),
        (lambda m: sb.CUCB(m, index="ucb-v", clip=True), "clip"),
    ],
)
def test_bad_options_are_named(make, words):
    with pytest.raises(ParameterError, match=words):
        make(sb.Uniform(4, 2))
