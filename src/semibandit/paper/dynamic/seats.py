"""The state of a dynamic spanning forest: where the edges of each graph of the sparsification tree sit.

Every graph of the tree (see `sparsify`) holds a fixed number of SEATS, each taken by one edge. A seat whose
edge is in the graph's forest has a seat in the parent graph, `UP`; a seat whose edge is not has UP = LOOSE. Since
weights change but no edge ever disappears, the forests always span the same vertices: all that ever happens is
that one edge takes another's place. Edges hang on unordered doubly linked lists at both ends; half-edge 2 s + i
is end i of seat s.
"""

from __future__ import annotations

from typing import NamedTuple

from semibandit.compiled.handle import Floats1, Ints1, Ints2, Shorts1, Shorts2
from semibandit.compiled.jit import kernel

# Columns of `seats`; END, NEXT and PREV have one column for each end. A row is half a cache line.
ARM, END, UP, NEXT, PREV = 0, 1, 3, 4, 6
SEAT_COLUMNS = 8
# UP of an edge outside its forest; in the root's forest UP = -2 - (index in the base).
LOOSE = -1

# Columns of `verts`: the vertex in the parent graph; the first half-edge of its list; the seat of the edge to its
# parent in the forest, -1 at a root, and -2 - k in the graph that has chord diagram k; scratch, 0 at rest.
LIFT, FIRST, TOP, MARK = range(4)

# Columns of `arms`: seat at the leaf of the tree (-1: a loop); place in the tournament of parallel edges, OFFSET = -1
# for an edge that has none.
SEAT, OFFSET, SLOT = range(3)

# Entries of a task, see `forest`.
PLACE, WHO, MOVED, END0, END1, RISING, STEPS, EXCESS, ALLOWANCE, LIMIT, DIAGRAM = range(11)
TASK_ENTRIES = 11


class Forests(NamedTuple):
    """All graphs of the tree. `champions`: tournaments of parallel edges; `queue`: scratch; `task`: see `forest`."""

    weight: Floats1
    arms: Ints2
    champions: Shorts1
    seats: Shorts2
    verts: Shorts2
    base: Ints1
    queue: Ints1
    task: Ints1


@kernel
def attach(seats, verts, seat):
    """Hang both ends of a seat on the lists of their vertices. O(1)."""
    for i in range(2):
        v = seats[seat, END + i]
        after = verts[v, FIRST]
        seats[seat, NEXT + i] = after
        seats[seat, PREV + i] = -1
        if after >= 0:
            seats[after >> 1, PREV + (after & 1)] = 2 * seat + i
        verts[v, FIRST] = 2 * seat + i


@kernel
def _detach(seats, verts, seat):
    """Undo `attach`. O(1)."""
    for i in range(2):
        after = seats[seat, NEXT + i]
        before = seats[seat, PREV + i]
        if after >= 0:
            seats[after >> 1, PREV + (after & 1)] = before
        if before >= 0:
            seats[before >> 1, NEXT + (before & 1)] = after
        else:
            verts[seats[seat, END + i], FIRST] = after


@kernel
def reseat(f, seat, arm, end0, end1):
    """Give a seat to another edge. O(1)."""
    _detach(f.seats, f.verts, seat)
    f.seats[seat, ARM] = arm
    f.seats[seat, END] = end0
    f.seats[seat, END + 1] = end1
    attach(f.seats, f.verts, seat)
