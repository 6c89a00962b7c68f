"""The sparsification tree over the edges of a graph (Eppstein, Galil, Italiano and Nissenzweig).

Halve the vertex set again and again. A node of the tree is a pair of equally deep vertex blocks and stands for
all edges between them; its children are the pairs of half-blocks. A node keeps a graph of its own: the edges in
the forests of its children (only these can be in its forest), or all of its edges if they are few, which makes
it a leaf. So a graph has O(n) edges on the n vertices of its two blocks, and n halves from level to level: one
change of weight costs O(V + V/2 + V/4 + ...) = O(V) when each graph on the way is repaired in O(n).

Parallel edges meet in a tournament first, and only their champion counts as an edge; loops are left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from semibandit.arms import FloatArray, IntArray
from semibandit.compiled.handle import Ints1, Ints2, Shorts2, by_handle, make_handle
from semibandit.compiled.jit import kernel
from semibandit.paper.dynamic.order import play_all
from semibandit.paper.dynamic.seats import (
    ARM,
    END,
    FIRST,
    LIFT,
    LOOSE,
    MARK,
    NEXT,
    OFFSET,
    SEAT,
    SEAT_COLUMNS,
    SLOT,
    TOP,
    UP,
    attach,
)

# Columns of the node table: its edges are LO .. HI - 1; its vertices begin at VERT.
LO, HI, LEVEL, PARENT, CHILD, CHILDREN, VERT, DEPTH = range(8)


class SparsificationTree(NamedTuple):
    """`nodes` in breadth-first order; the vertex table `verts` (see `seats`); of each edge the `leaf` that holds it and
    its `ends` there; the number of vertices (`widths`) of each node."""

    nodes: Ints2
    verts: Shorts2
    ends: Ints2
    leaf: Ints1
    widths: Ints1


def interleave(u: IntArray, v: IntArray) -> IntArray:
    """Codes whose bits are those of u and v in turn: sorted, they list every node's edges in one piece. O(n)."""
    code = np.zeros(u.size, dtype=np.int64)
    for bit in range(int(max(u.max(initial=0), v.max(initial=0))).bit_length()):
        code |= ((u >> bit) & 1) << (2 * bit + 1)
        code |= ((v >> bit) & 1) << (2 * bit)
    return code


@kernel
def _split(code, bits, spread, nodes):
    """Fill the node table of the tree over sorted, distinct codes; how many nodes. O(edges * levels).

    A node is a leaf when it has at most `spread` edges a vertex of its blocks. Nodes with one child are skipped.
    """
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
    return size


@kernel
def _number_vertices(nodes, u, v, ends, count, name, lift, local, seen):
    """Number the vertices of each node's graph that its edges touch; how many. O(vertices numbered + edges).

    Fills `ends`, `count` (vertices of each node), `lift` (the same vertex in the parent's graph) and nodes[:, VERT];
    `name` (the vertex of the input), `local` and `seen` are scratch.
    """
    n_nodes = nodes.shape[0]
    seen[:] = -1
    lift[:] = -1
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
    return size


@kernel
def _find_leaves(nodes, leaf):
    for z in range(nodes.shape[0]):
        if nodes[z, CHILDREN] == 0:
            for e in range(nodes[z, LO], nodes[z, HI]):
                leaf[e] = z


def plant_tree(
    tail: IntArray, head: IntArray, code: IntArray, n_vertices: int, spread: int
) -> SparsificationTree:
    """The tree over edges from tail to head with increasing, distinct codes. O(edges * levels)."""
    bits = int(n_vertices - 1).bit_length()
    nodes = np.empty((max(4 * code.size, 1), 8), dtype=np.int64)
    nodes = nodes[: _split(code, bits, spread, nodes)].copy()
    most = int(np.minimum(2 * (nodes[:, HI] - nodes[:, LO]), n_vertices).sum())
    ends = np.empty((code.size, 2), dtype=np.int64)
    widths = np.zeros(len(nodes), dtype=np.int64)
    name, lift = (np.empty(most, dtype=np.int64) for _ in range(2))
    local, seen = (np.empty(n_vertices, dtype=np.int64) for _ in range(2))
    n = int(_number_vertices(nodes, tail, head, ends, widths, name, lift, local, seen))
    verts = np.full((n, 4), -1, dtype=np.int32)
    verts[:, LIFT] = lift[:n]
    leaf = np.empty(code.size, dtype=np.int64)
    _find_leaves(nodes, leaf)
    return SparsificationTree(nodes, verts, ends, leaf, widths)


