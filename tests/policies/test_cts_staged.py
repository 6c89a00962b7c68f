"""Thompson sampling by stages on partition, laminar, graphic and transversal matroids: law, structures, contract."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy import stats

import oracles.matroids as naive
import semibandit as sb
from semibandit.policies.thompson.posterior_groups import set_level
from semibandit.policies.thompson.posterior_layout import LOSSES, WINS, X0
from semibandit.policies.thompson.posterior_tail import draw_below, tail_bound, tail_draw
from semibandit.policies.thompson.staged_levels import GROUPS, SECOND
from semibandit.testing import check_policy
from support.random_matroids import RANDOM

KINDS = ("partition", "laminar", "graphic", "transversal")

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
    matroid, independent = RANDOM[kind](rng, n)
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
    values = [check_instance(kind, seed, 400) for seed in range(24)]
    assert min(values) > LEVEL
