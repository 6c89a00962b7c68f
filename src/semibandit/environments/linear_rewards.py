"""Worlds in which mean rewards are linear in features: of each arm for good, or of each arm and round (contexts)."""

from __future__ import annotations

import math
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray, IntArray
from semibandit.checks import as_means, as_number, as_range, as_vector, as_whole, frozen
from semibandit.environments.base import Environment, _require_matroid
from semibandit.environments.compiled import CompiledEnvironment, pairs
from semibandit.environments.draw import BERNOULLI, UNIFORM_NOISE
from semibandit.environments.noise import require_width_fits
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid


class LinearRewards(CompiledEnvironment):
    """Arms with features of their own: the mean reward of arm k is ``features[k]' theta``. O(1) per draw.

    Parameters
    ----------
    matroid
        What may be played together.
    features
        One row per arm, K x d.
    theta
        d coefficients; every mean must lie in the reward range.
    width
        If given, rewards are uniform in mean -/+ width / 2; otherwise they are one of the two ends of the range.

    The best base does not change, so regret is O(D) per round as elsewhere; O(K d) once. `semibandit run` and
    experiments hand `features` to the policies that take some (`CombLinTS`).

    Example
    -------
    >>> import semibandit as sb
    >>> env = sb.LinearRewards(sb.Uniform(3, 1), [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]], theta=[0.2, 0.6])
    >>> env.means.round(6).tolist(), env.optimal_base.tolist()
    ([0.2, 0.4, 0.6], [2])
    >>> policy = sb.CombLinTS(env.matroid, features=env.features, seed=1)
    >>> bool(sb.simulate(policy, env, rounds=500).regret[-1] < 60.0)
    True
    """

    def __init__(
        self,
        matroid: Matroid,
        features: npt.ArrayLike,
        theta: npt.ArrayLike,
        *,
        width: float | None = None,
        reward_range: tuple[float, float] = (0.0, 1.0),
        seed: SupportsIndex = 0,
    ) -> None:
        _require_matroid(matroid)
        low, high = as_range(reward_range)
        rows, coefficients, means = _worth(features, theta, (low, high), "features")
        if len(rows) != matroid.n_arms:
            raise ParameterError(
                f"features must have one row per arm ({matroid.n_arms}), got {len(rows)} rows"
            )
        if width is None:
            params = np.clip((means - low) / (high - low), 0.0, 1.0)
        else:
            widths = np.full(matroid.n_arms, as_number(width, "width"))
            require_width_fits(widths, means, (low, high))
            params = pairs(means, 0.5 * widths)
        self._kind = BERNOULLI if width is None else UNIFORM_NOISE  # type: ignore[misc]
        super().__init__(matroid, means, reward_range=(low, high), seed=seed, params=params)
        self._features: FloatArray = frozen(rows)
        self._theta: FloatArray = frozen(coefficients)

    @property
    def features(self) -> FloatArray:
        """One row per arm; read-only."""
        return self._features

    @property
    def theta(self) -> FloatArray:
        """The coefficients; read-only."""
        return self._theta

    def context(self, t: SupportsIndex) -> FloatArray:
        """The features of all arms in round t: always the same. O(1)."""
        return self._features


