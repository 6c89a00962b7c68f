"""Invariants of the dynamic spanning forest, in plain Python: for `_check` and for small graphs only."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.paper.dynamic.chords import BELOW, Diagram
from semibandit.paper.dynamic.seats import ARM, END, FIRST, LIFT, LOOSE, MARK, NEXT, PREV, TOP, UP
from semibandit.paper.dynamic.sparsify import CHILDREN, PARENT, VERT

Array = np.ndarray[Any, Any]


def _find(link: dict[int, int], v: int) -> int:
    while link.setdefault(v, v) != v:
        v = link[v]
    return v


def check_lists(seats: Array, verts: Array, n_seats: int) -> None:
    """Every half-edge hangs on the list of its vertex, once, and the lists are linked both ways."""
    listed = set()
    for v in range(len(verts)):
        assert verts[v, MARK] == 0
        before, h = -1, int(verts[v, FIRST])
        while h >= 0:
            assert seats[h >> 1, END + (h & 1)] == v and seats[h >> 1, PREV + (h & 1)] == before
            listed.add(h)
            before, h = h, int(seats[h >> 1, NEXT + (h & 1)])
    assert listed == set(range(2 * n_seats))


def check_graphs(
    seats: Array, verts: Array, nodes: IntArray, n_seats: int, weight: FloatArray
) -> list[list[int]]:
    """Each graph's forest is its heaviest, and the parent graph holds exactly the forests of its children.

    Returns the seats of each graph.
    """
    starts = np.sort(nodes[:, VERT])
    node_at = {int(start): z for z, start in enumerate(nodes[:, VERT])}
    graphs: list[list[int]] = [[] for _ in nodes]
    for s in range(n_seats):
        a, b = (int(starts[np.searchsorted(starts, seats[s, END + i], side="right") - 1]) for i in (0, 1))
        assert a == b
        graphs[node_at[a]].append(s)
    ups = set()
    for z, members in enumerate(graphs):
        link: dict[int, int] = {}
        for s in sorted(members, key=lambda s: (-weight[seats[s, ARM]], seats[s, ARM])):
            u, v = _find(link, int(seats[s, END])), _find(link, int(seats[s, END + 1]))
            assert (seats[s, UP] != LOOSE) == (u != v)
            link[u] = v
            up = int(seats[s, UP])
            if up == LOOSE:
                continue
            assert (up < LOOSE) == (nodes[z, PARENT] < 0) and up not in ups
            ups.add(up)
            if up >= 0:
                assert seats[up, ARM] == seats[s, ARM] and up in graphs[nodes[z, PARENT]]
                assert all(verts[seats[s, END + i], LIFT] == seats[up, END + i] for i in (0, 1))
    inner = {s for z, members in enumerate(graphs) if nodes[z, CHILDREN] for s in members}
    assert {up for up in ups if up >= 0} == inner
    return graphs


def check_pointers(seats: Array, verts: Array, members: list[int]) -> None:
    """Parent pointers of a walked graph form its forest."""
    vertices = {int(seats[s, END + i]) for s in members for i in (0, 1)}
    used = set()
    for v in vertices:
        top = int(verts[v, TOP])
        assert top >= -1
        if top >= 0:
            assert seats[top, UP] != LOOSE and v in seats[top, END : END + 2] and top in members
            used.add(top)
        seen = set()
        while verts[v, TOP] >= 0:
            assert v not in seen
            seen.add(v)
            s = int(verts[v, TOP])
            v = int(seats[s, END] + seats[s, END + 1]) - v
    assert used == {s for s in members if seats[s, UP] != LOOSE}


def check_diagram(d: Diagram, seats: Array, members: list[int], weight: FloatArray) -> None:
    """A chord graph's sequence is a walk around its forest; its cells hold the best chords."""
    where, live, (cap, q) = d.where, int(d.live[0]), d.half_edges.shape
    order = [int(c) for c in d.order[:live]]
    assert sorted(d.order) == list(range(cap)) and not d.dirty.any()
    assert [int(d.rank[c]) for c in order] == list(range(live)) and (d.rank >= 0).sum() == live
    assert d.spare not in members
    sizes = [int(d.count[c]) for c in order]
    assert min(sizes) > 0 and max(sizes) <= q and all(a + b > q for a, b in pairwise(sizes))
    sequence = []
    for c in order:
        for i in range(d.count[c]):
            assert where[d.half_edges[c, i]] == c * q + i
            sequence.append(int(d.half_edges[c, i]))
    assert sorted(sequence) == sorted(2 * s + i for s in members for i in (0, 1))

    link: dict[int, int] = {}
    for s in members:
        link[_find(link, int(seats[s, END]))] = _find(link, int(seats[s, END + 1]))
    runs: list[list[int]] = []
    for h in sequence:
        part = _find(link, int(seats[h >> 1, END]))
        if not runs or _find(link, int(seats[runs[-1][-1] >> 1, END])) != part:
            runs.append([])
        runs[-1].append(h)
    assert len(runs) == len({_find(link, int(seats[s, END])) for s in members})
    for run in runs:
        for h, after in zip(run, [*run[1:], run[0]], strict=True):
            end = h & 1 if seats[h >> 1, UP] == LOOSE else 1 - (h & 1)
            assert seats[h >> 1, END + end] == seats[after >> 1, END + (after & 1)]

    def key(kind: int, s: int) -> tuple[float, int]:
        w, arm = float(weight[seats[s, ARM]]), int(seats[s, ARM])
        return (w, -arm) if kind == 0 else (-w, arm)

    best: dict[tuple[int, int, int], int] = {}
    for s in members:
        kind = 0 if seats[s, UP] == LOOSE else 1
        a, b = int(where[2 * s]) // q, int(where[2 * s + 1]) // q
        for cell in {(kind, a, b), (kind, b, a)}:
            if cell not in best or key(kind, s) > key(kind, best[cell]):
                best[cell] = s
    below: dict[int, list[int]] = {}

    def gather(c: int) -> list[int]:
        below[c] = [c]
        for child in (int(d.left[c]), int(d.right[c])):
            if child >= 0:
                below[c] += gather(child)
        return below[c]

    tops = set(order) - {int(side[c]) for side in (d.left, d.right) for c in order}
    assert len(tops) == 1 and sorted(gather(tops.pop())) == sorted(order)
    for kind in (0, 1):
        for c in order:
            for e in range(cap):
                assert d.cell[kind, c, e] == best.get((kind, c, e), -1)
                rivals = [best[kind, below_c, e] for below_c in below[c] if (kind, below_c, e) in best]
                expected = max((key(kind, s), s) for s in rivals)[1] if rivals else -1
                assert d.cell[kind + BELOW, c, e] == expected
                for layer in (kind, kind + BELOW):
                    if d.cell[layer, c, e] >= 0:
                        assert d.key[layer, c, e] == key(kind, int(d.cell[layer, c, e]))[0]
