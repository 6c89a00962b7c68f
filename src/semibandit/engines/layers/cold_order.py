"""The arms in order of weight as the epoch began, listed only as far as someone looked."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray, IntArray
from semibandit.compiled.handle import make_handle
from semibandit.engines.order.two_runs import (
    check_two_runs,
    list_by_handle,
    new_two_runs,
    update_by_handle,
)


class ColdOrder:
    """All present arms but the loops, heaviest first. `runs` is the order itself (`order.two_runs`).

    Loops that were never pulled weigh +inf for ever: they would be looked at first in every greedy.
    """

    def __init__(self, n_arms: int, rank: int, is_loop: npt.NDArray[np.bool_]) -> None:
        self.runs = new_two_runs(n_arms, rank)
        self.runs.present[is_loop] = False
        self._handle = make_handle(self.runs)
        self._listed = np.zeros(n_arms, dtype=np.int64)
        # How far the list goes: places in both runs, and number of arms.
        self._reached = np.zeros(3, dtype=np.int64)

    def begin_epoch(self, recs: FloatArray, lam: float) -> None:
        """Bring the order up to date. O(K) at a new lam, O(sqrt(D K)) amortised at the old one."""
        update_by_handle(self._handle, recs, lam)
        self._reached[0], self._reached[1], self._reached[2] = self.runs.start[0], 0, 0

    def part(self, begin: int, end: int) -> tuple[IntArray, bool]:
        """A copy of what comes from place `begin` on, up to `end`, and whether nothing comes after. O(new arms)."""
        n_arms = len(self._listed)
        wanted = min(end, n_arms)
        n = min(int(self._reached[2]), wanted)
        if n < wanted:
            n = list_by_handle(self._handle, self._reached, self._listed, wanted)
        return self._listed[begin:n].copy(), n < wanted or n == n_arms

    @property
    def sorted_a_round(self) -> float:
        """How many arms it handles when an epoch begins at the old lam, about."""
        return float(self.runs.limit[0])

    def memory(self) -> int:
        """Bytes held."""
        return sum(int(array.nbytes) for array in self.runs) + self._listed.nbytes

    def check(self, recs: FloatArray) -> None:
        """Assert the invariants. O(K)."""
        check_two_runs(self.runs, recs)
