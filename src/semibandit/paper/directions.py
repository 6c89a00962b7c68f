"""Query rounding: few directions for all queries, no feature rounded (docs/theory.md, C).

If lam <= lam' <= (1+eta) lam then every weight at slope lam' is between one and 1+eta times that at lam, so a
maximum-weight base at lam' is (1+eta)-approximate at lam. Slopes in geometric progression serve all queries
between them, the first all flatter ones and the last all steeper ones.
"""

from __future__ import annotations

import math

import numpy as np

from semibandit.arms import FloatArray
from semibandit.errors import ParameterError
from semibandit.paper.rounding import Bounds

MAX_DIRECTIONS = 10_000_000

# Slopes and weights are rounded; a step this little smaller keeps the guarantee in floats.
_HAIR = 1e-12


def direction_slopes(bounds: Bounds, epsilon: float) -> FloatArray:
    """Slopes of the directions, increasing, read-only: the "consequence" of section C in docs/theory.md.

    From eta/(1+eta) alpha_lb/beta_ub in steps of 1+eta up to the first that reaches
    (1+eta)/eta alpha_ub/beta_lb. The dynamic algorithms are exact, so eta = epsilon suffices (with the paper's
    (1+eta)-approximate ones it would be epsilon/3). O(log_{1+eta}(lam_hi/lam_lo)).

    >>> slopes = direction_slopes(((0.1, 1.0), (0.001, 1.0)), epsilon=0.1)
    >>> len(slopes), bool(slopes[1] / slopes[0] < 1.1)
    (148, True)
    """
    (alpha_lb, alpha_ub), (beta_lb, beta_ub) = bounds
    eta = epsilon * (1.0 - _HAIR)
    low = eta / (1.0 + eta) * alpha_lb / beta_ub
    high = (1.0 + eta) / eta * alpha_ub / beta_lb
    steps = math.ceil((math.log(high) - math.log(low)) / math.log1p(eta))
    if steps >= MAX_DIRECTIONS:
        raise ParameterError(
            f"epsilon = {epsilon} needs {steps:,} directions, more than {MAX_DIRECTIONS:,}; take a larger epsilon"
        )
    slopes: FloatArray = low * np.exp(math.log1p(eta) * np.arange(steps + 1))
    if slopes[-1] < high:
        slopes = np.append(slopes, slopes[-1] * (1.0 + eta))
    if not (slopes[0] > np.finfo(float).tiny and np.isfinite(slopes[-1])):
        raise ParameterError(f"bounds {bounds} span too many orders of magnitude for float64 slopes")
    slopes.flags.writeable = False
    return slopes


def direction_of(slopes: FloatArray, lam: float) -> float:
    """The slope that answers queries of slope lam: the smallest one not below it, else the last. O(log W)."""
    return float(slopes[min(int(np.searchsorted(slopes, lam)), slopes.size - 1)])
