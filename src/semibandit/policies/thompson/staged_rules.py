"""What may still be picked in a round of Thompson sampling by stages: the greedy's state, an arm at a time.

A rule tells for an arm whether greedy picks it, and of a class of arms whether any of them may still be picked. Arms of
one class are closed together where that can be told: in a tree of families by their innermost family. In graphs and
transversal matroids there is one class, and a list of the arms that are still open once these are few.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from semibandit.arms import IntArray
from semibandit.compiled.handle import Ints1, Ints2, Whole
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.memory import prefetch
from semibandit.engines.resolve.greedy import DEAD, augment
from semibandit.matroids import Graphic, Laminar, Matroid, Partition, Transversal, Uniform

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


@inline_kernel
def _tree_open(rule, c):
    """O(depth)."""
    f = c
    while f >= 0:
        if rule.left[f] == 0:
            return False
        f = rule.parent[f]
    return True


@inline_kernel
def _tree_pick(rule, c):
    """O(depth)."""
    if not _tree_open(rule, c):
        return False
    f = c
    while f >= 0:
        rule.left[f] -= 1
        f = rule.parent[f]
    return True


# -- graphs --------------------------------------------------------------------------------------------------------


class GraphRule(NamedTuple):
    """`label` names the component of each vertex by one of its vertices, where `size` counts them; `ring` leads around
    a component. `ends`: the two vertices of an edge. Edges at vertex v: at[first[v]:...]."""

    ends: Ints2
    first: Ints1
    at: Ints1
    label: Ints1
    size: Ints1
    ring: Ints1


@kernel
def _graph_clear(rule):
    for v in range(rule.label.shape[0]):
        rule.label[v] = v
        rule.size[v] = 1
        rule.ring[v] = v


@inline_kernel
def _graph_pick(rule, arm):
    """O(1) where the edge is refused, else O(smaller component): most edges are, and vertices are named anew O(log V)
    times each."""
    label, size, ring = rule.label, rule.size, rule.ring
    a, b = label[rule.ends[arm, 0]], label[rule.ends[arm, 1]]
    if a == b:
        return False
    if size[a] < size[b]:
        a, b = b, a
    size[a] += size[b]
    v = b
    while True:
        label[v] = a
        if ring[v] == b:
            break
        v = ring[v]
    ring[v] = ring[a]
    ring[a] = b
    return True


@kernel
def graph_run(rule, entry, begin, end, arm_bits, out, picked, most):
    """`_graph_pick` for the arms ``entry[begin:end]`` in turn, until `most` are picked. How many are, and the places
    after the last of these arms and after the last that was looked at."""
    # Ends are seldom in a cache: looked at in one go, they are waited for together.
    for i in range(begin, end):
        prefetch(rule.ends, entry[i] & arm_bits)
    i = last = begin
    while picked < most and i < end:
        arm = entry[i] & arm_bits
        i += 1
        if _graph_pick(rule, arm):
            out[picked] = arm
            picked += 1
            last = i
    return picked, last, i


@kernel
def _graph_list(rule, out, most):
    """The edges that leave the components other than the largest. O(V + edges looked at)."""
    label, first = rule.label, rule.first
    largest = label[0]
    for v in range(label.shape[0]):
        if rule.size[label[v]] > rule.size[largest]:
            largest = label[v]
    looks = 0
    for v in range(label.shape[0]):
        if label[v] != largest:
            looks += first[v + 1] - first[v]
    if looks > most:
        return -1
    n = 0
    for v in range(label.shape[0]):
        if label[v] != largest:
            for i in range(first[v], first[v + 1]):
                arm = rule.at[i]
                if label[rule.ends[arm, 0]] != label[rule.ends[arm, 1]]:
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


@inline_kernel
def _match_pick(rule, arm):
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


# -- any -----------------------------------------------------------------------------------------------------------

TREE, GRAPH, MATCH = 0, 1, 2


class Rule(NamedTuple):
    """One of the three, by `kind`; the others are empty. One class for all of them: the kernels of a round are compiled
    once."""

    kind: Whole
    tree: TreeRule
    graph: GraphRule
    match: MatchRule


@inline_kernel
def rule_clear(rule):
    """Nothing is picked."""
    if rule.kind == TREE:
        _tree_clear(rule.tree)
    elif rule.kind == GRAPH:
        _graph_clear(rule.graph)
    else:
        _match_clear(rule.match)


@inline_kernel
def rule_pick(rule, arm, c):
    """Whether greedy picks this arm of class c, which no heavier arm follows; it is picked then."""
    if rule.kind == TREE:
        return _tree_pick(rule.tree, c)
    if rule.kind == GRAPH:
        return _graph_pick(rule.graph, arm)
    return _match_pick(rule.match, arm)


@inline_kernel
def rule_open(rule, c):
    """Whether an arm of class c may still be picked, as far as that can be told."""
    return rule.kind != TREE or _tree_open(rule.tree, c)


@inline_kernel
def rule_list(rule, out, most):
    """Write the arms that may still be picked (perhaps others, perhaps twice) into `out` if that takes looking at no
    more than `most`; how many, or -1."""
    if rule.kind == GRAPH:
        return _graph_list(rule.graph, out, most)
    if rule.kind == MATCH:
        return _match_list(rule.match, out, most)
    return -1


# -- made for a matroid ----------------------------------------------------------------------------------------------


def _listed(ends: IntArray, arms: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """`arms` by their `ends` (0 .. n - 1): where each begins, and the arms. O(their number)."""
    first = np.concatenate(([0], np.cumsum(np.bincount(ends, minlength=n)))).astype(np.int64)
    return first, arms[np.argsort(ends, kind="stable")].astype(np.int64, copy=False)


def _ints(*arrays: Any) -> tuple[IntArray, ...]:
    """Copies, as kernels take them."""
    return tuple(np.array(array, dtype=np.int64) for array in arrays)


def _make(kind: int, part: Any) -> Rule:
    """A rule with this part, and nothing in the others."""
    none = np.zeros(0, dtype=np.int64)
    parts: list[Any] = [
        TreeRule(none, none, none),
        GraphRule(none.reshape(0, 2), none, none, none, none, none),
        MatchRule(none, none, none, none, none, none, none, none, none),
    ]
    parts[kind] = part
    return Rule(kind, *parts)


def make_rule(matroid: Matroid) -> tuple[Rule, IntArray, IntArray]:
    """The rule of a matroid, the class of each arm, and how many arms of a class a base may have at most. O(K)."""
    n = matroid.n_arms
    arms, classes, (rank,) = np.arange(n, dtype=np.int64), np.zeros(n, dtype=np.int64), _ints([matroid.rank])
    if isinstance(matroid, Graphic):
        ends = np.stack((matroid._tail, matroid._head), axis=1).astype(np.int64)
        lists = _listed(ends.reshape(-1), np.repeat(arms, 2), matroid.n_vertices)
        scratch = [np.zeros(matroid.n_vertices, dtype=np.int64) for _ in range(3)]
        return _make(GRAPH, GraphRule(ends, *lists, *scratch)), classes, rank
    if isinstance(matroid, Transversal):
        indptr, indices = _ints(matroid._indptr, matroid._indices)
        lists = _listed(indices, np.repeat(arms, np.diff(indptr)), matroid.n_right)
        scratch = [np.zeros(matroid.n_right, dtype=np.int64) for _ in range(4)]
        return _make(MATCH, MatchRule(indptr, indices, *lists, *scratch, *_ints([0]))), classes, rank
    if isinstance(matroid, Uniform):
        return _make(TREE, TreeRule(*_ints([-1], rank, rank))), classes, rank
    if isinstance(matroid, Partition):
        leaf, capacity, left = _ints(matroid._group, matroid._capacity, matroid._capacity)
        parent = np.full(len(capacity), -1, dtype=np.int64)
    else:
        assert isinstance(matroid, Laminar)
        leaf, parent, capacity, left = _ints(
            matroid._leaf, matroid._parent, matroid._capacity, matroid._capacity
        )
    return _make(TREE, TreeRule(parent, capacity, left)), leaf, capacity
