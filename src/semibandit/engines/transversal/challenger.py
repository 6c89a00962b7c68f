"""Challenger bounds for transversal matroids (DESIGN idea F): nothing is done until a bound is passed.

The base is kept matched to right nodes. For each base arm h a bound ub(h) is kept, not lighter than the best
outsider that could replace it. While h is not lighter than ub(h), playing h costs O(1). When it is:

- *search*: walk alternating paths backwards from h's right node. Exactly the outsiders next to a right node
  reached that way can replace h, and each right node knows its heaviest outsider (`transversal_tops`), so the walk
  sees edges of base arms only: O(D + edges of the base). Exchange, or lower ub(h) to the best challenger found.
- *re-solve*: when many bounds are passed at once, greedy over base arms and the tops of right nodes. A right node
  whose top is refused is dead, with all that the refused arm reaches, so at most D + n_right arms are looked at
  whatever K is. Base arms keep their right node unless an entrant took it. The arm that kills a right node is the best
  challenger of the arm matched there, so all bounds come out exact at no cost.

Why bounds survive an exchange of e for its best challenger f: an outsider g that can replace h only now could
replace e before, and f could replace h; so g <= f <= ub(h). And f's challengers were e's, so ub(f) = f holds.
An outsider that rises or appears first lifts the bounds along the alternating paths from it.

All comparisons are of (weight, id), so ties are decided as by a full sort. At a new lam all tournaments are played
anew: O(edges), a staircase clock is wanted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from semibandit.arms import ALPHA, BETA, IntArray
from semibandit.compiled.handle import Floats2, Ints1, make_handle
from semibandit.compiled.jit import kernel
from semibandit.compiled.sorting import sort_ids_in_place
from semibandit.engines.base import CompiledEngine
from semibandit.engines.kernels import implement_engine
from semibandit.engines.transversal.check import check_challenger
from semibandit.engines.transversal.matching import (
    ABSENT,
    BOUND,
    BOUND_ARM,
    CAME,
    CROWDED,
    IN_CAME,
    IN_PASSED,
    IN_RISEN,
    IN_SORTED,
    MATE,
    N_BASE,
    N_CAME,
    N_PASSED,
    N_RISEN,
    N_SORTED,
    OUTSIDER,
    PASSED,
    QUEUE,
    RELIST,
    RISEN,
    SLOTS,
    SORTED,
    STALE,
    augment,
    beats,
    enter,
    leave,
    new_challenger_arrays,
    open_challenger,
    rotate,
    search,
    unseat,
    weigh,
)
from semibandit.engines.transversal.resolve import tops_resolve
from semibandit.engines.transversal.tops import SLOT, build_tops, inner, show
from semibandit.matroids import Matroid, Transversal

# With more bounds than this passed in one round, one re-solve is cheaper than a search each (measured).
MOST_SEARCHES = 24


@inner
def _note(flag, lists, meta, arm, bit, row, count):
    """Put `arm` on a list once; a full list means that the next round re-solves. O(1)."""
    if flag[arm] & bit:
        return
    n = meta[count]
    if n == lists.shape[1]:
        meta[CROWDED] = 1
        return
    flag[arm] |= bit
    lists[row, n] = arm
    meta[count] = n + 1


@inner
def _rise(handle, arm):
    """Outsider `arm` rose or appeared: let it in if it can be matched besides the base, else lift the bounds of all
    base arms that it could replace. O(n_right / 64) for each of them."""
    state = open_challenger(handle)
    right, weights, lists = state.right, state.weights, state.lists
    n = augment(handle, arm)
    if n < 0:
        enter(handle, arm)
    weight = weigh(state.recs, state.lam, arm)
    for i in range(n):
        r = lists[QUEUE, i]
        if beats(weight, arm, weights[BOUND, r], right[r, BOUND_ARM]):
            weights[BOUND, r] = weight
            right[r, BOUND_ARM] = arm
            mate = right[r, MATE]
            if beats(weight, arm, weigh(state.recs, state.lam, mate), mate):
                _note(state.flag, lists, state.meta, mate, IN_PASSED, PASSED, N_PASSED)


@inner
def _settle_risen(handle):
    """Make all bounds valid again after outsiders rose. An exchange before that could break them."""
    state = open_challenger(handle)
    for i in range(state.meta[N_RISEN]):
        arm = state.lists[RISEN, i]
        state.flag[arm] &= ~np.uint8(IN_RISEN)
        if state.host[arm] == OUTSIDER:
            _rise(handle, arm)
    state.meta[N_RISEN] = 0


@inner
def _defend(handle, arm, gone):
    """Base arm `arm` is lighter than its bound, or gone: exchange it for its best challenger or tighten the bound.

    Returns whether it was exchanged. One search, and O(degree log K) for an exchange.
    """
    state = open_challenger(handle)
    right, weights = state.right, state.weights
    start = np.int64(state.host[arm])
    at = search(
        state.bits,
        right,
        state.lists,
        state.meta,
        state.node_weight,
        state.node_slot,
        state.arm_of,
        start,
    )
    rival, rival_weight = np.int64(-1), -np.inf
    if at >= 0:
        rival, rival_weight = (
            np.int64(state.arm_of[state.node_slot[at]]),
            state.node_weight[at],
        )
        if gone or beats(rival_weight, rival, weigh(state.recs, state.lam, arm), arm):
            rotate(handle, rival, at, start)
            enter(handle, rival)
            return True
    weights[BOUND, start] = rival_weight
    right[start, BOUND_ARM] = rival
    return False


@inner
def _reweigh(recs, host, indptr, edge, leaf, lam):
    """Weights of all outsiders at lam. Changes `leaf`. O(edges).

    Arm by arm: each right node's slots are then written from left to right, while records are read only once.
    """
    for arm in range(host.shape[0]):
        weight = recs[arm, ALPHA] + lam * recs[arm, BETA] if host[arm] == OUTSIDER else -np.inf
        for p in range(indptr[arm], indptr[arm + 1]):
            leaf[edge[p, SLOT]] = weight


@inner
def _write_sorted(host, flag, right, lists, meta, out):
    """Bring the sorted answer up to date and copy it to `out`. O(D + s log s) for s arms that came in."""
    n_old, n_came = meta[N_SORTED], meta[N_CAME]
    if n_came == 0 and n_old == meta[N_BASE] and meta[RELIST] == 0:
        for i in range(n_old):
            out[i] = lists[SORTED, i]
        return n_old
    came = lists[CAME]
    m = 0
    for i in range(n_came):
        arm = came[i]
        flag[arm] &= ~np.uint8(IN_CAME)
        if host[arm] >= 0:
            flag[arm] |= IN_SORTED
            came[m] = arm
            m += 1
    sort_ids_in_place(came, m)
    n, j = 0, 0
    for i in range(n_old):
        arm = lists[SORTED, i]
        if host[arm] < 0 or meta[RELIST] != 0:
            flag[arm] &= ~np.uint8(IN_SORTED)
            continue
        while j < m and came[j] < arm:
            out[n] = came[j]
            n += 1
            j += 1
        out[n] = arm
        n += 1
    while j < m and meta[RELIST] == 0:
        out[n] = came[j]
        n += 1
        j += 1
    if meta[RELIST] != 0:
        for r in range(right.shape[0]):
            if right[r, MATE] >= 0:
                flag[right[r, MATE]] |= IN_SORTED
                out[n] = right[r, MATE]
                n += 1
        sort_ids_in_place(out, n)
    for i in range(n):
        lists[SORTED, i] = out[i]
    meta[N_SORTED] = n
    meta[N_CAME] = 0
    meta[RELIST] = 0
    return n


@inner
def challenger_select(handle, lam, out):
    """The base at lam. O(D) plus a search for each bound passed, or one re-solve; O(edges) at a new lam."""
    state = open_challenger(handle)
    meta, lists, flag, host = state.meta, state.lists, state.flag, state.host
    if lam != state.lam[0] or meta[STALE] != 0:
        state.lam[0] = lam
        meta[STALE] = 0
        meta[CROWDED] = 1
        _reweigh(state.recs, host, state.indptr, state.edge, state.leaf, lam)
        build_tops(state.first, state.leaf, state.node_weight, state.node_slot)
    elif meta[CROWDED] == 0 and meta[N_RISEN] > 0:
        _settle_risen(handle)
    resolve = meta[CROWDED] != 0 or meta[N_PASSED] > MOST_SEARCHES
    for i in range(meta[N_PASSED]):
        arm = lists[PASSED, i]
        flag[arm] &= ~np.uint8(IN_PASSED)
        r = host[arm]
        if resolve or r < 0:
            continue
        weight = weigh(state.recs, state.lam, arm)
        if beats(state.weights[BOUND, r], state.right[r, BOUND_ARM], weight, arm) and _defend(
            handle, arm, False
        ):
            leave(handle, arm)
    for i in range(meta[N_RISEN]):
        flag[lists[RISEN, i]] &= ~np.uint8(IN_RISEN)
    meta[N_PASSED] = 0
    meta[N_RISEN] = 0
    meta[CROWDED] = 0
    if resolve:
        tops_resolve(handle)
    return _write_sorted(host, flag, state.right, lists, meta, out)


@inner
def challenger_touch(handle, arm):
    """The record of `arm` changed. O(1) for a base arm, O(degree log K) for an outsider."""
    state = open_challenger(handle)
    indptr, edge, leaf, meta = state.indptr, state.edge, state.leaf, state.meta
    r = state.host[arm]
    weight = weigh(state.recs, state.lam, arm)
    if r >= 0:
        if beats(state.weights[BOUND, r], state.right[r, BOUND_ARM], weight, arm):
            _note(state.flag, state.lists, meta, arm, IN_PASSED, PASSED, N_PASSED)
    elif r == OUTSIDER and meta[STALE] == 0 and indptr[arm] < indptr[arm + 1]:
        old = leaf[edge[indptr[arm], SLOT]]
        if weight != old:
            show(
                indptr,
                edge,
                state.first,
                leaf,
                state.node_weight,
                state.node_slot,
                arm,
                weight,
            )
            meta[SLOTS] += indptr[arm + 1] - indptr[arm]
            if weight > old:
                _note(state.flag, state.lists, meta, arm, IN_RISEN, RISEN, N_RISEN)


@kernel
def challenger_move(handle, arms, remove):
    """Take present arms out (the best challenger of a base arm takes its place) or put absent arms back with the
    weights in their records. O(degree log K) each and a search, for arms put back at the next round."""
    state = open_challenger(handle)
    indptr, edge, meta, host = state.indptr, state.edge, state.meta, state.host
    for i in range(arms.shape[0]):
        arm = arms[i]
        weight = -np.inf
        if not remove:
            weight = weigh(state.recs, state.lam, arm)
            host[arm] = OUTSIDER
        elif host[arm] == OUTSIDER:
            host[arm] = ABSENT
        else:
            trusted = meta[STALE] == 0 and meta[CROWDED] == 0
            if trusted:
                _settle_risen(handle)
                trusted = meta[CROWDED] == 0
            if not (trusted and _defend(handle, arm, True)):
                r = np.int64(host[arm])
                unseat(indptr, edge, state.bits, state.right, r)
                state.right[r, BOUND_ARM] = -1
                state.weights[BOUND, r] = -np.inf
            host[arm] = ABSENT
            meta[N_BASE] -= 1
            continue
        if meta[STALE] == 0:
            show(
                indptr,
                edge,
                state.first,
                state.leaf,
                state.node_weight,
                state.node_slot,
                arm,
                weight,
            )
            meta[SLOTS] += indptr[arm + 1] - indptr[arm]
            if not remove:
                _note(state.flag, state.lists, meta, arm, IN_RISEN, RISEN, N_RISEN)


class ChallengerState(NamedTuple):
    """What loops over rounds know of the engine."""

    recs: Floats2
    handle: Ints1


@inner
def _select(state, lam, out):
    return challenger_select(state.handle, lam, out)


@inner
def _touch(state, arm):
    challenger_touch(state.handle, arm)


implement_engine(ChallengerState, _select, _touch)


def is_many(arms: IntArray, n_arms: int) -> bool:
    """Whether so many arms changed that making all tournaments anew is cheaper than arm by arm."""
    return len(arms) > n_arms // 4 + 16


class TransversalChallengerEngine(CompiledEngine):
    """Challenger bounds and re-solving over tops: O(D) a quiet round, and no round but that of a new lam depends on K
    by more than a logarithm.

    Example
    -------
    >>> import numpy as np
    >>> from semibandit.matroids import Transversal
    >>> engine = TransversalChallengerEngine(Transversal([[0], [0], [0, 1]]))
    >>> engine.set_weights(np.arange(3), [0.4, 0.5, 0.1])
    >>> engine.base()
    array([1, 2])
    """

    name = "challenger"
    exact_clock = False

    def __init__(self, matroid: Matroid, records: npt.NDArray[np.void] | None = None) -> None:
        super().__init__(matroid, records)
        if not isinstance(matroid, Transversal):
            raise TypeError(f"TransversalChallengerEngine serves transversal matroids, got {matroid!r}")
        self._arrays = new_challenger_arrays(matroid, self._recs)
        self._run_on(ChallengerState(self._recs, make_handle(self._arrays)))

    def touch(self, arms: IntArray) -> None:
        if is_many(arms, self.n_arms):
            self._arrays.meta[STALE] = 1
        else:
            super().touch(arms)

    def _remove(self, ids: IntArray) -> None:
        self._move(ids, True)

    def _restore(self, ids: IntArray) -> None:
        self._move(ids, False)

    def _move(self, ids: IntArray, remove: bool) -> None:
        if is_many(ids, self.n_arms):
            self._arrays.meta[STALE] = 1
        challenger_move(self._state.handle, ids, remove)

    def memory(self) -> int:
        return sum(int(array.nbytes) for array in self._arrays) + self._state.handle.nbytes

    def _check(self) -> None:
        check_challenger(self._arrays, self._is_deleted(np.arange(self.n_arms)))