class LinearContexts(Environment):
    """Contexts: in every round each arm has other features, and the mean reward ``phi' theta`` with the same theta.

    Parameters
    ----------
    matroid
        What may be played together.
    rows
        Rows of features, n x d. In round t every arm has one of them, drawn anew from (seed, t): all policies meet the
        same contexts.
    theta
        d coefficients; the mean of every row must lie in the reward range.
    width
        As in `LinearRewards`.

    `means`, `optimal_base`, `optimal_value` and `regret` are those of the round of the last draw: the best base moves
    with the context, so that a round costs O(K) and one `max_weight_base`, and O(K d) where its features are asked for
    (`context`). The reward for the n-th pull of an arm is a function of (seed, arm, n) and of its features.

    Example
    -------
    >>> import semibandit as sb
    >>> env = sb.LinearContexts(sb.Uniform(4, 2), [[0.1, 0.2], [0.9, 0.4], [0.3, 0.8]], theta=[0.3, 0.5], seed=1)
    >>> env.context(1).shape
    (4, 2)
    >>> policy = sb.CombLinUCB(env.matroid, dimension=2)
    >>> result = sb.simulate(policy, env, rounds=300)  # which hands the features of each round to the policy
    >>> bool(result.regret[-1] < 25.0)
    True
    """

    round_dependent = True

    def __init__(
        self,
        matroid: Matroid,
        rows: npt.ArrayLike,
        theta: npt.ArrayLike,
        *,
        width: float | None = None,
        reward_range: tuple[float, float] = (0.0, 1.0),
        seed: SupportsIndex = 0,
    ) -> None:
        _require_matroid(matroid)
        low, high = as_range(reward_range)
        table, coefficients, worth = _worth(rows, theta, (low, high), "rows")
        self._width = None if width is None else as_number(width, "width")
        if self._width is not None:
            require_width_fits(np.full(len(worth), self._width), worth, (low, high))
        super().__init__(matroid, np.full(matroid.n_arms, worth[0]), reward_range=(low, high), seed=seed)
        self._rows: FloatArray = frozen(table)
        self._theta: FloatArray = frozen(coefficients)
        self._worth: FloatArray = frozen(worth)
        self._enter(1)

    @property
    def theta(self) -> FloatArray:
        """The coefficients; read-only."""
        return self._theta

    @property
    def dimension(self) -> int:
        """Numbers in a row of features."""
        return len(self._theta)

    def context(self, t: SupportsIndex) -> FloatArray:
        """The features of all arms in round t, one row each. O(K d)."""
        return self._rows[self._chosen(as_whole(t, "t", 1, "a round number"))]

    def _chosen(self, t: int) -> IntArray:
        """Which row each arm has in round t. O(K)."""
        return np.random.default_rng((self.seed, t)).integers(len(self._rows), size=self.n_arms)

    def _enter(self, t: int) -> None:
        """Let round t be the present one. O(K) and one `max_weight_base`."""
        if getattr(self, "_entered", None) == (self.seed, t):
            return
        means = self._worth[self._chosen(t)]
        self._optimal_base = frozen(np.array(self._matroid.max_weight_base(means), dtype=np.int64))
        self._means = frozen(means)
        self._optimal_value = math.fsum(means[self._optimal_base].tolist())
        self._entered = (self.seed, t)

    def _draw(self, arms: IntArray, t: int) -> FloatArray:
        self._enter(t)
        low, high = self._reward_range
        u, means = self.next_uniforms(arms)[0], self._means[arms]
        if self._width is None:
            return np.where(u < (means - low) / (high - low), high, low)
        return np.clip(means + self._width * (u - 0.5), low, high)

    def reset(self, seed: SupportsIndex | None = None) -> None:
        super().reset(seed)
        self._enter(1)

    reset.__doc__ = Environment.reset.__doc__


def context_of(env: Any) -> Any:
    """The method `context` of an environment that has features, also where its draws are costs; else None. O(1)."""
    return getattr(getattr(env, "inner", env), "context", None)


def told_features(env: Any) -> dict[str, Any]:
    """What a policy over features must be made with to play in `env`, for `policies.catalogue.make_policy`. O(1)."""
    world = getattr(env, "inner", env)
    if isinstance(world, LinearRewards):
        return {"features": world.features}
    return {"dimension": world.dimension} if isinstance(world, LinearContexts) else {}


def _worth(
    features: Any, theta: Any, reward_range: tuple[float, float], name: str
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Rows, coefficients and the means that they give, inside the range. O(n d)."""
    coefficients = as_vector(theta, "theta")
    try:
        rows = np.array(features, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be a matrix of numbers, got {features!r}") from None
    if rows.ndim != 2 or not len(rows) or rows.shape[1] != coefficients.size or not coefficients.size:
        raise ParameterError(
            f"{name} must be a matrix with {coefficients.size} columns, one per coefficient of theta, "
            f"got shape {rows.shape}"
        )
    if not np.isfinite(rows).all():
        i, j = np.argwhere(~np.isfinite(rows))[0]
        raise ParameterError(f"{name} must be finite, got {name}[{i}, {j}] = {rows[i, j]}")
    low, high = reward_range
    means = rows @ coefficients
    # Rounding may miss the end of the range by a hair.
    hair = 1e-12 * (high - low)
    inside = np.where((means >= low - hair) & (means <= high + hair), np.clip(means, low, high), means)
    return rows, coefficients, as_means(inside, len(rows), (low, high))
