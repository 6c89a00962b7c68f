"""Laminar matroid: nested families of arms, each with a capacity."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from semibandit.arms import IntArray
from semibandit.compiled.jit import kernel
from semibandit.errors import MatroidError
from semibandit.matroids import codec
from semibandit.matroids.base import CompiledMatroid
from semibandit.matroids.few import MANY, places
from semibandit.matroids.greedy import greedy_laminar
from semibandit.matroids.naming import label_arms
from semibandit.matroids.nested import unfold
from semibandit.matroids.parting import by_rows
from semibandit.matroids.partition import blocks
from semibandit.matroids.validate import flatten, in_range, integers, per_item, readonly


@kernel
def _find_repeated(arms: Any, start: Any, last: Any) -> Any:
    """(family, arm) of the first arm that one family names twice, or (-1, -1). `last` is -1 before. O(total size)."""
    for f in range(start.size - 1):
        for i in range(start[f], start[f + 1]):
            if last[arms[i]] == f:
                return f, arms[i]
            last[arms[i]] = f
    return -1, -1


@kernel
def _fill_nest(
    arms: Any,
    start: Any,
    by_size: Any,
    given: Any,
    leaf: Any,
    parent: Any,
    capacity: Any,
    extent: Any,
    source: Any,
) -> Any:
    """Build the tree of families, largest first. O(total size).

    Families are nested or disjoint exactly when the arms of each share one innermost family among the larger ones.
    Writes `leaf` (zero before), parent, capacity, extent and source of each node. Returns (size, family, other): node 0
    is the whole ground set, parents come before children, equal families share a node. On crossing, `family` and
    `other` are the two given families, else -1.
    """
    n_arms = leaf.size
    parent[0] = -1
    capacity[0] = n_arms
    extent[0] = n_arms
    source[0] = -1
    size = 1
    for i in range(by_size.size):
        f = by_size[i]
        lo = start[f]
        hi = start[f + 1]
        if lo == hi:
            continue
        p = leaf[arms[lo]]
        for j in range(lo + 1, hi):
            q = leaf[arms[j]]
            if q != p:
                # The deeper node is the one that does not hold all of this family.
                return size, f, source[max(p, q)]
        if extent[p] == hi - lo:
            capacity[p] = min(capacity[p], given[f])
            continue
        parent[size] = p
        capacity[size] = given[f]
        extent[size] = hi - lo
        source[size] = f
        for j in range(lo, hi):
            leaf[arms[j]] = size
        size += 1
    return size, -1, -1


@kernel
def _tighten(leaf: Any, parent: Any, capacity: Any, reach: Any) -> None:
    """Replace each capacity, in place, by the rank of its family in the matroid; `reach` is zero before. O(K + F)."""
    for k in range(leaf.size):
        reach[leaf[k]] += 1
    for f in range(parent.size - 1, -1, -1):
        capacity[f] = min(capacity[f], reach[f])
        if f > 0:
            reach[parent[f]] += capacity[f]
    for f in range(1, parent.size):
        capacity[f] = min(capacity[f], capacity[parent[f]])


class _Tree(NamedTuple):
    """Innermost family of each arm, parent and capacity of each family."""

    leaf: IntArray
    parent: IntArray
    capacity: IntArray


class Laminar(CompiledMatroid):
    """At most `capacity` arms of each family, where any two families are nested or disjoint.

    Parameters
    ----------
    n_arms
        Number K of arms.
    families
        Pairs (arms, capacity). An arm in no family is bounded by nothing but the rest; a family that holds
        every arm bounds the whole selection. A family of capacity 0 holds only loops.

    Raises
    ------
    MatroidError
        When two families cross, a family names an arm twice or an unknown one, a capacity is negative or not
        an integer, or nothing can be played.

    Notes
    -----
    Membership counts the arms picked in each family around an arm, O(depth) (the paper's counters for
    partition matroids, one level for each nesting). `max_weight_base` costs O(K log K + D * depth),
    construction O(total size of the families), `is_independent` O(F + n * depth) for n arms.

    Examples
    --------
    At most two arms of 0-3, and at most one of 0 and 1:

    >>> from semibandit.matroids import Laminar
    >>> slate = Laminar(5, [([0, 1, 2, 3], 2), ([0, 1], 1)])
    >>> slate.max_weight_base([0.9, 0.8, 0.7, 0.6, 0.1])
    array([0, 2, 4])
    """

    def __init__(self, n_arms: int, families: Any) -> None:
        super().__init__(n_arms)
        if isinstance(families, _Tree):
            leaf, parent, capacity = (part.copy() for part in families)
        else:
            leaf, parent, capacity = self._nested(families)
        _tighten(leaf, parent, capacity, np.zeros(parent.size, np.int64))
        self._leaf, self._parent, self._capacity = readonly(leaf), readonly(parent), readonly(capacity)
        self._settle_rank("families")

    @classmethod
    def from_tree(cls, leaf: Any, parent: Any, capacities: Any) -> Laminar:
        """Families as a tree: `leaf` is the innermost family of each arm, `parent` the family around each family.

        Family 0 holds every arm (its parent is -1), and parents come before their children. O(K + F).

        >>> from semibandit.matroids import Laminar
        >>> Laminar.from_tree([2, 2, 1, 1, 0], [-1, 0, 1], [5, 2, 1]) == Laminar(5, [(range(4), 2), ([0, 1], 1)])
        True
        """
        innermost, around = integers(leaf, "leaf"), integers(parent, "parent")
        bound = per_item(capacities, around.size, "capacities", "family")
        if isinstance(bound, int):
            bound = np.full(around.size, bound, dtype=np.int64)
        if around.size == 0 or around[0] != -1:
            raise MatroidError("parent[0] must be -1: family 0 is the whole ground set")
        inside = np.arange(1, around.size)
        if ((around[1:] < 0) | (around[1:] >= inside)).any():
            bad = 1 + int(np.argmax((around[1:] < 0) | (around[1:] >= inside)))
            raise MatroidError(f"parent[{bad}] = {around[bad]}: parents must come before their children")
        in_range(innermost, around.size, "leaf", "families")
        return cls(innermost.size, _Tree(innermost, around, bound))

    @classmethod
    def from_nested(
        cls, tree: Mapping[Any, Any], quotas: Mapping[Any, int], total: int | None = None
    ) -> Laminar:
        """Families by name: a dictionary of dictionaries, lists of labels innermost. O(K + F * depth).

        Parameters
        ----------
        tree
            ``{"news": {"sport": ["derby", "final"], "world": ["vote"]}, "music": ["tour"]}``.
        quotas
            How many of a family may be played, by its name, or by the tuple of names that leads to it if several
            families have that name. A family that is not named is bounded by those around and inside it.
        total
            How many may be played in all.

        `labels` are those of the innermost lists, in their order; `names` are the tuples that lead to each family, ()
        for all arms.

        >>> from semibandit.matroids import Laminar
        >>> tree = {"news": {"sport": ["derby", "final"], "world": ["vote"]}, "music": ["tour"]}
        >>> page = Laminar.from_nested(tree, {"news": 2, "sport": 1}, total=2)
        >>> page.labels[page.max_weight_base([0.9, 0.8, 0.3, 0.4])].tolist()
        ['derby', 'tour']
        """
        labels, leaf, parent, given, paths = unfold(tree, quotas, total)
        bound = [len(labels) if quota is None else quota for quota in given]
        return label_arms(cls.from_tree(leaf, parent, bound), labels, paths, given)

    def _nested(self, families: Any) -> tuple[IntArray, IntArray, IntArray]:
        """The tree of families given as pairs. O(total size)."""
        try:
            pairs = [(arms, capacity) for arms, capacity in families]
        except (TypeError, ValueError):
            raise MatroidError("families: need a sequence of pairs (arms, capacity)") from None
        arms, lengths = flatten((pair[0] for pair in pairs), "families")
        given = per_item([pair[1] for pair in pairs], len(pairs), "capacity of families", "family")
        start = np.concatenate(([0], np.cumsum(lengths)))
        if arms.size and not 0 <= arms.min() <= arms.max() < self.n_arms:
            for f in range(len(pairs)):
                in_range(arms[start[f] : start[f + 1]], self.n_arms, f"families[{f}]", "arm ids")
        family, arm = _find_repeated(arms, start, np.full(self.n_arms, -1, np.int64))
        if family >= 0:
            raise MatroidError(f"families[{family}] names arm {arm} more than once")
        by_size = np.argsort(-lengths, kind="stable")
        leaf = np.zeros(self.n_arms, np.int64)
        parent, capacity, extent, source = (np.empty(len(pairs) + 1, np.int64) for _ in range(4))
        size, family, other = _fill_nest(arms, start, by_size, given, leaf, parent, capacity, extent, source)
        if family >= 0:
            raise MatroidError(
                f"families[{family}] and families[{other}] cross: two families must be nested or disjoint"
            )
        return leaf, parent[:size].copy(), capacity[:size].copy()

    def _compiled_greedy(self, order: IntArray, limit: int) -> IntArray:
        picked: IntArray = greedy_laminar(order, self._leaf, self._parent, self._capacity, limit)
        return picked

    def _greedy_few(self, order: IntArray) -> IntArray:
        if self._parent.size <= MANY * order.size:
            return self._greedy(order)
        chain = [np.unique(self._leaf[order])]
        while chain[-1].size:
            above = self._parent[chain[-1]]
            chain.append(np.unique(above[above >= 0]))
        families = np.unique(np.concatenate(chain))
        above = self._parent[families]
        parent = np.where(above < 0, -1, np.searchsorted(families, above))
        leaf, capacity = np.searchsorted(families, self._leaf[order]), self._capacity[families]
        parts = readonly(leaf), readonly(parent), readonly(capacity)
        return order[greedy_laminar(places(order), *parts, self.rank)]

    def _find_rank(self) -> int:
        return int(self._capacity[0])

    def _find_loops(self) -> IntArray:
        return np.flatnonzero(self._capacity[self._leaf] == 0)

    def _key(self) -> tuple[Any, ...]:
        return (self._leaf, self._parent, self._capacity)

    def __repr__(self) -> str:
        n_families = len(self._parent) - 1
        return f"Laminar(n_arms={self.n_arms}, n_families={n_families}, rank={self.rank})"


def _random(arms: int, rank: int, seed: int) -> Laminar:
    """Three levels: `rank` of all, about half as much again allowed over the blocks, half a block in a part.

    Every level binds somewhere: a block could fill more than its share and a part more than its own. Nothing is random
    here. O(K).
    """
    n_blocks = max(1, min(arms, round(rank / 3)))
    allowed = -(-3 * rank // (2 * n_blocks))
    families: list[tuple[IntArray, int]] = [(np.arange(arms, dtype=np.int64), rank)]
    edges = np.searchsorted(blocks(arms, n_blocks), np.arange(n_blocks + 1))
    for first, last in pairwise(edges):
        members = np.arange(first, last, dtype=np.int64)
        families.append((members, allowed))
        if len(members) > 1:
            part = blocks(len(members), min(4, len(members)))
            families.extend((members[part == p], max(1, -(-allowed // 2))) for p in range(part[-1] + 1))
    return Laminar(arms, families)


def _family(one: Any) -> Any:
    """``{ arms = [...], capacity = n }``, or ``[[...], n]``."""
    if isinstance(one, dict):
        if set(one) != {"arms", "capacity"}:
            raise MatroidError(f"families: each has the keys arms and capacity, got {', '.join(one)}")
        return one["arms"], one["capacity"]
    return one


def _from_toml(families: Any, arms: int) -> Laminar:
    return Laminar(arms, [_family(one) for one in families])


codec.register(
    Laminar,
    to_parts=lambda m: {"leaf": m._leaf, "parent": m._parent, "capacities": m._capacity},
    from_parts=Laminar.from_tree,
    random=_random,
    from_toml=_from_toml,
    parting=by_rows("leaf", "parent", "capacities"),
)
