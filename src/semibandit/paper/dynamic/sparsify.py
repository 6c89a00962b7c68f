"""The sparsification tree over the edges of a graph (Eppstein, Galil, Italiano and Nissenzweig).

Halve the vertex set again and again. A node of the tree is a pair of equally deep vertex blocks and stands for
all edges between them; its children are the pairs of half-blocks. A node keeps a graph of its own: the edges in
the forests of its children (only these can be in its forest), or all of its edges if they are few, which makes
it a leaf. So a graph has O(n) edges on the n vertices of its two blocks, and n halves from level to level: one
change of weight costs O(V + V/2 + V/4 + ...) = O(V) when each graph on the way is repaired in O(n).

Parallel edges meet in a tournament first, and only their champion counts as an edge; loops are left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semibandit.arms import IntArray
from semibandit.compiled.jit import njit
from semibandit.paper.dynamic.order import play_all
from semibandit.paper.dynamic.seats import (
    ARM,
    END,
    FIRST,
    LIFT,
    LOOSE,
    MARK,
    NODE,
    OFF,
    SEAT,
    TOP,
    UP,
    attach,
)

LO, HI, LEVEL, PARENT, CHILD, CHILDREN, VERT, DEPTH = 0, 1, 2, 3, 4, 5, 6, 7  # columns of the node table


def interleave(u: IntArray, v: IntArray) -> IntArray:
    """Codes whose bits are those of u and v in turn: sorted, they list every node's edges in one piece. O(n)."""
    code = np.zeros(u.size, dtype=np.int64)
    for bit in range(int(max(u.max(initial=0), v.max(initial=0))).bit_length()):
        code |= ((u >> bit) & 1) << (2 * bit + 1)
        code |= ((v >> bit) & 1) << (2 * bit)
    return code


@njit
def split(code: Any, bits: int, spread: int) -> Any:
    """The node table of the tree over sorted, distinct codes, in breadth-first order. O(edges * levels).

    A node is a leaf when it has at most `spread` edges a vertex of its blocks. Nodes with one child are skipped.
    """
    nodes = np.empty((max(4 * code.size, 1), 8), np.int64)
    nodes[0, LO] = 0
    nodes[0, HI] = code.size
    nodes[0, LEVEL] = 0
    nodes[0, PARENT] = -1
    nodes[0, DEPTH] = 0
    size = 1
    z = 0
    while z < size:
        lo = nodes[z, LO]
        hi = nodes[z, HI]
        level = nodes[z, LEVEL]
        nodes[z, CHILD] = size
        nodes[z, CHILDREN] = 0
        while hi > lo:
            block = np.int64(1) << (bits - level)
            if hi - lo <= spread * 2 * block or level == bits:
                break
            shift = 2 * (bits - level - 1)
            level += 1
            if (code[lo] >> shift) == (code[hi - 1] >> shift):
                continue
            start = lo
            while start < hi:
                prefix = code[start] >> shift
                end = start + 1
                # Gallop, then halve: children are long runs.
                step = 1
                while end < hi and (code[end] >> shift) == prefix:
                    end += step
                    step *= 2
                top = min(end, hi)
                low = start
                while top - low > 1:
                    mid = (low + top) // 2
                    if (code[mid] >> shift) == prefix:
                        low = mid
                    else:
                        top = mid
                nodes[size, LO] = start
                nodes[size, HI] = top
                nodes[size, LEVEL] = level
                nodes[size, PARENT] = z
                nodes[size, DEPTH] = nodes[z, DEPTH] + 1
                nodes[z, CHILDREN] += 1
                size += 1
                start = top
            break
        z += 1
    return nodes[:size].copy()


@njit
def number_vertices(nodes: Any, u: Any, v: Any, n_vertices: int) -> Any:
    """Number the vertices of each node's graph: (vertex table, ends of each edge at its leaf, vertices of each node).

    Only vertices that edges of the node touch are numbered. O(vertices numbered + edges). Sets nodes[:, VERT].
    """
    n_nodes = nodes.shape[0]
    bound = 0
    for z in range(n_nodes):
        bound += min(2 * (nodes[z, HI] - nodes[z, LO]), n_vertices)
    name = np.empty(bound, np.int64)  # the vertex of the input
    lift = np.full(bound, -1, np.int64)
    local = np.full(n_vertices, -1, np.int64)
    seen = np.full(n_vertices, -1, np.int64)
    ends = np.empty((u.size, 2), np.int64)
    count = np.zeros(n_nodes, np.int64)
    size = 0
    for z in range(n_nodes - 1, -1, -1):
        nodes[z, VERT] = size
        if nodes[z, CHILDREN] == 0:
            for e in range(nodes[z, LO], nodes[z, HI]):
                for i in range(2):
                    x = u[e] if i == 0 else v[e]
                    if seen[x] != z:
                        seen[x] = z
                        local[x] = size
                        name[size] = x
                        size += 1
                    ends[e, i] = local[x]
        else:
            for c in range(nodes[z, CHILD], nodes[z, CHILD] + nodes[z, CHILDREN]):
                for y in range(nodes[c, VERT], nodes[c, VERT] + count[c]):
                    x = name[y]
                    if seen[x] != z:
                        seen[x] = z
                        local[x] = size
                        name[size] = x
                        size += 1
                    lift[y] = local[x]
        count[z] = size - nodes[z, VERT]
    verts = np.full((size, 4), -1, np.int32)
    for y in range(size):
        verts[y, LIFT] = lift[y]
        verts[y, MARK] = 0
    return verts, ends, count


