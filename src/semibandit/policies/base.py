"""What a policy is: `select` a base, `update` with rewards of any arms at any time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.checks import as_arms, as_range, as_rewards, as_seed
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid
from semibandit.policies.rounds import CompiledRounds

#: How policies are written to files; `semibandit.policies.files` puts itself here.
SAVERS: list[Callable[[Policy, Any], None]] = []


class Policy(ABC):
    """Chooses a base of `matroid` each round and learns from the rewards of the arms it is told about.

    The whole contract is `select` and `update`. Feedback may come late, in parts, in batches, in any order, or
    never: `update` may name any arms at any time, and an arm named several times counts each time.
    `t` is the number of calls of `select` so far.

    Constructors take the matroid and then keywords only, the last of which is `seed`: an integer in 0 .. 2^64 - 1 from
    which all randomness of the policy follows. Policies that draw nothing take it too and ignore it.
    """

    name: ClassVar[str] = "policy"
    #: "max": told rewards; "min": told costs (see `semibandit.minimize`).
    objective: ClassVar[str] = "max"

    def __init__(self, matroid: Matroid, *, reward_range: Any = (0.0, 1.0), seed: int | None = 0) -> None:
        if not isinstance(matroid, Matroid):
            raise ParameterError(f"matroid must be a semibandit Matroid, got {type(matroid).__name__}")
        self.matroid = matroid
        self.n_arms = matroid.n_arms
        self.reward_range = as_range(reward_range)
        self.seed = as_seed(seed, none_is_zero=True)
        self._t = 0

    @property
    def t(self) -> int:
        """Number of rounds selected so far."""
        return self._t

    @abstractmethod
    def select(self, exclude: Any = None) -> IntArray:
        """The base to play now, ascending arm ids; avoids the arms in `exclude`."""

    def update(self, arms: Any, rewards: Any) -> None:
        """Count one reward for each named arm. Validates everything first; a rejected call changes nothing."""
        if type(arms) is not np.ndarray or arms.dtype != np.int64 or arms.ndim != 1 or not arms.flags.carray:
            arms = as_arms(arms, self.n_arms)
        if (
            type(rewards) is not np.ndarray
            or rewards.dtype != np.float64
            or rewards.shape != arms.shape
            or not rewards.flags.carray
        ):
            rewards = as_rewards(rewards, len(arms))
        self._update(arms, rewards)

    @abstractmethod
    def _update(self, arms: IntArray, rewards: FloatArray) -> None:
        """`update` with an int64 and a float64 vector of one length; ids and values still to be checked."""

    def reset(self, arms: Any) -> None:
        """Forget what is known of these arms, as if they had never been seen; the clock and the other arms go on.

        For ids that are given to something new. Arms that are deleted may be named, and stay deleted. Cost of an
        update each.

        Raises
        ------
        ParameterError
            When the policy cannot forget single arms.

        Example
        -------
        >>> import semibandit as sb
        >>> policy = sb.CUCB(sb.Uniform(n_arms=3, rank=1))
        >>> policy.update([0, 1, 2], [0.9, 0.5, 0.1])
        >>> policy.reset([2])
        >>> policy.counts.tolist(), policy.select().tolist()
        ([1, 1, 0], [2])
        """
        self._reset(np.unique(as_arms(arms, self.n_arms)))

    def _reset(self, ids: IntArray) -> None:
        """`reset` of these distinct, valid arms."""
        raise ParameterError(f"{type(self).__name__} cannot forget single arms: it has no _reset")

    def reseed(self, seed: int) -> None:
        """Start the policy's own randomness anew; nothing to do for a deterministic policy."""
        as_seed(seed, none_is_zero=True)

    @property
    @abstractmethod
    def counts(self) -> IntArray:
        """How often each arm's reward was seen. O(K) copy."""

    @property
    @abstractmethod
    def means(self) -> FloatArray:
        """Empirical mean of each arm, NaN for an arm never seen. O(K) copy."""

    def clone(self) -> Self:
        """An independent copy that goes on exactly as this one would. O(K)."""
        other = type(self)(self.matroid, **self._arguments())
        other._set_state(self._state())
        return other

    def save(self, path: Any) -> None:
        """Write the policy to a file from which `semibandit.load` makes one that goes on exactly as this one would.

        No pickle: see `semibandit.policies.files` for the format. An existing file is replaced atomically. O(K).

        Raises
        ------
        ParameterError
            When the policy holds what no file can: a schedule (a function), or a matroid of a class of your own.
        """
        SAVERS[-1](self, path)

    def compiled_rounds(self) -> CompiledRounds | None:
        """What a compiled simulation plays this policy with (`policies.rounds`), or None where it must go through
        `select` and `update`. A subclass that overrides one of these is not compiled unless it overrides this too."""
        return None

    def _ask(self, rounds: int) -> int:
        """Called before compiled rounds: do what only Python can, say how many of `rounds` may follow. At least 1."""
        return rounds

    def _played_until(self, t: int) -> None:
        """Compiled rounds have been played up to round t."""
        self._t = t

    # -- what copying and saving need ------------------------------------------------------------------

    def _arguments(self) -> dict[str, Any]:
        """The constructor's keywords, besides the matroid, that make a policy like this one at its start."""
        raise NotImplementedError(f"{type(self).__name__} gives no _arguments, which clone and save need")

    def _state(self) -> dict[str, Any]:
        """All that changed since: arrays, numbers, and plain dictionaries of numbers. Arrays may be shared."""
        raise NotImplementedError(f"{type(self).__name__} gives no _state, which clone and save need")

    def _set_state(self, state: dict[str, Any]) -> None:
        """Put the result of `_state`, or what a file tells, in place of this fresh policy's state; copies arrays.

        Anything malformed is a `FileError`, `KeyError`, `TypeError` or `ValueError`.
        """
        raise NotImplementedError(f"{type(self).__name__} gives no _set_state, which clone and save need")

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What runs inside: engine, clock, why, memory."""
