"""Membership one arm at a time, for kernels that find out as they go which arm comes next.

The kernels of `resolve.greedy` walk a finished order. Where the order depends on what was taken already, `take` answers
for one arm: TAKEN, REFUSED, or CLOSED where all arms of its class (`classes_of`) are refused for the rest of the round
as well. One state serves all built-in classes of matroids, so that what calls these kernels is compiled once; scratch
space is kept, so that a round allocates nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.compiled.handle import Floats2, Ints1, Ints2, Whole
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.engines.resolve.greedy import DEAD, _find, augment
from semibandit.matroids import Graphic, Laminar, Linear, Matroid, Partition, Transversal, Uniform
from semibandit.matroids.base import kind_of
from semibandit.matroids.elimination import _insert, _residual

TAKEN, REFUSED, CLOSED = 1, 0, -1

# Kinds of rules. A partition is a tree of families of depth one; UNKNOWN: only Python can tell.
UNIFORM, FAMILIES, GRAPHIC, TRANSVERSAL, LINEAR, UNKNOWN = range(6)

_NO_INTS: IntArray = np.zeros(0, dtype=np.int64)
_NO_TABLE: IntArray = np.zeros((0, 0), dtype=np.int64)


class Rule(NamedTuple):
    """What may be taken together, and what was.

    ============  =========================  ======================  =================================================
    kind          `first`                    `second`                rows of `scratch`
    ============  =========================  ======================  =================================================
    families      innermost family, by arm   family around, or -1    members taken
    graphic       one end of each arm        the other end           union-find: parent, size
    transversal   where neighbours begin     neighbours              mate of each right node; last search that came;
                                                                     node before; queue
    linear        primes                                             rows of each prime's echelon form, -1 if dependent
    ============  =========================  ======================  =================================================

    `capacity`: of families. `limbs`: the vectors. `rows`: rank + 1 for each prime, the last for the vector at hand;
    `pivots`: a row for each prime. `searches`: how many there were in this round.
    """

    kind: Whole
    recs: Floats2
    first: Ints1
    second: Ints1
    capacity: Ints1
    scratch: Ints2
    limbs: Ints2
    rows: Ints2
    pivots: Ints2
    searches: Ints1


@kernel
def begin(rule):
    """Nothing is taken. Changes the scratch of `rule`. O(its size)."""
    scratch = rule.scratch
    if rule.kind == FAMILIES or rule.kind == LINEAR:
        scratch[0, :] = 0
    elif rule.kind == GRAPHIC:
        for v in range(scratch.shape[1]):
            scratch[0, v] = v
            scratch[1, v] = 1
    elif rule.kind == TRANSVERSAL:
        scratch[0, :] = -1
        scratch[1, :] = 0
        rule.searches[0] = 0


@inline_kernel
def take(rule, arm):
    """Take `arm`, not taken yet, if it goes with what was taken: TAKEN, REFUSED or CLOSED. Changes the scratch.

    Whoever takes stops at the rank.
    """
    if rule.kind == UNIFORM:
        return TAKEN
    if rule.kind == FAMILIES:
        return _take_family(rule.first, rule.second, rule.capacity, rule.scratch, arm)
    if rule.kind == GRAPHIC:
        return _take_edge(rule.first, rule.second, rule.scratch, arm)
    if rule.kind == TRANSVERSAL:
        return _take_matched(rule.first, rule.second, rule.scratch, rule.searches, arm)
    return _take_vector(rule.limbs, rule.first, rule.rows, rule.pivots, rule.scratch, arm)


@kernel
def _take_family(leaf, parent, capacity, scratch, arm):
    """Arms of one leaf are refused together. O(depth)."""
    used = scratch[0]
    f = leaf[arm]
    while f >= 0:
        if used[f] >= capacity[f]:
            return CLOSED
        f = parent[f]
    f = leaf[arm]
    while f >= 0:
        used[f] += 1
        f = parent[f]
    return TAKEN


@kernel
def _take_edge(tail, head, scratch, arm):
    """Near O(1)."""
    root, size = scratch[0], scratch[1]
    u = _find(root, tail[arm])
    v = _find(root, head[arm])
    if u == v:
        return REFUSED
    if size[u] < size[v]:
        u, v = v, u
    root[v] = u
    size[u] += size[v]
    return TAKEN


@kernel
def _take_matched(indptr, indices, scratch, searches, arm):
    """Right nodes that a search reaches in vain are dead for the rest of the round (`resolve.greedy`)."""
    seen, queue = scratch[1], scratch[3]
    searches[0] += 1
    found, reached = augment(indptr, indices, scratch[0], seen, searches[0], scratch[2], queue, arm)
    if found:
        return TAKEN
    for j in range(reached):
        seen[queue[j]] = DEAD
    return REFUSED


@kernel
def _take_vector(limbs, primes, rows, pivots, scratch, arm):
    """Independent exactly when it is so modulo a prime (`matroids.elimination`). O(primes * rank * dimension)."""
    size = scratch[0]
    block = rows.shape[0] // primes.shape[0]
    answer = REFUSED
    for i in range(primes.shape[0]):
        if size[i] < 0:
            continue
        mine = rows[i * block : (i + 1) * block]
        vector = mine[block - 1]
        pivot = _residual(limbs, arm, primes[i], mine, pivots[i], size[i], vector)
        if pivot >= 0:
            if answer == REFUSED:
                # Primes before this one saw a dependence that is none: they have nothing more to say.
                for other in range(i):
                    size[other] = -1
                answer = TAKEN
            _insert(primes[i], mine, pivots[i], size[i], vector, pivot)
            size[i] += 1
        elif answer == TAKEN:
            size[i] = -1
    return answer


def rule_of(matroid: Matroid, recs: FloatArray) -> Rule:
    """The rule of a matroid over these arm records; of kind UNKNOWN for a class of the user's. O(D) at most."""
    parts: dict[str, Any] = dict.fromkeys(("first", "second", "capacity"), _NO_INTS)
    parts |= dict.fromkeys(("scratch", "limbs", "rows", "pivots"), _NO_TABLE)
    cls, kind = kind_of(matroid), UNKNOWN
    if cls is Uniform:
        kind = UNIFORM
    elif cls in (Partition, Laminar):
        kind = FAMILIES
        leaf, capacity = _families(matroid)
        parts |= {"first": leaf, "second": _around(matroid, len(capacity)), "capacity": capacity}
        parts["scratch"] = np.zeros((1, len(capacity)), dtype=np.int64)
    elif cls is Graphic:
        assert isinstance(matroid, Graphic)
        kind = GRAPHIC
        parts |= {"first": matroid._tail, "second": matroid._head}
        parts["scratch"] = np.zeros((2, matroid.n_vertices), dtype=np.int64)
    elif cls is Transversal:
        assert isinstance(matroid, Transversal)
        kind = TRANSVERSAL
        parts |= {"first": matroid._indptr, "second": matroid._indices}
        parts["scratch"] = np.zeros((4, matroid.n_right), dtype=np.int64)
    elif cls is Linear:
        assert isinstance(matroid, Linear)
        kind, m = LINEAR, len(matroid._primes)
        parts |= {"first": matroid._primes, "limbs": matroid._limbs}
        parts["rows"] = np.zeros((m * (matroid.rank + 1), matroid.dimension), dtype=np.int64)
        parts["pivots"] = np.zeros((m, matroid.rank), dtype=np.int64)
        parts["scratch"] = np.zeros((1, m), dtype=np.int64)
    return Rule(kind=kind, recs=recs, searches=np.zeros(1, dtype=np.int64), **parts)


def _families(matroid: Any) -> tuple[IntArray, IntArray]:
    """The innermost family of each arm, and the capacities."""
    leaf = matroid._group if kind_of(matroid) is Partition else matroid._leaf
    return leaf, matroid._capacity


def _around(matroid: Any, n: int) -> IntArray:
    return np.full(n, -1, dtype=np.int64) if kind_of(matroid) is Partition else matroid._parent


def classes_of(matroid: Matroid) -> tuple[IntArray, int]:
    """(class of each arm, their number): arms of one class may stand for each other in any independent set.

    Where no such classes are known all arms are of one, and the number is 0. O(K).
    """
    kind = kind_of(matroid)
    if kind in (Partition, Laminar):
        leaf, capacity = _families(matroid)
        return np.array(leaf), len(capacity)
    return np.zeros(matroid.n_arms, dtype=np.int64), 1 if kind is Uniform else 0
