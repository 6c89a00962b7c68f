"""What a policy is: `select` a base, `update` with rewards of any arms at any time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self, overload

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray, IntArray
from semibandit.checks import as_arms, as_range, as_rewards, as_seed, as_whole
from semibandit.errors import ArmError, ParameterError
from semibandit.locking import Guarded, unguarded
from semibandit.matroids import Matroid
from semibandit.policies.decisions import Decision, Waiting
from semibandit.policies.rounds import CompiledRounds

#: How policies are written to files; `semibandit.policies.files` puts itself here.
SAVERS: list[Callable[[Policy, Any], None]] = []
PICKLERS: list[Callable[[Policy], Any]] = []


class Policy(Guarded, ABC):
    """Chooses a base of `matroid` each round and learns from the rewards of the arms it is told about.

    The whole contract is `select` and `update`. Feedback may come late, in parts, in batches, in any order, or
    never: `update` may name any arms at any time, and an arm named several times counts each time.
    `t` is the number of calls of `select` so far.

    Threads may share a policy: calls are serialised (`semibandit.locking`). After a fork the child has
    a whole policy of its own.

    Constructors take the matroid and then keywords only, the last of which is `seed`: an integer in 0 .. 2^64 - 1 from
    which all randomness of the policy follows. Policies that draw nothing take it too and ignore it.
    """

    name: ClassVar[str] = "policy"
    #: "max": told rewards; "min": told costs (see `semibandit.minimize`).
    objective: ClassVar[str] = "max"

    def __init__(
        self, matroid: Matroid, *, reward_range: tuple[float, float] = (0.0, 1.0), seed: int | None = 0
    ) -> None:
        if not isinstance(matroid, Matroid):
            raise ParameterError(f"matroid must be a semibandit Matroid, got {type(matroid).__name__}")
        self.matroid = matroid
        self.n_arms = matroid.n_arms
        self.reward_range = as_range(reward_range)
        self.seed = as_seed(seed, none_is_zero=True)
        self._t = 0

    @property
    @unguarded
    def t(self) -> int:
        """Number of rounds selected so far."""
        return self._t

    @abstractmethod
    def select(self, exclude: npt.ArrayLike | None = None) -> IntArray:
        """The base to play now, ascending arm ids; avoids the arms in `exclude`."""

    @unguarded
    def update(self, arms: npt.ArrayLike, rewards: npt.ArrayLike) -> None:
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
        with self._lock:
            self._update(arms, rewards)

    # -- decisions whose feedback comes later ------------------------------------------------------------

    @cached_property
    def _decisions(self) -> Waiting:
        return Waiting()

    @overload
    def decide(self, *, exclude: Any = None, count: None = None) -> Decision: ...

    @overload
    def decide(self, *, exclude: Any = None, count: int) -> list[Decision]: ...

    def decide(self, *, exclude: Any = None, count: int | None = None) -> Decision | list[Decision]:
        """`select` for feedback that comes later: a `Decision` to hand to `learn` with its rewards.

        Plays that wait count in the confidence width (`policies.decisions`), so decisions made before any feedback
        spread over the arms; `count` of them at once give a list. O(D) besides `select`, and O(K) the first time.

        >>> import semibandit as sb
        >>> policy = sb.CUCB(sb.Uniform(n_arms=6, rank=2))
        >>> first, second = policy.decide(count=2)
        >>> first.arms.tolist(), second.arms.tolist()
        ([0, 1], [2, 3])
        >>> policy.learn(second, [1.0, 0.0])
        >>> policy.waiting, policy.counts.tolist()
        (1, [0, 0, 1, 1, 0, 0])
        """
        if count is None:
            return self._decide(exclude)
        return [self._decide(exclude) for _ in range(as_whole(count, "count", 1, "a number of decisions"))]

    def _decide(self, exclude: Any) -> Decision:
        arms = self.select() if exclude is None else self.select(exclude)
        scores = self.scores(arms)
        self._wait(arms, 1)
        return Decision(self._decisions.add(arms.copy()), arms, scores)

    def learn(self, decision: Decision | int, rewards: Any, arms: Any = None) -> None:
        """Count the rewards of a decision, given itself or its id, and end its waiting. O(D) besides `update`.

        `arms`: those of its arms that `rewards` are of, if not all of them; of the others nothing will be learnt. A
        rejected call changes nothing.
        """
        number, played = self._decisions.arms_of(decision)
        ids = played if arms is None else as_arms(arms, self.n_arms)
        if arms is not None and not np.isin(ids, played).all():
            raise ArmError(f"decision {number} did not play all of the arms {ids.tolist()}")
        self.update(ids, rewards)
        self._decisions.settle(number)
        self._wait(played, -1)

    def drop(self, decision: Decision | int) -> None:
        """The feedback of a decision is lost: it waits no longer, and nothing is learnt. O(D)."""
        number, played = self._decisions.arms_of(decision)
        self._decisions.settle(number)
        self._wait(played, -1)

    @property
    def waiting(self) -> int:
        """How many decisions wait for their feedback."""
        return len(self._decisions)

    def scores(self, arms: Any) -> FloatArray:
        """What the policy made of these arms in its last round: the index, or the mean where it has none.

        +inf, or NaN, for an arm of which nothing is known. O(len(arms)); O(K) for a policy of your own that gives no
        `_scores`.
        """
        return self._scores(as_arms(arms, self.n_arms))

    def _scores(self, arms: IntArray) -> FloatArray:
        return self.means[arms]

    def _wait(self, arms: IntArray, change: int) -> None:
        """`change` more plays of each of these arms wait for feedback. Policies that draw at random need not care."""

    def _withdraw(self, number: int, arm: int) -> None:
        """Of this arm a decision that waits will hear nothing: it is to be something new. O(D)."""
        _, played = self._decisions.arms_of(number)
        self._decisions._arms[number] = played[played != arm]
        self._wait(np.array([arm], dtype=np.int64), -1)

    def _take_decisions(self, other: Waiting) -> None:
        """Let the decisions of `other` wait here, where none does."""
        self.__dict__["_decisions"] = other
        for arms in other._arms.values():
            self._wait(arms, 1)

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
        other._take_decisions(Waiting.from_state(self._decisions.state(), self.n_arms))
        return other

    def __reduce_ex__(self, protocol: Any) -> Any:
        # As a file would hold it: what is inside has addresses, which mean nothing elsewhere.
        return PICKLERS[-1](self)

    def __copy__(self) -> Self:
        return self.clone()

    def __deepcopy__(self, memo: Any) -> Self:
        return self.clone()

    @unguarded
    def save(self, path: str | Path) -> None:
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
