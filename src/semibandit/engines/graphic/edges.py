"""All edges with their status, and the cold ones by vertex with their weights beside them.

An edge is HOT while the solver in use holds it, COLD while it does not. Every vertex has a row: the slots of its edges,
ascending by arm id, under a 16-ary tournament of the weights of those that are cold. So the heaviest cold edge of a
vertex is always known, and changing a weight costs O(1) for an edge that was not and does not become the heaviest of
its block, else O(16 log degree).

Keys are pairs (weight, arm) and are compared exactly: heavier first, then the smaller arm. The key of nothing
is (-inf, NOBODY).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from semibandit.arms import ALPHA, BETA, IntArray
from semibandit.compiled.handle import Bytes1, Floats1, Shorts1, Shorts2
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.lanes import LANE_BITS, LANES, first_max
from semibandit.compiled.memory import aligned
from semibandit.compiled.memory import prefetch_to_write as prefetch

Int32Array = npt.NDArray[np.int32]

NOBODY = 2**31 - 1

# Columns of `table`. SLOT and SLOT + 1 are the edge's places in the rows of its tail and head; TREE_INDEX is its number
# in the challengers' tree or -1.
TAIL, HEAD, SLOT, STATUS, IN_BASE, TREE_INDEX = 0, 1, 2, 4, 5, 6

# Values of STATUS: not in the ground set (deleted, or a self-loop), competing in the rows, held by the solver.
ABSENT, COLD, HOT = 0, 1, 2

# Columns of `row`.
FIRST_SLOT, FIRST_WINNER, N_BLOCKS = 0, 1, 2


class Edges(NamedTuple):
    """`table` has a line for each arm; `slot_weight` is -inf where a slot's edge is not cold.

    ``pending[arm]`` says that the next round has to look at it; apart, so that all fits into a near cache.

    Vertex v owns `row[v, N_BLOCKS]` blocks of 16 slots from `row[v, FIRST_SLOT]`. With more than one block, their
    winners are entered from `row[v, FIRST_WINNER]` on, then come the winners of 16 of those each, and so on. Each of
    these levels is padded to a multiple of 16. The winner of the whole row, the heaviest cold edge at v, is
    (`heaviest[v]`, `heaviest_arm[v]`).
    """

    table: Shorts2
    pending: Bytes1
    slot_weight: Floats1
    slot_arm: Shorts1
    slot_far_end: Shorts1
    winner_weight: Floats1
    winner_arm: Shorts1
    row: Shorts2
    heaviest: Floats1
    heaviest_arm: Shorts1


def _padded(n: Any) -> Any:
    return (n + LANES - 1) // LANES * LANES


def new_edges(tail: IntArray, head: IntArray, n_vertices: int) -> Edges:
    """Edges of a graph in which every edge is cold but still without weight. O(K log K)."""
    n_arms = len(tail)
    table = aligned(8 * n_arms, np.int32, 0).reshape(n_arms, 8)
    table[:, TAIL], table[:, HEAD] = tail, head
    table[:, TREE_INDEX] = -1
    proper = np.flatnonzero(tail != head)
    table[proper, STATUS] = COLD
    vertex = np.concatenate([tail[proper], head[proper]])
    arm = np.concatenate([proper, proper])
    side = np.repeat([0, 1], len(proper))
    order = np.lexsort((arm, vertex))
    degree = np.bincount(vertex, minlength=n_vertices)
    blocks = _padded(degree) // LANES
    row = np.zeros((n_vertices, 4), dtype=np.int32)
    row[:, N_BLOCKS] = blocks
    row[:, FIRST_SLOT] = LANES * (np.cumsum(blocks) - blocks)
    winners = np.zeros(n_vertices, dtype=np.int64)
    width = blocks.copy()
    while (width > 1).any():
        winners += np.where(width > 1, _padded(width), 0)
        width = np.where(width > 1, _padded(width) // LANES, width)
    row[:, FIRST_WINNER] = np.cumsum(winners) - winners
    at = (
        row[vertex[order], FIRST_SLOT] + np.arange(len(order)) - np.repeat(np.cumsum(degree) - degree, degree)
    )
    n_slots = LANES * int(blocks.sum())
    slot_arm, slot_far_end = aligned(n_slots, np.int32, -1), aligned(n_slots, np.int32, -1)
    slot_arm[at] = arm[order]
    slot_far_end[at] = np.concatenate([head[proper], tail[proper]])[order]
    table[arm[order], SLOT + side[order]] = at
    slot_weight = aligned(n_slots, np.float64, -np.inf)
    slot_weight[at] = np.inf
    return Edges(
        table=table,
        pending=np.zeros(n_arms, dtype=np.uint8),
        slot_weight=slot_weight,
        slot_arm=slot_arm,
        slot_far_end=slot_far_end,
        winner_weight=aligned(int(winners.sum()), np.float64, -np.inf),
        winner_arm=aligned(int(winners.sum()), np.int32, NOBODY),
        row=row,
        heaviest=np.full(n_vertices, -np.inf),
        heaviest_arm=np.full(n_vertices, NOBODY, dtype=np.int32),
    )


@inline_kernel
def beats(w, arm, other_w, other_arm):
    """Whether key (w, arm) comes before (other_w, other_arm)."""
    return w > other_w or (w == other_w and arm < other_arm)


@inline_kernel
def weight_of(recs, arm, lam):
    """The weight of `arm` at query (1, lam)."""
    return recs[arm, ALPHA] + lam * recs[arm, BETA]


@kernel
def set_status(edges, arm, w, status):
    """`arm` is COLD with weight w from now on, or of another status with w = -inf.

    Plays the tournaments of both its ends again, as far up as something changes: O(1) for an edge that neither was nor
    becomes the winner of its block, else O(16 log degree).
    """
    table, slot_weight, slot_arm = edges.table, edges.slot_weight, edges.slot_arm
    winner_weight, winner_arm = edges.winner_weight, edges.winner_arm
    heaviest, heaviest_arm = edges.heaviest, edges.heaviest_arm
    table[arm, STATUS] = status
    for side in range(2):
        s = np.int64(table[arm, SLOT + side])
        v = np.int64(table[arm, TAIL + side])
        n = np.int64(edges.row[v, N_BLOCKS])
        offset = np.int64(edges.row[v, FIRST_WINNER])
        index = s - np.int64(edges.row[v, FIRST_SLOT])
        best = w
        winner = np.int64(NOBODY) if w == -np.inf else arm
        node = offset + (index >> LANE_BITS)
        top, top_arm = heaviest[v], np.int64(heaviest_arm[v])
        if n > 1:
            top, top_arm = winner_weight[node], np.int64(winner_arm[node])
        if not beats(best, winner, top, top_arm):
            if top_arm != arm:
                slot_weight[s] = w
                continue
            # The winner of the block became lighter: another one may win now.
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
            top, top_arm = heaviest[v], np.int64(heaviest_arm[v])
            if n > 1:
                top, top_arm = winner_weight[up], np.int64(winner_arm[up])
            mine, my_arm = best, winner
            rises = beats(best, winner, top, top_arm)
            if not rises and top_arm == arm:
                lane = index & (LANES - 1)
                i = first_max(winner_weight, node - lane, lane, best)
                if i != node:
                    best = winner_weight[i]
                    winner = np.int64(winner_arm[i])
            winner_weight[node] = mine
            winner_arm[node] = my_arm
            if not rises and top_arm != arm:
                n = -1  # nothing changes further up
        if n >= 0:
            heaviest[v] = best
            heaviest_arm[v] = winner


@inline_kernel
def prefetch_edge(edges, arm, whole):
    """Ask for the memory that `set_status` of `arm` will read: `whole` blocks where it is likely to be the winner."""
    for side in range(2):
        s = np.int64(edges.table[arm, SLOT + side])
        v = np.int64(edges.table[arm, TAIL + side])
        prefetch(edges.slot_weight, s)
        node = np.int64(edges.row[v, FIRST_WINNER]) + ((s - np.int64(edges.row[v, FIRST_SLOT])) >> LANE_BITS)
        if edges.row[v, N_BLOCKS] > 1:
            prefetch(edges.winner_weight, node)
            prefetch(edges.winner_arm, node)
        if whole:
            prefetch(edges.slot_weight, s ^ (LANES // 2))
            prefetch(edges.slot_arm, s)
            if edges.row[v, N_BLOCKS] > 1:
                prefetch(edges.winner_weight, node ^ (LANES // 2))


@kernel
def reweigh_cold(edges, recs, lam, by_status):
    """Read the weights of all cold edges again and play every tournament. O(K).

    The slots know which edges are cold; with `by_status` they are told anew by the STATUS column.
    """
    slot_weight, slot_arm = edges.slot_weight, edges.slot_arm
    winner_weight, winner_arm = edges.winner_weight, edges.winner_arm
    for v in range(edges.heaviest.shape[0]):
        n = np.int64(edges.row[v, N_BLOCKS])
        first = np.int64(edges.row[v, FIRST_SLOT])
        offset = np.int64(edges.row[v, FIRST_WINNER])
        if n == 0:
            continue
        for b in range(n):
            start = first + (b << LANE_BITS)
            for s in range(start, start + LANES):
                arm = np.int64(slot_arm[s])
                cold = slot_weight[s] != -np.inf
                if by_status:
                    cold = arm >= 0 and edges.table[arm, STATUS] == COLD
                slot_weight[s] = weight_of(recs, arm, lam) if cold else -np.inf
            i = first_max(slot_weight, start, -1, 0.0)
            w = slot_weight[i]
            arm = np.int64(NOBODY) if w == -np.inf else np.int64(slot_arm[i])
            if n > 1:
                winner_weight[offset + b] = w
                winner_arm[offset + b] = arm
        while n > 1:
            below = offset
            n = (n + LANES - 1) >> LANE_BITS
            offset += n << LANE_BITS
            for b in range(n):
                i = first_max(winner_weight, below + (b << LANE_BITS), -1, 0.0)
                w, arm = winner_weight[i], np.int64(winner_arm[i])
                if n > 1:
                    winner_weight[offset + b] = w
                    winner_arm[offset + b] = arm
        edges.heaviest[v] = w
        edges.heaviest_arm[v] = arm
