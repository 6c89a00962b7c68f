"""What a policy is: `select` a base, `update` with rewards of any arms at any time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray, IntArray
from semibandit.checks import as_arms, as_range, as_rewards, as_seed, one_of
from semibandit.compiled import native
from semibandit.errors import ParameterError, RewardError
from semibandit.locking import unguarded
from semibandit.matroids import Matroid
from semibandit.policies.choosing import as_wish, best_base, left_out
from semibandit.policies.deciding import Deciding
from semibandit.policies.decisions import Waiting
from semibandit.policies.growing import Growing
from semibandit.policies.many import Many
from semibandit.policies.rounds import CompiledRounds
from semibandit.policies.straight import Feedback, no_feedback

#: How policies are written to files; `semibandit.policies.files` puts itself here.
SAVERS: list[Callable[[Policy, Any], None]] = []
PICKLERS: list[Callable[[Policy], Any]] = []

#: What happens to rewards outside `reward_range`.
OUTSIDE = ("error", "clip")


class Policy(Growing, Deciding, Many, ABC):
    """Chooses a base of `matroid` each round and learns from the rewards of the arms it is told about.

    The whole contract is `select` and `update`. Feedback may come late, in parts, in batches, in any order, or
    never: `update` may name any arms at any time, and an arm named several times counts each time.
    `t` is the number of calls of `select` so far.

    Threads may share a policy: calls are serialised (`semibandit.locking`). After a fork the child has
    a whole policy of its own.

    Constructors take the matroid and then keywords only, the last of which is `seed`: an integer in 0 .. 2^64 - 1 from
    which all randomness of the policy follows. Policies that draw nothing take it too and ignore it.

    Rewards outside `reward_range` are refused; with ``outside="clip"``, an option of every policy, they are moved to
    its nearer end and counted in `clipped`. What is not finite is refused in any case. The means that a policy then
    learns are those of clipped rewards.
    """

    name: ClassVar[str] = "policy"
    #: "max": told rewards; "min": told costs (see `semibandit.minimize`).
    objective: ClassVar[str] = "max"
    #: Whether `reward_range` may have infinite ends.
    unbounded: ClassVar[bool] = False
    #: Whether `select` and `update` must be told features with each call (`policies.linear`).
    contextual: bool = False
    #: Does all of `update` or nothing, and says which (`policies.straight`).
    _feed: Feedback = staticmethod(no_feedback)

    def __init__(
        self,
        matroid: Matroid,
        *,
        reward_range: tuple[float, float] = (0.0, 1.0),
        outside: str = "error",
        seed: int | None = 0,
    ) -> None:
        if not isinstance(matroid, Matroid):
            raise ParameterError(f"matroid must be a semibandit Matroid, got {type(matroid).__name__}")
        self.matroid = matroid
        self.n_arms = matroid.n_arms
        self.reward_range = as_range(reward_range, unbounded=self.unbounded)
        self.outside = one_of(outside, "outside", OUTSIDE)
        self._clipped: IntArray = np.zeros(1, dtype=np.int64)
        self.seed = as_seed(seed, none_is_zero=True)
        self._t = 0

    @property
    @unguarded
    def t(self) -> int:
        """Number of rounds selected so far."""
        return self._t

    @abstractmethod
    def select(
        self,
        exclude: npt.ArrayLike | None = None,
        *,
        among: npt.ArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
    ) -> IntArray:
        """The base to play now, ascending arm ids; avoids the arms in `exclude`.

        Parameters
        ----------
        exclude
            Arms to avoid in this round.
        among
            Distinct arms: the best base of these alone, by the policy's own index (or draws) of this round. Deleted and
            excluded ones are left out; the answer may have fewer arms than the rank. O(n log n) for n of them, whatever
            K, and n membership tests of the matroid.
        weights
            One finite number per arm, or per arm of `among`: they decide in place of the policy's index, so that any
            model can supply scores. For policies of costs these are costs. O(K log K), or as `among`.

        The round counts in any case, and `update` learns from it. A policy of your own hands the last two on to
        `_select_some`; `decide` does so by itself.
        """

    def _select_some(self, exclude: Any, among: Any, weights: Any) -> IntArray:
        """`select` with `among` or `weights`."""
        with self._lock:
            without, arms, scores = as_wish(self.n_arms, exclude, among, weights)
            t = self._t + 1
            if arms is None:
                assert scores is not None
                here = ~self._is_gone(np.arange(self.n_arms))
                here[without] = False
                self._begin_round(t)
                base = best_base(self.matroid, scores, here)
            else:
                here = ~(self._is_gone(arms) | left_out(arms, without))
                arms = arms[here]
                self._begin_round(t)
                if scores is None:
                    base = self._choose_among(arms, t)
                else:
                    base = self.matroid._best_among(arms, scores[here])
            self._t = t
            return base

    def _is_gone(self, arms: IntArray) -> npt.NDArray[np.bool_]:
        """Which of these arms are deleted. O(n)."""
        return np.zeros(arms.shape, dtype=np.bool_)

    def _begin_round(self, t: int) -> None:
        """Round t begins without a base of all arms being asked for: what the clock moves, and no more."""

    def _choose_among(self, arms: IntArray, t: int) -> IntArray:
        """The base to play in round t, which has begun, among these present arms (distinct, ascending)."""
        return self.matroid._best_among(arms, self._indices_of(arms, t))

    def _indices_of(self, arms: IntArray, t: int) -> FloatArray:
        """What `_choose_among` weighs these arms by; nothing may be NaN. O(n)."""
        known = self._scores(arms)
        return np.where(np.isnan(known), np.inf, known)

    @unguarded
    def update(self, arms: npt.ArrayLike, rewards: npt.ArrayLike) -> None:
        """Count one reward for each named arm. Validates everything first; a rejected call changes nothing.

        >>> import semibandit as sb
        >>> policy = sb.CUCB(sb.Uniform(n_arms=3, rank=1), reward_range=(0, 500), outside="clip")
        >>> policy.update([0, 1, 2], [135.0, 7893.0, 120.0])
        >>> policy.means.tolist(), policy.clipped
        ([135.0, 500.0, 120.0], 1)
        """
        if self._feed(arms, rewards):
            return
        if not native.ready(arms, rewards):
            arms = as_arms(arms, self.n_arms)
            rewards = as_rewards(rewards, len(arms))
        self._lock.acquire()
        try:
            self._update(arms, rewards)  # type: ignore[arg-type]
        except RewardError:
            if self.outside == "error":
                raise
            self._update_clipped(arms, rewards)  # type: ignore[arg-type]
        finally:
            self._lock.release()

    def _end_straight(self) -> None:
        """Straight calls (`policies.straight`) do no longer what the methods do. The lock is held. O(1)."""

    def _update_clipped(self, arms: IntArray, rewards: FloatArray) -> None:
        """`_update` with what is finite moved into the ranges of the arms. O(len(arms)) besides."""
        arms = as_arms(arms, self.n_arms)
        low, high = (end if len(end) == 1 else end[arms] for end in self._range_ends())
        inside = np.where(np.isfinite(rewards), np.clip(rewards, low, high), rewards)
        self._update(arms, inside)
        self._clipped[0] += np.count_nonzero(inside != rewards)

    def _range_ends(self) -> tuple[FloatArray, FloatArray]:
        """Low and high ends of the range of rewards: one for all arms, or one for each."""
        low, high = self.reward_range
        return np.array([low]), np.array([high])

    def _require_inside(self, arms: IntArray, rewards: FloatArray) -> None:
        """Raise a `RewardError` unless rewards inside `reward_range` are inside the ranges of their arms too."""

    def _update_mirrored(self, arms: IntArray, rewards: FloatArray) -> None:
        """`_update` with costs that passed `_require_inside` and were made rewards."""
        self._update(arms, rewards)

    def _as_costs(self, inside: bool = False) -> Policy | None:
        """What `minimize` makes of this policy, None for the usual; `inside`: its range is that of rewards already."""
        return None

    @property
    def clipped(self) -> int:
        """How many rewards were outside the range and moved to its end, which ``outside="clip"`` allows."""
        return int(self._clipped[0])

    def _about_outside(self) -> dict[str, Any]:
        """For `describe`."""
        return {} if self.outside == "error" else {"outside": self.outside, "clipped": self.clipped}

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
            When the policy holds what no file can: a schedule without a name (a function), or a matroid of a class of
            your own.
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
        raise NotImplementedError(
            f"{type(self).__name__} gives no _arguments, which clone, save and grow need"
        )

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
