"""Log-normal rewards with rare outliers from a Pareto tail: latencies, claims, prices."""

from __future__ import annotations

import math
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray
from semibandit.checks import as_number, as_per_arm, as_range, frozen, require_all
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.environments.base import _require_matroid
from semibandit.environments.compiled import CompiledEnvironment
from semibandit.environments.draw import HEAVY_TAILED
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid


class HeavyTailed(CompiledEnvironment):
    """Log-normal rewards, and with probability `outliers` one from a Pareto tail; clipped to the range. O(1) a draw.

    A reward is ``median exp(sigma Z)`` with a normal Z, or, rarely, `start` U^(-1 / exponent) with a uniform U: beyond
    x there is a share (start / x)^exponent of the outliers. `medians`, `sigma` and `start` (ten times the median unless
    given) are one number, or one per arm, and positive. `.means` are the exact expectations of the clipped rewards. The
    range may reach far out: no policy need be told of it (`RobustCUCB`).

    >>> from semibandit import HeavyTailed, Uniform, minimize
    >>> env = HeavyTailed(Uniform(3, 1), [100.0, 135.0, 180.0], outliers=0.001, start=2000.0, reward_range=(0, 8000))
    >>> env.means.round(1).tolist()
    [116.7, 156.3, 207.3]
    >>> minimize(env).optimal_base.tolist()
    [0]
    """

    _kind = HEAVY_TAILED

    def __init__(
        self,
        matroid: Matroid,
        medians: npt.ArrayLike,
        sigma: npt.ArrayLike = 0.5,
        *,
        outliers: float = 0.001,
        start: npt.ArrayLike | None = None,
        exponent: float = 2.0,
        reward_range: tuple[float, float] = (0.0, 1e6),
        seed: SupportsIndex = 0,
    ) -> None:
        _require_matroid(matroid)
        low, high = as_range(reward_range)
        if low < 0.0:
            raise ParameterError(
                f"reward_range must begin at 0 or above, got {low}: heavy-tailed rewards are positive"
            )
        n = matroid.n_arms
        centre, spread, begin = (
            as_per_arm(given, name, n)
            for given, name in (
                (medians, "medians"),
                (sigma, "sigma"),
                (1.0 if start is None else start, "start"),
            )
        )
        if start is None:
            begin = 10.0 * centre
        for values, name in ((centre, "medians"), (spread, "sigma"), (begin, "start")):
            require_all(values, name, values > 0.0, "positive")
        chance = as_number(outliers, "outliers", 0.0, 1.0)
        power = as_number(exponent, "exponent", 0.0, closed=False)
        params = np.zeros((n, 4))
        params[:, 0], params[:, 1], params[:, 2] = np.log(centre), spread, begin
        exact = np.empty(n)
        _clipped_means(params, chance, power, low, high, exact)
        super().__init__(
            matroid,
            exact,
            reward_range=(low, high),
            seed=seed,
            params=params.reshape(-1),
            shared=chance,
            own=power,
        )
        self._medians: FloatArray = frozen(centre)

    @property
    def medians(self) -> FloatArray:
        """Median of each arm's rewards but for outliers; read-only."""
        return self._medians


@inline_kernel
def _capped_log_normal(mu: Any, sigma: Any, cap: Any) -> Any:
    """E[min(X, cap)], log X normal. O(1)."""
    if cap <= 0.0:
        return cap
    z = (math.log(cap) - mu) / sigma
    below = 0.5 * math.erfc((sigma - z) / math.sqrt(2.0))
    above = 0.5 * math.erfc(z / math.sqrt(2.0))
    return math.exp(mu + 0.5 * sigma * sigma) * below + cap * above


@inline_kernel
def _capped_pareto(start: Any, exponent: Any, cap: Any) -> Any:
    """E[min(X, cap)], where P(X > x) = (start / x)^exponent from `start` on. O(1)."""
    if cap <= start:
        return cap
    ratio = math.log(cap / start)
    if exponent == 1.0:
        return start * (1.0 + ratio)
    return start * (1.0 - math.expm1((1.0 - exponent) * ratio) / (exponent - 1.0))


@kernel
def _clipped_means(params: Any, chance: float, exponent: float, low: float, high: float, out: Any) -> None:
    """E[clip(X, low, high)] = low + E[min(X, high)] - E[min(X, low)]. O(K); fills `out`."""
    for k in range(out.size):
        mu, sigma, start = params[k, 0], params[k, 1], params[k, 2]
        usual = _capped_log_normal(mu, sigma, high) - _capped_log_normal(mu, sigma, low)
        rare = _capped_pareto(start, exponent, high) - _capped_pareto(start, exponent, low)
        out[k] = min(max(low + (1.0 - chance) * usual + chance * rare, low), high)
