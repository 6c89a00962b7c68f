"""Indices that are not ``mean + lam / sqrt(N)``: computed arm by arm for one level of the clock.

A kinetic engine follows weights that are linear in lam. KL-UCB, UCB-V and clipped indices are not, so they are written
into the records as plain weights (beta = 0).

Under a staircase clock all K of them are computed when the level changes, some 150 times in 10^6 rounds, and only those
of played arms in between. Under the exact clock the level changes every round, but indices never fall with the level:
the index at a somewhat higher level is a bound that holds for many rounds. An engine keeps the best base of the bounds;
bounds of its arms are replaced by what their index is now, and when all are, it is the best base of the indices too,
with the same ties. So few indices are computed a round.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from semibandit.arms import ALPHA, BETA, COUNT, TOTAL, FloatArray, IntArray
from semibandit.compiled.handle import Flags1, Floats1, Ints1, Number, Whole, by_handle
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.engines.base import bytes_of
from semibandit.engines.clock import AHEAD, CURRENT, ETA, SCALE, stair_at_least, tick
from semibandit.engines.kernels import engine_select, engine_touch, engine_touch_all, engine_touch_many
from semibandit.errors import ParameterError
from semibandit.policies.decisions import room_for
from semibandit.policies.rounds import CompiledRounds, implement_rounds
from semibandit.policies.state import array_of, number_of, whole_of

UCB, CLIPPED, UCB_V, KL = 0, 1, 2, 3

# Of `meta`: what the weights in the records are (0: not yet any, indices at the level, bounds), how often they were
# all written, how many arms are listed; and, where bounds were of no use, for how many rounds they are left aside and
# for how many they were last. Of `now`: the level of the round, and that of the bounds.
WHAT, WRITTEN, LISTED, ASIDE, LAST_ASIDE = range(5)
INDICES, BOUNDS = 1, 2
LEVEL, BOUND_LEVEL = 0, 1

_NEWTON = 60

# How many rounds bounds hold at least, how often the engine is asked with better bounds before all indices are
# computed, how many arms for each arm played keep their index from round to round, and for how many rounds bounds are
# left aside at most.
_AHEAD, _TRIES, _KEEP, _MOST_ASIDE = 16, 8, 2, 64

# How many arms are remembered while all indices are written; a power of two.
_ALIKE = 256


class IndexRounds(NamedTuple):
    """`clock` tells the level (`engines.clock`; for KL its scale is c of c log log t).

    `squares`: sums of squared rewards, for UCB-V only. `waiting`: plays of each arm that wait for feedback, empty as
    long as none ever did. `first`: indices of arms never seen, or empty. `alike`: see `write_indices`. The rest
    is empty under a staircase: `bound`, the index at the level of the bounds; `exact_at`, the level at which the weight
    in the records is the index of the arm (else -1); the arms with such a weight, listed in no order.
    """

    kind: Whole
    low: Number
    high: Number
    clock: Floats1
    squares: Floats1
    waiting: Ints1
    first: Floats1
    alike: Ints1
    bound: Floats1
    exact_at: Floats1
    listed: Ints1
    is_listed: Flags1
    meta: Ints1
    now: Floats1


@inline_kernel
def kl_upper(p, d):
    """The largest q in [p, 1] with kl(p, q) <= d, for Bernoulli distributions. About six Newton steps.

    kl(p, .) is convex and increases to the right of p, so Newton's method from a point beyond the root decreases to it.
    Two bounds give such a point: Pinsker's, and 1 - q >= exp(-(d + h(p)) / (1 - p)) with the entropy h.
    """
    if p >= 1.0:
        return 1.0
    if d <= 0.0:
        return max(p, 0.0)
    if p <= 0.0:
        return -math.expm1(-d)
    h = -p * math.log(p) - (1.0 - p) * math.log1p(-p)
    q = min(p + math.sqrt(0.5 * d), -math.expm1(-(d + h) / (1.0 - p)))
    for _ in range(_NEWTON):
        if q >= 1.0:
            return 1.0
        gap = -h - p * math.log(q) - (1.0 - p) * math.log1p(-q) - d
        step = gap * q * (1.0 - q) / (q - p) if q > p else 0.0
        if not step > 1e-16:
            break
        q -= step
    return max(q, p)


@inline_kernel
def _index_of(own, recs, arm, level):
    """The index of an arm at `level`: lam of CUCB's clock, or the right-hand side of the condition on N kl for KL."""
    seen = recs[arm, COUNT]
    n = seen + own.waiting[arm] if own.waiting.shape[0] else seen
    if n <= 0.0:
        return own.first[arm] if own.first.shape[0] else np.inf
    mean = recs[arm, TOTAL] / seen if seen > 0.0 else own.high
    if own.kind == CLIPPED:
        return min(own.high, mean + level / math.sqrt(n))
    span = own.high - own.low
    if own.kind == UCB_V:
        variance = max(0.0, own.squares[arm] / seen - mean * mean) if seen > 0.0 else 0.25 * span * span
        lam = level / span
        return mean + lam * math.sqrt(2.0 * variance / n) + 3.0 * span * lam * lam / n
    p = min(1.0, max(0.0, (mean - own.low) / span))
    return own.low + span * kl_upper(p, level / n)


