"""Decisions whose feedback comes later: what waits, and what a policy makes of it.

`Policy.decide` answers a `Decision`; `Policy.learn` takes its rewards, whenever they come. In between the plays that
wait count in the confidence width, so that requests which come before any feedback do not all get the same base: the
index is ``mean + lam / sqrt(N + P)`` with P plays waiting, and an arm of which nothing is known but that it is being
tried has the largest possible mean. That is the idea of GP-BUCB (Desautels, Krause and Burdick 2014), whose regret
is that of feedback at once but for a constant factor, if each arm has been seen a few times first. With the width
left as it is, delays of tau rounds add O(tau) per arm to the regret of any such index (Joulani, Gyorgy and Szepesvari
2013); for the narrower width on matroids no proof is known. docs/regret.md has measured curves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from semibandit.arms import ALPHA, BETA, COUNT, TOTAL, FloatArray, IntArray
from semibandit.compiled.handle import by_handle
from semibandit.compiled.jit import inline_kernel
from semibandit.engines.kernels import AnyEngine, engine_touch_many
from semibandit.errors import ArmError, FileError
from semibandit.frames import data_frame
from semibandit.policies.state import array_of, whole_of

# How many arms the repr of a decision names.
_SHOWN = 10


class Account(NamedTuple):
    """What a policy knew of the arms of a decision, in their order: `Decision.ranked` tells what each number is."""

    mean: FloatArray
    low: FloatArray
    high: FloatArray
    plays: IntArray


class Ranked(NamedTuple):
    """A row of `Decision.ranked`; in a catalog `arm` is its label."""

    arm: Any
    index: float
    mean: float
    low: float
    high: float
    plays: int


def ranked_frame(rows: list[Ranked], library: str) -> Any:
    """The rows as a frame of ``"polars"`` or ``"pandas"``."""
    return data_frame({name: [getattr(row, name) for row in rows] for name in Ranked._fields}, library)


#: Tells the account of a decision when somebody asks; holds the numbers of the moment at which it was made.
Tell = Callable[[], Account]

#: Tells both ends of what is likely for the means of some arms, given the means (NaN where nothing was seen).
Ends = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


class Decision:
    """One answer of `Policy.decide`: hand it, or its `id`, to `Policy.learn` with the rewards of `arms`.

    `scores`: what the policy made of each arm when it decided, in the order of `arms`. `account`: what it knew of them
    then. For costs the least `scores` are the best ones.

    Example
    -------
    >>> import semibandit as sb
    >>> policy = sb.CUCB(sb.Uniform(n_arms=3, rank=2), exploration=0.5)
    >>> policy.update([0, 1, 2, 2], [0.2, 0.5, 0.9, 0.7])
    >>> decision = policy.decide()
    >>> decision
    Decision(id=0, arms=[2, 1])
    >>> for row in decision.ranked():
    ...     print(row.arm, f"{row.mean:.2f}", row.plays)
    2 0.80 2
    1 0.50 1
    """

    __slots__ = ("_account", "arms", "id", "objective", "scores")

    def __init__(
        self,
        id: int,
        arms: IntArray,
        scores: FloatArray,
        account: Account | Tell | None = None,
        objective: str = "max",
    ) -> None:
        self.id = id
        self.arms = arms
        self.scores = scores
        self.objective = objective
        self._account = account

    @property
    def account(self) -> Account | None:
        """What the policy knew of the arms when it decided. O(D), computed when it is first asked for."""
        if callable(self._account):
            self._account = self._account()
        return self._account

    def __reduce__(self) -> Any:
        return Decision, (self.id, self.arms, self.scores, self.account, self.objective)

    def _order(self) -> IntArray:
        return np.lexsort((self.arms, self.scores if self.objective == "min" else -self.scores))

    def ranked(self) -> list[Ranked]:
        """The arms, best first, ties by smaller arm id: `Ranked` rows (arm, index, mean, low, high, plays). O(D log D).

        All as of the moment of the decision. `index`: the score by which the policy ranks, +inf for an arm that comes
        first because it was never seen. `mean`: that of the feedback that counts (the prior included, where CUCB or
        KL-OSM have one), NaN where there is none. `low` and `high`: the confidence interval of an index policy, the
        central 95 % of the posterior for Thompson sampling, the whole range of rewards for an arm never seen, NaN for
        policies that have no such thing. `plays`: how often the arm's reward was seen.
        """
        nothing = np.full(len(self.arms), np.nan)
        known = self.account or Account(nothing, nothing, nothing, np.zeros(len(self.arms), dtype=np.int64))
        columns = [part.tolist() for part in (self.arms, self.scores, *known)]
        return [Ranked(*(column[i] for column in columns)) for i in self._order().tolist()]

    def to_frame(self, library: str = "polars") -> Any:
        """`ranked` as a frame of ``"polars"`` (extra ``results``) or ``"pandas"`` (extra ``pandas``). O(D log D)."""
        return ranked_frame(self.ranked(), library)

    def __repr__(self) -> str:
        best = self.arms[self._order()].tolist()
        shown = ", ".join(map(str, best[:_SHOWN])) + (", ..." if len(best) > _SHOWN else "")
        return f"Decision(id={self.id}, arms=[{shown}])"


class Waiting:
    """Decisions that wait for their feedback. O(D) each."""

    def __init__(self) -> None:
        self._arms: dict[int, IntArray] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._arms)

    def add(self, arms: IntArray) -> int:
        """The number of a new decision."""
        number = self._next
        self._next += 1
        self._arms[number] = arms
        return number

    def arms_of(self, decision: Any) -> tuple[int, IntArray]:
        """Number and arms of a decision that waits, given itself or its number."""
        number = decision.id if isinstance(decision, Decision) else decision
        if (
            isinstance(number, (int, np.integer))
            and not isinstance(number, bool)
            and int(number) in self._arms
        ):
            return int(number), self._arms[int(number)]
        raise ArmError(
            f"decision {number!r} waits for no feedback: it was never made here, or is settled already"
        )

    def settle(self, number: int) -> None:
        """It waits no longer."""
        del self._arms[number]

    def state(self) -> dict[str, Any]:
        """As it goes into a file."""
        waiting = list(self._arms.values())
        return {
            "next": self._next,
            "ids": np.array(list(self._arms), dtype=np.int64),
            "sizes": np.array([len(arms) for arms in waiting], dtype=np.int64),
            "arms": np.concatenate([np.empty(0, dtype=np.int64), *waiting]),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], n_arms: int) -> Waiting:
        """The inverse; anything malformed is a `FileError`."""
        made = cls()
        ids, sizes, arms = (array_of(state, name, np.int64) for name in ("ids", "sizes", "arms"))
        fits = len(ids) == len(sizes) and (sizes >= 0).all() and sizes.sum() == len(arms)
        made._next = whole_of(state, "next")
        if not fits or ((arms < 0) | (arms >= n_arms)).any() or ((ids < 0) | (ids >= made._next)).any():
            raise FileError("the decisions that wait make no sense")
        ends = np.cumsum(sizes)
        made._arms = {
            int(number): arms[end - size : end].copy()
            for number, size, end in zip(ids, sizes, ends, strict=True)
        }
        return made


# -- in the records of arms ----------------------------------------------------------------------------------------


@inline_kernel
def _wait_in_records(engine, waiting, arms, change, high):
    """Count `change` more plays that wait of each arm, and write what its record then weighs. O(len(arms))."""
    recs = engine.recs
    for i in range(arms.shape[0]):
        waiting[arms[i]] += change
    for i in range(arms.shape[0]):
        arm = arms[i]
        seen = recs[arm, COUNT]
        n = seen + waiting[arm]
        if n <= 0.0:
            recs[arm, ALPHA] = np.inf
            recs[arm, BETA] = 0.0
        else:
            recs[arm, ALPHA] = recs[arm, TOTAL] / seen if seen > 0.0 else high
            recs[arm, BETA] = 1.0 / np.sqrt(n)
    engine_touch_many(engine, arms)


#: For kernels' callers: (handle of an AnyEngine, waiting, arms, change, high).
wait_in_records = by_handle(_wait_in_records, AnyEngine)


def room_for(waiting: IntArray | None, n_arms: int) -> IntArray:
    """Plays that wait of each of `n_arms` arms, with those known already. O(1) if there is room."""
    if waiting is not None and len(waiting) >= n_arms:
        return waiting
    made = np.zeros(n_arms, dtype=np.int64)
    if waiting is not None:
        made[: len(waiting)] = waiting
    return made
