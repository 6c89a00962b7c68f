"""Edges kept by vertex with their weights beside them: what the sublinear graphic engines search.

Every vertex has a row: its COLD edges (those the solver does not hold in its hand), ascending by arm id, under a
16-ary tournament of weights. So the heaviest cold edge of a vertex is always known, and changing a weight
costs O(1) for an edge that was not and does not become the heaviest of its block, else O(16 log degree).

Keys are pairs (weight, arm) and are compared exactly: heavier first, then the smaller arm. The key of nothing
is (-inf, NOBODY).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from semibandit.arms import ALPHA, BETA, FloatArray, IntArray
from semibandit.compiled.handle import Floats1, Shorts1, Shorts2
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.lanes import LANE_BITS, LANES, first_max
from semibandit.compiled.lanes import prefetch_to_write as prefetch

Int32Array = npt.NDArray[np.int32]

NOBODY = 2**31 - 1

# Columns of `edge`. SLOT and SLOT + 1 are the edge's places in the rows of its tail and head.
TAIL, HEAD, SLOT, PLACE, BASE, TREE, FLAG = 0, 1, 2, 4, 5, 6, 7

# Values of PLACE: not in the ground set (deleted, or a self-loop), in the rows, in the solver's hand.
ABSENT, COLD, HOT = 0, 1, 2

# Columns of `row`.
ROW_SLOT, ROW_NODE, ROW_BLOCKS = 0, 1, 2


class Rows(NamedTuple):
    """`edge` says where each arm is; `slot_weight` is -inf where a slot's edge is not cold.

    Vertex v owns `row[v, ROW_BLOCKS]` blocks of 16 slots from `row[v, ROW_SLOT]`. With more than one block, their
    winners are the first nodes from `row[v, ROW_NODE]`, then come the winners of 16 nodes each, and so on; the
    winner of the whole row is (`level[v]`, `level_arm[v]`). Each level is padded to a multiple of 16.
    """

    edge: Shorts2
    slot_weight: Floats1
    slot_arm: Shorts1
    slot_to: Shorts1
    node_weight: Floats1
    node_arm: Shorts1
    row: Shorts2
    level: Floats1
    level_arm: Shorts1


def _padded(n: Any) -> Any:
    return (n + LANES - 1) // LANES * LANES


def aligned(n: int, kind: Any, value: float) -> Any:
    """n times `value`, starting on a cache line, so that 16 entries lie on as few lines as they can."""
    size = np.dtype(kind).itemsize
    raw = np.empty(n * size + 64, dtype=np.uint8)
    start = -raw.ctypes.data % 64
    array = raw[start : start + n * size].view(kind)
    array[:] = value
    return array


def new_rows(tail: IntArray, head: IntArray, n_vertices: int) -> Rows:
    """Rows of a graph in which every edge is cold but still without weight. O(K log K)."""
    n_arms = len(tail)
    edge = aligned(8 * n_arms, np.int32, 0).reshape(n_arms, 8)
    edge[:, TAIL], edge[:, HEAD] = tail, head
    edge[:, TREE] = -1
    proper = np.flatnonzero(tail != head)
    edge[proper, PLACE] = COLD
    vertex = np.concatenate([tail[proper], head[proper]])
    arm = np.concatenate([proper, proper])
    side = np.repeat([0, 1], len(proper))
    order = np.lexsort((arm, vertex))
    degree = np.bincount(vertex, minlength=n_vertices)
    blocks = _padded(degree) // LANES
    row = np.zeros((n_vertices, 4), dtype=np.int32)
    row[:, ROW_BLOCKS] = blocks
    row[:, ROW_SLOT] = LANES * (np.cumsum(blocks) - blocks)
    nodes = np.zeros(n_vertices, dtype=np.int64)
    width = blocks.copy()
    while (width > 1).any():
        nodes += np.where(width > 1, _padded(width), 0)
        width = np.where(width > 1, _padded(width) // LANES, width)
    row[:, ROW_NODE] = np.cumsum(nodes) - nodes
    at = row[vertex[order], ROW_SLOT] + np.arange(len(order)) - np.repeat(np.cumsum(degree) - degree, degree)
    n_slots = LANES * int(blocks.sum())
    slot_arm, slot_to = aligned(n_slots, np.int32, -1), aligned(n_slots, np.int32, -1)
    slot_arm[at] = arm[order]
    slot_to[at] = np.concatenate([head[proper], tail[proper]])[order]
    edge[arm[order], SLOT + side[order]] = at
    slot_weight = aligned(n_slots, np.float64, -np.inf)
    slot_weight[at] = np.inf
    return Rows(
        edge=edge,
        slot_weight=slot_weight,
        slot_arm=slot_arm,
        slot_to=slot_to,
        node_weight=aligned(int(nodes.sum()), np.float64, -np.inf),
        node_arm=aligned(int(nodes.sum()), np.int32, NOBODY),
        row=row,
        level=np.full(n_vertices, -np.inf),
        level_arm=np.full(n_vertices, NOBODY, dtype=np.int32),
    )


@inline_kernel
def beats(w, arm, other_w, other_arm):
    """Whether key (w, arm) comes before (other_w, other_arm)."""
    return w > other_w or (w == other_w and arm < other_arm)


@inline_kernel
def weight_of(recs, arm, lam):
    return recs[arm, ALPHA] + lam * recs[arm, BETA]


@kernel
def put(rows, arm, w, place):
    """`arm` goes to `place`: COLD with weight w, or another one with w = -inf. Repairs the winners above its slots."""
    edge, slot_weight, slot_arm = rows.edge, rows.slot_weight, rows.slot_arm
    node_weight, node_arm, level, level_arm = rows.node_weight, rows.node_arm, rows.level, rows.level_arm
    edge[arm, PLACE] = place
    for side in range(2):
        s = np.int64(edge[arm, SLOT + side])
        v = np.int64(edge[arm, TAIL + side])
        n = np.int64(rows.row[v, ROW_BLOCKS])
        offset = np.int64(rows.row[v, ROW_NODE])
        index = s - np.int64(rows.row[v, ROW_SLOT])
        best = w
        winner = np.int64(NOBODY) if w == -np.inf else arm
        node = offset + (index >> LANE_BITS)
        top, top_arm = level[v], np.int64(level_arm[v])
        if n > 1:
            top, top_arm = node_weight[node], np.int64(node_arm[node])
        if not beats(best, winner, top, top_arm):
            if top_arm != arm:
                slot_weight[s] = w
                continue
            lane = index & (LANES - 1)
            i = first_max(slot_weight, s - lane, lane, w)
            if i != s:
                best = slot_weight[i]
                winner = np.int64(NOBODY) if best == -np.inf else np.int64(slot_arm[i])
        slot_weight[s] = w
        while n > 1:
            index >>= LANE_BITS
            node = offset + index
            n = (n + LANES - 1) >> LANE_BITS
            offset += n << LANE_BITS
            up = offset + (index >> LANE_BITS)
            top, top_arm = level[v], np.int64(level_arm[v])
            if n > 1:
                top, top_arm = node_weight[up], np.int64(node_arm[up])
            mine, my_arm = best, winner
            rises = beats(best, winner, top, top_arm)
            if not rises and top_arm == arm:
                lane = index & (LANES - 1)
                i = first_max(node_weight, node - lane, lane, best)
                if i != node:
                    best = node_weight[i]
                    winner = np.int64(node_arm[i])
            node_weight[node] = mine
            node_arm[node] = my_arm
            if not rises and top_arm != arm:
                n = -1
        if n >= 0:
            level[v] = best
            level_arm[v] = winner


@inline_kernel
def ask_for(rows, arm, whole):
    """Prefetch what `put` of `arm` will read: the whole blocks around it when it is likely to be their winner."""
    for side in range(2):
        s = np.int64(rows.edge[arm, SLOT + side])
        v = np.int64(rows.edge[arm, TAIL + side])
        prefetch(rows.slot_weight, s)
        node = np.int64(rows.row[v, ROW_NODE]) + ((s - np.int64(rows.row[v, ROW_SLOT])) >> LANE_BITS)
        if rows.row[v, ROW_BLOCKS] > 1:
            prefetch(rows.node_weight, node)
            prefetch(rows.node_arm, node)
        if whole:
            prefetch(rows.slot_weight, s ^ (LANES // 2))
            prefetch(rows.slot_arm, s)
            if rows.row[v, ROW_BLOCKS] > 1:
                prefetch(rows.node_weight, node ^ (LANES // 2))


@kernel
def reweigh_rows(rows, recs, lam, by_place):
    """Read the weights of all cold edges again and play every tournament. O(K).

    The slots know which edges are cold; with `by_place` they are told anew by the PLACE column.
    """
    slot_weight, slot_arm, node_weight, node_arm = (
        rows.slot_weight,
        rows.slot_arm,
        rows.node_weight,
        rows.node_arm,
    )
    for v in range(rows.level.shape[0]):
        n = np.int64(rows.row[v, ROW_BLOCKS])
        first = np.int64(rows.row[v, ROW_SLOT])
        offset = np.int64(rows.row[v, ROW_NODE])
        if n == 0:
            continue
        for b in range(n):
            start = first + (b << LANE_BITS)
            for s in range(start, start + LANES):
                arm = np.int64(slot_arm[s])
                cold = slot_weight[s] != -np.inf
                if by_place:
                    cold = arm >= 0 and rows.edge[arm, PLACE] == COLD
                slot_weight[s] = weight_of(recs, arm, lam) if cold else -np.inf
            i = first_max(slot_weight, start, -1, 0.0)
            w = slot_weight[i]
            arm = np.int64(NOBODY) if w == -np.inf else np.int64(slot_arm[i])
            if n > 1:
                node_weight[offset + b] = w
                node_arm[offset + b] = arm
        while n > 1:
            below = offset
            n = (n + LANES - 1) >> LANE_BITS
            offset += n << LANE_BITS
            for b in range(n):
                i = first_max(node_weight, below + (b << LANE_BITS), -1, 0.0)
                w, arm = node_weight[i], np.int64(node_arm[i])
                if n > 1:
                    node_weight[offset + b] = w
                    node_arm[offset + b] = arm
        rows.level[v] = w
        rows.level_arm[v] = arm


def check_rows(rows: Rows, recs: FloatArray, lam: float) -> None:
    """Assert that slots, winners and levels agree with the records. O(K)."""
    edge, slot_arm = rows.edge, rows.slot_arm
    proper = np.flatnonzero(edge[:, TAIL] != edge[:, HEAD])
    assert (np.delete(edge[:, PLACE], proper) == ABSENT).all()
    weight = np.where(edge[:, PLACE] == COLD, recs[:, ALPHA] + lam * recs[:, BETA], -np.inf)
    owner = np.repeat(np.arange(len(rows.level)), LANES * rows.row[:, ROW_BLOCKS])
    for side in range(2):
        at = edge[proper, SLOT + side]
        assert np.array_equal(slot_arm[at], proper)
        assert np.array_equal(owner[at], edge[proper, TAIL + side])
        assert np.array_equal(rows.slot_to[at], edge[proper, HEAD - side])
        assert np.array_equal(rows.slot_weight[at], weight[proper])
    filled = slot_arm >= 0
    assert filled.sum() == 2 * len(proper) and np.isneginf(rows.slot_weight[~filled]).all()

    def winner(keys: list[tuple[float, int]]) -> tuple[float, int]:
        return min(keys, default=(np.inf, NOBODY))

    for v, (first, node, n, _) in enumerate(rows.row.tolist()):
        cells = range(first, first + LANES * n)
        keys = [
            (-w, slot_arm[s]) if (w := rows.slot_weight[s]) > -np.inf else (np.inf, NOBODY) for s in cells
        ]
        while len(keys) > LANES:
            keys = [winner(keys[i : i + LANES]) for i in range(0, len(keys), LANES)]
            keys += [(np.inf, NOBODY)] * (-len(keys) % LANES)
            mine = zip(
                (-rows.node_weight[node : node + len(keys)]).tolist(), rows.node_arm[node : node + len(keys)]
            )
            assert list(mine) == keys
            node += len(keys)
        assert (-rows.level[v], rows.level_arm[v]) == winner(keys)
