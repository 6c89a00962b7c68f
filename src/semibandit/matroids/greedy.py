"""Compiled greedy: the paper's Alg. greedy (Section 2) with the membership oracles of its appendix.

Every `greedy_*` function walks `order` (distinct arm ids, heaviest first, any part of the ground set), keeps what makes
testing one more arm cheap, and returns the arms picked, in picking order, at most `rank` of them. None changes its
arguments. Ties are settled before, by the order handed in. The `top_*` functions need no order: they select in one
pass, and of equal weights prefer the smaller id.

Each makes its arrays in Python and leaves the work to a kernel, which makes none and so can be compiled ahead of time.
`order` and `weights` must be writeable, the arrays of a matroid read-only: another mix would be compiled anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.compiled.jit import kernel


def ties_by_id(order: IntArray, same: Any) -> IntArray:
    """A sorted order with each run of equals rearranged by id; same[i]: items i and i + 1 are equal. O(K)."""
    run, start, out = (np.empty(order.size, np.int64) for _ in range(3))
    _order_runs(order, same, run, start, out)
    return out


@kernel
def _order_runs(order, same, run, start, out):
    """Write into `out` the order with equals by id; `run` becomes the run of each arm, `start` is scratch."""
    n = order.size
    r = 0
    start[0] = 0
    run[order[0]] = 0
    for i in range(1, n):
        if not same[i - 1]:
            r += 1
            start[r] = i
        run[order[i]] = r
    for k in range(n):
        out[start[run[k]]] = k
        start[run[k]] += 1


@kernel
def _sink(weight, arm, first, size, at):
    """Restore the heap weight/arm[first : first + size], lightest at the root, after its item `at` changed.

    Of equal weights the larger id counts as lighter, so that it is the one to be thrown out.
    """
    w = weight[first + at]
    a = arm[first + at]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        c = first + child
        if child + 1 < size:
            if weight[c + 1] < weight[c] or (weight[c + 1] == weight[c] and arm[c + 1] > arm[c]):
                child += 1
                c += 1
        if weight[c] < w or (weight[c] == w and arm[c] > a):
            weight[first + at] = weight[c]
            arm[first + at] = arm[c]
            at = child
        else:
            break
    weight[first + at] = w
    arm[first + at] = a


def top_arms(weights: FloatArray, rank: int) -> IntArray:
    """The `rank` heaviest arms, in no particular order, in one pass.

    O(K + D log D log(K / D)) expected when arms come in random order, O(K log D) at worst.
    """
    arm = np.arange(rank, dtype=np.int64)
    _fill_top(weights, weights[:rank].copy(), arm)
    return arm


@kernel
def _fill_top(weights, weight, arm):
    """Make `weight` and `arm`, which hold the first arms, a heap of the heaviest ones of all."""
    rank = arm.size
    for at in range(rank // 2 - 1, -1, -1):
        _sink(weight, arm, 0, rank, at)
    for k in range(rank, weights.size):
        # A later arm of equal weight has the larger id and never enters.
        if weights[k] > weight[0]:
            weight[0] = weights[k]
            arm[0] = k
            _sink(weight, arm, 0, rank, 0)


def top_arms_per_group(weights: FloatArray, group: IntArray, capacity: IntArray, rank: int) -> IntArray:
    """The `capacity[g]` heaviest arms of each group, in one pass; `rank` is the sum of the capacities.

    Capacities must not exceed the sizes of their groups. O(K log(largest capacity)) at worst.
    """
    arm = np.empty(rank, np.int64)
    counters = np.zeros((2, capacity.size), np.int64)
    _fill_top_per_group(weights, group, capacity, counters, np.empty(rank, np.float64), arm)
    return arm


@kernel
def _fill_top_per_group(weights, group, capacity, counters, weight, arm):
    """Heaps of the heaviest arms, one for each group. Changes `weight`, `arm` and `counters` (zero before)."""
    first, filled = counters[0], counters[1]
    for g in range(1, capacity.size):
        first[g] = first[g - 1] + capacity[g - 1]
    for k in range(weights.size):
        g = group[k]
        f = first[g]
        c = capacity[g]
        if filled[g] < c:
            weight[f + filled[g]] = weights[k]
            arm[f + filled[g]] = k
            filled[g] += 1
            if filled[g] == c:
                for at in range(c // 2 - 1, -1, -1):
                    _sink(weight, arm, f, c, at)
        elif c > 0 and weights[k] > weight[f]:
            weight[f] = weights[k]
            arm[f] = k
            _sink(weight, arm, f, c, 0)


def greedy_partition(order: IntArray, group: IntArray, capacity: IntArray, rank: int) -> IntArray:
    """One counter per group. O(G + n) for n arms in `order`."""
    picked = np.empty(min(rank, order.size), np.int64)
    return picked[: _pick_partition(order, group, capacity.copy(), picked)]


@kernel
def _pick_partition(order, group, left, picked):
    """Greedy until `picked` is full; how many. `left` is what each group may still take. Changes both."""
    size = 0
    for i in range(order.size):
        if size == picked.size:
            break
        k = order[i]
        if left[group[k]] > 0:
            left[group[k]] -= 1
            picked[size] = k
            size += 1
    return size


def greedy_laminar(
    order: IntArray, leaf: IntArray, parent: IntArray, capacity: IntArray, rank: int
) -> IntArray:
    """One counter per family, `leaf[k]` being the innermost family of arm k. O(F + n + D * depth).

    A family inside a full one is full itself; marking it so on the way makes a rejection O(1) amortised.
    """
    picked = np.empty(min(rank, order.size), np.int64)
    return picked[: _pick_laminar(order, leaf, parent, capacity.copy(), picked)]


@kernel
def _pick_laminar(order, leaf, parent, left, picked):
    """Greedy until `picked` is full; how many. `left` is what each family may still take. Changes both."""
    size = 0
    for i in range(order.size):
        if size == picked.size:
            break
        k = order[i]
        full = leaf[k]
        while full >= 0 and left[full] > 0:
            full = parent[full]
        f = leaf[k]
        if full >= 0:
            while f != full:
                left[f] = 0
                f = parent[f]
        else:
            while f >= 0:
                left[f] -= 1
                f = parent[f]
            picked[size] = k
            size += 1
    return size


@kernel
def find_root(link, v):
    """Root of v's tree, halving the path to it. A negative link marks a root."""
    while True:
        up = link[v]
        if up < 0:
            return v
        above = link[up]
        if above < 0:
            return up
        link[v] = above
        v = above


