"""Greedy over buckets: laminar, graphic and transversal matroids whose arms share few points.

Fed with dominating points, this engine runs the greedy algorithm over arms that are already in order, in the window
of buckets in which something changed and until the base is full; not at all in a round without changes. Beside the
moves in `buckets`, a round costs O(D) and the arms that greedy looks at; at fixed rank that is few however
large K is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from semibandit.arms import ALPHA, BETA, FloatArray, IntArray
from semibandit.compiled.handle import Bytes1, Floats2, Ints1, Shorts1, Shorts2
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.engines.answer import (
    N_LISTED,
    Answer,
    answer_came,
    arms_in,
    new_answer,
    went_at,
    write_answer,
)
from semibandit.engines.base import CompiledEngine
from semibandit.engines.kernels import implement_engine
from semibandit.engines.resolve.greedy import DEAD, augment
from semibandit.matroids import Graphic, Laminar, Matroid, Transversal
from semibandit.matroids.base import is_kind, kind_of
from semibandit.paper.buckets import (
    FIRST,
    LAST,
    NOWHERE,
    POOL_TOP,
    SORTED_AT,
    Buckets,
    bucket_for,
    close_window,
    insert_many,
    move,
    new_buckets,
    next_run,
    rank_of,
    remove_many,
    stays,
    window_end,
)
from semibandit.paper.check_buckets import check_buckets

_KINDS = (Laminar, Graphic, Transversal)
SERVES = tuple(kind.name for kind in _KINDS)

# Buckets cost memory whether they are used or not: about 80 bytes each.
MAX_BUCKETS = 1_000_000


# While a round decides, mark[arm] is OPEN for arms of the last base that it must decide again, AGAIN for those of them
# it has accepted; else 0.
OPEN, AGAIN = 1, 2


class LaminarBuckets(NamedTuple):
    """Family counters `used`."""

    recs: Floats2
    buckets: Buckets
    answer: Answer
    mark: Bytes1
    leaf: Ints1
    parent: Ints1
    capacity: Ints1
    used: Ints1


class GraphicBuckets(NamedTuple):
    """`ends[arm]`: its two vertices. `label[v]` names the tree of v, `next[v]` goes round the vertices of it."""

    recs: Floats2
    buckets: Buckets
    answer: Answer
    mark: Bytes1
    ends: Shorts2
    label: Shorts1
    next: Shorts1
    size: Shorts1


class TransversalBuckets(NamedTuple):
    """`matched_arm` of each right node, -1 if it is free; the rest is scratch of the search."""

    recs: Floats2
    buckets: Buckets
    answer: Answer
    mark: Bytes1
    indptr: Ints1
    indices: Ints1
    matched_arm: Ints1
    seen: Ints1
    came_from: Ints1
    queue: Ints1


@kernel
def _begin(buckets, answer, mark):
    """Mark what must be decided again; how many arms may still be accepted. O(D)."""
    first, last = buckets.window[FIRST], buckets.window[LAST]
    room = answer.listed.shape[0]
    for i in range(answer.size[N_LISTED]):
        arm = answer.listed[i]
        rank = rank_of(buckets, arm)
        if rank == NOWHERE or first <= rank <= last:
            mark[arm] = OPEN
        else:
            room -= 1
    return room


@inline_kernel
def _before(buckets, answer, mark, i):
    """Whether the i-th arm of the last base stays and comes before the window."""
    arm = answer.listed[i]
    return mark[arm] == 0 and rank_of(buckets, arm) < buckets.window[FIRST]


@inline_kernel
def _accept(answer, mark, arm):
    if mark[arm] == OPEN:
        mark[arm] = AGAIN
    else:
        answer_came(answer, arm)


@kernel
def _finish(buckets, answer, mark):
    """Let go what was not accepted again; close the window. O(D)."""
    for i in range(answer.size[N_LISTED]):
        arm = answer.listed[i]
        if mark[arm] == OPEN:
            went_at(answer, i)
        mark[arm] = 0
    close_window(buckets)


@kernel
def _solve_laminar(state):
    """Greedy in the window, with a counter per family. Changes `used` and `answer`."""
    buckets, answer, mark = state.buckets, state.answer, state.mark
    pool, leaf, parent, capacity, used = buckets.pool, state.leaf, state.parent, state.capacity, state.used
    room = _begin(buckets, answer, mark)
    used[:] = 0
    for i in range(answer.size[N_LISTED]):
        if _before(buckets, answer, mark, i):
            f = leaf[answer.listed[i]]
            while f >= 0:
                used[f] += 1
                f = parent[f]
    i, stop = buckets.window[FIRST], window_end(buckets)
    while i < stop and room > 0:
        first, last, i = next_run(buckets, i)
        for j in range(first, last):
            if room == 0:
                break
            f = leaf[pool[j]]
            while f >= 0 and used[f] < capacity[f]:
                f = parent[f]
            if f >= 0:
                continue
            f = leaf[pool[j]]
            while f >= 0:
                used[f] += 1
                f = parent[f]
            _accept(answer, mark, pool[j])
            room -= 1
    _finish(buckets, answer, mark)


@inline_kernel
def _unite(label, after, size, u, v):
    """Join the trees of two vertices by naming the smaller one anew: O(V log V) in all, and a look-up is one load."""
    if size[label[u]] < size[label[v]]:
        u, v = v, u
    name = label[u]
    size[name] += size[label[v]]
    x = v
    while True:
        label[x] = name
        x = after[x]
        if x == v:
            break
    after[u], after[v] = after[v], after[u]


@kernel
def _solve_graphic(state):
    """Kruskal in the window. Changes the trees and `answer`."""
    buckets, answer, mark = state.buckets, state.answer, state.mark
    pool, ends, label, after, size = buckets.pool, state.ends, state.label, state.next, state.size
    room = _begin(buckets, answer, mark)
    for v in range(label.shape[0]):
        label[v] = v
        after[v] = v
        size[v] = 1
    for i in range(answer.size[N_LISTED]):
        if _before(buckets, answer, mark, i):
            arm = answer.listed[i]
            _unite(label, after, size, ends[arm, 0], ends[arm, 1])
    i, stop = buckets.window[FIRST], window_end(buckets)
    while i < stop and room > 0:
        first, last, i = next_run(buckets, i)
        for j in range(first, last):
            arm = pool[j]
            u, v = ends[arm, 0], ends[arm, 1]
            if label[u] != label[v]:
                _unite(label, after, size, u, v)
                _accept(answer, mark, arm)
                room -= 1
                if room == 0:
                    break
    _finish(buckets, answer, mark)


@kernel
def _solve_transversal(state):
    """Greedy with augmenting paths in the window, as in `engines.resolve.greedy`. Changes the matching and `answer`."""
    buckets, answer, mark = state.buckets, state.answer, state.mark
    pool, indptr, indices = buckets.pool, state.indptr, state.indices
    matched, seen, came_from, queue = state.matched_arm, state.seen, state.came_from, state.queue
    room = _begin(buckets, answer, mark)
    # Arms before the window stay matched; what comes after it is matched again below, to whatever is free.
    for r in range(matched.shape[0]):
        seen[r] = 0
        arm = matched[r]
        if arm >= 0 and (mark[arm] != 0 or rank_of(buckets, arm) > buckets.window[LAST]):
            matched[r] = -1
    stamp = 0
    i, stop = buckets.window[FIRST], window_end(buckets)
    while i < stop and room > 0:
        first, last, i = next_run(buckets, i)
        for j in range(first, last):
            if room == 0:
                break
            stamp += 1
            arm = np.int64(pool[j])
            found, reached = augment(indptr, indices, matched, seen, stamp, came_from, queue, arm)
            if found:
                _accept(answer, mark, arm)
                room -= 1
            else:
                for k in range(reached):
                    seen[queue[k]] = DEAD
    for k in range(answer.size[N_LISTED]):
        arm = answer.listed[k]
        if mark[arm] == 0 and rank_of(buckets, arm) > buckets.window[LAST]:
            stamp += 1
            augment(indptr, indices, matched, seen, stamp, came_from, queue, arm)
    _finish(buckets, answer, mark)


@inline_kernel
def _laminar_select(state, lam, out):
    if not stays(state.buckets, lam):
        _solve_laminar(state)
    return write_answer(state.answer, out)


@inline_kernel
def _graphic_select(state, lam, out):
    if not stays(state.buckets, lam):
        _solve_graphic(state)
    return write_answer(state.answer, out)


@inline_kernel
def _transversal_select(state, lam, out):
    if not stays(state.buckets, lam):
        _solve_transversal(state)
    return write_answer(state.answer, out)


@kernel
def _bucket_touch(state, arm):
    """The arm's bins changed. O(log K) and a move of memory."""
    old = state.buckets.bucket_of[arm]
    if old != NOWHERE:
        new = bucket_for(state.buckets, state.recs, arm)
        if new != old:
            move(state.buckets, arm, new)


