"""The bucket engine against re-solving, operation by operation, also where different points tie."""

from __future__ import annotations

import numpy as np
import pytest

from semibandit.arms import new_records
from semibandit.engines import resolve_engine
from semibandit.matroids import Graphic, Uniform
from semibandit.paper.bucket_engine import BucketEngine
from semibandit.paper.buckets import FIRST, LAST, N_RANKED, POOL_TOP
from semibandit.paper.rounded_engine import BY_QUERY, new_rules, rounded_engine
from support.random_matroids import RANDOM

pytestmark = pytest.mark.bounds

KINDS = ["laminar", "graphic", "transversal"]


def pair(matroid, bounds, epsilon, by_query=False):
    """Two engines behind the same rounding: buckets, and re-solving over all arms."""
    engines = []
    for fast in (True, False):
        rules = new_rules(bounds, epsilon, "lazy")
        if by_query:
            rules = rules._replace(mode=BY_QUERY)

        def inner(records, rules=rules, fast=fast):
            if fast:
                return BucketEngine(matroid, records, rules.alpha.edges, rules.beta.edges)
            return resolve_engine(matroid, records)

        engines.append(rounded_engine(matroid, new_records(matroid.n_arms), rules, inner))
    return engines


def compare(engines, lam, exclude=None):
    answers = []
    for engine in engines:
        engine.advance(lam)
        answers.append(engine.base() if exclude is None else engine.base_excluding(exclude))
    assert np.array_equal(*answers), lam
    return answers[0]


@pytest.mark.thin
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_random_operations(kind, seed):
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    for size in (1, 3, 9, 40):
        matroid, _ = RANDOM[kind](rng, size)
        epsilon = float(rng.choice([0.9, 0.2, 0.05]))
        engines = pair(matroid, ((0.1, 1.0), (0.05, 1.0)), epsilon)
        lam, gone = 0.0, set()
        for step in range(80):
            lam += float(rng.choice([0.0, 1e-7, 0.01, 0.2]))
            base = compare(engines, lam)
            what = rng.integers(0, 8)
            if what <= 4:
                arms = base if what <= 2 else rng.integers(0, size, int(rng.integers(1, 2 * size + 2)))
                rewards = rng.choice([0.0, 0.1, 0.5, 1.0, rng.random()], len(arms))
                for engine in engines:
                    assert engine.observe(arms, rewards, 0.0, 1.0) == 0
            elif what == 5:
                here = sorted(set(range(size)) - gone)
                arms = rng.permutation(here)[: int(rng.integers(0, 4))]
                for engine in engines:
                    engine.delete(arms)
                gone |= set(arms.tolist())
            elif what == 6 and gone:
                arms = rng.permutation(sorted(gone))[: int(rng.integers(1, 4))]
                for engine in engines:
                    engine.insert(arms)
                gone -= set(arms.tolist())
            else:
                compare(engines, lam, rng.permutation(size)[:2])
            engines[0]._check()
            if step % 10 == 0:
                engines[1]._check()


@pytest.mark.parametrize("kind", KINDS)
def test_different_points_that_tie_go_by_arm_id(kind):
    """growth = 5/4 and slopes that are powers of it: weights tie exactly, in floats too."""
    rng = np.random.default_rng(3)
    tied = 0
    for _ in range(12):
        matroid, _ = RANDOM[kind](rng, 25)
        engines = pair(matroid, ((1.0, 1.25**5), (1.0, 1.25**5)), 0.75, by_query=True)
        for power in range(-4, 5):
            for touch in range(3):
                arms = rng.permutation(25)[: 25 if power == -4 else 4]
                alpha, beta = (1.25 ** rng.integers(0, 6, len(arms)) for _ in range(2))
                for engine in engines:
                    engine.set_weights(arms, alpha, beta)
                compare(engines, 1.25**power if touch < 2 else 1.25**power * 1.01)
                tied += int(engines[0].inner._state.buckets.tied[0])
                engines[0]._check()
    assert tied > 50


def test_blocks_grow_shrink_and_are_used_again():
    rng = np.random.default_rng(0)
    matroid = Graphic(rng.integers(0, 6, (600, 2)))
    engine, other = pair(matroid, ((0.1, 1.0), (0.05, 1.0)), 0.5)
    everyone = np.arange(600)
    tops = []
    for step in range(60):
        # all arms at a few points, then spread, again and again
        points = rng.random(2) if step % 2 else rng.random(600)
        alpha, beta = rng.choice(points, (2, 600)) * 0.9 + 0.1
        for e in (engine, other):
            e.set_weights(everyone, alpha, beta)
        compare((engine, other), 0.01 * step)
        engine._check()
        tops.append(int(engine.inner._state.buckets.size[POOL_TOP]))
    assert tops[-1] < 1.05 * tops[20], "freed blocks are used again"
    assert engine.memory() > 0


def test_nothing_is_decided_again_without_need():
    matroid = Graphic([(i, j) for i in range(12) for j in range(i)])
    engine, other = pair(matroid, ((0.1, 1.0), (0.01, 1.0)), 0.3)
    n = matroid.n_arms
    rng = np.random.default_rng(1)
    for e in (engine, other):
        e.set_weights(np.arange(n), 0.1 + 0.9 * np.random.default_rng(2).random(n), 0.05)
    base = compare((engine, other), 1.0)
    buckets = engine.inner._state.buckets
    window = buckets.window
    assert window[FIRST] > window[LAST]
    weights = engine.records["alpha"].copy()
    order = np.argsort(-weights)
    lightest = next(k for k in order[::-1] if k not in base)
    for e in (engine, other):
        e.set_weights([lightest], [0.1], 0.05)
    # the window reaches from the old bucket of the lightest arm to its new one, not over all of them
    assert window[FIRST] > window[LAST] or window[FIRST] > buckets.size[N_RANKED] // 2
    assert np.array_equal(compare((engine, other), 1.0), base)
    for _ in range(5):
        arm = int(rng.choice(base))
        for e in (engine, other):
            e.set_weights(
                [arm], [0.1 + 0.9 * rng.random() if e is engine else engine.records["alpha"][arm]], 0.05
            )
        base = compare((engine, other), 1.0)


def test_other_matroids_are_refused():
    with pytest.raises(TypeError, match="laminar, graphic, transversal"):
        BucketEngine(Uniform(3, 1), new_records(3), np.ones(3), np.ones(3))
