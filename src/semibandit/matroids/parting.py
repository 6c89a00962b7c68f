"""A part of a ground set, described by itself: what `semibandit.distributed` tells a shard.

A row of `matroids.codec` may say how the parts of a matroid (`Row.to_parts`) are cut: which of them all arms share, how
to `take` those of some arms, and how to `join` what was cut. ``from_parts(**join([take(parts, arms)]))`` is then the
matroid restricted to these arms, which are numbered anew in the order given.

>>> import numpy as np
>>> from semibandit.matroids import Partition, codec
>>> row = codec.row("partition")
>>> parts = row.to_parts(Partition([0, 1, 0, 1, 1], capacities=[1, 2]))
>>> some = row.parting.take(parts, np.array([1, 2, 4]))
>>> some["groups"].tolist(), row.from_parts(**row.parting.join([some])).rank
([1, 0, 1], 3)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from semibandit.arms import IntArray
from semibandit.matroids.few import lists_of

Parts = dict[str, Any]


class Parting(NamedTuple):
    """How parts are cut. `shared`: names of those that say something of all arms together, the same for any cut.

    `take`: the parts of some arms, in the order given, O(n). `join`: the parts of all arms of several such cuts, one
    cut after the other, as `from_parts` takes them; O(n). `size`: the number of arms that parts are of.
    """

    shared: tuple[str, ...]
    take: Callable[[Mapping[str, Any], IntArray], Parts]
    join: Callable[[Sequence[Mapping[str, Any]]], Parts]
    size: Callable[[Mapping[str, Any]], int]

    def own(self, parts: Mapping[str, Any]) -> Parts:
        """What is said of the arms alone."""
        return {name: value for name, value in parts.items() if name not in self.shared}

    def common(self, parts: Mapping[str, Any]) -> Parts:
        """What all arms share."""
        return {name: parts[name] for name in self.shared}


def by_rows(name: str, *shared: str) -> Parting:
    """For a class with one part, `name`, that has a row for each arm; all others are shared."""

    def take(parts: Mapping[str, Any], arms: IntArray) -> Parts:
        return {**parts, name: np.asarray(parts[name])[arms]}

    def join(cuts: Sequence[Mapping[str, Any]]) -> Parts:
        rows = [np.asarray(cut[name]) for cut in cuts]
        return {**cuts[0], name: rows[0] if len(rows) == 1 else np.concatenate(rows)}

    return Parting(shared, take, join, lambda parts: len(parts[name]))


def _count_take(parts: Mapping[str, Any], arms: IntArray) -> Parts:
    return {"n_arms": len(arms), "rank": parts["rank"]}


def _count_join(cuts: Sequence[Mapping[str, Any]]) -> Parts:
    n_arms = sum(int(cut["n_arms"]) for cut in cuts)
    return {"n_arms": n_arms, "rank": min(int(cuts[0]["rank"]), n_arms)}


#: For a class that knows no more than the number of its arms and a rank, which may be beyond that of a part.
by_count = Parting(("rank",), _count_take, _count_join, lambda parts: int(parts["n_arms"]))


def _lists_take(parts: Mapping[str, Any], arms: IntArray) -> Parts:
    indptr, indices = lists_of(np.asarray(parts["indptr"]), np.asarray(parts["indices"]), arms)
    return {**parts, "indptr": indptr, "indices": indices}


def _lists_join(cuts: Sequence[Mapping[str, Any]]) -> Parts:
    degrees = np.concatenate([np.diff(cut["indptr"]) for cut in cuts])
    flat = np.concatenate([np.asarray(cut["indices"], dtype=np.int64) for cut in cuts])
    return {**cuts[0], "indptr": np.concatenate(([0], np.cumsum(degrees))), "indices": flat}


#: For a class with a list for each arm, all of them in two arrays (`indptr`, `indices`).
by_lists = Parting(("n_right",), _lists_take, _lists_join, lambda parts: len(parts["indptr"]) - 1)


def _limbs_join(cuts: Sequence[Mapping[str, Any]]) -> Parts:
    """Integers of several lengths become those of the longest: limbs of 0 change no number."""
    dimension = int(cuts[0]["dimension"])
    tables = [np.asarray(cut["limbs"]).reshape(len(cut["limbs"]), dimension, -1) for cut in cuts]
    most = max(table.shape[2] for table in tables)
    wide = [np.pad(table, ((0, 0), (0, 0), (0, most - table.shape[2]))) for table in tables]
    return {**cuts[0], "limbs": np.concatenate(wide).reshape(-1, dimension * most)}


by_limbs = by_rows("limbs", "dimension", "field")._replace(join=_limbs_join)
