"""`engine="adaptive"` for transversal matroids: challenger bounds in quiet states, a kept order in busy ones.

Two parts answer the same question: `transversal_challenger`, whose cost is that of the exchanges, and the greedy over a
kept order of `resolve_greedy`, whose cost is that of a pass over all arms whatever happens. Only one is kept up to
date. Each round the work of the part in use is counted (right nodes walked, slots changed, re-solves) and compared
with what the other would have cost; when what could have been saved exceeds the cost of changing over, the other
takes over. So no stretch of rounds costs much more than with the better part, and the two do not flutter.

The unit of all costs is a nanosecond of the machine on which they were measured; only their ratios matter.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from semibandit._jit import kernel
from semibandit._records import FloatArray, IntArray
from semibandit.engines._dispatch import register_state
from semibandit.engines.base import CompiledEngine
from semibandit.engines.kept_order import (
    N_KEPT,
    N_PENDING,
    KeptOrder,
    check_kept_order,
    kept_touch,
    new_kept_order,
)
from semibandit.engines.resolve_greedy import TransversalState, _transversal_select
from semibandit.engines.transversal_challenger import (
    MOST_SEARCHES,
    challenger_move,
    challenger_select,
    challenger_touch,
    is_many,
)
from semibandit.engines.transversal_check import check_challenger
from semibandit.engines.transversal_matching import (
    MATE,
    N_BASE,
    OUTSIDER,
    RELIST,
    SLOTS,
    SOLVES,
    STALE,
    STEPS,
    new_challenger_arrays,
    open_challenger,
    seat,
    unseat,
)
from semibandit.engines.transversal_open import (
    array_types,
    flat_arrays,
    opener,
    state_handle,
    state_type,
    types_of,
)
from semibandit.engines.transversal_tops import RIGHT, inner
from semibandit.matroids import Matroid, Transversal

# Entries of `switch`: the part in use, what it has wasted of late, how often parts changed.
PART, WASTE, CHANGES = range(3)

# More of them, costs: of a round over the kept order, of a right node walked, of a slot changed, of a re-solve, of
# making all tournaments anew, of changing parts and back; and how many slots an exchange changes.
KEPT_ROUND, STEP, SLOT_CHANGE, SOLVE, REBUILD, THERE_AND_BACK, EXCHANGE_SLOTS = range(3, 10)

CHALLENGER, KEPT_ORDER = 0.0, 1.0

# Entries of `seen`.
N_LAST, SEEN_STEPS, SEEN_SLOTS, SEEN_SOLVES = range(4)


class TransversalAdaptiveState(NamedTuple):
    """Handles of both parts, the `switch` between them, the `last` answer of the kept order, and `seen`: its length
    and the counts of work in `tops` up to the last round."""

    recs: FloatArray
    tops: IntArray
    greedy: IntArray
    last: IntArray
    seen: IntArray
    switch: FloatArray


open_greedy = opener(
    state_type(
        TransversalState,
        [
            *array_types("float64:2"),
            state_type(KeptOrder, types_of(new_kept_order(1))),
            *array_types("int64:1 int64:1 int64:1 int64:1 int64:1 int64:1"),
        ],
    )
)


def new_switch(matroid: Transversal, n_slots: int) -> FloatArray:
    """Costs for this matroid; begins with the part that is better when the whole base changes in a round."""
    n_right = matroid.n_right
    switch = np.zeros(10)
    switch[KEPT_ROUND] = 5.5 * matroid.n_arms + 35.0 * n_right * math.log2(n_right + 1)
    switch[STEP] = 13.0 + 0.8 * ((n_right + 63) >> 6)
    switch[SLOT_CHANGE] = 110.0
    switch[SOLVE] = 160.0 * n_right
    switch[REBUILD] = 6.0 * n_slots
    resort = 8.0 * matroid.n_arms * math.log2(matroid.n_arms + 1)
    switch[THERE_AND_BACK] = resort + switch[REBUILD] + switch[SOLVE]
    switch[EXCHANGE_SLOTS] = 2.0 * n_slots / matroid.n_arms
    busiest = switch[SOLVE] + matroid.rank * switch[EXCHANGE_SLOTS] * switch[SLOT_CHANGE]
    switch[PART] = CHALLENGER if busiest < switch[KEPT_ROUND] else KEPT_ORDER
    return switch


@inner
def _adopt(handle, mate):  # type: ignore[no-untyped-def]
    """Give the greedy's matching to the challengers; their tournaments are to be made anew. O(edges of the base)."""
    tops = open_challenger(handle)
    indptr, edge, bits, right, host = (
        tops.indptr,
        tops.edge,
        tops.bits,
        tops.right,
        tops.host,
    )
    n = 0
    for r in range(mate.shape[0]):
        if right[r, MATE] >= 0:
            host[right[r, MATE]] = OUTSIDER
    for r in range(mate.shape[0]):
        if mate[r] >= 0:
            seat(indptr, edge, bits, right, host, mate[r], r)
            n += 1
        else:
            unseat(indptr, edge, bits, right, r)
    tops.meta[N_BASE] = n
    tops.meta[STALE] = 1
    tops.meta[RELIST] = 1


