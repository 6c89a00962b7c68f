"""Worlds whose means change over time, with regret against the best base of each round (dynamic regret)."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray, IntArray
from semibandit.checks import as_seed, as_vector, require_all
from semibandit.environments.base import Environment
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid


class Switching(Environment):
    """One environment after another: stationary between changes.

    Parameters
    ----------
    parts
        Environments over one matroid with one reward range. They share pull counters and seed, so the n-th reward of
        an arm is a function of (seed, arm, n) and of the part it is drawn in.
    starts
        The round in which each part begins; the first is 1, and they increase.

    `means`, `optimal_base`, `optimal_value` and `regret` are those of the part in which the last draw was made, so the
    regret that `simulate` sums up is dynamic. O(D + log parts) per draw.

    Example
    -------
    >>> import semibandit as sb
    >>> m = sb.Uniform(n_arms=3, rank=1)
    >>> env = sb.Switching([sb.Bernoulli(m, [0.9, 0.1, 0.1]), sb.Bernoulli(m, [0.1, 0.1, 0.9])], starts=[1, 101])
    >>> env.optimal_base.tolist()
    [0]
    >>> _ = env.draw([0], t=101)
    >>> env.optimal_base.tolist(), round(env.regret([0]), 6)
    ([2], 0.8)
    """

    round_dependent = True

    def __init__(
        self, parts: Sequence[Environment], starts: npt.ArrayLike, *, seed: SupportsIndex = 0
    ) -> None:
        given = list(parts)
        if not given or not all(isinstance(part, Environment) for part in given):
            raise ParameterError("parts must be a list of at least one environment")
        first = given[0]
        for i, part in enumerate(given):
            if isinstance(part, (Switching, Drifting)):
                raise ParameterError(f"parts[{i}] changes over time itself: give stationary environments")
            if part.matroid is not first.matroid and part.matroid != first.matroid:
                raise ParameterError(f"parts[{i}] is over another matroid than parts[0]")
            if part.reward_range != first.reward_range:
                raise ParameterError(
                    f"parts[{i}] has reward_range {part.reward_range}, parts[0] {first.reward_range}"
                )
        self._starts = _as_starts(starts, len(given))
        super().__init__(first.matroid, first.means, reward_range=first.reward_range, seed=seed)
        self._parts = given
        self.reset()

    @property
    def starts(self) -> IntArray:
        """The round in which each part begins; a copy."""
        return self._starts.copy()

    def _enter(self, t: int) -> Environment:
        """The part that round t belongs to, made the current one. O(log parts)."""
        part = self._parts[int(np.searchsorted(self._starts, t, side="right")) - 1]
        self._means, self._optimal_base = part._means, part._optimal_base
        self._optimal_value = part._optimal_value
        return part

    def _draw(self, arms: IntArray, t: int) -> Any:
        return self._enter(t)._draw(arms, t)

    def reset(self, seed: SupportsIndex | None = None) -> None:
        super().reset(seed)
        self._parts = [copy.copy(part) for part in self._parts]
        for part in self._parts:
            part._seed, part._pulls = self._seed, self._pulls
        self._enter(1)

    reset.__doc__ = Environment.reset.__doc__


class Drifting(Environment):
    """Bernoulli rewards whose means swing: ``centre + amplitude sin(2 pi (t / period + phase))``, arm by arm.

    The means move in steps, every `every` rounds, so that the best base need only be found once a step.

    Parameters
    ----------
    matroid
        What may be played together.
    centres
        Mean of each arm over a whole period.
    amplitude
        How far each mean swings, one number or one an arm; centre +- amplitude must stay within the reward range.
    period
        Rounds of a whole swing.
    every
        Rounds between two steps of the means.
    phases
        Where in its swing each arm begins, in [0, 1); drawn from `seed` unless given.

    `means`, `optimal_base` and `regret` are those of the step of the last draw. O(D) per draw, and O(K) and one
    `max_weight_base` a step: with `every` of order K, O(1) amortised.
    """

    round_dependent = True

    def __init__(
        self,
        matroid: Matroid,
        centres: npt.ArrayLike,
        amplitude: npt.ArrayLike = 0.2,
        *,
        period: SupportsIndex = 10_000,
        every: SupportsIndex = 100,
        phases: npt.ArrayLike | None = None,
        reward_range: tuple[float, float] = (0.0, 1.0),
        seed: SupportsIndex = 0,
    ) -> None:
        super().__init__(matroid, centres, reward_range=reward_range, seed=seed)
        low, high = self._reward_range
        self._centres: FloatArray = np.array(self._means)
        swing = as_vector(np.atleast_1d(np.asarray(amplitude)), "amplitude")
        if swing.size not in (1, matroid.n_arms):
            raise ParameterError(
                f"amplitude must be one number or one per arm ({matroid.n_arms}), got {swing.size}"
            )
        self._amplitude: FloatArray = np.array(np.broadcast_to(swing, matroid.n_arms))
        for edge in (self._centres - self._amplitude, self._centres + self._amplitude):
            if not ((edge >= low) & (edge <= high)).all():
                arm = int(np.argmin((edge >= low) & (edge <= high)))
                raise ParameterError(
                    f"amplitude[{arm}] = {self._amplitude[arm]} takes the mean {self._centres[arm]} of arm {arm} out "
                    f"of reward_range = ({low}, {high})"
                )
        self._period, self._every = _positive("period", period), _positive("every", every)
        if phases is None:
            phases = np.random.default_rng(as_seed(seed)).random(matroid.n_arms)
        self._phases = as_vector(phases, "phases")
        if self._phases.size != matroid.n_arms:
            raise ParameterError(
                f"phases must have one value per arm ({matroid.n_arms}), got {self._phases.size}"
            )
        require_all(self._phases, "phases", np.isfinite(self._phases), "finite")
        self._step = -1
        self._move(0)

    def _move(self, step: int) -> None:
        if step == self._step:
            return
        turn = step * self._every / self._period + self._phases
        means = self._centres + self._amplitude * np.sin(2.0 * math.pi * turn)
        base = np.array(self._matroid.max_weight_base(means), dtype=np.int64)
        means.flags.writeable = base.flags.writeable = False
        self._means, self._optimal_base = means, base
        self._optimal_value = math.fsum(means[base].tolist())
        self._step = step

    def _draw(self, arms: IntArray, t: int) -> FloatArray:
        self._move((t - 1) // self._every)
        low, high = self._reward_range
        hit = self.next_uniforms(arms)[0] < (self._means[arms] - low) / (high - low)
        return np.where(hit, high, low)

    def reset(self, seed: SupportsIndex | None = None) -> None:
        super().reset(seed)
        self._move(0)

    reset.__doc__ = Environment.reset.__doc__


def _as_starts(starts: Any, n: int) -> IntArray:
    given = np.asarray(starts)
    if given.shape != (n,) or given.dtype.kind not in "iu":
        raise ParameterError(f"starts must name one round for each of the {n} parts, got {starts!r}")
    if given[0] != 1 or (np.diff(given) <= 0).any():
        raise ParameterError(f"starts must begin with 1 and increase, got {given.tolist()}")
    return given.astype(np.int64)


def _positive(name: str, given: Any) -> int:
    if isinstance(given, (bool, np.bool_)) or not isinstance(given, (int, np.integer)) or given < 1:
        raise ParameterError(f"{name} must be a number of rounds, an integer from 1, got {given!r}")
    return int(given)
