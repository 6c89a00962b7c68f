"""Cells and search tree of a chord diagram (see `chords`): keeping them up to date, and the search."""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.paper.dynamic.chords import (
    BELOW,
    FOREST_CHORD,
    LOOSE_CHORD,
    chunk_of,
    index_of,
    merge_small,
)
from semibandit.paper.dynamic.seats import ARM, LOOSE, UP


@inline_kernel
def _kind(f, seat):
    return LOOSE_CHORD if f.seats[seat, UP] == LOOSE else FOREST_CHORD


@inline_kernel
def _beats(f, kind, a, key_a, b, key_b):
    """Whether chord a is better of its kind than chord b: the heavier if loose, the lighter in the forest."""
    if a < 0 or a == b:
        return False
    if b < 0 or key_a > key_b:
        return True
    return key_a == key_b and (f.seats[a, ARM] < f.seats[b, ARM]) == (kind == LOOSE_CHORD)


@inline_kernel
def _hash(chunk):
    """A fixed pseudo-random priority below 2^31."""
    x = np.uint64(chunk + 1) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((x ^ (x >> np.uint64(29))) >> np.uint64(33))


@inline_kernel
def _key(f, kind, seat):
    w = f.weight[f.seats[seat, ARM]]
    return w if kind == LOOSE_CHORD else -w


@kernel
def _fill_rows(f, d):
    """Recompute the rows and columns of dirty chunks. O(q + chunks) each."""
    cap = d.count.shape[0]
    cells, keys = d.cell, d.key
    for c in range(cap):
        if d.dirty[c] != 0:
            for kind in range(2):
                for e in range(cap):
                    cells[kind, c, e] = -1
                    cells[kind, e, c] = -1
    for c in range(cap):
        if d.dirty[c] == 0 or d.rank[c] < 0:
            continue
        for i in range(d.count[c]):
            h = np.int64(d.half_edges[c, i])
            s = h >> 1
            e = chunk_of(d, h ^ 1)
            kind = _kind(f, s)
            key = _key(f, kind, s)
            if _beats(f, kind, s, key, cells[kind, c, e], keys[kind, c, e]):
                cells[kind, c, e] = s
                cells[kind, e, c] = s
                keys[kind, c, e] = key
                keys[kind, e, c] = key


@kernel
def _combine(f, d, node, columns, count):
    """Recompute cells of a search tree node from its row and its children: `count` columns, or all if -1."""
    cells, keys = d.cell, d.key
    for kind in range(2):
        for j in range(d.count.shape[0] if count < 0 else count):
            e = j if count < 0 else columns[j]
            best = cells[kind, node, e]
            key = keys[kind, node, e]
            for side in range(2):
                child = d.left[node] if side == 0 else d.right[node]
                if child >= 0:
                    if _beats(
                        f, kind, cells[kind + BELOW, child, e], keys[kind + BELOW, child, e], best, key
                    ):
                        best = cells[kind + BELOW, child, e]
                        key = keys[kind + BELOW, child, e]
            cells[kind + BELOW, node, e] = best
            keys[kind + BELOW, node, e] = key


@kernel
def settle(f, d):
    """Make cells and search tree agree with the sequence again. O(q + chunks log chunks) expected."""
    merge_small(d)
    _fill_rows(f, d)
    left, right, stack, queue, stale = d.scratch[0], d.scratch[1], d.scratch[2], d.scratch[3], d.scratch[4]
    live = d.live[0]
    size = 0
    for r in range(live):
        c = np.int64(d.order[r])
        last = np.int64(-1)
        while size > 0 and _hash(np.int64(stack[size - 1])) < _hash(c):
            size -= 1
            last = np.int64(stack[size])
        left[c] = last
        right[c] = -1
        if size > 0:
            right[stack[size - 1]] = c
        stack[size] = c
        size += 1
    # Breadth first, then backwards: children before parents.
    queue[0] = stack[0]
    size = 1
    for i in range(live):
        c = np.int64(queue[i])
        stale[c] = d.dirty[c] != 0 or left[c] != d.left[c] or right[c] != d.right[c]
        d.left[c] = left[c]
        d.right[c] = right[c]
        if left[c] >= 0:
            queue[size] = left[c]
            size += 1
        if right[c] >= 0:
            queue[size] = right[c]
            size += 1
    changed = 0
    for e in range(d.count.shape[0]):
        if d.dirty[e] != 0:
            stack[changed] = e
            d.dirty[e] = 0
            changed += 1
    for i in range(live - 1, -1, -1):
        c = np.int64(queue[i])
        if (left[c] >= 0 and stale[left[c]] != 0) or (right[c] >= 0 and stale[right[c]] != 0):
            stale[c] = 1
        # Where the chunks below are as they were, only the columns of dirty chunks can differ.
        _combine(f, d, c, stack, -1 if stale[c] != 0 else changed)


