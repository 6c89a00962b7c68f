"""Sublinear engines for graphic matroids: challengers when little changes, another solver when much does.

All solvers work on one state (`graphic_state`): `graphic_challenger` for quiet states, `graphic_hotcold` or, for few
vertices, `graphic_prim` for busy ones. `adaptive` counts what a round costs and what it would cost the other way, and
changes over when the difference has lasted; the other engines stay with one solver. All want a staircase
clock: a new lam costs O(K).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from semibandit.compiled.handle import make_handle
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.engines.base import CompiledEngine, bytes_of
from semibandit.engines.graphic.challenger import challenger_solve, list_if_beaten
from semibandit.engines.graphic.changeover import enter_challenger, leave_challenger
from semibandit.engines.graphic.check import check_state
from semibandit.engines.graphic.hotcold import answer_from_pool, cool_down, hot_cold_solve
from semibandit.engines.graphic.prim import leave_prim, prim_build, prim_forest, prim_set
from semibandit.engines.graphic.rows import (
    ABSENT,
    COLD,
    FLAG,
    HEAD,
    HOT,
    PLACE,
    SLOT,
    TAIL,
    TREE,
    put,
    reweigh_rows,
    weight_of,
)
from semibandit.engines.graphic.state import (
    ADAPTIVE,
    ALL_TOUCHED,
    BUSY_COST,
    CHALLENGER,
    COMPONENT,
    CROWDED,
    DIRTY,
    HAS_MATRIX,
    HOT_COLD,
    LAM,
    LOST,
    MODE,
    N_LIST,
    N_POOL,
    N_RISEN,
    N_SORTED,
    PASSES,
    PATIENCE,
    POLICY,
    POOL_LIMIT,
    PRIM,
    SEARCH_COST,
    SEARCHES,
    STALE,
    STAY,
    SWAPS,
    WARMED,
    WHOLE,
    WORK,
    ForestState,
    new_state,
    open_forest,
    search_cost,
)
from semibandit.engines.kernels import implement_engine
from semibandit.engines.registry import STAIRS, register_engine
from semibandit.matroids import Graphic, Matroid

# What things cost in nanoseconds (measured; only ratios matter): an edge of the pool in a pass, a vertex in a busy
# round, an edge warmed up and cooled down, an entry of Prim's matrix, an exchange, a round without any.
NS_POOL, NS_VERTEX, NS_WARMED, NS_MATRIX = 20.0, 60.0, 200.0, 1.8
NS_SWAP, NS_QUIET = 200.0, 100.0

# A change of the solver costs about so many busy rounds: as much must have been lost by staying.
CHANGE, MOST_PATIENCE, SHORT_STAY = 2.0, 32, 16


@inline_kernel
def _busy_round(handle, state, lam, rank):
    """Solve by Prim or by pool and rows; then see whether the challengers should go on."""
    meta, real = state.meta, state.real
    n_vertices = state.vertex.shape[0]
    settled = meta[ALL_TOUCHED] == 0
    passes, warmed = meta[PASSES], meta[WARMED]
    if meta[MODE] == PRIM:
        meta[N_POOL] = prim_forest(
            state.matrix, state.matrix_arm, state.fresh_arm, state.spare_arm, state.pool
        )
        cost = NS_MATRIX * n_vertices * n_vertices
    else:
        hot_cold_solve(handle, lam, rank)
        passes = meta[PASSES] - passes
        warmed = meta[WARMED] - warmed
        cost = NS_POOL * meta[N_POOL] * passes + NS_WARMED * warmed
    cost += NS_VERTEX * n_vertices
    swaps = answer_from_pool(handle)
    meta[SWAPS] += swaps
    # After a step, and while an empty pool fills, a round says nothing about those to come.
    if settled and (meta[MODE] == PRIM or warmed <= 2 * swaps + n_vertices // 4 + 4):
        real[BUSY_COST] += 0.2 * (cost - real[BUSY_COST])
        challengers = 1.3 * swaps * (real[SEARCH_COST] + NS_SWAP) + NS_QUIET
        real[LOST] = max(0.0, real[LOST] + cost - challengers)
    enter = meta[POLICY] == CHALLENGER
    if meta[POLICY] == ADAPTIVE and real[LOST] > CHANGE * meta[PATIENCE] * real[BUSY_COST]:
        enter = True
    if meta[MODE] == PRIM:
        if enter:
            # The next round goes by pool and rows, and from there to the challengers.
            leave_prim(handle)
            reweigh_rows(state.rows, state.recs, lam, np.bool_(True))
            meta[MODE] = HOT_COLD
            meta[DIRTY] = 1
        return
    if enter or meta[N_POOL] > meta[POOL_LIMIT]:
        cool_down(handle)
    if enter:
        enter_challenger(handle)
        meta[MODE] = CHALLENGER
        meta[STAY] = 0
        real[LOST] = 0.0
    elif meta[HAS_MATRIX] == 1:
        meta[MODE] = PRIM
        prim_build(handle, lam)


@inline_kernel
def _too_busy(state):
    """Whether the challengers have lost, this round included, what a change costs. A short stay makes the next
    one wait longer."""
    meta, real = state.meta, state.real
    ahead = meta[N_LIST] * (real[SEARCH_COST] + NS_SWAP)
    real[LOST] = max(0.0, real[LOST] + ahead - real[BUSY_COST])
    if meta[POLICY] != ADAPTIVE or real[LOST] <= CHANGE * real[BUSY_COST]:
        return False
    real[LOST] = 0.0
    if meta[STAY] < SHORT_STAY:
        meta[PATIENCE] = min(2 * meta[PATIENCE], MOST_PATIENCE)
    else:
        meta[PATIENCE] = max(1, meta[PATIENCE] // 2)
    return True


@kernel
def solve_forest(handle, lam, rank):
    """Make the sorted answer right at lam. O(searches) or O(V + changes), O(K) at a new lam. Returns its size."""
    state = open_forest(handle)
    meta, real = state.meta, state.real
    stale = meta[STALE] == 1 or lam != real[LAM]
    if meta[MODE] == CHALLENGER and (stale or meta[CROWDED] == 1 or _too_busy(state)):
        leave_challenger(handle)
        meta[MODE] = HOT_COLD
        meta[CROWDED] = 0
        if not stale and meta[HAS_MATRIX] == 1:
            meta[MODE] = PRIM
            prim_build(handle, lam)
    if stale:
        real[LAM] = lam
        meta[STALE] = 0
        if meta[MODE] == PRIM:
            prim_build(handle, lam)
        else:
            reweigh_rows(state.rows, state.recs, lam, np.bool_(False))
            meta[ALL_TOUCHED] = 1
    meta[DIRTY] = 0
    if meta[MODE] != CHALLENGER:
        _busy_round(handle, state, lam, rank)
        return meta[N_SORTED]
    searches, work = meta[SEARCHES], meta[WORK]
    meta[SWAPS] += challenger_solve(handle, lam)
    meta[DIRTY] = 0
    searches = meta[SEARCHES] - searches
    if searches > 0:
        cost = search_cost(state.vertex.shape[0]) + (meta[WORK] - work) / searches
        real[SEARCH_COST] += min(0.05 * searches, 1.0) * (cost - real[SEARCH_COST])
    return meta[N_SORTED]


@inline_kernel
def forest_select(forest, lam, out):
    """The base at lam. O(D) when nothing that matters has changed, else the solver's cost."""
    handle = forest.handle
    state = open_forest(handle)
    meta = state.meta
    meta[STAY] += 1
    if meta[DIRTY] == 1 or lam != state.real[LAM]:
        n = solve_forest(handle, lam, out.shape[0])
    else:
        n = meta[N_SORTED]
    for i in range(n):
        out[i] = state.sorted_base[i]
    return n


