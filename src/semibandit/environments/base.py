"""What every environment offers: exact means, the optimal base, regret and rewards in O(D)."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, Self, SupportsIndex

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray, IntArray
from semibandit.checks import (
    as_arms,
    as_distinct_arms,
    as_drawn,
    as_means,
    as_range,
    as_seed,
    as_whole,
    frozen,
)
from semibandit.compiled.handle import Floats1, Ints1, Whole, Word
from semibandit.environments.draw import uniforms
from semibandit.errors import ParameterError
from semibandit.locking import Guarded
from semibandit.matroids import Matroid


class EnvironmentState(NamedTuple):
    """What `draw_many` needs, in the order of its arguments; `pulls` is the environment's own memory."""

    kind: Whole
    seed: Word
    scalars: Floats1
    params: Floats1
    offsets: Ints1
    values: Floats1
    pulls: Ints1


class Environment(Guarded, ABC):
    """A world in which each arm of a matroid has a reward distribution with a known mean.

    A subclass passes the exact means to `__init__` and implements `_draw(arms, t)`. Drawing its randomness
    from `next_uniforms` makes the n-th reward of an arm a function of (seed, arm, n), so that all policies
    are compared on common random numbers:

    >>> from semibandit import Environment, Uniform
    >>> class Triangular(Environment):
    ...     def _draw(self, arms, t):
    ...         u = self.next_uniforms(arms, streams=2)
    ...         return self.means[arms] + 0.1 * (u[0] + u[1] - 1.0)
    >>> env = Triangular(Uniform(3, 2), [0.2, 0.5, 0.8], seed=7)
    >>> rewards = env.draw([1, 2])
    >>> bool(abs(rewards[0] - 0.5) <= 0.1)
    True
    >>> env.optimal_base.tolist(), env.optimal_value
    ([1, 2], 1.3)
    >>> round(env.regret([0, 2]), 12)
    0.3

    A subclass with changing state of its own also extends `reset` so that it puts fresh state in place;
    `clone` then needs nothing more.
    """

    #: True when a reward depends on the round it is drawn in, not only on the arm and its pull number.
    round_dependent: ClassVar[bool] = False
    #: "max": numbers are rewards; "min": they are costs (see `semibandit.minimize`).
    objective: ClassVar[str] = "max"

    def __init__(
        self,
        matroid: Matroid,
        means: npt.ArrayLike,
        *,
        reward_range: tuple[float, float] = (0.0, 1.0),
        seed: SupportsIndex = 0,
    ) -> None:
        """Check the means and find the optimal base by greedy. O(K) and one `max_weight_base`."""
        _require_matroid(matroid)
        self._matroid = matroid
        self._reward_range = as_range(reward_range)
        self._means = as_means(means, matroid.n_arms, self._reward_range)
        self._seed = np.uint64(as_seed(seed))
        self._pulls: IntArray = np.zeros(matroid.n_arms, dtype=np.int64)
        self._round = 0
        self._optimal_base: IntArray = frozen(np.array(matroid.max_weight_base(self._means), dtype=np.int64))
        # Frozen only now, because greedy kernels would be compiled anew for a read-only argument.
        frozen(self._means)
        self._optimal_value = math.fsum(self._means[self._optimal_base].tolist())

    @property
    def matroid(self) -> Matroid:
        """The matroid whose bases may be played."""
        return self._matroid

    @property
    def n_arms(self) -> int:
        """Number of arms K."""
        return self._matroid.n_arms

    @property
    def means(self) -> FloatArray:
        """Exact expected reward of each arm; read-only."""
        return self._means

    @property
    def reward_range(self) -> tuple[float, float]:
        """No reward is ever below the first or above the second number."""
        return self._reward_range

    @property
    def optimal_base(self) -> IntArray:
        """The base with the largest sum of means (ties: smaller arm ids), sorted; read-only."""
        return self._optimal_base

    @property
    def optimal_value(self) -> float:
        """Expected reward of one round that plays the optimal base."""
        return self._optimal_value

    @property
    def seed(self) -> int:
        """The seed of the reward stream."""
        return int(self._seed)

    @property
    def pulls(self) -> IntArray:
        """How often each arm was drawn since the last reset; a read-only view. O(1)."""
        return frozen(self._pulls.view())  # type: ignore[no-any-return]

    @property
    def round(self) -> int:
        """Number of the last round drawn, 0 at the start."""
        return self._round

    def draw(self, arms: npt.ArrayLike, t: SupportsIndex | None = None) -> FloatArray:
        """Rewards of `arms`, in their order, in round `t` (by default the round after the last one). O(D).

        Only the pull counters of `arms` change. An arm named twice is pulled twice. Whether `arms` is a
        base is the caller's affair.
        """
        checked = as_arms(arms, self.n_arms)
        now = self._round + 1 if t is None else as_whole(t, "t", 1, "a round number")
        before = self._pulls[checked]
        try:
            rewards = as_drawn(self._draw(checked, now), checked.size, self._reward_range)
        except BaseException:
            self._pulls[checked] = before
            raise
        self._round = now
        return rewards

    @abstractmethod
    def _draw(self, arms: IntArray, t: int) -> Any:
        """One reward per arm, in order, for valid `arms` (int64) in round `t`. Should cost O(len(arms))."""

    def next_uniforms(self, arms: IntArray, streams: int = 1) -> FloatArray:
        """Uniform numbers in [0, 1) for the next pull of each arm, as an array (streams, arms). O(its size).

        For use in `_draw`, once a draw: it counts the pulls. The numbers for the n-th pull of an arm are a
        function of (seed, arm, n) alone, one a stream.
        """
        out = np.empty((streams, len(arms)), dtype=np.float64)
        uniforms(self._seed, self._pulls, arms, out)
        return out

    def regret(self, arms: npt.ArrayLike) -> float:
        """Expected reward lost in one round by playing `arms` instead of the optimal base. O(D).

        Sums are correctly rounded (`math.fsum`), so no base has a negative regret and the order is
        immaterial.
        """
        played = as_distinct_arms(arms, self.n_arms)
        return self._optimal_value - math.fsum(self._means[played].tolist())

    def reset(self, seed: SupportsIndex | None = None) -> None:
        """Back to round 0 with all pull counters at zero; a new seed gives a new reward stream. O(K)."""
        new_seed = self._seed if seed is None else np.uint64(as_seed(seed))
        self._seed = new_seed
        self._pulls.fill(0)
        self._round = 0

    def clone(self, seed: SupportsIndex | None = None) -> Self:
        """An independent environment at round 0, with the same seed unless another is given. O(K).

        Means and parameters are shared (they never change); counters are not.
        """
        if seed is not None:
            as_seed(seed)
        twin = copy.copy(self)
        twin._pulls = np.zeros_like(self._pulls)
        twin.reset(seed)
        return twin

    def _played_until(self, t: int) -> None:
        """Compiled rounds have been drawn up to round t."""
        self._round = t

    def kernel_state(self) -> EnvironmentState | None:
        """What a compiled loop needs to draw by itself; None when rewards are made by Python code. O(1)."""
        return None

    def __repr__(self) -> str:
        low, high = self._reward_range
        return f"{type(self).__name__}({self._matroid!r}, reward_range=({low:g}, {high:g}), seed={self.seed})"


def _require_matroid(matroid: Any) -> None:
    if not isinstance(matroid, Matroid):
        raise ParameterError(f"matroid must be a semibandit Matroid, got {matroid!r}")
