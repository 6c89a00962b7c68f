"""What a policy is: `select` a base, `update` with rewards of any arms at any time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.engines.base import as_arms
from semibandit.errors import ArmError, ParameterError, RewardError
from semibandit.matroids import Matroid
from semibandit.policies.rounds import CompiledRounds


def check_reward_range(reward_range: Any) -> tuple[float, float]:
    """`reward_range` as two floats a < b, or a `ParameterError`."""
    try:
        low, high = (float(x) for x in reward_range)
    except (TypeError, ValueError):
        raise ParameterError(f"reward_range must be a pair (a, b), got {reward_range!r}") from None
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise ParameterError(f"reward_range must be finite with a < b, got ({low}, {high})")
    return low, high


def as_rewards(rewards: Any, n: int) -> FloatArray:
    """`rewards` as a float64 vector of length n, or a `RewardError`. Values are checked by the engine."""
    try:
        given = np.asarray(rewards, dtype=np.float64)
    except (TypeError, ValueError):
        raise RewardError(f"rewards must be numbers, got {rewards!r}") from None
    if given.ndim == 0:
        given = given[None]
    if given.shape != (n,):
        raise RewardError(f"rewards has shape {given.shape} but arms has {n} entries: one reward per arm")
    return np.require(given, requirements=["C", "W", "A"])


def explain(
    code: int, arms: IntArray, rewards: FloatArray, n_arms: int, low: float, high: float
) -> Exception:
    """The error for a code of `engines.kernels.check_feedback`."""
    kind, i = code & 3, code >> 2
    if kind == 1:
        return ArmError(f"arms[{i}] = {arms[i]} is not an arm: ids are 0 .. {n_arms - 1}")
    value = rewards[i]
    if not np.isfinite(value):
        return RewardError(f"rewards[{i}] = {value} for arm {arms[i]}: rewards must be finite")
    return RewardError(f"rewards[{i}] = {value} for arm {arms[i]} is outside reward_range = ({low}, {high})")


class Policy(ABC):
    """Chooses a base of `matroid` each round and learns from the rewards of the arms it is told about.

    The whole contract is `select` and `update`. Feedback may come late, in parts, in batches, in any order, or
    never: `update` may name any arms at any time, and an arm named several times counts each time.
    `t` is the number of calls of `select` so far.
    """

    name: ClassVar[str] = "policy"
    #: "max": told rewards; "min": told costs (see `semibandit.minimize`).
    objective: ClassVar[str] = "max"

    def __init__(self, matroid: Matroid, reward_range: Any = (0.0, 1.0)) -> None:
        if not isinstance(matroid, Matroid):
            raise ParameterError(f"matroid must be a semibandit Matroid, got {type(matroid).__name__}")
        self.matroid = matroid
        self.n_arms = matroid.n_arms
        self.reward_range = check_reward_range(reward_range)
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
            arms = np.require(as_arms(arms, self.n_arms), requirements=["C", "W", "A"])
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

    def reseed(self, seed: int) -> None:
        """Start the policy's own randomness anew; nothing to do for a deterministic policy."""
        del seed

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
        from semibandit.policies.files import save

        save(self, path)

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
