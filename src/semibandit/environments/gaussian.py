"""Normal rewards, clipped to a range."""

from __future__ import annotations

import math
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray
from semibandit.checks import as_means, as_per_arm, as_range, frozen, require_all
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.environments.base import _require_matroid
from semibandit.environments.compiled import CompiledEnvironment, pairs
from semibandit.environments.draw import GAUSSIAN
from semibandit.matroids import Matroid


class Gaussian(CompiledEnvironment):
    """Normal rewards around `means` with standard deviation `sigma`, clipped to the range. O(1) a draw.

    Clipping moves the expectation. `.means` reports the exact expectation of the clipped reward, which is
    what regret is about; the centres given to the constructor are kept in `.locations`. `sigma` is one
    number, or one per arm; with different sigmas clipping may even change which arm is best.

    >>> from semibandit import Gaussian, Uniform
    >>> env = Gaussian(Uniform(2, 1), [0.0, 0.5], sigma=0.1)
    >>> env.means.round(6).tolist()          # half of the first arm's noise is cut off at 0
    [0.039894, 0.5]
    >>> env.locations.tolist()
    [0.0, 0.5]
    """

    _kind = GAUSSIAN

    def __init__(
        self,
        matroid: Matroid,
        means: npt.ArrayLike,
        sigma: npt.ArrayLike,
        *,
        reward_range: tuple[float, float] = (0.0, 1.0),
        seed: SupportsIndex = 0,
    ) -> None:
        _require_matroid(matroid)
        low, high = as_range(reward_range)
        locations = as_means(means, matroid.n_arms, (low, high))
        scale = as_per_arm(sigma, "sigma", matroid.n_arms)
        require_all(scale, "sigma", scale > 0.0, "positive")
        exact = np.empty_like(locations)
        _clipped_means(locations, scale, low, high, exact)
        super().__init__(matroid, exact, reward_range=(low, high), seed=seed, params=pairs(locations, scale))
        self._locations: FloatArray = frozen(locations)

    @property
    def locations(self) -> FloatArray:
        """Centre of each arm's normal distribution before clipping; read-only."""
        return self._locations


@inline_kernel
def _tail_area(z: Any) -> Any:
    """Integral of the normal's upper tail probability from z to infinity: phi(z) - z P(Z > z). O(1)."""
    density = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    return density - z * 0.5 * math.erfc(z / math.sqrt(2.0))


@kernel
def _clipped_means(locations: Any, sigmas: Any, low: float, high: float, out: Any) -> None:
    """E[clip(X, low, high)] = low + integral of P(X > x) over [low, high], X normal. O(K); fills `out`."""
    for i in range(locations.size):
        m = locations[i]
        s = sigmas[i]
        area = s * (_tail_area((low - m) / s) - _tail_area((high - m) / s))
        out[i] = min(max(low + area, low), high)
