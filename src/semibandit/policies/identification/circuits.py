"""Fundamental circuits of a base: which of its arms each arm outside can replace."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from semibandit.arms import IntArray
from semibandit.compiled.jit import kernel
from semibandit.matroids import Graphic, Matroid, Partition, Uniform
from semibandit.matroids.base import is_kind

BoolTable = npt.NDArray[np.bool_]


@kernel
def _tree_paths(tail, head, outside, parent, via, depth, table):
    """table[k, i]: the i-th edge of the forest lies on its path between the ends of edge k. O(K * longest path).

    `outside` lists the edges k, all spanned by the forest, which `parent`, `via` (the edge there) and `depth` describe.
    """
    for j in range(outside.shape[0]):
        k = outside[j]
        a = tail[k]
        b = head[k]
        while a != b:
            if depth[a] < depth[b]:
                a, b = b, a
            table[k, via[a]] = True
            a = parent[a]


def _root_forest(matroid: Graphic, base: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Parent, place in `base` of the edge to it, and depth of each vertex. O(V)."""
    n = matroid.n_vertices
    parent, via, depth = np.arange(n), np.full(n, -1, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    touching: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for i, arm in enumerate(base.tolist()):
        a, b = int(matroid._tail[arm]), int(matroid._head[arm])
        touching[a].append((b, i))
        touching[b].append((a, i))
    for root in range(n):
        if depth[root] >= 0:
            continue
        depth[root] = 0
        stack = [root]
        while stack:
            v = stack.pop()
            for other, i in touching[v]:
                if depth[other] < 0:
                    parent[other], via[other], depth[other] = v, i, depth[v] + 1
                    stack.append(other)
    return parent.astype(np.int64), via, depth


def exchange_table(matroid: Matroid, base: IntArray, arms: IntArray) -> tuple[BoolTable, int]:
    """table[k, i]: base - base[i] + k is a base, for the arms k in `arms` outside `base`; other rows are False.

    Returns the table (K x D) and how many independence tests it took: none for uniform, partition and graphic
    matroids (closed forms, O(K D)), up to D per arm for any other. `base` may be a base of the arms in `arms` only.
    """
    table = np.zeros((matroid.n_arms, len(base)), dtype=np.bool_)
    outside = np.setdiff1d(arms, base, assume_unique=True)
    if is_kind(matroid, Uniform):
        table[outside] = True
        return table, 0
    if is_kind(matroid, Partition):
        table[outside] = matroid._group[outside][:, None] == matroid._group[base][None, :]
        return table, 0
    if is_kind(matroid, Graphic):
        forest = _root_forest(matroid, base)
        _tree_paths(np.array(matroid._tail), np.array(matroid._head), outside, *forest, table)
        return table, 0
    loops = set(matroid.loops.tolist())
    tests = 0
    for k in outside.tolist():
        if k in loops:
            continue
        for i in range(len(base)):
            swapped = base.copy()
            swapped[i] = k
            tests += 1
            table[k, i] = matroid._is_independent(swapped)
    return table, tests


@kernel
def best_exchange(table, base, places, weights):
    """The exchange of largest gain under `weights`: (arm outside, place in the base), or (-1, -1) if none gains.

    `places` lists the places of the base lightest first. Gains are compared first, then the smaller arm
    outside; an arm that ties with the one it would replace gains only if its id is smaller.
    O(K) to O(K D).
    """
    best_gain = 0.0
    best_arm = -1
    best_place = -1
    for k in range(table.shape[0]):
        w = weights[k]
        for j in range(places.shape[0]):
            i = places[j]
            lighter = weights[base[i]]
            if w < lighter or (w == lighter and k > base[i]):
                break
            if table[k, i]:
                gain = w - lighter
                if best_arm < 0 or gain > best_gain:
                    best_gain = gain
                    best_arm = k
                    best_place = i
                break
    return best_arm, best_place
