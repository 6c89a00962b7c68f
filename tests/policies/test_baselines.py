"""Random, Greedy, EpsilonGreedy and Oracle: the contract, the law of the draws, and naive greedy."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

import semibandit as sb
from semibandit.compiled.random import new_state
from semibandit.engines import ENGINES
from semibandit.policies.catalogue import make_policy
from semibandit.policies.random_base import RandomBase
from semibandit.testing import check_policy
from support.random_matroids import RANDOM


def makers(matroid):
    means = np.linspace(0.9, 0.1, matroid.n_arms)
    yield lambda: sb.Random(matroid, seed=3)
    yield lambda: sb.Oracle(matroid, means=means)
    yield lambda: sb.EpsilonGreedy(matroid, decay=5.0, seed=4)
    for engine in ("auto", *(name for name, spec in ENGINES.items() if spec.fits(matroid, "staircase"))):
        yield lambda e=engine: sb.Greedy(matroid, engine=e)
        yield lambda e=engine: sb.EpsilonGreedy(matroid, epsilon=0.3, engine=e, seed=5)


@pytest.mark.bounds
@pytest.mark.parametrize("kind", sorted(RANDOM))
def test_contract_on_every_matroid(kind):
    rng = np.random.default_rng(7)
    for size in (1, 5, 12):
        matroid, _ = RANDOM[kind](rng, size)
        for make in makers(matroid):
            check_policy(make, rounds=24)


@pytest.mark.bounds
@pytest.mark.parametrize("kind", sorted(RANDOM))
def test_greedy_equals_sorting_by_mean(kind):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        matroid, independent = RANDOM[kind](rng, 10)
        policy = sb.Greedy(matroid)
        count, total = np.zeros(10), np.zeros(10)
        for t in range(40):
            exclude = rng.integers(0, 10, 2).tolist() if t % 5 == 4 else []
            mean = [total[k] / count[k] if count[k] else np.inf for k in range(10)]
            base = []
            for k in sorted(range(10), key=lambda k: (-mean[k], k)):
                if k not in exclude and independent([*base, k]):
                    base.append(k)
            arms = policy.select(exclude=exclude) if exclude else policy.select()
            assert arms.tolist() == sorted(base)
            rewards = rng.choice([0.0, 0.5, 1.0], len(arms))
            policy.update(arms, rewards)
            count[arms] += 1
            total[arms] += rewards


@pytest.mark.parametrize(
    ("matroid", "gone"),
    [
        (sb.Uniform(6, 2), []),
        (sb.Uniform(7, 3), [2]),
        (sb.Partition([0, 0, 0, 1, 1, 2], [2, 1, 1]), []),
        (sb.Partition([0, 0, 0, 1, 1, 1], [2, 1]), [4]),
    ],
)
def test_every_base_is_equally_likely(matroid, gone):
    policy = sb.Random(matroid, seed=11)
    if gone:
        policy.delete(gone)
    arms = [k for k in range(matroid.n_arms) if k not in gone]
    bases = [b for b in combinations(arms, matroid.rank) if matroid.is_independent(b)]
    seen = Counter(tuple(policy.select().tolist()) for _ in range(400 * len(bases)))
    assert set(seen) == set(bases)
    assert stats.chisquare([seen[b] for b in bases]).pvalue > 1e-3


@pytest.mark.parametrize("kind", ["uniform", "partition", "graphic"])
def test_pools_keep_track_of_arms_that_come_and_go(kind):
    rng = np.random.default_rng(1)
    matroid, _ = RANDOM[kind](rng, 9)
    draws, present, words = RandomBase(matroid), np.ones(9, dtype=bool), new_state(2)
    for _ in range(200):
        k = int(rng.integers(9))
        (draws.remove if present[k] else draws.restore)(np.array([k]))
        present[k] = not present[k]
        arms = draws.draw(words)
        assert present[arms].all() and matroid.is_independent(arms)
        assert len(arms) == len(matroid._greedy(np.flatnonzero(present)))
        draws._check(present)


@pytest.mark.parametrize("make", [sb.Random, sb.Greedy, sb.EpsilonGreedy])
def test_arms_that_come_and_go(make):
    policy = make(sb.Uniform(6, 2), seed=1)
    policy.delete([0, 1, 2, 3])
    assert policy.select().tolist() == [4, 5] == policy.clone().select().tolist()
    policy.insert([0])
    assert set(policy.select()) <= {0, 4, 5}
    assert policy.select(exclude=[4]).tolist() == [0, 5]
    with pytest.raises(sb.ArmError, match="deleted already"):
        policy.delete([1])
    with pytest.raises(sb.ArmError, match="present already"):
        policy.insert([4])
    with pytest.raises(sb.ArmError, match="named twice"):
        policy.insert([1, 1])


def test_epsilon_is_the_share_of_random_rounds():
    matroid = sb.Uniform(1000, 1)
    policy = sb.EpsilonGreedy(matroid, epsilon=0.25, seed=2)
    policy.update(np.arange(1000), np.r_[1.0, np.zeros(999)])
    other = sum(policy.select()[0] != 0 for _ in range(4000))
    assert abs(other - 1000) < 4 * np.sqrt(4000 * 0.25 * 0.75)
    assert [sb.EpsilonGreedy(matroid, decay=4).chance(t) for t in (1, 4, 8, 400)] == [1.0, 1.0, 0.5, 0.01]


def test_the_order_of_regret():
    matroid = sb.Uniform(50, 3)
    means = np.linspace(0.1, 0.9, 50)
    env = sb.Bernoulli(matroid, means, seed=1)
    policies = [
        sb.Oracle(matroid, means=means),
        sb.EpsilonGreedy(matroid, decay=100, seed=1),
        sb.Random(matroid),
    ]
    found = sb.compare(policies, env, rounds=2000, repeats=3)
    oracle, decaying, random = (found.mean_regret(p.name)[-1] for p in policies)
    assert abs(oracle) < 1e-6 < decaying < 0.5 * random


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda m: sb.EpsilonGreedy(m, epsilon=1.5), "epsilon"),
        (lambda m: sb.EpsilonGreedy(m, decay=-1), "decay"),
        (lambda m: sb.EpsilonGreedy(m, epsilon="often"), "epsilon"),
        (lambda m: sb.Greedy(m, engine="steam"), "steam"),
        (lambda m: sb.Random(m, seed=-1), "seed"),
        (lambda m: sb.Oracle(m), "means"),
        (lambda m: sb.Oracle(m, means=[0.5]), "means"),
        (lambda m: sb.Oracle(m, means=[0.5, np.nan, 0.1]), "means"),
    ],
)
def test_bad_parameters_are_named(make, words):
    with pytest.raises(sb.ParameterError, match=words):
        make(sb.Uniform(3, 1))


@pytest.mark.parametrize("kind", sorted(RANDOM))
@pytest.mark.parametrize("name", ["random", "epsilon-greedy"])
def test_a_clone_goes_on_without_the_deleted_arms(name, kind, tmp_path):
    matroid, _ = RANDOM[kind](np.random.default_rng(5), 9)
    policy = make_policy(name, matroid, seed=2)
    policy.delete([1, 2])
    policy.insert([1])
    policy.save(tmp_path / "policy")
    for twin in (policy.clone(), sb.load(tmp_path / "policy")):
        for _ in range(5):
            assert 2 not in twin.select()
        twin.insert([2])
    assert [policy.clone().select().tolist()] == [sb.load(tmp_path / "policy").select().tolist()]
