"""The heaviest outsider of every right node of a transversal matroid: one wide tournament a right node.

An outsider is a present arm that is not in the base. Slots are the edges of the bipartite graph, right node by
right node and within a right node by arm id, so that the leftmost of equally heavy slots holds the smallest id.
`leaf[s]` is the weight of the arm in slot s, or -inf when that arm is no outsider. A tournament node keeps the
weight and the slot of the winner below it.

Node r is the root of right node r, so that all roots lie side by side; the levels between leaves and root start at
`first_node[r]`, lowest first. Slots and levels are padded to whole blocks of `FANOUT` weights, a cache line each.

Changing a slot costs one comparison a level while it does not win, `FANOUT` a level when a winner goes.
"""

from __future__ import annotations

import numpy as np

from semibandit.arms import ALPHA, BETA
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.engines.transversal.state import (
    FANOUT,
    OUTSIDER,
    RIGHT,
    SHIFT,
    SLOT,
    SLOTS,
    BestOutsiders,
    open_challengers,
)


@inline_kernel
def _leftmost_heaviest(weight, first):
    """The leftmost heaviest of the block that starts at `first`."""
    best = first
    top = weight[first]
    for i in range(first + 1, first + FANOUT):
        if weight[i] > top:
            top = weight[i]
            best = i
    return best


@inline_kernel
def _blocks(width):
    """How many blocks so many weights fill."""
    return (width + FANOUT - 1) >> SHIFT


@kernel
def play_anew(handle):
    """Weigh all outsiders at the query and play every tournament. Changes leaves and nodes. O(edges + n_right)."""
    state = open_challengers(handle)
    _weigh_outsiders(state)
    for r in range(state.matching.matched_arm.shape[0]):
        _play_one(state.best, r)
    state.best_stale[0] = False


@inline_kernel
def _weigh_outsiders(state):
    """Arm by arm: each right node's slots are then written from left to right, while records are read only once."""
    indptr, edge, leaf, node = state.indptr, state.edge, state.best.leaf, state.matching.matched_node
    recs, lam = state.recs, state.lam[0]
    for arm in range(node.shape[0]):
        weight = recs[arm, ALPHA] + lam * recs[arm, BETA] if node[arm] == OUTSIDER else -np.inf
        for p in range(indptr[arm], indptr[arm + 1]):
            leaf[edge[p, SLOT]] = weight


@inline_kernel
def _play_one(best, r):
    """Play the whole tournament of right node r."""
    leaf, node_weight, node_slot = best.leaf, best.node_weight, best.node_slot
    begin, level = best.first_slot[r], best.first_node[r]
    width = (best.first_slot[r + 1] - begin) >> SHIFT
    for i in range(width):
        v = r if width == 1 else level + i
        won = _leftmost_heaviest(leaf, begin + (i << SHIFT))
        node_weight[v] = leaf[won]
        node_slot[v] = won
    while width > 1:
        above = level + (_blocks(width) << SHIFT)
        width = _blocks(width)
        for i in range(width):
            v = r if width == 1 else above + i
            won = _leftmost_heaviest(node_weight, level + (i << SHIFT))
            node_weight[v] = node_weight[won]
            node_slot[v] = node_slot[won]
        level = above


@kernel
def set_outsider_weight(handle, arm, weight):
    """Let `arm` stand in the tournaments of all its right nodes with this weight, -inf to leave them.

    Changes leaves, nodes and counts. For each right node O(log K) when the arm loses before and after, O(FANOUT log K)
    at worst.
    """
    state = open_challengers(handle)
    edge, begin, end = state.edge, state.indptr[arm], state.indptr[arm + 1]
    for p in range(begin, end):
        _change_slot(state.best, np.int64(edge[p, RIGHT]), np.int64(edge[p, SLOT]), weight)
    state.work[SLOTS] += end - begin


@inline_kernel
def _change_slot(best, r, slot, weight):
    """Give a slot of right node r another weight and play again where that matters."""
    leaf, node_weight, node_slot = best.leaf, best.node_weight, best.node_slot
    leaf[slot] = weight
    begin, level = best.first_slot[r], best.first_node[r]
    width = (best.first_slot[r + 1] - begin) >> SHIFT
    index = (slot - begin) >> SHIFT
    v = r if width == 1 else level + index
    # `before` is the slot that stood for the child one level below; `fell`: it may no longer win.
    before = node_slot[v]
    fell = False
    if before != slot:
        if weight < node_weight[v] or (weight == node_weight[v] and slot > before):
            return
        node_weight[v] = weight
        node_slot[v] = slot
    elif weight >= node_weight[v]:
        node_weight[v] = weight
    else:
        fell = True
        won = _leftmost_heaviest(leaf, begin + (index << SHIFT))
        node_weight[v] = leaf[won]
        node_slot[v] = won
    while width > 1:
        child = v
        index >>= SHIFT
        above = level + (_blocks(width) << SHIFT)
        width = _blocks(width)
        v = r if width == 1 else above + index
        held = node_slot[v]
        won = child
        if held != before:
            if node_weight[child] < node_weight[v] or (
                node_weight[child] == node_weight[v] and node_slot[child] > held
            ):
                return
            fell = False
        elif fell:
            won = _leftmost_heaviest(node_weight, level + (index << SHIFT))
        node_weight[v] = node_weight[won]
        node_slot[v] = node_slot[won]
        before = held
        level = above


@inline_kernel
def best_outsider(best, r):
    """Arm of the heaviest outsider of right node r; its weight is ``best.node_weight[r]``, -inf if there is none."""
    return np.int64(best.arm_in[best.node_slot[r]])


def check_best_outsiders(best: BestOutsiders) -> None:
    """Assert that every node holds the leftmost heaviest slot below it. O(edges)."""
    for r in range(len(best.first_slot) - 1):
        slot = np.arange(best.first_slot[r], best.first_slot[r + 1])
        weight = best.leaf[slot]
        v = int(best.first_node[r])
        if len(weight) == 0:
            assert best.node_weight[r] == -np.inf
        while len(weight):
            blocks = weight.reshape(-1, FANOUT)
            won = np.argmax(blocks, axis=1) + FANOUT * np.arange(len(blocks))
            weight, slot = weight[won], slot[won]
            if len(weight) == 1:
                nodes = slice(r, r + 1)
            else:
                nodes = slice(v, v + len(weight))
                v += -(-len(weight) // FANOUT) * FANOUT
            assert np.array_equal(best.node_weight[nodes], weight)
            held = weight > -np.inf
            assert np.array_equal(best.node_slot[nodes][held], slot[held])
            if len(weight) == 1:
                break
            pad = -len(weight) % FANOUT
            weight = np.concatenate((weight, np.full(pad, -np.inf)))
            slot = np.concatenate((slot, np.zeros(pad, dtype=slot.dtype)))
        assert v == best.first_node[r + 1]
