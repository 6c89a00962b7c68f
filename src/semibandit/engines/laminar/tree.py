"""Kernels of nested kinetic tournaments: one tree over all families of a laminar matroid, while lam only grows.

A family's tournament is played over its own arms and over the gates of its sub-families. The gate of an open family
shows that family's winner to the family around it; the gate of a shut one shows nothing, but still hands up `fail`,
the lam up to which no comparison below can change. So the winner at a family's top is its heaviest arm that no
shut family inside it holds back, and the last node's `fail` tells whether anything at all must be played again:
the tree is its own queue of events.

Comparisons and certificates are those of `engines.kinetic.tournament`, exact to the bit, except that ties between
nodes go by arm id: only the slots of one family ascend with arm ids.

Layout. Slots and nodes are numbered through; number i is lane ``i & 15`` of block ``i >> 4``. The children of a node
are neighbouring lanes of one block, so that it is played in vector registers; small families share blocks, and numbers
are left out only where a few children would otherwise lie across two.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semibandit.arms import IntArray
from semibandit.compiled.handle import Floats3, Ints1, Ints2, Whole
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.lanes import (
    ABSENT,
    LANES,
    best_node,
    best_slot,
    certify_nodes,
    certify_slots,
    smallest_lane_of,
)
from semibandit.engines.kinetic.tournament import FAIL, KEY_ALPHA, KEY_BETA, WINNER, shorten

# Columns of a family. Families are numbered outermost first; number 0 is around all others and never full.
PARENT, CAPACITY, USED, TOP, GATE, SLOT0, LEAF0, N_LEAVES = range(8)

# Columns of a node's links, and its kinds. A gate has one child; its LAST tells whether it is open.
UP, FIRST, LAST, KIND = range(4)
UNUSED, OVER_SLOTS, OVER_NODES, A_GATE = range(4)

# An arm's place is its innermost family, and in the low bits its slot.
SLOT_BITS = 32
SLOT_MASK = (1 << SLOT_BITS) - 1

# What a changed node showed before: the id of an arm, nothing, or just what it shows now.
NOTHING, SAME = -1, -2


class NestedTree(NamedTuple):
    """The tournaments of all families in one tree of ``1 << shift`` children a node.

    A slot of `leaf` holds (alpha, beta) of its arm, alpha = ABSENT for an arm that does not take part. In `node`
    children come before parents and the last node is over everything; `link` joins nodes. `family` is the table
    of families, ``place[arm]`` packs the arm's slot and innermost family, `arm_of` is the arm of a slot;
    `queue` is scratch for one entry a node.
    """

    leaf: Floats3
    node: Floats3
    link: Ints2
    family: Ints2
    place: Ints1
    arm_of: Ints1
    queue: Ints1
    shift: Whole


@inline_kernel
def _in_one_block(at, n):
    """The first number from `at` on at which n <= LANES numbers lie in one block."""
    return at if (at & 15) + n <= LANES else (at + LANES) & -LANES


@kernel
def _place_slots(family, n_own):
    """Give every family its slots; returns how many there are. Changes `family`. O(F)."""
    at = 0
    for f in range(n_own.shape[0]):
        if n_own[f] <= LANES:
            at = _in_one_block(at, n_own[f])
        family[f, SLOT0] = at
        at += n_own[f]
    return at


@kernel
def _place_nodes(family, n_own, n_inner, link, next_gate, shift):
    """Place every family's nodes, inner families first, and join them. O(nodes).

    Changes `family` and `link`; with an empty `link` only counts. Returns the number of nodes. `next_gate` is scratch
    for one entry a family.
    """
    real = link.shape[0] > 0
    fan = 1 << shift
    n_families = family.shape[0]
    at = 0
    for f in range(n_families - 1, -1, -1):
        # First the nodes over the family's own slots with the gates of the families inside, then what is above.
        child, n, kind, gates = family[f, SLOT0], n_own[f], OVER_SLOTS, n_inner[f]
        while True:
            # Few children have one parent; many are shared out where their numbers are multiples of the fanout.
            above = min(n, 1) if n <= fan else ((child + n - 1) >> shift) - (child >> shift) + 1
            width = above + gates
            if width <= fan:
                at = _in_one_block(at, width)
            for i in range(above if real else 0):
                v = at + i
                cut = ((child >> shift) + i) << shift
                link[v, FIRST] = child if i == 0 else cut
                link[v, LAST] = child + n if i == above - 1 else cut + fan
                link[v, KIND] = kind
                if kind == OVER_NODES:
                    for c in range(link[v, FIRST], link[v, LAST]):
                        link[c, UP] = v
            if kind == OVER_SLOTS:
                family[f, LEAF0], family[f, N_LEAVES] = at, above
                next_gate[f] = at + above
            child, n, kind, gates = at, width, OVER_NODES, 0
            at += width
            if width == 1:
                break
        family[f, TOP] = at - 1
    if real:
        link[at - 1, UP] = -1
        family[0, GATE] = -1
        for f in range(1, n_families):
            gate = next_gate[family[f, PARENT]]
            next_gate[family[f, PARENT]] += 1
            family[f, GATE] = gate
            link[gate, FIRST] = family[f, TOP]
            link[gate, LAST] = 1 if family[f, CAPACITY] > 0 else 0
            link[gate, KIND] = A_GATE
            link[family[f, TOP], UP] = gate
    return at


def new_tree(home: IntArray, parent: IntArray, capacity: IntArray, fanout: int) -> NestedTree:
    """A tree in which no arm takes part yet, still to be played. O(K + F log K).

    `home` is the innermost family of each arm; a family's `parent` has a smaller number, or is -1. Every
    family must hold an arm.
    """
    n_arms, n_families = len(home), len(parent) + 1
    shift = fanout.bit_length() - 1
    family = np.zeros((n_families, 8), dtype=np.int64)
    family[0, PARENT], family[0, CAPACITY] = -1, n_arms + 1
    family[1:, PARENT] = parent + 1
    family[1:, CAPACITY] = capacity
    n_own = np.bincount(home + 1, minlength=n_families).astype(np.int64)
    n_inner = np.bincount(parent + 1, minlength=n_families).astype(np.int64)
    n_slots = int(_place_slots(family, n_own))
    next_gate = np.zeros(n_families, dtype=np.int64)
    n_nodes = int(_place_nodes(family, n_own, n_inner, np.zeros((0, 4), dtype=np.int64), next_gate, shift))
    link = np.zeros((n_nodes, 4), dtype=np.int64)
    _place_nodes(family, n_own, n_inner, link, next_gate, shift)
    by_family = np.argsort(home, kind="stable").astype(np.int64)
    first = np.cumsum(n_own) - n_own
    slot = np.arange(n_arms) + np.repeat(family[:, SLOT0] - first, n_own)
    arm_of = np.full(n_slots, NOTHING)
    arm_of[slot] = by_family
    place = (home + 1) << SLOT_BITS
    place[by_family] += slot
    leaf = np.zeros((-(-n_slots // LANES), 2, LANES))
    leaf[:, KEY_ALPHA] = ABSENT
    node = np.zeros((-(-n_nodes // LANES), 4, LANES))
    return NestedTree(leaf, node, link, family, place, arm_of, np.zeros(n_nodes, dtype=np.int64), shift)


@inline_kernel
def weight_at(node, v, lam):
    """Weight of what node (or slot) v shows."""
    return node[v >> 4, KEY_ALPHA, v & 15] + lam * node[v >> 4, KEY_BETA, v & 15]


@inline_kernel
def _show(node, v, alpha, beta, fail, winner):
    out, lane = node[v >> 4], v & 15
    out[KEY_ALPHA, lane] = alpha
    out[KEY_BETA, lane] = beta
    out[FAIL, lane] = fail
    out[WINNER, lane] = winner


@kernel
def _play_slots(leaf, arm_of, first, last, node, v, lam):
    """Play node v over the slots first .. last - 1 of one family at lam. Changes node v. O(LANES)."""
    b, lo = first >> 4, first & 15
    hi = lo + last - first
    best = best_slot(leaf, b, lo, hi, lam)
    alpha, beta = leaf[b, KEY_ALPHA, best], leaf[b, KEY_BETA, best]
    fail = np.inf
    if alpha != np.inf and alpha != ABSENT:
        fail = certify_slots(leaf, b, lo, hi, best, lam)
    _show(node, v, alpha, beta, fail, arm_of[(b << 4) + best])


@kernel
def _play_nodes(node, first, last, v, lam):
    """Play node v over its child nodes first .. last - 1 at lam, ties by arm id. Changes node v. O(LANES)."""
    b, lo = first >> 4, first & 15
    hi = lo + last - first
    best = best_node(node, b, lo, hi, lam)
    alpha, beta = node[b, KEY_ALPHA, best], node[b, KEY_BETA, best]
    fail = smallest_lane_of(node, b, lo, hi, FAIL)
    if alpha != np.inf and alpha != ABSENT:
        fail = min(fail, certify_nodes(node, b, lo, hi, best, lam))
    _show(node, v, alpha, beta, fail, node[b, WINNER, best])


@inline_kernel
def _pass_gate(node, top, gate, is_open):
    """What a gate shows: the family's winner if it is open. Changes node `gate`."""
    below, lane = node[top >> 4], top & 15
    if is_open:
        _show(
            node, gate, below[KEY_ALPHA, lane], below[KEY_BETA, lane], below[FAIL, lane], below[WINNER, lane]
        )
    else:
        _show(node, gate, ABSENT, 0.0, below[FAIL, lane], NOTHING)


