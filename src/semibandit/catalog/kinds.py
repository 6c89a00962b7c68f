"""What the arms of a catalog are: each kind turns what is told of an arm into a type, and types into a matroid.

Arms of one type can take each other's place: items of one category, links between the same two places, workers who can
do the same tasks. So the arm of an expired label serves a new one of its type, and arms are held in reserve by type.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from semibandit.arms import IntArray
from semibandit.catalog.labels import check_label, is_hashable, pack, unpack
from semibandit.errors import FileError, MatroidError
from semibandit.matroids import Graphic, Laminar, Matroid, Partition, Transversal, Uniform
from semibandit.matroids.base import kind_of
from semibandit.matroids.naming import column, distinct
from semibandit.matroids.validate import positive, whole_number

NOBODY = -1


class Kind(ABC):
    """Arms of one sort.

    A type is hashable. `types` lists all there can be, or is None where new ones may come at any time; only then may an
    arm be of type `NOBODY`, which stands for an arm that nobody has and that is never played.
    """

    name: ClassVar[str]
    #: What the attribute of an arm is called in tables; empty if it has none.
    heading: ClassVar[str] = ""

    @property
    def types(self) -> list[Any] | None:
        """All types, if they are known."""
        return None

    @property
    def least(self) -> int:
        """The fewest arms that the matroid may have."""
        return 1

    @abstractmethod
    def type_of(self, label: Any, attribute: Any) -> Any:
        """The type of an arm that is told so, or a `MatroidError`."""

    @abstractmethod
    def matroid(self, types: list[Any], type_of: IntArray) -> Matroid:
        """The matroid whose arm k is of type ``types[type_of[k]]``. O(K)."""

    def shown(self, key: Any) -> Any:
        """A type as its user would say it."""
        return key

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """What `kind_from_json` needs."""

    def pack_type(self, key: Any) -> Any:
        """A type as JSON."""
        return pack(key, self.heading)

    def unpack_type(self, value: Any) -> Any:
        """The inverse of `pack_type`, checked."""
        return self.type_of(None, unpack(value))


class Items(Kind):
    """Any `rank` of all arms: a uniform matroid."""

    name = "uniform"

    def __init__(self, rank: Any) -> None:
        self.rank = positive(rank, "rank")

    @property
    def types(self) -> list[Any]:
        return [None]

    @property
    def least(self) -> int:
        return self.rank

    def type_of(self, label: Any, attribute: Any) -> Any:
        if attribute is not None:
            raise MatroidError(f"attribute = {attribute!r}: arms of a uniform catalog have none")
        return None

    def matroid(self, types: list[Any], type_of: IntArray) -> Matroid:
        return Uniform(type_of.size, self.rank)

    def to_json(self) -> dict[str, Any]:
        return {"rank": self.rank}


class Categories(Kind):
    """At most so many of each category, and of all: a partition matroid, or a laminar one.

    `quotas` by category; categories may be nested, and are then tuples of names with their parents before them.
    """

    name = "partition"
    heading = "category"

    def __init__(self, quotas: Any, total: Any = None, inner: Any = None) -> None:
        if not isinstance(quotas, Mapping) or not quotas:
            raise MatroidError(f"quotas = {quotas!r}: need a dictionary of numbers by category")
        self.quotas: dict[Any, int | None] = {
            name: None if quota is None and inner is not None else whole_number(quota, f"quotas[{name!r}]")
            for name, quota in quotas.items()
        }
        for name, quota in self.quotas.items():
            check_label(name)
            if quota is not None and quota < 0:
                raise MatroidError(f"quotas[{name!r}] = {quota}: a quota is at least 0")
        if not any(quota is None or quota > 0 for quota in self.quotas.values()):
            raise MatroidError("quotas are all 0: need at least one category that may be played")
        self.total = None if total is None else positive(total, "total")
        #: Nested: the categories that hold arms themselves.
        self.inner: list[Any] | None = None if inner is None else list(inner)
        self._types = list(self.quotas) if self.inner is None else self.inner
        self._known = set(self._types)

    @property
    def types(self) -> list[Any]:
        return self._types

    @property
    def least(self) -> int:
        return len(self._types)

    def type_of(self, label: Any, attribute: Any) -> Any:
        if is_hashable(attribute):
            if attribute in self._known:
                return attribute
            # A nested category may be named by its last name alone.
            fitting = [] if self.inner is None else [path for path in self.inner if path[-1:] == (attribute,)]
            if len(fitting) == 1:
                return fitting[0]
            if len(fitting) > 1:
                raise MatroidError(
                    f"category = {attribute!r}: {len(fitting)} have this name; say which by a tuple, as {fitting[0]!r}"
                )
        shown = ", ".join(repr(self.shown(key)) for key in self._types[:10])
        raise MatroidError(f"category = {attribute!r} is not known: quotas are given for {shown}")

    def shown(self, key: Any) -> Any:
        return " / ".join(map(str, key)) if self.inner is not None else key

    def matroid(self, types: list[Any], type_of: IntArray) -> Matroid:
        n = type_of.size
        if self.inner is None and self.total is None:
            return Partition(type_of, [quota or 0 for quota in self.quotas.values()])
        place = {name: i for i, name in enumerate(self.quotas, 1)}
        parent, bound = [-1], [n if self.total is None else self.total]
        for name, quota in self.quotas.items():
            parent.append(place[name[:-1]] if self.inner is not None and len(name) > 1 else 0)
            bound.append(n if quota is None else quota)
        family = np.array([place[key] for key in types], dtype=np.int64)
        return Laminar.from_tree(family[type_of], parent, bound)

    def to_json(self) -> dict[str, Any]:
        inner = None if self.inner is None else [pack(path) for path in self.inner]
        quotas = [[pack(name, "category"), quota] for name, quota in self.quotas.items()]
        return {"quotas": quotas, "total": self.total, "inner": inner}


class Links(Kind):
    """Links between places, without a cycle: a graphic matroid. Places are known by the links that name them."""

    name = "graphic"
    heading = "ends"

    def type_of(self, label: Any, attribute: Any) -> Any:
        if attribute is None and isinstance(label, tuple) and len(label) in (2, 3):
            attribute = label[:2]
        if not isinstance(attribute, (tuple, list)) or len(attribute) != 2:
            raise MatroidError(
                f"attribute = {attribute!r}: an arm of a graphic catalog needs the pair of its two ends"
            )
        for end in attribute:
            if not is_hashable(end) or end != end:
                raise MatroidError(f"attribute = {attribute!r}: an end must be hashable and equal to itself")
        return tuple(attribute)

    def matroid(self, types: list[Any], type_of: IntArray) -> Matroid:
        # Arms that nobody has lie between two vertices of their own.
        place: dict[Any, int] = {}
        ends = [(0, 1)]
        for u, v in types:
            tail = place.setdefault(u, len(place) + 2)
            ends.append((tail, place.setdefault(v, len(place) + 2)))
        return Graphic(np.array(ends, dtype=np.int64)[type_of + 1], n_vertices=len(place) + 2)

    def to_json(self) -> dict[str, Any]:
        return {}


class Workers(Kind):
    """Arms that can all be matched to tasks at once: a transversal matroid. A type is the numbers of some tasks."""

    name = "transversal"
    heading = "tasks"

    def __init__(self, tasks: Any) -> None:
        self.tasks = column(tasks, "tasks")
        self._number = distinct(self.tasks, "tasks")
        if not self.tasks:
            raise MatroidError("tasks is empty: need at least one")

    def type_of(self, label: Any, attribute: Any) -> Any:
        if is_hashable(attribute) and attribute in self._number:
            attribute = (attribute,)
        if isinstance(attribute, (str, bytes)) or not isinstance(attribute, Iterable):
            raise MatroidError(f"attribute = {attribute!r}: need a list of tasks out of {self._some()}")
        numbers = set()
        for task in attribute:
            if not is_hashable(task) or task not in self._number:
                raise MatroidError(f"task {task!r} is not known: one of {self._some()}")
            numbers.add(self._number[task])
        return tuple(sorted(numbers))

    def _some(self) -> str:
        return ", ".join(map(repr, self.tasks[:10]))

    def shown(self, key: Any) -> Any:
        return tuple(self.tasks[number] for number in key)

    def matroid(self, types: list[Any], type_of: IntArray) -> Matroid:
        # Arms that nobody has could do the first task.
        rows = [(0,), *types]
        length = np.array([len(row) for row in rows], dtype=np.int64)
        flat = np.array([number for row in rows for number in row], dtype=np.int64)
        first = np.cumsum(length) - length
        row = type_of + 1
        indptr = np.concatenate(([0], np.cumsum(length[row])))
        within = np.arange(indptr[-1]) - np.repeat(indptr[:-1], length[row])
        return Transversal.from_arrays(
            indptr, flat[np.repeat(first[row], length[row]) + within], len(self.tasks)
        )

    def to_json(self) -> dict[str, Any]:
        return {"tasks": [pack(task, "task") for task in self.tasks]}

    def pack_type(self, key: Any) -> Any:
        return list(key)

    def unpack_type(self, value: Any) -> Any:
        return self.type_of(None, [self.tasks[number] for number in value])


def kind_from_json(name: str, about: Mapping[str, Any]) -> Kind:
    """The kind that is called `name`, from its `to_json`."""
    if name == Items.name:
        return Items(about["rank"])
    if name == Categories.name:
        inner = None if about["inner"] is None else [unpack(path) for path in about["inner"]]
        return Categories({unpack(key): quota for key, quota in about["quotas"]}, about["total"], inner)
    if name == Links.name:
        return Links()
    if name == Workers.name:
        return Workers([unpack(task) for task in about["tasks"]])
    raise FileError(f"holds a catalog of kind {name!r}, which this version does not know")


def kind_from_matroid(matroid: Matroid) -> tuple[Kind, list[Any]]:
    """The kind of arms of a matroid, and what is told of each of them. O(size)."""
    sort = kind_of(matroid)
    names = None if matroid.names is None else matroid.names.tolist()
    if sort is Uniform:
        return Items(matroid.rank), [None] * matroid.n_arms
    if isinstance(matroid, Partition) and sort is Partition:
        names = list(range(matroid.n_groups)) if names is None else names
        quotas = matroid._capacity.tolist() if matroid.quotas is None else matroid.quotas
        return Categories(dict(zip(names, quotas, strict=True))), [names[g] for g in matroid._group.tolist()]
    if isinstance(matroid, Laminar) and sort is Laminar and names is not None and matroid.quotas is not None:
        quotas = dict(zip(names[1:], matroid.quotas[1:], strict=True))
        leaf = matroid._leaf.tolist()
        holding, around = set(leaf), set(matroid._parent.tolist())
        inner = [path for i, path in enumerate(names) if i and (i in holding or i not in around)]
        return Categories(quotas, matroid.quotas[0], inner), [names[f] for f in leaf]
    if isinstance(matroid, Graphic) and sort is Graphic:
        names = list(range(matroid.n_vertices)) if names is None else names
        ends = zip(matroid._tail.tolist(), matroid._head.tolist(), strict=True)
        return Links(), [(names[u], names[v]) for u, v in ends]
    if isinstance(matroid, Transversal) and sort is Transversal:
        names = list(range(matroid.n_right)) if names is None else names
        starts = matroid._indptr.tolist()
        right = [names[r] for r in matroid._indices.tolist()]
        return Workers(names), [right[a:b] for a, b in pairwise(starts)]
    raise MatroidError(
        f"a catalog cannot start from {matroid!r}: from Uniform, Partition, Graphic, Transversal, and from a Laminar "
        "made by Laminar.from_nested it can"
    )
