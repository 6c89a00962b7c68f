"""Every engine plays exactly the arms of re-solving: same clock, same rewards, every round, invariants checked.

Instances are small and medium, with ties (equal means, rewards 0 and 1), loops, D = K, K = 1, several components, arms
deleted, inserted and excluded, feedback late, partial, repeated and out of order.
"""

from __future__ import annotations

import numpy as np
import pytest

import semibandit as sb
from semibandit.engines import ENGINES
from support.random_matroids import RANDOM

CLASSES = [kind for kind in RANDOM if kind != "modular"]


def engines_of(kind, clock):
    name = "linear" if kind == "rational" else kind
    return [
        key
        for key, spec in ENGINES.items()
        if key != "resolve" and clock in spec.clocks and (not spec.serves or name in spec.serves)
    ]


CASES = [
    (kind, engine, clock)
    for kind in CLASSES
    for clock in ("exact", "staircase")
    for engine in engines_of(kind, clock)
]


def rewards_of(rng, style, arms):
    if style == 0:
        return rng.integers(0, 2, len(arms)).astype(float)
    if style == 1:
        return np.full(len(arms), 0.5)
    return rng.random(len(arms))


def lockstep(policy, oracle, rng, rounds, style):
    """Drive both with the same calls; compare every base."""
    n = policy.n_arms
    late, gone = [], set()
    for t in range(rounds):
        act = rng.integers(12)
        if act == 0 and len(gone) < n - 1:
            arm = int(rng.integers(n))
            if arm not in gone:
                gone.add(arm)
                policy.delete([arm])
                oracle.delete([arm])
        elif act == 1 and gone:
            arm = gone.pop()
            policy.insert([arm])
            oracle.insert([arm])
        if act == 2:
            out = rng.choice(n, int(rng.integers(1, n + 1)), replace=False)
            arms = policy.select(exclude=out)
            assert np.array_equal(arms, oracle.select(exclude=out)), t
        else:
            arms = policy.select()
            assert np.array_equal(arms, oracle.select()), t
        policy._engine._check()
        rewards = rewards_of(rng, style, arms)
        if act == 3:
            late.append((arms, rewards))
            continue
        if act == 4:
            continue
        if act == 5 and len(arms):
            arms, rewards = arms[:1], rewards[:1]
        elif act == 6:
            order = rng.permutation(len(arms))
            arms, rewards = arms[order], rewards[order]
        elif act == 7:  # late feedback, and an arm several times
            late.append((arms, rewards))
            any_arm = np.array([int(rng.integers(n))] * 2)
            late.append((any_arm, rewards_of(rng, style, any_arm)))
            arms = np.concatenate([a for a, _ in late])
            rewards = np.concatenate([r for _, r in late])
            late = []
        policy.update(arms, rewards)
        oracle.update(arms, rewards)
        policy._engine._check()


def run(kind, engine, clock, seeds, sizes, rounds):
    for seed in seeds:
        rng = np.random.default_rng([seed, CLASSES.index(kind)])
        n = 1 if seed % 40 == 0 else int(rng.integers(1, sizes))
        matroid, _ = RANDOM[kind](rng, n)
        options = {"clock": clock, "step": float(rng.choice([0.003, 0.05, 0.4]))}
        policy = sb.CUCB(matroid, engine=engine, **options)
        oracle = sb.CUCB(matroid, engine="resolve", **options)
        if seed % 3 == 0:  # a warm start in which all arms are alike
            everyone = np.arange(n)
            for one in (policy, oracle):
                one.update(everyone, np.full(n, 0.5))
        lockstep(policy, oracle, rng, rounds, seed % 4)


@pytest.mark.thin
@pytest.mark.parametrize(("kind", "engine", "clock"), CASES)
def test_small_instances(kind, engine, clock):
    run(kind, engine, clock, range(45), 10, 18)


@pytest.mark.thin(1)
@pytest.mark.parametrize(("kind", "engine", "clock"), CASES)
def test_medium_instances(kind, engine, clock):
    run(kind, engine, clock, range(1000, 1012), 60, 25)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "engine", "clock"), CASES)
def test_many_instances(kind, engine, clock):
    """353 of them for each class, engine and clock."""
    run(kind, engine, clock, range(3000, 3285), 10, 18)
    run(kind, engine, clock, range(4000, 4068), 60, 25)


@pytest.mark.thin
@pytest.mark.bounds
@pytest.mark.parametrize(("kind", "engine", "clock"), CASES)
def test_a_few_with_bounds_checked(kind, engine, clock):
    run(kind, engine, clock, range(2000, 2020), 25, 25)


@pytest.mark.thin
@pytest.mark.bounds
@pytest.mark.parametrize("seed", range(12))
def test_wide_bases_of_the_kinetic_engine(seed):
    """Bases of a hundred arms: the whole base leaves at once, or part of it, or all outsiders come in."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(110, 260))
    groups = rng.integers(0, 3, n)
    matroid = [
        sb.Uniform(n, 100),
        sb.Uniform(n, n - 5),
        sb.Partition(groups, [60, 1, 30]),
        sb.Partition(groups, [2, 1, 10**6]),
    ][seed % 4]
    policy, oracle = sb.CUCB(matroid, engine="kinetic"), sb.CUCB(matroid, engine="resolve")
    lockstep(policy, oracle, rng, 40, seed % 3)
    for _ in range(30):  # the plain course: every answer comes back whole
        arms = policy.select()
        assert np.array_equal(arms, oracle.select())
        rewards = rewards_of(rng, seed % 3, arms)
        policy.update(arms, rewards)
        oracle.update(arms, rewards)
        policy._engine._check()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "engine", "clock"), [case for case in CASES if case[2] == "staircase" or case[1] == "kinetic"]
)
def test_one_long_run(kind, engine, clock):
    """K = 2,000, 10^5 rounds (10^4 where every round asks an oracle from Python), compared every round."""
    rng = np.random.default_rng(7)
    matroid, rounds = {
        "uniform": lambda: (sb.Uniform(2000, 10), 100_000),
        "partition": lambda: (sb.Partition(rng.integers(0, 40, 2000), rng.integers(1, 4, 40)), 100_000),
        "laminar": lambda: (
            sb.Laminar(2000, [(range(2000), 12), *((range(a, a + 200), 3) for a in range(0, 2000, 200))]),
            100_000,
        ),
        "graphic": lambda: (sb.Graphic(rng.integers(0, 100, (2000, 2))), 100_000),
        "transversal": lambda: (sb.Transversal(rng.integers(0, 20, (2000, 3))), 100_000),
        "rational": lambda: (sb.Linear(rng.integers(-2, 3, (2000, 8))), 10_000),
    }[kind]()
    if engine == "hot-cold":
        rounds = 10_000
    env = sb.Bernoulli(matroid, rng.random(matroid.n_arms).round(2), seed=1)
    policy = sb.CUCB(matroid, engine=engine, clock=clock)
    oracle = sb.CUCB(matroid, engine="resolve", clock=clock)
    for t in range(rounds):
        arms = policy.select()
        assert np.array_equal(arms, oracle.select()), t
        rewards = env.draw(arms)
        policy.update(arms, rewards)
        oracle.update(arms, rewards)
        if t % 5_000 == 0:
            policy._engine._check()