@inner
def _sort_anew(kept):  # type: ignore[no-untyped-def]
    """Let every present arm be sorted at the next round. O(K)."""
    n = 0
    for arm in range(kept.flag.shape[0]):
        kept.flag[arm] = kept.present[arm]
        if kept.present[arm]:
            kept.pending[n] = arm
            n += 1
    kept.meta[N_PENDING] = n
    kept.meta[N_KEPT] = 0


@inner
def _exchanges(last, seen, out, n):  # type: ignore[no-untyped-def]
    """How many arms of out[:n] were not in the last answer, which becomes out[:n]. O(D)."""
    m = seen[N_LAST]
    new, j = 0, 0
    for i in range(n):
        while j < m and last[j] < out[i]:
            j += 1
        if j == m or last[j] != out[i]:
            new += 1
    for i in range(n):
        last[i] = out[i]
    seen[N_LAST] = n
    return new


@inner
def _challenger_cost(switch, seen, meta, anew):  # type: ignore[no-untyped-def]
    """What the challengers did since the last round. Changes `seen`."""
    cost = switch[REBUILD] if anew else 0.0
    cost += switch[STEP] * (meta[STEPS] - seen[SEEN_STEPS])
    cost += switch[SLOT_CHANGE] * (meta[SLOTS] - seen[SEEN_SLOTS])
    cost += switch[SOLVE] * (meta[SOLVES] - seen[SEEN_SOLVES])
    seen[SEEN_STEPS], seen[SEEN_SLOTS], seen[SEEN_SOLVES] = (
        meta[STEPS],
        meta[SLOTS],
        meta[SOLVES],
    )
    return cost


@inner
def _would_cost(switch, n, new, anew):  # type: ignore[no-untyped-def]
    """What challengers would do in a round in which `new` arms enter a base of n."""
    cost = new * switch[EXCHANGE_SLOTS] * switch[SLOT_CHANGE]
    if anew:
        cost += switch[REBUILD]
    if anew or new > MOST_SEARCHES:
        return cost + switch[SOLVE] + 3.0 * n * switch[STEP]
    # A search reaches more than half of the base.
    return cost + new * 0.6 * n * switch[STEP]


@inner
def adaptive_select(state, lam, out):  # type: ignore[no-untyped-def]
    """The base at lam by the part in use; then the parts may change. Cost: see both parts."""
    tops, greedy = open_challenger(state.tops), open_greedy(state.greedy)
    switch, seen = state.switch, state.seen
    in_use = switch[PART]
    if in_use == CHALLENGER:
        anew = tops.meta[STALE] != 0 or lam != tops.lam[0]
        n = challenger_select(state.tops, lam, out)
        waste = _challenger_cost(switch, seen, tops.meta, anew) - switch[KEPT_ROUND]
    else:
        anew = lam != greedy.kept.lam[0]
        n = _transversal_select(greedy, lam, out)
        new = _exchanges(state.last, seen, out, n)
        waste = switch[KEPT_ROUND] - _would_cost(switch, n, new, anew)
    switch[WASTE] = max(0.0, switch[WASTE] + waste)
    if switch[WASTE] > switch[THERE_AND_BACK]:
        switch[WASTE] = 0.0
        switch[CHANGES] += 1.0
        if in_use == CHALLENGER:
            _sort_anew(greedy.kept)
            tops.meta[STALE] = 1
            seen[N_LAST] = 0
            switch[PART] = KEPT_ORDER
        else:
            _adopt(state.tops, greedy.mate)
            switch[PART] = CHALLENGER
    return n


