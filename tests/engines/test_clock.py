"""The one rule that rounds up to a stair, and the clock that climbs it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import semibandit as sb
from semibandit.engines.clock import CURRENT, STEPS, new_clock, stair_at_least, tick


def on_a_stair(x: float, eta: float) -> bool:
    return x == stair_at_least(x * (1.0 - 0.3 * eta), eta)


@pytest.mark.parametrize("eta", [0.003, 0.01, 0.4, 1.0])
def test_the_stair_is_the_smallest_power_that_suffices(eta: float) -> None:
    rng = np.random.default_rng(3)
    for x in np.exp(rng.uniform(-60.0, 60.0, 400)):
        stair = stair_at_least(float(x), eta)
        assert x <= stair
        power = round(math.log(stair) / math.log1p(eta))
        assert math.isclose(stair, (1.0 + eta) ** power, rel_tol=1e-10)
        assert stair / (1.0 + eta) < x * (1.0 + 1e-10)
        # One stair is one float, from wherever below it was reached.
        assert on_a_stair(stair, eta)


@pytest.mark.parametrize("eta", [0.003, 0.01, 0.4])
def test_powers_themselves_are_reached(eta: float) -> None:
    """Rounding may make a power look a hair too large; the answer is then the next one, never the one before."""
    for power in range(-300, 300):
        x = (1.0 + eta) ** power
        assert x <= stair_at_least(x, eta) <= x * (1.0 + eta) * (1.0 + 1e-10)


@pytest.mark.parametrize("eta", [0.0, 0.01, 0.3])
def test_the_clock_stands_on_stairs_and_never_goes_down(eta: float) -> None:
    clock = new_clock(1.5, eta)
    last, steps = 0.0, 0
    for t in [*range(1, 3000), 5, *range(3000, 10**7, 9973)]:
        lam = tick(clock, t)
        width = math.sqrt(1.5 * math.log(t))
        assert lam >= max(last, width * (1.0 - 1e-15))
        assert lam == clock[CURRENT]
        if eta > 0.0 and t > 1:
            assert lam <= max(last, width * (1.0 + eta) * (1.0 + 1e-12))
            steps += lam > last
        last = lam
    assert clock[STEPS] == steps


def test_policies_stand_on_these_stairs() -> None:
    matroid = sb.Uniform(40, 3)
    rng = np.random.default_rng(0)
    for policy in (
        sb.CUCB(matroid, clock="staircase", step=0.05),
        sb.SlidingWindowCUCB(matroid, window=20, clock="staircase", step=0.05),
    ):
        seen = set()
        for t in range(30):
            arms = policy.select()
            policy.update(arms, rng.random(len(arms)))
            assert t == 0 or on_a_stair(policy._engine.lam, 0.05)
            seen.add(policy._engine.lam)
        assert 2 < len(seen) < 30
