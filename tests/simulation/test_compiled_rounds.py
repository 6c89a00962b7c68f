"""Every policy in the compiled loop plays what it plays round by round, on every class of matroids."""

from __future__ import annotations

import numpy as np
import pytest

import semibandit as sb
from semibandit.policies.catalogue import POLICIES, make_policy
from support.random_matroids import RANDOM

COMPILED = ("uniform", "partition", "laminar", "graphic", "transversal")

# Variants with kernels or paths of their own.
SPECS = [
    *POLICIES,
    "cucb:clip=true",
    "cucb:index=ucb-v,clock=staircase",
    "kl-osm:clock=staircase",
    "sliding-window-cucb:window=15",
    "discounted-cucb:discount=0.6",
    "epsilon-greedy:decay=20",
    "cts:sampler=plain",
    "cts:posterior=gaussian",
    "cts:posterior=gaussian,boosted=true",
    "maub:index=ucb",
    "robust-cucb:mean=median-of-means,blocks=3",
    "robust-cucb:mean=truncated,scale=0.3,clock=staircase",
]


def make(spec, matroid, seed=4):
    context = {"horizon": 120, "means": np.linspace(0.1, 0.9, matroid.n_arms)}
    return make_policy(spec, matroid, seed=seed, context=context)


def both_ways(policy, env, rounds=160):
    """The same run in parts of both paths, and all of it stepwise."""
    twin = policy.clone()
    whole = sb.simulate(twin, env.clone(), rounds, path="stepwise", record_arms=True)
    world, parts = env.clone(), []
    for n, path in ((rounds // 2, "compiled"), (7, "stepwise"), (rounds - rounds // 2 - 7, "compiled")):
        parts.append(sb.simulate(policy, world, n, path=path, record_arms=True))
        assert parts[-1].path == path
    assert np.array_equal(np.concatenate([part.arms for part in parts]), whole.arms)
    assert policy.t == twin.t == rounds
    assert np.array_equal(policy.counts, twin.counts)
    assert np.array_equal(policy.means, twin.means, equal_nan=True)
    # They go on alike, also after feedback in Python.
    for one in (policy, twin):
        one.update([0, 0], [0.25, 0.75])
    for _ in range(3):
        assert policy.select().tolist() == twin.select().tolist()


@pytest.mark.thin
@pytest.mark.parametrize("kind", COMPILED)
@pytest.mark.parametrize("spec", SPECS)
def test_compiled_and_stepwise_play_the_same_arms(spec, kind):
    matroid, _ = RANDOM[kind](np.random.default_rng(8), 13)
    env = sb.Beta(matroid, np.linspace(0.2, 0.8, matroid.n_arms), seed=4)
    both_ways(make(spec, matroid), env)


@pytest.mark.parametrize("spec", ["cucb", "kl-osm", "cts", "fpl"])
def test_costs_are_played_compiled_too(spec):
    matroid = sb.Graphic([(i, j) for i in range(6) for j in range(i)])
    env = sb.minimize(sb.Beta(matroid, np.linspace(0.2, 0.8, matroid.n_arms), seed=4))
    both_ways(sb.minimize(make(spec, matroid)), env)


@pytest.mark.parametrize("spec", POLICIES)
def test_matroids_that_run_in_python_are_played_stepwise(spec):
    matroid, _ = RANDOM["rational"](np.random.default_rng(3), 12)
    env = sb.Bernoulli(matroid, np.linspace(0.2, 0.8, matroid.n_arms), seed=4)
    result = sb.simulate(make(spec, matroid), env, 20)
    # These and Random need no engine; Random draws by the matroid's own greedy.
    assert result.path == ("compiled" if spec in ("maub", "escb", "ossb") else "stepwise")


@pytest.mark.parametrize("spec", ["cts", "sliding-window-cucb:window=500", "discounted-cucb:discount=0.2"])
def test_rounds_that_must_ask_are_played_alike(spec):
    """Groups of posteriors, the ring of the window and the engine of a new unit are made anew during the run."""
    matroid = sb.Uniform(400, 6)
    env = sb.Beta(matroid, np.random.default_rng(1).random(400), seed=2)
    both_ways(make(spec, matroid), env, rounds=600)


def test_a_subclass_that_changes_rounds_is_not_compiled():
    class Loud(sb.CUCB):
        name = "loud"

        def select(self, exclude=None):
            return super().select(exclude)

    class Renamed(sb.KLOSM):
        name = "renamed"

    assert Loud(sb.Uniform(5, 2)).compiled_rounds() is None
    assert Renamed(sb.Uniform(5, 2)).compiled_rounds() is not None
    assert sb.CUCB(sb.Uniform(5, 2), schedule=float).compiled_rounds() is None


def test_deleted_arms_are_not_played_compiled():
    matroid = sb.Uniform(12, 3)
    env = sb.Bernoulli(matroid, np.linspace(0.2, 0.8, 12), seed=4)
    for spec in ("cucb", "kl-osm", "cts", "cts:sampler=plain", "random", "fpl", "epsilon-greedy:epsilon=0.5"):
        policy = make(spec, matroid)
        policy.delete([0, 11])
        arms = sb.simulate(policy, env.clone(), 60, path="compiled", record_arms=True).arms
        assert set(arms.ravel().tolist()) == set(range(1, 11)), spec
