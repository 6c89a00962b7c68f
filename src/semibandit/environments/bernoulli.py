"""Rewards with two values."""

from __future__ import annotations

from typing import SupportsIndex

import numpy as np
import numpy.typing as npt

from semibandit.checks import as_means, as_range
from semibandit.environments.base import _require_matroid
from semibandit.environments.compiled import CompiledEnvironment
from semibandit.environments.draw import BERNOULLI
from semibandit.matroids import Matroid


class Bernoulli(CompiledEnvironment):
    """Each reward is the highest or the lowest of the range, with the given mean. O(1) per draw.

    With `reward_range=(a, b)` an arm of mean m gives b with probability (m - a) / (b - a), else a: the
    paper's rewards in [a, b] with 0 < a < b at their largest variance.

    >>> from semibandit import Bernoulli, Uniform
    >>> env = Bernoulli(Uniform(4, 2), [0.2, 0.9, 0.4, 0.5], seed=1)
    >>> env.optimal_base.tolist(), env.draw([1, 3]).shape
    ([1, 3], (2,))
    """

    _kind = BERNOULLI

    def __init__(
        self,
        matroid: Matroid,
        means: npt.ArrayLike,
        *,
        reward_range: tuple[float, float] = (0.0, 1.0),
        seed: SupportsIndex = 0,
    ) -> None:
        _require_matroid(matroid)
        low, high = as_range(reward_range)
        checked = as_means(means, matroid.n_arms, (low, high))
        probability = np.clip((checked - low) / (high - low), 0.0, 1.0)
        super().__init__(matroid, checked, reward_range=(low, high), seed=seed, params=probability)
