"""Dynamic maximum-weight base of a transversal matroid: an exact dynamic vertex-weighted matching.

A matching of the base's arms to right nodes is kept. An alternating path from arm e leads to a right node
next to e, to the base arm matched there, on to another right node next to that arm, and so forth.

- A rejected arm e that rises may replace exactly the base arms that alternating paths from e reach (its
  circuit): search forwards, take the lightest.
- A base arm h that falls may be replaced by exactly the rejected arms from which alternating paths reach h:
  search backwards over right nodes. Each right node keeps its heaviest rejected neighbour in a tournament, so
  that no list of rejected arms is ever walked.

Both searches see edges of base arms only. With d the number of right nodes next to the arm, E the number of
edges of the base's arms and n the number of right nodes they touch, an update costs O(E + n + d log K) worst
case: at fixed rank and degree only the logarithm grows with K.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray, IntArray
from semibandit.compiled.jit import njit
from semibandit.matroids import Transversal
from semibandit.paper.dynamic.base import DynamicBase
from semibandit.paper.dynamic.order import ahead, play_all, replay

# Columns of the tables below.
OFF, GUEST, FIRST, VIA, MARK = 0, 1, 2, 3, 4  # right nodes; GUEST: arm matched here or -1; VIA, MARK: scratch
NODE, OWNER, NEXT, PREV = 0, 1, 2, 3  # edges; NODE: node in the right node's tournament; list of base edges
HOST, SEAT = 0, 1  # arms; HOST: right node matched or -1; SEAT: index in members or -1


@njit
def _link(arm: int, indptr: Any, indices: Any, right: Any, edges: Any) -> None:
    """Put the edges of a base arm on the lists of its right nodes. O(degree). Changes `right`, `edges`."""
    for p in range(indptr[arm], indptr[arm + 1]):
        r = indices[p]
        first = right[r, FIRST]
        edges[p, NEXT] = first
        edges[p, PREV] = -1
        if first >= 0:
            edges[first, PREV] = p
        right[r, FIRST] = p


@njit
def _unlink(arm: int, indptr: Any, indices: Any, right: Any, edges: Any) -> None:
    """Undo `_link`. O(degree)."""
    for p in range(indptr[arm], indptr[arm + 1]):
        after = edges[p, NEXT]
        before = edges[p, PREV]
        if after >= 0:
            edges[after, PREV] = before
        if before >= 0:
            edges[before, NEXT] = after
        else:
            right[indices[p], FIRST] = after
        edges[p, NEXT] = -1
        edges[p, PREV] = -1


@njit
def _present(
    arm: int, who: int, indptr: Any, indices: Any, right: Any, edges: Any, win: Any, weight: Any
) -> None:
    """Let `who` (the arm, or -1) stand at the arm's places in the tournaments. O(degree log K)."""
    for p in range(indptr[arm], indptr[arm + 1]):
        off = right[indices[p], OFF]
        win[off + edges[p, NODE]] = who
        replay(arm, off, np.int64(edges[p, NODE]), win, weight)


@njit
def _replace_fallen(arm: int, right: Any, edges: Any, arms: Any, win: Any, weight: Any, queue: Any) -> Any:
    """Search backwards from base arm `arm` for the heaviest arm that can replace it, and rematch.

    Returns the arm that comes in, or -1. Changes the matching in `right` and `arms`.
    """
    start = arms[arm, HOST]
    queue[0] = start
    right[start, MARK] = 1
    size = 1
    best = np.int64(-1)
    at = -1
    i = 0
    while i < size:
        r = queue[i]
        i += 1
        rival = np.int64(win[right[r, OFF] + 1])
        if rival >= 0 and (best < 0 or ahead(weight, rival, best)):
            best = rival
            at = r
        p = right[r, FIRST]
        while p >= 0:
            q = arms[edges[p, OWNER], HOST]
            if right[q, MARK] == 0:
                right[q, MARK] = 1
                right[q, VIA] = r
                queue[size] = q
                size += 1
            p = edges[p, NEXT]
    for i in range(size):
        right[queue[i], MARK] = 0
    if best < 0 or not ahead(weight, best, arm):
        return -1
    mover = best
    r = at
    while True:
        displaced = right[r, GUEST]
        right[r, GUEST] = mover
        arms[mover, HOST] = r
        if displaced == arm:
            break
        mover = displaced
        r = right[r, VIA]
    arms[arm, HOST] = -1
    return best


