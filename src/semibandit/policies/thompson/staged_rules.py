"""What may still be picked in a round of Thompson sampling by stages: the greedy's state, an arm at a time.

A rule tells for an arm whether greedy picks it, and of a class of arms whether any of them may still be picked. Arms of
one class are closed together where that can be told: in a tree of families by their innermost family. In graphs and
transversal matroids there is one class, and a list of the arms that are still open once these are few.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from semibandit.arms import IntArray
from semibandit.compiled.generic import generic, implement
from semibandit.compiled.handle import Ints1
from semibandit.compiled.jit import kernel
from semibandit.engines.resolve.greedy import DEAD, augment
from semibandit.matroids import Graphic, Laminar, Matroid, Partition, Transversal, Uniform
from semibandit.matroids.greedy import find_root


@generic
def rule_clear(rule: Any) -> None:
    """Nothing is picked."""


@generic
def rule_pick(rule: Any, arm: int, c: int) -> bool:
    """Whether greedy picks this arm of class c, which no heavier arm follows; it is picked then."""
    raise NotImplementedError("called by kernels only")


@generic
def rule_open(rule: Any, c: int) -> bool:
    """Whether an arm of class c may still be picked."""
    raise NotImplementedError("called by kernels only")


@generic
def rule_list(rule: Any, out: Any, most: int) -> int:
    """Write the arms that may still be picked (perhaps others, perhaps twice) into `out` if that takes looking at no
    more than `most`; how many, or -1."""
    raise NotImplementedError("called by kernels only")


# -- families ------------------------------------------------------------------------------------------------------


class TreeRule(NamedTuple):
    """Families with capacities: class c is that of the arms whose innermost family is c. `left`: room in each."""

    parent: Ints1
    capacity: Ints1
    left: Ints1


@kernel
def _tree_clear(rule):
    for f in range(rule.left.shape[0]):
        rule.left[f] = rule.capacity[f]


@kernel
def _tree_open(rule, c):
    """O(depth)."""
    f = c
    while f >= 0:
        if rule.left[f] == 0:
            return False
        f = rule.parent[f]
    return True


@kernel
def _tree_pick(rule, arm, c):
    """O(depth)."""
    if not _tree_open(rule, c):
        return False
    f = c
    while f >= 0:
        rule.left[f] -= 1
        f = rule.parent[f]
    return True


@kernel
def _tree_list(rule, out, most):
    return -1


# -- graphs --------------------------------------------------------------------------------------------------------


class GraphRule(NamedTuple):
    """Union-find: `link` leads to the parent, at a root it is minus the size. Edges at vertex v: at[first[v]:...]."""

    tail: Ints1
    head: Ints1
    first: Ints1
    at: Ints1
    link: Ints1


@kernel
def _graph_clear(rule):
    rule.link[:] = -1


@kernel
def _graph_pick(rule, arm, c):
    """O(log V)."""
    link = rule.link
    a = find_root(link, rule.tail[arm])
    b = find_root(link, rule.head[arm])
    if a == b:
        return False
    if link[a] > link[b]:
        a, b = b, a
    link[a] += link[b]
    link[b] = a
    return True


@kernel
def _one_open(rule, c):
    return True


@kernel
def _graph_list(rule, out, most):
    """The edges that leave the components other than the largest. O(V + edges looked at)."""
    link = rule.link
    largest = find_root(link, 0)
    for v in range(link.shape[0]):
        # At a root, minus the size.
        if link[v] < link[largest]:
            largest = v
    looks = 0
    for v in range(link.shape[0]):
        if find_root(link, v) != largest:
            looks += rule.first[v + 1] - rule.first[v]
    if looks > most:
        return -1
    n = 0
    for v in range(link.shape[0]):
        root = find_root(link, v)
        if root != largest:
            for i in range(rule.first[v], rule.first[v + 1]):
                arm = rule.at[i]
                if find_root(link, rule.tail[arm]) != find_root(link, rule.head[arm]):
                    out[n] = arm
                    n += 1
    return n


# -- matchings -----------------------------------------------------------------------------------------------------


class MatchRule(NamedTuple):
    """A matching: `mate` is the arm of each right node, or -1. The arms beside right node r are at[first[r]:...].
    `seen`, `came_from` and `queue`: scratch of searches, which `search[0]` counts."""

    indptr: Ints1
    indices: Ints1
    first: Ints1
    at: Ints1
    mate: Ints1
    seen: Ints1
    came_from: Ints1
    queue: Ints1
    search: Ints1


@kernel
def _match_clear(rule):
    rule.mate[:] = -1
    rule.seen[:] = 0
    rule.search[0] = 0


@kernel
def _match_pick(rule, arm, c):
    """O(edges of the base) at worst; nodes that a failed search saw are closed for the round."""
    rule.search[0] += 1
    found, reached = augment(
        rule.indptr, rule.indices, rule.mate, rule.seen, rule.search[0], rule.came_from, rule.queue, arm
    )
    if not found:
        for j in range(reached):
            rule.seen[rule.queue[j]] = DEAD
    return found


@kernel
def _match_list(rule, out, most):
    """The arms from which an alternating path leads to a free right node, found backwards. O(edges looked at)."""
    mate, queue = rule.mate, rule.queue
    seen = rule.came_from
    last = 0
    looks = 0
    for r in range(mate.shape[0]):
        seen[r] = -1
        if mate[r] < 0:
            seen[r] = 1
            queue[last] = r
            last += 1
            looks += rule.first[r + 1] - rule.first[r]
    if looks > most:
        return -1
    # A matched arm beside a node that leads on makes its own node lead on. Nodes in rows until none is added.
    grew = True
    while grew:
        grew = False
        for r in range(mate.shape[0]):
            if seen[r] < 0 and rule.seen[r] != DEAD:
                a = mate[r]
                for e in range(rule.indptr[a], rule.indptr[a + 1]):
                    if seen[rule.indices[e]] == 1:
                        seen[r] = 1
                        queue[last] = r
                        last += 1
                        looks += rule.first[r + 1] - rule.first[r]
                        grew = True
                        break
                if looks > most:
                    return -1
    n = 0
    for i in range(last):
        r = queue[i]
        for j in range(rule.first[r], rule.first[r + 1]):
            out[n] = rule.at[j]
            n += 1
    return n


for _rule, _clear, _pick, _open, _list in (
    (TreeRule, _tree_clear, _tree_pick, _tree_open, _tree_list),
    (GraphRule, _graph_clear, _graph_pick, _one_open, _graph_list),
    (MatchRule, _match_clear, _match_pick, _one_open, _match_list),
):
    implement(rule_clear, _rule, _clear)
    implement(rule_pick, _rule, _pick)
    implement(rule_open, _rule, _open)
    implement(rule_list, _rule, _list)


# -- made for a matroid ----------------------------------------------------------------------------------------------


def _listed(ends: IntArray, arms: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """`arms` by their `ends` (0 .. n - 1): where each begins, and the arms. O(their number)."""
    first = np.concatenate(([0], np.cumsum(np.bincount(ends, minlength=n)))).astype(np.int64)
    return first, arms[np.argsort(ends, kind="stable")].astype(np.int64, copy=False)


def make_rule(matroid: Matroid) -> tuple[Any, IntArray, IntArray]:
    """The rule of a matroid, the class of each arm, and how many arms of a class a base may have at most. O(K)."""
    if isinstance(matroid, (Partition, Laminar)):
        capacity = np.array(matroid._capacity)
        if isinstance(matroid, Partition):
            leaf, parent = np.array(matroid._group), np.full(len(capacity), -1, dtype=np.int64)
        else:
            leaf, parent = np.array(matroid._leaf), np.array(matroid._parent)
        return TreeRule(parent, capacity, capacity.copy()), leaf, capacity
    classes, rank = np.zeros(matroid.n_arms, dtype=np.int64), np.array([matroid.rank], dtype=np.int64)
    if isinstance(matroid, Uniform):
        return TreeRule(np.full(1, -1, dtype=np.int64), rank, rank.copy()), classes, rank
    arms = np.arange(matroid.n_arms, dtype=np.int64)
    if isinstance(matroid, Graphic):
        tail, head = np.array(matroid._tail), np.array(matroid._head)
        ends = np.concatenate((tail, head))
        lists = _listed(ends, np.concatenate((arms, arms)), matroid.n_vertices)
        return GraphRule(tail, head, *lists, np.zeros(matroid.n_vertices, dtype=np.int64)), classes, rank
    assert isinstance(matroid, Transversal)
    indptr, indices = np.array(matroid._indptr), np.array(matroid._indices)
    lists = _listed(indices, np.repeat(arms, np.diff(indptr)), matroid.n_right)
    scratch = [np.zeros(matroid.n_right, dtype=np.int64) for _ in range(4)]
    parts: Any = (indptr, indices, *lists, *scratch, np.zeros(1, dtype=np.int64))
    return MatchRule(*parts), classes, rank
