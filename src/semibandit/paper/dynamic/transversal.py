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

The engines for transversal matroids are faster as a rule (`engines.transversal`), but promise less for a single
update: they hold n^2 bits and may solve anew over all right nodes. Hence this structure of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.compiled.handle import by_handle, make_handle
from semibandit.engines.base import bytes_of
from semibandit.matroids import Transversal
from semibandit.paper.dynamic.base import ExchangedBase
from semibandit.paper.dynamic.matching import Matching, plant, set_weights


class DynamicTransversal(ExchangedBase):
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
        self._state = _new_matching(self.matroid, self._weight)
        self._handle = make_handle(self._state)
        by_handle(plant, Matching)(self._handle)
        self._enter = by_handle(set_weights, Matching).entry
        self._one = np.empty(1, dtype=np.int64), np.empty(1)

    def _set_weight(self, arm: int, weight: float) -> None:
        arms, weights = self._one
        arms[0] = arm
        weights[0] = weight
        self._apply(arms, weights)

    def _apply(self, arms: IntArray, weights: FloatArray) -> None:
        self._exchanged(int(self._enter(self._handle, arms, weights)))

    def _members(self) -> IntArray:
        return self._state.members

    def memory(self) -> int:
        """Bytes held, the matroid not counted. O(1)."""
        return bytes_of(self._state) - self._state.indptr.nbytes - self._state.indices.nbytes

    def _check(self) -> None:
        self._check_base()
        m, base = self._state, self._state.members
        assert np.array_equal(np.flatnonzero(m.place >= 0), np.sort(base))
        assert np.array_equal(base[m.place[base]], base)
        assert np.array_equal(m.matched_node >= 0, m.place >= 0)
        for arm in base:
            r = m.matched_node[arm]
            assert r in m.indices[m.indptr[arm] : m.indptr[arm + 1]] and m.matched_arm[r] == arm
        assert np.count_nonzero(m.matched_arm >= 0) == base.size
        assert not m.seen.any()
        again = _new_matching(self.matroid, self._weight)
        by_handle(plant, Matching)(make_handle(again))
        assert np.array_equal(m.champions, again.champions)
        assert np.array_equal(m.slot, again.slot) and np.array_equal(m.owner, again.owner)
        for r in range(self.matroid.n_right):
            listed, p, before = [], int(m.first[r]), -1
            while p >= 0:
                assert m.indices[p] == r and m.before[p] == before
                listed.append(int(m.owner[p]))
                before, p = p, int(m.after[p])
            inside = [k for k in base if r in m.indices[m.indptr[k] : m.indptr[k + 1]]]
            assert sorted(listed) == sorted(inside)


def _new_matching(matroid: Transversal, weight: FloatArray) -> Matching:
    """Arrays for `plant`, with the heaviest base. O(K log K) and the greedy algorithm's matching."""
    indptr, indices = matroid._indptr, matroid._indices
    n_arms, n_right, n_edges = matroid.n_arms, matroid.n_right, indices.size
    room = 2 * np.maximum(np.bincount(indices, minlength=n_right), 1)
    matched_node, place = (np.empty(n_arms, dtype=np.int64) for _ in range(2))
    matched_arm, first, came_from, seen = (np.empty(n_right, dtype=np.int64) for _ in range(4))
    owner, slot, after, before = (np.empty(n_edges, dtype=np.int32) for _ in range(4))
    return Matching(
        weight=weight,
        indptr=indptr,
        indices=indices,
        matched_node=matched_node,
        place=place,
        members=matroid.max_weight_base(weight),
        matched_arm=matched_arm,
        offset=np.cumsum(room) - room,
        first=first,
        came_from=came_from,
        seen=seen,
        owner=owner,
        slot=slot,
        after=after,
        before=before,
        champions=np.empty(int(room.sum()), dtype=np.int32),
        queue=np.empty(n_right + 1, dtype=np.int64),
    )
