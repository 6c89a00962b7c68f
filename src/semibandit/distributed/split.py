"""Which shard an arm belongs to.

Shards hold either consecutive arms, which takes no memory to know whatever K is, or any arms, which takes one small
number an arm at the coordinator. Inside a shard arms are numbered by ascending id, so that ties between its own arms go
to the smaller id of the whole ground set too.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from semibandit.arms import IntArray
from semibandit.errors import ParameterError
from semibandit.matroids import Laminar, Matroid, Partition
from semibandit.matroids.base import is_kind

# Groups are kept together if no shard has then more than this many times its share of the arms.
_UNEVEN = 1.5


class Ids(NamedTuple):
    """The arms of one shard: ``first .. first + size - 1``, or `listed`, ascending, unless that is empty."""

    first: int
    size: int
    listed: IntArray

    def all(self) -> IntArray:
        """All of them. O(n)."""
        return self.listed if self.listed.size else np.arange(self.first, self.first + self.size)

    def names(self, places: IntArray) -> IntArray:
        """The arms at these places of the shard. O(n)."""
        return self.listed[places] if self.listed.size else places + self.first

    def places(self, arms: IntArray) -> IntArray:
        """The places of these arms, which are the shard's. O(n), times log of its size where they are listed."""
        return np.searchsorted(self.listed, arms) if self.listed.size else arms - self.first


NONE: IntArray = np.zeros(0, dtype=np.int64)


class Split(NamedTuple):
    """Shard i has the arms ``bounds[i] .. bounds[i + 1] - 1``, or those with ``owner == i`` unless that is empty.

    `apart`: no rule of the matroid concerns arms of two shards, so their bases together are the base of all.
    """

    bounds: IntArray
    owner: npt.NDArray[np.int32]
    apart: bool = False

    @property
    def shards(self) -> int:
        """How many there are."""
        return len(self.bounds) - 1

    def owners(self, arms: IntArray) -> IntArray:
        """The shard of each of these arms. O(n), times log of the number of shards."""
        if self.owner.size:
            return self.owner[arms].astype(np.int64)
        return np.searchsorted(self.bounds, arms, side="right") - 1

    def ids(self, shard: int) -> Ids:
        """The arms of a shard. O(1), or O(K) where they are not consecutive."""
        if self.owner.size:
            listed = np.flatnonzero(self.owner == shard)
            return Ids(0, len(listed), listed)
        first, last = (int(one) for one in self.bounds[shard : shard + 2])
        return Ids(first, last - first, NONE)

    def parted(self, arms: IntArray) -> list[tuple[int, IntArray]]:
        """Positions in `arms` by shard, in their order, for the shards that have some. O(n log n)."""
        if self.shards == 1 or arms.size == 0:
            return [(0, np.arange(arms.size))] if arms.size else []
        owner = self.owners(arms)
        order = np.argsort(owner, kind="stable")
        ends = np.searchsorted(owner[order], np.arange(self.shards + 1))
        return [(i, order[a:b]) for i, (a, b) in enumerate(pairwise(ends.tolist())) if a < b]

    def grown(self, matroid: Matroid) -> Split:
        """With the arms that `matroid` has more, each in a shard of those it has. O(K)."""
        old = int(self.bounds[-1])
        owner = np.empty(matroid.n_arms, dtype=np.int32)
        owner[:old] = self.owner if self.owner.size else self.owners(np.arange(old))
        fresh = np.arange(old, matroid.n_arms)
        owner[old:] = (fresh - old) * self.shards // max(1, len(fresh))
        block = _blocks_of(matroid) if self.apart else None
        if block is not None:
            # A group that is there already stays in its shard, or the bases of shards would no longer be enough.
            home = np.full(int(block.max()) + 1, -1)
            home[block[:old]] = owner[:old]
            new = home[block[old:]] < 0
            first_seen = np.unique(block[old:][new])
            home[first_seen] = np.arange(len(first_seen)) % self.shards
            owner[old:] = home[block[old:]]
            if not (home[block] == owner).all():  # the new arms bring groups together that were apart
                block = None
        return by_owner(owner, self.shards, block is not None)


def by_owner(owner: Any, shards: int, apart: bool) -> Split:
    """The split in which arm k is in shard ``owner[k]``. O(K)."""
    if (np.diff(owner) >= 0).all():
        bounds = np.searchsorted(owner, np.arange(shards + 1))
        return Split(bounds.astype(np.int64), np.zeros(0, dtype=np.int32), apart)
    # Only the last bound, the number of arms, is meant then.
    bounds = np.full(shards + 1, len(owner), dtype=np.int64)
    return Split(bounds, np.asarray(owner, dtype=np.int32), apart)


def by_sizes(sizes: list[int], apart: bool = False) -> Split:
    """Consecutive arms, so many for each shard. O(shards)."""
    bounds = np.concatenate(([0], np.cumsum(np.array(sizes, dtype=np.int64))))
    return Split(bounds, np.zeros(0, dtype=np.int32), apart)


def split(matroid: Matroid, shards: int) -> Split:
    """The arms of `matroid` over so many shards, of about equal size: along groups where that spares the merge.

    Groups of a `Partition`, and the outermost families of a `Laminar` that has no bound on all arms, stay together
    if shards do not become too uneven. Otherwise consecutive arms. O(K) for these two classes, else O(shards).
    """
    n = matroid.n_arms
    if not 1 <= shards <= n:
        raise ParameterError(f"shards must be between 1 and the number of arms ({n}), got {shards}")
    block = _blocks_of(matroid) if shards > 1 else None
    if block is not None:
        owner = _along(block, shards)
        if np.bincount(owner, minlength=shards).max() <= _UNEVEN * n / shards + 1:
            if len(np.unique(owner)) == shards:
                return by_owner(owner, shards, True)
    return by_sizes([n * (i + 1) // shards - n * i // shards for i in range(shards)], shards == 1)


def _along(block: IntArray, shards: int) -> IntArray:
    """A shard for each arm, so that blocks stay together: as they come, each where its middle lies. O(K log K)."""
    first = np.unique(block, return_index=True)[1]
    known, place, size = np.unique(block, return_inverse=True, return_counts=True)
    order = np.argsort(first, kind="stable")
    ends = np.cumsum(size[order])
    home = np.empty(len(known), dtype=np.int64)
    home[order] = ((ends - size[order] / 2.0) * shards / len(block)).astype(np.int64)
    return home[place]


def _blocks_of(matroid: Matroid) -> IntArray | None:
    """A number for each arm such that no rule concerns arms with two of them; None if there is nothing such. O(K)."""
    if is_kind(matroid, Partition):
        return np.array(matroid._group)
    if is_kind(matroid, Laminar):
        leaf, parent, capacity = matroid._leaf, matroid._parent, matroid._capacity
        outer = np.flatnonzero(parent == 0)
        free = int((leaf == 0).sum())
        if capacity[0] < capacity[outer].sum() + free:
            return None
        top = np.zeros(len(parent), dtype=np.int64)
        for f in range(1, len(parent)):
            top[f] = f if parent[f] == 0 else top[parent[f]]
        # An arm in no family is a block of its own.
        alone = len(parent) + np.arange(len(leaf))
        return np.where(leaf == 0, alone, top[leaf])
    return None
