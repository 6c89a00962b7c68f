"""Thompson sampling: exact selection probabilities, plain against grouped, the groups, and the contract."""

from __future__ import annotations

import math
import time
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

import semibandit as sb
from semibandit.policies.thompson.posterior_groups import set_level
from semibandit.policies.thompson.posterior_layout import BLOCK, GROUPS, ID_BITS, LIVE, LOSSES, WINS
from semibandit.testing import check_policy
from support.random_matroids import RANDOM

# Twenty points of Gauss in each of a hundred parts of (0, 1): two thousand for the whole take seconds to find.
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(20)
GRID = ((np.arange(100)[:, None] + 0.5 * (NODES + 1.0)) / 100).ravel()
STEP = np.tile(NODE_WEIGHTS / 200, 100)

# Some sixty tests compare frequencies: a false alarm in any of them has a probability below 1 %. (Runs of 10^6 rounds
# in five of the states gave p-values of 0.05 to 0.87.)
LEVEL = 1e-4

GROUPED = ["uniform", "partition", "laminar", "graphic", "transversal"]


def exact_probabilities(wins, losses, rank):
    """P(the `rank` largest of independent Beta samples are exactly this set), for every set, by quadrature."""
    laws = [stats.beta(s + 1, f + 1) for s, f in zip(wins, losses)]
    density, below = [law.pdf(GRID) for law in laws], [law.cdf(GRID) for law in laws]
    n, found = len(laws), {}
    for chosen in combinations(range(n), rank):
        others = [k for k in range(n) if k not in chosen]
        value = np.zeros_like(GRID)
        for k in others:
            value += density[k] * np.prod([below[j] for j in others if j != k], axis=0)
        for k in chosen:
            value *= 1.0 - below[k]
        found[chosen] = float(np.sum(STEP * value))
    return found


def feed(policy, wins, losses):
    for k, (s, f) in enumerate(zip(wins, losses)):
        policy.update([k] * (s + f), [1.0] * s + [0.0] * f)


def agrees(seen, expected, n):
    """Chi-square of counts against probabilities; sets that are rare are taken together."""
    common = [key for key, p in expected.items() if n * p >= 5]
    observed = [seen[key] for key in common]
    wanted = [n * expected[key] for key in common]
    if n - sum(wanted) > 1:
        observed.append(n - sum(observed))
        wanted.append(n - sum(wanted))
    return stats.chisquare(observed, np.array(wanted) * (n / np.sum(wanted))).pvalue


STATES = [
    ([0, 0, 0, 0], [0, 0, 0, 0]),
    ([1, 1, 0, 2, 1], [0, 0, 1, 1, 0]),
    ([5, 5, 4, 6, 0], [5, 5, 6, 4, 0]),
    ([30, 31, 2, 2, 2, 2], [10, 9, 1, 1, 1, 1]),
    ([300, 8, 8, 8, 8, 8], [100, 4, 4, 4, 4, 4]),
    ([3] * 7 + [6, 2], [3] * 7 + [4, 1]),
]


@pytest.mark.parametrize(("rank", "sampler"), [(1, "grouped"), (2, "grouped"), (2, "plain"), (3, "grouped")])
@pytest.mark.parametrize("state", range(len(STATES)))
def test_selection_frequencies_are_exact(state, rank, sampler):
    wins, losses = STATES[state]
    policy = sb.CTS(sb.Uniform(len(wins), rank), sampler=sampler, seed=10 * state + rank)
    feed(policy, wins, losses)
    n = 6000
    seen = Counter(tuple(policy.select().tolist()) for _ in range(n))
    assert agrees(seen, exact_probabilities(wins, losses, rank), n) > LEVEL


