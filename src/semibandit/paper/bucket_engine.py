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
from semibandit.engines.base import CompiledEngine
from semibandit.engines.kernels import implement_engine
from semibandit.engines.resolve.greedy import DEAD, augment
from semibandit.engines.resolve.scan import sort_ids
from semibandit.matroids import Graphic, Laminar, Matroid, Transversal
from semibandit.matroids.base import is_kind, kind_of
from semibandit.paper.buckets import (
    FIRST,
    LAST,
    N_RANKED,
    NOWHERE,
    SORTED_AT,
    TOP,
    Buckets,
    bucket_for,
    check_buckets,
    insert_many,
    move,
    new_buckets,
    next_run,
    rank_of,
    remove_many,
    stays,
)

_KINDS = (Laminar, Graphic, Transversal)
SERVES = tuple(kind.name for kind in _KINDS)

# Buckets cost memory whether they are used or not: about 80 bytes each.
MAX_BUCKETS = 1_000_000


class Answer(NamedTuple):
    """`base[: size[0]]`, ascending, is the answer of the last round; `mark` and `added` belong to the next one.

    While a round decides, mark[arm] is OPEN for arms of the last base that it must decide again, AGAIN for those
    of them it has accepted; new ones are listed in added[: size[1]].
    """

    base: Ints1
    added: Ints1
    mark: Bytes1
    size: Ints1


OPEN, AGAIN = 1, 2


class LaminarBuckets(NamedTuple):
    """Family counters `used`."""

    recs: Floats2
    buckets: Buckets
    answer: Answer
    leaf: Ints1
    parent: Ints1
    capacity: Ints1
    used: Ints1


class GraphicBuckets(NamedTuple):
    """`ends[arm]`: its two vertices. `label[v]` names the tree of v, `next[v]` goes round the vertices of it."""

    recs: Floats2
    buckets: Buckets
    answer: Answer
    ends: Shorts2
    label: Shorts1
    next: Shorts1
    size: Shorts1


class TransversalBuckets(NamedTuple):
    """Matching `mate` of right nodes to base arms, and scratch of the search."""

    recs: Floats2
    buckets: Buckets
    answer: Answer
    indptr: Ints1
    indices: Ints1
    mate: Ints1
    seen: Ints1
    came_from: Ints1
    queue: Ints1


@kernel
def _begin(buckets, answer):
    """Mark what must be decided again; how many arms may still be accepted. O(D)."""
    first, last = buckets.meta[FIRST], buckets.meta[LAST]
    room = answer.base.shape[0]
    for i in range(answer.size[0]):
        arm = answer.base[i]
        rank = rank_of(buckets, arm)
        if rank == NOWHERE or first <= rank <= last:
            answer.mark[arm] = OPEN
        else:
            room -= 1
    answer.size[1] = 0
    return room


@inline_kernel
def _before(buckets, answer, i):
    """Whether the i-th arm of the last base stays and comes before the window."""
    arm = answer.base[i]
    return answer.mark[arm] == 0 and rank_of(buckets, arm) < buckets.meta[FIRST]


@inline_kernel
def _accept(answer, arm):
    if answer.mark[arm] == OPEN:
        answer.mark[arm] = AGAIN
    else:
        answer.added[answer.size[1]] = arm
        answer.size[1] += 1


@kernel
def _finish(buckets, answer):
    """Make the new base of what stayed and what was accepted, ascending; close the window. O(D + s log s)."""
    base, added, mark = answer.base, answer.added, answer.mark
    kept = 0
    for i in range(answer.size[0]):
        arm = base[i]
        if mark[arm] != OPEN:
            base[kept] = arm
            kept += 1
        mark[arm] = 0
    n_added = answer.size[1]
    sort_ids(added, n_added)
    i, j, n = kept - 1, n_added - 1, kept + n_added
    answer.size[0] = n
    while j >= 0:
        n -= 1
        if i >= 0 and base[i] > added[j]:
            base[n] = base[i]
            i -= 1
        else:
            base[n] = added[j]
            j -= 1
    buckets.meta[FIRST] = 1
    buckets.meta[LAST] = 0


@kernel
def _copy(answer, out):
    for i in range(answer.size[0]):
        out[i] = answer.base[i]
    return answer.size[0]


