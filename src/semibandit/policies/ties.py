"""Ties between arms never seen, broken at random.

An arm of which nothing is known has an infinite index, and of infinite ones the smaller id comes first. With
``ties="random"`` such an arm has a huge finite weight in place of +inf, drawn for each arm from the policy's seed:
those that come first are then in random order, at no cost in a round. With a prior all arms never seen have the same
mean; up to a billionth of the range of rewards is added to it. What users are shown stays +inf, and the prior.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from semibandit.arms import ALPHA, FloatArray, IntArray
from semibandit.compiled.random import fill_uniforms, new_state
from semibandit.policies.prior import Prior

TIES = ("id", "random")

# The weights of arms never seen lie between once and twice this. No weight that rewards give comes near.
FIRST = 1e300

# How much of the range of rewards the means of a prior differ by at most.
_HAIR = 1e-9

# What the seed is mixed with, so that these draws are not those of the policy's rounds.
_STREAM = 0x5449455342524F4B

Words = npt.NDArray[np.uint64]


def tie_generator(seed: int) -> Words:
    """The generator of a policy's tie-breaking weights."""
    return new_state(seed ^ _STREAM)


def draw_first(rng: Words, n: int) -> FloatArray:
    """The weights of n arms never seen. Changes `rng`. O(n)."""
    out = np.empty(n)
    fill_uniforms(rng, out)
    return FIRST * (1.0 + out)


def shown(weights: FloatArray, first: FloatArray) -> FloatArray:
    """Weights as users see them: +inf for arms never seen. O(n)."""
    return np.where(weights >= FIRST, np.inf, weights) if first.size else weights


def hair(first: FloatArray, span: float) -> FloatArray:
    """What is added to the means of a prior, a little for each arm. O(n)."""
    return _HAIR * span * (first / FIRST - 1.0)


def spread(believed: Prior, first: FloatArray, span: float) -> Prior:
    """The prior with means that differ by a hair. O(K)."""
    return believed._replace(mean=believed.mean + hair(first, span))


def write_first(recs: FloatArray, ids: Any, first: FloatArray) -> None:
    """Let these arms, never seen and without a prior, come first in the order of their weights. O(n)."""
    recs[ids, ALPHA] = first[ids]


def still_unseen(arms: IntArray, seen: FloatArray, waiting: IntArray) -> IntArray:
    """Those of `arms` of which nothing was seen and nothing waits. O(n)."""
    return arms[seen[arms] + waiting[arms] <= 0.0]
