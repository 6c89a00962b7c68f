"""Rewards chosen against those who take the past for the future, while the best base stays the same."""

from __future__ import annotations

import math
from typing import SupportsIndex

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray
from semibandit.checks import as_means, as_number, as_range
from semibandit.environments.base import _require_matroid
from semibandit.environments.compiled import CompiledEnvironment, pairs
from semibandit.environments.draw import ALTERNATING, phase_of
from semibandit.matroids import Matroid


class Adversary(CompiledEnvironment):
    """A stochastically constrained adversary: all means jump up and down together, gaps between arms stay. O(1) a draw.

    Phases alternate, each `growth` times as long as the one before. In even phases, the first among them, means are
    shifted down until the worst arm has the lowest reward for sure; in odd ones up until the best arm has the highest.
    Rewards are the highest or the lowest of the range, as in `Bernoulli`.

    No policy may rely on an arm's mean here: what was seen of an arm in one phase says nothing of another arm seen in
    the next, so that CUCB and Thompson sampling have no guarantee. Policies for adversaries (`FTRL`, `FPL`) do. For an
    adversary that is written down round by round, a table of rewards, take `Trace`.

    Parameters
    ----------
    matroid
        What may be played together.
    means
        Of each arm; only their differences matter.
    growth
        By how much each phase is longer than the one before. The default, 1.1^5, is that of Zimmert, Luo and Wei 2019.
    reward_range
        Bounds (a, b) of every reward.

    Notes
    -----
    `means` are those halfway between the two kinds of phases: gaps, the best base and regret are right in each round.

    Example
    -------
    >>> import semibandit as sb
    >>> env = sb.Adversary(sb.Uniform(4, 2), [0.6, 0.6, 0.5, 0.5], seed=1)
    >>> env.means_at(1).round(3).tolist(), env.means_at(2).round(3).tolist()
    ([0.1, 0.1, 0.0, 0.0], [1.0, 1.0, 0.9, 0.9])
    >>> env.optimal_base.tolist(), round(env.regret([0, 2]), 3)
    ([0, 1], 0.1)
    """

    round_dependent = True
    _kind = ALTERNATING

    def __init__(
        self,
        matroid: Matroid,
        means: npt.ArrayLike,
        growth: float = 1.61051,
        *,
        reward_range: tuple[float, float] = (0.0, 1.0),
        seed: SupportsIndex = 0,
    ) -> None:
        _require_matroid(matroid)
        low, high = as_range(reward_range)
        given = as_means(means, matroid.n_arms, (low, high))
        self.growth = as_number(growth, "growth", 1.0, closed=False)
        # Shares of the range, which rounding must not take out of [0, 1].
        down = np.clip((given - given.min()) / (high - low), 0.0, 1.0)
        up = np.clip(1.0 - (given.max() - given) / (high - low), 0.0, 1.0)
        super().__init__(
            matroid,
            low + (high - low) * 0.5 * (down + up),
            reward_range=(low, high),
            seed=seed,
            params=pairs(down, up),
            shared=math.log(self.growth),
        )

    def means_at(self, t: int) -> FloatArray:
        """Exact expected reward of each arm in round `t`, from 1 on. O(K)."""
        low, high = self._reward_range
        odd = int(phase_of.py_func(t, math.log(self.growth))) % 2
        return low + (high - low) * self._params[odd::2]
