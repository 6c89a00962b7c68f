"""Regularised leaders of given costs."""

from __future__ import annotations

import semibandit as sb

HORIZON = 10_000


def leader(matroid, name, costs, t=50, scale=None, exclude=None):
    """A policy that has just played round t with these estimated costs."""
    policy = sb.FTRL(matroid, regulariser=name, horizon=HORIZON, seed=1)
    policy._est.cost[:] = costs
    if scale is not None:
        policy._est.scale[:] = scale
    policy._t = t - 1
    policy.select() if exclude is None else policy.select(exclude=exclude)
    return policy
