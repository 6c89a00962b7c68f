"""Rewards with a Beta distribution."""

from __future__ import annotations

from typing import SupportsIndex

import numpy as np
import numpy.typing as npt

from semibandit.checks import as_means, as_per_arm, as_range, require_all
from semibandit.environments.base import _require_matroid
from semibandit.environments.compiled import CompiledEnvironment, pairs
from semibandit.environments.draw import BETA
from semibandit.matroids import Matroid

# Outside these the distribution is a coin or a constant to within rounding.
_SMALLEST, _LARGEST = 1e-6, 1e12


class Beta(CompiledEnvironment):
    """Beta(c m, c (1 - m)) rewards scaled to the range; m is an arm's mean within it. Expected O(1) per draw.

    `concentration` c (one number, or one per arm) sets the noise: the variance is m (1 - m) / (c + 1). A
    mean at an end of the range makes that arm's reward constant.

    >>> from semibandit import Beta, Uniform
    >>> env = Beta(Uniform(3, 1), [0.2, 0.9, 0.4], concentration=5.0, seed=1)
    >>> env.draw([0, 1, 2]).round(2).tolist()
    [0.12, 0.63, 0.12]
    """

    _kind = BETA

    def __init__(
        self,
        matroid: Matroid,
        means: npt.ArrayLike,
        concentration: npt.ArrayLike = 10.0,
        *,
        reward_range: tuple[float, float] = (0.0, 1.0),
        seed: SupportsIndex = 0,
    ) -> None:
        _require_matroid(matroid)
        low, high = as_range(reward_range)
        checked = as_means(means, matroid.n_arms, (low, high))
        c = as_per_arm(concentration, "concentration", matroid.n_arms)
        good = (c >= _SMALLEST) & (c <= _LARGEST)
        require_all(c, "concentration", good, f"in [{_SMALLEST:g}, {_LARGEST:g}]")
        m = np.clip((checked - low) / (high - low), 0.0, 1.0)
        super().__init__(
            matroid, checked, reward_range=(low, high), seed=seed, params=pairs(c * m, c * (1.0 - m))
        )
