"""Figures about policies for both worlds: sizes of the regrets (the long versions are slow)."""

from __future__ import annotations

import pytest
from test_published import near

import semibandit as sb
from benchmarks.both_worlds import GAP, TSUCHIYA, ZIMMERT_ADVERSARY, tsuchiya, zimmert_adversary
from benchmarks.published import zimmert_instance

#: All curves come out within a seventh of what the figures show, give or take two standard errors.
SEVENTH = 1.0 / 7.0


@pytest.mark.parametrize("bad", TSUCHIYA)
def test_tsuchiyas_regrets_in_a_short_run(bad):
    found = tsuchiya(repeats=6, rounds=10_000, seed=3, bad=bad)
    for curve in TSUCHIYA[bad]:
        assert near(found[curve.label], curve.published, 0.2), curve
    assert found["FTRL, LBINFV by means"].mean() < found["FTRL, HYBRID"].mean()


def test_the_adversary_in_a_short_run():
    # With the log-barrier one run in ten loses three times as much as most: of a handful the mean says little.
    found = zimmert_adversary(repeats=30, rounds=10_000, seed=3)
    for curve in ZIMMERT_ADVERSARY:
        assert near(found[curve.label], curve.published, SEVENTH), curve
    assert found["CUCB"].mean() > 2.0 * found["FTRL, HYBRID"].mean()


@pytest.mark.slow
@pytest.mark.parametrize("bad", TSUCHIYA)
def test_tsuchiyas_figure(bad):
    found = tsuchiya(repeats=50, rounds=10_000, seed=0, bad=bad)
    for curve in TSUCHIYA[bad]:
        assert near(found[curve.label], curve.published, SEVENTH), curve


@pytest.mark.slow
def test_zimmerts_adversary():
    found = zimmert_adversary(repeats=200, rounds=10_000, seed=0)
    for curve in ZIMMERT_ADVERSARY:
        assert near(found[curve.label], curve.published, SEVENTH), curve


@pytest.mark.slow
def test_which_gap_is_zimmerts():
    """With 1/16 CUCB loses less than the figure shows by a third, with 1/8 by no more than a seventh."""
    for gap, fits in ((1.0 / 16.0, False), (GAP, True)):
        found = zimmert_adversary(repeats=100, rounds=10_000, seed=1, gap=gap)["CUCB"]
        assert near(found, 1_274.0, SEVENTH) == fits, found.mean()


@pytest.mark.slow
def test_a_million_rounds():
    """Regret grows by little after 10^4 rounds where rewards are random, and like a root against the adversary."""
    matroid = sb.Uniform(10, 5)
    worlds = (
        zimmert_instance(1),
        sb.Adversary(matroid, [0.5 + GAP / 2] * 5 + [0.5 - GAP / 2] * 5, seed=1),
    )
    for env, most in zip(worlds, (3.0, 10.0)):
        run = sb.simulate(sb.FTRL(matroid, seed=1), env, 1_000_000, [10_000, 1_000_000])
        assert run.path == "compiled"
        assert run.regret[0] < run.regret[1] < most * run.regret[0]
