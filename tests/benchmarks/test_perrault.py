"""Perrault et al. 2019, Figure 1 left, as far as it can be read (docs/regret.md)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.perrault import PATH, PUBLISHED, ExactESCB, instance, perrault, play
from oracles.escb import Arms, best_index, parts


def test_the_instance_is_the_papers():
    for env in (instance(), instance(PATH)):
        assert env.matroid.rank == 4 and env.optimal_value == pytest.approx(4.4)
        assert np.sort(env.means) == pytest.approx([1.0] * 6 + [1.1] * 4)
    assert len(ExactESCB(instance()).bases) == 125


def test_the_exact_maximum_is_that_of_all_bases():
    env = instance(seed=1)
    player = ExactESCB(env)
    known = Arms(10, lambda arms: env.matroid.is_independent(list(arms)))
    for t in range(1, 40):
        arms = player.select()
        if all(known.count):
            width = math.sqrt(math.log(t))
            assert sum(parts(known, width, arms.tolist())) == pytest.approx(
                best_index(known, width, range(10))
            )
        rewards = env.draw(arms)
        player.update(arms, rewards)
        known.update(arms.tolist(), rewards.tolist())


def test_short_runs_lose_alike():
    """A hundredth of the horizon, where the greedy and CUCB still differ little."""
    found = perrault(repeats=10, rounds=2_000, seed=3)
    assert 0.7 < found["ESCB"].mean() / found["CUCB"].mean() < 1.2
    env = instance(seed=3)
    assert 0.0 < play(ExactESCB(env), env, 300) < 0.4 * 300


@pytest.mark.slow
def test_the_figure():
    """CUCB is where the figure has it; ESCB loses less, but not by the published 0.72 (docs/regret.md). Bands are those
    of our own runs: at f = log t single runs never return to the best tree, so that the median is compared."""
    narrow = perrault(repeats=60, rounds=100_000, seed=0)
    assert abs(np.median(narrow["CUCB"]) / PUBLISHED["CUCB"] - 1.0) < 0.2
    wide = perrault(repeats=60, rounds=100_000, seed=0, factor=2.0)
    assert 0.8 < wide["ESCB"].mean() / wide["CUCB"].mean() < 1.0


@pytest.mark.slow
def test_the_exact_maximum_loses_less_than_the_greedy_and_cucb():
    found = perrault(repeats=16, rounds=30_000, seed=0, factor=2.0, exact=True)
    cucb, greedy, exact = (found[label].mean() for label in ("CUCB", "ESCB", "ESCB, exact"))
    assert 0.6 < exact / cucb < 0.9
    assert exact < greedy < cucb
