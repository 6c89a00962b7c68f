"""Dense Prim: the heaviest edge of every pair of vertices in a matrix, one row read for each vertex that joins.

O(V^2) a round whatever K is and however much changes: the best there is for busy states of small graphs. Weights are
kept as integers of the same order (`ordered_bits`), because compilers vectorise maxima of integers and not of floats.
"""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.lanes import ordered_bits
from semibandit.engines.graphic.rows import ABSENT, COLD, HEAD, HOT, PLACE, TAIL, weight_of
from semibandit.engines.graphic.state import (
    ALL_TOUCHED,
    DIRTY,
    LAM,
    N_POOL,
    N_SORTED,
    POOL_ARM,
    POOL_HEAD,
    POOL_IN,
    POOL_TAIL,
    open_forest,
)

# Keys of vertices that joined already, of vertices no edge leads to, and of pairs without an edge: the last two must
# differ, or every missing edge would look like a tie.
JOINED = 2**63 - 1
NOT_SEEN = -(2**63) + 2
NO_EDGE = -(2**63) + 1


@kernel
def prim_build(handle, lam):
    """Fill the matrix with the present arms. O(V^2 + K)."""
    state = open_forest(handle)
    matrix, matrix_arm, edge = state.matrix, state.matrix_arm, state.rows.edge
    n = matrix.shape[0]
    for u in range(n):
        for v in range(n):
            matrix[u, v] = NO_EDGE
    for arm in range(edge.shape[0]):
        if edge[arm, PLACE] != ABSENT:
            key = ordered_bits(weight_of(state.recs, arm, lam))
            u, v = edge[arm, TAIL], edge[arm, HEAD]
            if key > matrix[u, v]:
                matrix[u, v] = key
                matrix[v, u] = key
                matrix_arm[u, v] = arm
                matrix_arm[v, u] = arm


@inline_kernel
def prim_set(state, arm):
    """The weight or presence of `arm` changed. O(arms parallel to it)."""
    matrix, matrix_arm, edge, lam = state.matrix, state.matrix_arm, state.rows.edge, state.real[LAM]
    best = np.int64(NO_EDGE)
    best_arm = arm
    other = arm
    while True:
        if edge[other, PLACE] != ABSENT:
            key = ordered_bits(weight_of(state.recs, other, lam))
            if key > best or (key == best and other < best_arm):
                best = key
                best_arm = other
        other = np.int64(state.parallel[other])
        if other == arm:
            break
    u, v = edge[arm, TAIL], edge[arm, HEAD]
    matrix[u, v] = best
    matrix[v, u] = best
    matrix_arm[u, v] = best_arm
    matrix_arm[v, u] = best_arm
    state.meta[DIRTY] = 1


@kernel
def prim_forest(matrix, matrix_arm, key, best_from, pool):
    """Write the arms of the maximum-weight forest into `pool`; returns how many. O(V^2).

    `key[v]` is the best edge from the tree to v, from vertex `best_from[v]`. Equal weights are rare: the loop over
    a row only counts them, and they are looked at afterwards.
    """
    n = matrix.shape[0]
    for v in range(n):
        key[v] = NOT_SEEN
    n_base = 0
    first = 0
    u = 0
    while True:
        key[u] = JOINED
        row = matrix[u]
        top = np.int64(NOT_SEEN)
        ties = 0
        for v in range(n):
            x = row[v]
            k = key[v]
            heavier = x > k
            ties += x == k
            best_from[v] = u if heavier else best_from[v]
            k = x if heavier else k
            key[v] = k
            k = np.int64(NOT_SEEN) if k == JOINED else k
            top = k if k > top else top
        if top == NOT_SEEN:
            while first < n and key[first] == JOINED:
                first += 1
            if first == n:
                return n_base
            u = first
            continue
        if ties > 0:
            for v in range(n):
                if row[v] == key[v] and matrix_arm[u, v] < matrix_arm[best_from[v], v]:
                    best_from[v] = u
        arm = np.int64(-1)
        for v in range(n):
            if key[v] == top:
                a = np.int64(matrix_arm[best_from[v], v])
                if arm < 0 or a < arm:
                    arm = a
                    u = v
        pool[n_base, POOL_ARM] = arm
        pool[n_base, POOL_IN] = 1
        n_base += 1


@kernel
def leave_prim(handle):
    """Say of each present arm whether it is hot (in the base) or cold; the rows must be read again. O(K)."""
    state = open_forest(handle)
    meta, edge, pool = state.meta, state.rows.edge, state.pool
    for arm in range(edge.shape[0]):
        if edge[arm, PLACE] != ABSENT:
            edge[arm, PLACE] = COLD
    n = meta[N_SORTED]
    for i in range(n):
        arm = state.sorted_base[i]
        edge[arm, PLACE] = HOT
        pool[i, POOL_ARM] = arm
        pool[i, POOL_TAIL] = edge[arm, TAIL]
        pool[i, POOL_HEAD] = edge[arm, HEAD]
    meta[N_POOL] = n
    meta[ALL_TOUCHED] = 1
