"""The confidence width lam_t of round t: CUCB's own, or rounded up to a staircase.

One kernel computes each for every path, because `math.log` in Python and in compiled code need not agree to the last
bit. `stair_at_least` is the only rule that rounds up to a power of 1 + eta; Python calls the same kernel. Other
geometric grids are not this one: the bins of `paper.rounding` are the paper's own definition and the slopes of
`paper.directions` begin at a bound of the instance.
"""

from __future__ import annotations

import math

import numpy as np

from semibandit.arms import FloatArray
from semibandit.compiled.jit import kernel

# Entries of a clock. CURRENT: lam of the last call; STEPS: how often a staircase has gone up; AHEAD: what is added to
# the logarithm of the round.
SCALE, ETA, CURRENT, STEPS, AHEAD = range(5)
N_CLOCK = 5


def new_clock(scale: float, eta: float = 0.0, ahead: float = 0.0) -> FloatArray:
    """State of the clock ``sqrt(scale * (log t + ahead))``; with ``eta > 0`` rounded up to powers of 1 + eta."""
    return np.array([scale, eta, 0.0, 0.0, ahead])


@kernel
def stair_at_least(x, eta):
    """The smallest power of 1 + eta that is at least x, for floats x > 0 and eta > 0. O(1).

    Where x is a power up to rounding it may be the next one. From Python both must be floats.

    >>> stair_at_least(3.0, 1.0), stair_at_least(4.0, 1.0), stair_at_least(0.2, 1.0)
    (4.0, 4.0, 0.25)
    """
    power = math.ceil(math.log(x) / math.log1p(eta))
    stair = (1.0 + eta) ** power
    if stair < x:
        stair = (1.0 + eta) ** (power + 1)
    return stair


@kernel
def tick(clock, t):
    """lam of round t (from 1), never below that of an earlier call. Changes `clock`. O(1).

    With eta > 0 (docs/theory.md, D) the answer is the smallest power of (1 + eta) that is at least
    sqrt(scale * (log t + ahead)): CUCB with a confidence width at most (1 + eta) too wide.
    """
    lam = math.sqrt(clock[SCALE] * (math.log(float(t)) + clock[AHEAD]))
    if lam > clock[CURRENT]:
        if clock[ETA] > 0.0:
            lam = stair_at_least(lam, clock[ETA])
            clock[STEPS] += 1.0
        clock[CURRENT] = lam
    return clock[CURRENT]