@inline_kernel
def _play(leaf, node, link, arm_of, v, lam):
    """Play node v over whatever is below it. Changes node v. O(LANES)."""
    first, last, kind = link[v, FIRST], link[v, LAST], link[v, KIND]
    if kind == OVER_NODES:
        _play_nodes(node, first, last, v, lam)
    elif kind == OVER_SLOTS:
        _play_slots(leaf, arm_of, first, last, node, v, lam)
    elif kind == A_GATE:
        _pass_gate(node, first, v, last == 1)


@kernel
def play_all(tree, lam):
    """Play every node at lam. Changes all nodes. O(K + F)."""
    for v in range(tree.link.shape[0]):
        _play(tree.leaf, tree.node, tree.link, tree.arm_of, v, lam)


@inline_kernel
def catch_up(tree, lam):
    """Play again every node whose certificate ended before lam, children first. Changes those nodes.

    O(LANES) a node played; nothing when the last node's certificate holds.
    """
    root = tree.link.shape[0] - 1
    if tree.node[root >> 4, FAIL, root & 15] < lam:
        _play_ended(tree.leaf, tree.node, tree.link, tree.arm_of, tree.queue, root, lam)


@kernel
def _play_ended(leaf, node, link, arm_of, queue, root, lam):
    """`catch_up` once something has ended. Parents are found before their children and played after them."""
    queue[0] = root
    n = 1
    i = 0
    while i < n:
        v = queue[i]
        i += 1
        kind = link[v, KIND]
        if kind == OVER_SLOTS:
            continue
        first = link[v, FIRST]
        last = link[v, LAST] if kind == OVER_NODES else first + 1
        for c in range(first, last):
            if node[c >> 4, FAIL, c & 15] < lam:
                queue[n] = c
                n += 1
    for i in range(n - 1, -1, -1):
        _play(leaf, node, link, arm_of, queue[i], lam)