@pytest.mark.thin
@pytest.mark.parametrize("x0", [0.3, 0.6, 0.8, 0.97])
@pytest.mark.parametrize("state", [1, 3, 4, 5])
def test_skipping_over_cold_groups_changes_no_frequency(state, x0):
    """At any level, also one that most rounds end below."""
    wins, losses = STATES[state]
    policy = sb.CTS(sb.Uniform(len(wins), 2), sampler="grouped", seed=100 + state)
    feed(policy, wins, losses)
    set_level(policy._groups, 0, x0)
    policy._check()
    n = 6000
    seen = Counter()
    for _ in range(n):
        # Rounds move the level, so it is set again and again.
        set_level(policy._groups, 0, x0)
        policy._groups.level[0, GROUPS] = 1.0
        seen[tuple(policy.select().tolist())] += 1
    assert agrees(seen, exact_probabilities(wins, losses, 2), n) > LEVEL
    policy._check()


def test_the_level_is_found_and_most_groups_are_skipped():
    policy = sb.CTS(sb.Uniform(4000, 3), sampler="grouped", seed=1)
    rng = np.random.default_rng(1)
    arms = np.repeat(np.arange(4000), rng.integers(1, 60, 4000))
    policy.update(arms, (rng.random(len(arms)) < 0.3 + 0.4 * (arms % 7 == 0)).astype(float))
    for _ in range(200):
        policy.select()
    policy._check()
    groups = policy._groups
    assert 0.5 < groups.level[0, 0] < 1.0
    cold = (groups.info[groups.table[groups.table >= 0] & ID_BITS, BLOCK] & 1).sum()
    assert cold > 0.8 * groups.meta[LIVE] > 400
    # Candidates a round, of 4,000 arms: more than the few that win, as a second stage would look at every group.
    assert groups.rate.sum() < 0.05 * 4000
    other = policy.clone()
    other._check()
    for _ in range(100):
        arms = policy.select()
        assert arms.tolist() == other.select().tolist()
        rewards = rng.random(3)
        policy.update(arms, rewards)
        other.update(arms, rewards)


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("arm", lambda a: a.__setitem__(2, 9)),  # successes that were never counted
        ("arm", lambda a: a.__setitem__(0, 10**6)),  # a group that is not there
        ("arm", lambda a: a.__setitem__(1, 10**6)),  # a place outside the group
        ("arm", lambda a: a.__setitem__(0, -1)),  # an arm that is neither here nor deleted
        ("listed", lambda a: a.__setitem__(0, -5)),
        ("listed", lambda a: a.__setitem__(0, a[1])),
        ("free", lambda a: a.__setitem__(slice(None), 10**6)),
        ("free", lambda a: a.__setitem__(0, 60)),  # a number that was never given out
        ("owners", lambda a: a.__setitem__(0, 1)),
        ("owners", lambda a: a.resize(0, refcheck=False)),
        ("level", lambda a: a.__setitem__(0, 2.0)),
        ("rng", lambda a: a.resize(0, refcheck=False)),
    ],
)
def test_a_spoilt_state_is_refused(name, spoil):
    matroid = sb.Uniform(8, 2)
    policy = sb.CTS(matroid, sampler="grouped", seed=1)
    policy.update([0, 1, 1, 2, 3, 3, 0], [1, 0, 1, 1, 0, 0, 1])
    policy.delete([4, 5, 6, 7])  # leaves a free group behind
    state = policy._state()
    assert len(state["free"]) > 0
    state = {key: value.copy() if isinstance(value, np.ndarray) else value for key, value in state.items()}
    sb.CTS(matroid, sampler="grouped")._set_state(state)
    spoil(state[name])
    with pytest.raises(sb.FileError):
        sb.CTS(matroid, sampler="grouped")._set_state(state)


@pytest.mark.parametrize("sampler", ["plain", "grouped"])
def test_frequencies_in_large_groups_do_not_depend_on_the_member(sampler):
    """12 arms in two groups larger than those sampled arm by arm, and one alone: by exchangeability and in total."""
    wins, losses = [2] * 6 + [4] * 5 + [3], [3] * 6 + [5] * 5 + [2]
    policy = sb.CTS(sb.Uniform(12, 2), sampler=sampler, seed=77)
    feed(policy, wins, losses)
    n = 6000
    seen = Counter(tuple(policy.select().tolist()) for _ in range(n))
    assert agrees(seen, exact_probabilities(wins, losses, 2), n) > LEVEL


