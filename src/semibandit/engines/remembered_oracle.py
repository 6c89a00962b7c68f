"""Greedy that remembers what an independence oracle said.

An oracle's answers are facts about the matroid, true whatever the weights are. Two kinds are kept, and each saves most
calls when greedy runs again on a slightly different order:

- a set that spans an arm (the arms picked when it was refused): the arm is refused without a call whenever all
  of that set is picked before it;
- one large independent set, the answer of the run before: its arms are picked without a call until an arm from
  outside gets in, which pushes out exactly one of them, the lightest of the circuit. That one is found by
  bisection: P + the first j remaining arms is independent exactly for j below its place.

So a run costs a call for each arm whose place among the picked arms changed, and about log2 D for each exchange.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from semibandit.matroids import Matroid

Facts = dict[int, int]


class RememberedOracle:
    """The independence test of `matroid`, counted in `calls`, with the greedy of the paper's Section 2 on top.

    `limit` bounds how many arms facts may speak of; beyond it all are forgotten, so that memory and the time for
    a subset test stay bounded.
    """

    def __init__(self, matroid: Matroid, limit: int = 4096) -> None:
        self.matroid = matroid
        self.calls = 0
        self._limit = limit
        self._bit: dict[int, int] = {}
        self._facts: dict[int, Facts] = {}

    def independent(self, arms: list[int]) -> bool:
        """One call of the oracle."""
        self.calls += 1
        # A fresh array, because the test is a user's code and may sort or keep what it is handed.
        return bool(self.matroid._is_independent(np.array(arms, dtype=np.int64)))

    def greedy(self, order: list[int], known: Iterable[int], shelf: int = 0) -> list[int]:
        """The heaviest base of the arms in `order` (heaviest first), in picking order.

        `known` is an independent set, best the answer of a similar run; facts are kept on a `shelf` each for runs
        whose picked sets are alike. At most one call per arm in `order` and log2 D per arm picked.
        """
        if len(self._bit) > self._limit:
            self._bit.clear()
            self._facts.clear()
        facts = self._facts.setdefault(shelf, {})
        rank = self.matroid.rank
        trusted = set(known)
        waiting = [arm for arm in order if arm in trusted]
        trusted.intersection_update(waiting)
        picked: list[int] = []
        mask, n_waited = 0, 0
        for arm in order:
            if len(picked) == rank:
                break
            if arm in trusted:
                # picked + the trusted arms still waiting is independent all along
                picked.append(arm)
                mask |= self._bit_of(arm)
                n_waited += 1
                continue
            spanning = facts.get(arm)
            if spanning is not None and spanning & mask == spanning:
                continue
            picked.append(arm)
            if not self.independent(picked):
                picked.pop()
                facts[arm] = mask
                continue
            mask |= self._bit_of(arm)
            place = self._first_dependent(picked, waiting, n_waited, rank)
            if place < len(waiting):
                loser = waiting.pop(place)
                trusted.remove(loser)
                facts[loser] = mask
                for other in waiting[n_waited:place]:
                    facts[loser] |= self._bit_of(other)
        return picked

    def _first_dependent(self, picked: list[int], waiting: list[int], begin: int, rank: int) -> int:
        """The place in `waiting` of the first arm that cannot join `picked` and those before it; its end if all can."""
        room = rank - len(picked)
        good, bad = begin, min(len(waiting), begin + room + 1)
        if bad - begin <= room:
            if bad == begin or self.independent(picked + waiting[begin:bad]):
                return len(waiting)
        while bad - good > 1:
            middle = (good + bad) // 2
            if self.independent(picked + waiting[begin:middle]):
                good = middle
            else:
                bad = middle
        return bad - 1

    def _bit_of(self, arm: int) -> int:
        bit = self._bit.get(arm)
        if bit is None:
            bit = self._bit[arm] = 1 << len(self._bit)
        return bit

    def memory(self) -> int:
        """Bytes of the facts, about."""
        words = len(self._bit) // 30 + 1
        masks = {id(mask) for facts in self._facts.values() for mask in facts.values()}
        return 100 * len(self._bit) + 100 * sum(map(len, self._facts.values())) + 4 * words * len(masks)
