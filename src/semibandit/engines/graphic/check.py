"""Every invariant of the graphic engines' state, checked by brute force. For tests."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from semibandit.arms import ALPHA, BETA, FloatArray
from semibandit.compiled.lanes import LANES
from semibandit.engines.graphic.edges import (
    ABSENT,
    COLD,
    HEAD,
    HOT,
    IN_BASE,
    N_BLOCKS,
    NOBODY,
    SLOT,
    STATUS,
    TAIL,
    TREE_INDEX,
    Edges,
    Int32Array,
)
from semibandit.engines.graphic.state import (
    BOUND_ARM,
    CHALLENGERS,
    CROWDED,
    FAR_END,
    FIRST_HALF,
    HOT_ARM,
    HOT_COLD,
    HOT_HEAD,
    HOT_IN_BASE,
    HOT_TAIL,
    MARK,
    N_BASE,
    N_BEATEN,
    N_DORMANT,
    N_HOT,
    N_OUT,
    N_PICKED,
    N_RISEN,
    N_TREE,
    NEXT_HALF,
    ORDER_BITS,
    ORDERED,
    PREVIOUS_HALF,
    PRIM,
    STALE,
    TREE_ARM,
    UNSORTED,
    WOKEN,
    ForestState,
)
from semibandit.engines.order.lazy import END, check_lazy_order
from semibandit.engines.order.lazy import HEAD as FIRST
from semibandit.engines.switch import IN_USE, check_switch

Mask = npt.NDArray[np.bool_]


def check_forest(state: ForestState, deleted: Mask) -> None:
    """Assert what holds between any two calls. O(D K)."""
    flags, table, recs, lam = state.flags, state.edges.table, state.recs, float(state.lam[0])
    check_switch(state.switch, (HOT_COLD, CHALLENGERS, PRIM, ORDERED))
    assert np.array_equal(table[:, STATUS] == ABSENT, deleted | (table[:, TAIL] == table[:, HEAD]))
    base = state.answer.arms[: state.lengths[N_BASE]]
    assert (np.diff(base) > 0).all() and np.array_equal(np.flatnonzero(table[:, IN_BASE]), base)
    assert (table[:, IN_BASE] <= 1).all() and (state.vertex[:, MARK] == 0).all()
    assert (state.parts.label == 0).all()
    weight = recs[:, ALPHA] + lam * recs[:, BETA]
    if state.switch[IN_USE] in (PRIM, ORDERED):
        assert np.isinf(state.tree.bound_weight).all() and (table[:, TREE_INDEX] == -1).all()
        if not flags[STALE]:
            (_check_matrix if state.switch[IN_USE] == PRIM else _check_order)(state, weight)
        return
    if not flags[STALE]:
        check_edges(state.edges, recs, lam)
    if state.switch[IN_USE] == HOT_COLD:
        _check_hot(state, weight)
    else:
        _check_tree(state, weight)


def check_edges(edges: Edges, recs: FloatArray, lam: float) -> None:
    """Assert that slots and winners agree with the records. O(K)."""
    table, slot_arm = edges.table, edges.slot_arm
    proper = np.flatnonzero(table[:, TAIL] != table[:, HEAD])
    assert (np.delete(table[:, STATUS], proper) == ABSENT).all()
    weight = np.where(table[:, STATUS] == COLD, recs[:, ALPHA] + lam * recs[:, BETA], -np.inf)
    owner = np.repeat(np.arange(len(edges.heaviest)), LANES * edges.row[:, N_BLOCKS])
    for side in range(2):
        at = table[proper, SLOT + side]
        assert np.array_equal(slot_arm[at], proper)
        assert np.array_equal(owner[at], table[proper, TAIL + side])
        assert np.array_equal(edges.slot_far_end[at], table[proper, HEAD - side])
        assert np.array_equal(edges.slot_weight[at], weight[proper])
    filled = slot_arm >= 0
    assert filled.sum() == 2 * len(proper) and np.isneginf(edges.slot_weight[~filled]).all()

    def winner(keys: list[tuple[float, int]]) -> tuple[float, int]:
        return min(keys, default=(np.inf, NOBODY))

    for v, (first, node, n, _) in enumerate(edges.row.tolist()):
        cells = range(first, first + LANES * n)
        keys = [
            (-w, slot_arm[s]) if (w := edges.slot_weight[s]) > -np.inf else (np.inf, NOBODY) for s in cells
        ]
        while len(keys) > LANES:
            keys = [winner(keys[i : i + LANES]) for i in range(0, len(keys), LANES)]
            keys += [(np.inf, NOBODY)] * (-len(keys) % LANES)
            mine = zip(
                (-edges.winner_weight[node : node + len(keys)]).tolist(),
                edges.winner_arm[node : node + len(keys)],
            )
            assert list(mine) == keys
            node += len(keys)
        assert (-edges.heaviest[v], edges.heaviest_arm[v]) == winner(keys)


def _check_matrix(state: ForestState, weight: npt.NDArray[np.float64]) -> None:
    """Each pair of vertices has its best present edge."""
    table, matrix = state.edges.table, state.matrix.key
    assert np.array_equal(matrix, matrix.T)
    best: dict[tuple[int, int], tuple[float, int]] = {}
    for arm in np.flatnonzero(table[:, STATUS] != ABSENT).tolist():
        pair = (int(table[arm, [TAIL, HEAD]].min()), int(table[arm, [TAIL, HEAD]].max()))
        best[pair] = min(best.get(pair, (np.inf, -1)), (-weight[arm], arm))
    filled = {(int(u), int(v)) for u, v in np.argwhere(np.triu(matrix > matrix.min(), 1))}
    assert filled == set(best) or not best or len(matrix) <= 2
    for (u, v), (_, arm) in best.items():
        assert state.matrix.arm[u, v] == state.matrix.arm[v, u] == arm


def _check_order(state: ForestState, weight: npt.NDArray[np.float64]) -> None:
    """The order has an entry for each present arm outside the base, and loose ones as counted."""
    table, order = state.edges.table, state.ordered.order
    check_lazy_order(order)
    out = state.ordered.out[: state.ordered.size[N_OUT]] >> 2 * ORDER_BITS
    assert np.array_equal(np.sort(out), np.flatnonzero(table[:, IN_BASE]))
    entries = order.arm[order.at[FIRST] : order.at[END]]
    arms = entries >> 2 * ORDER_BITS
    ends = np.stack([(entries >> ORDER_BITS) % (1 << ORDER_BITS), entries % (1 << ORDER_BITS)], axis=1)
    assert np.array_equal(ends, table[arms][:, [TAIL, HEAD]])
    waiting = (table[:, STATUS] != ABSENT) & (table[:, IN_BASE] == 0)
    assert np.array_equal(np.bincount(arms, minlength=len(table)), waiting + order.loose.astype(np.int64))
    right = order.weight[order.at[FIRST] : order.at[END]] == weight[arms]
    assert np.isin(np.flatnonzero(waiting), arms[right]).all()


def _check_hot(state: ForestState, weight: npt.NDArray[np.float64]) -> None:
    """The list of hot edges holds the hot arms, the untouched ones in order."""
    flags, table = state.flags, state.edges.table
    assert (table[:, TREE_INDEX] == -1).all() and np.isinf(state.tree.bound_weight).all()
    hot, pending = state.hot, state.edges.pending
    n, n_dormant = int(state.lengths[N_HOT]), int(state.lengths[N_DORMANT])
    middle = len(hot.weight) // 2
    dormant = middle + np.flatnonzero(
        np.diff(hot.edge[middle : middle + n_dormant, [HOT_TAIL, HOT_HEAD]])[:, 0]
    )
    arms = hot.edge[np.concatenate([np.arange(n), dormant]), HOT_ARM]
    assert len(np.unique(arms)) == len(arms)
    assert np.isin(np.flatnonzero(table[:, STATUS] == HOT), arms).all()
    assert np.isin(np.flatnonzero(pending), arms).all()
    awake = np.arange(n)
    picked = hot.picked[: state.lengths[N_PICKED]]
    assert np.array_equal(picked, dormant[hot.edge[dormant, HOT_IN_BASE] == 1])
    for places in (awake, dormant):
        arms = hot.edge[places, HOT_ARM]
        assert np.array_equal(hot.edge[places, HOT_TAIL], table[arms, TAIL])
        assert np.array_equal(hot.edge[places, HOT_HEAD], table[arms, HEAD])
        if flags[UNSORTED] or flags[STALE]:
            continue
        settled = pending[arms] == 0
        assert (table[arms[settled], STATUS] == HOT).all()
        kept, kept_arm = hot.weight[places][settled], arms[settled]
        assert np.array_equal(kept, weight[kept_arm])
        assert np.array_equal(np.lexsort((kept_arm, -kept)), np.arange(len(kept)))
        touched = places[~settled]
        assert places is awake or flags[WOKEN] or (hot.edge[touched, HOT_IN_BASE] == 1).all()


def _check_tree(state: ForestState, weight: npt.NDArray[np.float64]) -> None:
    """The tree is linked as it should be, and every bound bounds."""
    tree, flags, table, lengths = state.tree, state.flags, state.edges.table, state.lengths
    n = int(lengths[N_TREE])
    arms = tree.edge[:n, TREE_ARM]
    in_tree = table[:, TREE_INDEX] >= 0
    assert np.array_equal(table[arms, TREE_INDEX], np.arange(n)) and in_tree.sum() == n
    assert np.isposinf(tree.bound_weight[~in_tree]).all()
    assert np.isin(np.flatnonzero(table[:, STATUS] == HOT), arms).all()
    assert np.array_equal(np.sort(tree.beaten[: lengths[N_BEATEN]]), np.flatnonzero(state.edges.pending))
    for v in range(len(state.vertex)):
        h, before, seen = state.vertex[v, FIRST_HALF], -1, []
        while h >= 0:
            arm = tree.edge[h >> 1, TREE_ARM]
            assert table[arm, TAIL + (h & 1)] == v and tree.half[h, FAR_END] == table[arm, HEAD - (h & 1)]
            assert tree.half[h, PREVIOUS_HALF] == before
            seen.append(arm)
            h, before = tree.half[h, NEXT_HALF], h
        incident = in_tree & (table[:, [TAIL, HEAD]] == v).any(axis=1)
        assert sorted(seen) == np.flatnonzero(incident).tolist()
    _check_roots(state, arms)
    if flags[STALE] or flags[CROWDED]:
        return
    cold = np.setdiff1d(np.flatnonzero(table[:, STATUS] == COLD), tree.risen[: lengths[N_RISEN]])
    for k, arm in enumerate(arms.tolist()):
        side = _side_of(arms, k, table, len(state.vertex))
        crossing = cold[side[table[cold, TAIL]] != side[table[cold, HEAD]]]
        bound = (-tree.bound_weight[arm], tree.edge[k, BOUND_ARM])
        assert all(bound <= (-weight[f], f) for f in crossing)
        beaten = table[arm, STATUS] == ABSENT or bound < (-weight[arm], arm)
        assert not beaten or state.edges.pending[arm] == 1


def _check_roots(state: ForestState, arms: Int32Array) -> None:
    """Every vertex hangs from a root, by edges of the tree at it, and every edge has a vertex that hangs by it."""
    up, table = state.tree.up, state.edges.table
    hanging = np.flatnonzero(up >= 0)
    h = up[hanging]
    assert np.array_equal(np.sort(h >> 1), np.arange(len(arms)))
    assert np.array_equal(table[arms[h >> 1], TAIL + (h & 1)], hanging)
    above = np.arange(len(up))
    above[hanging] = table[arms[h >> 1], HEAD - (h & 1)]
    for _ in range(len(up).bit_length()):
        above = above[above]
    assert (up[above] < 0).all()


def _side_of(arms: Int32Array, k: int, table: Int32Array, n_vertices: int) -> Mask:
    """The vertices on the tail's side of the k-th of the tree edges `arms`."""
    side = np.zeros(n_vertices, dtype=np.bool_)
    side[table[arms[k], TAIL]] = True
    others = np.delete(arms, k)
    while True:
        u, v = table[others, TAIL], table[others, HEAD]
        grown = side.copy()
        grown[u[side[v]]] = True
        grown[v[side[u]]] = True
        if np.array_equal(grown, side):
            return side
        side = grown
