"""Indices under the exact clock, by lots of equal arms and by bounds with deadlines: lockstep with all indices."""

from __future__ import annotations

import numpy as np
import pytest

import semibandit as sb
from semibandit.policies.index import lots
from semibandit.policies.index.formulas import BOUNDS, PLACES, WHAT
from support.random_matroids import RANDOM

MAKERS = {
    "kl": lambda m, **o: sb.KLOSM(m, **o),
    "kl0": lambda m, **o: sb.KLOSM(m, loglog=0.0, **o),
    "clip": lambda m, **o: sb.CUCB(m, clip=True, clock="exact", **o),
    "ucb-v": lambda m, **o: sb.CUCB(m, index="ucb-v", clock="exact", **o),
}
CLASSES = ["uniform", "partition", "laminar", "graphic", "transversal"]


@pytest.fixture
def lots_of_any_size(monkeypatch):
    """Few arms are kept in lots too, as many as there are room for."""
    monkeypatch.setattr(lots, "_FROM", 1)
    monkeypatch.setattr(lots, "_SHARE", 1)


def best_base(policy, independent, present):
    """Greedy over the indices of all arms, by the slow test of independence."""
    arms = np.flatnonzero(present)
    index = policy._weights_of(arms)
    base = []
    for k in arms[np.lexsort((arms, -index))].tolist():
        if independent([*base, k]):
            base.append(k)
    return sorted(base)


def rewards_of(rng, means, arms, binary):
    chance = rng.random(len(arms))
    if binary:
        return (chance < means[arms]).astype(float)
    return np.clip(means[arms] + 0.2 * (chance - 0.5), 0.0, 1.0)


def play(rng, policy, independent, rounds, binary, churn=True):
    """Rounds with exclusions, deletions, feedback that comes late and in parts, saved and cloned policies."""
    n, means = policy.n_arms, rng.random(policy.n_arms)
    present, late, seen = np.ones(n, dtype=bool), [], set()
    for t in range(rounds):
        event = rng.random() if churn else 1.0
        if event < 0.04 and present.sum() > 2:
            gone = rng.choice(np.flatnonzero(present), 1)
            policy.delete(gone)
            present[gone] = False
        elif event < 0.08 and not present.all():
            back = rng.choice(np.flatnonzero(~present), 1)
            policy.insert(back)
            present[back] = True
        elif event < 0.10:
            policy.reset(rng.choice(np.flatnonzero(present), 1))
        elif event < 0.12:
            policy = policy.clone()
        elif event < 0.18:  # rounds in which no engine is asked, and time goes by all the same
            for _ in range(int(rng.integers(1, 40))):
                policy.select(among=np.flatnonzero(present)[:2])
        out = present.copy()
        if churn and t % 11 == 7:
            out[rng.integers(n)] = False
            arms = policy.select(exclude=np.flatnonzero(present & ~out))
        else:
            arms = policy.select()
        assert arms.tolist() == best_base(policy, independent, out), t
        seen.add(int(policy._index.own.meta[WHAT]))
        reward = rewards_of(rng, means, arms, binary)
        if churn and t % 7 == 3:
            late.append((arms, reward))
        else:
            half = len(arms) // 2 if t % 5 == 4 else len(arms)
            policy.update(arms[:half], reward[:half])
        if late and t % 7 == 6:
            policy.update(*late.pop())
        if t % 23 == 0:
            policy._check()
    policy._check()
    return seen


@pytest.mark.thin
@pytest.mark.bounds
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("kind", CLASSES)
def test_lockstep_with_all_indices(kind, name, lots_of_any_size):
    rng, seen = np.random.default_rng(17), set()
    for trial in range(6):
        matroid, independent = RANDOM[kind](rng, int(rng.integers(1, 10 if kind == "transversal" else 24)))
        seen |= play(rng, MAKERS[name](matroid), independent, 60, trial % 3 > 0)
    assert PLACES in seen


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("share", [1, 3, 1 << 30])
def test_lockstep_with_all_indices_on_many_instances(kind, name, share, monkeypatch):
    monkeypatch.setattr(lots, "_FROM", 1)
    monkeypatch.setattr(lots, "_SHARE", share)
    rng, seen = np.random.default_rng(share), set()
    # The slow test of matchings goes through all of them.
    most = 10 if kind == "transversal" else 40
    for trial in range(25):
        matroid, independent = RANDOM[kind](rng, int(rng.integers(1, most)))
        seen |= play(rng, MAKERS[name](matroid), independent, 120, trial % 2 > 0, churn=trial % 4 > 0)
    assert (BOUNDS if share > 3 else PLACES) in seen


@pytest.mark.parametrize("name", MAKERS)
def test_many_arms(name):
    rng = np.random.default_rng(3)
    for binary, what in ((True, PLACES), (False, BOUNDS)):
        policy = MAKERS[name](sb.Uniform(600, 4))
        means = 0.5 * rng.random(600)
        for t in range(500):
            arms = policy.select()
            index = policy._weights_of(np.arange(600))
            assert arms.tolist() == sorted(np.argsort(-index, kind="stable")[:4].tolist()), t
            policy.update(arms, rewards_of(rng, means, arms, binary))
        assert policy._index.own.meta[WHAT] == what
        policy._check()


def test_few_weights_change_in_a_round():
    policy = sb.KLOSM(sb.Uniform(20_000, 5))
    env = sb.Bernoulli(policy.matroid, np.linspace(0.1, 0.6, 20_000), seed=2)
    sb.simulate(policy, env, rounds=5_000)
    before, changed = policy.records["alpha"].copy(), 0
    for _ in range(300):
        sb.simulate(policy, env, rounds=1)
        changed += int((policy.records["alpha"] != before).sum())
        before = policy.records["alpha"].copy()
    assert changed <= 300 * 5 * 2
    assert policy._index.own.lots.meta[lots.N_LOTS] < 200


@pytest.mark.parametrize("options", [{"ties": "random"}, {"prior": (0.3, 2.5)}])
def test_priors_and_random_ties(options, lots_of_any_size):
    rng = np.random.default_rng(8)
    for trial in range(4):
        matroid, independent = RANDOM["partition"](rng, 20)
        play(rng, sb.KLOSM(matroid, **options), independent, 60, trial % 2 > 0)


@pytest.mark.thin
@pytest.mark.parametrize("name", MAKERS)
def test_bounds_end_in_rounds_that_ask_no_engine(name, monkeypatch):
    monkeypatch.setattr(lots, "_FROM", 1 << 30)  # bounds only
    rng = np.random.default_rng(5)
    policy, means = MAKERS[name](sb.Uniform(60, 3)), rng.random(60)
    for t in range(400):
        for _ in range(0 if t % 3 else int(rng.integers(1, 100))):
            policy.select(among=[0, 1, 2])
        arms = policy.select()
        index = policy._weights_of(np.arange(60))
        assert arms.tolist() == sorted(np.lexsort((np.arange(60), -index))[:3].tolist()), t
        policy._check()
        policy.update(arms, rewards_of(rng, means, arms, binary=False))
    assert policy._index.own.meta[WHAT] == BOUNDS
