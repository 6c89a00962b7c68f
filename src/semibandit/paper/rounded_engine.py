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
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from semibandit.arms import ALPHA, BETA, COUNT, TOTAL, FloatArray, IntArray, flat, new_records
from semibandit.compiled.handle import Floats1, Floats2, Ints1, Whole, by_handle, make_handle
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.engines.base import CompiledEngine, Engine, bytes_of
from semibandit.engines.kernels import (
    AnyEngine,
    add_rewards,
    check_feedback,
    engine_select,
    engine_touch,
    engine_touch_all,
    engine_touch_many,
    implement_engine,
)
from semibandit.matroids import Matroid
from semibandit.paper.directions import direction_slopes
from semibandit.paper.hitting_set import HIGH, LOW, SLOPE, HittingSet
from semibandit.paper.locate import MAX_PAIRS, CellFinder, cell_finder, count_pairs, find_cell, no_finder
from semibandit.paper.rounding import Bins, Bounds, Rounding, bin_index

# Columns of the inner engine's records that engines do not read: the bin of each arm's feature.
Q, R = COUNT, TOTAL
NO_BIN = -1.0

# How queries are rounded: dominating points and cells; dominating points at the query's own slope (where a table of
# cells would be too large); features themselves and directions.
BY_CELL, BY_QUERY, BY_DIRECTION = range(3)

# Entries of `Progress.counts`: cells entered, features touched, bins changed.
CELLS, TOUCHES, MOVES = range(3)

NO_ANSWER = -1


class Rules(NamedTuple):
    """What features and queries are rounded to; never changed. `slopes`: the directions of BY_DIRECTION."""

    mode: Whole
    alpha: Bins
    beta: Bins
    finder: CellFinder
    slopes: Floats1


class Progress(NamedTuple):
    """Where a run of rounds stands.

    `cell`: the cell of the last query (its LOW, SLOPE and HIGH). ``answer[: answer_size[0]]`` is the base found last
    while it is still right: `answer_size[0]` is NO_ANSWER once a bin or the direction has changed. `moved` is scratch.
    """

    cell: Floats1
    counts: Ints1
    answer: Ints1
    answer_size: Ints1
    moved: Ints1


class RecordsOnly(NamedTuple):
    """In place of an inner engine's state, for inner engines that are not compiled."""

    recs: Floats2


class PlacingState(NamedTuple):
    """Records and rounded records (`inner.recs`) without an engine."""

    recs: Floats2
    rules: Rules
    progress: Progress
    inner: RecordsOnly


class RoundedState(NamedTuple):
    """`recs`: counts, sums, features of the arms. `inner`: the exact engine over rounded ones."""

    recs: Floats2
    rules: Rules
    progress: Progress
    inner: AnyEngine


@lru_cache(maxsize=4)
def new_rules(bounds: Bounds, epsilon: float, method: str) -> Rules:
    """Rules for `method` "lazy" or "directions". O(W^2 log W) the first time, then shared: nobody writes to them."""
    rounding = Rounding(bounds, epsilon)
    hitting = HittingSet(rounding)
    mode, finder, slopes = BY_QUERY, no_finder(hitting), np.empty(0)
    if method == "directions":
        mode, slopes = BY_DIRECTION, direction_slopes(bounds, epsilon)
    elif count_pairs(hitting) <= MAX_PAIRS:
        mode, finder = BY_CELL, cell_finder(hitting)
    return Rules(mode, rounding.alpha_bins, rounding.beta_bins, finder, slopes)


@kernel
def _enter_direction(slopes, lam, cell):
    """The steepness of queries that the direction of lam serves, written to `cell`. O(log W)."""
    first, last = 0, slopes.shape[0] - 1
    while first < last:
        mid = (first + last) // 2
        if slopes[mid] < lam:
            first = mid + 1
        else:
            last = mid
    cell[LOW] = 0.0 if first == 0 else np.nextafter(slopes[first - 1], np.inf)
    cell[SLOPE] = slopes[first]
    cell[HIGH] = np.inf if first == slopes.shape[0] - 1 else np.nextafter(slopes[first], np.inf)


@kernel
def enter_cell(rules, progress, lam):
    """Find the cell (or direction) of a query that has left the last one. Changes `progress`."""
    cell = progress.cell
    before = cell[SLOPE]
    if rules.mode == BY_CELL:
        find_cell(rules.finder, lam, cell)
    elif rules.mode == BY_DIRECTION:
        _enter_direction(rules.slopes, lam, cell)
    else:
        cell[LOW] = lam
        cell[SLOPE] = lam
        cell[HIGH] = np.nextafter(lam, np.inf)
    progress.counts[CELLS] += 1
    if cell[SLOPE] != before:
        progress.answer_size[0] = NO_ANSWER