implement_engine(LaminarBuckets, _laminar_select, _bucket_touch)
implement_engine(GraphicBuckets, _graphic_select, _bucket_touch)
implement_engine(TransversalBuckets, _transversal_select, _bucket_touch)


def serves(matroid: Matroid) -> bool:
    """Whether `BucketEngine` serves `matroid`."""
    return kind_of(matroid) in _KINDS


class BucketEngine(CompiledEngine):
    """Greedy over buckets of arms with one dominating point. Records must hold bins, as `RoundedEngine` fills them.

    Exact over the points it is given, so that it decides as every other engine does. O(D) for a round in which nothing
    changed; else O(D + filled buckets + arms of the window until the base is full) and the membership tests.
    """

    name = "buckets"

    def __init__(
        self, matroid: Matroid, records: npt.NDArray[np.void], alpha_edges: FloatArray, beta_edges: FloatArray
    ) -> None:
        super().__init__(matroid, records)
        buckets = new_buckets(self.n_arms, alpha_edges, beta_edges)
        shared = (self._recs, buckets, new_answer(matroid.rank), np.zeros(self.n_arms, dtype=np.uint8))
        self._state: Any
        if is_kind(matroid, Laminar):
            used = np.zeros(len(matroid._capacity), dtype=np.int64)
            self._state = LaminarBuckets(*shared, matroid._leaf, matroid._parent, matroid._capacity, used)
        elif is_kind(matroid, Graphic):
            ends = np.ascontiguousarray(np.column_stack([matroid._tail, matroid._head]), dtype=np.int32)
            trees = (np.zeros(matroid.n_vertices, dtype=np.int32) for _ in range(3))
            self._state = GraphicBuckets(*shared, ends, *trees)
        elif is_kind(matroid, Transversal):
            scratch = (np.full(matroid.n_right, -1, dtype=np.int64) for _ in range(4))
            self._state = TransversalBuckets(*shared, matroid._indptr, matroid._indices, *scratch)
        else:
            raise TypeError(f"BucketEngine serves {', '.join(SERVES)} matroids, got {matroid!r}")
        self._run_on(self._state)
        self._restore(np.arange(self.n_arms, dtype=np.int64))

    def _remove(self, ids: IntArray) -> None:
        remove_many(self._state.buckets, ids)

    def _restore(self, ids: IntArray) -> None:
        insert_many(self._state.buckets, self._recs, ids)

    def memory(self) -> int:
        # Pages of the pool beyond its top were never touched, so the system has not given them.
        buckets = self._state.buckets
        unused = (len(buckets.pool) - int(buckets.size[POOL_TOP])) * buckets.pool.itemsize
        return super().memory() - unused

    def _check(self) -> None:
        buckets = self._state.buckets
        check_buckets(buckets, self._recs)
        absent = buckets.bucket_of == NOWHERE
        assert np.array_equal(absent, self._is_deleted(np.arange(self.n_arms)))
        assert not self._state.mark.any()
        if buckets.window[FIRST] > buckets.window[LAST]:
            weights = self._recs[:, ALPHA] + float(buckets.order[SORTED_AT]) * self._recs[:, BETA]
            order = np.lexsort((np.arange(self.n_arms), -weights))
            base = np.sort(self.matroid._greedy(order[~absent[order]].astype(np.int64)))
            assert np.array_equal(base, arms_in(self._state.answer))
