"""Best-base identification: sample by sample against a naive CLUCB, its error rate, and its input checks."""

from __future__ import annotations

import numpy as np
import pytest

import semibandit as sb
from oracles.clucb import NaiveCLUCB
from semibandit.engines import ENGINES
from support.random_matroids import RANDOM


def engines_for(matroid, clock):
    return ["auto", *(name for name, spec in ENGINES.items() if spec.fits(matroid, clock))]


@pytest.mark.thin
@pytest.mark.bounds
@pytest.mark.parametrize("kind", sorted(RANDOM))
@pytest.mark.parametrize("stair", [None, 0.01, 0.2])
def test_every_sample_equals_the_naive_one(kind, stair):
    clock = "exact" if stair is None else "staircase"
    for seed in range(3):
        rng = np.random.default_rng(10 * seed + 1)
        n = int(rng.integers(1, 11))
        matroid, independent = RANDOM[kind](rng, n)
        naive = NaiveCLUCB(n, independent, 0.2, stair=stair)
        searches = [
            sb.CLUCB(matroid, delta=0.2, engine=name, clock=clock, step=stair or 0.01)
            for name in engines_for(matroid, clock)
        ]
        means = rng.random(n)
        for _ in range(150):
            arm = naive.step()
            for search in searches:
                assert search.stopped == naive.stopped
                if not naive.stopped:
                    assert search.next_arm() == arm == search.next_arm()
            if naive.stopped:
                break
            for extra in [arm] if rng.random() < 0.8 else [arm, int(rng.choice(naive.playable))]:
                # Few values, so that means tie.
                reward = float(rng.choice([0.0, 0.5, 1.0], p=[0.5 - means[extra] / 2, 0.5, means[extra] / 2]))
                naive.update(extra, reward)
                for search in searches:
                    search.update(extra, reward)
        for search in searches:
            if naive.stopped:
                assert search.base.tolist() == naive.base
            search._check()


def random_world(kind, rng, seed):
    """A small instance with a clear best base: the means of its arms are 0.5 above all others."""
    matroid, _ = RANDOM[kind](rng, 7)
    best = matroid.max_weight_base(rng.random(7))
    means = rng.uniform(0.05, 0.25, 7)
    means[best] += 0.65
    return sb.Bernoulli(matroid, means, seed=seed)


def wrong_answers(kind, runs, delta):
    wrong = 0
    rng = np.random.default_rng(99)
    for seed in range(runs):
        env = random_world(kind, rng, seed)
        found = sb.identify(env.matroid, env, delta)
        assert found.stopped and found.samples == found.counts.sum()
        wrong += found.base.tolist() != env.optimal_base.tolist()
    return wrong


@pytest.mark.parametrize("kind", ["uniform", "graphic"])
def test_answers_are_right_with_the_wanted_confidence(kind):
    assert wrong_answers(kind, 50, 0.1) <= 5


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(RANDOM))
def test_the_error_rate_over_a_thousand_runs_is_below_delta(kind):
    runs = 1000 if kind == "uniform" else 200
    wrong = wrong_answers(kind, runs, 0.05)
    print(f"{kind}: {wrong} of {runs} wrong")
    assert wrong < 0.05 * runs


def test_many_arms_take_no_pass_over_all_of_them():
    n = 20_000
    matroid = sb.Uniform(n, 3)
    means = np.full(n, 0.1)
    means[[5, 77, 19_000]] = 0.9
    search = sb.CLUCB(matroid, delta=0.1)
    assert search.engine == "kinetic"
    search.update(np.arange(n), np.tile(means, 1))
    for _ in range(200):
        arm = search.next_arm()
        search.update(arm, means[arm])
    search._check()
    slow = sb.CLUCB(matroid, delta=0.1, engine="resolve")
    slow.update(np.arange(n), means)
    for _ in range(200):
        arm = slow.next_arm()
        slow.update(arm, means[arm])
    assert np.array_equal(search.counts, slow.counts)


