"""Follow the perturbed leader: against a naive copy on the same random numbers, and its weights in the mean."""

from __future__ import annotations

import math

import numpy as np
import pytest

import semibandit as sb
from semibandit.testing import check_policy
from support.random_matroids import RANDOM


def split_mix(seed):
    """SplitMix64 in Python's integers: the numbers that a policy of this seed draws."""
    mask = 2**64 - 1

    def mix(z):
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    state = mix((seed + 0x9E3779B97F4A7C15) & mask)
    while True:
        state = (state + 0x9E3779B97F4A7C15) & mask
        word = mix(state)
        yield ((word >> 12) + 0.5) * 2.0**-52, word & 255


def exponentials(seed):
    """The ziggurat over these numbers, its layers computed anew."""
    area = 0.0039496598225815571993
    x = [area * math.exp(7.69711747013104972), 7.69711747013104972]
    while len(x) < 256:
        x.append(-math.log(area / x[-1] + math.exp(-x[-1])))
    x.append(0.0)
    words = split_mix(seed)
    while True:
        u, i = next(words)
        if u * x[i] < x[i + 1]:
            yield u * x[i]
        elif i == 0:
            yield x[1] - math.log(next(words)[0])
        else:
            low, high = math.exp(-x[i]), math.exp(-x[i + 1])
            if low + next(words)[0] * (high - low) < math.exp(-u * x[i]):
                yield u * x[i]


@pytest.mark.bounds
@pytest.mark.parametrize("kind", sorted(RANDOM))
def test_contract_on_every_matroid(kind):
    rng = np.random.default_rng(3)
    for size in (1, 5, 12):
        matroid, _ = RANDOM[kind](rng, size)
        check_policy(lambda m=matroid: sb.FPL(m, seed=1), rounds=24)
        check_policy(lambda m=matroid: sb.FPL(m, reward_range=(-1.0, 2.0), horizon=500, seed=2), rounds=24)


@pytest.mark.parametrize("kind", sorted(RANDOM))
def test_rounds_equal_a_naive_copy(kind):
    rng = np.random.default_rng(8)
    matroid, independent = RANDOM[kind](rng, 8)
    policy = sb.FPL(matroid, reward_range=(1.0, 3.0), eta=0.3, cap=7, seed=21)
    exponential = exponentials(21)
    losses = [0.0] * 8

    def draw():
        noise = [next(exponential) for _ in range(8)]
        base = []
        for k in sorted(range(8), key=lambda k: (-(noise[k] - 0.3 * losses[k]), k)):
            if independent([*base, k]):
                base.append(k)
        return sorted(base)

    for _ in range(40):
        base = draw()
        weight, waiting = dict.fromkeys(base, 7), set(base)
        for i in range(1, 8):
            for k in waiting & set(draw()):
                weight[k] = i
                waiting = waiting - {k}
            if not waiting:
                break
        assert policy.select().tolist() == base
        rewards = rng.choice([1.0, 2.0, 3.0], len(base))
        policy.update(base, rewards)
        for k, reward in zip(base, rewards):
            losses[k] += weight[k] * (3.0 - reward) / 2.0
        assert policy.losses.tolist() == losses


def test_weights_are_one_over_the_probability_up_to_the_cap():
    for cap in (3, 200):
        policy = sb.FPL(sb.Uniform(4, 1), cap=cap, seed=1)
        weights = []
        for _ in range(4000):
            arm = policy.select()
            weights.append(policy._weights[arm[0]])
        expected = (1.0 - 0.75**cap) / 0.25
        assert abs(np.mean(weights) - expected) < 4 * np.std(weights) / math.sqrt(len(weights))


def test_defaults_follow_the_horizon_or_the_round():
    matroid = sb.Uniform(20, 4)
    policy = sb.FPL(matroid, horizon=10_000)
    assert policy.eta == pytest.approx(math.sqrt((math.log(20) + 1) / 200_000))
    assert policy.cap == math.ceil(math.sqrt(200_000) / (math.e * 4 * math.sqrt(math.log(20) + 1)))
    anytime = sb.FPL(matroid)
    first = anytime.eta
    for _ in range(9):
        anytime.select()
    assert anytime.eta == pytest.approx(first / 3)


def test_it_learns_where_rewards_are_not_random():
    """The good arm changes over time; the best fixed arm is beaten by no more than the bound's order."""
    matroid = sb.Uniform(6, 1)
    policy = sb.FPL(matroid, horizon=3000, seed=4)
    got, best = 0.0, np.zeros(6)
    for t in range(3000):
        rewards = np.zeros(6)
        rewards[t // 500] = 1.0
        rewards[3] = 0.7
        best += rewards
        arm = policy.select()
        got += rewards[arm[0]]
        policy.update(arm, rewards[arm])
    assert best.max() - got < 3 * math.sqrt(6 * 3000 * (math.log(6) + 1))
    assert got > 0.5 * best.max()


@pytest.mark.parametrize(
    "arguments", [{"horizon": 0}, {"horizon": 1.5}, {"eta": 0.0}, {"cap": 0}, {"cap": True}]
)
def test_bad_parameters_are_named(arguments):
    with pytest.raises(sb.ParameterError, match=next(iter(arguments))):
        sb.FPL(sb.Uniform(3, 1), **arguments)
