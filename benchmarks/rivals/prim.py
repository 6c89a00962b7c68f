"""Dense Prim: the weights as two V x V matrices, one row scanned for each vertex that joins. O(V^2) a round."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmarks.rivals.scan import ascending
from semibandit.arms import ALPHA, BETA, FloatArray
from semibandit.compiled.handle import Floats1, Floats2, Ints1, Ints2
from semibandit.compiled.jit import kernel
from semibandit.engines.kernels import implement_engine
from semibandit.matroids import Graphic

#: Beyond this many vertices the matrices outgrow the memory they are worth (24 V^2 bytes).
MOST_VERTICES = 3000


class DensePrim(NamedTuple):
    """Matrices over pairs of vertices (alpha = -inf where there is no edge) and scratch space per vertex."""

    recs: Floats2
    tail: Ints1
    head: Ints1
    alpha: Floats2
    beta: Floats2
    arm: Ints2
    outside: Ints1
    best_weight: Floats1
    best_arm: Ints1


@kernel
def _select(state, lam, out):
    """Grow one tree after another; the heaviest edge out of it, of equals the smallest id, joins."""
    alpha, beta, arm = state.alpha, state.beta, state.arm
    outside, best_weight, best_arm = state.outside, state.best_weight, state.best_arm
    n = outside.shape[0]
    # Place i of the three arrays belongs to vertex outside[i], so that the scan runs through memory in order.
    for v in range(n):
        outside[v] = v
        best_weight[v] = -np.inf
        best_arm[v] = -1
    left = n - 1
    joined = outside[left]
    size = 0
    while left > 0:
        alpha_row, beta_row = alpha[joined], beta[joined]
        at = 0
        top, top_arm = -np.inf, -1
        for i in range(left):
            v = outside[i]
            w = alpha_row[v] + lam * beta_row[v]
            best = best_weight[i]
            if w >= best and w > -np.inf:
                k = arm[joined, v]
                if w > best or k < best_arm[i]:
                    best_weight[i] = w
                    best_arm[i] = k
                    best = w
            if best >= top:
                if best > top or best_arm[i] < top_arm:
                    top = best
                    top_arm = best_arm[i]
                    at = i
        joined = outside[at]
        left -= 1
        outside[at] = outside[left]
        best_weight[at] = best_weight[left]
        best_arm[at] = best_arm[left]
        if top > -np.inf:
            out[size] = top_arm
            size += 1
    ascending(out, size)
    return size


@kernel
def _touch(state, arm):
    u, v = state.tail[arm], state.head[arm]
    a, b = state.recs[arm, ALPHA], state.recs[arm, BETA]
    state.alpha[u, v] = a
    state.alpha[v, u] = a
    state.beta[u, v] = b
    state.beta[v, u] = b


implement_engine(DensePrim, _select, _touch)


def is_simple(matroid: Graphic) -> bool:
    """Whether a matrix can hold the graph: no parallel edges, no self-loops. O(K log K)."""
    low, high = np.minimum(matroid._tail, matroid._head), np.maximum(matroid._tail, matroid._head)
    return bool((low != high).all()) and len(np.unique(low * matroid.n_vertices + high)) == matroid.n_arms


def dense_prim(matroid: Graphic, recs: FloatArray) -> DensePrim:
    """State of dense Prim, with the weights in `recs`. O(V^2 + K)."""
    n = matroid.n_vertices
    tail, head = np.array(matroid._tail), np.array(matroid._head)
    alpha, beta = np.full((n, n), -np.inf), np.zeros((n, n))
    arm = np.full((n, n), -1, dtype=np.int64)
    for i, j in ((tail, head), (head, tail)):
        alpha[i, j], beta[i, j] = recs[:, ALPHA], recs[:, BETA]
        arm[i, j] = np.arange(matroid.n_arms)
    scratch = np.zeros(n, dtype=np.int64), np.zeros(n), np.zeros(n, dtype=np.int64)
    return DensePrim(recs, tail, head, alpha, beta, arm, *scratch)
