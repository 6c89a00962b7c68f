"""The graphic engines in lockstep with re-solving: every part and the one that switches between them."""

from __future__ import annotations

import numpy as np
import pytest

import semibandit as sb
from random_matroids import random_graphic
from semibandit.engines import resolve_engine
from semibandit.engines.graphic_adaptive import AdaptiveEngine, ChallengerEngine, HotColdEngine, PrimEngine
from semibandit.testing import check_engine

PARTS = [AdaptiveEngine, ChallengerEngine, HotColdEngine, PrimEngine]
VALUES = [(0.0, 1.0), (0.5,), (float("nan"),), (0.1, 0.2, 0.3)]


@pytest.mark.bounds
@pytest.mark.parametrize("make", PARTS)
@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_with_every_invariant(make, seed):
    """Loops, parallel edges, several components, ties, deletions, exclusions, late feedback, stairs: 7 sizes a seed."""
    rng = np.random.default_rng(77 * seed + 1)
    for size in (1, 2, 4, 7, 12, 20, 33):
        matroid, _ = random_graphic(rng, size)
        check_engine(
            make,
            matroid,
            operations=40,
            seed=seed,
            moving_clock=seed % 3 == 0,
            values=VALUES[seed % len(VALUES)],
        )


def graph(rng, vertices, edges):
    ends = rng.integers(0, vertices, (edges, 2))
    ends[: vertices - 1] = np.column_stack([np.arange(vertices - 1), np.arange(1, vertices)])
    return sb.Graphic(ends, n_vertices=vertices)


@pytest.mark.parametrize("make", PARTS)
@pytest.mark.parametrize(("vertices", "edges"), [(12, 300), (40, 90), (60, 1200), (150, 400)])
def test_medium_graphs_in_cucbs_own_pattern(make, vertices, edges):
    """Busy at first, quiet later, with a step of lam now and then; the base compared at every round."""
    rng = np.random.default_rng(vertices)
    matroid = graph(rng, vertices, edges)
    fast, slow = make(matroid), resolve_engine(matroid)
    means = rng.random(edges)
    everyone = np.arange(edges)
    for engine in (fast, slow):
        engine.observe(everyone, np.full(edges, 0.5), 0.0, 1.0)
    lam = 0.3
    for t in range(400):
        if t % 90 == 0:
            lam *= 1.05
            fast.advance(lam)
            slow.advance(lam)
        base = fast.base()
        assert np.array_equal(base, slow.base()), t
        rewards = (rng.random(len(base)) < means[base]).astype(float)
        for engine in (fast, slow):
            engine.observe(base, rewards, 0.0, 1.0)
    fast._check()


def long_run(rounds):
    rng = np.random.default_rng(5)
    matroid = graph(rng, 60, 2000)
    env = sb.Bernoulli(matroid, rng.random(2000), seed=8)
    runs = [
        sb.simulate(sb.CUCB(matroid, clock="staircase", engine=engine), env.clone(), rounds, record_arms=True)
        for engine in ("adaptive", "resolve")
    ]
    assert np.array_equal(runs[0].arms, runs[1].arms)


def test_a_long_run_is_that_of_resolve():
    long_run(5_000)


@pytest.mark.slow
def test_a_very_long_run_is_that_of_resolve():
    long_run(100_000)


def test_the_clock_chosen_for_a_graph_is_the_staircase():
    matroid = graph(np.random.default_rng(1), 30, 200)
    about = sb.CUCB(matroid, clock="auto").describe()
    assert about["engine"] == "adaptive" and about["clock"] == "staircase"
    assert sb.CUCB(matroid).describe()["engine"] == "resolve"
    with pytest.raises(sb.ClockError, match="staircase"):
        sb.CUCB(matroid, engine="adaptive")
