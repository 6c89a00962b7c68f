"""Layers of cold arms: L1 the base of all cold arms, L2 that of the rest, and so on, each made when it is needed."""

from __future__ import annotations

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.engines.layers.cold_order import ColdOrder
from semibandit.engines.layers.counted_greedy import CountedGreedy
from semibandit.engines.layers.places import COLD, Places
from semibandit.matroids import Matroid

# Greedy remembers what it learnt for each kind of run: for the base of all arms, and for each layer.
BASE_SLOT = 0


class Layers:
    """The layers of an epoch, `members` of each as they were made, ascending; at most `reserve` + 1 of them.

    With more than `most_hot` hot arms a new epoch is cheaper than greedy over all of them.
    """

    def __init__(
        self, matroid: Matroid, places: Places, order: ColdOrder, greedy: CountedGreedy, reserve: int
    ) -> None:
        self._matroid, self._places, self._order, self._greedy = matroid, places, order, greedy
        self.reserve = reserve
        self.most_hot = 4 * (reserve + 1) * matroid.rank + 64
        self.members: list[IntArray] = []
        # Where in the order cold arms outside the layers may begin, and whether there may be any.
        self._below = 0
        self._more = False

    def begin_epoch(self) -> IntArray:
        """Forget all layers; the base of all arms. Greedy over all arms, which stops when the base is full."""
        self._places.begin_epoch(self.members)
        self.members = []
        self._below, self._more = 0, True
        return self._base_of_cold(BASE_SLOT)[0]

    def candidates(self) -> IntArray | None:
        """The arms among which the base lies, ascending; None when layers are used up or too many arms are hot.

        O(n log n) for n = hot arms + rank * reserve, and greedy for each layer that must be made.
        """
        places = self._places
        if places.n_hot > self.most_hot:
            return None
        parts = [places.hot]
        i = 0
        while i < len(self.members) or self._more:
            if i > self.reserve:
                return None
            if i == len(self.members):
                self._make_next_layer()
            if places.is_whole(i):
                parts.append(self.members[i])
                break
            parts.append(places.still_in(i, self.members[i]))
            i += 1
        return places.present(np.sort(np.concatenate(parts)))

    def _make_next_layer(self) -> None:
        """One more base of the arms that are cold, which the order still has right."""
        layer = len(self.members)
        self._places.let_go()
        members, self._more = self._base_of_cold(layer + 1)
        self._places.put_in_layer(members, layer)
        self.members.append(np.sort(members))

    def _base_of_cold(self, slot: int) -> tuple[IntArray, bool]:
        """The base of all cold arms outside the layers, and whether there may be other such arms.

        Looks at longer and longer beginnings of the order until a base is full: O(K) and greedy over all cold
        arms at worst, O(rank) at best.
        """
        rank = self._matroid.rank
        n = 4 * rank + 32
        while True:
            arms, at_end = self._order.part(self._below, self._below + n)
            if slot != BASE_SLOT:  # in an epoch that begins all arms are cold
                arms = self._only_cold(arms)
            picked = self._greedy.base(arms, slot) if len(arms) else arms
            if at_end or len(picked) == rank:
                return picked, not at_end or len(picked) < len(arms)
            n *= 4

    def _only_cold(self, arms: IntArray) -> IntArray:
        """Those of `arms`, which follow in the order, that are cold; the next time the first of them comes first."""
        cold = self._places.is_cold(arms)
        if len(arms) and not cold[0]:
            skipped = int(cold.argmax()) if cold.any() else len(arms)
            self._below += skipped
            arms, cold = arms[skipped:], cold[skipped:]
        return arms[cold]

    def memory(self) -> int:
        """Bytes held."""
        return sum(int(members.nbytes) for members in self.members)

    def check(self, weight: FloatArray) -> None:
        """Assert that a whole layer is the base of all that lies below the layers before it. O(reserve * K log K)."""
        assert len(self.members) <= self.reserve + 1
        place, present = self._places.state.place, self._places.state.present
        for i, members in enumerate(self.members):
            if self._places.is_whole(i):
                below = np.flatnonzero(present & ((place >= i) | (place == COLD)))
                order = below[np.lexsort((below, -weight[below]))]
                assert np.array_equal(np.sort(self._matroid._greedy(order)), members)