def greedy_graphic(order: IntArray, tail: IntArray, head: IntArray, n_vertices: int, rank: int) -> IntArray:
    """Kruskal: union-find by size with path halving. O(V + n * inverse Ackermann) for n edges in `order`."""
    picked = np.empty(min(rank, order.size), np.int64)
    return picked[: _pick_graphic(order, tail, head, np.full(n_vertices, -1, np.int64), picked)]


@kernel
def _pick_graphic(order, tail, head, link, picked):
    """Greedy until `picked` is full; how many. Changes `picked` and `link`.

    A vertex is linked to its parent; at a root, `link` is minus the size of the tree.
    """
    size = 0
    for i in range(order.size):
        if size == picked.size:
            break
        k = order[i]
        a = find_root(link, tail[k])
        b = find_root(link, head[k])
        if a == b:
            continue
        if link[a] > link[b]:
            a, b = b, a
        link[a] += link[b]
        link[b] = a
        picked[size] = k
        size += 1
    return size


def greedy_transversal(
    order: IntArray, indptr: IntArray, indices: IntArray, n_right: int, rank: int
) -> IntArray:
    """Grow a matching by one augmenting path per arm (breadth first).

    Right nodes seen by a search that fails are matched and lead to no free node, and no later path can change
    that; they are never entered again. So all failures together cost O(edges), and the total is
    O(V + edges + D * edges of the picked arms).
    """
    matched = np.empty((2, min(rank, order.size)), np.int64)
    right = np.zeros((4, n_right), np.int64)
    return matched[0, : _pick_transversal(order, indptr, indices, matched, right)]


@kernel
def _pick_transversal(order, indptr, indices, matched, right):
    """Greedy until the first row of `matched` is full; how many. Changes `matched` and `right` (zero before).

    Rows of `matched`: the arms picked, and the right node of each. Rows of `right`, by right node: the place among the
    picked of the arm matched to it, or -1; the number of the last search that came there, -1 where it is dead; the
    place of the arm from which that search came. The last row is the queue of a search.
    """
    picked, mate = matched[0], matched[1]
    owner, seen, via, queue = right[0], right[1], right[2], right[3]
    for r in range(owner.size):
        owner[r] = -1
    size = 0
    for i in range(order.size):
        if size == picked.size:
            break
        picked[size] = order[i]
        place = size
        done = 0
        waiting = 0
        free = -1
        while True:
            arm = picked[place]
            for j in range(indptr[arm], indptr[arm + 1]):
                r = indices[j]
                if seen[r] == i + 1 or seen[r] < 0:
                    continue
                seen[r] = i + 1
                via[r] = place
                if owner[r] < 0:
                    free = r
                    break
                queue[waiting] = r
                waiting += 1
            if free >= 0 or done == waiting:
                break
            place = owner[queue[done]]
            done += 1
        if free < 0:
            for j in range(waiting):
                seen[queue[j]] = -1
            continue
        r = free
        while True:
            place = via[r]
            before = mate[place]
            owner[r] = place
            mate[place] = r
            if place == size:
                break
            r = before
        size += 1
    return size


def distinct_neighbours(indptr: IntArray, indices: IntArray, n_right: int) -> tuple[IntArray, IntArray]:
    """(indptr, indices) with each arm naming a right node at most once, first mention kept. O(E + n_right)."""
    starts, kept = np.empty_like(indptr), np.empty_like(indices)
    n = _keep_first(indptr, indices, np.full(n_right, -1, np.int64), starts, kept)
    return starts, kept[:n].copy()


@kernel
def _keep_first(indptr, indices, last, starts, kept):
    """Write into `starts` and `kept` the rows without repetitions; how many entries. `last` is -1 before."""
    n = 0
    for arm in range(indptr.size - 1):
        starts[arm] = n
        for p in range(indptr[arm], indptr[arm + 1]):
            if last[indices[p]] != arm:
                last[indices[p]] = arm
                kept[n] = indices[p]
                n += 1
    starts[indptr.size - 1] = n
    return n
