"""Rewards of all arms as they were recorded, round by round."""

from __future__ import annotations

from typing import SupportsIndex

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray, IntArray
from semibandit.checks import as_range, frozen, one_of
from semibandit.environments.base import Environment, _require_matroid
from semibandit.environments.codec import ORDERS
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid


class Trace(Environment):
    """A recording of all arms, replayed a row per round: arms stay as correlated within a round as they were.

    Where `Table` draws each arm's reward alone, here all rewards of a round come from one row: link latencies measured
    at the same minute, sales of all products on the same day. It is for data in which every arm was seen in every
    round; a log that holds the played arms only is for `semibandit.data.replay`.

    Parameters
    ----------
    matroid
        What may be played together.
    rewards
        A matrix of rounds x arms, or a data frame of that shape: row t - 1 holds what each arm gives in round t.
    order
        Which row a round takes. ``"time"``: the rows in their order, from the first again after the last, the same for
        every seed. ``"shifted"``: in their order, but from a row drawn from the seed, so that repeats of `compare`
        differ. ``"random"``: any row, drawn anew for each round; drifts are gone, correlations within a row stay.
    reward_range
        By default from the smallest to the largest reward of the recording.
    seed
        For ``"shifted"`` and ``"random"``.

    Notes
    -----
    The mean of an arm is the average of its column, so regret is against the base that is best on average over the
    whole recording. Under ``"time"`` and ``"shifted"`` rewards may drift within a pass, and a policy that follows them
    can earn more than this base.

    A reward depends on the round, not on how often the arm was pulled. O(D) per draw, in Python; O(rounds x arms)
    memory, shared by clones.

    Example
    -------
    >>> import semibandit as sb
    >>> days = [[0.0, 1.0, 5.0], [2.0, 3.0, 4.0]]
    >>> env = sb.Trace(sb.Uniform(n_arms=3, rank=2), days)
    >>> env.draw([0, 2]).tolist(), env.draw([0, 1]).tolist(), env.draw([0, 1]).tolist()
    ([0.0, 5.0], [2.0, 3.0], [0.0, 1.0])
    >>> env.means.tolist(), env.optimal_base.tolist(), env.reward_range
    ([1.0, 2.0, 4.5], [1, 2], (0.0, 5.0))
    """

    round_dependent = True

    def __init__(
        self,
        matroid: Matroid,
        rewards: npt.ArrayLike,
        *,
        order: str = "time",
        reward_range: tuple[float, float] | None = None,
        seed: SupportsIndex = 0,
    ) -> None:
        _require_matroid(matroid)
        self._order = one_of(order, "order", ORDERS)
        rows = _as_rows(rewards, matroid.n_arms)
        if reward_range is None:
            low, high = float(rows.min()), float(rows.max())
            if low == high:
                raise ParameterError(f"reward_range must be given when all rewards are equal, here {low}")
            reward_range = (low, high)
        low, high = as_range(reward_range)
        outside = (rows < low) | (rows > high)
        if outside.any():
            t, arm = np.argwhere(outside)[0]
            raise ParameterError(
                f"rewards must be inside reward_range ({low}, {high}), got rewards[{t}, {arm}] = {rows[t, arm]}"
            )
        means = np.clip(rows.mean(axis=0), low, high)
        super().__init__(matroid, means, reward_range=(low, high), seed=seed)
        self._rows: FloatArray = frozen(rows)

    @property
    def order(self) -> str:
        """Which row a round takes: ``"time"``, ``"shifted"`` or ``"random"``."""
        return self._order

    @property
    def length(self) -> int:
        """Number of recorded rounds."""
        return len(self._rows)

    def row(self, t: int) -> int:
        """The row that round `t` (from 1) takes. O(1)."""
        if self._order == "time":
            return (t - 1) % self.length
        if self._order == "shifted":
            start = int(np.random.default_rng(self.seed).integers(self.length))
            return (start + t - 1) % self.length
        return int(np.random.default_rng((self.seed, t)).integers(self.length))

    def _draw(self, arms: IntArray, t: int) -> FloatArray:
        np.add.at(self._pulls, arms, 1)
        return self._rows[self.row(t), arms]


def _as_rows(given: npt.ArrayLike, n_arms: int) -> FloatArray:
    """`given` as a float64 matrix of finite numbers with a column per arm. O(its size)."""
    try:
        rows = np.array(given, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise ParameterError(f"rewards must be a matrix of numbers, rounds x arms ({error})") from None
    if rows.ndim != 2 or rows.shape[1] != n_arms or not len(rows):
        raise ParameterError(
            f"rewards must be a matrix of rounds x arms with one column per arm (n_arms = {n_arms}) and at least one "
            f"row, got shape {rows.shape}"
        )
    if not np.isfinite(rows).all():
        t, arm = np.argwhere(~np.isfinite(rows))[0]
        raise ParameterError(
            f"rewards must be finite, got rewards[{t}, {arm}] = {rows[t, arm]}: fill gaps, or leave those rows out"
        )
    return rows
