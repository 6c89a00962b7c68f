"""Many rounds at once against rounds in turns: the same arms, and the same policy afterwards, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import semibandit as sb
from semibandit.policies.catalogue import POLICIES, build_policy
from semibandit.policies.files import to_bytes
from support import random_matroids as rm

NAMES = [name for name in POLICIES if name not in ("oracle", "comb-lin-ts", "comb-lin-ucb")]


CLASSES = [
    rm.random_uniform,
    rm.random_partition,
    rm.random_laminar,
    rm.random_graphic,
    rm.random_transversal,
    rm.random_rational,
]


def random_matroid(rng, seed):
    return CLASSES[seed % len(CLASSES)](rng, int(rng.integers(1, 25)))[0]


def in_turns(policy, n):
    made = []
    for _ in range(n):
        made.append(policy.select())
        policy._wait(made[-1], 1)
    return made


def play(policy, twin, rng, steps):
    for _ in range(steps):
        n = int(rng.choice([1, 2, 3, 30]))
        arms, sizes = policy._select_many(n)
        expected = in_turns(twin, n)
        assert sizes.tolist() == [len(one) for one in expected]
        assert arms.tolist() == [arm for one in expected for arm in one.tolist()]
        assert policy.t == twin.t
        for one in expected[:: rng.integers(1, 4)]:
            rewards = rng.random(len(one)) if rng.random() < 0.8 else np.round(rng.random(len(one)))
            for each in (policy, twin):
                each.update(one, rewards)
                each._wait(one, -1)
        if rng.random() < 0.2 and hasattr(policy, "delete"):
            gone = [int(rng.integers(policy.n_arms))]
            for each in (policy, twin):
                each.delete(gone)
                each.insert(gone)
    assert to_bytes(policy) == to_bytes(twin)


def built(name, matroid, seed, **options):
    if "horizon" in POLICIES[name].options:
        options["horizon"] = 1000
    return build_policy(name, options, matroid, seed=seed)


@pytest.mark.parametrize("name", NAMES)
def test_every_policy(name):
    matroid = sb.Uniform(n_arms=30, rank=4)
    play(built(name, matroid, 3), built(name, matroid, 3), np.random.default_rng(1), 6)
    costs = [sb.minimize(built(name, matroid, 3)) for _ in range(2)]
    play(*costs, np.random.default_rng(2), 3)


@pytest.mark.parametrize("name", ["cucb", "cts"])
@pytest.mark.parametrize("seed", range(20))
def test_on_matroids_of_all_classes(name, seed):
    rng = np.random.default_rng(seed)
    matroid = random_matroid(rng, seed)
    play(built(name, matroid, seed), built(name, matroid, seed), rng, 5)


@pytest.mark.slow
@pytest.mark.bounds
@pytest.mark.parametrize("name", ["cucb", "cts"])
@pytest.mark.parametrize("seed", range(20, 170))
def test_on_many_matroids_of_all_classes(name, seed):
    rng = np.random.default_rng(seed)
    matroid = random_matroid(rng, seed)
    play(built(name, matroid, seed), built(name, matroid, seed), rng, 20)


@pytest.mark.parametrize(
    "name, options",
    [
        ("cucb", {"ties": "random"}),
        ("cucb", {"prior": (0.5, 2.0)}),
        ("cucb", {"clock": "staircase"}),
        ("cts", {"sampler": "plain"}),
        ("cts", {"posterior": "gaussian", "boosted": True}),
    ],
)
def test_options(name, options):
    matroid = sb.Uniform(n_arms=12, rank=3)
    two = [built(name, matroid, 5, **options) for _ in range(2)]
    play(*two, np.random.default_rng(5), 8)


def test_a_subclass_with_rounds_of_its_own_is_asked_round_by_round():
    class Reversed(sb.CUCB):
        def select(self, exclude=None, *, among=None, weights=None):
            return super().select(exclude, among=among, weights=weights)[::-1].copy()

    matroid = sb.Uniform(n_arms=5, rank=2)
    arms, sizes = Reversed(matroid)._select_many(2)
    assert arms.tolist() == [1, 0, 3, 2] and sizes.tolist() == [2, 2]
    assert not Reversed(matroid)._can_replay() and sb.CUCB(matroid)._can_replay()

    class Deaf(sb.CTS):
        def update(self, arms, rewards):
            pass

    assert not Deaf(matroid)._can_replay() and sb.CTS(matroid)._can_replay()
    assert Deaf(matroid)._select_many(3)[0].tolist() == sb.CTS(matroid)._select_many(3)[0].tolist()
