"""Thompson sampling by stages on the classes that it serves: law, structures, contract."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy import stats
from scipy.special import betaln

import oracles.matroids as naive
import semibandit as sb
from semibandit.compiled.random import new_state
from semibandit.policies.thompson.beta import log_beta_of_counts
from semibandit.policies.thompson.posterior_groups import set_level
from semibandit.policies.thompson.posterior_layout import GROUPS, LIVE, LOSSES, SECOND, WINS, X0
from semibandit.policies.thompson.posterior_tail import draw_below, tail_bound, tail_draw, touching
from semibandit.policies.thompson.staged_levels import find_level
from semibandit.policies.thompson.staged_points import ARM_BITS, BEYOND, FIRST, TRIED, draw_points
from support.random_matroids import RANDOM

KINDS = ("partition", "laminar", "graphic", "transversal", "uniform", "singles")

# Each test over instances compares hundreds of frequencies: a false alarm in any has a probability below 1 %.
LEVEL = 1e-5


def write(policy, wins, losses):
    """Let arms have these successes and failures."""
    n = len(wins)
    policy.update(np.repeat(np.arange(n), wins), np.ones(int(np.sum(wins))))
    policy.update(np.repeat(np.arange(n), losses), np.zeros(int(np.sum(losses))))


def spread_levels(policy, rng):
    """Levels anywhere, also where most rounds end below them, and second ones below those or none."""
    groups = policy._groups
    for c in range(len(groups.population)):
        x = 0.0 if rng.random() < 0.2 else float(rng.choice([0.05, 0.3, 0.6, 0.8, 0.97, 1 - 1e-9]))
        groups.level[c, GROUPS] = max(1, groups.level[c, GROUPS])
        groups.level[c, SECOND] = x * float(rng.choice([0.0, 0.5, 0.9]))
        set_level(groups, c, x)


def naive_base(independent, weights, arms):
    """Greedy by the definition, as a sorted tuple."""
    base = []
    for k in sorted(arms, key=lambda k: -weights[k]):
        if independent([*base, k]):
            base.append(k)
    return tuple(sorted(base))


def naive_bases(rng, independent, wins, losses, arms, n):
    drawn = rng.beta(np.array(wins) + 1.0, np.array(losses) + 1.0, (n, len(wins)))
    return Counter(naive_base(independent, row, arms) for row in drawn)


def same_law(one, two):
    """p-value that two counters come from one law; rare keys are taken together."""
    keys = [key for key in {*one, *two} if one[key] + two[key] >= 16]
    table = [[counter[key] for key in keys] + [sum(counter.values())] for counter in (one, two)]
    for row in table:
        row[-1] -= sum(row[:-1])
    table = np.array(table)
    table = table[:, table.sum(axis=0) > 0]
    return 1.0 if table.shape[1] < 2 else stats.chi2_contingency(table).pvalue


def random_singles(rng, n):
    """A partition of which a base has at most one arm of each group; some groups are closed or empty."""
    groups, capacities = rng.integers(0, 3, n), rng.integers(0, 2, 3)
    capacities[groups[0]] = 1
    return sb.Partition(groups, capacities), naive.partition(groups.tolist(), capacities.tolist())


def random_state(rng, n, late):
    """Successes and failures: with many equal ones, or (late) all different."""
    if late:
        plays = rng.integers(0, 60, n)
        wins = rng.binomial(plays, rng.random(n))
        return wins, plays - wins
    return rng.integers(0, 3, n), rng.integers(0, 3, n)


def check_instance(kind, seed, n_draws):
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    n = int(rng.integers(1, 9))
    matroid, independent = (random_singles if kind == "singles" else RANDOM[kind])(rng, n)
    wins, losses = random_state(rng, n, late=bool(rng.integers(2)))
    policy = sb.CTS(matroid, sampler="grouped", seed=seed)
    write(policy, wins, losses)
    here = set(range(n))
    if n > 2 and rng.random() < 0.3:
        gone = int(rng.integers(n))
        policy.delete([gone])
        here -= {gone}
    exclude = [int(rng.integers(n))] if n > 2 and rng.random() < 0.3 else None
    if exclude is not None and exclude[0] not in here:
        exclude = None
    seen: Counter[tuple[int, ...]] = Counter()
    for i in range(n_draws):
        if i % 5 == 1:
            # Rounds move levels to where such small classes are drawn whole, so they are spread again and again.
            spread_levels(policy, rng)
        seen[tuple(policy.select(exclude=exclude).tolist())] += 1
        if i % 50 == 1:
            policy._check()
    here -= set(exclude or [])
    return same_law(seen, naive_bases(rng, independent, wins, losses, here, n_draws))


@pytest.mark.parametrize("kind", KINDS)
def test_bases_have_the_law_of_all_samples_drawn(kind):
    """Loops, parallel edges, deleted and excluded arms, late and early states, levels of every kind."""
    assert min(check_instance(kind, seed, 250) for seed in range(12)) > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_bases_have_the_law_of_all_samples_drawn_on_300_instances(kind):
    values = [check_instance(kind, 100 + seed, 600) for seed in range(300)]
    assert min(values) > LEVEL
    # Not only none too small: where there is anything to compare they are spread as p-values are.
    assert np.mean(np.array(values) < 0.05) < 0.1


TAILS = [
    (0, 0, 0.3),
    (4, 0, 0.8),
    (0, 5, 0.2),
    (3, 2, 0.7),
    (1, 30, 0.1),
    (40, 25, 0.72),
    (300, 100, 0.8),
    (2, 1, 0.999),
    (30, 12, 0.72),
    (1, 1, 0.51),
    (2, 60, 0.04),
    (500, 2, 0.999),
    (3, 0, 0.1),
]


@pytest.mark.bounds
@pytest.mark.parametrize(("wins", "losses", "x"), TAILS)
def test_draws_from_the_tail_are_beta_draws_beyond(wins, losses, x):
    law, state = stats.beta(wins + 1, losses + 1), new_state(wins + losses)
    logs = np.log(x), np.log1p(-x)
    log_b = float(betaln(wins + 1, losses + 1))
    place = touching(float(wins), float(losses), x, logs[1])
    bound = tail_bound(float(wins), float(losses), log_b, *logs, *place)
    assert law.sf(x) <= bound * (1 + 1e-12) <= 1 + 1e-9
    n = 4000
    drawn = np.array([tail_draw(state, float(wins), float(losses), x, *logs, *place) for _ in range(n)])
    kept = drawn[drawn >= 0.0]
    chance = law.sf(x) / bound
    assert abs(len(kept) - n * chance) <= 5 * np.sqrt(n * chance * (1 - min(chance, 1.0))) + 1
    assert (kept > x).all()
    assert stats.kstest(kept, lambda y: 1.0 - law.sf(y) / law.sf(x)).pvalue > LEVEL
    below = np.array([draw_below(state, float(wins), float(losses), x) for _ in range(n // 4)])
    assert stats.kstest(below, lambda y: np.minimum(1.0, law.cdf(y) / law.cdf(x))).pvalue > LEVEL


def larger(kind, n, rng):
    if kind == "partition":
        return sb.Partition(rng.integers(0, 12, n), rng.integers(1, 4, 12))
    if kind == "singles":
        return sb.Partition(np.minimum(rng.integers(0, 12, n), 9), 1)
    if kind == "uniform":
        return sb.Uniform(n, 7)
    if kind == "laminar":
        arms = rng.permutation(n)
        parts = np.array_split(arms, 8)
        pairs = [(np.concatenate(parts[2 * i : 2 * i + 2]), 4) for i in range(4)]
        return sb.Laminar(n, [(arms, 11), *pairs, *((part, 1 + i % 3) for i, part in enumerate(parts))])
    if kind == "graphic":
        edges = rng.integers(0, 25, (n, 2))
        # A vertex that hangs on two arms alone.
        edges[:2] = [(25, 0), (1, 25)]
        return sb.Graphic(edges, 27)
    return sb.Transversal([rng.integers(0, 18, rng.integers(0, 4)).tolist() for _ in range(n)], 20)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("guess", [0.0, 0.3, 0.9999])
def test_levels_leave_about_as_many_samples_as_wanted(late, guess):
    rng = np.random.default_rng(7)
    wins, losses = random_state(rng, 3000, late)
    policy = sb.CTS(sb.Uniform(3000, 5), sampler="grouped", seed=1)
    write(policy, wins, losses)
    for want, below, close in (
        (3.0, 1 - 1e-9, 1.25),
        (40.0, 1 - 1e-9, 1.25),
        (300.0, 1 - 1e-9, 1.25),
        (800.0, 0.95, 3.0),
    ):
        x = find_level(policy._groups, 0, want, below, guess, close)
        beyond = stats.beta(wins + 1.0, losses + 1.0).sf(x).sum()
        assert 0.0 < x < below
        assert 0.7 * want <= beyond <= close * want * (1 + 1e-9)
        assert policy._groups.level[0, GROUPS] == policy._groups.meta[LIVE]
    # Most of them: all.
    assert find_level(policy._groups, 0, 1600.0, 0.5, guess, 1.25) == 0.0


def test_a_group_of_one_is_no_candidate_twice():
    """Rates far above 1 next to tiny ones: the process may have many points in the interval of an arm."""
    policy = sb.CTS(sb.Uniform(40, 12), sampler="grouped", seed=5)
    write(policy, np.r_[np.arange(20), np.full(20, 3)], np.r_[np.full(20, 1), np.full(20, 9)])
    for x in np.tile([0.05, 0.2, 0.5, 0.9], 200):
        set_level(policy._groups, 0, float(x))
        draw_points(policy._groups, policy._points, policy._rng)
        n = policy._points.meta[FIRST]
        arms = policy._points.arm[:n] & ARM_BITS
        assert len(np.unique(arms)) == n == policy._points.tally[0, BEYOND] <= policy._points.tally[0, TRIED]
        assert (policy._points.value[:n] > x).all()


@pytest.mark.parametrize(("wins", "losses"), [(0, 0), (0, 7), (12, 0), (500, 522), (500, 523), (90_000, 3)])
def test_the_table_of_logarithms_goes_on_where_it_ends(wins, losses):
    assert log_beta_of_counts(wins, losses) == pytest.approx(
        betaln(wins + 1, losses + 1), rel=1e-10, abs=1e-10
    )


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_arms_are_played_as_often_as_by_the_plain_sampler(kind, late):
    """Where levels are found by the rounds themselves: each arm's number of plays, and the mean of the played."""
    rng = np.random.default_rng(KINDS.index(kind))
    n, rounds = 600, 1500
    matroid = larger(kind, n, rng)
    wins, losses = random_state(rng, n, late)
    plays = {}
    for sampler in ("plain", "grouped"):
        policy = sb.CTS(matroid, sampler=sampler, seed=3)
        write(policy, wins, losses)
        plays[sampler] = np.zeros(n)
        for _ in range(rounds):
            plays[sampler][policy.select()] += 1
        policy._check()
    one, two = plays["plain"], plays["grouped"]
    assert one.sum() == two.sum() == rounds * matroid.rank
    spread = np.sqrt(one * (1 - one / rounds) + two * (1 - two / rounds) + 1.0)
    assert np.abs((one - two) / spread).max() < 5.0
    assert (((one - two) / spread) ** 2)[one + two > 20].mean() < 1.5


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_cloned_policies_go_on_alike(kind, tmp_path):
    rng = np.random.default_rng(9)
    matroid = larger(kind, 600, rng)
    policy = sb.CTS(matroid, sampler="grouped", seed=4)
    env = sb.Bernoulli(matroid, rng.random(600), seed=5)
    sb.simulate(policy, env, rounds=200)
    policy.delete([3, 4])
    policy.save(tmp_path / "policy.sb")
    others = [policy.clone(), sb.load(tmp_path / "policy.sb")]
    again = sb.CTS(matroid, sampler="grouped", seed=4)
    sb.simulate(again, sb.Bernoulli(matroid, env.means, seed=5), rounds=200)
    again.delete([3, 4])
    for _ in range(60):
        arms = policy.select()
        rewards = (rng.random(len(arms)) < 0.5).astype(float)
        for other in (*others, again):
            assert other.select().tolist() == arms.tolist()
            other.update(arms, rewards)
        policy.update(arms, rewards)
    for one in (policy, *others):
        one._check()
        assert (one._groups.level[:, X0] < 1.0).all()
    assert (policy._arm[:, [WINS, LOSSES]] == others[1]._arm[:, [WINS, LOSSES]]).all()