@njit
def _displace_lightest(
    arm: int, indptr: Any, indices: Any, right: Any, arms: Any, weight: Any, queue: Any
) -> int:
    """Search forwards from rejected arm `arm` for the lightest base arm it can replace, and rematch.

    Returns the arm that goes out, or -1. Changes the matching in `right` and `arms`.
    """
    size = 0
    lightest = -1
    at = -1
    i = -1
    mover = arm
    source = -1
    while True:
        for p in range(indptr[mover], indptr[mover + 1]):
            r = indices[p]
            if right[r, MARK] == 0:
                right[r, MARK] = 1
                right[r, VIA] = source
                queue[size] = r
                size += 1
        i += 1
        if i == size:
            break
        # Every right node reached is matched: a free one would make the base larger.
        source = queue[i]
        mover = right[source, GUEST]
        if lightest < 0 or ahead(weight, lightest, mover):
            lightest = mover
            at = source
    for i in range(size):
        right[queue[i], MARK] = 0
    if lightest < 0 or not ahead(weight, arm, lightest):
        return -1
    r = at
    while right[r, VIA] >= 0:
        source = right[r, VIA]
        mover = right[source, GUEST]
        right[r, GUEST] = mover
        arms[mover, HOST] = r
        r = source
    right[r, GUEST] = arm
    arms[arm, HOST] = r
    arms[lightest, HOST] = -1
    return lightest


@njit
def _set_many(
    ids: Any, new: Any, weight: Any, graph: Any, right: Any, edges: Any, arms: Any, win: Any, work: Any
) -> int:
    """Give the arms `ids` the weights `new`, one after the other; how many exchanges that took.

    `graph` is (indptr, indices), `work` (members, queue). Changes every array but `graph`.
    """
    indptr, indices = graph
    members, queue = work
    count = 0
    for i in range(ids.size):
        arm = ids[i]
        old = weight[arm]
        weight[arm] = new[i]
        leaver = -1
        entrant = -1
        if arms[arm, HOST] >= 0:
            if new[i] < old:
                entrant = _replace_fallen(arm, right, edges, arms, win, weight, queue)
                leaver = arm
            if entrant < 0:
                continue
        else:
            if new[i] > old:
                leaver = _displace_lightest(arm, indptr, indices, right, arms, weight, queue)
                entrant = arm
            if leaver < 0:
                if new[i] != old:
                    _present(arm, arm, indptr, indices, right, edges, win, weight)
                continue
        _present(entrant, -1, indptr, indices, right, edges, win, weight)
        _link(entrant, indptr, indices, right, edges)
        _unlink(leaver, indptr, indices, right, edges)
        _present(leaver, leaver, indptr, indices, right, edges, win, weight)
        seat = arms[leaver, SEAT]
        arms[leaver, SEAT] = -1
        arms[entrant, SEAT] = seat
        members[seat] = entrant
        count += 1
    return count


@njit
def _match(base: Any, indptr: Any, indices: Any, right: Any, arms: Any, queue: Any) -> None:
    """Match the arms of an independent set, one augmenting path each. O(D E). Changes `right`, `arms`."""
    for j in range(base.size):
        size = 0
        i = -1
        mover = base[j]
        source = -1
        free = -1
        while free < 0:
            for p in range(indptr[mover], indptr[mover + 1]):
                r = indices[p]
                if right[r, MARK] == 0:
                    right[r, MARK] = 1
                    right[r, VIA] = source
                    queue[size] = r
                    size += 1
                    if right[r, GUEST] < 0:
                        free = r
                        break
            i += 1
            source = queue[i]
            mover = right[source, GUEST]
        for i in range(size):
            right[queue[i], MARK] = 0
        r = free
        while right[r, VIA] >= 0:
            source = right[r, VIA]
            mover = right[source, GUEST]
            right[r, GUEST] = mover
            arms[mover, HOST] = r
            r = source
        right[r, GUEST] = base[j]
        arms[base[j], HOST] = r
        arms[base[j], SEAT] = j


