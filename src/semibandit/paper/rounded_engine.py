"""FIND-BASE for queries that only grow, by one exact engine in place of one instance a cell ("lazy cells").

Inside a cell the order of the dominating points is fixed, so an exact engine that holds dom(f_k) and is asked at
the slope of the cell's direction h returns what the paper's A_h returns (docs/theory.md, "Lazy cells"). CUCB's
queries (1, lam_t) pass through the cells from left to right, so the slopes never fall and any engine serves,
kinetic ones included. An arm whose bin did not change costs no update, and a round in the same cell in which no bin
changed has the same base.

The same wrapper serves query rounding: slopes are then taken from a list of directions and features stay as
they are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from semibandit.arms import ALPHA, BETA, COUNT, TOTAL, FloatArray, IntArray, flat, new_records
from semibandit.compiled.handle import Floats1, Floats2, Ints1
from semibandit.compiled.jit import inline_kernel, kernel, njit
from semibandit.engines.base import CompiledEngine, Engine
from semibandit.engines.kernels import (
    add_reward,
    check_feedback,
    engine_select,
    engine_touch,
    implement_engine,
)
from semibandit.matroids import Matroid
from semibandit.paper.directions import direction_slopes
from semibandit.paper.hitting_set import HittingSet
from semibandit.paper.locate import (
    MAX_PAIRS,
    CellFinder,
    cell_finder,
    count_pairs,
    find_neighbours,
    middle_slope,
    no_finder,
)
from semibandit.paper.rounding import Bounds, Rounding, bin_index

# Columns of the inner engine's records that engines do not read: the bin of each arm's feature.
Q, R = COUNT, TOTAL
NO_BIN = -1.0

# Entries of `now`: the current cell, its direction's slope, and the slope of the kept answer.
LOW, SLOPE, HIGH, LAST_SLOPE = range(4)
# Entries of `meta`: cells entered, features touched, bins changed; size of the kept answer (-1: none) and MOVES then.
MODE, CELLS, TOUCHES, MOVES, LAST_SIZE, LAST_MOVES = range(6)
# Values of MODE: dominating points and cells; dominating points at the query's own slope (where a table of cells
# would be too large); features themselves and directions.
BY_CELL, BY_QUERY, BY_DIRECTION = range(3)


class Rules(NamedTuple):
    """What features and queries are rounded to.

    `scale`: alpha_lb, beta_lb and 1 / log(1 + eta), as `bin_index` wants them. `slopes`: the directions of
    BY_DIRECTION. `last`: the answer of the last round.
    """

    finder: CellFinder
    alpha_edges: Floats1
    beta_edges: Floats1
    scale: Floats1
    slopes: Floats1
    now: Floats1
    meta: Ints1
    last: Ints1


@cache
def rounded_state(inner: type) -> Any:
    """The class of states of this engine around an exact engine with states of class `inner`.

    `recs`: counts, sums, features of the arms. `inner`: state of the exact engine over rounded ones.
    """
    made: Any = NamedTuple(  # type: ignore[misc]
        f"Rounded_{inner.__name__}", [("recs", Floats2), ("rules", Rules), ("inner", inner)]
    )
    made.__module__ = inner.__module__
    implement_engine(made, rounded_select, rounded_touch)
    return made


@lru_cache(maxsize=4)
def _tables(bounds: Bounds, epsilon: float, method: str) -> tuple[int, dict[str, Any]]:
    """Mode and fixed parts of `Rules`, shared by the clones of a policy; nobody writes to them. O(W^2 log W)."""
    rounding = Rounding(bounds, epsilon)
    hitting = HittingSet(rounding)
    mode, finder, slopes = BY_QUERY, no_finder(hitting), np.empty(0)
    if method == "directions":
        mode, slopes = BY_DIRECTION, direction_slopes(bounds, epsilon).copy()
    elif count_pairs(hitting) <= MAX_PAIRS:
        mode, finder = BY_CELL, cell_finder(hitting)
    (alpha_lb, inv_log, alpha_edges), (beta_lb, _, beta_edges) = rounding.alpha_table, rounding.beta_table
    return mode, {
        "finder": finder,
        "alpha_edges": alpha_edges.copy(),
        "beta_edges": beta_edges.copy(),
        "scale": np.array([alpha_lb, beta_lb, inv_log]),
        "slopes": slopes,
    }


def new_rules(bounds: Bounds, epsilon: float, method: str, rank: int) -> Rules:
    """Rules for `method` "lazy" or "directions" and bases of `rank` arms. O(W^2 log W) the first time."""
    mode, fixed = _tables(bounds, epsilon, method)
    meta = np.array([mode, 0, 0, 0, -1, 0], dtype=np.int64)
    return Rules(**fixed, now=np.zeros(4), meta=meta, last=np.zeros(rank, dtype=np.int64))


@njit
def enter_cell(rules, lam):
    """Find the cell (or direction) of a query that has left the last one. Changes `now` and `meta`."""
    now, meta = rules.now, rules.meta
    mode = meta[MODE]
    if mode == BY_CELL:
        low, high = find_neighbours(lam, rules.finder)
        now[LOW] = low
        now[HIGH] = high
        now[SLOPE] = middle_slope(low, high)
    elif mode == BY_DIRECTION:
        slopes = rules.slopes
        first, last = 0, slopes.shape[0] - 1
        while first < last:
            mid = (first + last) // 2
            if slopes[mid] < lam:
                first = mid + 1
            else:
                last = mid
        now[LOW] = 0.0 if first == 0 else np.nextafter(slopes[first - 1], np.inf)
        now[HIGH] = np.inf if first == slopes.shape[0] - 1 else np.nextafter(slopes[first], np.inf)
        now[SLOPE] = slopes[first]
    else:
        now[LOW] = lam
        now[HIGH] = np.nextafter(lam, np.inf)
        now[SLOPE] = lam
    meta[CELLS] += 1


@inline_kernel
def _place(recs, inner_recs, rules, arm):
    """Round the feature of `arm` into the inner record; whether that changed. O(1)."""
    alpha, beta = recs[arm, ALPHA], recs[arm, BETA]
    meta = rules.meta
    meta[TOUCHES] += 1
    if meta[MODE] == BY_DIRECTION or alpha == np.inf:
        if inner_recs[arm, ALPHA] == alpha and inner_recs[arm, BETA] == beta:
            return False
        inner_recs[arm, Q] = NO_BIN
        inner_recs[arm, R] = NO_BIN
    else:
        alphas, betas = rules.alpha_edges, rules.beta_edges
        q, r = int(inner_recs[arm, Q]), int(inner_recs[arm, R])
        # Most features stay in their bins, and then no logarithm is needed.
        if q > 1 and r > 1 and alphas[q - 1] < alpha <= alphas[q] and betas[r - 1] < beta <= betas[r]:
            return False
        new_q = bin_index(alpha, rules.scale[0], rules.scale[2], alphas)
        new_r = bin_index(beta, rules.scale[1], rules.scale[2], betas)
        if new_q == q and new_r == r:
            return False
        inner_recs[arm, Q] = new_q
        inner_recs[arm, R] = new_r
        alpha = alphas[new_q]
        beta = betas[new_r]
    inner_recs[arm, ALPHA] = alpha
    inner_recs[arm, BETA] = beta
    meta[MOVES] += 1
    return True


@kernel
def _place_many(recs, inner_recs, rules, arms, moved):
    """`_place` each of `arms`; writes those that changed to `moved` and returns how many."""
    n = 0
    for i in range(arms.shape[0]):
        if _place(recs, inner_recs, rules, arms[i]):
            moved[n] = arms[i]
            n += 1
    return n


@kernel
def _observe(recs, inner_recs, rules, arms, rewards, low, high, moved):
    """Check and count a batch of feedback. Returns (code, number of arms in `moved`)."""
    code = check_feedback(recs.shape[0], arms, rewards, low, high)
    if code != 0:
        return code, 0
    for i in range(arms.shape[0]):
        add_reward(recs, arms[i], rewards[i])
    return 0, _place_many(recs, inner_recs, rules, arms, moved)


@inline_kernel
def rounded_touch(state, arm):
    """The record of `arm` changed. O(1) when its bin did not."""
    if _place(state.recs, state.inner.recs, state.rules, arm):
        engine_touch(state.inner, arm)


@inline_kernel
def rounded_select(state, lam, out):
    """FIND-BASE for the query (1, lam), not below the last one. O(D) when neither cell nor bins changed."""
    now, meta, last = state.rules.now, state.rules.meta, state.rules.last
    if not (now[LOW] <= lam < now[HIGH]):
        enter_cell(state.rules, lam)
    n = meta[LAST_SIZE]
    if n >= 0 and meta[LAST_MOVES] == meta[MOVES] and now[LAST_SLOPE] == now[SLOPE]:
        for i in range(n):
            out[i] = last[i]
        return n
    n = engine_select(state.inner, now[SLOPE], out)
    for i in range(n):
        last[i] = out[i]
    meta[LAST_SIZE] = n
    meta[LAST_MOVES] = meta[MOVES]
    now[LAST_SLOPE] = now[SLOPE]
    return n


class RoundedEngine(Engine):
    """An exact engine behind the rounding of `rules`: bases that are (1+epsilon)-approximate, not exact.

    Not in the registry, because engines there all give one and the same base. `make_inner` is handed records
    in which `alpha` and `beta` are rounded and returns the exact engine over them.
    """

    name = "rounded"
    monotone_clock = True

    def __init__(
        self,
        matroid: Matroid,
        records: npt.NDArray[np.void],
        rules: Rules,
        make_inner: Callable[[npt.NDArray[np.void]], Engine],
    ) -> None:
        super().__init__(matroid, records)
        own = new_records(matroid.n_arms)
        own["count"] = own["total"] = NO_BIN
        self._inner_recs: FloatArray = flat(own).reshape(-1, 4)
        self.rules = rules
        self._moved = np.zeros(matroid.n_arms, dtype=np.int64)
        arms = np.arange(matroid.n_arms, dtype=np.int64)
        _place_many(self._recs, self._inner_recs, rules, arms, self._moved)
        rules.meta[[TOUCHES, MOVES]] = 0
        self.inner: Engine = make_inner(own)
        # None when the inner engine is not compiled: rounds then run one by one.
        self._state: Any = None
        if isinstance(self.inner, CompiledEngine):
            self._state = rounded_state(cast(Any, type(self.inner._state)))(
                self._recs, rules, self.inner._state
            )

    def _room(self, n: int) -> IntArray:
        return self._moved if n <= len(self._moved) else np.zeros(n, dtype=np.int64)

    def touch(self, arms: IntArray) -> None:
        moved = self._room(len(arms))
        n = _place_many(self._recs, self._inner_recs, self.rules, arms, moved)
        if n:
            self.inner.touch(moved[:n])

    def observe(self, arms: IntArray, rewards: FloatArray, low: float, high: float) -> int:
        moved = self._room(len(arms))
        code, n = _observe(self._recs, self._inner_recs, self.rules, arms, rewards, low, high, moved)
        if n:
            self.inner.touch(moved[:n])
        return int(code)

    def _select(self, lam: float) -> IntArray:
        now, meta, last = self.rules.now, self.rules.meta, self.rules.last
        slope = self._enter(lam)
        n = int(meta[LAST_SIZE])
        if n >= 0 and meta[LAST_MOVES] == meta[MOVES] and now[LAST_SLOPE] == slope:
            return last[:n].copy()
        arms = self.inner._select(slope)
        last[: len(arms)] = arms
        meta[LAST_SIZE], meta[LAST_MOVES], now[LAST_SLOPE] = len(arms), meta[MOVES], slope
        return arms

    def _enter(self, lam: float) -> float:
        """The slope to ask the inner engine at."""
        now = self.rules.now
        if not (now[LOW] <= lam < now[HIGH]):
            enter_cell(self.rules, lam)
        self.inner._lam = float(now[SLOPE])
        return self.inner._lam

    def base_excluding(self, arms: Any) -> IntArray:
        self._enter(self._lam)
        return self.inner.base_excluding(arms)

    def _remove(self, ids: IntArray) -> None:
        self.inner.delete(ids)
        self.rules.meta[LAST_SIZE] = -1

    def _restore(self, ids: IntArray) -> None:
        self.inner.insert(ids)
        self.rules.meta[LAST_SIZE] = -1

    def memory(self) -> int:
        finder = self.rules.finder
        table = finder.offset.nbytes + finder.pair.nbytes + self.rules.slopes.nbytes
        return int(self.inner.memory() + self.records.nbytes + self._moved.nbytes + table)

    def _check(self) -> None:
        inner, rules = self._inner_recs, self.rules
        again, counters = inner.copy(), rules.meta.copy()
        again[:, Q] = again[:, R] = NO_BIN
        again[:, ALPHA] = np.nan
        arms = np.arange(self.n_arms, dtype=np.int64)
        _place_many(self._recs, again, rules, arms, np.zeros(self.n_arms, dtype=np.int64))
        rules.meta[:] = counters
        assert np.array_equal(again, inner)
        assert np.array_equal(self.deleted, self.inner.deleted)
        self.inner._check()
