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

    def greedy(self, order: list[int], known: Iterable[int], shelf: int = 0) -> list[int]:
        """The heaviest base of the arms in `order` (heaviest first), in picking order.

        `known` is an independent set, best the answer of a similar run; facts are kept on a `shelf` each for runs
        whose picked sets are alike. At most one call per arm in `order` and log2 D per arm that is exchanged.
        """
        if len(self._bit) > self._limit:
            self._bit.clear()
            self._facts.clear()
        facts = self._facts.setdefault(shelf, {})
        rank = self.matroid.rank
        trusted = set(known)
        picked: list[int] = []
        mask = 0
        entrants = 0  # arms from outside that have not pushed out a trusted one yet
        run: list[
            int
        ] = []  # trusted arms that come next and are still to be tried, when there are such entrants

        def settle() -> None:
            nonlocal mask, entrants, run
            while run and entrants and len(picked) < rank:
                fits = self._how_many_fit(picked, run, rank)
                for arm in run[:fits]:
                    picked.append(arm)
                    mask |= self._bit_of(arm)
                if fits < len(run) and len(picked) < rank:
                    facts[run[fits]] = mask
                    entrants -= 1
                run = run[fits + 1 :]
            for arm in run[: rank - len(picked)]:
                picked.append(arm)
                mask |= self._bit_of(arm)
            run = []

        for arm in order:
            if len(picked) == rank:
                break
            if arm in trusted:
                if entrants:
                    run.append(arm)
                else:
                    picked.append(arm)
                    mask |= self._bit_of(arm)
                continue
            spanning = facts.get(arm)
            if spanning is not None and spanning & mask == spanning:
                continue
            if run:
                settle()
                if len(picked) == rank or (spanning is not None and spanning & mask == spanning):
                    continue
            picked.append(arm)
            if self.independent(picked):
                mask |= self._bit_of(arm)
                entrants += 1
            else:
                picked.pop()
                facts[arm] = mask
        settle()
        return picked

    def _how_many_fit(self, picked: list[int], run: list[int], rank: int) -> int:
        """The largest n such that `picked` and the first n arms of `run` are independent. O(log) calls."""
        room = rank - len(picked)
        good, bad = 0, min(len(run), room + 1)
        if len(run) <= room and self.independent(picked + run):
            return len(run)
        while bad - good > 1:
            middle = (good + bad) // 2
            if self.independent(picked + run[:middle]):
                good = middle
            else:
                bad = middle
        return good

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
