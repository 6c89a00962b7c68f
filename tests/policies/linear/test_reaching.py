"""Rounds that look at the arms in reach only, against the greedy over all exact indices, on every class."""

from __future__ import annotations

import numpy as np
import pytest

import oracles.matroids as naive
import semibandit as sb
from semibandit.policies.linear import policy as module
from semibandit.policies.linear import reaching
from semibandit.policies.linear.weighing import BROKEN, approach_with_norms, begin
from support.random_matroids import RANDOM

BOTH = [sb.CombLinTS, sb.CombLinUCB]


@pytest.fixture(autouse=True)
def _always(monkeypatch):
    """Small instances take the way of large ones, with thresholds from a few arms."""
    monkeypatch.setattr(module, "_BLAS_FROM", 0)
    monkeypatch.setattr(reaching, "_SAMPLE", 8)
    monkeypatch.setattr(reaching, "_MORE", 2)


def naive_index(rows, theta, inverse, width):
    """phi' theta + width |inverse phi|, every sum from the left, as the policies add them."""
    index = np.zeros(len(rows))
    for j in range(len(theta)):
        index = index + rows[:, j] * theta[j]
    if width > 0.0:
        square = np.zeros(len(rows))
        for i in range(len(theta)):
            value = np.zeros(len(rows))
            for j in range(i + 1):
                value = value + inverse[i, j] * rows[:, j]
            square = square + value * value
        index = index + width * np.sqrt(square)
    return index


def play(cls, kind, seed, n_arms, rounds):
    """Rounds with features of each call and with fixed ones, arms left out, deleted and waiting; ties abound."""
    rng = np.random.default_rng(seed)
    matroid, independent = RANDOM[kind](rng, n_arms)
    d = int(rng.integers(1, 7))
    table = rng.standard_normal((4, d))[rng.integers(0, 4, n_arms)]
    if seed % 3 == 0:
        table = rng.random((n_arms, d))
    options = {} if cls is sb.CombLinTS else {"width": float(rng.choice([0.1, 1.0, 5.0]))}
    given = bool(seed % 2)
    told = {"dimension": d} if given else {"features": table}
    policy = cls(matroid, seed=seed, **told, **options)
    gone: set[int] = set()
    for t in range(rounds):
        if t == rounds // 2:
            gone = set(rng.choice(n_arms, n_arms // 4, replace=False).tolist())
            policy.delete(sorted(gone))
        rows = rng.permutation(table) if given else table
        asked = {"features": rows} if given else {}
        left_out = set() if t % 4 else set(rng.integers(0, n_arms, 3).tolist())
        waits = t % 5 == 4 and not left_out
        if waits:
            decision = policy.decide(**asked)
            arms = decision.arms
        else:
            arms = policy.select(sorted(left_out) if left_out else None, **asked)
        p = policy._posterior
        if not waits:
            index = naive_index(rows, p.drawn, p.inverse, policy._width)
            order = [k for k in naive.heaviest_first(index.tolist()) if k not in gone | left_out]
            assert arms.tolist() == sorted(naive.greedy(independent, order)), (kind, seed, t)
        rewards = rng.random(len(arms))
        if waits:
            if t % 2:
                policy.learn(decision, rewards)
        elif given:
            policy.update(arms, rewards, features=rows[arms])
        else:
            policy.update(arms, rewards)
    policy._check()


@pytest.mark.bounds
@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("kind", RANDOM)
def test_decisions_are_those_of_all_arms(cls, kind):
    for seed in range(4):
        play(cls, kind, seed, n_arms=14 + seed, rounds=12)


@pytest.mark.slow
@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("kind", RANDOM)
def test_decisions_of_many_instances(cls, kind):
    for seed in range(300):
        play(cls, kind, seed, n_arms=3 + seed % 9, rounds=16)


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("kind", ["laminar", "graphic", "transversal", "modular"])
def test_decisions_among_hundreds(cls, kind):
    """Too many for the naive greedy: that of the matroid, over all exact indices."""
    rng = np.random.default_rng(11)
    n, d = 240, 5
    matroid, _ = RANDOM[kind](rng, n)
    policy = cls(matroid, dimension=d, seed=2)
    for t in range(30):
        rows = rng.random((n, d))[rng.integers(0, n, n)]
        arms = policy.select(features=rows)
        p = policy._posterior
        index = naive_index(rows, p.drawn, p.inverse, policy._width)
        assert arms.tolist() == matroid.max_weight_base(index).tolist(), t
        policy.update(arms, rng.random(len(arms)), features=rows[arms])


@pytest.mark.parametrize("kind", ["normal", "positive", "constant", "thin", "huge", "tiny"])
@pytest.mark.parametrize("d", [1, 2, 5, 20])
def test_bounds_of_widths_are_not_too_small(kind, d):
    rng = np.random.default_rng(d)
    n = 4 * d * d + 3
    rows = rng.standard_normal((n, d))
    if kind == "positive":
        rows = np.abs(rows)
    elif kind == "constant":
        rows[:, 0] = 1.0
    elif kind == "thin":
        rows = np.outer(rng.random(n), rng.random(d)) + 1e-9 * rows
    elif kind in ("huge", "tiny"):
        rows *= 1e60 if kind == "huge" else 1e-60
    policy = sb.CombLinUCB(sb.Uniform(n, 2), dimension=d)
    for t in range(30):
        policy._point_at(rows)
        policy._weigh(begin)
        policy._weigh(approach_with_norms)
        assert not policy._meta[BROKEN]
        exact = naive_index(rows, np.zeros(d), policy._posterior.inverse, 1.0)
        assert (exact <= policy._bounds).all()
        if kind == "positive" and d > 1 and t > 5:
            # What all rows share is known well by now: the norm alone would be a worse bound.
            norms = np.sqrt((rows * rows).sum(axis=1)) * np.linalg.norm(np.tril(policy._posterior.inverse), 2)
            assert policy._bounds.mean() < 0.9 * norms.mean()
        policy._point_at(policy._features)
        some = rng.integers(0, n, 2)
        policy.update(some, rng.random(2), features=rows[some])


def test_few_arms_are_looked_at():
    rng = np.random.default_rng(1)
    n, d = 3000, 6
    families = [(np.arange(n // 2), 4), (np.arange(n), 7)]
    policy = sb.CombLinUCB(sb.Laminar(n, families), dimension=d)
    for t in range(60):
        rows = rng.random((n, d))
        arms = policy.select(features=rows)
        policy.update(arms, rows[arms] @ np.linspace(0, 0.3, d), features=rows[arms])
        if t == 30:
            before = policy.describe()["widths"]
    assert policy.describe()["widths"] - before < 0.05 * 29 * n
    assert policy._depth.arms < 100