@inner
def adaptive_touch(state, arm):  # type: ignore[no-untyped-def]
    """The record of `arm` changed. O(1), or O(degree log K) for an outsider while challengers are in use."""
    if state.switch[PART] == CHALLENGER:
        challenger_touch(state.tops, arm)
    else:
        kept = open_greedy(state.greedy).kept
        if kept.present[arm]:
            kept_touch(kept, arm)


@kernel
def _kept_touch_all(handle, arms):  # type: ignore[no-untyped-def]
    """`kept_touch` of each of `arms`, as an entry point for Python."""
    kept = open_greedy(handle).kept
    for i in range(arms.shape[0]):
        kept_touch(kept, arms[i])


register_state(TransversalAdaptiveState, adaptive_select, adaptive_touch)


class TransversalAdaptiveEngine(CompiledEngine):
    """The better of challenger bounds and greedy over a kept order, chosen by counting work.

    A round costs O(D) while no base arm falls below its bound and O((D + n_right) log K) while few do; O(K) when most
    of the base changes, where that is less. A new lam costs a pass over all arms: meant for a staircase clock, right
    under any.

    Example
    -------
    >>> import numpy as np
    >>> from semibandit.matroids import Transversal
    >>> engine = TransversalAdaptiveEngine(Transversal([[0], [0], [0, 1]]))
    >>> engine.set_weights(np.arange(3), [0.4, 0.5, 0.1])
    >>> engine.base()
    array([1, 2])
    """

    name = "adaptive"
    exact_clock = False

    def __init__(self, matroid: Matroid, records: npt.NDArray[np.void] | None = None) -> None:
        super().__init__(matroid, records)
        if not isinstance(matroid, Transversal):
            raise TypeError(f"TransversalAdaptiveEngine serves transversal matroids, got {matroid!r}")
        tops = self._tops = new_challenger_arrays(matroid, self._recs)
        mate, seen, came_from, queue = (np.zeros(matroid.n_right, dtype=np.int64) for _ in range(4))
        self._greedy = TransversalState(
            self._recs,
            new_kept_order(self.n_arms),
            tops.indptr,
            tops.edge[:, RIGHT].astype(np.int64),
            mate,
            seen,
            came_from,
            queue,
        )
        self._state: Any = TransversalAdaptiveState(
            recs=self._recs,
            tops=state_handle(tops),
            greedy=state_handle(self._greedy),
            last=np.zeros(matroid.rank, dtype=np.int64),
            seen=np.zeros(4, dtype=np.int64),
            switch=new_switch(matroid, len(tops.edge)),
        )

    @property
    def part(self) -> str:
        """Which part answers now: "challenger" or "kept-order"."""
        return "challenger" if self._state.switch[PART] == CHALLENGER else "kept-order"

    def touch(self, arms: IntArray) -> None:
        if self._state.switch[PART] == CHALLENGER and is_many(arms, self.n_arms):
            self._tops.meta[STALE] = 1
        else:
            super().touch(arms)

    def _remove(self, ids: IntArray) -> None:
        self._move(ids, True)

    def _restore(self, ids: IntArray) -> None:
        self._move(ids, False)

    def _move(self, ids: IntArray, remove: bool) -> None:
        """Take arms out of both parts or put them back."""
        state = self._state
        self._greedy.kept.present[ids] = not remove
        if state.switch[PART] == KEPT_ORDER:
            _kept_touch_all(state.greedy, ids)
        elif is_many(ids, self.n_arms):
            self._tops.meta[STALE] = 1
        challenger_move(state.tops, ids, remove)

    def memory(self) -> int:
        shared = self._recs.nbytes + self._tops.indptr.nbytes
        parts = sum(int(array.nbytes) for state in (self._tops, self._greedy) for array in flat_arrays(state))
        return parts - shared + sum(int(array.nbytes) for array in self._state[1:])

    def _check(self) -> None:
        absent = self._is_deleted(np.arange(self.n_arms))
        switch, kept = self._state.switch, self._greedy.kept
        check_challenger(self._tops, absent)
        assert np.array_equal(~kept.present, absent)
        assert switch[PART] in (CHALLENGER, KEPT_ORDER) and switch[WASTE] >= 0.0
        if switch[PART] == KEPT_ORDER:
            assert self._tops.meta[STALE] == 1
            check_kept_order(kept, self._recs)
