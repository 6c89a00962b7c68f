"""The matroid's greedy with its independence tests counted."""

from __future__ import annotations

import numpy as np

from semibandit.arms import IntArray
from semibandit.engines.layers.remembered_oracle import RememberedOracle
from semibandit.engines.layers.worth import CALL_COST, LOOK_COST
from semibandit.matroids import Matroid


class CountedGreedy:
    """`calls` counts independence tests.

    Where the class knows an incremental greedy (all built-in ones) an arm that greedy looks at counts as one; where it
    has only an oracle, calls of the oracle count, and facts once learnt are not asked for again (`remembered_oracle`).
    """

    def __init__(self, matroid: Matroid) -> None:
        self._matroid = matroid
        self._oracle = RememberedOracle(matroid) if type(matroid)._greedy is Matroid._greedy else None
        self._answers: dict[int, list[int]] = {}
        self.calls = 0
        self.test_cost = LOOK_COST if self._oracle is None else CALL_COST

    def base(self, order: IntArray, slot: int) -> IntArray:
        """The base of the arms in `order`, heaviest first, in picking order. `slot` names runs that are alike."""
        if self._oracle is None:
            picked = self._matroid._greedy(order)
            if len(picked) == self._matroid.rank:
                self.calls += int((order == picked[-1]).argmax()) + 1
            else:
                self.calls += len(order)
            return picked
        before = self._oracle.calls
        answer = self._oracle.greedy(order.tolist(), self._answers.get(slot, ()), slot)
        self._answers[slot] = answer
        self.calls += self._oracle.calls - before
        return np.array(answer, dtype=np.int64)

    def memory(self) -> int:
        """Bytes of what is remembered, about."""
        return 0 if self._oracle is None else self._oracle.memory()
