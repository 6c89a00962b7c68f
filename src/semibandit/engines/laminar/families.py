"""Which families of a laminar matroid bind at all: fewer, and less deeply nested, with the same independent sets."""

from __future__ import annotations

import numpy as np

from semibandit.arms import IntArray
from semibandit.compiled.jit import kernel


@kernel
def _thin(leaf, parent, capacity, reach, around, home, up, cap):
    """`binding_families` into `home`, `up` and `cap`; how many families are kept. Changes all but the first three."""
    n_families = parent.shape[0]
    reach[:] = 0
    for k in range(leaf.shape[0]):
        reach[leaf[k]] += 1
    for f in range(n_families - 1, -1, -1):
        # From here on reach[f] < 0 says that the family cannot be exceeded.
        held = min(reach[f], capacity[f])
        if reach[f] <= capacity[f]:
            reach[f] = -1
        if parent[f] >= 0:
            reach[parent[f]] += held
    size = 0
    for f in range(n_families):
        around[f] = around[parent[f]] if parent[f] >= 0 else -1
        if reach[f] >= 0 and (around[f] < 0 or capacity[f] < cap[around[f]]):
            up[size] = around[f]
            cap[size] = capacity[f]
            around[f] = size
            size += 1
    free = 0
    for k in range(leaf.shape[0]):
        home[k] = around[leaf[k]]
        if home[k] < 0:
            home[k] = size
            free += 1
    if free > 0:
        up[size] = -1
        cap[size] = free
        size += 1
    return size


def binding_families(
    leaf: IntArray, parent: IntArray, capacity: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Drop families that bind nothing: (home of each arm, parents, capacities), parents first. O(K + F).

    A family binds nothing when what it holds cannot exceed its capacity anyway, or else when a kept family
    around it has no larger capacity. Arms in no kept family share a last family that holds just them.

    >>> import numpy as np
    >>> home, parent, capacity = binding_families(np.array([1, 1, 2, 0]), np.array([-1, 0, 0]), np.array([9, 1, 5]))
    >>> home.tolist(), parent.tolist(), capacity.tolist()
    ([0, 0, 1, 1], [-1, -1], [1, 2])
    """
    n_families = len(parent)
    reach, around = (np.zeros(n_families, dtype=np.int64) for _ in range(2))
    up, cap = (np.zeros(n_families + 1, dtype=np.int64) for _ in range(2))
    home = np.zeros(len(leaf), dtype=np.int64)
    # Copies, because kernels are compiled once more for read-only arrays.
    given = (part.astype(np.int64) for part in (leaf, parent, capacity))
    size = int(_thin(*given, reach, around, home, up, cap))
    return home, up[:size].copy(), cap[:size].copy()
