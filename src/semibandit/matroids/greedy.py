"""Compiled greedy: the paper's Alg. greedy (Section 2) with the membership oracles of its appendix.

Every `greedy_*` kernel walks `order` (distinct arm ids, heaviest first, any part of the ground set), keeps
what makes testing one more arm cheap, and returns the arms picked, in picking order, at most `rank` of them.
None changes its arguments. Ties are settled before, by the order handed in. The `top_*` kernels need no
order: they select in one pass, and of equal weights prefer the smaller id.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semibandit.compiled.jit import njit


@njit
def ties_by_id(order: Any, same: Any) -> Any:
    """A sorted order with each run of equals rearranged by id; same[i]: items i and i + 1 are equal. O(K)."""
    n = order.size
    run = np.empty(n, np.int64)
    start = np.empty(n, np.int64)
    r = 0
    start[0] = 0
    run[order[0]] = 0
    for i in range(1, n):
        if not same[i - 1]:
            r += 1
            start[r] = i
        run[order[i]] = r
    out = np.empty(n, np.int64)
    for k in range(n):
        out[start[run[k]]] = k
        start[run[k]] += 1
    return out


@njit
def _sink(weight: Any, arm: Any, first: int, size: int, at: int) -> None:
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


@njit
def top_arms(weights: Any, rank: int) -> Any:
    """The `rank` heaviest arms, in no particular order, in one pass.

    O(K + D log D log(K / D)) expected when arms come in random order, O(K log D) at worst.
    """
    weight = weights[:rank].copy()
    arm = np.arange(rank)
    for at in range(rank // 2 - 1, -1, -1):
        _sink(weight, arm, 0, rank, at)
    for k in range(rank, weights.size):
        # A later arm of equal weight has the larger id and never enters.
        if weights[k] > weight[0]:
            weight[0] = weights[k]
            arm[0] = k
            _sink(weight, arm, 0, rank, 0)
    return arm


@njit
def top_arms_per_group(weights: Any, group: Any, capacity: Any, rank: int) -> Any:
    """The `capacity[g]` heaviest arms of each group, in one pass; `rank` is the sum of the capacities.

    Capacities must not exceed the sizes of their groups. O(K log(largest capacity)) at worst.
    """
    n_groups = capacity.size
    first = np.empty(n_groups, np.int64)
    filled = np.zeros(n_groups, np.int64)
    total = 0
    for g in range(n_groups):
        first[g] = total
        total += capacity[g]
    weight = np.empty(rank, np.float64)
    arm = np.empty(rank, np.int64)
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
    return arm


@njit
def greedy_partition(order: Any, group: Any, capacity: Any, rank: int) -> Any:
    """One counter per group. O(G + n) for n arms in `order`."""
    left = capacity.copy()
    picked = np.empty(min(rank, order.size), np.int64)
    size = 0
    for i in range(order.size):
        if size == rank:
            break
        k = order[i]
        if left[group[k]] > 0:
            left[group[k]] -= 1
            picked[size] = k
            size += 1
    return picked[:size]


@njit
def greedy_laminar(order: Any, leaf: Any, parent: Any, capacity: Any, rank: int) -> Any:
    """One counter per family, `leaf[k]` being the innermost family of arm k. O(F + n + D * depth).

    A family inside a full one is full itself; marking it so on the way makes a rejection O(1) amortised.
    """
    left = capacity.copy()
    picked = np.empty(min(rank, order.size), np.int64)
    size = 0
    for i in range(order.size):
        if size == rank:
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
    return picked[:size]


@njit
def _root(link: Any, v: int) -> Any:
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


@njit
def greedy_graphic(order: Any, tail: Any, head: Any, n_vertices: int, rank: int) -> Any:
    """Kruskal: union-find by size with path halving. O(V + n * inverse Ackermann) for n edges in `order`."""
    link = np.full(n_vertices, -1, np.int64)  # parent, or minus the size of the tree at its root
    picked = np.empty(min(rank, order.size), np.int64)
    size = 0
    for i in range(order.size):
        if size == rank:
            break
        k = order[i]
        a = _root(link, tail[k])
        b = _root(link, head[k])
        if a == b:
            continue
        if link[a] > link[b]:
            a, b = b, a
        link[a] += link[b]
        link[b] = a
        picked[size] = k
        size += 1
    return picked[:size]


@njit
def greedy_transversal(order: Any, indptr: Any, indices: Any, n_right: int, rank: int) -> Any:
    """Grow a matching by one augmenting path per arm (breadth first).

    Right nodes seen by a search that fails are matched and lead to no free node, and no later path can change
    that; they are never entered again. So all failures together cost O(edges), and the total is
    O(V + edges + D * edges of the picked arms).
    """
    limit = min(rank, order.size)
    picked = np.empty(limit, np.int64)
    mate = np.empty(limit, np.int64)  # right node of each picked arm, by place in `picked`
    owner = np.full(n_right, -1, np.int64)  # place in `picked` of the arm matched to a right node
    via = np.empty(n_right, np.int64)  # place of the arm from which the search reached a right node
    seen = np.zeros(n_right, np.int64)  # number of the last search that came here; -1: dead
    queue = np.empty(n_right, np.int64)
    size = 0
    for i in range(order.size):
        if size == limit:
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
    return picked[:size]


@njit
def distinct_neighbours(indptr: Any, indices: Any, n_right: int) -> Any:
    """(indptr, indices) with each arm naming a right node at most once, first mention kept. O(E + n_right)."""
    last = np.full(n_right, -1, np.int64)
    starts = np.empty_like(indptr)
    kept = np.empty_like(indices)
    n = 0
    for arm in range(indptr.size - 1):
        starts[arm] = n
        for p in range(indptr[arm], indptr[arm + 1]):
            if last[indices[p]] != arm:
                last[indices[p]] = arm
                kept[n] = indices[p]
                n += 1
    starts[indptr.size - 1] = n
    return starts, kept[:n].copy()
