"""Kernels of the kinetic tournament (DESIGN idea E): the heaviest of many arms while lam only grows.

A wide tree over the slots of one group. A node keeps the slot that wins below it, that slot's weight parts
(alpha, beta), and `fail`: a lam up to which no comparison below the node can change. While lam <= fail of the
root nothing needs doing at all; beyond it, only nodes whose own `fail` was passed are played again.

Exactness. Decisions must be those of comparing the rounded floats alpha + lam * beta, ties by slot. A
certificate therefore ends a hair before the true crossing: it is valid only while the exact difference of the
two weights is larger than what rounding can do to it (`_MARGIN` times the size of the terms). Two arms closer
than that are compared again at every new lam, with the rounded weights themselves.

Memory: one (alpha, beta) pair a slot, and a node of four floats for every `fanout` children.
"""

from __future__ import annotations

import numpy as np

from semibandit._jit import njit

# Columns of a node.
NODE_ALPHA, NODE_BETA, NODE_FAIL, NODE_WINNER = 0, 1, 2, 3

# Each weight is off by at most 2^-53 (|alpha| + 2 lam beta); the certificate's own arithmetic adds a few more
# units. 2^-49 leaves room for both and is far below any difference that matters.
_MARGIN = 2.0**-49
_EARLY = 1.0 - 2.0**-45


def n_nodes(n_slots: int, shift: int) -> int:
    """How many nodes a tree over `n_slots` slots has. O(log K)."""
    total, width = 0, n_slots
    while True:
        width = (width + (1 << shift) - 1) >> shift
        total += width
        if width <= 1:
            return max(total, 1)


@njit
def shorten(fail, alpha, beta, other_alpha, other_beta, first, lam):  # type: ignore[no-untyped-def]
    """The smaller of `fail` and a lam' >= lam up to which (alpha, beta), which wins at lam, keeps winning.

    `first` says that the winner has the smaller slot and so wins ties. The division is made only when it
    would shorten `fail`.
    """
    if other_alpha == -np.inf or alpha == np.inf:
        return fail
    gap = alpha - other_alpha
    slope = other_beta - beta
    if slope == 0.0 and first and gap >= 0.0:
        return fail  # rounding is monotone: equal at worst, and ties go to the winner
    size_alpha = _MARGIN * (abs(alpha) + abs(other_alpha))
    size_beta = _MARGIN * (beta + other_beta)
    if gap - lam * slope <= size_alpha + lam * size_beta:
        return min(fail, lam)
    run = slope + size_beta
    rise = gap - size_alpha
    if run <= 0.0 or rise >= fail * run:
        return fail
    return min(fail, max(rise / run * _EARLY, lam))


@njit
def play_leaves(leaf, first, last, node, v, lam):  # type: ignore[no-untyped-def]
    """Play node v over the slots first .. last - 1 at lam. Changes node[v]. O(fanout)."""
    best = first
    best_weight = leaf[first, 0] + lam * leaf[first, 1]
    for s in range(first + 1, last):
        w = leaf[s, 0] + lam * leaf[s, 1]
        if w > best_weight:
            best_weight = w
            best = s
    alpha, beta = leaf[best, 0], leaf[best, 1]
    fail = np.inf
    if alpha != np.inf and alpha != -np.inf:
        for s in range(first, last):
            if s != best:
                fail = shorten(fail, alpha, beta, leaf[s, 0], leaf[s, 1], best < s, lam)
    node[v, NODE_ALPHA] = alpha
    node[v, NODE_BETA] = beta
    node[v, NODE_FAIL] = fail
    node[v, NODE_WINNER] = best


@njit
def play_nodes(node, first, last, v, lam):  # type: ignore[no-untyped-def]
    """Play node v over its child nodes first .. last - 1 at lam. Changes node[v]. O(fanout)."""
    best = first
    best_weight = node[first, NODE_ALPHA] + lam * node[first, NODE_BETA]
    fail = node[first, NODE_FAIL]
    for c in range(first + 1, last):
        w = node[c, NODE_ALPHA] + lam * node[c, NODE_BETA]
        fail = min(fail, node[c, NODE_FAIL])
        if w > best_weight:
            best_weight = w
            best = c
    alpha, beta = node[best, NODE_ALPHA], node[best, NODE_BETA]
    if alpha != np.inf and alpha != -np.inf:
        for c in range(first, last):
            if c != best:
                fail = shorten(fail, alpha, beta, node[c, NODE_ALPHA], node[c, NODE_BETA], best < c, lam)
    node[v, NODE_ALPHA] = alpha
    node[v, NODE_BETA] = beta
    node[v, NODE_FAIL] = fail
    node[v, NODE_WINNER] = node[best, NODE_WINNER]


