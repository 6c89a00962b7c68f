"""The confidence width lam_t of round t: CUCB's own, or rounded up to a staircase.

One kernel computes it for every path, because `math.log` in Python and in compiled code need not agree to
the last bit.
"""

from __future__ import annotations

import math

import numpy as np

from semibandit.arms import FloatArray
from semibandit.compiled.jit import kernel

SCALE, ETA, CURRENT, STEPS = 0, 1, 2, 3


def new_clock(scale: float, eta: float = 0.0) -> FloatArray:
    """State of the clock ``lam_t = sqrt(scale * log t)``; with ``eta > 0`` rounded up to powers of 1 + eta."""
    return np.array([scale, eta, 0.0, 0.0])


@kernel
def tick(clock, t):
    """lam of round t (from 1), never below that of an earlier call. Changes `clock`. O(1).

    With eta > 0 (DESIGN idea D) the answer is the smallest power of (1 + eta) that is at least
    sqrt(scale * log t): CUCB with a confidence width at most (1 + eta) too wide.
    """
    lam = math.sqrt(clock[SCALE] * math.log(float(t)))
    eta = clock[ETA]
    if eta <= 0.0:
        if lam > clock[CURRENT]:
            clock[CURRENT] = lam
        return clock[CURRENT]
    if lam > clock[CURRENT]:
        power = math.ceil(math.log(lam) / math.log1p(eta))
        step = (1.0 + eta) ** power
        if step < lam:
            step = (1.0 + eta) ** (power + 1.0)
        clock[CURRENT] = step
        clock[STEPS] += 1.0
    return clock[CURRENT]