@kernel
def _touch_cold(handle, arm):
    """A cold arm has another weight, or came back. O(16 log degree)."""
    state = open_forest(handle)
    meta = state.meta
    before = state.rows.slot_weight[state.rows.edge[arm, SLOT]]
    w = weight_of(state.recs, arm, state.real[LAM])
    put(state.rows, arm, w, np.int64(COLD))
    if w <= before:
        return
    meta[DIRTY] = 1
    if meta[MODE] == CHALLENGER:
        if meta[N_RISEN] == state.risen.shape[0]:
            meta[CROWDED] = 1
        else:
            state.risen[meta[N_RISEN]] = arm
            meta[N_RISEN] += 1


@inline_kernel
def forest_touch(forest, arm):
    """The record of `arm` changed. O(1) for an arm of the base, else O(16 log degree)."""
    handle = forest.handle
    state = open_forest(handle)
    lam = state.real[LAM]
    if weight_of(state.recs, arm, lam) > state.guard[arm]:
        return
    edge, meta = state.rows.edge, state.meta
    if edge[arm, PLACE] == ABSENT or meta[STALE] == 1:
        return
    if meta[MODE] == PRIM:
        prim_set(state, arm)
    elif edge[arm, PLACE] == COLD:
        _touch_cold(handle, arm)
    elif meta[MODE] == HOT_COLD:
        edge[arm, FLAG] = 1
        meta[DIRTY] = 1
    else:
        list_if_beaten(state, arm, lam)


