"""Indices that are not ``mean + lam / sqrt(N)``: computed arm by arm for one level of the clock.

A kinetic engine follows weights that are linear in lam. KL-UCB, UCB-V and clipped indices are not, so they are written
into the records as plain weights (beta = 0).

Under a staircase clock all K of them are computed when the level changes, some 150 times in 10^6 rounds, and only those
of played arms in between. Under the exact clock the level changes every round, but indices never fall with the level,
and the order of two changes rarely. Where the same is known of many arms (few plays, rewards of 0 or 1) they are looked
at together (`policies.index.lots`, `places`); else the weights are bounds that hold for many rounds
(`policies.index.deadlines`).
Either way the base is the best one by index, with the same ties, and few indices are computed a round.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from semibandit.arms import ALPHA, BETA, COUNT, TOTAL, FloatArray, IntArray
from semibandit.compiled.handle import by_handle
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.engines.base import bytes_of
from semibandit.engines.clock import ETA
from semibandit.engines.kernels import engine_select, engine_touch_all, engine_touch_many
from semibandit.errors import ParameterError
from semibandit.policies.decisions import room_for
from semibandit.policies.index.deadlines import (
    change_bound,
    check_bounds,
    follow_bounds,
    new_bounds,
    note_answer,
    settle_bounds,
)
from semibandit.policies.index.formulas import (
    ASIDE,
    BOUNDS,
    CLIPPED,
    INDICES,
    LAST_ASIDE,
    LEVEL,
    PLACES,
    UCB,
    UCB_V,
    WHAT,
    WRITTEN,
    IndexRounds,
    index_of,
    know_the_same,
    level_of_round,
)
from semibandit.policies.index.lots import LOT, check_lots, join_lot, leave_lot, new_lots
from semibandit.policies.index.places import follow_lots, set_right, stand_right
from semibandit.policies.rounds import CompiledRounds, implement_rounds
from semibandit.policies.state import array_of, number_of, whole_of
from semibandit.policies.straight import Place

# How often the engine is asked with better bounds at least, before all indices are computed (up to the price of that),
# and for how many rounds bounds are left aside at most.
_TRIES, _MOST_ASIDE = 32, 64

# How many arms are remembered while all indices are written; a power of two.
_ALIKE = 256


@kernel
def write_indices(own, engine, level):
    """Write the index of every arm into the records; the query to ask the engine at. O(K) if they are other ones.

    Weights do not depend on the query, because beta = 0; that it counts up tells engines which keep something
    for a step of the clock that a new one has begun.
    """
    if own.meta[WHAT] != INDICES or own.now[LEVEL] != level:
        recs = engine.recs
        # Of many arms the same may be known (few plays, rewards of 0 or 1): arms with a computed index are remembered.
        alike, span = own.alike, own.high - own.low
        alike[:] = -1
        for arm in range(recs.shape[0]):
            n = recs[arm, COUNT]
            place = (np.int64(n) * 37 + np.int64((recs[arm, TOTAL] - n * own.low) / span)) & (_ALIKE - 1)
            other = alike[place]
            if other >= 0 and know_the_same(own, recs, arm, other):
                recs[arm, ALPHA] = recs[other, ALPHA]
            else:
                recs[arm, ALPHA] = index_of(own, recs, arm, level)
                alike[place] = arm
            recs[arm, BETA] = 0.0
        own.meta[WHAT] = INDICES
        own.meta[WRITTEN] += 1
        own.now[LEVEL] = level
        engine_touch_all(engine)
    return float(own.meta[WRITTEN])


@inline_kernel
def _index_prepare(own, engine, t):
    return write_indices(own, engine, level_of_round(own, t))


@kernel
def _index_select(own, engine, t, out):
    """The best base by index. Under the exact clock expected to compute the indices of a few times D arms or lots.

    Bounds are of no use where very many arms share the largest one and yet there are too many lots of arms;
    all indices are then computed, for more and more rounds before bounds are tried again.
    """
    level = level_of_round(own, t)
    meta = own.meta
    placed = bounded = False
    if own.bounds.listed.shape[0] > 0:
        before = own.now[LEVEL]
        own.now[LEVEL] = level
        placed = follow_lots(own, engine, t, out.shape[0])
        bounded = not placed and meta[ASIDE] == 0
        if bounded:
            follow_bounds(own, engine, t, out.shape[0])
        elif not placed:
            own.now[LEVEL] = before
    if not bounded and not placed:
        meta[ASIDE] = max(0, meta[ASIDE] - 1)
        write_indices(own, engine, level)
    tries, most = 0, _TRIES + own.bounds.listed.shape[0] // (8 * out.shape[0])
    while True:
        # In one place, so that the engine is compiled into it once.
        n = engine_select(engine, float(own.meta[WRITTEN]), out)
        tries += 1
        if placed:
            if stand_right(own, engine.recs, out[:n]):
                return n
            set_right(own, engine, tries)
            continue
        if not bounded:
            return n
        if settle_bounds(own, engine, out[:n]):
            note_answer(own, out[:n])
            meta[LAST_ASIDE] = 0
            return n
        if tries == most:
            bounded = False
            meta[LAST_ASIDE] = meta[ASIDE] = min(max(4, 2 * meta[LAST_ASIDE]), _MOST_ASIDE)
            write_indices(own, engine, level)


@inline_kernel
def _index_learn(own, engine, arms, rewards, n):
    """Count rewards and their squares, then write the weight of each arm. Sums, so that order does not matter."""
    recs = engine.recs
    if own.meta[WHAT] == PLACES:
        for j in range(n):
            leave_lot(own, arms[j])
    for j in range(n):
        recs[arms[j], COUNT] += 1.0
        recs[arms[j], TOTAL] += rewards[j]
        if own.squares.shape[0]:
            own.squares[arms[j]] += rewards[j] * rewards[j]
    for j in range(n):
        _rewrite(own, recs, arms[j])


@inline_kernel
def _rewrite(own, recs, arm):
    """Write the weight of an arm of which something else is known now; it is in no lot. O(1)."""
    if own.meta[WHAT] == PLACES:
        if own.lots.of[arm, LOT] < 0:
            join_lot(own, recs, arm)
        return
    if own.meta[WHAT] == BOUNDS:
        change_bound(own, recs, arm)
    else:
        recs[arm, ALPHA] = index_of(own, recs, arm, own.now[LEVEL])
    recs[arm, BETA] = 0.0


@inline_kernel
def _wait_in_rounds(own, engine, arms, change):
    """Count `change` more plays that wait of each arm, and write their weights. O(len(arms))."""
    if own.meta[WHAT] == PLACES:
        for i in range(arms.shape[0]):
            leave_lot(own, arms[i])
    if change != 0:
        for i in range(arms.shape[0]):
            own.waiting[arms[i]] += change
    for i in range(arms.shape[0]):
        _rewrite(own, engine.recs, arms[i])
    engine_touch_many(engine, arms)


implement_rounds(IndexRounds, prepare=_index_prepare, select=_index_select, learn=_index_learn)


class NonlinearIndex:
    """Indices of one kind over the records of a policy, and the state of the kernels that keep them."""

    def __init__(
        self, kind: int, n_arms: int, reward_range: tuple[float, float], clock: FloatArray, first: FloatArray
    ) -> None:
        # A staircase, or a schedule of the user's, writes all indices at once.
        n_bounds = n_arms if clock[ETA] <= 0.0 else 0
        self.n_arms = n_arms
        self.own = IndexRounds(
            kind=kind,
            low=reward_range[0],
            high=reward_range[1],
            clock=clock,
            squares=np.zeros(n_arms if kind == UCB_V else 0),
            waiting=np.zeros(0, dtype=np.int64),
            first=first,
            alike=np.zeros(_ALIKE, dtype=np.int64),
            meta=np.zeros(4, dtype=np.int64),
            now=np.zeros(1),
            bounds=new_bounds(n_bounds),
            lots=new_lots(n_bounds),
        )

    @property
    def level(self) -> float:
        """The level of the last round."""
        return float(self.own.now[LEVEL])

    @property
    def query_at(self) -> Place:
        """Where stands what the engine is asked at."""
        return self.own.meta, WRITTEN

    def write(self, aside: CompiledRounds, level: float) -> float:
        """`write_indices` at a level of the caller's."""
        enter = by_handle(write_indices, *aside.kinds).entry
        return float(enter(aside.own_handle, aside.engine_handle, level))

    def reset(self, ids: IntArray) -> None:
        """Forget these arms, whose records are those of arms never seen; `rewrite_in_index` is to follow. O(n)."""
        if self.own.squares.size:
            self.own.squares[ids] = 0.0

    def copy_from(self, other: NonlinearIndex) -> None:
        """Take over what `other` knows of the arms it has; all weights are written anew."""
        self.own.squares[: len(other.own.squares)] = other.own.squares
        if other.own.waiting.size:
            self.own = self.own._replace(waiting=room_for(other.own.waiting, self.n_arms))
        self.own.now[:] = other.own.now
        self.own.meta[WRITTEN] = other.own.meta[WRITTEN]

    def state(self) -> dict[str, Any]:
        """What `set_state` needs."""
        return {"squares": self.own.squares, "level": self.level, "moves": int(self.own.meta[WRITTEN])}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` tells; all weights are written anew."""
        self.own.squares[:] = array_of(state, "squares", np.float64, self.own.squares.size)
        self.own.now[LEVEL] = number_of(state, "level")
        self.own.meta[:] = 0
        self.own.lots.meta[:] = 0
        self.own.meta[WRITTEN] = whole_of(state, "moves")

    def check(self, recs: FloatArray) -> None:
        """Assert all invariants. O(K)."""
        if self.own.meta[WHAT] == PLACES:
            check_lots(self.own, recs)
        elif self.own.meta[WHAT] == BOUNDS:
            check_bounds(self.own, recs)

    def memory(self) -> int:
        """Bytes held besides the records."""
        return bytes_of(self.own)


def index_kind(index: Any, clip: bool) -> int:
    """UCB, CLIPPED or UCB_V for CUCB's options, or a `ParameterError`."""
    if index not in ("ucb", "ucb-v"):
        raise ParameterError(f"index = {index!r} is not known: 'ucb' or 'ucb-v'")
    if index == "ucb-v":
        if clip:
            raise ParameterError("clip = True goes with index = 'ucb', not with 'ucb-v'")
        return UCB_V
    return CLIPPED if clip else UCB


def wait_in_index(policy: Any, arms: IntArray, change: int) -> None:
    """`Policy._wait` of a policy whose weights are its `NonlinearIndex`: in N of the index. O(len(arms))."""
    index = policy._index
    if len(index.own.waiting) < policy.n_arms:
        index.own = index.own._replace(waiting=room_for(index.own.waiting, policy.n_arms))
        policy._open()
    rewrite_in_index(policy, arms, change)


def rewrite_in_index(policy: Any, arms: IntArray, change: int = 0) -> None:
    """Write the weights of these arms, of which something else is known now: their indices or bounds. O(len(arms)).

    Records of arms that were reset may hold a prior's mean and width, which an engine must not take for weights.
    """
    rounds = policy._whole if policy._whole is not None else policy._aside
    enter = by_handle(_wait_in_rounds, *rounds.kinds).entry
    enter(rounds.own_handle, rounds.engine_handle, arms, change)
    if policy._whole is None:
        policy._hand_on()