@kernel
def _climb(node, link, v, shown, lam):
    """Node v changed: repair the nodes above it, as far as anything changes. O(LANES) a node.

    `shown` is the arm it showed before, or NOTHING, or SAME when only its certificate became shorter. All
    nodes must be valid at lam. A child that loses before and after costs one comparison: its new certificate
    can only shorten the one its parent has.
    """
    while True:
        p = link[v, UP]
        if p < 0:
            return
        block, lane = node[v >> 4], v & 15
        over, p_lane = node[p >> 4], p & 15
        held = over[FAIL, p_lane]
        if link[p, KIND] == A_GATE:
            if link[p, LAST] == 1:
                _pass_gate(node, v, p, True)
            else:
                over[FAIL, p_lane] = block[FAIL, lane]
                if block[FAIL, lane] >= held:
                    return
                shown = SAME
        elif shown == SAME:
            if block[FAIL, lane] >= held:
                return
            over[FAIL, p_lane] = block[FAIL, lane]
        else:
            winner = int(over[WINNER, p_lane])
            before = winner < block[WINNER, lane]
            w, top = weight_at(node, v, lam), weight_at(node, p, lam)
            if winner == shown or w > top or (w == top and not before):
                _play_nodes(node, link[p, FIRST], link[p, LAST], p, lam)
                shown = winner
            else:
                end = shorten(
                    min(held, block[FAIL, lane]),
                    over[KEY_ALPHA, p_lane],
                    over[KEY_BETA, p_lane],
                    block[KEY_ALPHA, lane],
                    block[KEY_BETA, lane],
                    before,
                    lam,
                )
                if end >= held:
                    return
                over[FAIL, p_lane] = end
                shown = SAME
        v = p


@inline_kernel
def set_key(tree, arm, alpha, beta, lam):
    """Give the slot of `arm` a new key. Changes it and nodes above. O(LANES log K) a level, often O(1)."""
    slot, f = tree.place[arm] & SLOT_MASK, tree.place[arm] >> SLOT_BITS
    tree.leaf[slot >> 4, KEY_ALPHA, slot & 15] = alpha
    tree.leaf[slot >> 4, KEY_BETA, slot & 15] = beta
    row = tree.family[f]
    v = row[LEAF0] + min((slot >> tree.shift) - (row[SLOT0] >> tree.shift), row[N_LEAVES] - 1)
    out, lane = tree.node[v >> 4], v & 15
    winner = int(out[WINNER, lane])
    w, top = alpha + lam * beta, weight_at(tree.node, v, lam)
    if winner == arm or w > top or (w == top and arm < winner):
        _play_slots(tree.leaf, tree.arm_of, tree.link[v, FIRST], tree.link[v, LAST], tree.node, v, lam)
        _climb(tree.node, tree.link, v, winner, lam)
        return
    held = out[FAIL, lane]
    end = shorten(held, out[KEY_ALPHA, lane], out[KEY_BETA, lane], alpha, beta, winner < arm, lam)
    if end < held:
        out[FAIL, lane] = end
        _climb(tree.node, tree.link, v, SAME, lam)


@inline_kernel
def set_gate(tree, f, is_open, lam):
    """Open or shut family f towards the family around it. Changes nodes above. O(LANES log K) a level."""
    gate = tree.family[f, GATE]
    shown = int(tree.node[gate >> 4, WINNER, gate & 15])
    tree.link[gate, LAST] = 1 if is_open else 0
    _pass_gate(tree.node, tree.family[f, TOP], gate, is_open)
    _climb(tree.node, tree.link, gate, shown, lam)
