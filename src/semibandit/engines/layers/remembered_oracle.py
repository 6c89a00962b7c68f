"""Greedy that remembers what an independence oracle said.

An oracle's answers are facts about the matroid, true whatever the weights are. Two kinds are kept, and each saves most
calls when greedy runs again on a slightly different order:

- a set that spans an arm (the arms picked when it was refused): the arm is refused without a call whenever all
  of that set is picked before it;
- one large independent set, the answer of the run before: its arms are picked without a call until an arm from
  outside gets in. Each such entrant pushes out at most one of them, the lightest of a circuit; until that one is found,
  the arms that come next are tried together, and if they do not all fit the culprit is found by bisection.

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

    def greedy(self, order: list[int], known: Iterable[int], slot: int = 0) -> list[int]:
        """The heaviest base of the arms in `order` (heaviest first), in picking order.

        `known` is an independent set, best the answer of a similar run; facts are kept in a `slot` each for runs
        whose picked sets are alike. At most one call per arm in `order` and log2 D per arm that is exchanged.
        """
        if len(self._bit) > self._limit:
            self._bit.clear()
            self._facts.clear()
        run = _Run(self, self._facts.setdefault(slot, {}))
        trusted = set(known)
        for arm in order:
            if run.is_full():
                break
            if arm in trusted:
                run.offer_trusted(arm)
            elif not run.spans(arm):
                run.offer(arm)
        run.try_waiting()
        return run.picked

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


class _Run:
    """One run of greedy: the arms `picked`, and trusted ones that are `waiting`.

    `entrants` counts picked arms from outside the trusted set that have not pushed out a trusted one yet. While there
    are any, trusted arms that come next wait, to be tried together.
    """

    def __init__(self, oracle: RememberedOracle, facts: Facts) -> None:
        self.picked: list[int] = []
        self._waiting: list[int] = []
        self._entrants = 0
        self._mask = 0
        self._oracle, self._facts, self._rank = oracle, facts, oracle.matroid.rank

    def is_full(self) -> bool:
        """Whether the picked arms are a base."""
        return len(self.picked) == self._rank

    def spans(self, arm: int) -> bool:
        """Whether it is known that the picked arms span `arm`. No call."""
        spanning = self._facts.get(arm)
        return spanning is not None and spanning & self._mask == spanning

    def offer_trusted(self, arm: int) -> None:
        """The next arm is a trusted one. No call."""
        if self._entrants:
            self._waiting.append(arm)
        else:
            self._pick(arm)

    def offer(self, arm: int) -> None:
        """The next arm is one from outside: a call, after those for the arms that wait."""
        if self._waiting:
            self.try_waiting()
            if self.is_full() or self.spans(arm):
                return
        self.picked.append(arm)
        if self._oracle.independent(self.picked):
            self._mask |= self._oracle._bit_of(arm)
            self._entrants += 1
        else:
            self.picked.pop()
            self._facts[arm] = self._mask

    def try_waiting(self) -> None:
        """Pick the waiting arms but those that entrants push out. O(log D) calls for each of these."""
        waiting = self._waiting
        while waiting and self._entrants and not self.is_full():
            fits = self._how_many_fit(waiting)
            for arm in waiting[:fits]:
                self._pick(arm)
            if fits < len(waiting) and not self.is_full():
                self._facts[waiting[fits]] = self._mask
                self._entrants -= 1
            waiting = waiting[fits + 1 :]
        for arm in waiting[: self._rank - len(self.picked)]:
            self._pick(arm)
        self._waiting = []

    def _pick(self, arm: int) -> None:
        self.picked.append(arm)
        self._mask |= self._oracle._bit_of(arm)

    def _how_many_fit(self, waiting: list[int]) -> int:
        """The largest n such that the picked arms and the first n of `waiting` are independent. O(log D) calls."""
        room = self._rank - len(self.picked)
        independent, picked = self._oracle.independent, self.picked
        if len(waiting) <= room and independent(picked + waiting):
            return len(waiting)
        good, bad = 0, min(len(waiting), room + 1)
        while bad - good > 1:
            middle = (good + bad) // 2
            if independent(picked + waiting[:middle]):
                good = middle
            else:
                bad = middle
        return good
