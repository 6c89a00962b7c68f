"""The heaviest outsider of every right node of a transversal matroid: one wide tournament a right node.

An outsider is a present arm that is not in the base. Slots are the edges of the bipartite graph, right node by
right node and within a right node by arm id, so that the leftmost of equally heavy slots holds the smallest id.
`leaf[s]` is the weight of the arm in slot s, or -inf when that arm is no outsider. A tournament node keeps the
weight and the slot of the winner below it. lam is fixed between two calls of `build_tops`.

Node r is the root of right node r, so that all roots lie side by side; the levels between leaves and root start at
`first[FIRST_NODE, r]`, lowest first. Slots and levels are padded to whole blocks of `FANOUT` weights, a cache line
each.

Changing a slot costs one comparison a level while it does not win, `FANOUT` a level when a winner goes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray, IntArray
from semibandit.compiled.jit import kernel

Int32Array = npt.NDArray[np.int32]

SHIFT = 3
FANOUT = 1 << SHIFT
_LINE = 64

# Rows of `first`: where a right node's slots begin, and its inner nodes.
FIRST_SLOT, FIRST_NODE = 0, 1

# Columns of an edge, arm by arm: its right node and its slot there.
RIGHT, SLOT = 0, 1

inner = kernel


def padded(n: IntArray) -> IntArray:
    """Sizes rounded up to whole blocks."""
    return (n + FANOUT - 1) >> SHIFT << SHIFT


def inner_nodes(n_slots: IntArray) -> IntArray:
    """How many nodes there are between leaves and root over so many slots (padded). O(n_right log K)."""
    total = np.zeros_like(n_slots)
    width = n_slots >> SHIFT
    while (width > 1).any():
        width = np.where(width > 1, padded(width), 0)
        total += width
        width = width >> SHIFT
    return total


def lines_of_weights(n: int) -> FloatArray:
    """n weights of -inf, the first at the start of a cache line. O(n)."""
    raw = np.empty(n * 8 + _LINE, dtype=np.uint8)
    start = -raw.ctypes.data % _LINE
    weights = raw[start : start + n * 8].view(np.float64)
    weights[:] = -np.inf
    return weights


@inner
def _best(weight, first):
    """The leftmost heaviest of the block that starts at `first`."""
    best = first
    top = weight[first]
    for i in range(first + 1, first + FANOUT):
        if weight[i] > top:
            top = weight[i]
            best = i
    return best


@inner
def build_tops(first, leaf, node_weight, node_slot):
    """Play every tournament anew. Changes the nodes. O(edges + n_right)."""
    for r in range(first.shape[1] - 1):
        begin = first[FIRST_SLOT, r]
        width = (first[FIRST_SLOT, r + 1] - begin) >> SHIFT
        level = first[FIRST_NODE, r]
        for i in range(width):
            v = r if width == 1 else level + i
            best = _best(leaf, begin + (i << SHIFT))
            node_weight[v] = leaf[best]
            node_slot[v] = best
        while width > 1:
            above = level + ((width + FANOUT - 1) >> SHIFT << SHIFT)
            width = (width + FANOUT - 1) >> SHIFT
            for i in range(width):
                v = r if width == 1 else above + i
                best = _best(node_weight, level + (i << SHIFT))
                node_weight[v] = node_weight[best]
                node_slot[v] = node_slot[best]
            level = above


@inner
def show(indptr, edge, first, leaf, node_weight, node_slot, arm, weight):
    """Let `arm` stand in the tournaments of all its right nodes with this weight. Changes `leaf` and nodes.

    For each right node O(log K) when the arm loses before and after, O(FANOUT log K) at worst.
    """
    for p in range(indptr[arm], indptr[arm + 1]):
        r, slot = np.int64(edge[p, RIGHT]), np.int64(edge[p, SLOT])
        leaf[slot] = weight
        begin = first[FIRST_SLOT, r]
        level, width = first[FIRST_NODE, r], (first[FIRST_SLOT, r + 1] - begin) >> SHIFT
        index = (slot - begin) >> SHIFT
        v = r if width == 1 else level + index
        # `before` is the slot that stood for the child one level below; `fell`: it may no longer win.
        before = node_slot[v]
        fell = False
        if before != slot:
            if weight < node_weight[v] or (weight == node_weight[v] and slot > before):
                continue
            node_weight[v] = weight
            node_slot[v] = slot
        elif weight >= node_weight[v]:
            node_weight[v] = weight
        else:
            fell = True
            best = _best(leaf, begin + (index << SHIFT))
            node_weight[v] = leaf[best]
            node_slot[v] = best
        while width > 1:
            child = v
            index >>= SHIFT
            above = level + ((width + FANOUT - 1) >> SHIFT << SHIFT)
            width = (width + FANOUT - 1) >> SHIFT
            v = r if width == 1 else above + index
            held = node_slot[v]
            best = child
            if held != before:
                if node_weight[child] < node_weight[v] or (
                    node_weight[child] == node_weight[v] and node_slot[child] > held
                ):
                    break
                fell = False
            elif fell:
                best = _best(node_weight, level + (index << SHIFT))
            node_weight[v] = node_weight[best]
            node_slot[v] = node_slot[best]
            before = held
            level = above


@inner
def _best_key(names, first, last, weight, arm):
    """The right node among names[first .. last - 1] with the heaviest key, of equal ones the smaller arm."""
    best = names[first]
    top, top_arm = weight[best], arm[best]
    for i in range(first + 1, last):
        r = names[i]
        w, a = weight[r], arm[r]
        if (w > top) | ((w == top) & (a < top_arm)):
            best, top, top_arm = r, w, a
    return best


@inner
def crown_build(crown, names, weight, arm):
    """A tournament over the right nodes `names` = 0, 1, .. by the keys (weight[r], arm[r]). O(n_right).

    Changes `crown`; returns which of its nodes holds the winner.
    """
    n = names.shape[0]
    v = 0
    for first in range(0, n, FANOUT):
        crown[v] = _best_key(names, first, min(first + FANOUT, n), weight, arm)
        v += 1
    below = 0
    while v - below > 1:
        above = v
        for first in range(below, above, FANOUT):
            crown[v] = _best_key(crown, first, min(first + FANOUT, above), weight, arm)
            v += 1
        below = above
    return v - 1


@inner
def crown_fall(crown, names, weight, arm, r):
    """The key of right node r became lighter: play again where r had won. O(1) if nowhere, else O(FANOUT log)."""
    n = names.shape[0]
    index = r >> SHIFT
    if crown[index] != r:
        return
    first = index << SHIFT
    crown[index] = _best_key(names, first, min(first + FANOUT, n), weight, arm)
    level, width = 0, (n + FANOUT - 1) >> SHIFT
    while width > 1:
        index >>= SHIFT
        above = level + width
        if crown[above + index] != r:
            return
        first = level + (index << SHIFT)
        crown[above + index] = _best_key(crown, first, min(first + FANOUT, above), weight, arm)
        level = above
        width = (width + FANOUT - 1) >> SHIFT


def check_tops(first: IntArray, leaf: FloatArray, node_weight: FloatArray, node_slot: Int32Array) -> None:
    """Assert that every node holds the leftmost heaviest slot below it. O(edges)."""
    first_slot, first_node = first
    for r in range(len(first_slot) - 1):
        weight = leaf[first_slot[r] : first_slot[r + 1]]
        slot = np.arange(first_slot[r], first_slot[r + 1])
        v = int(first_node[r])
        if len(weight) == 0:
            assert node_weight[r] == -np.inf
        while len(weight):
            blocks = weight.reshape(-1, FANOUT)
            best = np.argmax(blocks, axis=1) + FANOUT * np.arange(len(blocks))
            weight, slot = weight[best], slot[best]
            if len(weight) == 1:
                nodes = slice(r, r + 1)
            else:
                nodes = slice(v, v + len(weight))
                v += -(-len(weight) // FANOUT) * FANOUT
            assert np.array_equal(node_weight[nodes], weight)
            held = weight > -np.inf
            assert np.array_equal(node_slot[nodes][held], slot[held])
            if len(weight) == 1:
                break
            pad = -len(weight) % FANOUT
            weight = np.concatenate((weight, np.full(pad, -np.inf)))
            slot = np.concatenate((slot, np.zeros(pad, dtype=slot.dtype)))
        assert v == first_node[r + 1]
