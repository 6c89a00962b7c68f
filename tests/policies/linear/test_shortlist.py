"""Short lists of arms: the decisions are those of a pass over all arms, whatever happens in between."""

from __future__ import annotations

import numpy as np
import pytest

import semibandit as sb
from semibandit.policies.linear import knowing, shortlist
from semibandit.policies.linear import policy as module

BOTH = [sb.CombLinTS, sb.CombLinUCB]
THETA = np.array([0.6, -0.3, 0.2])


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    """Lists for few arms, from the fourth round on."""
    monkeypatch.setattr(module, "SHORTLIST_FROM", 0)
    monkeypatch.setattr(module, "_BLAS_FROM", 0)
    for part in (module, knowing):
        monkeypatch.setattr(part, "FIRST_ROUND", 4)


def features_of(kind, rng, n):
    if kind == "ties":
        return rng.standard_normal((n // 8, 3))[rng.integers(0, n // 8, n)]
    if kind == "clusters":
        return rng.standard_normal((40, 3))[rng.integers(0, 40, n)] + 0.05 * rng.standard_normal((n, 3))
    return rng.standard_normal((n, 3))


def matroid_of(groups, rng, n):
    if groups == 1:
        return sb.Uniform(n, 4)
    capacities = [2] * (groups - 1) + [0]
    return sb.Partition(rng.integers(0, groups, n), capacities)


@pytest.mark.thin
@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("kind", ["usual", "ties", "clusters"])
def test_rounds_are_those_of_all_arms(cls, groups, kind):
    rng = np.random.default_rng(groups)
    n = 800
    features = features_of(kind, rng, n)
    matroid = matroid_of(groups, rng, n)
    policy = cls(matroid, features=features, reward_range=None, noise=0.3, seed=2)
    gone: list[int] = []
    waiting = []
    for t in range(1, 220):
        if t % 20 == 0:
            arm = int(policy._last[0])
            if arm not in gone:
                policy.delete([arm])
                gone.append(arm)
        if t == 150:
            policy.insert(gone)
            gone = []
        if t == 170:
            changed = rng.choice(n, 20, replace=False)
            rows = 2.0 * rng.standard_normal((20, 3))
            policy.reset(changed, features=rows)
            features[changed] = rows
        exclude = policy._last[:2].copy() if t % 9 == 0 else np.empty(0, dtype=np.int64)
        arms = policy.select(exclude=exclude) if t % 9 == 0 else policy.select()
        here = np.setdiff1d(np.arange(n), np.concatenate((gone, exclude))).astype(np.int64)
        weights = policy._indices_of(here, t)
        assert arms.tolist() == matroid.max_weight_base(weights, among=here).tolist(), t
        if t % 5 == 0:
            waiting.append(policy.decide())
        if t % 15 == 0:
            one = waiting.pop(0)
            if t % 2:
                policy.learn(one, np.full(len(one.arms), 0.1))
            else:
                policy.drop(one)
        policy.update(arms, features[arms] @ THETA + 0.3 * rng.standard_normal(len(arms)))
        policy._check()
    told = policy.describe()
    assert told["lists"] > 1 and told["short_rounds"] > 60, told


def test_a_list_that_misses_is_given_up(monkeypatch):
    """Coefficients that move away from those of the list are noticed in the same round."""
    rng = np.random.default_rng(3)
    features = rng.standard_normal((800, 3))
    policy = sb.CombLinUCB(sb.Uniform(800, 3), features=features, reward_range=None, noise=0.1)
    for t in range(1, 400):
        theta = THETA if t < 200 else -THETA[::-1]
        arms = policy.select()
        weights = policy._indices_of(np.arange(800), t)
        assert arms.tolist() == policy.matroid.max_weight_base(weights).tolist(), t
        policy.update(arms, features[arms] @ theta)
    told = policy.describe()
    assert told["lists"] > 3 and told["short_rounds"] > 100


def test_no_list_where_every_arm_may_win():
    rng = np.random.default_rng(4)
    features = rng.standard_normal((300, 12))
    policy = sb.CombLinTS(sb.Uniform(300, 2), features=features, reward_range=None, noise=50.0, seed=1)
    for _ in range(60):
        arms = policy.select()
        policy.update(arms, np.zeros(2))
    assert policy._list is None and policy.describe()["short_rounds"] == 0


def test_clones_and_costs_decide_alike():
    rng = np.random.default_rng(5)
    features = rng.random((600, 3))
    policy = sb.minimize(
        sb.CombLinTS(sb.Uniform(600, 3), features=features, reward_range=(0.0, 2.0), noise=0.05, seed=3)
    )
    theta = np.array([0.2, 0.5, 0.4])
    for t in range(120):
        arms = policy.select()
        policy.update(arms, features[arms] @ theta)
        if t == 90:
            twin = policy.clone()
            assert twin.inner._list is None and policy.inner._list is not None
        if t >= 90:
            decision = twin.decide()
            again = policy.decide()
            assert decision.arms.tolist() == again.arms.tolist()
            for one, made in ((twin, decision), (policy, again)):
                one.drop(made)
            twin.select()
            policy.select()
            twin.update(arms, features[arms] @ theta) if t > 90 else None
    assert policy.describe()["short_rounds"] > 60


def test_large_policies_are_simulated_stepwise(monkeypatch):
    env = sb.LinearRewards(sb.Uniform(50, 2), np.random.default_rng(1).random((50, 3)), [0.1, 0.2, 0.3])
    policy = sb.CombLinUCB(env.matroid, features=env.features)
    assert sb.simulate(policy, env, rounds=5).path == "stepwise"
    monkeypatch.setattr(module, "SHORTLIST_FROM", shortlist.SHORTLIST_FROM)
    assert sb.simulate(policy, env, rounds=5).path == "compiled"