@inline_kernel
def cell_slope(state, lam):
    """The slope at which the inner engine answers queries of slope lam. Changes `progress` in a new cell."""
    cell = state.progress.cell
    if not (cell[LOW] <= lam < cell[HIGH]):
        enter_cell(state.rules, state.progress, lam)
    return cell[SLOPE]


@inline_kernel
def _place(state, arm):
    """Round the feature of `arm` into the inner record; whether that changed. O(1)."""
    recs, rounded, rules, progress = state.recs, state.inner.recs, state.rules, state.progress
    alpha, beta = recs[arm, ALPHA], recs[arm, BETA]
    progress.counts[TOUCHES] += 1
    if rules.mode == BY_DIRECTION or alpha == np.inf:
        if rounded[arm, ALPHA] == alpha and rounded[arm, BETA] == beta:
            return False
        rounded[arm, Q] = NO_BIN
        rounded[arm, R] = NO_BIN
    else:
        alphas, betas = rules.alpha.edges, rules.beta.edges
        q, r = int(rounded[arm, Q]), int(rounded[arm, R])
        # Most features stay in their bins, and then no logarithm is needed.
        if q > 1 and r > 1 and alphas[q - 1] < alpha <= alphas[q] and betas[r - 1] < beta <= betas[r]:
            return False
        new_q = bin_index(rules.alpha, alpha)
        new_r = bin_index(rules.beta, beta)
        if new_q == q and new_r == r:
            return False
        rounded[arm, Q] = new_q
        rounded[arm, R] = new_r
        alpha = alphas[new_q]
        beta = betas[new_r]
    rounded[arm, ALPHA] = alpha
    rounded[arm, BETA] = beta
    progress.counts[MOVES] += 1
    progress.answer_size[0] = NO_ANSWER
    return True


@kernel
def place_many(state, arms):
    """`_place` each of at most K `arms`; lists those that changed in `moved` and returns how many."""
    n = 0
    for i in range(arms.shape[0]):
        if _place(state, arms[i]):
            state.progress.moved[n] = arms[i]
            n += 1
    return n


@kernel
def _place_all(state):
    n = 0
    for arm in range(state.recs.shape[0]):
        n += _place(state, arm)
    return n


@inline_kernel
def rounded_touch(state, arm):
    """The record of `arm` changed. O(1) when its bin did not."""
    if _place(state, arm):
        engine_touch(state.inner, arm)


@kernel
def rounded_touch_many(state, arms):
    """The records of `arms` changed: the inner engine is told of those whose bins did, together."""
    most = state.progress.moved.shape[0]
    for begin in range(0, arms.shape[0], most):
        n = place_many(state, arms[begin : min(begin + most, arms.shape[0])])
        if n > 0:
            engine_touch_many(state.inner, state.progress.moved[:n])


@kernel
def rounded_touch_all(state):
    """All records changed."""
    if _place_all(state) > 0:
        engine_touch_all(state.inner)


@inline_kernel
def rounded_select(state, lam, out):
    """FIND-BASE for the query (1, lam), not below the last one. O(D) when neither cell nor bins changed."""
    slope = cell_slope(state, lam)
    answer, size = state.progress.answer, state.progress.answer_size
    if size[0] == NO_ANSWER:
        size[0] = engine_select(state.inner, slope, out)
        for i in range(size[0]):
            answer[i] = out[i]
    else:
        for i in range(size[0]):
            out[i] = answer[i]
    return size[0]


