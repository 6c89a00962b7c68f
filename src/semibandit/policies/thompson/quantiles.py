"""Quantiles of Beta posteriors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from semibandit.arms import BETA, FloatArray, IntArray
from semibandit.compiled.jit import kernel
from semibandit.policies.decisions import Ends
from semibandit.policies.records import about_means
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


def posterior_ends(policy: Any, arms: IntArray) -> Ends:
    """Both ends of the central 95 % of the present posteriors of these arms of a `CTS`."""
    if policy.posterior == "gaussian":
        return about_means(policy._recs[arms, BETA], _NORMAL_975 * policy.sigma, policy.reward_range)
    (low, high), rows = policy.reward_range, policy._arm[arms]

    def ends(mean: FloatArray) -> tuple[FloatArray, FloatArray]:
        out = np.empty((2, len(rows)))
        beta_quantiles(rows[:, WINS].copy(), rows[:, LOSSES].copy(), 0.025, out)
        below, above = low + (high - low) * out
        return below, above

    return ends
