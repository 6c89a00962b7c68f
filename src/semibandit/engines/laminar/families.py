"""The families of a laminar matroid that bind: all others are dropped before a tree is made of them."""

from __future__ import annotations

import numpy as np

from semibandit.arms import IntArray
from semibandit.compiled.jit import kernel
from semibandit.matroids import Laminar


@kernel
def _drop_loose(leaf, parent, capacity, reach, around, home, kept_parent, kept_capacity):
    """Fill `home`, `kept_parent` and `kept_capacity`; how many families are kept. `reach`, `around`: scratch."""
    n_families = parent.shape[0]
    reach[:] = 0
    for k in range(leaf.shape[0]):
        reach[leaf[k]] += 1
    # From the innermost families outwards: `reach` is what a family could hold but for its own capacity.
    for f in range(n_families - 1, -1, -1):
        if parent[f] >= 0:
            reach[parent[f]] += min(reach[f], capacity[f])
    n = 0
    for f in range(n_families):
        around[f] = around[parent[f]] if parent[f] >= 0 else -1
        if reach[f] > capacity[f] and (around[f] < 0 or capacity[f] < kept_capacity[around[f]]):
            kept_parent[n] = around[f]
            kept_capacity[n] = capacity[f]
            around[f] = n
            n += 1
    free = 0
    for k in range(leaf.shape[0]):
        home[k] = around[leaf[k]]
        if home[k] < 0:
            home[k] = n
            free += 1
    if free > 0:
        kept_parent[n] = -1
        kept_capacity[n] = free
        n += 1
    return n


def binding_families(matroid: Laminar) -> tuple[IntArray, IntArray, IntArray]:
    """(innermost kept family of each arm, parents, capacities), parents first. O(K + F).

    A family binds nothing when what it holds cannot exceed its capacity anyway, or else when a kept family
    around it has no larger capacity. Arms in no kept family share a last family that holds just them.
    """
    # Copies, because kernels are compiled once more for read-only arrays.
    leaf, parent, capacity = matroid._leaf.copy(), matroid._parent.copy(), matroid._capacity.copy()
    n_families = parent.size
    reach, around = (np.empty(n_families, dtype=np.int64) for _ in range(2))
    kept_parent, kept_capacity = (np.empty(n_families + 1, dtype=np.int64) for _ in range(2))
    home = np.empty(leaf.size, dtype=np.int64)
    n = int(_drop_loose(leaf, parent, capacity, reach, around, home, kept_parent, kept_capacity))
    return home, kept_parent[:n].copy(), kept_capacity[:n].copy()
