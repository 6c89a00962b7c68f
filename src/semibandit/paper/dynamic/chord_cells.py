"""Cells and search tree of a chord diagram (see `_chords`): keeping them up to date, and the search."""

from __future__ import annotations

from typing import Any

import numpy as np

from semibandit.compiled.jit import njit
from semibandit.paper.dynamic.chords import (
    COUNT,
    DIRTY,
    LEFT,
    LIVE,
    ORDER,
    RANK,
    RIGHT,
    SCRATCH,
    merge_small,
)
from semibandit.paper.dynamic.seats import ARM, LOOSE, UP


@njit
def _kind(seat: int, seats: Any) -> int:
    return 0 if seats[seat, UP] == LOOSE else 1


@njit(inline="always")
def _beats(kind: int, a: int, key_a: float, b: int, key_b: float, seats: Any) -> bool:
    """Whether chord a is better of its kind than chord b: the heavier if loose, the lighter in the forest."""
    if a < 0 or a == b:
        return False
    if b < 0 or key_a > key_b:
        return True
    return key_a == key_b and (seats[a, ARM] < seats[b, ARM]) == (kind == 0)


@njit
def _hash(chunk: int) -> Any:
    """A fixed pseudo-random priority below 2^31."""
    x = np.uint64(chunk + 1) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((x ^ (x >> np.uint64(29))) >> np.uint64(33))


@njit
def _key(kind: int, seat: int, seats: Any, weight: Any) -> float:
    w = weight[seats[seat, ARM]]
    return w if kind == 0 else -w


@njit
def _fill_rows(graph: Any, seats: Any, weight: Any) -> None:
    """Recompute the rows and columns of dirty chunks. O(q + chunks) each."""
    _, _, where, buf, line, cells, keys = graph
    cap, q = buf.shape
    for c in range(cap):
        if line[DIRTY, c] != 0:
            for kind in range(2):
                for d in range(cap):
                    cells[kind, 0, c, d] = -1
                    cells[kind, 0, d, c] = -1
    for c in range(cap):
        if line[DIRTY, c] == 0 or line[RANK, c] < 0:
            continue
        for i in range(line[COUNT, c]):
            h = np.int64(buf[c, i])
            s = h >> 1
            d = where[h ^ 1] // q
            kind = _kind(s, seats)
            key = _key(kind, s, seats, weight)
            if _beats(kind, s, key, cells[kind, 0, c, d], keys[kind, 0, c, d], seats):
                cells[kind, 0, c, d] = s
                cells[kind, 0, d, c] = s
                keys[kind, 0, c, d] = key
                keys[kind, 0, d, c] = key


@njit
def _combine(node: int, columns: Any, count: int, graph: Any, seats: Any) -> None:
    """Recompute cells of a search tree node from its row and its children: `count` columns, or all if -1."""
    _, _, _, buf, line, cells, keys = graph
    for kind in range(2):
        for j in range(buf.shape[0] if count < 0 else count):
            d = j if count < 0 else columns[j]
            best = cells[kind, 0, node, d]
            key = keys[kind, 0, node, d]
            for side in range(2):
                child = line[LEFT + side, node]
                if child >= 0:
                    if _beats(kind, cells[kind, 1, child, d], keys[kind, 1, child, d], best, key, seats):
                        best = cells[kind, 1, child, d]
                        key = keys[kind, 1, child, d]
            cells[kind, 1, node, d] = best
            keys[kind, 1, node, d] = key


