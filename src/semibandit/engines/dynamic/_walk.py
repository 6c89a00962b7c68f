"""Exchanges in one graph's forest by walking it: parent pointers and plain search. O(n) worst case.

Forests are rooted by parent pointers (`TOP`, a seat; -1 at a root), so an exchange is the reversal of one path.
In forests as they come, paths and the smaller sides of cuts are short, and this beats everything cleverer until
graphs have tens of thousands of vertices; `_chords` takes over there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semibandit._jit import njit
from semibandit.engines.dynamic._order import ahead
from semibandit.engines.dynamic._seats import ARM, END, FIRST, LOOSE, MARK, NEXT, TOP, UP, reseat


@njit(inline="always")
def _across(seat: int, v: int, seats: Any) -> int:
    """The other end of a seat's edge."""
    return np.int64(seats[seat, END]) + seats[seat, END + 1] - v


@njit
def _lower_end(seat: int, seats: Any, verts: Any) -> int:
    """The end of a forest edge that is the child of the other end."""
    v = np.int64(seats[seat, END])
    return v if verts[v, TOP] == seat else np.int64(seats[seat, END + 1])


@njit
def _hang(v: int, seat: int, lower: int, seats: Any, verts: Any) -> None:
    """Make v, which is below `lower`, the root of the part below `lower`, with `seat` above it. O(path)."""
    above = seat
    while True:
        old = np.int64(verts[v, TOP])
        verts[v, TOP] = above
        if v == lower:
            return
        v = _across(old, v, seats)
        above = old


@njit
def _below(v: int, lower: int, seats: Any, verts: Any) -> bool:
    """Whether v is in the subtree of `lower`. O(depth)."""
    while v != lower:
        if verts[v, TOP] < 0:
            return False
        v = _across(np.int64(verts[v, TOP]), v, seats)
    return True


@njit
def _lightest_between(u: int, v: int, seats: Any, verts: Any, weight: Any) -> Any:
    """The lightest forest edge on the path from u to v, and the one of u, v that is below it. O(path).

    Climbs from both ends in turn, so that no more than twice the longer leg is walked.
    """
    a = u
    b = v
    verts[a, MARK] = 1
    verts[b, MARK] = 2
    while True:
        if verts[a, TOP] >= 0:
            a = _across(np.int64(verts[a, TOP]), a, seats)
            if verts[a, MARK] == 2:
                meet = a
                break
            verts[a, MARK] = 1
        if verts[b, TOP] >= 0:
            b = _across(np.int64(verts[b, TOP]), b, seats)
            if verts[b, MARK] == 1:
                meet = b
                break
            verts[b, MARK] = 2
    lightest = np.int64(-1)
    below = np.int64(-1)
    for leg in range(2):
        start = u if leg == 0 else v
        x = start
        while x != meet:
            verts[x, MARK] = 0
            s = np.int64(verts[x, TOP])
            if lightest < 0 or ahead(weight, seats[lightest, ARM], seats[s, ARM]):
                lightest = s
                below = start
            x = _across(s, x, seats)
        while verts[x, MARK] != 0:
            verts[x, MARK] = 0
            if verts[x, TOP] >= 0:
                x = _across(np.int64(verts[x, TOP]), x, seats)
    return lightest, below


@njit
def _mark_smaller_side(seat: int, seats: Any, verts: Any, queue: Any) -> Any:
    """Cut a forest edge and set MARK = 1 on the vertices of the part with fewer edges hanging on it.

    Explores both parts in turn, one edge at a time: O(edges at the smaller part). Returns the range of `queue`
    that lists the marked vertices.
    """
    half = queue.size // 2
    a = seats[seat, END]
    b = seats[seat, END + 1]
    queue[0] = a
    queue[half] = b
    verts[a, MARK] = 1
    verts[b, MARK] = 2
    at_a = 0
    end_a = 1
    at_b = half
    end_b = half + 1
    edge_a = verts[a, FIRST]
    edge_b = verts[b, FIRST]
    while True:
        if edge_a < 0:
            at_a += 1
            if at_a == end_a:
                for i in range(half, end_b):
                    verts[queue[i], MARK] = 0
                return 0, end_a
            edge_a = verts[queue[at_a], FIRST]
        else:
            s = edge_a >> 1
            i = edge_a & 1
            edge_a = seats[s, NEXT + i]
            if seats[s, UP] != LOOSE and s != seat:
                v = seats[s, END + 1 - i]
                if verts[v, MARK] == 0:
                    verts[v, MARK] = 1
                    queue[end_a] = v
                    end_a += 1
        if edge_b < 0:
            at_b += 1
            if at_b == end_b:
                for i in range(end_a):
                    verts[queue[i], MARK] = 0
                for i in range(half, end_b):
                    verts[queue[i], MARK] = 1
                return half, end_b
            edge_b = verts[queue[at_b], FIRST]
        else:
            s = edge_b >> 1
            i = edge_b & 1
            edge_b = seats[s, NEXT + i]
            if seats[s, UP] != LOOSE and s != seat:
                v = seats[s, END + 1 - i]
                if verts[v, MARK] == 0:
                    verts[v, MARK] = 2
                    queue[end_b] = v
                    end_b += 1