@pytest.mark.parametrize("sampler", ["plain", "grouped"])
def test_partitions_are_sampled_class_by_class(sampler):
    matroid = sb.Partition([0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 3], [2, 1, 1, 0])
    wins, losses = [1, 1, 1, 1, 1, 3, 0, 2, 2, 0, 5], [1, 1, 1, 1, 1, 2, 0, 1, 1, 4, 0]
    policy = sb.CTS(matroid, sampler=sampler, seed=3)
    feed(policy, wins, losses)
    one, two = exact_probabilities(wins[:6], losses[:6], 2), exact_probabilities(wins[6:9], losses[6:9], 1)
    expected = {(*a, b[0] + 6, 9): p * q for a, p in one.items() for b, q in two.items()}
    n = 6000
    seen = Counter(tuple(policy.select().tolist()) for _ in range(n))
    assert agrees(seen, expected, n) > LEVEL


@pytest.mark.parametrize("sampler", ["plain", "grouped"])
def test_exclusions_condition_the_draw(sampler):
    wins, losses = [2, 2, 2, 1, 5], [1, 1, 1, 1, 1]
    policy = sb.CTS(sb.Uniform(5, 1), sampler=sampler, seed=8)
    feed(policy, wins, losses)
    n = 6000
    seen = Counter(tuple(policy.select(exclude=[1, 4]).tolist()) for _ in range(n))
    left = exact_probabilities([2, 2, 1], [1, 1, 1], 1)
    expected = {(0,): left[(0,)], (2,): left[(1,)], (3,): left[(2,)]}
    assert agrees(seen, expected, n) > LEVEL
    policy._check()


def test_regret_has_the_same_distribution():
    matroid = sb.Uniform(120, 5)
    env = sb.Bernoulli(matroid, np.random.default_rng(0).beta(2, 4, 120), seed=1)
    policies = {name: sb.CTS(matroid, sampler=name) for name in ("plain", "grouped")}
    # Other rewards for each, so that the samples are independent.
    one = sb.compare({"plain": policies["plain"]}, env, rounds=400, repeats=25, seed=1)
    two = sb.compare({"grouped": policies["grouped"]}, env, rounds=400, repeats=25, seed=2)
    plain = [run.regret[-1] for run in one.runs["plain"]]
    grouped = [run.regret[-1] for run in two.runs["grouped"]]
    assert stats.ks_2samp(plain, grouped).pvalue > 0.01
    error = np.hypot(stats.sem(plain), stats.sem(grouped))
    assert abs(np.mean(plain) - np.mean(grouped)) < 4 * error


@pytest.mark.bounds
@pytest.mark.parametrize("kind", sorted(RANDOM))
@pytest.mark.parametrize("posterior", ["beta", "gaussian"])
def test_contract_on_every_matroid(kind, posterior):
    rng = np.random.default_rng(5)
    for size in (1, 4, 12):
        matroid, _ = RANDOM[kind](rng, size)
        check_policy(lambda m=matroid: sb.CTS(m, posterior=posterior, seed=1), rounds=24)
        check_policy(
            lambda m=matroid: sb.CTS(m, reward_range=(-1.0, 3.0), posterior=posterior, sampler="plain"),
            rounds=24,
        )


@pytest.mark.parametrize("kind", sorted(RANDOM))
def test_contract_of_boosted_draws(kind):
    matroid, _ = RANDOM[kind](np.random.default_rng(5), 9)
    check_policy(lambda: sb.CTS(matroid, posterior="gaussian", boosted=True, seed=1), rounds=24)


