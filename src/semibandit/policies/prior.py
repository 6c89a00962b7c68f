"""What is believed of arms before they are played: a mean, worth so many plays.

A prior of mean m and strength s counts as s plays of reward m in all. Arms never seen then have an index like any
other, so they need not all be tried, and those of a better prior come first. For rewards of 0 or 1 it is the Beta
distribution with a = m s and b = (1 - m) s.

>>> import numpy as np
>>> mean, strength = beta_prior(1, 30)
>>> round(mean, 4), strength
(0.0323, 31.0)
>>> rng = np.random.default_rng(1)
>>> shown = rng.integers(20, 200, size=4000)
>>> clicks = rng.binomial(shown, rng.beta(1, 30, size=4000))
>>> mean, strength = fit_prior(clicks, shown)
>>> bool(0.030 < mean < 0.035), bool(25 < strength < 40)
(True, True)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from semibandit.arms import ALPHA, BETA, COUNT, TOTAL, FloatArray
from semibandit.checks import as_number, as_range
from semibandit.errors import ParameterError

# No fit claims to know less, or more, than so many plays.
_LEAST, _MOST = 0.1, 1e6


class Prior(NamedTuple):
    """`mean` and `strength`: one number each for all arms, or one for each arm."""

    mean: FloatArray
    strength: FloatArray

    def write(self, recs: FloatArray, first: int = 0) -> None:
        """Let the records from arm `first` on be those of arms never played. O(K)."""
        self.write_some(recs, slice(first, len(recs)))

    def write_some(self, recs: FloatArray, arms: Any) -> None:
        """Let the records of these arms be those of arms never played."""
        mean, strength = (part if part.ndim == 0 else part[arms] for part in self)
        recs[arms, COUNT] = strength
        recs[arms, TOTAL] = mean * strength
        recs[arms, ALPHA] = mean
        recs[arms, BETA] = 1.0 / np.sqrt(strength)

    def grown(self, n_arms: int) -> Prior:
        """For a larger ground set: new arms are believed to be like the average of the old ones."""
        if self.mean.ndim == 0 and self.strength.ndim == 0:
            return self
        parts = []
        for part in self:
            row = np.full(n_arms, float(part.mean()))
            row[: part.size if part.ndim else n_arms] = part
            parts.append(row)
        return Prior(*parts)

    def variance(self, low: float, high: float) -> float:
        """Of a reward in [low, high] that is as spread as its mean allows, on average over the arms."""
        return float(np.mean((self.mean - low) * (high - self.mean)))

    def pseudo_counts(self, low: float, high: float) -> npt.NDArray[np.int64]:
        """Whole successes and failures beyond those of Beta(1, 1): one row, or one per arm."""
        unit = (self.mean - low) / (high - low)
        both = np.stack(np.broadcast_arrays(unit * self.strength, (1.0 - unit) * self.strength), axis=-1)
        return np.maximum(np.rint(both).astype(np.int64) - 1, 0).reshape(-1, 2)

    def as_argument(self) -> tuple[Any, Any]:
        """As it is given to a policy."""
        return tuple(float(part) if part.ndim == 0 else part for part in self)  # type: ignore[return-value]


def as_prior(prior: Any, n_arms: int, reward_range: tuple[float, float]) -> Prior | None:
    """A pair (mean, strength), each one number or one per arm; None stays None."""
    if prior is None:
        return None
    if not isinstance(prior, (tuple, list)) or len(prior) != 2:
        raise ParameterError(f"prior must be a pair (mean, strength) or None, got {prior!r}")
    low, high = reward_range
    parts = []
    for value, name in zip(prior, ("mean", "strength"), strict=True):
        try:
            part = np.array(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise ParameterError(f"the prior's {name} must be numbers, got {value!r}") from None
        if part.ndim > 1 or (part.ndim == 1 and len(part) != n_arms):
            raise ParameterError(
                f"the prior's {name} must be one number or one for each of {n_arms} arms, got shape {part.shape}"
            )
        parts.append(part)
    mean, strength = parts
    if not ((mean >= low) & (mean <= high)).all():
        raise ParameterError(f"the prior's mean must lie in the reward range ({low:g}, {high:g})")
    if not ((strength > 0.0) & np.isfinite(strength)).all():
        raise ParameterError("the prior's strength, in plays, must be positive and finite")
    return Prior(mean, strength)


def beta_prior(a: float, b: float, *, reward_range: tuple[float, float] = (0.0, 1.0)) -> tuple[float, float]:
    """Mean and strength of the prior Beta(a, b) on rewards in `reward_range`. O(1).

    >>> beta_prior(1, 3)
    (0.25, 4.0)
    """
    a = as_number(a, "a", 0.0, closed=False)
    b = as_number(b, "b", 0.0, closed=False)
    low, high = as_range(reward_range)
    return low + (high - low) * a / (a + b), a + b


def fit_prior(
    totals: npt.ArrayLike,
    counts: npt.ArrayLike,
    groups: npt.ArrayLike | None = None,
    *,
    reward_range: tuple[float, float] = (0.0, 1.0),
) -> tuple[Any, Any]:
    """The prior that data of many arms speak for (empirical Bayes): (mean, strength) for `prior=`. O(K).

    Parameters
    ----------
    totals, counts
        Sum and number of the rewards of each arm; arms with none are left out.
    groups
        A group (0, 1, ...) for each arm, e.g. its category. Then the answer has one mean and one strength per arm,
        those of its group; a group with fewer than two arms seen gets those of all arms.

    Moments of the beta-binomial distribution (Kleinman 1973): how much more the means of arms differ than rewards of 0
    and 1 explain.

    >>> mean, strength = fit_prior([3, 0, 9, 2, 5], [10, 10, 10, 10, 10])
    >>> round(mean, 3), round(strength, 3)
    (0.38, 1.269)
    """
    low, high = as_range(reward_range)
    total, count = np.asarray(totals, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    if total.ndim != 1 or total.shape != count.shape:
        raise ParameterError(
            f"totals and counts must be vectors of one length, got {total.shape}, {count.shape}"
        )
    if not (np.isfinite(total).all() and np.isfinite(count).all() and (count >= 0.0).all()):
        raise ParameterError("totals and counts must be finite, counts not negative")
    unit = (total - low * count) / (high - low)
    if ((unit < -1e-9 * (1.0 + count)) | (unit > count * (1.0 + 1e-9) + 1e-9)).any():
        raise ParameterError(f"some total is not the sum of so many rewards in ({low:g}, {high:g})")
    overall = _moments(unit, count)
    if overall is None:
        raise ParameterError("at least two arms with rewards are needed, and some difference between rewards")
    if groups is None:
        return low + (high - low) * overall[0], overall[1]
    group = np.asarray(groups)
    if group.shape != total.shape or group.dtype.kind not in "iu" or (group < 0).any():
        raise ParameterError("groups must be a whole number from 0 on for each arm")
    mean, strength = np.empty(len(group)), np.empty(len(group))
    for number in np.unique(group):
        mine = group == number
        mean[mine], strength[mine] = _moments(unit[mine], count[mine]) or overall
    return low + (high - low) * mean, strength


def _moments(total: FloatArray, count: FloatArray) -> tuple[float, float] | None:
    seen = count > 0.0
    total, count = total[seen], count[seen]
    n, arms = count.sum(), len(count)
    if arms < 2:
        return None
    mean = float(total.sum() / n)
    spread = mean * (1.0 - mean)
    if spread <= 0.0:
        return None
    between = float((count * (total / count - mean) ** 2).sum()) - (arms - 1) * spread
    variance = between / float(n - (count**2).sum() / n - (arms - 1)) if n > arms else 0.0
    if variance <= 0.0:
        return mean, _MOST
    return mean, float(np.clip(spread / variance - 1.0, _LEAST, _MOST))
