"""Re-solving laminar, graphic and transversal matroids by the greedy algorithm over a kept order.

Alg. (greedy), Section 2, with the membership oracles of the paper's appendix, in one compiled pass: counters up
the family tree, union-find, augmenting paths. The scratch space of the oracles is kept, so a round allocates
nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from semibandit.compiled.handle import Floats2, Ints1
from semibandit.compiled.jit import kernel
from semibandit.compiled.sorting import sort_ids_in_place
from semibandit.engines.base import CompiledEngine
from semibandit.engines.kernels import implement_engine
from semibandit.engines.order.kept import (
    KeptOrder,
    check_kept_order,
    kept_remove,
    kept_restore,
    kept_sort,
    kept_touch,
    new_kept_order,
)
from semibandit.matroids import Graphic, Laminar, Matroid, Transversal


class LaminarState(NamedTuple):
    """Family counters `used` beside the kept order."""

    recs: Floats2
    kept: KeptOrder
    leaf: Ints1
    parent: Ints1
    capacity: Ints1
    used: Ints1


class GraphicState(NamedTuple):
    """Union-find `root` (parent pointers) and `size` beside the kept order."""

    recs: Floats2
    kept: KeptOrder
    tail: Ints1
    head: Ints1
    root: Ints1
    size: Ints1


class TransversalState(NamedTuple):
    """Matching `mate` of right nodes to arms beside the kept order; the rest is scratch of the search."""

    recs: Floats2
    kept: KeptOrder
    indptr: Ints1
    indices: Ints1
    mate: Ints1
    seen: Ints1
    came_from: Ints1
    queue: Ints1


@kernel
def _laminar_select(state, lam, out):
    """Greedy with a counter per family; a full family stops every arm below it. Changes `used`, `out`."""
    kept_sort(state.kept, state.recs, lam)
    order, leaf, parent, capacity, used = (
        state.kept.order,
        state.leaf,
        state.parent,
        state.capacity,
        state.used,
    )
    used[:] = 0
    n = 0
    for i in range(state.kept.n_kept[0]):
        if n == out.shape[0]:
            break
        arm = order[i]
        f = leaf[arm]
        while f >= 0 and used[f] < capacity[f]:
            f = parent[f]
        if f >= 0:
            continue
        f = leaf[arm]
        while f >= 0:
            used[f] += 1
            f = parent[f]
        out[n] = arm
        n += 1
    sort_ids_in_place(out, n)
    return n


@kernel
def _find(root, v):
    """Representative of v, halving the path on the way. Changes `root`."""
    while root[v] != v:
        root[v] = root[root[v]]
        v = root[v]
    return v


@kernel
def _graphic_select(state, lam, out):
    """Kruskal over the kept order. Changes the union-find and `out`."""
    kept_sort(state.kept, state.recs, lam)
    order, tail, head, root, size = state.kept.order, state.tail, state.head, state.root, state.size
    for v in range(root.shape[0]):
        root[v] = v
        size[v] = 1
    n = 0
    for i in range(state.kept.n_kept[0]):
        if n == out.shape[0]:
            break
        arm = order[i]
        u = _find(root, tail[arm])
        v = _find(root, head[arm])
        if u == v:
            continue
        if size[u] < size[v]:
            u, v = v, u
        root[v] = u
        size[u] += size[v]
        out[n] = arm
        n += 1
    sort_ids_in_place(out, n)
    return n


DEAD = -1


@kernel
def augment(indptr, indices, mate, seen, stamp, came_from, queue, arm):
    """Breadth-first search for an augmenting path from `arm`, over right nodes; flips it if there is one.

    ``seen[r] == stamp`` marks what this search reached, ``DEAD`` what no search needs to enter. O(edges of
    the base). Changes `mate`, `seen` and scratch; returns whether `arm` is matched now, and how many right
    nodes the search put into `queue`.
    """
    first, last = 0, 0
    previous = -1
    a = arm
    while True:
        for e in range(indptr[a], indptr[a + 1]):
            r = indices[e]
            if seen[r] == stamp or seen[r] == DEAD:
                continue
            seen[r] = stamp
            came_from[r] = previous
            if mate[r] < 0:
                while came_from[r] >= 0:
                    mate[r] = mate[came_from[r]]
                    r = came_from[r]
                mate[r] = arm
                return True, last
            queue[last] = r
            last += 1
        if first == last:
            return False, last
        previous = queue[first]
        a = mate[previous]
        first += 1


@kernel
def _transversal_select(state, lam, out):
    """Greedy with augmenting paths over the kept order. Changes the matching and `out`.

    What a failed search reached is closed under alternating paths and holds no free node, so no later
    search needs to enter it: those right nodes are dead for the rest of the round, and an arm with dead
    neighbours only is refused in O(degree).
    """
    kept_sort(state.kept, state.recs, lam)
    order, indptr, indices = state.kept.order, state.indptr, state.indices
    mate, seen, came_from, queue = state.mate, state.seen, state.came_from, state.queue
    mate[:] = -1
    seen[:] = 0
    n = 0
    for i in range(state.kept.n_kept[0]):
        if n == out.shape[0]:
            break
        arm = order[i]
        found, reached = augment(indptr, indices, mate, seen, i + 1, came_from, queue, arm)
        if found:
            out[n] = arm
            n += 1
        else:
            for j in range(reached):
                seen[queue[j]] = DEAD
    sort_ids_in_place(out, n)
    return n


@kernel
def _greedy_touch(state, arm):
    """The arm must be re-sorted at the next round. O(1)."""
    if state.kept.present[arm]:
        kept_touch(state.kept, arm)


@kernel
def _greedy_remove(state, arms):
    """Take present arms out. O(1) each."""
    kept_remove(state.kept, arms)


@kernel
def _greedy_restore(state, arms):
    """Put absent arms back. O(1) each."""
    kept_restore(state.kept, arms)


for _state_class, _select in (
    (LaminarState, _laminar_select),
    (GraphicState, _graphic_select),
    (TransversalState, _transversal_select),
):
    implement_engine(_state_class, _select, _greedy_touch, remove=_greedy_remove, restore=_greedy_restore)


class GreedyEngine(CompiledEngine):
    """Greedy over a kept order: O(K) a round plus the membership tests until the base is full."""

    name = "resolve"

    def __init__(self, matroid: Matroid, records: npt.NDArray[np.void] | None = None) -> None:
        super().__init__(matroid, records)
        kept = new_kept_order(self.n_arms)
        if isinstance(matroid, Laminar):
            used = np.zeros(len(matroid._capacity), dtype=np.int64)
            self._state = LaminarState(
                self._recs, kept, matroid._leaf, matroid._parent, matroid._capacity, used
            )
        elif isinstance(matroid, Graphic):
            root, size = (np.zeros(matroid.n_vertices, dtype=np.int64) for _ in range(2))
            self._state = GraphicState(self._recs, kept, matroid._tail, matroid._head, root, size)
        elif isinstance(matroid, Transversal):
            mate, seen, came_from, queue = (np.zeros(matroid.n_right, dtype=np.int64) for _ in range(4))
            self._state = TransversalState(
                self._recs, kept, matroid._indptr, matroid._indices, mate, seen, came_from, queue
            )
        else:
            raise TypeError(f"GreedyEngine serves laminar, graphic and transversal matroids, got {matroid!r}")
        self._run_on(self._state)

    def _check(self) -> None:
        check_kept_order(self._state.kept, self._recs)
        present = self._state.kept.present
        assert np.array_equal(~present, self._is_deleted(np.arange(self.n_arms)))
