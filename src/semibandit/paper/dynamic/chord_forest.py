"""Exchanges in one graph's forest by its chord diagram (see `chords`). O(sqrt(n) log n) expected.

The same two steps as in `walk`, for graphs with many vertices; such a graph's vertices have TOP = -2 - (number of its
diagram) and no parent pointers.
"""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import kernel
from semibandit.paper.dynamic.chord_cells import best_interlacing, settle
from semibandit.paper.dynamic.chords import exchange, insert_spare, put, replace_by_spare, touch
from semibandit.paper.dynamic.forest import ascend
from semibandit.paper.dynamic.order import ahead
from semibandit.paper.dynamic.seats import (
    ARM,
    END,
    END0,
    END1,
    FIRST,
    LOOSE,
    MARK,
    MOVED,
    NEXT,
    PLACE,
    RISING,
    TOP,
    UP,
    WHO,
    reseat,
)


@kernel
def _seat_spare(f, d):
    """Put the task's edge, which has no seat yet, into the diagram as the spare chord, loose. O(q + chunks)."""
    end0, end1 = f.task[END0], f.task[END1]
    f.seats[d.spare, ARM] = f.task[WHO]
    f.seats[d.spare, END] = end0
    f.seats[d.spare, END + 1] = end1
    f.seats[d.spare, UP] = LOOSE
    # A vertex always has an edge of the forest, and any half-edge of a vertex is a place to stand at it.
    insert_spare(d, np.int64(f.verts[end0, FIRST]), np.int64(f.verts[end1, FIRST]))


@kernel
def _unseat(f, d, seat):
    """Give a seat, loose in the diagram, to the edge that stands at the spare one. O(q + chunks)."""
    replace_by_spare(d, seat)
    spare = f.seats[d.spare]
    reseat(f, seat, spare[ARM], spare[END], spare[END + 1])
    f.seats[seat, UP] = spare[UP]


@kernel
def _chord_risen(f, d):
    """As `walk_risen`."""
    seats = f.seats
    seat, who = f.task[PLACE], f.task[WHO]
    up = np.int64(seats[seat, UP])
    if f.task[MOVED] != 0:
        _seat_spare(f, d)
        if up != LOOSE:
            exchange(d, seat, d.spare)
            seats[seat, UP] = LOOSE
            seats[d.spare, UP] = up
        _unseat(f, d, seat)
    seats[seat, ARM] = who
    touch(d, seat)
    settle(f, d)
    if up != LOOSE:
        return seat
    out = best_interlacing(f, d, seat)
    if not ahead(f.weight, who, seats[out, ARM]):
        return np.int64(-1)
    exchange(d, seat, out)
    seats[seat, UP] = seats[out, UP]
    seats[out, UP] = LOOSE
    settle(f, d)
    return seat


@kernel
def _chord_fallen(f, d):
    """As `walk_fallen`."""
    seats = f.seats
    seat, who = f.task[PLACE], f.task[WHO]
    moved = f.task[MOVED] != 0
    up = np.int64(seats[seat, UP])
    if moved:
        _seat_spare(f, d)
    else:
        seats[seat, ARM] = who
        touch(d, seat)
    if up == LOOSE:
        if moved:
            _unseat(f, d, seat)
        settle(f, d)
        return np.int64(-1)
    settle(f, d)
    best = best_interlacing(f, d, seat)
    if not moved and (best < 0 or not ahead(f.weight, seats[best, ARM], who)):
        return seat
    exchange(d, seat, best)
    seats[best, UP] = up
    seats[seat, UP] = LOOSE
    if moved:
        _unseat(f, d, seat)
        if best == d.spare:
            best = seat
    settle(f, d)
    return best


@kernel
def chord_step(f, d):
    """Carry a task through one graph with a chord diagram. Changes all but `weight`."""
    loose = f.seats[f.task[PLACE], UP] == LOOSE
    keeper = _chord_risen(f, d) if f.task[RISING] != 0 else _chord_fallen(f, d)
    return ascend(f, keeper, loose)


@kernel
def lay_out(f, d, number, first, scratch):
    """Draw diagram `number`, of the graph whose vertices begin at `first`: walk around its forest. O(m).

    `scratch` has three entries for each of the vertices.
    """
    seats, verts = f.seats, f.verts
    cursor, entry, stack = scratch[0], scratch[1], scratch[2]
    cap, q = d.half_edges.shape
    end = first + stack.shape[0]
    room = q - q // 4
    d.count[:] = 0
    d.rank[:] = -1
    d.left[:] = -2
    d.right[:] = -2
    d.dirty[:] = 0
    d.cell[:, :, :] = -1
    for c in range(cap):
        d.order[c] = c
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
            if d.count[c] == room:
                c += 1
            put(d, c, d.count[c], h)
            d.count[c] += 1
    d.live[0] = c + 1
    for i in range(c + 1):
        d.rank[i] = i
        d.dirty[i] = 1
    for v in range(first, end):
        verts[v, MARK] = 0
        verts[v, TOP] = -2 - number
    settle(f, d)
