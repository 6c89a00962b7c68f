"""Rewards that rise and fall together."""

from __future__ import annotations

import math
from typing import SupportsIndex

import numpy as np
import numpy.typing as npt

from semibandit.checks import as_means, as_number, as_per_arm, as_range
from semibandit.environments.base import _require_matroid
from semibandit.environments.compiled import CompiledEnvironment, pairs
from semibandit.environments.draw import CORRELATED
from semibandit.environments.noise import require_width_fits
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid


class Correlated(CompiledEnvironment):
    """A random level shared by all arms of a round, plus noise of each arm's own. O(1) per draw.

    reward = mean + width / 2 * (s L + (1 - s) U), with L (one a round) and U (one a pull) uniform in [-1,
    1] and s such that the rewards of any two arms in a round have the given `correlation`. The marginal
    mean is exact. `width` is one number, or one per arm; by default each arm's is the widest that stays
    inside the range, so an arm whose mean is at an end of the range is constant.

    Unlike elsewhere, a reward depends on the round `t` as well as on (seed, arm, pull number): policies
    that play the same rounds meet the same levels.

    >>> from semibandit import Correlated, Uniform
    >>> env = Correlated(Uniform(3, 2), [0.2, 0.5, 0.5], correlation=1.0, seed=1)
    >>> env.draw([1, 2], t=1).round(2).tolist()
    [0.88, 0.88]
    """

    _kind = CORRELATED
    round_dependent = True

    def __init__(
        self,
        matroid: Matroid,
        means: npt.ArrayLike,
        correlation: float = 0.5,
        *,
        width: npt.ArrayLike | None = None,
        reward_range: tuple[float, float] = (0.0, 1.0),
        seed: SupportsIndex = 0,
    ) -> None:
        _require_matroid(matroid)
        low, high = as_range(reward_range)
        checked = as_means(means, matroid.n_arms, (low, high))
        c = as_number(correlation, "correlation")
        if not 0.0 <= c <= 1.0:
            raise ParameterError(f"correlation must be in [0, 1], got {c}")
        if width is None:
            half = np.minimum(checked - low, high - checked)
        else:
            widths = as_per_arm(width, "width", matroid.n_arms)
            require_width_fits(widths, checked, (low, high))
            half = 0.5 * widths
        # L and U have equal variance, so weights in the ratio sqrt(c) : sqrt(1 - c) give correlation c.
        shared = math.sqrt(c) / (math.sqrt(c) + math.sqrt(1.0 - c))
        super().__init__(
            matroid,
            checked,
            reward_range=(low, high),
            seed=seed,
            params=pairs(checked, half),
            shared=shared,
            own=1.0 - shared,
        )
        self._correlation = c

    @property
    def correlation(self) -> float:
        """Correlation of the rewards of any two (not constant) arms in one round."""
        return self._correlation
