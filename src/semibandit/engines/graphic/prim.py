"""Dense Prim: the heaviest edge of every pair of vertices in a matrix, one row read for each vertex that joins.

O(V^2) a round whatever K is and however much changes: the best there is for busy states of small graphs. Weights are
kept as integers of the same order (`ordered_bits`), because compilers vectorise maxima of integers and not of floats.
"""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.words import ordered_bits
from semibandit.engines.graphic.edges import ABSENT, HEAD, STATUS, TAIL, weight_of
from semibandit.engines.graphic.state import DIRTY, HOT_ARM, HOT_IN_BASE, open_forest

# Keys of vertices that joined already, of vertices no edge leads to, and of pairs without an edge: the last two must
# differ, or every missing edge would look like a tie.
JOINED = 2**63 - 1
NOT_SEEN = -(2**63) + 2
NO_EDGE = -(2**63) + 1


@kernel
def fill_matrix(handle, lam):
    """Enter the present arms in the matrix. O(V^2 + K)."""
    state = open_forest(handle)
    matrix_key, matrix_arm, table = state.matrix.key, state.matrix.arm, state.edges.table
    n = matrix_key.shape[0]
    for u in range(n):
        for v in range(n):
            matrix_key[u, v] = NO_EDGE
    for arm in range(table.shape[0]):
        if table[arm, STATUS] != ABSENT:
            key = ordered_bits(weight_of(state.recs, arm, lam))
            u, v = table[arm, TAIL], table[arm, HEAD]
            if key > matrix_key[u, v]:
                matrix_key[u, v] = key
                matrix_key[v, u] = key
                matrix_arm[u, v] = arm
                matrix_arm[v, u] = arm


@inline_kernel
def touch_matrix(state, arm):
    """The weight or presence of `arm` changed. O(arms parallel to it)."""
    matrix, table, lam = state.matrix, state.edges.table, state.lam[0]
    best = np.int64(NO_EDGE)
    best_arm = arm
    other = arm
    while True:
        if table[other, STATUS] != ABSENT:
            key = ordered_bits(weight_of(state.recs, other, lam))
            if key > best or (key == best and other < best_arm):
                best = key
                best_arm = other
        other = np.int64(matrix.parallel[other])
        if other == arm:
            break
    u, v = table[arm, TAIL], table[arm, HEAD]
    matrix.key[u, v] = best
    matrix.key[v, u] = best
    matrix.arm[u, v] = best_arm
    matrix.arm[v, u] = best_arm
    state.flags[DIRTY] = True


@kernel
def _prim(matrix_key, matrix_arm, best_key, best_from, hot_edge):
    """Write the arms of the maximum-weight forest into `hot_edge`; returns how many. O(V^2).

    ``best_key[v]`` is the best edge from the tree to v, from vertex ``best_from[v]``. Equal weights are rare: the loop
    over a row only counts them, and they are looked at afterwards.
    """
    n = matrix_key.shape[0]
    for v in range(n):
        best_key[v] = NOT_SEEN
    n_base = 0
    first = 0
    u = 0
    while True:
        best_key[u] = JOINED
        row = matrix_key[u]
        top = np.int64(NOT_SEEN)
        ties = 0
        for v in range(n):
            x = row[v]
            k = best_key[v]
            heavier = x > k
            ties += x == k
            best_from[v] = u if heavier else best_from[v]
            k = x if heavier else k
            best_key[v] = k
            k = np.int64(NOT_SEEN) if k == JOINED else k
            top = k if k > top else top
        if top == NOT_SEEN:
            # The tree spans its component: go on from a vertex of the next one.
            while first < n and best_key[first] == JOINED:
                first += 1
            if first == n:
                return n_base
            u = first
            continue
        if ties > 0:
            for v in range(n):
                if row[v] == best_key[v] and matrix_arm[u, v] < matrix_arm[best_from[v], v]:
                    best_from[v] = u
        arm = np.int64(-1)
        for v in range(n):
            if best_key[v] == top:
                a = np.int64(matrix_arm[best_from[v], v])
                if arm < 0 or a < arm:
                    arm = a
                    u = v
        hot_edge[n_base, HOT_ARM] = arm
        hot_edge[n_base, HOT_IN_BASE] = 1
        n_base += 1


@inline_kernel
def solve_prim(state):
    """Make the base the list of hot edges, without weights and ends; returns how many they are. O(V^2)."""
    matrix = state.matrix
    return _prim(matrix.key, matrix.arm, matrix.best_key, matrix.best_from, state.hot.edge)