@njit
def settle(graph: Any, seats: Any, weight: Any) -> None:
    """Make cells and search tree agree with the sequence again. O(q + chunks log chunks) expected."""
    k, heads, _, buf, line, _, _ = graph
    merge_small(graph)
    _fill_rows(graph, seats, weight)
    left = line[SCRATCH]
    right = line[SCRATCH + 1]
    stack = line[SCRATCH + 2]
    queue = line[SCRATCH + 3]
    stale = line[SCRATCH + 4]
    live = heads[k, LIVE]
    size = 0
    for r in range(live):
        c = np.int64(line[ORDER, r])
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
        stale[c] = line[DIRTY, c] != 0 or left[c] != line[LEFT, c] or right[c] != line[RIGHT, c]
        line[LEFT, c] = left[c]
        line[RIGHT, c] = right[c]
        if left[c] >= 0:
            queue[size] = left[c]
            size += 1
        if right[c] >= 0:
            queue[size] = right[c]
            size += 1
    changed = 0
    for d in range(buf.shape[0]):
        if line[DIRTY, d] != 0:
            stack[changed] = d
            line[DIRTY, d] = 0
            changed += 1
    for i in range(live - 1, -1, -1):
        c = np.int64(queue[i])
        if (left[c] >= 0 and stale[left[c]] != 0) or (right[c] >= 0 and stale[right[c]] != 0):
            stale[c] = 1
        # Where the chunks below are as they were, only the columns of dirty chunks can differ.
        _combine(c, stack, -1 if stale[c] != 0 else changed, graph, seats)


@njit
def _outside(kind: int, deep: int, node: int, lo: int, hi: int, graph: Any, seats: Any) -> Any:
    """The best chord from chunk `node` (deep: 1: from those below) to one of rank outside [lo, hi]. O(chunks)."""
    _, _, _, buf, line, cells, keys = graph
    best = np.int64(-1)
    key = 0.0
    for d in range(buf.shape[0]):
        if line[RANK, d] < lo or line[RANK, d] > hi:
            if _beats(kind, cells[kind, deep, node, d], keys[kind, deep, node, d], best, key, seats):
                best = np.int64(cells[kind, deep, node, d])
                key = keys[kind, deep, node, d]
    return best


@njit
def _pick(kind: int, a: Any, b: Any, seats: Any, weight: Any) -> Any:
    """The better of two chords of a kind, -1 being nobody. O(1)."""
    if a < 0 or b < 0:
        return max(a, b)
    return a if _beats(kind, a, _key(kind, a, seats, weight), b, _key(kind, b, seats, weight), seats) else b


@njit
def best_interlacing(seat: int, graph: Any, seats: Any, weight: Any) -> Any:
    """The heaviest loose edge across the cut of a forest edge, or the lightest forest edge on a loose one's path.

    -1 if there is none. O(q + chunks log chunks) expected. The graph must be settled.
    """
    _, _, where, buf, line, _, _ = graph
    q = buf.shape[1]
    kind = 1 - _kind(seat, seats)
    c = where[2 * seat] // q
    d = where[2 * seat + 1] // q
    first = line[RANK, c] * q + where[2 * seat] % q
    last = line[RANK, d] * q + where[2 * seat + 1] % q
    if first > last:
        first, last = last, first
        c, d = d, c
    best = np.int64(-1)
    for side in range(2 if c != d else 1):
        e = c if side == 0 else d
        for i in range(line[COUNT, e]):
            h = np.int64(buf[e, i])
            s = h >> 1
            if s == seat or _kind(s, seats) != kind:
                continue
            here = line[RANK, e] * q + i
            there = line[RANK, where[h ^ 1] // q] * q + where[h ^ 1] % q
            if (first < here < last) != (first < there < last):
                best = _pick(kind, best, s, seats, weight)
    lo = line[RANK, c]
    hi = line[RANK, d]
    if lo + 1 >= hi:
        return best
    # Both boundary chunks are done with; what is left is between whole chunks: those inside, ranks lo + 1 to
    # hi - 1, and those outside. The top node inside, then down along both borders of the range.
    node = np.int64(line[ORDER, lo + 1])
    for r in range(lo + 2, hi):
        if _hash(np.int64(line[ORDER, r])) > _hash(node):
            node = np.int64(line[ORDER, r])
    best = _pick(kind, best, _outside(kind, 0, node, lo, hi, graph, seats), seats, weight)
    for side in range(2):
        x = np.int64(line[LEFT + side, node])
        while x >= 0:
            r = line[RANK, x]
            if r <= lo or r >= hi:
                x = np.int64(line[RIGHT - side, x])
                continue
            best = _pick(kind, best, _outside(kind, 0, x, lo, hi, graph, seats), seats, weight)
            y = np.int64(line[RIGHT - side, x])
            if y >= 0:
                best = _pick(kind, best, _outside(kind, 1, y, lo, hi, graph, seats), seats, weight)
            x = np.int64(line[LEFT + side, x])
    return best