@njit
def _heaviest_across(first: int, end: int, seats: Any, verts: Any, weight: Any, queue: Any) -> int:
    """The heaviest loose edge with exactly one end marked; the marked vertices are in `queue`. O(their edges)."""
    best = np.int64(-1)
    for j in range(first, end):
        half_edge = verts[queue[j], FIRST]
        while half_edge >= 0:
            s = half_edge >> 1
            i = half_edge & 1
            if seats[s, UP] == LOOSE and verts[seats[s, END + 1 - i], MARK] == 0:
                if best < 0 or ahead(weight, seats[s, ARM], seats[best, ARM]):
                    best = np.int64(s)
            half_edge = seats[s, NEXT + i]
    return best


@njit
def walk_risen(task: Any, seats: Any, verts: Any, weight: Any) -> int:
    """One graph's forest after the edge at a seat got heavier, or (moved) gave way to a heavier edge.

    Takes a task (see `_forest`). Returns the seat by which the parent graph is concerned, or -1 if it is not.
    """
    seat = task[0]
    arm = task[1]
    moved = task[2] != 0
    if seats[seat, UP] != LOOSE:
        if moved:
            # The edge displaced what sat here in the child graph: so it does in this forest.
            lower = _lower_end(seat, seats, verts)
            v = task[3] if _below(task[3], lower, seats, verts) else task[4]
            reseat(seat, arm, task[3], task[4], seats, verts)
            _hang(v, seat, lower, seats, verts)
        seats[seat, ARM] = arm
        return seat
    if moved:
        reseat(seat, arm, task[3], task[4], seats, verts)
    seats[seat, ARM] = arm
    u = np.int64(seats[seat, END])
    v = np.int64(seats[seat, END + 1])
    out, v = _lightest_between(u, v, seats, verts, weight)
    if not ahead(weight, arm, seats[out, ARM]):
        return -1
    _hang(v, seat, _lower_end(out, seats, verts), seats, verts)
    seats[seat, UP] = seats[out, UP]
    seats[out, UP] = LOOSE
    return seat


@njit
def walk_fallen(task: Any, seats: Any, verts: Any, weight: Any, queue: Any) -> int:
    """One graph's forest after the edge at a seat got lighter, or (moved) gave way to a lighter edge.

    Takes a task (see `_forest`). Returns the seat by which the parent graph is concerned, or -1 if it is not.
    """
    seat = task[0]
    arm = task[1]
    moved = task[2] != 0
    if seats[seat, UP] == LOOSE:
        if moved:
            reseat(seat, arm, task[3], task[4], seats, verts)
        seats[seat, ARM] = arm
        return -1
    first, end = _mark_smaller_side(seat, seats, verts, queue)
    best = _heaviest_across(first, end, seats, verts, weight, queue)
    lower = _lower_end(seat, seats, verts)
    marked = verts[lower, MARK] == 1
    stays = True
    if moved:
        stays = verts[task[3], MARK] != verts[task[4], MARK]
        reseat(seat, arm, task[3], task[4], seats, verts)
    seats[seat, ARM] = arm
    keeper = seat
    if best >= 0 and (not stays or ahead(weight, seats[best, ARM], arm)):
        seats[best, UP] = seats[seat, UP]
        seats[seat, UP] = LOOSE
        keeper = best
    if moved or keeper != seat:
        # Hang the part below the cut by its end of the edge that keeps it.
        v = np.int64(seats[keeper, END])
        if (verts[v, MARK] == 1) != marked:
            v = np.int64(seats[keeper, END + 1])
        _hang(v, keeper, lower, seats, verts)
    for j in range(first, end):
        verts[queue[j], MARK] = 0
    return keeper