@pytest.mark.bounds
@pytest.mark.parametrize("kind", GROUPED)
def test_contract_of_the_grouped_sampler(kind):
    rng = np.random.default_rng(6)
    for size in (1, 4, 12, 60):
        matroid, _ = RANDOM[kind](rng, size)
        check_policy(
            lambda m=matroid: sb.CTS(m, reward_range=(-1.0, 3.0), sampler="grouped", seed=2), rounds=24
        )


@pytest.mark.bounds
@pytest.mark.parametrize("kind", GROUPED)
def test_groups_stay_sound(kind):
    """Late, repeated and partial feedback, exclusions, arms that come and go; all invariants after each action."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 70))
        matroid, _ = RANDOM[kind](rng, n)
        policy = sb.CTS(matroid, sampler="grouped", seed=seed)
        gone: set[int] = set()
        wins, losses = np.zeros(n, dtype=int), np.zeros(n, dtype=int)
        for _ in range(120):
            action = rng.integers(5)
            if action == 0:
                arms = policy.select()
                assert not gone & set(arms.tolist()) and matroid.is_independent(arms)
                left = np.setdiff1d(np.arange(n), list(gone))
                assert len(arms) == len(matroid._greedy(left))
            elif action == 1:
                banned = rng.integers(0, n, 3)
                arms = policy.select(exclude=banned)
                assert not (gone | set(banned.tolist())) & set(arms.tolist())
            elif action == 2 and len(gone) < n - 1:
                k = int(rng.choice([k for k in range(n) if k not in gone]))
                policy.delete([k])
                gone.add(k)
            elif action == 3 and gone:
                back = [k for k in sorted(gone) if rng.random() < 0.5]
                policy.insert(np.array(back, dtype=np.int64))
                gone -= set(back)
            else:
                arms = rng.integers(0, n, rng.integers(1, 30))
                rewards = rng.integers(0, 2, len(arms)).astype(float)
                policy.update(arms, rewards)
                np.add.at(wins, arms[rewards == 1], 1)
                np.add.at(losses, arms[rewards == 0], 1)
            policy._check()
        assert np.array_equal(policy.successes, wins) and np.array_equal(policy.failures, losses)
        other = policy.clone()
        other._check()
        assert [other.select().tolist() for _ in range(5)] == [policy.select().tolist() for _ in range(5)]


def test_groups_grow_and_shrink_over_a_long_run():
    matroid = sb.Uniform(3000, 4)
    policy = sb.CTS(matroid, sampler="grouped", seed=1)
    rng = np.random.default_rng(2)
    for k in range(0, 3000, 500):
        policy.update(np.arange(k, k + 500), rng.integers(0, 2, 500))
        policy._check()
    policy.update(np.repeat(np.arange(3000), 7), rng.integers(0, 2, 21_000))
    policy._check()
    env = sb.Bernoulli(matroid, rng.random(3000), seed=3)
    sb.simulate(policy, env, rounds=2000)
    policy._check()
    about = policy.describe()
    assert about["groups"] == len({tuple(row) for row in policy._arm[:, 2:].tolist()})
    assert about["bytes_per_arm"] < 400


def test_room_is_made_for_groups_not_for_outcomes():
    """Many outcomes at once have few posteriors: their arrays, and the table that they are found by, stay small."""
    n = 20_000
    policy = sb.CTS(sb.Uniform(n, 4), sampler="grouped", seed=1)
    rng = np.random.default_rng(3)
    for _ in range(3):
        policy.update(np.arange(n), rng.integers(0, 2, n).astype(float))
        policy._check()
    assert len(policy._groups.info) <= 128 and len(policy._groups.table) <= 512
    policy.delete(np.arange(n // 2))
    policy.insert(np.arange(n // 2))
    policy._check()
    assert len(policy._groups.info) <= 128
    # A posterior for each: room grows while they come, by doubling.
    policy.update(
        np.repeat(np.arange(1500), np.arange(1500) % 300), rng.integers(0, 2, 224_250).astype(float)
    )
    policy._check()
    live = int(policy._groups.meta[LIVE])
    assert 1000 < live <= len(policy._groups.info) <= 2 * live + 128


def test_rewards_between_the_bounds_count_as_bernoulli_draws():
    policy = sb.CTS(sb.Uniform(2, 1), reward_range=(2.0, 6.0), seed=4)
    policy.update([0] * 4000, [3.0] * 4000)
    assert abs(policy.successes[0] - 1000) < 4 * np.sqrt(4000 * 0.25 * 0.75)
    assert policy.counts[0] == 4000 == policy.successes[0] + policy.failures[0]
    policy.update([1, 1, 1], [2.0, 6.0, 6.0])
    assert policy.successes[1] == 2 and policy.means[1] == pytest.approx(14 / 3)


def test_gaussian_posterior_has_mean_and_variance():
    policy = sb.CTS(sb.Uniform(3, 1), posterior="gaussian", sigma=0.2, seed=1)
    policy.update([0, 0, 0, 0, 1], [0.1, 0.3, 0.5, 0.7, 0.9])
    drawn = np.array([policy.sample() for _ in range(4000)])
    assert np.isinf(drawn[:, 2]).all() and policy.select().tolist() == [2]
    assert stats.kstest(drawn[:, 0], "norm", (0.4, 0.1)).pvalue > 1e-3
    assert stats.kstest(drawn[:, 1], "norm", (0.9, 0.2)).pvalue > 1e-3


def test_reseeding_starts_anew_and_seeds_differ():
    for sampler in ("plain", "grouped"):
        policy = sb.CTS(sb.Uniform(50, 3), sampler=sampler, seed=5)
        first = [policy.select().tolist() for _ in range(5)]
        assert first != [sb.CTS(sb.Uniform(50, 3), sampler=sampler, seed=6).select().tolist()] * 5
        again = sb.CTS(sb.Uniform(50, 3), sampler=sampler, seed=9)
        again.reseed(5)
        assert [again.select().tolist() for _ in range(5)] == first


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"posterior": "cauchy"}, "cauchy"),
        ({"sampler": "dice"}, "dice"),
        ({"sigma": 0.5}, "sigma"),
        ({"posterior": "gaussian", "sigma": 0.0}, "sigma"),
        ({"posterior": "gaussian", "sampler": "grouped"}, "posterior = 'beta'"),
        ({"seed": "now"}, "seed"),
    ],
)
def test_bad_parameters_are_named(arguments, words):
    with pytest.raises(sb.ParameterError, match=words):
        sb.CTS(sb.Uniform(3, 1), **arguments)


def test_grouping_is_refused_where_it_would_not_be_exact():
    with pytest.raises(sb.ParameterError, match="does not serve linear matroids"):
        sb.CTS(sb.Linear([[0, 1], [1, 1]]), sampler="grouped")
    assert sb.CTS(sb.Linear([[0, 1], [1, 1]] * 1000)).sampler == "plain"
    assert sb.CTS(sb.Graphic([(0, 1)] * 10_000)).sampler == "grouped"
    assert sb.CTS(sb.Uniform(1000, 3)).sampler == "grouped"


@pytest.mark.slow
@pytest.mark.parametrize("state", ["after 30,000 rounds", "all arms known"])
def test_grouped_is_a_hundred_times_faster_at_a_million_arms(state):
    n = 1_000_000
    matroid = sb.Uniform(n, 10)
    rng = np.random.default_rng(0)
    env = sb.Bernoulli(matroid, rng.beta(1, 3, n), seed=1)
    grouped = sb.CTS(matroid, sampler="grouped", seed=2)
    if state == "all arms known":
        # Tens of thousands of different posteriors, written in place of ten million rewards.
        grouped.delete(np.arange(n))
        seen = rng.geometric(1 / 30, n)
        grouped._arm[:, WINS] = rng.binomial(seen, env.means)
        grouped._arm[:, LOSSES] = seen - grouped._arm[:, WINS]
        grouped.records["count"] = seen
        grouped.records["total"] = grouped._arm[:, WINS]
        grouped.insert(np.arange(n))
        sb.simulate(grouped, env, rounds=1000)
    else:
        sb.simulate(grouped, env, rounds=30_000)
    plain = sb.CTS(matroid, sampler="plain", seed=2)
    plain._arm[:] = grouped._arm
    plain.select()

    def seconds_a_round(policy, rounds):
        begin = time.perf_counter()
        for _ in range(rounds):
            arms = policy.select()
            policy.update(arms, env.draw(arms))
        return (time.perf_counter() - begin) / rounds

    fast, slow = seconds_a_round(grouped, 3000), seconds_a_round(plain, 10)
    groups = grouped.describe()["groups"]
    print(
        f"{state}: plain {1e6 * slow:,.0f} us, grouped {1e6 * fast:.1f} us, {groups} groups: {slow / fast:,.0f} x"
    )
    assert slow / fast > 100


def naive_boost(t, rank):
    """g(t) of BG-CTS, t counting as e at least."""
    t = max(t, math.e)
    return 2.0 * (math.log(t) + (rank + 2) * math.log(math.log(t))) / math.log(t)


@pytest.mark.parametrize("t", [0, 1, 2, 40])
def test_boosted_draws_have_the_variance_of_bg_cts(t):
    policy = sb.CTS(sb.Uniform(3, 2), posterior="gaussian", sigma=0.3, boosted=True, seed=5)
    policy.update([0, 1, 1, 1, 1], [0.5, 0.1, 0.2, 0.3, 0.4])
    for _ in range(t):
        policy.select()
    drawn = np.array([policy.sample() for _ in range(20_000)])
    assert np.isinf(drawn[:, 2]).all()
    sigma = 0.3 * math.sqrt(naive_boost(t, 2)) / np.sqrt([1.0, 4.0])
    # Four standard errors of a mean, and of a standard deviation.
    np.testing.assert_array_less(
        np.abs(drawn[:, :2].mean(axis=0) - [0.5, 0.25]), 4 * sigma / math.sqrt(20_000)
    )
    np.testing.assert_allclose(drawn[:, :2].std(axis=0), sigma, rtol=4 / math.sqrt(40_000))
    low, high = policy._likely(np.array([0, 1]), policy.means[:2])(policy.means[:2])
    np.testing.assert_allclose(high - low, 2 * 1.959963984540054 * sigma)


def test_boosted_rounds_draw_as_often_as_the_formula_says():
    """The better of two arms is played with the probability that its draw is the larger one."""
    policy = sb.CTS(sb.Uniform(2, 1), posterior="gaussian", sigma=0.5, boosted=True, seed=8)
    policy.update([0] * 400 + [1] * 100, [0.52] * 400 + [0.5] * 100)
    n = 4000
    spread = [0.5 * math.sqrt(naive_boost(t, 1) * (1 / 400 + 1 / 100)) for t in range(1, n + 1)]
    chances = stats.norm.cdf(0.02 / np.array(spread))
    wins = sum(int(policy.select()[0]) == 0 for _ in range(n))
    assert abs(wins - chances.sum()) < 4 * math.sqrt((chances * (1 - chances)).sum())


def test_boosting_is_for_the_gaussian_posterior():
    with pytest.raises(sb.ParameterError, match="boosted"):
        sb.CTS(sb.Uniform(3, 1), boosted=True)
    with pytest.raises(sb.ParameterError, match="boosted"):
        sb.CTS(sb.Uniform(3, 1), posterior="gaussian", boosted="yes")
    assert "boosted" in sb.CTS(sb.Uniform(3, 1), posterior="gaussian", boosted=True).describe()["posterior"]
