"""Kernels of the kinetic tournament (docs/theory.md, E): the heaviest of many arms while lam only grows.

A wide tree over the positions 0 .. n - 1 of one group. A node keeps the position that wins below it, that
arm's weight parts (alpha, beta), and `fail`: a lam up to which no comparison below the node can change. While lam <=
fail of the root nothing needs doing at all; beyond it, only nodes whose own `fail` was passed are played again.

Exactness. Decisions must be those of comparing the rounded floats alpha + lam * beta, ties by position. A
certificate therefore ends a hair before the true crossing: it is valid only while the exact difference of the
two weights is larger than what rounding can do to it (`MARGIN` times the size of the terms). Two arms closer
than that are compared again at every new lam, with the rounded weights themselves.

Layout. The children of a node are the lanes of one block: `leaf[block, column, lane]` and
`node[block, column, lane]`, so that playing a node reads contiguous memory and runs in vector registers. A block always
has `LANES` lanes; a tree of smaller fanout leaves the others absent. Node i of a level sits in lane
``i & (fanout - 1)`` of block ``first[level] + (i >> shift)``, and its children are block i of the level below. Only the
root is elsewhere: roots of neighbouring trees share blocks at the front of `node` (tree r: lane ``r % LANES`` of
block ``r // LANES``), because a round looks at the roots of all groups.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semibandit.arms import FloatArray
from semibandit.compiled.handle import Floats3, Ints1, Whole
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.lanes import (
    ABSENT,
    EARLY,
    LANES,
    MARGIN,
    best_lane,
    best_lane_with,
    certify_lanes,
    prefetch_block,
    smallest_lane,
)

# Columns of a block of leaves (the first two) and of nodes.
KEY_ALPHA, KEY_BETA, FAIL, WINNER = 0, 1, 2, 3


class Tree(NamedTuple):
    """One tree of many that share `leaf` and `node`; kernels make it where they need it, in registers.

    Its leaves begin at block `leaf0`, level l of its nodes at block ``first[l]``; it has `n_levels` levels of
    ``1 << shift`` children a node, and its top is root number `root`.
    """

    leaf: Floats3
    node: Floats3
    first: Ints1
    leaf0: Whole
    n_levels: Whole
    root: Whole
    shift: Whole


def tree_shape(n: int, shift: int) -> tuple[int, list[int]]:
    """Blocks of leaves, and blocks of nodes at each level below the root, of a tree over n positions. O(log n)."""
    leaves = width = -(-n >> shift)
    levels = []
    while width > 1:
        levels.append(-(-width >> shift))
        width = levels[-1]
    return leaves, levels


def absent_leaves(blocks: int) -> FloatArray:
    """Blocks of leaves without any arm. O(blocks)."""
    leaf = np.zeros((blocks, 2, LANES))
    leaf[:, KEY_ALPHA] = ABSENT
    return leaf


def absent_nodes(blocks: int) -> FloatArray:
    """Blocks of nodes without any arm below. O(blocks)."""
    node = np.zeros((blocks, 4, LANES))
    node[:, KEY_ALPHA] = ABSENT
    node[:, FAIL] = np.inf
    return node


@inline_kernel
def shorten(fail, alpha, beta, other_alpha, other_beta, first, lam):
    """The smaller of `fail` and a lam' >= lam up to which (alpha, beta), which wins at lam, keeps winning.

    `first` says that the winner has the smaller position and so wins ties.
    """
    if other_alpha == ABSENT or alpha == np.inf:
        return fail
    gap = alpha - other_alpha
    slope = other_beta - beta
    if slope == 0.0 and first and gap >= 0.0:
        return fail  # rounding is monotone: equal at worst, and ties go to the winner
    size_alpha = MARGIN * (abs(alpha) + abs(other_alpha))
    size_beta = MARGIN * (beta + other_beta)
    if gap - lam * slope <= size_alpha + lam * size_beta:
        return min(fail, lam)
    run = slope + size_beta
    if run <= 0.0:
        return fail
    return min(fail, max((gap - size_alpha) / run * EARLY, lam))


@inline_kernel
def _play(tree, level, i, lam):
    """Play node i of a level over its children at lam. Changes that node. O(LANES)."""
    leaf, node, shift = tree.leaf, tree.node, tree.shift
    # Where a node lies is written out in each kernel: as a kernel of its own it made rounds with D = 100 slower.
    if level == tree.n_levels - 1:
        out, lane = tree.node[tree.root // LANES], tree.root % LANES
    else:
        out, lane = tree.node[tree.first[level] + (i >> shift)], i & ((1 << shift) - 1)
    if level == 0:
        b = tree.leaf0 + i
        best = best_lane(leaf, b, lam)
        alpha, beta = leaf[b, KEY_ALPHA, best], leaf[b, KEY_BETA, best]
        fail = np.inf
        if alpha != np.inf and alpha != ABSENT:
            fail = certify_lanes(leaf, b, best, lam)
        out[WINNER, lane] = (i << shift) + best
    else:
        b = tree.first[level - 1] + i
        best = best_lane(node, b, lam)
        alpha, beta = node[b, KEY_ALPHA, best], node[b, KEY_BETA, best]
        fail = smallest_lane(node, b, FAIL)
        if alpha != np.inf and alpha != ABSENT:
            fail = min(fail, certify_lanes(node, b, best, lam))
        out[WINNER, lane] = node[b, WINNER, best]
    out[KEY_ALPHA, lane] = alpha
    out[KEY_BETA, lane] = beta
    out[FAIL, lane] = fail


@kernel
def build(tree, n, lam):
    """Play the whole tree over n positions. Changes its nodes. O(n)."""
    width = n
    for level in range(tree.n_levels):
        width = (width + (1 << tree.shift) - 1) >> tree.shift
        for i in range(width):
            _play(tree, level, i, lam)


@kernel
def refresh(tree, lam, stack):
    """Replay every node whose certificate ended before lam, children first. Changes those nodes.

    For a root whose certificate ended. `stack` is scratch of LANES rows a level. O(LANES) a replayed node.
    """
    depth = 0
    stack[0, 0], stack[0, 1], stack[0, 2] = tree.n_levels - 1, 0, 0
    while depth >= 0:
        level, i = stack[depth, 0], stack[depth, 1]
        if level == 0 or stack[depth, 2] == 1:
            _play(tree, level, i, lam)
            depth -= 1
            continue
        stack[depth, 2] = 1
        block = tree.node[tree.first[level - 1] + i]
        for lane in range(1 << tree.shift):
            if block[FAIL, lane] < lam:
                depth += 1
                stack[depth, 0], stack[depth, 1], stack[depth, 2] = level - 1, (i << tree.shift) + lane, 0


@kernel
def replay_path(tree, lam, position):
    """The key at `position` changed: repair its ancestors, stopping where nothing changes.

    All nodes must be valid at lam. A child that loses before and after costs one comparison: its new
    certificate can only shorten the one its parent has. O(LANES log n) at most.
    """
    shift = tree.shift
    i = position
    block, lane = tree.leaf[tree.leaf0 + (i >> shift)], i & ((1 << shift) - 1)
    contender = position
    old_winner = -2
    for level in range(tree.n_levels):
        alpha, beta = block[KEY_ALPHA, lane], block[KEY_BETA, lane]
        below = np.inf
        if level > 0:
            below = block[FAIL, lane]
            contender = int(block[WINNER, lane])
        i >>= shift
        if level == tree.n_levels - 1:
            block, lane = tree.node[tree.root // LANES], tree.root % LANES
        else:
            block, lane = tree.node[tree.first[level] + (i >> shift)], i & ((1 << shift) - 1)
        winner = int(block[WINNER, lane])
        if old_winner == -1:
            # Only the certificate below became shorter.
            if below >= block[FAIL, lane]:
                return
            block[FAIL, lane] = below
            continue
        top_alpha, top_beta = block[KEY_ALPHA, lane], block[KEY_BETA, lane]
        weight, top = alpha + lam * beta, top_alpha + lam * top_beta
        lost = winner == (position if level == 0 else old_winner)
        if lost or weight > top or (weight == top and contender < winner):
            _play(tree, level, i, lam)
            old_winner = winner
            continue
        held = block[FAIL, lane]
        end = shorten(min(held, below), top_alpha, top_beta, alpha, beta, winner < contender, lam)
        if end >= held:
            return
        block[FAIL, lane] = end
        old_winner = -1


@kernel
def take_winner(tree, lam):
    """Take the root's winner out of the tree and return its position. Changes its path. O(LANES log n).

    All winners stay right at lam, but the certificates on the path are gone (-inf) until `certify_paths`: several arms
    that leave at one lam share much of their paths. Each node's new winner stays in registers until the next one has
    been played with it.
    """
    leaf, node, leaf0, first, shift = tree.leaf, tree.node, tree.leaf0, tree.first, tree.shift
    mask = (1 << shift) - 1
    position = int(node[tree.root // LANES, WINNER, tree.root % LANES])
    i = position >> shift
    block, lane = leaf0 + i, position & mask
    best, alpha, beta = best_lane_with(leaf, block, lam, lane, ABSENT, 0.0)
    leaf[block, KEY_ALPHA, lane] = ABSENT
    leaf[block, KEY_BETA, lane] = 0.0
    winner = float((i << shift) + best)
    for level in range(1, tree.n_levels):
        block, lane = first[level - 1] + (i >> shift), i & mask
        i >>= shift
        best, top, top_beta = best_lane_with(node, block, lam, lane, alpha, beta)
        node[block, KEY_ALPHA, lane] = alpha
        node[block, KEY_BETA, lane] = beta
        node[block, FAIL, lane] = -np.inf
        node[block, WINNER, lane] = winner
        winner = node[block, WINNER, best]
        alpha, beta = top, top_beta
        if level == tree.n_levels - 2:
            # A child of the root: its winner is likely to leave the tree soon, and nothing there is in the cache.
            prefetch_block(leaf, leaf0 + (int(winner) >> shift), 2)
            prefetch_block(node, first[0] + (int(winner) >> (2 * shift)), 4)
    out, lane = node[tree.root // LANES], tree.root % LANES
    out[KEY_ALPHA, lane] = alpha
    out[KEY_BETA, lane] = beta
    out[FAIL, lane] = -np.inf
    out[WINNER, lane] = winner
    return position


@kernel
def certify_paths(tree, lam, positions, n):
    """Give the nodes above positions[:n], which `take_winner` left, their certificates: each node once, level by
    level. Changes them. O(LANES) a node."""
    leaf, node, first, shift = tree.leaf, tree.node, tree.first, tree.shift
    mask = (1 << shift) - 1
    for level in range(tree.n_levels):
        for j in range(n):
            i = positions[j] >> (shift * (level + 1))
            if level == tree.n_levels - 1:
                out, lane = tree.node[tree.root // LANES], tree.root % LANES
            else:
                out, lane = tree.node[tree.first[level] + (i >> shift)], i & ((1 << shift) - 1)
            if out[FAIL, lane] != -np.inf:
                continue
            alpha = out[KEY_ALPHA, lane]
            best = (int(out[WINNER, lane]) >> (shift * level)) & mask
            fail = np.inf if level == 0 else smallest_lane(node, first[level - 1] + i, FAIL)
            if alpha != np.inf and alpha != ABSENT:
                if level == 0:
                    fail = certify_lanes(leaf, tree.leaf0 + i, best, lam)
                else:
                    fail = min(fail, certify_lanes(node, first[level - 1] + i, best, lam))
            out[FAIL, lane] = fail


def check_tree(tree: Tree, n: int, lam: float) -> None:
    """Assert that every node's winner is right at lam and its certificate no longer than its children's. O(n)."""
    node, first, root, fan = tree.node, tree.first, tree.root, 1 << tree.shift
    leaves, levels = tree_shape(n, tree.shift)
    assert tree.n_levels == len(levels) + 1
    keys = tree.leaf[tree.leaf0 : tree.leaf0 + leaves, :, :fan]
    winner = np.arange(leaves * fan).reshape(leaves, fan)
    fail = np.full((leaves, fan), np.inf)
    assert (keys[:, KEY_ALPHA].ravel()[n:] == ABSENT).all()
    width = leaves
    for level in range(len(levels) + 1):
        best = np.argmax(keys[:, KEY_ALPHA] + lam * keys[:, KEY_BETA], axis=1)
        rows = np.arange(width)
        if level < len(levels):
            above = node[first[level] : first[level] + levels[level], :, :fan]
        else:
            above = node[root // LANES : root // LANES + 1, :, root % LANES : root % LANES + 1]
        cells = above.transpose(1, 0, 2).reshape(4, -1)
        assert (cells[KEY_ALPHA, width:] == ABSENT).all() and (cells[FAIL, width:] == np.inf).all()
        assert np.array_equal(cells[KEY_ALPHA, :width], keys[rows, KEY_ALPHA, best])
        assert np.array_equal(cells[KEY_BETA, :width], keys[rows, KEY_BETA, best])
        assert np.array_equal(cells[WINNER, :width], winner[rows, best])
        assert (cells[FAIL, :width] <= fail.min(axis=1)).all()
        assert (cells[FAIL, :width] >= lam).all()
        keys, winner, fail = above[:, :2], above[:, WINNER].astype(np.int64), above[:, FAIL]
        width = len(above)
    assert width == 1
