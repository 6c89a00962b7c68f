"""The numbers of groups of posteriors, given out class by class, and what is looked up by them in passing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import betaln

import semibandit as sb
from semibandit.policies.thompson.posterior_layout import CLASS, FIRST_CHUNK, SIZE, USED
from semibandit.policies.thompson.posterior_tail import tail_guess
from semibandit.policies.thompson.staged_process import BLOCK, SCRATCH, find_in_block, sum_block


def of_many_groups(sizes, rng, seed=1):
    """A policy on a partition into singles with classes of these sizes, whose arms have posteriors of their own."""
    matroid = sb.Partition(rng.permutation(np.repeat(np.arange(len(sizes)), sizes)), 1)
    policy = sb.CTS(matroid, sampler="grouped", seed=seed)
    plays = rng.integers(0, 90, matroid.n_arms)
    arms = rng.permutation(np.repeat(np.arange(matroid.n_arms), plays))
    policy.update(arms, (rng.random(len(arms)) < 0.1 + 0.8 * (arms % 10) / 10).astype(float))
    return policy


@pytest.mark.bounds
@pytest.mark.parametrize("sizes", [(700, 3, 120), (9, 9, 9, 9, 8), (300, 1)])
def test_numbers_of_a_class_stand_side_by_side(sizes):
    """Classes with several chunks, shorter and longer ones; arms that leave and come back reuse their numbers."""
    rng = np.random.default_rng(sum(sizes))
    policy = of_many_groups(sizes, rng)
    policy._check()
    groups = policy._groups
    assert 3 <= groups.chunk <= 6
    chunks = groups.info[: int(groups.meta[USED])].reshape(-1, 1 << groups.chunk, 8)
    for rows in chunks:
        assert len(np.unique(rows[rows[:, SIZE] > 0, CLASS])) <= 1
    for _ in range(20):
        ids = np.unique(rng.integers(0, policy.n_arms, policy.n_arms // 2))
        policy.delete(ids)
        policy._check()
        policy.select()
        policy.insert(ids)
        policy.update(ids, rng.integers(0, 2, len(ids)).astype(float))
        policy._check()
    # As many numbers as there were groups at once, and no more than a chunk for each class besides.
    assert policy._groups.meta[USED] <= policy.n_arms + (len(sizes) << groups.chunk)
    assert (policy._groups.ids[:, FIRST_CHUNK] >= 0).all()


def test_a_state_of_old_is_numbered_anew():
    """Files without owners had numbers from one list for all classes."""
    rng = np.random.default_rng(5)
    policy = of_many_groups((80, 30, 200), rng)
    policy.delete([3, 4, 5])
    state = policy._state()
    state = {key: value.copy() if isinstance(value, np.ndarray) else value for key, value in state.items()}
    del state["owners"]
    arm = state["arm"].reshape(-1, 4)
    shuffled = rng.permutation(len(state["listed"]))
    new = dict(zip(state["listed"].tolist(), shuffled.tolist(), strict=True))
    arm[:, 0] = [new.get(k, -1) for k in arm[:, 0].tolist()]
    state["listed"], state["free"] = shuffled.astype(np.int64), np.zeros(0, dtype=np.int64)
    other = sb.CTS(policy.matroid, sampler="grouped", seed=9)
    other._set_state(state)
    other._check()
    for _ in range(50):
        arms = other.select()
        other.update(arms, rng.integers(0, 2, len(arms)).astype(float))
    other._check()
    assert np.array_equal(other._arm[:, 0] >= 0, policy._arm[:, 0] >= 0)


def test_arms_of_classes_of_many_groups_are_played_as_by_the_plain_sampler():
    """Classes with several chunks: how often each arm is played."""
    plays = {}
    for sampler in ("plain", "grouped"):
        policy = of_many_groups((300, 100, 20), np.random.default_rng(8), seed=3)
        if sampler == "plain":
            plain = sb.CTS(policy.matroid, sampler="plain", seed=4)
            n = policy.n_arms
            for successes, reward in ((policy.successes, 1.0), (policy.failures, 0.0)):
                arms = np.repeat(np.arange(n), successes)
                plain.update(arms, np.full(len(arms), reward))
            policy = plain
        plays[sampler] = np.zeros(policy.n_arms)
        for _ in range(4000):
            plays[sampler][policy.select()] += 1
    one, two = plays["plain"], plays["grouped"]
    assert one.sum() == two.sum() == 3 * 4000
    spread = np.sqrt(one * (1 - one / 4000) + two * (1 - two / 4000) + 1.0)
    assert np.abs((one - two) / spread).max() < 5.0


@pytest.mark.bounds
@pytest.mark.parametrize("width", [8, 16, 40, 64])
def test_a_place_in_a_block_is_found_by_sums_of_rates(width):
    rng = np.random.default_rng(width)
    policy = sb.CTS(sb.Uniform(2000, 3), sampler="grouped")
    groups, ends = policy._groups, np.zeros(SCRATCH)
    for _ in range(50):
        groups.rate[:BLOCK] = np.where(rng.random(BLOCK) < 0.4, 0.0, rng.exponential(size=BLOCK) ** 6)
        total = sum_block(groups, ends, 0, width)
        assert np.allclose(ends[:width], np.cumsum(groups.rate[:width]), rtol=1e-13)
        assert (np.diff(ends[:width]) >= 0.0).all() and total == ends[width - 1]
        for left in (*(total * rng.random(30)), *ends[: width - 1], np.nextafter(total, 0.0)):
            if left < total:
                i = find_in_block(ends, float(left))
                assert i == np.searchsorted(ends[:width], left, side="right") and groups.rate[i] > 0.0


@pytest.mark.parametrize("wins", [0, 1, 3, 20, 300])
@pytest.mark.parametrize("losses", [0, 1, 4, 25, 500])
def test_guesses_of_tails_are_near(wins, losses):
    law = stats.beta(wins + 1, losses + 1)
    for p in (1e-9, 1e-4, 0.02, 0.2, 0.6):
        x = float(law.isf(p))
        found = tail_guess(
            float(wins), float(losses), float(betaln(wins + 1, losses + 1)), x, np.log(x), np.log1p(-x)
        )
        assert 0.7 * p <= found <= min(1.0, 1.5 * p) + 1e-12
