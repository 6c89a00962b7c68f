"""`engine="grouped"`: arms grouped by equal beta, for queries that jump up and down (uniform and partition)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from semibandit.arms import ALPHA, BETA, IntArray
from semibandit.compiled.handle import by_handle
from semibandit.compiled.jit import kernel
from semibandit.engines.base import CompiledEngine
from semibandit.engines.grouped.groups import find, open_group
from semibandit.engines.grouped.rounds import grouped_remove, grouped_restore, grouped_select, grouped_touch
from semibandit.engines.grouped.state import (
    AFTER,
    BEFORE,
    CLASS,
    FIRST,
    G_ALPHA,
    G_BETA,
    K_ALPHA,
    K_BETA,
    LIVE,
    ROOT,
    GroupedState,
    new_state,
)
from semibandit.engines.grouped.treap import build
from semibandit.engines.kernels import implement_engine
from semibandit.engines.registry import register_engine
from semibandit.matroids import Matroid, Partition, Uniform

implement_engine(GroupedState, grouped_select, grouped_touch, remove=grouped_remove, restore=grouped_restore)


@kernel
def _fill(s, order, first, spine):
    """Group number j begins at order[first[j]]; all arms are in the order of their groups. O(K)."""
    for j in range(first.shape[0]):
        end = first[j + 1] if j + 1 < first.shape[0] else order.shape[0]
        arms = order[first[j] : end]
        c = s.classes[arms[0]] if s.classes.shape[0] > 0 else 0
        beta = s.key[arms[0], K_BETA]
        g = open_group(s, find(s, c, beta), c, beta)
        s.group[g, ROOT] = build(s.child, arms, spine)
        s.group[g, FIRST] = arms[0]
        s.best[g, G_ALPHA] = s.key[arms[0], K_ALPHA]


@register_engine("grouped", serves=(Uniform, Partition), cost="O(G + D log K) per round for G different beta")
class GroupedEngine(CompiledEngine):
    """Uniform and partition matroids, queries in any order: O(G + D log K) per round, O(log K) per arm touched.

    G is the number of different `beta` (and classes) among the arms: for ``beta = 1 / sqrt(N)`` that of different
    counts N. Never more than K; in a run of T rounds at most about sqrt(2 D T), as counts of 1, 2, 3, ... take so many
    plays. Unlike the kinetic engine it asks nothing of the clock: lam may fall, and be negative.
    """

    name = "grouped"

    def __init__(self, matroid: Matroid, records: npt.NDArray[np.void] | None = None) -> None:
        super().__init__(matroid, records)
        if isinstance(matroid, Uniform):
            classes, capacity = np.zeros(0, dtype=np.int64), np.array([matroid.rank], dtype=np.int64)
        elif isinstance(matroid, Partition):
            classes, capacity = matroid._group.copy(), matroid._capacity
        else:
            raise TypeError(f"GroupedEngine serves uniform and partition matroids, got {matroid!r}")
        self._run_on(new_state(self._recs, classes, capacity))
        self._sort(np.arange(self.n_arms, dtype=np.int64))

    def _sort(self, arms: IntArray) -> None:
        """Put these arms into groups, where none is in one yet. O(K log K)."""
        s: Any = self._state
        s.table[:] = 0
        s.meta[LIVE] = 0
        s.present[:] = False
        s.present[arms] = True
        s.key[arms, K_ALPHA], s.key[arms, K_BETA] = self._recs[arms, ALPHA], self._recs[arms, BETA]
        classes = s.classes[arms] if len(s.classes) else np.zeros(len(arms), dtype=np.int64)
        alpha, beta = s.key[arms, K_ALPHA], s.key[arms, K_BETA]
        at = np.lexsort((arms, -alpha, beta, classes))
        new = np.ones(len(arms), dtype=np.bool_)
        new[1:] = (np.diff(classes[at]) != 0) | (np.diff(beta[at]) != 0)
        spine = np.zeros(max(1, len(arms)), dtype=np.int64)
        by_handle(_fill, GroupedState)(self._handle, arms[at], np.flatnonzero(new).astype(np.int64), spine)

    def touch_all(self) -> None:
        self._sort(np.flatnonzero(self._state.present).astype(np.int64))

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return int(self._state.meta[LIVE])

    def _check(self) -> None:
        s: Any = self._state
        assert np.array_equal(~s.present, self._is_deleted(np.arange(self.n_arms)))
        here = np.flatnonzero(s.present)
        assert np.array_equal(s.key[here, K_ALPHA], self._recs[here, ALPHA])
        assert np.array_equal(s.key[here, K_BETA], self._recs[here, BETA])
        seen: set[int] = set()
        names = set()
        for g in range(self.groups):
            arms = self._in_order(int(s.group[g, ROOT]))
            assert arms and s.group[g, FIRST] == arms[0] and s.best[g, G_ALPHA] == s.key[arms[0], K_ALPHA]
            keys = [(-s.key[a, K_ALPHA], a) for a in arms]
            assert keys == sorted(keys)
            for a in arms:
                assert s.key[a, K_BETA] == s.best[g, G_BETA]
                assert (s.classes[a] if len(s.classes) else 0) == s.group[g, CLASS]
            assert not seen & set(arms)
            seen |= set(arms)
            names.add((int(s.group[g, CLASS]), float(s.best[g, G_BETA])))
            at = by_handle(find, GroupedState)(self._handle, int(s.group[g, CLASS]), float(s.best[g, G_BETA]))
            assert s.table[at] == g + 1
        assert len(names) == self.groups == np.count_nonzero(s.table)
        assert seen == set(here.tolist())

    def _in_order(self, root: int) -> list[int]:
        """The arms of a treap, which is checked to be one."""
        child: Any = self._state.child
        way: list[int] = []
        arms: list[int] = []
        node = root
        while way or node >= 0:
            while node >= 0:
                way.append(node)
                assert len(way) <= self.n_arms
                node = int(child[node, BEFORE])
            node = way.pop()
            arms.append(node)
            node = int(child[node, AFTER])
        return arms
