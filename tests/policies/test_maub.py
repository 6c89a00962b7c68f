"""The leader and its exchanges: circuits by brute force, decisions against a naive copy, rounds that ask the oracle."""

from __future__ import annotations

import math

import numpy as np
import pytest

import semibandit as sb
from semibandit.policies.identification.circuits import exchange_table
from semibandit.policies.index.maub import kl_indices
from semibandit.testing import check_policy
from support.random_matroids import RANDOM


@pytest.mark.bounds
@pytest.mark.parametrize("kind", sorted(RANDOM))
@pytest.mark.parametrize("index", ["kl", "ucb"])
def test_contract_on_every_matroid(kind, index):
    rng = np.random.default_rng(3)
    for size in (1, 5, 12):
        matroid, _ = RANDOM[kind](rng, size)
        check_policy(lambda m=matroid: sb.MAUB(m, reward_range=(-1.0, 2.0), index=index), rounds=24)


@pytest.mark.bounds
@pytest.mark.parametrize("kind", sorted(RANDOM))
def test_exchanges_equal_brute_force(kind):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 12))
        matroid, independent = RANDOM[kind](rng, n)
        arms = np.flatnonzero(rng.random(n) < 0.8)
        base = np.sort(matroid._greedy(rng.permutation(arms)))
        table, tests = exchange_table(matroid, base, arms)
        full = len(base) == matroid.rank
        for k in range(n):
            for i in range(len(base)):
                swapped = [*np.delete(base, i).tolist(), k]
                expected = k in arms and k not in base and independent(swapped)
                if full or k in arms:
                    assert table[k, i] == expected, (kind, base, k, i)
        assert (
            (tests == 0) == (kind in ("uniform", "partition", "graphic"))
            or len(base) == len(arms)
            or tests >= 0
        )


@pytest.mark.bounds
@pytest.mark.parametrize("kind", sorted(RANDOM))
def test_decisions_equal_a_naive_copy(kind):
    for seed in range(4):
        rng = np.random.default_rng(50 + seed)
        n = int(rng.integers(1, 10))
        matroid, independent = RANDOM[kind](rng, n)
        policy = sb.MAUB(matroid, index="ucb")
        count, total = [0] * n, [0.0] * n
        leader, reign, covering = None, 0, True
        for t in range(1, 81):
            mean = [total[k] / count[k] if count[k] else math.inf for k in range(n)]
            best = []
            for k in sorted(range(n), key=lambda k: (-mean[k], k)):
                if independent([*best, k]):
                    best.append(k)
            best.sort()
            if best != leader or covering:  # a reign begins when all arms are covered
                leader, reign = best, 0
            covering = any(math.isinf(mean[k]) for k in leader)
            reign += 1
            expected = leader
            if not covering and reign % (matroid.rank + 1):
                lam = math.sqrt(1.5 * math.log(t))
                index = [
                    mean[k] + lam * (1.0 / math.sqrt(count[k])) if count[k] else math.inf for k in range(n)
                ]
                gains = []
                for k in set(range(n)) - set(leader):
                    for f in leader:
                        swapped = sorted({*leader, k} - {f})
                        better = index[k] > index[f] or (index[k] == index[f] and k < f)
                        if better and independent(swapped):
                            gains.append((-(index[k] - index[f]), k, -f, swapped))
                if gains:
                    expected = min(gains)[3]
            arms = policy.select()
            assert arms.tolist() == expected, (t, leader)
            rewards = rng.choice([0.0, 0.5, 1.0], len(arms))
            if rng.random() < 0.9:
                policy.update(arms, rewards)
                for k, reward in zip(expected, rewards):
                    count[k] += 1
                    total[k] += reward


def test_kl_indices_are_the_roots():
    recs = np.array(
        [[0.0, 0.0, np.inf, 0.0], [4.0, 1.0, 0, 0], [9.0, 0.0, 0, 0], [5.0, 5.0, 0, 0], [1e4, 6e3, 0, 0]]
    )
    out = np.empty(5)
    kl_indices(recs, 3.0, 0.0, 1.0, out)
    assert np.isinf(out[0]) and out[3] == 1.0
    for k in (1, 2, 4):
        n, p, q = recs[k, 0], recs[k, 1] / recs[k, 0], out[k]
        kl = (p * math.log(p / q) if p else 0.0) + (1 - p) * math.log((1 - p) / (1 - q))
        assert n * kl == pytest.approx(3.0, rel=1e-4) and q > p


class Counting(sb.Matroid):
    """A uniform matroid that counts how often it is asked."""

    def __init__(self, n_arms, rank):
        super().__init__(n_arms)
        self.limit, self.asked = rank, [0]

    def _is_independent(self, arms):
        self.asked[0] += 1
        return len(arms) <= self.limit


def test_the_oracle_is_asked_only_when_the_leader_changes():
    matroid = Counting(12, 3)
    env = sb.Bernoulli(matroid, np.linspace(0.05, 0.95, 12), seed=1)
    policy = sb.MAUB(matroid)
    matroid.rank, matroid.loops  # noqa: B018 (found once, not counted)
    rounds = 0
    for _ in range(3000):
        before = matroid.asked[0]
        arms = policy.select()
        rounds += matroid.asked[0] > before
        policy.update(arms, env.draw(arms))
    assert rounds == policy.describe()["oracle_rounds"] < 300
    assert policy.leader.tolist() == [9, 10, 11]


def test_regret_is_not_worse_than_cucbs():
    matroid = sb.Graphic([(i, j) for i in range(8) for j in range(i)])
    means = np.random.default_rng(4).random(matroid.n_arms)
    env = sb.Bernoulli(matroid, means, seed=2)
    found = sb.compare([sb.CUCB(matroid), sb.MAUB(matroid)], env, rounds=3000, repeats=3)
    assert found.mean_regret("maub")[-1] < found.mean_regret("cucb")[-1]


@pytest.mark.parametrize("arguments", [{"index": "gut"}, {"leader_every": 1}, {"leader_every": 2.5}])
def test_bad_parameters_are_named(arguments):
    with pytest.raises(sb.ParameterError, match=next(iter(arguments))):
        sb.MAUB(sb.Uniform(3, 1), **arguments)
