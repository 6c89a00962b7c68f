"""A policy that forgot arms goes on as one that never heard of them; what cannot forget says so."""

from __future__ import annotations

import numpy as np
import pytest

import semibandit as sb
from semibandit.errors import ArmError, ParameterError
from semibandit.policies.catalogue import POLICIES, make_policy
from support.random_matroids import RANDOM

# Policies without randomness whose decisions follow from counts, sums and the number of rounds alone.
EXACT = [
    "cucb",
    "cucb:clock=staircase",
    "cucb:clip=true",
    "cucb:index=ucb-v",
    "cucb:index=ucb-v,clock=staircase",
    "kl-osm",
    "kl-osm:clock=staircase",
    "greedy",
    "sliding-window-cucb:window=15",
    "faster-cucb:horizon=500",
    "faster-cucb:horizon=500,method=directions",
    "faster-cucb:horizon=20",
]
SMALL = {"horizon": 300}


def make(spec, matroid):
    return make_policy(
        spec, matroid, seed=4, context={**SMALL, "means": np.linspace(0.1, 0.9, matroid.n_arms)}
    )


@pytest.mark.thin
@pytest.mark.parametrize("kind", ["uniform", "partition", "laminar", "graphic", "transversal"])
@pytest.mark.parametrize("spec", EXACT)
def test_the_rest_of_the_run_is_that_of_a_policy_that_never_saw_them(kind, spec):
    rng = np.random.default_rng(3)
    for n in (2, 6, 14):
        matroid, _ = RANDOM[kind](rng, n)
        one, two = make(spec, matroid), make(spec, matroid)
        forgotten = rng.permutation(n)[: 1 + n // 3]
        for t in range(30):
            # Feedback of any arms, played or not; `two` is told nothing of those that `one` will forget.
            arms = rng.integers(0, n, 4)
            rewards = rng.integers(0, 5, 4) / 4
            one.update(arms, rewards)
            kept = ~np.isin(arms, forgotten)
            two.update(arms[kept], rewards[kept])
            if t % 3:
                one.select(), two.select()
        gone = forgotten[:1]
        if n > 2:
            for policy in (one, two):
                policy.delete(gone)
        one.reset(np.concatenate([forgotten, forgotten[:1]]))
        for t in range(40):
            if t == 10 and n > 2:
                for policy in (one, two):
                    policy.insert(gone)
            arms = one.select()
            assert arms.tolist() == two.select().tolist()
            assert one.counts.tolist() == two.counts.tolist()
            rewards = rng.integers(0, 5, len(arms)) / 4
            for policy in (one, two):
                policy.update(arms, rewards)
        twin = one.clone()
        assert twin.select().tolist() == one.select().tolist()


@pytest.mark.parametrize("spec", [name for name in POLICIES if name != "fpl"])
@pytest.mark.parametrize("kind", ["uniform", "graphic"])
def test_every_policy_forgets_or_says_that_it_cannot(kind, spec):
    rng = np.random.default_rng(5)
    matroid, _ = RANDOM[kind](rng, 9)
    policy = make(spec, matroid)
    for _ in range(30):
        arms = policy.select()
        policy.update(arms, rng.random(len(arms)))
    policy.update(np.arange(9), rng.random(9))
    counts, means, t = policy.counts, policy.means, policy.t
    policy.delete([2])
    policy.reset([2, 5])
    counts[[2, 5]], means[[2, 5]] = 0, np.nan
    assert np.array_equal(policy.counts, counts) and np.array_equal(policy.means, means, equal_nan=True)
    assert policy.t == t
    if hasattr(policy, "_check"):
        policy._check()
    assert 2 not in policy.select()
    policy.insert([2])
    for _ in range(20):
        arms = policy.select()
        assert matroid.is_independent(arms) and len(arms) == matroid.rank
        policy.update(arms, rng.random(len(arms)))
    policy.reset([])
    for bad in ([9], [-1], [0.5]):
        with pytest.raises(ArmError):
            policy.reset(bad)


@pytest.mark.parametrize("kind", ["uniform", "partition", "graphic"])
@pytest.mark.parametrize("posterior", ["beta", "gaussian"])
def test_thompson_sampling_forgets_successes_too(kind, posterior):
    rng = np.random.default_rng(6)
    matroid, _ = RANDOM[kind](rng, 12)
    policy = sb.CTS(matroid, posterior=posterior, seed=2)
    for _ in range(10):
        policy.update(np.arange(12), rng.random(12))
        policy.delete([3])
        policy.reset([3, 4, 7])
        policy.insert([3])
        policy._check()
        assert policy.successes[[3, 4, 7]].sum() == policy.failures[[3, 4, 7]].sum() == 0
        assert (policy.counts > 0).sum() == 9
        policy.select()


def test_costs_are_forgotten():
    policy = sb.minimize(sb.CUCB(sb.Uniform(3, 1)))
    policy.update([0, 1, 2], [0.1, 0.5, 0.9])
    policy.reset([2])
    assert policy.counts.tolist() == [1, 1, 0] and policy.select().tolist() == [2]
    policy.grow(sb.Uniform(5, 1))
    assert policy.n_arms == 5 and policy.counts.tolist() == [1, 1, 0, 0, 0]


def test_what_cannot_forget_says_so():
    policy = sb.FPL(sb.Uniform(3, 1))
    policy.update([0], [0.5])
    with pytest.raises(ParameterError, match="FPL cannot forget single arms"):
        policy.reset([0])
    assert policy.counts.tolist() == [1, 0, 0]

    class Own(sb.Policy):
        def select(self, exclude=None): ...
        def _update(self, arms, rewards): ...

        counts = means = None

        def describe(self): ...

    with pytest.raises(ParameterError, match="Own cannot forget single arms"):
        Own(sb.Uniform(3, 1)).reset([0])
    own = Own(sb.Uniform(3, 1))
    with pytest.raises(ParameterError, match="Own cannot grow"):
        own.grow(sb.Uniform(5, 1))
    assert own.n_arms == 3


@pytest.mark.parametrize("clock", ["exact", "staircase"])
@pytest.mark.parametrize("spec", ["kl-osm", "cucb:clip=true", "cucb:index=ucb-v", "cucb"])
def test_arms_with_a_prior_are_weighed_by_their_index_after_they_were_forgotten(spec, clock):
    """The record of a forgotten arm holds mean and width of its prior, which are no weights of a nonlinear index."""
    name, _, option = spec.partition(":")
    options = {"clip": True} if option == "clip=true" else {"index": "ucb-v"} if option else {}
    for seed in range(12):
        rng = np.random.default_rng(seed)
        matroid = RANDOM[["uniform", "graphic", "transversal"][seed % 3]](rng, 9)[0]
        prior = (rng.uniform(0.1, 0.9, 9), rng.uniform(0.5, 3.0, 9))
        policy = POLICIES[name].factory(matroid, clock=clock, prior=prior, **options)
        for t in range(1, 60):
            arms = policy.select()
            assert np.array_equal(arms, matroid.max_weight_base(policy._indices_of(np.arange(9), t))), (
                seed,
                t,
            )
            policy.update(arms, rng.integers(0, 3, len(arms)) / 2.0)
            if t % 4 == 0:
                policy.reset(rng.integers(0, 9, 2))