@njit
def _plant(base: Any, indptr: Any, indices: Any, n_right: int, weight: Any) -> Any:
    """Tables, tournaments and a matching for a given base: (right, edges, arms, win, queue). O(edges + D E)."""
    right = np.zeros((n_right, 5), np.int64)
    edges = np.full((indices.size, 4), -1, np.int32)
    arms = np.full((indptr.size - 1, 2), -1, np.int64)
    queue = np.empty(n_right + 1, np.int64)
    degree = np.zeros(n_right, np.int64)
    for p in range(indices.size):
        degree[indices[p]] += 1
    total = 0
    for r in range(n_right):
        right[r, OFF] = total
        right[r, GUEST] = -1
        right[r, FIRST] = -1
        right[r, VIA] = degree[r]  # next place to give away
        total += 2 * max(degree[r], 1)
    win = np.full(total, -1, np.int32)
    for arm in range(indptr.size - 1):
        for p in range(indptr[arm], indptr[arm + 1]):
            r = indices[p]
            edges[p, OWNER] = arm
            edges[p, NODE] = right[r, VIA]
            right[r, VIA] += 1
            win[right[r, OFF] + edges[p, NODE]] = arm
    _match(base, indptr, indices, right, arms, queue)
    for j in range(base.size):
        _link(base[j], indptr, indices, right, edges)
        for p in range(indptr[base[j]], indptr[base[j] + 1]):
            win[right[indices[p], OFF] + edges[p, NODE]] = -1
    for r in range(n_right):
        play_all(right[r, OFF], degree[r], win, weight)
    return right, edges, arms, win, queue


class DynamicTransversal(DynamicBase):
    """Exact dynamic base of a transversal matroid.

    `set_weight` costs O(E + n + d log K) worst case, with E the number of edges of the base's arms, n of right
    nodes they touch, d the arm's degree; see the module's text. Memory is O(edges + right nodes). The
    approximate variant is ``dynamic_base(matroid, weights, eta=...)``.

    Examples
    --------
    >>> from semibandit.paper.dynamic.transversal import DynamicTransversal
    >>> from semibandit.matroids import Transversal
    >>> best = DynamicTransversal(Transversal([[0, 1], [0], [1]]), [1.0, 2.0, 3.0])
    >>> best.set_weight(0, 2.5)
    >>> best.base()
    array([0, 2])
    """

    matroid: Transversal

    def __init__(self, matroid: Transversal, weights: Any) -> None:
        super().__init__(matroid, weights)

    def _build(self) -> None:
        m = self.matroid
        self._base: IntArray = m.max_weight_base(self._weight)
        planted = _plant(self._base, m._indptr, m._indices, m.n_right, self._weight)
        self._right, self._edges, self._arms, self._win, self._queue = planted
        self._one = np.empty(1, dtype=np.int64), np.empty(1)

    def _set_weight(self, arm: int, weight: float) -> None:
        ids, new = self._one
        ids[0] = arm
        new[0] = weight
        self._apply(ids, new)

    def _apply(self, arms: IntArray, weights: FloatArray) -> None:
        graph = self.matroid._indptr, self.matroid._indices
        work = self._base, self._queue
        tables = self._right, self._edges, self._arms, self._win
        self._exchanged(_set_many(arms, weights, self._weight, graph, *tables, work))

    def _members(self) -> IntArray:
        return self._base

    def memory(self) -> int:
        """Bytes held. O(1)."""
        held: list[npt.NDArray[Any]] = [self._weight, self._right, self._edges, self._arms, self._win]
        return sum(array.nbytes for array in [*held, self._base, self._queue])

    def _check(self) -> None:
        self._check_base()
        m = self.matroid
        right, edges, arms, win = self._right, self._edges, self._arms, self._win
        assert np.array_equal(np.flatnonzero(arms[:, SEAT] >= 0), np.sort(self._base))
        assert np.array_equal(self._base[arms[self._base, SEAT]], self._base)
        assert np.array_equal(arms[:, HOST] >= 0, arms[:, SEAT] >= 0)
        for arm in self._base:
            host = arms[arm, HOST]
            assert host in m._indices[m._indptr[arm] : m._indptr[arm + 1]] and right[host, GUEST] == arm
        assert np.count_nonzero(right[:, GUEST] >= 0) == self._base.size
        assert not right[:, MARK].any()
        again = _plant(np.sort(self._base), m._indptr, m._indices, m.n_right, self._weight)
        assert np.array_equal(win, again[3]) and np.array_equal(edges[:, :2], again[1][:, :2])
        for r in range(m.n_right):
            listed, p, before = [], int(right[r, FIRST]), -1
            while p >= 0:
                assert m._indices[p] == r and edges[p, PREV] == before
                listed.append(int(edges[p, OWNER]))
                before, p = p, int(edges[p, NEXT])
            inside = [k for k in self._base if r in m._indices[m._indptr[k] : m._indptr[k + 1]]]
            assert sorted(listed) == sorted(inside)