@kernel
def forest_remove(forest, arms):
    """Take present arms out of the ground set. O(16 log degree) each."""
    state = open_forest(forest.handle)
    edge, meta = state.rows.edge, state.meta
    for i in range(arms.shape[0]):
        arm = arms[i]
        place = edge[arm, PLACE]
        if place == ABSENT:
            continue
        if meta[MODE] == PRIM:
            edge[arm, PLACE] = ABSENT
            prim_set(state, arm)
        elif place == COLD:
            put(state.rows, arm, -np.inf, np.int64(ABSENT))
        else:
            edge[arm, PLACE] = ABSENT
            meta[DIRTY] = 1
            if meta[MODE] == CHALLENGER:
                list_if_beaten(state, arm, state.real[LAM])
            else:
                edge[arm, FLAG] = 1


@kernel
def forest_restore(forest, arms):
    """Put absent arms back with the weights in their records. O(V + 16 log degree each)."""
    handle = forest.handle
    state = open_forest(handle)
    edge, meta, vertex = state.rows.edge, state.meta, state.vertex
    for v in range(vertex.shape[0]):
        vertex[v, COMPONENT] = vertex[v, WHOLE]
    for i in range(arms.shape[0]):
        arm = arms[i]
        if edge[arm, TAIL] == edge[arm, HEAD]:
            continue
        if meta[MODE] == PRIM:
            edge[arm, PLACE] = COLD
            prim_set(state, arm)
        elif edge[arm, TREE] >= 0:
            edge[arm, PLACE] = HOT
            list_if_beaten(state, arm, state.real[LAM])
        else:
            _touch_cold(handle, arm)


@kernel
def forest_touch_all(forest):
    """Let the next round read all weights again. O(1) now."""
    meta = open_forest(forest.handle).meta
    meta[STALE] = meta[DIRTY] = 1


@kernel
def forest_touch_many(forest, arms):
    """Arm by arm, or all weights anew where that is cheaper."""
    n_arms, rank = forest.recs.shape[0], open_forest(forest.handle).sorted_base.shape[0]
    if arms.shape[0] > max(n_arms // 16, rank) + 64:
        forest_touch_all(forest)
    else:
        for i in range(arms.shape[0]):
            forest_touch(forest, arms[i])


implement_engine(
    ForestState,
    forest_select,
    forest_touch,
    touch_many=forest_touch_many,
    touch_all=forest_touch_all,
    remove=forest_remove,
    restore=forest_restore,
)


@register_engine(
    "adaptive",
    serves=(Graphic,),
    clocks=STAIRS,
    cost="O(D) a quiet round, re-solving in busy ones; O(K) at a step of the clock",
    why="challenger bounds in quiet rounds, re-solving in busy ones",
    fast_from=8,
)
class AdaptiveEngine(CompiledEngine):
    """For a graphic matroid, challengers or another solver, whichever is cheaper at the time.

    A round costs O(D) while no base edge falls below its bound, O(V + edges that change * log degree) when most of
    the base changes, and O(K) when lam changes: meant for a staircase clock, right under any. For at most
    `PRIM_VERTICES` vertices a busy round costs O(V^2) instead.

    Example
    -------
    >>> import numpy as np
    >>> from semibandit.matroids import Graphic
    >>> engine = AdaptiveEngine(Graphic([(0, 1), (1, 2), (2, 0), (2, 3)]))
    >>> engine.set_weights(np.arange(4), [0.5, 0.9, 0.7, 0.1])
    >>> engine.base()
    array([1, 2, 3])
    """

    name = "adaptive"
    exact_clock = False
    _policy: ClassVar[int] = ADAPTIVE

    def __init__(self, matroid: Matroid, records: npt.NDArray[np.void] | None = None) -> None:
        super().__init__(matroid, records)
        if not isinstance(matroid, Graphic):
            raise TypeError(f"{type(self).__name__} serves graphic matroids, got {matroid!r}")
        ends = matroid._tail, matroid._head
        self._arrays = new_state(self._recs, *ends, matroid.n_vertices, matroid.rank, self._policy)
        self._run_on(ForestState(self._recs, make_handle(self._arrays)))

    def memory(self) -> int:
        return bytes_of(self._arrays) + bytes_of(self._state.handle)

    def _check(self) -> None:
        check_state(self._arrays, self._is_deleted(np.arange(self.n_arms)))


class ChallengerEngine(AdaptiveEngine):
    """Challenger bounds at all times (DESIGN idea F): for quiet states."""

    name = "challenger"
    _policy = CHALLENGER


class HotColdEngine(AdaptiveEngine):
    """Hot and cold edges at all times (DESIGN ideas A and B): for busy states."""

    name = "hot-cold"
    _policy = HOT_COLD


class PrimEngine(AdaptiveEngine):
    """Dense Prim at all times: for busy states of a few hundred vertices."""

    name = "prim"
    _policy = PRIM