def test_loops_are_never_sampled_and_one_base_needs_one_sample_each():
    matroid = sb.Graphic([(0, 1), (1, 1), (1, 2)])
    env = sb.Bernoulli(matroid, [0.5, 0.5, 0.5], seed=1)
    found = sb.identify(matroid, env)
    assert found.counts.tolist() == [1, 0, 1] and found.base.tolist() == [0, 2] and found.stopped


def test_the_limit_on_samples_is_kept():
    matroid = sb.Uniform(10, 2)
    env = sb.Bernoulli(matroid, [0.5] * 10, seed=2)
    for limit in (3, 10, 50):
        found = sb.identify(matroid, env.clone(), max_samples=limit)
        assert found.samples == limit and not found.stopped and found.seconds > 0
    told = []
    sb.identify(matroid, env.clone(), max_samples=20, progress=told.append)
    assert told == []


def test_the_answer_stays_once_it_is_given():
    search = sb.CLUCB(sb.Uniform(2, 1), delta=0.5)
    search.update([0] * 200 + [1] * 200, [1.0] * 200 + [0.0] * 200)
    assert search.stopped and search.base.tolist() == [0]
    with pytest.raises(sb.ParameterError, match="stopped"):
        search.next_arm()
    search.update([0] * 1000, [0.0] * 1000)
    assert search.stopped and search.base.tolist() == [0]


def test_refused_feedback_changes_nothing():
    search = sb.CLUCB(sb.Uniform(4, 2))
    search.update([0, 1], [0.5, 1.0])
    for arms, rewards, error in [
        ([2, 9], [0.5, 0.5], sb.ArmError),
        ([2], [1.5], sb.RewardError),
        ([2, 3], [0.5, np.nan], sb.RewardError),
        ([2], [0.5, 0.5], sb.RewardError),
    ]:
        with pytest.raises(error):
            search.update(arms, rewards)
    assert search.counts.tolist() == [1, 1, 0, 0] and search.samples == 2 and search.next_arm() == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"clock": "sundial"}, "sundial"),
        ({"engine": "steam"}, "steam"),
        ({"reward_range": (1, 0)}, "reward_range"),
        ({"step": 2.0}, "step"),
    ],
)
def test_bad_parameters_are_named(arguments, words):
    with pytest.raises(sb.ParameterError, match=words):
        sb.CLUCB(sb.Uniform(3, 1), **arguments)
    with pytest.raises(sb.ParameterError, match="max_samples"):
        matroid = sb.Uniform(3, 1)
        sb.identify(matroid, sb.Bernoulli(matroid, [0.1, 0.2, 0.3]), max_samples=0)


@pytest.mark.thin
@pytest.mark.bounds
@pytest.mark.parametrize("kind", sorted(RANDOM))
@pytest.mark.parametrize("clock", ["exact", "staircase"])
def test_identify_samples_what_the_search_asks_for(kind, clock):
    rng = np.random.default_rng(4)
    for seed in range(4):
        matroid, _ = RANDOM[kind](rng, int(rng.integers(1, 12)))
        env = sb.Bernoulli(matroid, rng.choice([0.1, 0.5, 0.8, 0.9], matroid.n_arms), seed=seed)
        twin = env.clone()
        limit = int(rng.integers(1, 600))
        found = sb.identify(matroid, env, delta=0.3, clock=clock, max_samples=limit)
        search = sb.CLUCB(matroid, delta=0.3, clock=clock)
        first = search.unsampled()[:limit]
        search.update(first, twin.draw(first))
        while search.samples < limit and not search.stopped:
            arm = search.next_arm()
            search.update(arm, twin.draw([arm]))
        assert (found.samples, found.stopped) == (search.samples, search.stopped)
        assert found.counts.tolist() == search.counts.tolist() and found.base.tolist() == search.base.tolist()
        assert env.round == twin.round


def test_identify_refuses_a_reward_out_of_range():
    class Liar(sb.Bernoulli):
        """Says that rewards are at most 1 / 2."""

        @property
        def reward_range(self):
            return (0.0, 0.5)

    matroid = sb.Uniform(4, 2)
    with pytest.raises(sb.RewardError):
        sb.identify(matroid, Liar(matroid, [0.2, 0.3, 0.4, 0.5], seed=1), max_samples=200)
