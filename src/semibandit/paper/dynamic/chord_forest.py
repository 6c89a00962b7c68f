"""Exchanges in one graph's forest by its chord diagram (see `_chords`). O(sqrt(n) log n) expected.

The same two steps as in `_walk`, for graphs with many vertices; such a graph's vertices have TOP = -2 - (its
number) and no parent pointers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semibandit.compiled.jit import njit
from semibandit.paper.dynamic.chord_cells import best_interlacing, settle
from semibandit.paper.dynamic.chords import (
    COUNT,
    DIRTY,
    LEFT,
    LIVE,
    ORDER,
    RANK,
    RIGHT,
    SPARE,
    exchange,
    insert_spare,
    replace_by_spare,
    touch,
    view,
)
from semibandit.paper.dynamic.forest import ascend
from semibandit.paper.dynamic.order import ahead
from semibandit.paper.dynamic.seats import ARM, END, FIRST, LOOSE, MARK, NEXT, TOP, UP, reseat
from semibandit.paper.dynamic.walk import END0, END1, MOVED, PLACE, RISING, WHO


@njit
def _seat_spare(arm: int, end0: int, end1: int, graph: Any, seats: Any, verts: Any) -> int:
    """Put an edge that has no seat yet into the diagram as the spare chord, loose. O(q + chunks)."""
    k, heads, _, _, _, _, _ = graph
    spare = heads[k, SPARE]
    seats[spare, ARM] = arm
    seats[spare, END] = end0
    seats[spare, END + 1] = end1
    seats[spare, UP] = LOOSE
    # A vertex always has an edge of the forest, and any half-edge of a vertex is a place to stand at it.
    insert_spare(verts[end0, FIRST], verts[end1, FIRST], graph)
    return spare


@njit
def _unseat(seat: int, graph: Any, seats: Any, verts: Any) -> None:
    """Give a seat, loose in the diagram, to the edge that stands at the spare one. O(q + chunks)."""
    k, heads, _, _, _, _, _ = graph
    spare = heads[k, SPARE]
    replace_by_spare(seat, graph)
    reseat(seat, seats[spare, ARM], seats[spare, END], seats[spare, END + 1], seats, verts)
    seats[seat, UP] = seats[spare, UP]


@njit
def _chord_risen(
    task: Any, k: int, seats: Any, verts: Any, weight: Any, heads: Any, pool: Any, keys: Any
) -> int:
    """As `walk_risen`, in graph k."""
    graph = view(k, heads, pool, keys)
    seat = task[PLACE]
    up = np.int64(seats[seat, UP])
    if task[MOVED] != 0:
        spare = _seat_spare(task[WHO], task[END0], task[END1], graph, seats, verts)
        if up != LOOSE:
            exchange(seat, spare, graph)
            seats[seat, UP] = LOOSE
            seats[spare, UP] = up
        _unseat(seat, graph, seats, verts)
    seats[seat, ARM] = task[WHO]
    touch(seat, graph)
    settle(graph, seats, weight)
    if up != LOOSE:
        return seat
    out = best_interlacing(seat, graph, seats, weight)
    if not ahead(weight, task[WHO], seats[out, ARM]):
        return -1
    exchange(seat, out, graph)
    seats[seat, UP] = seats[out, UP]
    seats[out, UP] = LOOSE
    settle(graph, seats, weight)
    return seat


@njit
def _chord_fallen(
    task: Any, k: int, seats: Any, verts: Any, weight: Any, heads: Any, pool: Any, keys: Any
) -> int:
    """As `walk_fallen`, in graph k."""
    graph = view(k, heads, pool, keys)
    seat = task[PLACE]
    moved = task[MOVED] != 0
    up = np.int64(seats[seat, UP])
    spare = heads[k, SPARE]
    if moved:
        _seat_spare(task[WHO], task[END0], task[END1], graph, seats, verts)
    else:
        seats[seat, ARM] = task[WHO]
        touch(seat, graph)
    if up == LOOSE:
        if moved:
            _unseat(seat, graph, seats, verts)
        settle(graph, seats, weight)
        return -1
    settle(graph, seats, weight)
    best = best_interlacing(seat, graph, seats, weight)
    if not moved and (best < 0 or not ahead(weight, seats[best, ARM], task[WHO])):
        return seat
    exchange(seat, best, graph)
    seats[best, UP] = up
    seats[seat, UP] = LOOSE
    if moved:
        _unseat(seat, graph, seats, verts)
        if best == spare:
            best = seat
    settle(graph, seats, weight)
    return best


@njit
def chord_step(
    task: Any, weight: Any, seats: Any, verts: Any, heads: Any, pool: Any, keys: Any, base: Any
) -> int:
    """Carry a task through one chord graph. Changes all but `weight`."""
    seat = task[PLACE]
    loose = seats[seat, UP] == LOOSE
    k = -2 - np.int64(verts[seats[seat, END], TOP])
    if task[RISING] != 0:
        keeper = _chord_risen(task, k, seats, verts, weight, heads, pool, keys)
    else:
        keeper = _chord_fallen(task, k, seats, verts, weight, heads, pool, keys)
    return ascend(keeper, loose, task, seats, verts, base)


@njit
def lay_out(
    k: int, first: int, end: int, seats: Any, verts: Any, weight: Any, heads: Any, pool: Any, keys: Any
) -> None:
    """Draw the diagram of graph k, whose vertices are first .. end - 1: walk around its forest. O(m)."""
    graph = view(k, heads, pool, keys)
    _, _, where, buf, line, cells, _ = graph
    cap, q = buf.shape
    room = q - q // 4
    line[COUNT, :] = 0
    line[RANK, :] = -1
    line[LEFT, :] = -2
    line[RIGHT, :] = -2
    line[DIRTY, :] = 0
    cells[:, :, :, :] = -1
    for c in range(cap):
        line[ORDER, c] = c
    cursor = np.empty(end - first, np.int64)
    entry = np.empty(end - first, np.int64)
    stack = np.empty(end - first, np.int64)
    c = 0
    for root in range(first, end):
        if verts[root, MARK] != 0:
            continue
        verts[root, MARK] = 1
        stack[0] = root
        entry[root - first] = -1
        cursor[root - first] = verts[root, FIRST]
        size = 1
        while size > 0:
            v = stack[size - 1]
            h = cursor[v - first]
            if h >= 0:
                cursor[v - first] = seats[h >> 1, NEXT + (h & 1)]
                if entry[v - first] == h ^ 1:
                    continue
                if seats[h >> 1, UP] != LOOSE:
                    x = seats[h >> 1, END + 1 - (h & 1)]
                    verts[x, MARK] = 1
                    stack[size] = x
                    entry[x - first] = h
                    cursor[x - first] = verts[x, FIRST]
                    size += 1
            else:
                size -= 1
                h = entry[v - first] ^ 1
                if entry[v - first] < 0:
                    continue
            if line[COUNT, c] == room:
                c += 1
            buf[c, line[COUNT, c]] = h
            where[h] = c * q + line[COUNT, c]
            line[COUNT, c] += 1
    heads[k, LIVE] = c + 1
    for i in range(c + 1):
        line[RANK, i] = i
        line[DIRTY, i] = 1
    for v in range(first, end):
        verts[v, MARK] = 0
        verts[v, TOP] = -2 - k
    settle(graph, seats, weight)
