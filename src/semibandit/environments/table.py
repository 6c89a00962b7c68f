"""Rewards resampled from real observations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray, IntArray
from semibandit.checks import as_range, as_vector, require_all
from semibandit.environments.base import _require_matroid
from semibandit.environments.compiled import CompiledEnvironment
from semibandit.environments.draw import TABLE
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid


class Table(CompiledEnvironment):
    """Each reward of an arm is one of its observations, drawn with replacement. O(1) per draw.

    `observations` is a list with one vector per arm, of any lengths but not empty; or, for millions of
    arms, one flat vector together with `offsets` (arm k owns observations[offsets[k]:offsets[k + 1]]). The
    mean of an arm is the average of its observations. Unless given, the reward range runs from the smallest
    to the largest observation. Arms are drawn independently of each other; `Trace` keeps them together.

    >>> from semibandit import Table, Uniform
    >>> env = Table(Uniform(2, 1), [[0.0, 1.0, 1.0, 2.0], [3.0]], seed=1)
    >>> env.means.tolist(), env.reward_range, env.draw([1]).tolist()
    ([1.0, 3.0], (0.0, 3.0), [3.0])
    """

    _kind = TABLE

    def __init__(
        self,
        matroid: Matroid,
        observations: Sequence[npt.ArrayLike] | FloatArray,
        offsets: npt.ArrayLike | None = None,
        *,
        reward_range: tuple[float, float] | None = None,
        seed: SupportsIndex = 0,
    ) -> None:
        _require_matroid(matroid)
        if offsets is None:
            values, starts = _flatten(observations, matroid.n_arms)
        else:
            values = as_vector(observations, "observations")
            starts = _as_offsets(offsets, matroid.n_arms, values.size)
        if reward_range is None:
            low, high = float(values.min()), float(values.max())
            if low == high:
                raise ParameterError(
                    f"reward_range must be given when all observations are equal, here {low}"
                )
            reward_range = (low, high)
        low, high = as_range(reward_range)
        good = (values >= low) & (values <= high)
        require_all(values, "observations", good, f"inside reward_range ({low}, {high})")
        means = np.clip(np.add.reduceat(values, starts[:-1]) / np.diff(starts), low, high)
        super().__init__(matroid, means, reward_range=(low, high), seed=seed, offsets=starts, values=values)


def _flatten(observations: Any, n_arms: int) -> tuple[FloatArray, IntArray]:
    try:
        rows = [np.asarray(row, dtype=np.float64) for row in observations]
    except (TypeError, ValueError) as error:
        raise ParameterError(f"observations must be one vector of numbers per arm ({error})") from error
    if len(rows) != n_arms:
        raise ParameterError(
            f"observations must have one vector per arm (n_arms = {n_arms}), got {len(rows)} vectors"
        )
    for k, row in enumerate(rows):
        if row.ndim != 1 or row.size == 0:
            raise ParameterError(
                f"observations[{k}] must be a vector with at least one value, got shape {row.shape}"
            )
        if not np.isfinite(row).all():
            bad = float(row[~np.isfinite(row)][0])
            raise ParameterError(f"observations[{k}] must be finite, got {bad}")
    starts = np.zeros(n_arms + 1, dtype=np.int64)
    np.cumsum([row.size for row in rows], out=starts[1:])
    return np.concatenate(rows), starts


def _as_offsets(given: npt.ArrayLike, n_arms: int, n_values: int) -> IntArray:
    starts = np.array(given)
    if starts.ndim != 1 or starts.dtype.kind not in "iu" or starts.size != n_arms + 1:
        raise ParameterError(
            f"offsets must be a vector of n_arms + 1 = {n_arms + 1} integers, "
            f"got {starts.dtype} of shape {starts.shape}"
        )
    starts = starts.astype(np.int64)
    if starts[0] != 0 or starts[-1] != n_values:
        raise ParameterError(
            f"offsets must start at 0 and end at the number of observations ({n_values}), "
            f"got {int(starts[0])} and {int(starts[-1])}"
        )
    empty = np.flatnonzero(np.diff(starts) <= 0)
    if empty.size:
        k = int(empty[0])
        raise ParameterError(
            f"offsets must give every arm at least one observation, "
            f"got {int(starts[k])}:{int(starts[k + 1])} for arm {k}"
        )
    return starts
