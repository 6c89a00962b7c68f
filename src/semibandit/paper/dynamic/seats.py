"""Seats: where the edges of each graph of the sparsification tree sit.

Every graph of the tree (see `_sparsify`) holds a fixed number of SEATS, each taken by one edge. A seat whose
edge is in the graph's forest has a seat in the parent graph, `UP`; a seat whose edge is not has UP = -1. Since
weights change but no edge ever disappears, the forests always span the same vertices: all that ever happens is
that one edge takes another's place. Edges hang on unordered doubly linked lists at both ends; half-edge 2 s + i
is end i of seat s.
"""

from __future__ import annotations

from typing import Any

from semibandit.compiled.jit import njit

ARM, END, UP, NEXT, PREV = 0, 1, 3, 4, 6  # seats; END, NEXT, PREV have one column for each end
LIFT, FIRST, TOP, MARK = (
    0,
    1,
    2,
    3,
)  # vertices; LIFT: the vertex in the parent graph, MARK: scratch, 0 at rest
SEAT, OFF, NODE = 0, 1, 2  # arms; OFF, NODE: place in the tournament of parallel edges, OFF = -1 if alone
LOOSE = -1  # UP of an edge outside its forest; in the root's forest UP = -2 - (index in the base)


@njit
def attach(seat: int, seats: Any, verts: Any) -> None:
    """Hang both ends of a seat on the lists of their vertices. O(1). Changes `seats`, `verts`."""
    for i in range(2):
        v = seats[seat, END + i]
        after = verts[v, FIRST]
        seats[seat, NEXT + i] = after
        seats[seat, PREV + i] = -1
        if after >= 0:
            seats[after >> 1, PREV + (after & 1)] = 2 * seat + i
        verts[v, FIRST] = 2 * seat + i


@njit
def detach(seat: int, seats: Any, verts: Any) -> None:
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


@njit
def reseat(seat: int, arm: int, end0: int, end1: int, seats: Any, verts: Any) -> None:
    """Give a seat to another edge. O(1)."""
    detach(seat, seats, verts)
    seats[seat, ARM] = arm
    seats[seat, END] = end0
    seats[seat, END + 1] = end1
    attach(seat, seats, verts)