@kernel
def _solve_laminar(state):
    """Greedy in the window, with a counter per family. Changes `used` and `answer`."""
    buckets, answer = state.buckets, state.answer
    pool, leaf, parent, capacity, used = buckets.pool, state.leaf, state.parent, state.capacity, state.used
    room = _begin(buckets, answer)
    used[:] = 0
    for i in range(answer.size[0]):
        if _before(buckets, answer, i):
            f = leaf[answer.base[i]]
            while f >= 0:
                used[f] += 1
                f = parent[f]
    i, stop = buckets.meta[FIRST], min(buckets.meta[LAST] + 1, buckets.meta[N_RANKED])
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
            _accept(answer, pool[j])
            room -= 1
    _finish(buckets, answer)


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
    buckets, answer = state.buckets, state.answer
    pool, ends, label, after, size = buckets.pool, state.ends, state.label, state.next, state.size
    room = _begin(buckets, answer)
    for v in range(label.shape[0]):
        label[v] = v
        after[v] = v
        size[v] = 1
    for i in range(answer.size[0]):
        if _before(buckets, answer, i):
            arm = answer.base[i]
            _unite(label, after, size, ends[arm, 0], ends[arm, 1])
    i, stop = buckets.meta[FIRST], min(buckets.meta[LAST] + 1, buckets.meta[N_RANKED])
    while i < stop and room > 0:
        first, last, i = next_run(buckets, i)
        for j in range(first, last):
            arm = pool[j]
            u, v = ends[arm, 0], ends[arm, 1]
            if label[u] != label[v]:
                _unite(label, after, size, u, v)
                _accept(answer, arm)
                room -= 1
                if room == 0:
                    break
    _finish(buckets, answer)


@kernel
def _solve_transversal(state):
    """Greedy with augmenting paths in the window, as in `resolve_greedy`. Changes the matching and `answer`."""
    buckets, answer = state.buckets, state.answer
    pool, indptr, indices = buckets.pool, state.indptr, state.indices
    mate, seen, came_from, queue = state.mate, state.seen, state.came_from, state.queue
    room = _begin(buckets, answer)
    # Arms before the window stay matched; what comes after it is matched again below, to whatever is free.
    for r in range(mate.shape[0]):
        seen[r] = 0
        arm = mate[r]
        if arm >= 0 and (answer.mark[arm] != 0 or rank_of(buckets, arm) > buckets.meta[LAST]):
            mate[r] = -1
    stamp = 0
    i, stop = buckets.meta[FIRST], min(buckets.meta[LAST] + 1, buckets.meta[N_RANKED])
    while i < stop and room > 0:
        first, last, i = next_run(buckets, i)
        for j in range(first, last):
            if room == 0:
                break
            stamp += 1
            arm = np.int64(pool[j])
            found, reached = augment(indptr, indices, mate, seen, stamp, came_from, queue, arm)
            if found:
                _accept(answer, arm)
                room -= 1
            else:
                for k in range(reached):
                    seen[queue[k]] = DEAD
    for k in range(answer.size[0]):
        arm = answer.base[k]
        if answer.mark[arm] == 0 and rank_of(buckets, arm) > buckets.meta[LAST]:
            stamp += 1
            augment(indptr, indices, mate, seen, stamp, came_from, queue, arm)
    _finish(buckets, answer)


@inline_kernel
def _laminar_select(state, lam, out):
    if not stays(state.buckets, lam):
        _solve_laminar(state)
    return _copy(state.answer, out)


@inline_kernel
def _graphic_select(state, lam, out):
    if not stays(state.buckets, lam):
        _solve_graphic(state)
    return _copy(state.answer, out)


@inline_kernel
def _transversal_select(state, lam, out):
    if not stays(state.buckets, lam):
        _solve_transversal(state)
    return _copy(state.answer, out)


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
        base, added = (np.zeros(matroid.rank, dtype=np.int64) for _ in range(2))
        answer = Answer(base, added, np.zeros(self.n_arms, dtype=np.uint8), np.zeros(2, dtype=np.int64))
        shared = (self._recs, buckets, answer)
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
        unused = (len(buckets.pool) - int(buckets.meta[TOP])) * buckets.pool.itemsize
        return super().memory() - unused

    def _check(self) -> None:
        buckets = self._state.buckets
        check_buckets(buckets, self._recs)
        absent = buckets.bucket_of == NOWHERE
        assert np.array_equal(absent, self._is_deleted(np.arange(self.n_arms)))
        answer = self._state.answer
        assert not answer.mark.any()
        if buckets.meta[FIRST] > buckets.meta[LAST]:
            weights = self._recs[:, ALPHA] + float(buckets.real[SORTED_AT]) * self._recs[:, BETA]
            order = np.lexsort((np.arange(self.n_arms), -weights))
            base = np.sort(self.matroid._greedy(order[~absent[order]].astype(np.int64)))
            assert np.array_equal(base, answer.base[: answer.size[0]])
