"""Random ties: arms never seen come in a random order that the seed tells, and nothing else changes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import semibandit as sb
from semibandit.data.instances import random_environment
from semibandit.engines import ENGINES
from semibandit.policies.catalogue import POLICIES

KINDS = ["uniform", "partition", "laminar", "graphic", "transversal", "linear"]
CASES = [
    ("cucb", {}),
    ("cucb", {"clock": "staircase"}),
    ("cucb", {"clip": True}),
    ("cucb", {"index": "ucb-v", "clock": "staircase"}),
    ("cucb", {"prior": (0.4, 2.0)}),
    ("kl-osm", {}),
    ("kl-osm", {"prior": (0.4, 2.0)}),
    ("greedy", {}),
    ("epsilon-greedy", {"epsilon": 0.2}),
    ("sliding-window-cucb", {"window": 9}),
    ("discounted-cucb", {"discount": 0.5}),
]
cases = pytest.mark.parametrize(
    ("name", "options"), CASES, ids=lambda x: x if isinstance(x, str) else ",".join(x)
)


def make(name, options, matroid, seed=0, ties="random"):
    return POLICIES[name].factory(matroid, ties=ties, seed=seed, **options)


@pytest.mark.thin
@cases
def test_the_first_base_is_any_base(name, options):
    """All 15 pairs of 6 arms come up as often as chance has it: chi-square with 14 degrees of freedom."""
    pairs = {pair: i for i, pair in enumerate(itertools.combinations(range(6), 2))}
    counted, n = np.zeros(15), 900
    for seed in range(n):
        counted[pairs[tuple(make(name, options, sb.Uniform(6, 2), seed).select().tolist())]] += 1
    chi = ((counted - n / 15) ** 2 / (n / 15)).sum()
    assert 3.0 < chi < 40.0, counted  # 1 in 4000 would lie above


@cases
def test_what_is_shown_stays_what_it_is(name, options):
    policy, plain = make(name, options, sb.Uniform(8, 2)), make(name, options, sb.Uniform(8, 2), ties="id")
    for one in (policy, plain):
        one.update([3, 5, 5], [0.5, 1.0, 0.25])
        one.select()
    np.testing.assert_array_equal(policy.counts, plain.counts)
    np.testing.assert_allclose(policy.means, plain.means, rtol=0, atol=1e-7)
    np.testing.assert_allclose(policy.scores(np.arange(8)), plain.scores(np.arange(8)), rtol=0, atol=1e-7)
    assert policy.prior == plain.prior and policy.describe()["ties"] == "random"
    assert "ties" not in plain.describe()
    first = policy.decide(among=[0, 1, 2])
    assert set(first.arms.tolist()) <= {0, 1, 2}
    if "prior" not in options and name != "epsilon-greedy":
        assert np.isinf(first.scores).all() and np.isnan(first.account.mean).all()


@pytest.mark.thin(1)
@cases
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_run(kind, name, options, tmp_path):
    """Stepwise, from a file, as a clone and compiled; bases are bases, and all arms are covered as soon as by id."""
    env = random_environment("bernoulli", kind, 20, 4 if kind != "graphic" else 6, seed=2)
    one, two = make(name, options, env.matroid, 5), make(name, options, env.matroid, 5)
    compiled = make(name, options, env.matroid, 5)
    other = make(name, options, env.matroid, 6)
    world, differs = env.clone(), False
    for t in range(60):
        arms = one.select()
        assert arms.tolist() == two.select().tolist() and env.matroid.is_independent(arms)
        assert len(arms) == env.matroid.rank
        differs |= arms.tolist() != other.select().tolist()
        rewards = world.draw(arms)
        for policy in (one, two, other):
            policy.update(arms, rewards)
        if t == 20:
            two = two.clone()
        if t == 40:
            two.save(tmp_path / "policy")
            two = sb.load(tmp_path / "policy")
    sb.simulate(compiled, env.clone(), rounds=60)
    assert compiled.counts.tolist() == one.counts.tolist()
    assert differs
    one._engine._check()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("clock", ["exact", "staircase"])
def test_engines_decide_alike(kind, clock):
    """None of them needs the weights of arms never seen to be infinite."""
    env = random_environment("bernoulli", kind, 40, 4 if kind != "graphic" else 9, seed=3)
    engines = [name for name, spec in ENGINES.items() if spec.fits(env.matroid, clock)]
    runs = []
    for engine in engines:
        policy = sb.CUCB(env.matroid, engine=engine, clock=clock, ties="random", seed=4)
        runs.append(sb.simulate(policy, env.clone(), rounds=150, record_arms=True).arms)
        policy._engine._check()
    for run in runs[1:]:
        np.testing.assert_array_equal(run, runs[0])


@cases
def test_arms_that_are_new_come_in_random_order(name, options):
    """Reset and grown arms draw anew; dropped decisions leave arms never seen as they were."""
    if name == "epsilon-greedy":
        options = {"epsilon": 0.0}
    orders = set()
    for seed in range(6):
        policy = make(name, options, sb.Uniform(12, 3), seed)
        before = policy._first.copy()
        waits = policy.decide(count=2)
        for decision in waits:
            policy.drop(decision)
        assert policy.decide().arms.tolist() == waits[0].arms.tolist()
        policy.update(np.arange(12), np.full(12, 0.5))
        policy.reset([2, 7])
        assert (policy._first != before).tolist() == [k in (2, 7) for k in range(12)]
        assert policy.counts[[2, 7]].tolist() == [0, 0]
        policy.grow(sb.Uniform(40, 3))
        assert len(np.unique(policy._first)) == 40 and policy.counts.sum() == 10
        policy.delete([2, 7])
        orders.add(tuple(policy.select().tolist()))
        if "prior" not in options:
            assert min(orders) >= (0, 0, 0) and all(k >= 12 for order in orders for k in order)
        twin = policy.clone()
        for _ in range(20):
            arms = policy.select()
            assert arms.tolist() == twin.select().tolist()
            for one in (policy, twin):
                one.update(arms, np.full(3, 0.25))
        policy._engine._check()
    if "prior" not in options:
        assert len(orders) >= 5


def test_costs_and_refusals():
    policy = sb.minimize(sb.CUCB(sb.Uniform(9, 2), ties="random", seed=3))
    assert policy.ties == "random" and np.isneginf(policy.scores([0, 1])).all()
    policy.learn(policy.decide(), [0.5, 0.5])
    with pytest.raises(sb.ParameterError, match="ties"):
        sb.CUCB(sb.Uniform(3, 1), ties="randm")
    assert sb.CUCB(sb.Uniform(5, 2), seed=7).select().tolist() == [0, 1]
