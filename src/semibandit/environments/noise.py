"""A mean plus uniform noise."""

from __future__ import annotations

from typing import SupportsIndex

import numpy.typing as npt

from semibandit.arms import FloatArray
from semibandit.checks import as_means, as_per_arm, as_range, require_all
from semibandit.environments.base import _require_matroid
from semibandit.environments.compiled import CompiledEnvironment, pairs
from semibandit.environments.draw import UNIFORM_NOISE
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid

# 0.3 - 0.6 / 2 and the like may miss the end of the range by rounding; this share of the range is forgiven.
_SLACK = 1e-12


class UniformNoise(CompiledEnvironment):
    """Rewards uniform in [mean - width / 2, mean + width / 2], which must lie inside the range. O(1) per draw.

    `width` is one number, or one per arm; width 0 makes rewards constant.

    >>> from semibandit import Uniform, UniformNoise
    >>> env = UniformNoise(Uniform(3, 1), [0.2, 0.5, 0.8], width=0.4, seed=1)
    >>> env.draw([0, 1, 2]).round(2).tolist()
    [0.02, 0.33, 0.83]
    """

    _kind = UNIFORM_NOISE

    def __init__(
        self,
        matroid: Matroid,
        means: npt.ArrayLike,
        width: npt.ArrayLike,
        *,
        reward_range: tuple[float, float] = (0.0, 1.0),
        seed: SupportsIndex = 0,
    ) -> None:
        _require_matroid(matroid)
        low, high = as_range(reward_range)
        checked = as_means(means, matroid.n_arms, (low, high))
        widths = as_per_arm(width, "width", matroid.n_arms)
        require_width_fits(widths, checked, (low, high))
        super().__init__(
            matroid, checked, reward_range=(low, high), seed=seed, params=pairs(checked, 0.5 * widths)
        )


def require_width_fits(widths: FloatArray, means: FloatArray, reward_range: tuple[float, float]) -> None:
    """Raise unless every arm's noise stays inside the range: clipping it would falsify the means. O(K)."""
    low, high = reward_range
    require_all(widths, "width", widths >= 0.0, "at least 0")
    slack = _SLACK * (high - low)
    outside = (means - 0.5 * widths < low - slack) | (means + 0.5 * widths > high + slack)
    if outside.any():
        i = int(outside.argmax())
        raise ParameterError(
            f"width must keep mean -/+ width / 2 inside reward_range ({low}, {high}), "
            f"got width {float(widths[i])} for arm {i} of mean {float(means[i])}"
        )