@njit
def build(leaf, slot0, n_slots, node, node0, shift, lam):  # type: ignore[no-untyped-def]
    """Play the whole tree over slots slot0 .. slot0 + n_slots - 1. Changes its nodes. O(n_slots)."""
    fan = 1 << shift
    width = (n_slots + fan - 1) >> shift
    for i in range(width):
        first = slot0 + i * fan
        play_leaves(leaf, first, min(first + fan, slot0 + n_slots), node, node0 + i, lam)
    level0 = node0
    while width > 1:
        above = (width + fan - 1) >> shift
        for i in range(above):
            first = level0 + i * fan
            play_nodes(node, first, min(first + fan, level0 + width), level0 + width + i, lam)
        level0 += width
        width = above


@njit
def refresh(leaf, slot0, n_slots, node, node0, shift, lam, stack):  # type: ignore[no-untyped-def]
    """Replay every node whose certificate ended before lam, children first. Changes those nodes.

    `stack` is scratch for (level, index, first node of the level, width of the level below, visited).
    O(fanout) a replayed node; nothing when the root's certificate holds.
    """
    fan = 1 << shift
    below, width, level0, level = n_slots, (n_slots + fan - 1) >> shift, node0, 0
    while width > 1:
        level0 += width
        below = width
        width = (width + fan - 1) >> shift
        level += 1
    if node[level0, NODE_FAIL] >= lam:
        return
    depth = 0
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3], stack[0, 4] = level, 0, level0, below, 0
    while depth >= 0:
        level, index, level0, below = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]
        if level == 0:
            first = slot0 + index * fan
            play_leaves(leaf, first, min(first + fan, slot0 + n_slots), node, level0 + index, lam)
            depth -= 1
            continue
        child0 = level0 - below
        first = child0 + index * fan
        last = min(first + fan, child0 + below)
        if stack[depth, 4] == 1:
            play_nodes(node, first, last, level0 + index, lam)
            depth -= 1
            continue
        stack[depth, 4] = 1
        # The level below the children: found by walking up from the leaves again, it is at most a few steps.
        under, w = n_slots, (n_slots + fan - 1) >> shift
        while w != below:
            under = w
            w = (w + fan - 1) >> shift
        for c in range(first, last):
            if node[c, NODE_FAIL] < lam:
                depth += 1
                stack[depth, 0], stack[depth, 1], stack[depth, 2] = level - 1, c - child0, child0
                stack[depth, 3], stack[depth, 4] = under, 0


@njit
def replay_path(leaf, slot0, n_slots, node, node0, shift, lam, slot):  # type: ignore[no-untyped-def]
    """The key of `slot` changed: repair its ancestors, stopping where nothing changes. O(fanout log K) at most.

    All nodes must be valid at lam. A child that loses before and after costs one comparison: its new
    certificate can only shorten the one its parent has.
    """
    fan = 1 << shift
    index = (slot - slot0) >> shift
    width = (n_slots + fan - 1) >> shift
    v = node0 + index
    weight = leaf[slot, 0] + lam * leaf[slot, 1]
    winner = int(node[v, NODE_WINNER])
    top = node[v, NODE_ALPHA] + lam * node[v, NODE_BETA]
    if winner != slot and not (weight > top or (weight == top and slot < winner)):
        end = shorten(
            node[v, NODE_FAIL],
            node[v, NODE_ALPHA],
            node[v, NODE_BETA],
            leaf[slot, 0],
            leaf[slot, 1],
            winner < slot,
            lam,
        )
        if end >= node[v, NODE_FAIL]:
            return
        node[v, NODE_FAIL] = end
        old_winner = -1
    else:
        old_winner = winner
        first = slot0 + index * fan
        play_leaves(leaf, first, min(first + fan, slot0 + n_slots), node, v, lam)
    level0 = node0
    while width > 1:
        child = level0 + index
        parent_index = index >> shift
        p = level0 + width + parent_index
        p_winner = int(node[p, NODE_WINNER])
        if old_winner < 0:
            # Only the certificate below became shorter.
            if node[child, NODE_FAIL] >= node[p, NODE_FAIL]:
                return
            node[p, NODE_FAIL] = node[child, NODE_FAIL]
        else:
            w = node[child, NODE_ALPHA] + lam * node[child, NODE_BETA]
            top = node[p, NODE_ALPHA] + lam * node[p, NODE_BETA]
            c_winner = int(node[child, NODE_WINNER])
            if p_winner == old_winner or w > top or (w == top and c_winner < p_winner):
                first = level0 + parent_index * fan
                play_nodes(node, first, min(first + fan, level0 + width), p, lam)
                old_winner = p_winner
            else:
                end = shorten(
                    min(node[p, NODE_FAIL], node[child, NODE_FAIL]),
                    node[p, NODE_ALPHA],
                    node[p, NODE_BETA],
                    node[child, NODE_ALPHA],
                    node[child, NODE_BETA],
                    p_winner < c_winner,
                    lam,
                )
                if end >= node[p, NODE_FAIL]:
                    return
                node[p, NODE_FAIL] = end
                old_winner = -1
        level0 += width
        index = parent_index
        width = (width + fan - 1) >> shift
