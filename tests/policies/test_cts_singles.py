"""The largest sample of a class, drawn from the top down: which group it comes from, and how seldom there is none."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import semibandit as sb
from semibandit.policies.thompson.posterior_groups import set_level
from semibandit.policies.thompson.posterior_layout import GROUPS, SECOND, X0
from semibandit.policies.thompson.posterior_tail import bend
from semibandit.policies.thompson.staged_points import BELOW, TRIED

# (successes, failures, arms): few groups of many arms, where a group has many candidates and an arm many points; groups
# without failures beside such with; strides of every length; more groups than a chunk has.
MIXED = {
    "many arms": [(3, 2, 40), (1, 1, 60), (6, 5, 20)],
    "sure ones": [(2, 0, 30), (0, 0, 5), (9, 1, 6), (1, 4, 50)],
    "wide and narrow": [(20, 1, 1), (5, 2, 10), (60, 60, 8), (0, 3, 70)],
    "many groups": [(s, f, 1 + (s + f) % 3) for s in range(13) for f in range(1, 13)],
}


def of_groups(groups, seed):
    """A policy on one class of such arms and one of two arms, and the group of each arm."""
    which = np.repeat(np.arange(len(groups)), [n for _, _, n in groups])
    n = len(which)
    policy = sb.CTS(sb.Partition(np.repeat([0, 1], [n, 2]), 1), sampler="grouped", seed=seed)
    for column, reward in ((0, 1.0), (1, 0.0)):
        arms = np.repeat(np.arange(n), [groups[i][column] for i in which])
        policy.update(arms, np.full(len(arms), reward))
    return policy, which


def check_law(name, x, n_draws):
    """p-value of the groups that the largest samples come from, beside as many of all arms drawn."""
    policy, which = of_groups(MIXED[name], seed=int(1000 * x))
    groups = policy._groups
    policy.select()
    seen = np.zeros(len(MIXED[name]))
    for i in range(n_draws):
        groups.level[0, GROUPS] = max(1, groups.level[0, GROUPS])
        groups.level[0, SECOND] = 0.5 * x
        if groups.level[0, X0] != x:
            set_level(groups, 0, x)
        seen[which[policy.select()[0]]] += 1
        if i % 1000 == 0:
            policy._check()
    rng = np.random.default_rng(int(1000 * x))
    wins, losses = (np.array([MIXED[name][i][column] for i in which]) + 1.0 for column in (0, 1))
    largest = [rng.beta(wins, losses, (200, len(which))).argmax(axis=1) for _ in range(n_draws // 50)]
    wanted = np.bincount(which[np.concatenate(largest)], minlength=len(seen))
    table = np.array([seen, wanted])
    few = table.sum(axis=0) < 16
    table = np.column_stack((table[:, ~few], table[:, few].sum(axis=1)))
    return stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue


@pytest.mark.parametrize("x", [0.5, 0.7, 0.85, 0.93])
@pytest.mark.parametrize("name", MIXED)
def test_the_largest_comes_from_each_group_as_often_as_when_all_are_drawn(name, x):
    assert check_law(name, x, 2_500) > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("x", [0.4, 0.6, 0.75, 0.88, 0.96])
@pytest.mark.parametrize("name", MIXED)
def test_the_largest_comes_from_each_group_as_often_in_many_draws(name, x):
    assert check_law(name, x, 60_000) > 1e-4


@pytest.mark.bounds
@pytest.mark.parametrize("sigma", [1e-12, 1e-3, 0.1, 0.2499, 0.2501, 1.6])
def test_how_far_a_candidate_lies_beyond_its_level(sigma):
    """By the series as by the formula, to rounding."""
    for t in (1e-9, 0.01, 0.3, 0.999):
        wanted = np.log(np.expm1(-sigma) / np.expm1(-sigma * t))
        assert np.log(1.0 / t) + (bend(sigma) - bend(sigma * t)) == pytest.approx(
            wanted, rel=1e-12, abs=1e-15
        )


def test_levels_of_single_classes_make_second_stages_rare():
    """In a long run, and after arms went; in an old state whose levels stood high the first second stages move them."""
    rng = np.random.default_rng(3)
    means = rng.random(3_000)
    policy = sb.CTS(sb.Partition(np.arange(3_000) % 10, 1), sampler="grouped", seed=1)

    def play(rounds):
        late = 0
        for _ in range(rounds):
            arms = policy.select()
            late += np.count_nonzero(policy._points.tally[:, BELOW])
            assert policy._points.tally[:, TRIED].max() < 300
            policy.update(arms, (rng.random(len(arms)) < means[arms]).astype(float))
        policy._check()
        return late / (10 * rounds)

    assert play(1_500) < 0.01
    policy.delete(np.flatnonzero(rng.random(3_000) < 0.8))
    play(200)
    assert play(800) < 0.02
    for c in range(10):
        set_level(policy._groups, c, 1.0 - 1e-6)
    play(100)
    assert play(800) < 0.02