@njit
def _find(link: Any, v: int) -> int:
    while link[v] >= 0:
        if link[link[v]] >= 0:
            link[v] = link[link[v]]
        v = link[v]
    return v


@njit
def _survivals(ordered: Any, leaf: Any, nodes: Any, ends: Any, verts: Any) -> Any:
    """In how many graphs, from its leaf up, each edge is in the forest: Kruskal in all graphs of a depth at once.

    `ordered` lists the edges, heaviest first. O(levels * edges) at worst; few edges survive their leaf.
    """
    lives = np.zeros(leaf.size, np.int64)
    where = leaf.copy()
    at = ends.copy()
    alive = ordered.copy()
    link = np.full(verts.shape[0], -1, np.int64)
    n_alive = alive.size
    for depth in range(nodes[nodes.shape[0] - 1, DEPTH], -1, -1):
        kept = 0
        for i in range(n_alive):
            e = alive[i]
            z = where[e]
            if nodes[z, DEPTH] == depth:
                a = _find(link, at[e, 0])
                b = _find(link, at[e, 1])
                if a == b:
                    continue
                if link[a] > link[b]:
                    a, b = b, a
                link[a] += link[b]
                link[b] = a
                lives[e] += 1
                where[e] = nodes[z, PARENT]
                at[e, 0] = verts[at[e, 0], LIFT]
                at[e, 1] = verts[at[e, 1], LIFT]
            alive[kept] = e
            kept += 1
        n_alive = kept
    return lives


@njit
def seat_edges(ordered: Any, champion: Any, nodes: Any, ends: Any, verts: Any, rank: int) -> Any:
    """(seats, base, number of seats of each graph): edges at their leaves, and copies as far up as forests go.

    `champion` is the arm that stands for each edge. Seat e is edge e at its leaf. O(levels * edges).
    Changes `verts`.
    """
    n_edges = champion.size
    leaf = np.empty(n_edges, np.int64)
    for z in range(nodes.shape[0]):
        if nodes[z, CHILDREN] == 0:
            leaf[nodes[z, LO] : nodes[z, HI]] = z
    lives = _survivals(ordered, leaf, nodes, ends, verts)
    total = n_edges
    for e in range(n_edges):
        total += min(lives[e], nodes[leaf[e], DEPTH])
    seats = np.full((total, 8), -1, np.int32)
    base = np.empty(rank, np.int64)
    load = np.zeros(nodes.shape[0], np.int64)
    size = n_edges
    filled = 0
    for e in range(n_edges):
        a = ends[e, 0]
        b = ends[e, 1]
        s = e
        z = leaf[e]
        for life in range(lives[e] + 1):
            load[z] += 1
            seats[s, ARM] = champion[e]
            seats[s, END] = a
            seats[s, END + 1] = b
            if life == lives[e]:
                seats[s, UP] = LOOSE
            elif life == nodes[leaf[e], DEPTH]:
                seats[s, UP] = -2 - filled
                base[filled] = champion[e]
                filled += 1
                break
            else:
                seats[s, UP] = size
                s = size
                size += 1
                z = nodes[z, PARENT]
                a = verts[a, LIFT]
                b = verts[b, LIFT]
    # Loose edges first: lists then start with forest edges, which is what searches follow.
    for s in range(total):
        if seats[s, UP] == LOOSE:
            attach(s, seats, verts)
    for s in range(total):
        if seats[s, UP] != LOOSE:
            attach(s, seats, verts)
    return seats, base, load


@njit
def root_forests(seats: Any, verts: Any) -> None:
    """Set the parent pointers of all forests. O(vertices + seats). Changes `verts`."""
    stack = np.empty(verts.shape[0], np.int64)
    for root in range(verts.shape[0]):
        if verts[root, MARK] != 0:
            continue
        verts[root, MARK] = 1
        verts[root, TOP] = -1
        stack[0] = root
        size = 1
        while size > 0:
            size -= 1
            v = stack[size]
            half_edge = verts[v, FIRST]
            while half_edge >= 0:
                s = half_edge >> 1
                x = seats[s, END + 1 - (half_edge & 1)]
                if seats[s, UP] != LOOSE and verts[x, MARK] == 0:
                    verts[x, MARK] = 1
                    verts[x, TOP] = s
                    stack[size] = x
                    size += 1
                half_edge = seats[s, 4 + (half_edge & 1)]
    verts[:, MARK] = 0


@njit
def crown(members: Any, start: Any, weight: Any, n_arms: int) -> Any:
    """Tournaments of parallel edges: (arm table, tournaments, champion of each edge). O(K).

    Edge e is the parallel class members[start[e] : start[e + 1]].
    """
    arms = np.full((n_arms, 3), -1, np.int64)
    total = 0
    for e in range(start.size - 1):
        if start[e + 1] - start[e] > 1:
            total += 2 * (start[e + 1] - start[e])
    win = np.full(max(total, 1), -1, np.int32)
    champion = np.empty(start.size - 1, np.int64)
    off = 0
    for e in range(start.size - 1):
        n = start[e + 1] - start[e]
        for i in range(n):
            arm = members[start[e] + i]
            arms[arm, SEAT] = e
            if n > 1:
                arms[arm, OFF] = off
                arms[arm, NODE] = n + i
                win[off + n + i] = arm
        if n == 1:
            champion[e] = members[start[e]]
        else:
            play_all(off, n, win, weight)
            champion[e] = win[off + 1]
            off += 2 * n
    return arms, win, champion