@kernel
def _find(link, v):
    while link[v] >= 0:
        if link[link[v]] >= 0:
            link[v] = link[link[v]]
        v = link[v]
    return v


@kernel
def _count_survivals(tree, alive, lives, where, at, link):
    """In how many graphs, from its leaf up, each edge is in the forest: Kruskal in all graphs of a depth at once.

    `alive` lists the edges, heaviest first; it, `where`, `at` and `link` are used up. Fills `lives`.
    O(levels * edges) at worst; few edges survive their leaf.
    """
    nodes, verts = tree.nodes, tree.verts
    lives[:] = 0
    link[:] = -1
    n_alive = alive.shape[0]
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


@kernel
def _seat(tree, champion, lives, seats, base, load):
    """Give each edge its seats: at its leaf, seat e, and as far up as forests go. O(levels * edges).

    Fills `seats`, `base` and `load`, the number of seats of each graph; changes `verts`.
    """
    nodes, verts, ends, leaf = tree.nodes, tree.verts, tree.ends, tree.leaf
    n_edges, total = champion.shape[0], seats.shape[0]
    seats[:, :] = -1
    load[:] = 0
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
            attach(seats, verts, s)
    for s in range(total):
        if seats[s, UP] != LOOSE:
            attach(seats, verts, s)


def seat_edges(
    tree: SparsificationTree, ordered: IntArray, champion: IntArray, rank: int
) -> tuple[NDArray[np.int32], IntArray, IntArray]:
    """(seats, base, number of seats of each graph), with all forests rooted. O(levels * edges).

    `ordered` lists the edges, heaviest first; `champion` is the arm that stands for each edge.
    """
    n_vertices = len(tree.verts)
    tree.verts[:, LIFT + 1 :] = -1
    tree.verts[:, MARK] = 0
    lives, link = np.empty(champion.size, dtype=np.int64), np.empty(n_vertices, dtype=np.int64)
    handle = make_handle(tree)
    count = by_handle(_count_survivals, SparsificationTree)
    count(handle, ordered.copy(), lives, tree.leaf.copy(), tree.ends.copy(), link)
    n_seats = champion.size + int(np.minimum(lives, tree.nodes[tree.leaf, DEPTH]).sum())
    seats = np.empty((n_seats, SEAT_COLUMNS), dtype=np.int32)
    base, load = np.empty(rank, dtype=np.int64), np.empty(len(tree.nodes), dtype=np.int64)
    by_handle(_seat, SparsificationTree)(handle, champion, lives, seats, base, load)
    _root_forests(seats, tree.verts, link)
    return seats, base, load


@kernel
def _root_forests(seats, verts, stack):
    """Set the parent pointers of all forests. O(vertices + seats). Changes `verts`; `stack` is scratch."""
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
                half_edge = seats[s, NEXT + (half_edge & 1)]
    verts[:, MARK] = 0


@kernel
def _hold_tournaments(members, start, weight, arms, champions, champion):
    """Fill arm table, tournaments and the champion of each edge. O(K)."""
    arms[:, :] = -1
    champions[:] = -1
    offset = 0
    for e in range(start.shape[0] - 1):
        n = start[e + 1] - start[e]
        for i in range(n):
            arm = members[start[e] + i]
            arms[arm, SEAT] = e
            if n > 1:
                arms[arm, OFFSET] = offset
                arms[arm, SLOT] = n + i
                champions[offset + n + i] = arm
        if n == 1:
            champion[e] = members[start[e]]
        else:
            play_all(champions, weight, offset, n)
            champion[e] = champions[offset + 1]
            offset += 2 * n


def hold_tournaments(
    members: IntArray, start: IntArray, weight: FloatArray
) -> tuple[IntArray, NDArray[np.int32], IntArray]:
    """Tournaments of parallel edges: (arm table, tournaments, champion of each edge). O(K).

    Edge e is the parallel class members[start[e] : start[e + 1]].
    """
    sizes = np.diff(start)
    arms = np.empty((weight.size, 3), dtype=np.int64)
    champions = np.empty(max(2 * int(sizes[sizes > 1].sum()), 1), dtype=np.int32)
    champion = np.empty(sizes.size, dtype=np.int64)
    _hold_tournaments(members, start, weight, arms, champions, champion)
    return arms, champions, champion