@kernel
def _outside(f, d, kind, below, node, lo, hi):
    """The best chord from chunk `node` (with BELOW: from all below it) to one of rank outside [lo, hi]. O(chunks)."""
    best = np.int64(-1)
    key = 0.0
    for e in range(d.count.shape[0]):
        if d.rank[e] < lo or d.rank[e] > hi:
            if _beats(f, kind, d.cell[kind + below, node, e], d.key[kind + below, node, e], best, key):
                best = np.int64(d.cell[kind + below, node, e])
                key = d.key[kind + below, node, e]
    return best


@inline_kernel
def _pick(f, kind, a, b):
    """The better of two chords of a kind, -1 being nobody. O(1)."""
    if a < 0 or b < 0:
        return max(a, b)
    return a if _beats(f, kind, a, _key(f, kind, a), b, _key(f, kind, b)) else b


@inline_kernel
def _position(d, half_edge):
    """A number that grows along the sequence. O(1)."""
    q = d.half_edges.shape[1]
    return np.int64(d.rank[chunk_of(d, half_edge)]) * q + index_of(d, half_edge)


@kernel
def best_interlacing(f, d, seat):
    """The heaviest loose edge across the cut of a forest edge, or the lightest forest edge on a loose one's path.

    -1 if there is none. O(q + chunks log chunks) expected. The graph must be settled.
    """
    kind = 1 - _kind(f, seat)
    a, b = np.int64(chunk_of(d, 2 * seat)), np.int64(chunk_of(d, 2 * seat + 1))
    first, last = _position(d, 2 * seat), _position(d, 2 * seat + 1)
    if first > last:
        first, last = last, first
        a, b = b, a
    best = np.int64(-1)
    for side in range(2 if a != b else 1):
        c = a if side == 0 else b
        for i in range(d.count[c]):
            h = np.int64(d.half_edges[c, i])
            s = h >> 1
            if s == seat or _kind(f, s) != kind:
                continue
            here, there = _position(d, h), _position(d, h ^ 1)
            if (first < here < last) != (first < there < last):
                best = _pick(f, kind, best, s)
    lo, hi = np.int64(d.rank[a]), np.int64(d.rank[b])
    if lo + 1 >= hi:
        return best
    # Both boundary chunks are done with; what is left is between whole chunks: those inside, ranks lo + 1 to
    # hi - 1, and those outside. The top node inside, then down along both borders of the range.
    node = np.int64(d.order[lo + 1])
    for r in range(lo + 2, hi):
        if _hash(np.int64(d.order[r])) > _hash(node):
            node = np.int64(d.order[r])
    best = _pick(f, kind, best, _outside(f, d, kind, 0, node, lo, hi))
    for side in range(2):
        inwards, outwards = (d.right, d.left) if side == 0 else (d.left, d.right)
        x = np.int64(outwards[node])
        while x >= 0:
            r = d.rank[x]
            if r <= lo or r >= hi:
                x = np.int64(inwards[x])
                continue
            best = _pick(f, kind, best, _outside(f, d, kind, 0, x, lo, hi))
            y = np.int64(inwards[x])
            if y >= 0:
                best = _pick(f, kind, best, _outside(f, d, kind, BELOW, y, lo, hi))
            x = np.int64(outwards[x])
    return best
