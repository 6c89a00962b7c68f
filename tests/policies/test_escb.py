"""ESCB: its greedy in step with the naive one, its guarantee and certificate against all bases, what it looks at."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import semibandit as sb
from oracles.escb import Arms, aescb, best_index, gain, greedy, parts
from semibandit.testing import check_policy
from support.base_index import ACTIONS, KINDS, in_step, started
from support.random_matroids import RANDOM
from support.seeds import seeds


def naive(policy, t, arms, known):
    return sorted(greedy(known, policy.confidence_width, arms))


@pytest.mark.thin
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 9),
    actions=ACTIONS,
    exploration=st.sampled_from(["practical", "theory", 0.0, 2.0]),
)
def test_decisions_are_those_of_the_naive_greedy(kind, seed, n, actions, exploration):
    matroid, known = started(kind, seed, n)
    policy = sb.ESCB(matroid, exploration=exploration)
    in_step(policy, known, actions, lambda policy, t, arms: naive(policy, t, arms, known))


@pytest.mark.parametrize("kind", ["uniform", "partition", "graphic"])
@pytest.mark.parametrize("seed", seeds(1, 6))
def test_long_runs_are_those_of_the_naive_greedy(kind, seed):
    """Until counts differ much, where one exchange changes V many times over."""
    matroid, known = started(kind, 100 + seed, 12)
    means = np.random.default_rng(seed).random(12)
    env = sb.Bernoulli(matroid, means, seed=seed)
    policy = sb.ESCB(matroid)
    for _ in range(250):
        arms = policy.select()
        assert arms.tolist() == sorted(greedy(known, policy.confidence_width, known.here()))
        rewards = env.draw(arms)
        policy.update(arms, rewards)
        known.update(arms.tolist(), rewards.tolist())
    policy._check()


def known_state(kind, seed, n=7):
    """A matroid whose arms were seen, some often and some once, by policy and oracle."""
    matroid, known = started(kind, seed, n)
    rng = np.random.default_rng([seed, 5])
    policy = sb.ESCB(matroid)
    for arm in range(n):
        plays = int(rng.choice([1, 2, 5, 30, 400]))
        rewards = rng.random(plays).tolist()
        policy.update([arm] * plays, rewards)
        known.update([arm] * plays, rewards)
    for _ in range(int(rng.integers(1, 60))):
        policy.select()
    return policy, known


@pytest.mark.parametrize("kind", sorted(RANDOM))
def test_contract_on_every_matroid(kind):
    for seed, n in ((0, 1), (1, 9)):
        matroid, _ = RANDOM[kind](np.random.default_rng(seed), n)
        check_policy(lambda m=matroid: sb.ESCB(m), rounds=24)
        check_policy(lambda m=matroid: sb.minimize(sb.ESCB(m, reward_range=(-1.0, 2.0))), rounds=24)


@pytest.mark.thin(1)
@pytest.mark.parametrize("kind", KINDS)
def test_guarantee_and_certificate_on_all_bases(kind):
    """L(S) + 2 F(S) >= L(O) + F(O) for every base O, and h(lam) is at least the largest index."""
    for seed in range(25):
        policy, known = known_state(kind, seed)
        width = policy.confidence_width
        chosen = greedy(known, width, known.here())
        best = best_index(known, width, known.here())
        linear, root = parts(known, width, chosen)
        assert linear + 2.0 * root >= best - 1e-12
        index, bound, _ = policy.certificate()
        assert index == pytest.approx(linear + root, abs=1e-12)
        assert bound >= best >= index - 1e-12
        about = policy.describe()
        assert (about["index"], about["bound"]) == (index, bound) and about["gap"] == bound - index >= 0.0


def test_the_certificate_is_tight_where_one_base_is_best():
    """A single base: greedy is exact, and so is the bound, up to the steps of its search."""
    policy = sb.ESCB(sb.Uniform(3, 3))
    policy.update([0, 1, 1, 2, 2, 2], [0.5, 0.25, 0.75, 1.0, 0.0, 0.5])
    for _ in range(50):
        policy.select()
    index, bound, _ = policy.certificate()
    v = 1.0 + 1 / 2 + 1 / 3
    assert index == pytest.approx(1.5 + math.sqrt(0.5 * math.log(50) * v))
    assert index <= bound <= index * (1 + 1e-6)


def test_nothing_is_certified_before_all_arms_were_seen():
    policy = sb.ESCB(sb.Uniform(4, 2))
    policy.update([0, 1, 2], [0.5, 0.5, 0.5])
    policy.select()
    assert policy.certificate()[:2] == (math.inf, math.inf) and policy.describe()["gap"] == 0.0
    policy.delete([3])
    assert policy.certificate().bound < math.inf
    policy.delete([0, 1, 2])
    assert policy.certificate()[:2] == (0.0, 0.0)


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_the_programme_of_aescb_and_the_greedy_are_near_the_maximum(rank):
    """Two oracles of m-sets agree up to the rounding of means, and greedy is rarely far from them."""
    far = 0
    for seed in range(30):
        rng = np.random.default_rng([seed, rank])
        known = Arms(8, lambda arms: len(set(arms)) <= rank)
        for arm in range(8):
            known.update([arm] * (n := int(rng.integers(1, 60))), rng.random(n).tolist())
        width, xi = math.sqrt(0.5 * math.log(200)), 0.001
        best = best_index(known, width, range(8))
        assert sum(parts(known, width, aescb(known, width, range(8), rank, xi))) >= best - rank * xi - 1e-12
        far += sum(parts(known, width, greedy(known, width, range(8)))) < 0.95 * best
    assert far <= 3


def test_of_one_arm_a_round_it_is_cucb():
    matroid = sb.Uniform(7, 1)
    env = sb.Bernoulli(matroid, np.linspace(0.2, 0.8, 7), seed=3)
    runs = [
        sb.simulate(policy, env.clone(), 2000, record_arms=True).arms
        for policy in (sb.ESCB(matroid, exploration=1.5), sb.CUCB(matroid, exploration=1.5))
    ]
    assert np.array_equal(*runs)


@pytest.mark.parametrize(
    ("exploration", "scale", "extra"), [("practical", 0.5, 0.0), ("theory", 0.5, 12.0), (2.0, 2.0, 0.0)]
)
def test_the_width_is_the_root_of_f(exploration, scale, extra):
    policy = sb.ESCB(sb.Uniform(5, 3), exploration=exploration, reward_range=(-1.0, 3.0))
    for t in range(1, 40):
        policy.select()
        log = math.log(t)
        f = scale * 16.0 * (log + extra * math.log(max(1.0, log)))
        assert policy.confidence_width == pytest.approx(math.sqrt(f))


def test_gains_begin_at_the_index_of_cucb_and_fall():
    assert gain(0.5, 9, 2.0, 0.0) == pytest.approx(0.5 + 2.0 / 3.0)
    falling = [gain(0.5, 9, 2.0, spent) for spent in np.linspace(0.0, 3.0, 50)]
    assert sorted(falling, reverse=True) == falling
    direct = 0.5 + math.sqrt(4.0 * (1.5 + 1 / 9)) - math.sqrt(4.0 * 1.5)
    assert gain(0.5, 9, 2.0, 1.5) == pytest.approx(direct)


@pytest.mark.parametrize(
    "matroid",
    [
        sb.Uniform(30_000, 5),
        sb.Partition(np.arange(30_000) % 5, 1),
        sb.Graphic([(i, j) for i in range(60) for j in range(i)] * 10),
    ],
    ids=lambda m: m.name,
)
def test_few_arms_are_looked_at(matroid):
    means = np.random.default_rng(1).random(matroid.n_arms)
    policy = sb.ESCB(matroid)
    env = sb.Bernoulli(matroid, means, seed=1)
    sb.simulate(policy, env, rounds=1 + 2 * matroid.n_arms // matroid.rank)
    before = policy.describe()["looked_at"] * policy.t
    sb.simulate(policy, env, rounds=500)
    looked_at = (policy.describe()["looked_at"] * policy.t - before) / 500
    assert looked_at < 0.02 * matroid.n_arms
    policy._check()


@pytest.mark.parametrize("wrong", ["most", -1.0, float("nan"), [1.0]])
def test_a_wrong_exploration_is_refused(wrong):
    with pytest.raises(sb.ParameterError, match="exploration"):
        sb.ESCB(sb.Uniform(4, 2), exploration=wrong)


@pytest.mark.parametrize("policy", [sb.ESCB(sb.Uniform(5, 2)), sb.OSSB(sb.Uniform(5, 2))])
def test_a_spoilt_state_is_refused(policy):
    policy.update([0, 1], [1.0, 0.0])
    for name, value in (("width", math.nan), ("records", 0.5), ("deleted", 9)):
        state = policy._state()
        if name == "width":
            state[name] = value
        elif name == "records":
            state[name] = state[name].copy()
            state[name][0] = value
        else:
            state[name] = np.array([value])
        with pytest.raises((sb.FileError, sb.ArmError)):
            type(policy)(policy.matroid)._set_state(state)
