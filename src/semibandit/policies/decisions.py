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

from dataclasses import dataclass
from typing import Any

import numpy as np

from semibandit.arms import ALPHA, BETA, COUNT, TOTAL, FloatArray, IntArray
from semibandit.compiled.handle import by_handle
from semibandit.compiled.jit import inline_kernel
from semibandit.engines.kernels import AnyEngine, engine_touch_many
from semibandit.errors import ArmError, FileError
from semibandit.policies.state import array_of, whole_of


@dataclass(frozen=True)
class Decision:
    """One answer of `Policy.decide`: hand it, or its `id`, to `Policy.learn` with the rewards of `arms`.

    `scores`: what the policy made of each arm when it decided, in the order of `arms`.
    """

    id: int
    arms: IntArray
    scores: FloatArray

    def ranked(self) -> list[tuple[int, float]]:
        """(arm, score), best first, ties by smaller arm id."""
        order = np.lexsort((self.arms, -self.scores))
        return [(int(self.arms[i]), float(self.scores[i])) for i in order]


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
