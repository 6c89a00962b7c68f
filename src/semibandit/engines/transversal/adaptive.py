"""`engine="adaptive"` for transversal matroids: challenger bounds in quiet states, greedy in busy ones.

Two parts answer the same question: `transversal_challenger`, whose cost is that of the exchanges, and greedy over arms
kept in order (`two_runs`), whose cost hardly depends on what happens but on a new lam. Only one is kept up to date.
Each round the work of the part in use is counted (right nodes walked, slots changed, re-solves) and compared with what
the other would have cost; when what could have been saved exceeds the cost of changing over, the other takes over. So
no stretch of rounds costs much more than with the better part, and the two do not flutter.

The unit of all costs is a nanosecond of the machine on which they were measured; only their ratios matter.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray, IntArray
from semibandit.compiled.handle import Floats1, Floats2, Ints1, make_handle, opener
from semibandit.compiled.jit import kernel
from semibandit.compiled.sorting import sort_ids
from semibandit.engines.base import CompiledEngine, bytes_of
from semibandit.engines.kernels import implement_engine
from semibandit.engines.order.two_runs import (
    START,
    TwoRuns,
    check_two_runs,
    new_two_runs,
    runs_forget,
    runs_next,
    runs_touch,
    runs_update,
)
from semibandit.engines.registry import STAIRS, register_engine
from semibandit.engines.resolve.greedy import DEAD, augment
from semibandit.engines.transversal.challenger import (
    MOST_SEARCHES,
    challenger_move,
    challenger_select,
    challenger_touch,
    is_many,
)
from semibandit.engines.transversal.check import check_challenger
from semibandit.engines.transversal.matching import (
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
from semibandit.engines.transversal.tops import RIGHT, inner
from semibandit.matroids import Matroid, Transversal

# Entries of `switch`: the part in use, what it has wasted of late, how often parts changed.
PART, WASTE, CHANGES = range(3)

# More of them, costs: of a round of greedy, and what a new lam adds to it; of a right node walked, of a slot changed,
# of a re-solve, of making all tournaments anew, of changing parts and back; and how many slots an exchange changes.
GREEDY_ROUND, RESORT, STEP, SLOT_CHANGE, SOLVE, REBUILD, THERE_AND_BACK, EXCHANGE_SLOTS = range(3, 11)

CHALLENGER, GREEDY = 0.0, 1.0

# Entries of `seen`.
N_LAST, SEEN_STEPS, SEEN_SLOTS, SEEN_SOLVES = range(4)


class GreedyState(NamedTuple):
    """Matching `mate` of right nodes to arms beside the arms in order; the rest is scratch of the search."""

    recs: Floats2
    runs: TwoRuns
    indptr: Ints1
    indices: Ints1
    mate: Ints1
    seen: Ints1
    came_from: Ints1
    queue: Ints1


class TransversalAdaptiveState(NamedTuple):
    """Handles of both parts, the `switch` between them, the `last` answer of greedy, and `seen`: its length and
    the counts of work in `tops` up to the last round."""

    recs: Floats2
    tops: Ints1
    greedy: Ints1
    last: Ints1
    seen: Ints1
    switch: Floats1


open_greedy = opener(GreedyState)


def new_switch(matroid: Transversal, n_slots: int) -> FloatArray:
    """Costs for this matroid; begins with the part that is better when the whole base changes in a round."""
    n_right = matroid.n_right
    n_arms, rank = matroid.n_arms, matroid.rank
    switch = np.zeros(11)
    switch[GREEDY_ROUND] = 3.0 * math.sqrt(2.0 * rank * n_arms) + 35.0 * n_right * math.log2(n_right + 1)
    switch[RESORT] = 20.0 * n_arms
    switch[STEP] = 13.0 + 0.8 * ((n_right + 63) >> 6)
    switch[SLOT_CHANGE] = 110.0
    switch[SOLVE] = 160.0 * n_right
    switch[REBUILD] = 6.0 * n_slots
    switch[THERE_AND_BACK] = 2.0 * switch[RESORT] + switch[REBUILD] + switch[SOLVE]
    switch[EXCHANGE_SLOTS] = 2.0 * n_slots / n_arms
    busiest = switch[SOLVE] + rank * switch[EXCHANGE_SLOTS] * switch[SLOT_CHANGE]
    switch[PART] = CHALLENGER if busiest < switch[GREEDY_ROUND] else GREEDY
    return switch


@inner
def _greedy_select(state, lam, out):
    """Greedy with augmenting paths, heaviest arm first, until the base is full. Changes the matching and `out`.

    What a failed search reached is dead for the rest of the round, as in `resolve_greedy`. O(arms looked at) searches
    besides bringing the order up to date.
    """
    runs = state.runs
    runs_update(runs, state.recs, lam)
    mate, seen, queue = state.mate, state.seen, state.queue
    mate[:] = -1
    seen[:] = 0
    i, j = runs.meta[START], 0
    n, stamp = 0, 0
    while n < out.shape[0]:
        arm, i, j = runs_next(runs, i, j)
        if arm < 0:
            break
        stamp += 1
        found, reached = augment(state.indptr, state.indices, mate, seen, stamp, state.came_from, queue, arm)
        if found:
            out[n] = arm
            n += 1
        else:
            for r in range(reached):
                seen[queue[r]] = DEAD
    sort_ids(out, n, runs.spare_arm, runs.bins)
    return n


@inner
def _adopt(handle, mate):
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
def _exchanges(last, seen, out, n):
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
def _challenger_cost(switch, seen, meta, anew):
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
def _would_cost(switch, n, new, anew):
    """What challengers would do in a round in which `new` arms enter a base of n."""
    cost = new * switch[EXCHANGE_SLOTS] * switch[SLOT_CHANGE]
    if anew:
        cost += switch[REBUILD]
    if anew or new > MOST_SEARCHES:
        return cost + switch[SOLVE] + 3.0 * n * switch[STEP]
    # A search reaches more than half of the base.
    return cost + new * 0.6 * n * switch[STEP]


@inner
def adaptive_select(state, lam, out):
    """The base at lam by the part in use; then the parts may change. Cost: see both parts."""
    tops, greedy = open_challenger(state.tops), open_greedy(state.greedy)
    switch, seen = state.switch, state.seen
    in_use = switch[PART]
    if in_use == CHALLENGER:
        anew = tops.meta[STALE] != 0 or lam != tops.lam[0]
        n = challenger_select(state.tops, lam, out)
        waste = _challenger_cost(switch, seen, tops.meta, anew) - switch[GREEDY_ROUND]
    else:
        anew = lam != greedy.runs.lam[0]
        n = _greedy_select(greedy, lam, out)
        new = _exchanges(state.last, seen, out, n)
        waste = switch[GREEDY_ROUND] - _would_cost(switch, n, new, anew)
    if anew:
        waste += switch[RESORT] if in_use == GREEDY else -switch[RESORT]
    switch[WASTE] = max(0.0, switch[WASTE] + waste)
    if switch[WASTE] > switch[THERE_AND_BACK]:
        switch[WASTE] = 0.0
        switch[CHANGES] += 1.0
        if in_use == CHALLENGER:
            runs_forget(greedy.runs)
            tops.meta[STALE] = 1
            seen[N_LAST] = 0
            switch[PART] = GREEDY
        else:
            _adopt(state.tops, greedy.mate)
            switch[PART] = CHALLENGER
    return n


@inner
def adaptive_touch(state, arm):
    """The record of `arm` changed. O(1), or O(degree log K) for an outsider while challengers are in use."""
    if state.switch[PART] == CHALLENGER:
        challenger_touch(state.tops, arm)
    else:
        runs = open_greedy(state.greedy).runs
        if runs.present[arm]:
            runs_touch(runs, arm)


@kernel
def _runs_touch_all(handle, arms):
    """`runs_touch` of each of `arms`, as an entry point for Python."""
    runs = open_greedy(handle).runs
    for i in range(arms.shape[0]):
        runs_touch(runs, arms[i])


@kernel
def adaptive_touch_many(state, arms):
    """Arm by arm, or all tournaments anew where that is cheaper."""
    if state.switch[PART] == CHALLENGER and arms.shape[0] > state.recs.shape[0] // 4 + 16:
        open_challenger(state.tops).meta[STALE] = 1
    else:
        for i in range(arms.shape[0]):
            adaptive_touch(state, arms[i])


implement_engine(TransversalAdaptiveState, adaptive_select, adaptive_touch, touch_many=adaptive_touch_many)


@register_engine(
    "adaptive",
    serves=(Transversal,),
    clocks=STAIRS,
    cost="O(D) a quiet round, re-solving in busy ones; O(K) at a step of the clock",
    why="challenger bounds in quiet rounds, re-solving in busy ones",
    fast_from=8,
)
class TransversalAdaptiveEngine(CompiledEngine):
    """The better of challenger bounds and greedy over arms kept in order, chosen by counting work.

    A round costs O(D) while no base arm falls below its bound and O((D + n_right) log K) while few do; O(sqrt(D K)) and
    the searches of greedy when most of the base changes. A new lam costs a pass over all arms: meant for a staircase
    clock, right under any.

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
        self._greedy = GreedyState(
            self._recs,
            new_two_runs(self.n_arms, matroid.rank),
            tops.indptr,
            tops.edge[:, RIGHT].astype(np.int64),
            mate,
            seen,
            came_from,
            queue,
        )
        state = TransversalAdaptiveState(
            recs=self._recs,
            tops=make_handle(tops),
            greedy=make_handle(self._greedy),
            last=np.zeros(matroid.rank, dtype=np.int64),
            seen=np.zeros(4, dtype=np.int64),
            switch=new_switch(matroid, len(tops.edge)),
        )
        self._run_on(state)

    @property
    def part(self) -> str:
        """Which part answers now: "challenger" or "greedy"."""
        return "challenger" if self._state.switch[PART] == CHALLENGER else "greedy"

    def _remove(self, ids: IntArray) -> None:
        self._move(ids, True)

    def _restore(self, ids: IntArray) -> None:
        self._move(ids, False)

    def _move(self, ids: IntArray, remove: bool) -> None:
        """Take arms out of both parts or put them back."""
        state = self._state
        self._greedy.runs.present[ids] = not remove
        if state.switch[PART] == GREEDY:
            _runs_touch_all(state.greedy, ids)
        elif is_many(ids, self.n_arms):
            self._tops.meta[STALE] = 1
        challenger_move(state.tops, ids, remove)

    def memory(self) -> int:
        shared = self._recs.nbytes + self._tops.indptr.nbytes
        parts = bytes_of(self._tops) + bytes_of(self._greedy)
        return parts - shared + sum(int(array.nbytes) for array in self._state[1:])

    def _check(self) -> None:
        absent = self._is_deleted(np.arange(self.n_arms))
        switch, runs = self._state.switch, self._greedy.runs
        check_challenger(self._tops, absent)
        assert np.array_equal(~runs.present, absent)
        assert switch[PART] in (CHALLENGER, GREEDY) and switch[WASTE] >= 0.0
        if switch[PART] == GREEDY:
            assert self._tops.meta[STALE] == 1
            check_two_runs(runs, self._recs)
