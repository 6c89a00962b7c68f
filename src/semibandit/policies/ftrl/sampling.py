"""A base with given chances: systematic sampling along the depth-first order of the families.

Lay the chances of all arms end to end, in that order, and mark the line at u, u + 1, u + 2, ... for one uniform number
u. An arm is played if a mark lies in its piece: with its chance, as no piece is longer than 1. The arms of a family are
neighbours, so the marks in it are its mass rounded down or up, which is at most its bound: the arms are a base.
docs/theory.md, "Systematic sampling", has the proof.
"""

from __future__ import annotations

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.random import next_uniform
from semibandit.compiled.sorting import sort_ids_in_place


@inline_kernel
def _take(families, arm, one):
    """Count `one` more arm in the families around `arm`. O(depth)."""
    f = families.leaf[arm]
    while f >= 0:
        families.used[f] += one
        f = families.parent[f]


@inline_kernel
def _fits(families, arm):
    """Whether no family around `arm` is full. O(depth)."""
    f = families.leaf[arm]
    while f >= 0:
        if families.used[f] >= families.bound[f]:
            return False
        f = families.parent[f]
    return True


@kernel
def sample_base(est, families, out):
    """Draw a base in which each present arm is with chance ``est.x``, ascending, into `out`; how many. O(K + D depth).

    Sums of chances are rounded, so a mark may miss the end of a full family by a hair: it then goes to the next arm
    that fits. Changes the generator; ``families.used`` is zero before and after.
    """
    target = families.bound[0]
    mark = next_uniform(est.rng)
    n = 0
    along = 0.0
    for i in range(families.order.shape[0]):
        arm = families.order[i]
        if not est.present[arm]:
            continue
        along += est.x[arm]
        if along > mark and n < target and _fits(families, arm):
            _take(families, arm, 1)
            out[n] = arm
            n += 1
            mark += 1.0
    if n < target:
        n = _complete(est, families, out, n)
    for j in range(n):
        _take(families, out[j], -1)
    sort_ids_in_place(out, n)
    return n


@kernel
def _complete(est, families, out, n):
    """Add arms to ``out[:n]``, likely ones first, until it is a base. Where rounding lost a mark. O(K D) at worst."""
    while n < families.bound[0]:
        best = -1
        for arm in range(est.x.shape[0]):
            if not est.present[arm] or not _fits(families, arm) or (best >= 0 and est.x[arm] <= est.x[best]):
                continue
            taken = False
            for j in range(n):
                taken |= out[j] == arm
            if not taken:
                best = arm
        _take(families, best, 1)
        out[n] = best
        n += 1
    return n
