"""Whether layers pay: their cost in an epoch against that of a full greedy at every round.

Costs are in microseconds of the machine on which they were measured; only their ratios matter.
"""

from __future__ import annotations

# Of a round with layers, of making a layer, of a round without layers, of an arm that is sorted, of an arm that a
# compiled greedy looks at, and of a call of a user's oracle.
ROUND_COST, LAYER_COST, FULL_COST, ARM_COST, LOOK_COST, CALL_COST = 20.0, 20.0, 20.0, 0.006, 0.2, 10.0

MOST_SKIPPED = 64


class LayersWorth:
    """`skip`: for how many epochs, of a round each, to do without layers. Where layers do not pay again and again, they
    are tried more and more seldom. `may_skip` = False: always use layers."""

    def __init__(self, test_cost: float) -> None:
        self._test_cost = test_cost
        self.may_skip = True
        self.skip = 0
        self._next_skip = 0
        self._rounds = 0
        self._calls_before = self._full_calls = 0

    def count_round(self) -> None:
        """A round was answered by layers."""
        self._rounds += 1

    def end_epoch(self, calls: int, n_layers: int, n_sorted: float) -> None:
        """Weigh the epoch that ends: `calls` independence tests so far, `n_layers` made, and `n_sorted` arms handled by
        the order whenever an epoch begins."""
        if self.skip > 0:
            self.skip -= 1
        elif self._rounds > 0 and self.may_skip:
            full = self._rounds * (FULL_COST + ARM_COST * n_sorted + self._test_cost * self._full_calls)
            tests = self._test_cost * (calls - self._calls_before)
            if self._rounds * ROUND_COST + n_layers * LAYER_COST + tests > full:
                self.skip = self._next_skip = min(2 * self._next_skip + 1, MOST_SKIPPED)
            else:
                self._next_skip = 0
        self._rounds = 0

    def begin_epoch(self, calls: int, full_calls: int) -> None:
        """An epoch has begun after `calls` tests; finding the base of all took `full_calls` of them."""
        self._calls_before, self._full_calls = calls, full_calls
