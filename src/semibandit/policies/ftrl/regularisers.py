"""Regularisers of FTRL: what each wants an arm's chance to be at a given price, and its learning rate.

FTRL plays the point x of the base polytope that minimises ``sum_i rate cost_i x_i + scale_i phi(x_i)``. With a price nu
for the sum of x (the multiplier of that constraint) every arm stands alone: ``-phi'(x_i) = a_i`` with
``a_i = (rate cost_i + nu) / scale_i``. All phi here are strictly convex, so that has one solution in (0, 1];
`chance_at` finds it.

=============  ======================================================  =========================================
regulariser    phi(x)                                                  reference
=============  ======================================================  =========================================
hybrid         -sqrt(x) + gamma (1 - x) log(1 - x)                     Zimmert, Luo and Wei 2019
lbinf, lbinfv  x - 1 - log x + gamma (x + (1 - x) log(1 - x))          Ito 2021; Tsuchiya, Ito and Honda 2023
exp2           x log x - x                                             Audibert, Bubeck and Lugosi 2014
log-barrier    -log x                                                  Wei and Luo 2018
=============  ======================================================  =========================================
"""

from __future__ import annotations

import math

from semibandit.compiled.jit import inline_kernel, kernel

HYBRID, LBINF, ENTROPY, BARRIER = range(4)

#: Name of each choice -> its phi, and how it predicts losses: not at all, by means, by gradient steps, as one half.
NO_GUESS, MEANS, STEPS, HALF = range(4)
CHOICES: dict[str, tuple[int, int]] = {
    "hybrid": (HYBRID, NO_GUESS),
    "lbinfv": (LBINF, MEANS),
    "lbinfv-gd": (LBINF, STEPS),
    "lbinf": (LBINF, HALF),
    "exp2": (ENTROPY, NO_GUESS),
    "log-barrier": (BARRIER, NO_GUESS),
}

_LOG_HALF = math.log(0.5)
_ROOT_TWO = math.sqrt(2.0)

# Newton's method squares the relative error: after a step of this size nothing is left to gain.
_LAST_STEP = 1e-8
ENOUGH = 100

# No chance is smaller than this, nor its distance from 1 where phi has a barrier there.
_LEAST = 1e-300


@inline_kernel
def rate_at(kind, t):
    """The learning rate of round t. O(1)."""
    if kind == HYBRID:
        return 1.0 / math.sqrt(t)
    if kind == ENTROPY:
        return 0.25 / math.sqrt(t)
    if kind == BARRIER:
        # The logarithm of the first rounds would stop the clock.
        return 4.0 * math.sqrt(math.log(max(t, 2)) / max(t, 2))
    return 1.0


@inline_kernel
def price_of(kind, gamma, x, rest):
    """``-phi'(x)`` for an arm whose chance is x = 1 - rest. O(1)."""
    x = max(x, _LEAST)
    if kind == ENTROPY:
        return -math.log(x)
    if kind == BARRIER:
        return 1.0 / x
    rest = max(rest, _LEAST)
    if kind == HYBRID:
        return 0.5 / math.sqrt(x) + gamma * (1.0 + math.log(rest))
    return 1.0 / x - 1.0 + gamma * math.log(rest)


@inline_kernel
def fall_of(kind, gamma, x, rest):
    """``-dx/da``: how fast a chance falls as its price goes up. O(1)."""
    if kind == ENTROPY:
        return x
    if kind == BARRIER:
        return x * x
    if rest <= 0.0:
        return 0.0
    if kind == HYBRID:
        return 1.0 / (0.25 / (x * math.sqrt(x)) + gamma / rest)
    return 1.0 / (1.0 / (x * x) + gamma / rest)


@kernel
def _hybrid_at(gamma, a, place, steps):
    """`chance_at` for HYBRID: by Newton in ``w = 1/sqrt(x)`` below one half, in ``v = log(1 - x)`` above.

    In these the equation is nearly linear, concave in w and convex in v: whatever the start, from the second step on
    Newton's steps go towards the root and never past it.
    """
    slope = 0.0
    if a > 0.5 * _ROOT_TWO + gamma * (1.0 + _LOG_HALF):
        w = place if place > 0.0 else max(_ROOT_TWO, 2.0 * (a - gamma))
        for _ in range(steps):
            inverse = 1.0 / (w * w)
            rest = 1.0 - inverse
            slope = 0.5 + 2.0 * gamma * inverse / (w * rest)
            step = (0.5 * w + gamma * (1.0 + math.log(rest)) - a) / slope
            w = max(w - step, _ROOT_TWO)
            if abs(step) <= _LAST_STEP * w:
                break
        x = 1.0 / (w * w)
        return x, 1.0 - x, w, 2.0 * x / (w * slope)
    v = place if place < 0.0 else min(_LOG_HALF, (a - 0.5) / gamma - 1.0)
    rest = math.exp(v)
    for _ in range(steps):
        root = math.sqrt(1.0 - rest)
        slope = gamma + 0.25 * rest / (root * root * root)
        step = (gamma * (1.0 + v) + 0.5 / root - a) / slope
        v = min(v - step, _LOG_HALF)
        rest = math.exp(v)
        if abs(step) <= _LAST_STEP:
            break
    return 1.0 - rest, rest, v, rest / slope


@kernel
def _lbinf_at(gamma, a, place, steps):
    """`chance_at` for LBINF: as `_hybrid_at`, with ``w = 1/x``."""
    slope = 0.0
    if a > 1.0 + gamma * _LOG_HALF:
        w = place if place > 0.0 else max(2.0, a + 1.0)
        for _ in range(steps):
            inverse = 1.0 / w
            rest = 1.0 - inverse
            slope = 1.0 + gamma * inverse * inverse / rest
            step = (w - 1.0 + gamma * math.log(rest) - a) / slope
            w = max(w - step, 2.0)
            if abs(step) <= _LAST_STEP * w:
                break
        x = 1.0 / w
        return x, 1.0 - x, w, x * x / slope
    v = place if place < 0.0 else min(_LOG_HALF, a / gamma)
    rest = math.exp(v)
    for _ in range(steps):
        x = 1.0 - rest
        slope = rest / (x * x) + gamma
        step = (1.0 / x - 1.0 + gamma * v - a) / slope
        v = min(v - step, _LOG_HALF)
        rest = math.exp(v)
        if abs(step) <= _LAST_STEP:
            break
    return 1.0 - rest, rest, v, rest / slope


@inline_kernel
def chance_at(kind, gamma, a, place, steps):
    """(x, 1 - x, place, fall) with ``-phi'(x) = a``, or x = 1 where phi has no barrier there and a is too small.

    `place` is where the search for this arm ended last time, or 0.0: it begins there, and ends after `steps` steps of
    Newton's method at the latest, `ENOUGH` being more than it ever takes. `fall` is -dx/da, taken before the last step:
    for the next step of whoever looks for a price. A logarithm a step.
    """
    if kind == HYBRID:
        return _hybrid_at(gamma, a, place, steps)
    if kind == LBINF:
        return _lbinf_at(gamma, a, place, steps)
    if kind == ENTROPY:
        x = 1.0 if a <= 0.0 else max(math.exp(-a), _LEAST)
        return x, 1.0 - x, 0.0, x if x < 1.0 else 0.0
    x = 1.0 if a <= 1.0 else 1.0 / a
    return x, 1.0 - x, 0.0, x * x if x < 1.0 else 0.0
