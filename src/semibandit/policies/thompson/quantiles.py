"""Quantiles of Beta posteriors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from semibandit.arms import BETA, FloatArray, IntArray
from semibandit.compiled.jit import kernel
from semibandit.policies.thompson.beta import inverse_survival, log_beta
from semibandit.policies.thompson.posterior_layout import LOSSES, WINS

# The point below which a standard normal number lies with probability 0.975.
_NORMAL_975 = 1.959963984540054


@kernel
def beta_quantiles(wins: Any, losses: Any, tail: float, out: Any) -> None:
    """Quantiles `tail` and 1 - `tail` of Beta(1 + wins, 1 + losses) into rows of `out`. O(sqrt(wins + losses)) each."""
    for i in range(wins.shape[0]):
        a, b = wins[i] + 1.0, losses[i] + 1.0
        log_b = log_beta(a, b)
        out[0, i] = inverse_survival(math.log1p(-tail), a, b, log_b, 0.0)
        out[1, i] = inverse_survival(math.log(tail), a, b, log_b, 0.0)


def posterior_interval(policy: Any, arms: IntArray, mean: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both ends of the central 95 % of the posteriors of these arms of a `CTS`. `mean` is NaN for arms never seen."""
    low, high = policy.reward_range
    if policy.posterior == "gaussian":
        unseen, width = np.isnan(mean), _NORMAL_975 * policy._sigma_at(policy.t) * policy._recs[arms, BETA]
        return np.where(unseen, low, mean - width), np.where(unseen, high, mean + width)
    out = np.empty((2, len(arms)))
    beta_quantiles(policy._arm[arms, WINS], policy._arm[arms, LOSSES], 0.025, out)
    below, above = low + (high - low) * out
    return below, above
