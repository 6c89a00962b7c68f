"""Exchanges in one graph's forest by walking it: parent pointers and plain search. O(n) worst case.

Forests are rooted by parent pointers (`TOP`, a seat; -1 at a root), so an exchange is the reversal of one path.
In forests as they come, paths and the smaller sides of cuts are short, and nothing cleverer beats this. Where
they are long (ladders, paths, rings), the steps counted here tell, and `chords` takes over.
"""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import inline_kernel, kernel
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
    STEPS,
    TOP,
    UP,
    WHO,
    reseat,
)


@inline_kernel
def _across(seats, seat, v):
    """The other end of a seat's edge."""
    return np.int64(seats[seat, END]) + seats[seat, END + 1] - v


@kernel
def _lower_end(f, seat):
    """The end of a forest edge that is the child of the other end."""
    v = np.int64(f.seats[seat, END])
    return v if f.verts[v, TOP] == seat else np.int64(f.seats[seat, END + 1])


@kernel
def _hang(f, v, seat, lower):
    """Make v, which is below `lower`, the root of the part below `lower`, with `seat` above it. O(path)."""
    seats, verts = f.seats, f.verts
    above = seat
    steps = 1
    while True:
        old = np.int64(verts[v, TOP])
        verts[v, TOP] = above
        if v == lower:
            break
        v = _across(seats, old, v)
        above = old
        steps += 1
    f.task[STEPS] += steps


@kernel
def _below(f, v, lower):
    """Whether v is in the subtree of `lower`. O(depth)."""
    seats, verts = f.seats, f.verts
    steps = 1
    while v != lower and verts[v, TOP] >= 0:
        v = _across(seats, np.int64(verts[v, TOP]), v)
        steps += 1
    f.task[STEPS] += steps
    return v == lower


@kernel
def _lightest_between(f, u, v):
    """The lightest forest edge on the path from u to v, and the one of u, v that is below it. O(path).

    Climbs from both ends in turn, so that no more than twice the longer leg is walked.
    """
    seats, verts, weight = f.seats, f.verts, f.weight
    a = u
    b = v
    verts[a, MARK] = 1
    verts[b, MARK] = 2
    steps = 0
    while True:
        steps += 4  # each vertex marked is visited again
        if verts[a, TOP] >= 0:
            a = _across(seats, np.int64(verts[a, TOP]), a)
            if verts[a, MARK] == 2:
                meet = a
                break
            verts[a, MARK] = 1
        if verts[b, TOP] >= 0:
            b = _across(seats, np.int64(verts[b, TOP]), b)
            if verts[b, MARK] == 1:
                meet = b
                break
            verts[b, MARK] = 2
    lightest = np.int64(-1)
    below = u
    for leg in range(2):
        start = u if leg == 0 else v
        x = start
        while x != meet:
            verts[x, MARK] = 0
            s = np.int64(verts[x, TOP])
            if lightest < 0 or ahead(weight, seats[lightest, ARM], seats[s, ARM]):
                lightest = s
                below = start
            x = _across(seats, s, x)
        while verts[x, MARK] != 0:
            verts[x, MARK] = 0
            if verts[x, TOP] >= 0:
                x = _across(seats, np.int64(verts[x, TOP]), x)
    f.task[STEPS] += steps
    return lightest, below


@kernel
def _mark_smaller_side(f):
    """Cut the task's forest edge and set MARK = 1 on the vertices of the part with fewer edges hanging on it.

    Explores both parts in turn, one edge at a time: O(edges at the smaller part). Returns the range of `queue`
    that lists the marked vertices.
    """
    seats, verts, queue = f.seats, f.verts, f.queue
    cut = f.task[PLACE]
    half = queue.size // 2
    at = (0, half)
    end = (1, half + 1)
    edge = (np.int64(-1), np.int64(-1))
    for side in range(2):
        v = np.int64(seats[cut, END + side])
        queue[side * half] = v
        verts[v, MARK] = 1 + side
        edge = (edge[1], np.int64(verts[v, FIRST]))
    side = 1
    steps = 0
    while True:
        # The pairs hold the part to be explored now first.
        side = 1 - side
        steps += 2
        h = edge[0]
        here = at[0]
        tail = end[0]
        if h < 0:
            here += 1
            if here == tail:
                break
            h = np.int64(verts[queue[here], FIRST])
        else:
            s = h >> 1
            v = np.int64(seats[s, END + 1 - (h & 1)])
            if seats[s, UP] != LOOSE and s != cut and verts[v, MARK] == 0:
                verts[v, MARK] = 1 + side
                queue[tail] = v
                tail += 1
            h = np.int64(seats[s, NEXT + (h & 1)])
        at = (at[1], here)
        end = (end[1], tail)
        edge = (edge[1], h)
    for i in range((1 - side) * half, end[1]):
        verts[queue[i], MARK] = 0
    for i in range(side * half, end[0]):
        verts[queue[i], MARK] = 1
    f.task[STEPS] += steps
    return side * half, end[0]


@kernel
def _heaviest_across(f, first, end):
    """The heaviest loose edge with exactly one end marked; the marked vertices are in `queue`. O(their edges)."""
    seats, verts, weight, queue = f.seats, f.verts, f.weight, f.queue
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


@kernel
def walk_risen(f):
    """One graph's forest after the edge at a seat got heavier, or (moved) gave way to a heavier edge.

    Carries out the task. Returns the seat by which the parent graph is concerned, or -1 if it is not.
    """
    task, seats, weight = f.task, f.seats, f.weight
    seat = task[PLACE]
    arm = task[WHO]
    moved = task[MOVED] != 0
    if seats[seat, UP] != LOOSE:
        if moved:
            # The edge displaced what sat here in the child graph: so it does in this forest.
            lower = _lower_end(f, seat)
            v = task[END0] if _below(f, task[END0], lower) else task[END1]
            reseat(f, seat, arm, task[END0], task[END1])
            _hang(f, v, seat, lower)
        seats[seat, ARM] = arm
        return seat
    if moved:
        reseat(f, seat, arm, task[END0], task[END1])
    seats[seat, ARM] = arm
    u = np.int64(seats[seat, END])
    v = np.int64(seats[seat, END + 1])
    out, v = _lightest_between(f, u, v)
    if not ahead(weight, arm, seats[out, ARM]):
        return -1
    _hang(f, v, seat, _lower_end(f, out))
    seats[seat, UP] = seats[out, UP]
    seats[out, UP] = LOOSE
    return seat


@kernel
def walk_fallen(f):
    """One graph's forest after the edge at a seat got lighter, or (moved) gave way to a lighter edge.

    Carries out the task. Returns the seat by which the parent graph is concerned, or -1 if it is not.
    """
    task, seats, verts, weight, queue = f.task, f.seats, f.verts, f.weight, f.queue
    seat = task[PLACE]
    arm = task[WHO]
    moved = task[MOVED] != 0
    if seats[seat, UP] == LOOSE:
        if moved:
            reseat(f, seat, arm, task[END0], task[END1])
        seats[seat, ARM] = arm
        return -1
    first, end = _mark_smaller_side(f)
    best = _heaviest_across(f, first, end)
    lower = _lower_end(f, seat)
    marked = verts[lower, MARK] == 1
    stays = True
    if moved:
        stays = verts[task[END0], MARK] != verts[task[END1], MARK]
        reseat(f, seat, arm, task[END0], task[END1])
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
        _hang(f, v, keeper, lower)
    for j in range(first, end):
        verts[queue[j], MARK] = 0
    return keeper
