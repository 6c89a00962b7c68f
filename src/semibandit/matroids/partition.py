"""Partition matroid: arms come in groups, and each group has a capacity."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray, IntArray
from semibandit.errors import MatroidError
from semibandit.matroids import codec
from semibandit.matroids.base import CompiledMatroid
from semibandit.matroids.few import MANY, places, renumbered
from semibandit.matroids.greedy import greedy_partition, top_arms_per_group
from semibandit.matroids.naming import column, label_arms, numbered
from semibandit.matroids.parting import by_rows
from semibandit.matroids.validate import (
    in_range,
    inferred_size,
    integers,
    per_item,
    readonly,
    whole_number,
)


class Partition(CompiledMatroid):
    """At most `capacities[g]` arms of each group g.

    Parameters
    ----------
    groups
        The group of each arm: one id of 0, 1, 2, ... per arm.
    capacities
        One capacity for all groups, or a sequence with one per group. A group of capacity 0 holds only
        loops; a capacity beyond the size of its group counts as that size.

    Raises
    ------
    MatroidError
        When there are no arms, an id or capacity is not an integer or is negative, a group has no capacity,
        or no group has both arms and a capacity above 0.

    Notes
    -----
    Membership is one counter per group, O(1) (paper, appendix on membership oracles). `max_weight_base` is
    one pass that keeps the heaviest arms of every group: O(K log(largest capacity)). `is_independent` costs
    O(G + n) for G groups and n arms.

    Examples
    --------
    At most one arm of group 0 and two of group 1:

    >>> from semibandit.matroids import Partition
    >>> Partition([0, 0, 1, 1, 1], capacities=[1, 2]).max_weight_base([0.2, 0.4, 0.1, 0.3, 0.2])
    array([1, 3, 4])
    """

    def __init__(self, groups: npt.ArrayLike, capacities: npt.ArrayLike = 1) -> None:
        group = integers(groups, "groups")
        if group.size == 0:
            raise MatroidError("groups is empty: need one group id per arm, and at least one arm")
        super().__init__(group.size)
        capacity = per_item(capacities, None, "capacities", "group")
        if isinstance(capacity, int):
            self.n_groups = inferred_size(group, group.size, "groups", "group", "")
            capacity = np.full(self.n_groups, min(capacity, group.size), dtype=np.int64)
        else:
            self.n_groups = capacity.size
            in_range(group, self.n_groups, "groups", "group ids (one per entry of capacities)")
        self._group = readonly(group)
        self._capacity = readonly(np.minimum(capacity, np.bincount(group, minlength=self.n_groups)))
        self._settle_rank("capacities")

    @classmethod
    def from_column(
        cls,
        categories: Iterable[Hashable],
        quotas: int | Mapping[Any, int] = 1,
        labels: Iterable[Hashable] | None = None,
    ) -> Partition:
        """Groups by name: `categories` has the category of each arm, `quotas` how many of each may be played. O(K).

        Parameters
        ----------
        categories
            A sequence, an array, or a column of pandas or polars.
        quotas
            ``{"news": 3, "sport": 2}``, which must name every category that occurs, or one number for all of them.
        labels
            What the arms are called, another such column; their ids unless given.

        >>> from semibandit.matroids import Partition
        >>> page = Partition.from_column(["news", "sport", "news"], {"news": 1, "sport": 1}, ["vote", "derby", "law"])
        >>> page.labels[page.max_weight_base([0.2, 0.4, 0.3])].tolist()
        ['derby', 'law']
        """
        given = column(categories, "categories")
        if isinstance(quotas, Mapping):
            known = list(quotas)
            capacities = [whole_number(quotas[name], f"quotas[{name!r}]") for name in known]
            groups, names = numbered(given, "categories", known)
            if len(names) > len(known):
                at = int(np.argmax(groups == len(known)))
                shown = ", ".join(map(repr, known))
                raise MatroidError(
                    f"categories[{at}] = {names[len(known)]!r} has no quota: quotas are given for {shown}"
                )
        else:
            groups, names = numbered(given, "categories")
            capacities = [whole_number(quotas, "quotas")] * len(names)
        return label_arms(cls(groups, capacities), labels, names, capacities)

    def _compiled_greedy(self, order: IntArray, limit: int) -> IntArray:
        picked: IntArray = greedy_partition(order, self._group, self._capacity, limit)
        return picked

    def _greedy_few(self, order: IntArray) -> IntArray:
        if self.n_groups <= MANY * order.size:
            return self._greedy(order)
        groups, group = renumbered(self._group[order])
        return order[greedy_partition(places(order), group, readonly(self._capacity[groups]), self.rank)]

    def _max_weight_base(self, weights: FloatArray) -> IntArray:
        if not weights.flags.writeable:
            weights = weights.copy()
        return np.sort(top_arms_per_group(weights, self._group, self._capacity, self.rank))

    def _find_rank(self) -> int:
        return int(self._capacity.sum())

    def _find_loops(self) -> IntArray:
        return np.flatnonzero(self._capacity[self._group] == 0)

    def _key(self) -> tuple[Any, ...]:
        return (self._group, self._capacity)

    def __repr__(self) -> str:
        return f"Partition(n_arms={self.n_arms}, n_groups={self.n_groups}, rank={self.rank})"


def blocks(n: int, parts: int) -> IntArray:
    """`n` items in `parts` contiguous blocks whose sizes differ by at most one: the block of each item. O(n)."""
    return np.arange(n, dtype=np.int64) * parts // n


def _random(arms: int, rank: int, seed: int) -> Partition:
    """`rank` groups of nearly equal size, one arm of each; nothing is random here. O(K)."""
    return Partition(blocks(arms, rank), 1)


def _from_toml(groups: Any, capacities: Any = 1) -> Partition:
    return Partition(groups, capacities)


codec.register(
    Partition,
    to_parts=lambda m: {"groups": m._group, "capacities": m._capacity},
    from_parts=Partition,
    random=_random,
    from_toml=_from_toml,
    parting=by_rows("groups", "capacities"),
)
