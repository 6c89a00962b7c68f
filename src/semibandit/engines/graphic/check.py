"""Every invariant of the graphic engines' state, checked by brute force. For tests."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from semibandit.arms import ALPHA, BETA
from semibandit.engines.graphic.rows import (
    ABSENT,
    BASE,
    COLD,
    FLAG,
    HEAD,
    HOT,
    PLACE,
    TAIL,
    TREE,
    Int32Array,
    check_rows,
)
from semibandit.engines.graphic.state import (
    ALL_TOUCHED,
    BOUND_ARM,
    CROWDED,
    FIRST,
    HALF_NEXT,
    HALF_PREV,
    HALF_TO,
    HOT_COLD,
    LAM,
    MARK,
    MODE,
    N_LIST,
    N_POOL,
    N_RISEN,
    N_SORTED,
    N_TREE,
    POOL_ARM,
    POOL_HEAD,
    POOL_TAIL,
    PRIM,
    STALE,
    TREE_ARM,
    ForestArrays,
)

Mask = npt.NDArray[np.bool_]


def check_state(state: ForestArrays, deleted: Mask) -> None:
    """Assert what holds between any two calls. O(D K)."""
    meta, edge, recs, lam = state.meta, state.rows.edge, state.recs, float(state.real[LAM])
    assert np.array_equal(edge[:, PLACE] == ABSENT, deleted | (edge[:, TAIL] == edge[:, HEAD]))
    base = state.sorted_base[: meta[N_SORTED]]
    assert (np.diff(base) > 0).all() and np.array_equal(np.flatnonzero(edge[:, BASE]), base)
    assert (edge[:, BASE] <= 1).all() and (state.vertex[:, MARK] == 0).all()
    weight = recs[:, ALPHA] + lam * recs[:, BETA]
    if meta[MODE] == PRIM:
        assert np.isinf(state.guard).all() and (edge[:, TREE] == -1).all()
        if meta[STALE] == 0:
            _check_matrix(state, weight)
        return
    if meta[STALE] == 0:
        check_rows(state.rows, recs, lam)
    if meta[MODE] == HOT_COLD:
        _check_pool(state, weight)
    else:
        _check_tree(state, weight)


def _check_matrix(state: ForestArrays, weight: npt.NDArray[np.float64]) -> None:
    """Each pair of vertices has its best present edge."""
    edge, matrix = state.rows.edge, state.matrix
    assert np.array_equal(matrix, matrix.T)
    best: dict[tuple[int, int], tuple[float, int]] = {}
    for arm in np.flatnonzero(edge[:, PLACE] != ABSENT).tolist():
        pair = (int(edge[arm, [TAIL, HEAD]].min()), int(edge[arm, [TAIL, HEAD]].max()))
        best[pair] = min(best.get(pair, (np.inf, -1)), (-weight[arm], arm))
    filled = {(int(u), int(v)) for u, v in np.argwhere(np.triu(matrix > matrix.min(), 1))}
    assert filled == set(best) or not best or len(matrix) <= 2
    for (u, v), (_, arm) in best.items():
        assert state.matrix_arm[u, v] == state.matrix_arm[v, u] == arm


def _check_pool(state: ForestArrays, weight: npt.NDArray[np.float64]) -> None:
    """The pool holds the hot arms, the untouched ones in order."""
    meta, edge = state.meta, state.rows.edge
    assert (edge[:, TREE] == -1).all() and np.isinf(state.guard).all()
    pool, n = state.pool, int(meta[N_POOL])
    arms = pool[:n, POOL_ARM]
    assert len(np.unique(arms)) == n
    assert np.array_equal(pool[:n, POOL_TAIL], edge[arms, TAIL])
    assert np.array_equal(pool[:n, POOL_HEAD], edge[arms, HEAD])
    assert np.isin(np.flatnonzero(edge[:, PLACE] == HOT), arms).all()
    assert np.isin(np.flatnonzero(edge[:, FLAG]), arms).all()
    if meta[ALL_TOUCHED] == 1 or meta[STALE] == 1:
        return
    settled = edge[arms, FLAG] == 0
    assert (edge[arms[settled], PLACE] == HOT).all()
    kept, kept_arm = state.pool_weight[:n][settled], arms[settled]
    assert np.array_equal(kept, weight[kept_arm])
    assert np.array_equal(np.lexsort((kept_arm, -kept)), np.arange(len(kept)))


def _check_tree(state: ForestArrays, weight: npt.NDArray[np.float64]) -> None:
    """The tree is linked as it should be, and every bound bounds."""
    meta, edge, guard = state.meta, state.rows.edge, state.guard
    n = int(meta[N_TREE])
    arms = state.tree[:n, TREE_ARM]
    in_tree = edge[:, TREE] >= 0
    assert np.array_equal(edge[arms, TREE], np.arange(n)) and in_tree.sum() == n
    assert np.isposinf(guard[~in_tree]).all()
    assert np.isin(np.flatnonzero(edge[:, PLACE] == HOT), arms).all()
    assert np.array_equal(np.sort(state.list_a[: meta[N_LIST]]), np.flatnonzero(edge[:, FLAG]))
    for v in range(len(state.vertex)):
        h, before, seen = state.vertex[v, FIRST], -1, []
        while h >= 0:
            arm = state.tree[h >> 1, TREE_ARM]
            assert edge[arm, TAIL + (h & 1)] == v and state.half[h, HALF_TO] == edge[arm, HEAD - (h & 1)]
            assert state.half[h, HALF_PREV] == before
            seen.append(arm)
            h, before = state.half[h, HALF_NEXT], h
        incident = in_tree & (edge[:, [TAIL, HEAD]] == v).any(axis=1)
        assert sorted(seen) == np.flatnonzero(incident).tolist()
    if meta[STALE] == 1 or meta[CROWDED] == 1:
        return
    cold = np.setdiff1d(np.flatnonzero(edge[:, PLACE] == COLD), state.risen[: meta[N_RISEN]])
    for k, arm in enumerate(arms.tolist()):
        side = _side_of(arms, k, edge, len(state.vertex))
        crossing = cold[side[edge[cold, TAIL]] != side[edge[cold, HEAD]]]
        bound = (-guard[arm], state.tree[k, BOUND_ARM])
        assert all(bound <= (-weight[f], f) for f in crossing)
        beaten = edge[arm, PLACE] == ABSENT or bound < (-weight[arm], arm)
        assert not beaten or edge[arm, FLAG] == 1


def _side_of(arms: Int32Array, k: int, edge: Int32Array, n_vertices: int) -> Mask:
    """The vertices on the tail's side of the k-th of the tree edges `arms`."""
    side = np.zeros(n_vertices, dtype=np.bool_)
    side[edge[arms[k], TAIL]] = True
    others = np.delete(arms, k)
    while True:
        u, v = edge[others, TAIL], edge[others, HEAD]
        grown = side.copy()
        grown[u[side[v]]] = True
        grown[v[side[u]]] = True
        if np.array_equal(grown, side):
            return side
        side = grown