@inline_kernel
def _exact_level(own, t):
    """The level of round t without any stairs. O(1)."""
    log = math.log(float(t))
    if own.kind != KL:
        return math.sqrt(own.clock[SCALE] * (log + own.clock[AHEAD]))
    return log + own.clock[SCALE] * math.log(max(1.0, log))


@inline_kernel
def _level_of_round(own, t):
    """The level of round t. Changes the clock. O(1)."""
    if own.kind != KL:
        return tick(own.clock, t)
    clock = own.clock
    level = _exact_level(own, t)
    if level > clock[CURRENT]:
        # Levels are squares of widths, so a stair of levels is two of widths.
        eta = clock[ETA]
        clock[CURRENT] = level if eta <= 0.0 else stair_at_least(level, eta * (2.0 + eta))
    return clock[CURRENT]


@inline_kernel
def _know_the_same(own, recs, arm, other):
    """Whether two arms have the same index at any level, because all that it is made of is the same."""
    same = recs[arm, COUNT] == recs[other, COUNT] and recs[arm, TOTAL] == recs[other, TOTAL]
    same = same and (own.first.shape[0] == 0 or recs[arm, COUNT] > 0.0)
    same = same and (own.squares.shape[0] == 0 or own.squares[arm] == own.squares[other])
    return same and (own.waiting.shape[0] == 0 or own.waiting[arm] == own.waiting[other])


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
            if other >= 0 and _know_the_same(own, recs, arm, other):
                recs[arm, ALPHA] = recs[other, ALPHA]
            else:
                recs[arm, ALPHA] = _index_of(own, recs, arm, level)
                alike[place] = arm
            recs[arm, BETA] = 0.0
        own.meta[WHAT] = INDICES
        own.meta[WRITTEN] += 1
        own.now[LEVEL] = level
        engine_touch_all(engine)
    return float(own.meta[WRITTEN])