class RoundedEngine(Engine):
    """An exact engine behind the rounding of `rules`: bases that are (1+epsilon)-approximate, not exact.

    Not in the registry, because engines there all give one and the same base. `rounded_engine` makes one: a round of
    it is one kernel call if the inner engine is compiled, a few otherwise.
    """

    name = "rounded"
    monotone_clock = True

    def __init__(
        self, matroid: Matroid, records: npt.NDArray[np.void], placing: PlacingState, inner: Engine
    ) -> None:
        super().__init__(matroid, records)
        self.rules, self.progress, self.inner = placing.rules, placing.progress, inner
        self._placing, self._placing_handle = placing, make_handle(placing)

    def resume(self, cell: FloatArray, counts: IntArray) -> None:
        """Go on in this cell with these counts, as they were saved of another engine's `progress`."""
        self.progress.cell[:] = cell
        self.progress.counts[:] = counts
        self.progress.answer_size[0] = NO_ANSWER

    def base_excluding(self, arms: Any) -> IntArray:
        self.inner._lam = self._slope(self._lam)
        return self.inner.base_excluding(arms)

    def _slope(self, lam: float) -> float:
        return float(by_handle(cell_slope, PlacingState)(self._placing_handle, lam))

    def _remove(self, ids: IntArray) -> None:
        self.inner.delete(ids)
        self.progress.answer_size[0] = NO_ANSWER

    def _restore(self, ids: IntArray) -> None:
        self.inner.insert(ids)
        self.progress.answer_size[0] = NO_ANSWER

    def memory(self) -> int:
        return int(self.inner.memory() + self.records.nbytes + bytes_of(self.rules) + bytes_of(self.progress))

    def _check(self) -> None:
        rounded = self._placing.inner.recs
        again = np.full_like(rounded, NO_BIN)
        again[:, ALPHA] = np.nan
        fresh = PlacingState(self._recs, self.rules, _new_progress(self.matroid), RecordsOnly(again))
        by_handle(_place_all, PlacingState)(make_handle(fresh))
        assert np.array_equal(again, rounded)
        assert np.array_equal(self.deleted, self.inner.deleted)
        self.inner._check()
        size = int(self.progress.answer_size[0])
        if size != NO_ANSWER:
            slope = float(self.progress.cell[SLOPE])
            assert np.array_equal(self.inner._select(slope), self.progress.answer[:size])


implement_engine(
    RoundedState, rounded_select, rounded_touch, touch_many=rounded_touch_many, touch_all=rounded_touch_all
)


class CompiledRoundedEngine(RoundedEngine, CompiledEngine):
    """A rounded engine whose inner engine is compiled."""

    def __init__(
        self, matroid: Matroid, records: npt.NDArray[np.void], placing: PlacingState, inner: Engine
    ) -> None:
        super().__init__(matroid, records, placing, inner)
        assert isinstance(self.inner, CompiledEngine)
        self._run_on(RoundedState(self._recs, self.rules, self.progress, self.inner.any))


class SteppedRoundedEngine(RoundedEngine):
    """A rounded engine whose inner engine runs in Python."""

    def touch(self, arms: IntArray) -> None:
        most = self.n_arms
        for begin in range(0, len(arms), most):
            n = by_handle(place_many, PlacingState)(self._placing_handle, arms[begin : begin + most])
            if n:
                self.inner.touch(self.progress.moved[:n].copy())

    def observe(self, arms: IntArray, rewards: FloatArray, low: float, high: float) -> int:
        code = int(check_feedback(self.n_arms, arms, rewards, low, high))
        if code == 0:
            add_rewards(self._recs, arms, rewards)
            self.touch(arms)
        return code

    def _select(self, lam: float) -> IntArray:
        slope, progress = self._slope(lam), self.progress
        size = int(progress.answer_size[0])
        if size != NO_ANSWER:
            return progress.answer[:size].copy()
        arms = self.inner._select(slope)
        progress.answer[: len(arms)] = arms
        progress.answer_size[0] = len(arms)
        return arms


def _new_progress(matroid: Matroid) -> Progress:
    return Progress(
        cell=np.zeros(3),
        counts=np.zeros(3, dtype=np.int64),
        answer=np.zeros(matroid.rank, dtype=np.int64),
        answer_size=np.array([NO_ANSWER]),
        moved=np.zeros(matroid.n_arms, dtype=np.int64),
    )


def rounded_engine(
    matroid: Matroid,
    records: npt.NDArray[np.void],
    rules: Rules,
    make_inner: Callable[[npt.NDArray[np.void]], Engine],
) -> RoundedEngine:
    """The rounding of `rules` around the exact engine that `make_inner` makes.

    `make_inner` is handed records in which `alpha` and `beta` are rounded and returns the exact engine over them.
    """
    rounded = new_records(matroid.n_arms)
    rounded["count"] = rounded["total"] = NO_BIN
    columns, rounded_columns = (flat(both).reshape(-1, 4) for both in (records, rounded))
    placing = PlacingState(columns, rules, _new_progress(matroid), RecordsOnly(rounded_columns))
    by_handle(_place_all, PlacingState)(make_handle(placing))
    placing.progress.counts[:] = 0
    inner = make_inner(rounded)
    kind = CompiledRoundedEngine if isinstance(inner, CompiledEngine) else SteppedRoundedEngine
    return kind(matroid, records, placing, inner)
