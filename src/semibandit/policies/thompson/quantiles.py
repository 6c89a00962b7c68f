"""Quantiles of Beta posteriors."""

from __future__ import annotations

import math
from typing import Any

from semibandit.compiled.jit import kernel
from semibandit.policies.thompson.beta import inverse_survival, log_beta


@kernel
def beta_quantiles(wins: Any, losses: Any, tail: float, out: Any) -> None:
    """Quantiles `tail` and 1 - `tail` of Beta(1 + wins, 1 + losses) into rows of `out`. O(sqrt(wins + losses)) each."""
    for i in range(wins.shape[0]):
        a, b = wins[i] + 1.0, losses[i] + 1.0
        log_b = log_beta(a, b)
        out[0, i] = inverse_survival(math.log1p(-tail), a, b, log_b, 0.0)
        out[1, i] = inverse_survival(math.log(tail), a, b, log_b, 0.0)