@kernel
def _write_bounds(own, engine, t, n_played):
    """Write bounds into the records that hold for so many rounds that they cost O(n_played) indices a round. O(K)."""
    recs = engine.recs
    above = _exact_level(own, t + _AHEAD + recs.shape[0] // (2 * n_played))
    for arm in range(recs.shape[0]):
        bound = _index_of(own, recs, arm, above)
        own.bound[arm] = bound
        own.exact_at[arm] = -1.0
        own.is_listed[arm] = False
        recs[arm, ALPHA] = bound
        recs[arm, BETA] = 0.0
    own.meta[WHAT] = BOUNDS
    own.meta[WRITTEN] += 1
    own.meta[LISTED] = 0
    own.now[BOUND_LEVEL] = above
    engine_touch_all(engine)


@kernel
def _write_index(own, engine, arm):
    """Let the weight of `arm` be its index at the level of the round; whether it was another one. O(1)."""
    own.exact_at[arm] = own.now[LEVEL]
    if not own.is_listed[arm]:
        own.is_listed[arm] = True
        own.listed[own.meta[LISTED]] = arm
        own.meta[LISTED] += 1
    index = _index_of(own, engine.recs, arm, own.now[LEVEL])
    if index == engine.recs[arm, ALPHA]:
        return False
    engine.recs[arm, ALPHA] = index
    engine_touch(engine, arm)
    return True


@kernel
def _follow_level(own, engine, level, n_played):
    """Bring the weights of listed arms to a new level: their indices, or bounds again if they are many."""
    own.now[LEVEL] = level
    n = own.meta[LISTED]
    if n <= _KEEP * n_played + 8:
        for i in range(n):
            _write_index(own, engine, own.listed[i])
        return
    for i in range(n):
        arm = own.listed[i]
        own.is_listed[arm] = False
        own.exact_at[arm] = -1.0
        engine.recs[arm, ALPHA] = own.bound[arm]
        engine_touch(engine, arm)
    own.meta[LISTED] = 0


@inline_kernel
def _index_prepare(own, engine, t):
    return write_indices(own, engine, _level_of_round(own, t))


@kernel
def _settle(own, engine, arms, level):
    """Replace bounds of `arms` by indices; whether none was another number."""
    settled = True
    for j in range(arms.shape[0]):
        if own.exact_at[arms[j]] != level and _write_index(own, engine, arms[j]):
            settled = False
    return settled


@kernel
def _index_select(own, engine, t, out):
    """The best base by index. Under the exact clock expected to compute the indices of a few times D arms.

    Bounds are of no use where very many arms share the largest one, as in the first rounds of rewards that are 0 or 1;
    all indices are then computed, for more and more rounds before bounds are tried again.
    """
    level = _level_of_round(own, t)
    meta = own.meta
    bounded = own.bound.shape[0] > 0 and meta[ASIDE] == 0
    if not bounded:
        meta[ASIDE] = max(0, meta[ASIDE] - 1)
        write_indices(own, engine, level)
    else:
        if own.meta[WHAT] != BOUNDS or level > own.now[BOUND_LEVEL]:
            _write_bounds(own, engine, t, out.shape[0])
        _follow_level(own, engine, level, out.shape[0])
    tries = 0
    while True:
        # In one place, so that the engine is compiled into it once.
        n = engine_select(engine, float(own.meta[WRITTEN]), out)
        tries += 1
        if not bounded:
            return n
        if _settle(own, engine, out[:n], level):
            meta[LAST_ASIDE] = 0
            return n
        if tries == _TRIES:
            bounded = False
            meta[LAST_ASIDE] = meta[ASIDE] = min(max(4, 2 * meta[LAST_ASIDE]), _MOST_ASIDE)
            write_indices(own, engine, level)


@inline_kernel
def _index_learn(own, engine, arms, rewards, n):
    """Count rewards and their squares, then write the weight of each arm. Sums, so that order does not matter."""
    recs = engine.recs
    for j in range(n):
        recs[arms[j], COUNT] += 1.0
        recs[arms[j], TOTAL] += rewards[j]
        if own.squares.shape[0]:
            own.squares[arms[j]] += rewards[j] * rewards[j]
    for j in range(n):
        _rewrite(own, recs, arms[j])


@inline_kernel
def _rewrite(own, recs, arm):
    """Write the weight of an arm of which something else is known now. O(1)."""
    if own.meta[WHAT] == BOUNDS:
        own.bound[arm] = _index_of(own, recs, arm, own.now[BOUND_LEVEL])
        own.exact_at[arm] = -1.0
        recs[arm, ALPHA] = own.bound[arm]
    else:
        recs[arm, ALPHA] = _index_of(own, recs, arm, own.now[LEVEL])
    recs[arm, BETA] = 0.0


@inline_kernel
def _wait_in_rounds(own, engine, arms, change):
    """Count `change` more plays that wait of each arm, and write their weights. O(len(arms))."""
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
            bound=np.zeros(n_bounds),
            exact_at=np.zeros(n_bounds),
            listed=np.zeros(n_bounds, dtype=np.int64),
            is_listed=np.zeros(n_bounds, dtype=np.bool_),
            meta=np.zeros(5, dtype=np.int64),
            now=np.zeros(2),
        )

    @property
    def level(self) -> float:
        """The level of the last round."""
        return float(self.own.now[LEVEL])

    @property
    def query(self) -> float:
        """What the engine is asked at."""
        return float(self.own.meta[WRITTEN])

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
        self.own.meta[WRITTEN] = whole_of(state, "moves")

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
