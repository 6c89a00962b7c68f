"""Rewards outside the range: refused, or moved to its end and counted, by every policy and on every way in."""

from __future__ import annotations

import numpy as np
import pytest

import semibandit as sb
from semibandit.policies.catalogue import POLICIES, build_policy
from semibandit.testing import check_policy

LOW, HIGH = 2.0, 5.0


def make(name, matroid, outside="clip"):
    context = {"horizon": 100, "means": np.linspace(2.0, 5.0, matroid.n_arms)}
    return build_policy(name, {"outside": outside}, matroid, (LOW, HIGH), context=context)


def draws(rng, n):
    return rng.choice([-1e9, 1.0, 2.0, 3.0, 4.5, 5.0, 5.0000001, 7893.0], n)


@pytest.mark.parametrize("costs", [False, True])
@pytest.mark.parametrize("name", list(POLICIES))
def test_clips_as_if_it_had_been_told_the_end_of_the_range(name, costs):
    rng = np.random.default_rng(4)
    policy, told = (make(name, sb.Uniform(9, 3), outside) for outside in ("clip", "error"))
    if costs:
        policy, told = sb.minimize(policy), sb.minimize(told)
    outside = 0
    for t in range(40):
        if t == 20:
            policy = policy.clone()
        if t % 3:
            arms = policy.select()
            assert arms.tolist() == told.select().tolist()
            rewards = draws(rng, len(arms))
            policy.update(arms, rewards)
            told.update(arms, np.clip(rewards, LOW, HIGH))
        else:
            decision, other = policy.decide(), told.decide()
            assert decision.arms.tolist() == other.arms.tolist()
            rewards = draws(rng, len(decision.arms))
            policy.learn(decision, rewards.tolist())
            told.learn(other, np.clip(rewards, LOW, HIGH))
        outside += int(((rewards < LOW) | (rewards > HIGH)).sum())
        assert np.array_equal(policy.means, told.means, equal_nan=True)
        assert policy.clipped == outside and told.clipped == 0
    about = policy.describe()
    assert (about["outside"], about["clipped"]) == ("clip", outside) and "clipped" not in told.describe()


@pytest.mark.parametrize("name", list(POLICIES))
def test_what_is_not_a_number_is_refused_and_changes_nothing(name):
    policy = make(name, sb.Uniform(5, 2))
    policy.update([0, 1], [3.0, 9.0])
    for bad in (np.nan, np.inf, -np.inf):
        with pytest.raises(sb.RewardError, match="finite"):
            policy.update([0, 1], [99.0, bad])
    with pytest.raises(sb.ArmError):
        policy.update([0, 5], [99.0, 3.0])
    with pytest.raises(sb.ArmError):
        policy.update(np.array([0, -1]), np.array([99.0, 3.0]))
    assert policy.counts.tolist() == [1, 1, 0, 0, 0] and policy.clipped == 1


@pytest.mark.parametrize("name", ["cucb", "cts", "robust-cucb"])
def test_contract(name):
    check_policy(lambda: make(name, sb.Uniform(6, 2)))


@pytest.mark.parametrize("costs", [False, True])
def test_is_saved(tmp_path, costs):
    policy = make("cucb", sb.Uniform(4, 2))
    policy = sb.minimize(policy) if costs else policy
    policy.update([0, 1, 1], [9.0, 3.0, 0.0])
    path = tmp_path / "policy"
    policy.save(path)
    again = sb.load(path)
    assert again.clipped == 2 and again.outside == "clip"
    again.update([0], [99.0])
    assert (again.clipped, policy.clipped) == (3, 2)


@pytest.mark.parametrize("costs", [False, True])
@pytest.mark.parametrize("name", ["cucb", "cts", "random", "robust-cucb", "sliding-window-cucb"])
def test_compiled_and_stepwise_clip_alike(name, costs):
    matroid = sb.Graphic([(0, 1), (1, 2), (2, 0), (2, 3), (3, 0), (3, 1), (1, 4), (4, 0)])
    env = sb.UniformNoise(matroid, np.linspace(1, 6, 8), 2.0, reward_range=(-3, 9), seed=3)
    policy = make(name, matroid)
    if name == "random":  # no compiled draws of spanning trees
        matroid = sb.Uniform(8, 3)
        env = sb.UniformNoise(matroid, np.linspace(1, 6, 8), 2.0, reward_range=(-3, 9), seed=3)
        policy = make(name, matroid)
    if costs:
        env, policy = sb.minimize(env), sb.minimize(policy)
    one, two = policy.clone(), policy.clone()
    stepwise = sb.simulate(one, env.clone(), 70, path="stepwise", record_arms=True)
    world = env.clone()
    parts = [sb.simulate(two, world, n, path="compiled", record_arms=True) for n in (30, 40)]
    assert np.array_equal(stepwise.arms, np.concatenate([part.arms for part in parts]))
    assert one.clipped == two.clipped > 20
    assert np.array_equal(one.means, two.means, equal_nan=True)
    assert stepwise.reward[-1] == pytest.approx(
        sum(part.reward[-1] for part in parts)
    )  # as drawn, not as clipped


def test_a_world_wider_than_the_range_is_refused_without_clipping():
    matroid = sb.Uniform(4, 2)
    env = sb.UniformNoise(matroid, [1.0, 2.0, 3.0, 4.0], 1.0, reward_range=(0, 5))
    with pytest.raises(sb.ParameterError, match="outside='clip'"):
        sb.simulate(sb.CUCB(matroid, reward_range=(0, 4)), env, 10)
    with pytest.raises(sb.ParameterError, match="outside"):
        sb.CUCB(matroid, outside="drop")


def test_a_catalog_clips_too():
    catalog = sb.Catalog.uniform(2, outside="clip")
    for label in ("a", "b", "c"):
        catalog.add(label)
    catalog.update(["a", "b"], [0.5, 7.0])
    assert catalog.policy.clipped == 1
    with pytest.raises(sb.RewardError):
        catalog.update(["a"], [np.nan])
    assert catalog.policy.counts.sum() == 2


@pytest.mark.parametrize("costs", [False, True])
@pytest.mark.parametrize("name", ["cucb", "cts", "greedy", "robust-cucb"])
def test_the_count_goes_on_when_a_policy_grows(name, costs):
    policy = make(name, sb.Uniform(4, 2))
    policy = sb.minimize(policy) if costs else policy
    policy.update([0, 1], [HIGH + 5.0, LOW])
    policy.grow(sb.Uniform(6, 2))
    policy.update([5], [HIGH + 1.0])
    assert policy.clipped == 2 == policy.describe()["clipped"]
