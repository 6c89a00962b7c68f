"""Greedy over arms in a given order, heaviest first: the inner part of the rivals that sort.

One kernel a matroid class, each ``grow(order, n, ..., out) -> size``: it takes arms from ``order[:n]`` until
`out` is full. Written for the benchmark, apart from the greedy of `semibandit.matroids`.
"""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import kernel

# Elimination modulo one large prime: a random instance loses rank there with probability below 10^-6.
PRIME = 2147483629


@kernel
def grow_laminar(order, n, leaf, parent, capacity, used, out):
    """A counter per family. Changes `used` and `out`. O(n * depth)."""
    used[:] = 0
    size = 0
    for i in range(n):
        if size == out.shape[0]:
            break
        fits = True
        f = leaf[order[i]]
        while fits and f >= 0:
            fits = used[f] < capacity[f]
            f = parent[f]
        if fits:
            f = leaf[order[i]]
            while f >= 0:
                used[f] += 1
                f = parent[f]
            out[size] = order[i]
            size += 1
    return size


@kernel
def grow_forest(order, n, tail, head, label, link, last, count, out):
    """Kruskal with component labels: a test is two loads, a union relabels the smaller part (V log V in all).

    `link` chains the vertices of a component from its label vertex to `last`. Changes all but the graph.
    """
    for v in range(label.shape[0]):
        label[v] = v
        last[v] = v
        link[v] = -1
        count[v] = 1
    size = 0
    for i in range(n):
        if size == out.shape[0]:
            break
        k = order[i]
        a, b = label[tail[k]], label[head[k]]
        if a == b:
            continue
        if count[a] < count[b]:
            a, b = b, a
        link[last[a]] = b
        last[a] = last[b]
        count[a] += count[b]
        v = b
        while v >= 0:
            label[v] = a
            v = link[v]
        out[size] = k
        size += 1
    return size


@kernel
def grow_matching(order, n, start, right, owner, visited, reached_by, path, out):
    """Match arm after arm by augmenting paths, depth first, with a look ahead for free right nodes.

    ``owner[r]`` is the arm at right node r. What a failed search visited stays closed, because no later path
    can free it. ``reached_by[r]`` is the right node before r on the path, -1 at its start. Changes the last
    four arrays.
    """
    owner[:] = -1
    visited[:] = 0
    size = 0
    for i in range(n):
        if size == out.shape[0]:
            break
        root = order[i]
        depth = 0
        here, arm = -1, root
        goal = -1
        while True:
            step = -1
            for e in range(start[arm], start[arm + 1]):
                r = right[e]
                if owner[r] < 0:
                    goal = r
                    break
                if step < 0 and visited[r] == 0:
                    step = r
            if goal >= 0:
                break
            if step >= 0:
                visited[step] = 1
                reached_by[step] = here
                path[depth] = step
                depth += 1
                here, arm = step, owner[step]
                continue
            # Nothing new from here: one step back, to where the last node was reached from.
            if here < 0:
                break
            here = reached_by[here]
            arm = root if here < 0 else owner[here]
        if goal < 0:
            continue
        while here >= 0:
            owner[goal] = owner[here]
            goal = here
            here = reached_by[here]
        owner[goal] = root
        for j in range(depth):
            visited[path[j]] = 0
        out[size] = root
        size += 1
    return size


@kernel
def _inverse(a):
    """a^(p - 2) modulo PRIME."""
    result, power, e = np.int64(1), np.int64(a), PRIME - 2
    while e > 0:
        if e & 1:
            result = result * power % PRIME
        power = power * power % PRIME
        e >>= 1
    return result


@kernel
def grow_span(order, n, vectors, reduced, pivot, row, out):
    """Independent vectors by elimination modulo PRIME. Changes the last four arrays. O(n * D * d)."""
    size = 0
    d = row.shape[0]
    for i in range(n):
        if size == out.shape[0]:
            break
        for c in range(d):
            row[c] = vectors[order[i], c] % PRIME
        for s in range(size):
            factor = row[pivot[s]]
            if factor != 0:
                for c in range(d):
                    row[c] = (row[c] + (PRIME - factor) * reduced[s, c]) % PRIME
        at = 0
        while at < d and row[at] == 0:
            at += 1
        if at == d:
            continue
        scale = _inverse(row[at])
        for c in range(d):
            reduced[size, c] = row[c] * scale % PRIME
        pivot[size] = at
        out[size] = order[i]
        size += 1
    return size
