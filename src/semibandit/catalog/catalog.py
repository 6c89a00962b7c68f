"""`Catalog`: a policy over labels that come and go."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from semibandit.catalog.arms import Arms
from semibandit.catalog.files import restore, save
from semibandit.catalog.ids import Ids
from semibandit.catalog.kinds import Categories, Items, Kind, Links, Workers, kind_from_matroid
from semibandit.catalog.labels import check_label, is_hashable, label_list, text_of
from semibandit.catalog.rounds import LabelledRounds
from semibandit.checks import as_whole
from semibandit.errors import ArmError, ParameterError
from semibandit.locking import new_lock
from semibandit.matroids import Matroid, Transversal
from semibandit.policies import CUCB
from semibandit.policies.base import Policy
from semibandit.text import number, table

Maker = Callable[..., Policy]


class Catalog(LabelledRounds):
    """A policy whose arms are labels of your own, which come and expire while it runs.

    Made by `uniform`, `partition`, `graphic`, `transversal` or `from_matroid`, or read from a file by `load`. A label
    is anything hashable; to be saved it must be a text, a number, a boolean, None or a tuple of these.

    Parameters
    ----------
    policy
        A class of policies, or a function that makes one of a matroid: ``lambda m: sb.minimize(sb.CUCB(m))``. All can
        be taken but `FPL`, which cannot forget single arms, and `Oracle`, which must be told means.
    capacity
        For how many arms there is room at the start; it grows by itself. With ``clock="auto"`` of a policy it also says
        how large an instance the clock is chosen for.
    remember
        How many expired labels are remembered. `update` for one of them is dropped and counted; for a label that never
        was, or expired longer ago than that, it is an error. Decisions know their labels without that.
    metadata
        Anything that JSON can hold, saved in the same file; afterwards in `metadata`.
    **options
        Passed on to `policy`: `reward_range`, `exploration`, ...

    Notes
    -----
    What is new about labels is told to the policy at the next decision, all at once: new labels are known to the policy
    with nothing seen, and expired ones are forgotten. Threads may share a catalog: calls are serialised. Equal indices
    are decided by arm ids, which a catalog hands out as it likes.

    Cost: `add` and `expire` O(1), and the policy's delete, reset and insert, O(log K) each for uniform matroids and
    categories. Room is made by growing in O(K): O(1) amortised per arm if all categories grow alike, O(number of
    categories) at worst. A link between places that were not linked, or a worker with another set of tasks than all
    before, needs a new division each time: O(K) for all those that came between two decisions.

    Example
    -------
    >>> import semibandit as sb
    >>> page = sb.Catalog.partition({"news": 1, "sport": 1})
    >>> page.add("vote", "news")
    >>> page.add("derby", "sport")
    >>> page.add("final", "sport")
    >>> first = page.decide()
    >>> first.labels
    ['vote', 'derby']
    >>> page.expire("derby")
    >>> second = page.decide()
    >>> second.labels
    ['vote', 'final']
    >>> page.learn(second, {"vote": 1.0, "final": 0.0})
    >>> page.learn(first, [1.0, 0.0])  # too late for "derby": dropped and counted
    >>> page.waiting, page.describe()["dropped"]
    (0, 1)
    """

    def __init__(
        self,
        kind: Kind,
        policy: Maker = CUCB,
        *,
        capacity: int = 64,
        remember: int = 100_000,
        metadata: Any = None,
        **options: Any,
    ) -> None:
        if not isinstance(kind, Kind):
            raise ParameterError(
                "a Catalog is made by Catalog.uniform, partition, graphic, transversal, from_matroid or load"
            )
        ids = Ids(kind, as_whole(capacity, "capacity", 1, "room for arms"))
        made: Any = policy(kind.matroid(ids.types, ids.type_of), **options)
        self._begin(Arms(ids, made), as_whole(remember, "remember", 0, "expired labels"), metadata)
        made.delete(np.arange(made.n_arms))

    def _begin(self, arms: Arms, remember: int, metadata: Any) -> None:
        self._lock = new_lock()
        self._arms = arms
        self._remember = remember
        self.metadata = metadata
        self._expired: dict[Any, None] = {}
        self._n_expired = self._n_dropped = 0

    # -- how to make one ---------------------------------------------------------------------------------

    @classmethod
    def uniform(cls, rank: int, policy: Maker = CUCB, **options: Any) -> Catalog:
        """Any `rank` of all labels; ``add(label)``. Options as in the class."""
        return cls(Items(rank), policy, **options)

    @classmethod
    def partition(
        cls, quotas: Mapping[Any, int], policy: Maker = CUCB, *, total: int | None = None, **options: Any
    ) -> Catalog:
        """At most ``quotas[category]`` labels of each category, and `total` in all; ``add(label, category)``."""
        return cls(Categories(quotas, total), policy, **options)

    @classmethod
    def graphic(cls, policy: Maker = CUCB, **options: Any) -> Catalog:
        """Links without a cycle; ``add(label, (u, v))``, or ``add((u, v))`` if the link is called by its ends."""
        return cls(Links(), policy, **options)

    @classmethod
    def transversal(cls, tasks: Iterable[Hashable], policy: Maker = CUCB, **options: Any) -> Catalog:
        """Labels that can be matched to tasks all at once; ``add(label, [task, ...])``. See `matching`."""
        return cls(Workers(tasks), policy, **options)

    @classmethod
    def from_matroid(cls, matroid: Matroid, policy: Maker = CUCB, **options: Any) -> Catalog:
        """A catalog that starts with the arms of a matroid, by their labels (`semibandit.matroids.naming`). O(size).

        Arms without labels are called by their ids. Capacities that were cut down to the size of a group, where the
        matroid does not come from `Partition.from_column`, stay so.

        >>> import semibandit as sb
        >>> roads = sb.Catalog.from_matroid(sb.Graphic.from_edges([("Ulm", "Bonn"), ("Bonn", "Kiel")]))
        >>> roads.add(("Kiel", "Ulm"))
        >>> len(roads), len(roads.decide())
        (3, 2)
        """
        kind, attributes = kind_from_matroid(matroid)
        options.setdefault("capacity", matroid.n_arms)
        made = cls(kind, policy, **options)
        labels = range(matroid.n_arms) if matroid.labels is None else matroid.labels.tolist()
        for label, attribute in zip(labels, attributes, strict=True):
            made.add(label, attribute)
        return made

    # -- labels ------------------------------------------------------------------------------------------

    def add(self, label: Hashable, attribute: Hashable | Iterable[Hashable] = None) -> None:
        """A new label, with what its kind wants to know: category, two ends, tasks, or nothing. O(1), see the class.

        A label that expired may be added again, and starts anew.

        Raises
        ------
        ArmError
            When the label is there already, or cannot be a label.
        MatroidError
            When the attribute makes no sense: an unknown category or task, not two ends.
        """
        check_label(label)
        with self._lock:
            if label in self._arms.ids:
                raise ArmError(f"label {label!r} is there already: expire it first")
            self._arms.add(label, self._arms.kind.type_of(label, attribute))
            self._expired.pop(label, None)

    def expire(self, label: Hashable) -> None:
        """Take a label out for good: what is known of it is forgotten, its arm serves another one. O(1), see the class.

        Raises
        ------
        ArmError
            When there is no such label.
        """
        with self._lock:
            if not is_hashable(label) or label not in self._arms.ids:
                raise self._stranger(label)
            self._arms.expire(label)
            self._n_expired += 1
            self._expired[label] = None
            while len(self._expired) > self._remember:
                del self._expired[next(iter(self._expired))]

    def attribute(self, label: Hashable) -> Any:
        """What was told of a label: its category, ends or tasks. O(1)."""
        with self._lock:
            if not is_hashable(label) or label not in self._arms.ids:
                raise self._stranger(label)
            return self._arms.kind.shown(self._arms.ids.type_for(label))

    def __len__(self) -> int:
        with self._lock:
            return len(self._arms.ids)

    def __contains__(self, label: object) -> bool:
        with self._lock:
            return is_hashable(label) and label in self._arms.ids

    def __iter__(self) -> Iterator[Any]:
        with self._lock:
            return iter([*self._arms.ids.id_of, *self._arms.ids.waiting])

    # -- what is known -----------------------------------------------------------------------------------

    @property
    def policy(self) -> Policy:
        """The policy inside, which knows arms by their ids. Deciding and learning is for the catalog."""
        with self._lock:
            self._arms.settle()
            return self._arms.policy

    def rows(self, labels: Iterable[Hashable] | None = None) -> list[dict[str, Any]]:
        """What is known of these labels, or of all: label, attribute, number of rewards and their mean. O(K)."""
        with self._lock:
            wanted = list(self) if labels is None else label_list(labels)
            arms = self._all_arms_of(wanted)
            counts, means = self._arms.policy.counts[arms].tolist(), self._arms.policy.means[arms].tolist()
            return [
                {"label": label, "attribute": self.attribute(label), "count": count, "mean": mean}
                for label, count, mean in zip(wanted, counts, means, strict=True)
            ]

    def table(self, labels: Iterable[Hashable] | None = None) -> str:
        """`rows` as a table to print; links that are called by their ends are told once. O(K)."""
        told = [(text_of(row["label"]), text_of(row["attribute"]), row) for row in self.rows(labels)]
        heading = self._arms.kind.heading
        both = bool(heading) and (not told or any(label != attribute for label, attribute, _ in told))
        lines = [
            [label, *([attribute] if both else []), f"{row['count']:,}", number(row["mean"])]
            for label, attribute, row in told
        ]
        header = ["label", *([heading] if both else []), "count", "mean"]
        return table(header, lines, left=len(header) - 2)

    def matching(self, labels: Iterable[Hashable]) -> dict[Any, Any]:
        """Who does what: a task of its own for each of `labels`. For catalogs of tasks; cost as `Transversal.matching`.

        >>> import semibandit as sb
        >>> staff = sb.Catalog.transversal(["paint", "weld"])
        >>> staff.add("ann", ["paint", "weld"])
        >>> staff.add("bob", "paint")
        >>> staff.matching(["ann", "bob"])
        {'ann': 'weld', 'bob': 'paint'}
        """
        with self._lock:
            kind = self._arms.kind
            if not isinstance(kind, Workers):
                raise ParameterError(
                    f"a catalog of kind {kind.name} has no matching: only one of kind transversal has"
                )
            given = label_list(labels)
            arms = self._all_arms_of(given)
            matroid: Transversal = self._arms.policy.matroid
            found = matroid.matching(arms)
            return {label: kind.tasks[found[arm]] for label, arm in zip(given, arms.tolist(), strict=True)}

    def describe(self) -> dict[str, Any]:
        """What runs inside, and the account of labels.

        ``labels`` that are there, ``capacity`` arms for them, ``waiting`` decisions, ``expired`` labels so far,
        ``dropped`` rewards that came for expired ones, and how often the arms were divided anew (``grown``).
        """
        with self._lock:
            return {
                **self._arms.settle().describe(),
                "kind": self._arms.kind.name,
                "labels": len(self._arms.ids),
                "capacity": self._arms.ids.type_of.size,
                "waiting": len(self._arms.plays),
                "expired": self._n_expired,
                "dropped": self._n_dropped,
                "grown": self._arms.grown,
            }

    # -- files -------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write labels, decisions that wait, policy and metadata to one file, which `load` goes on from exactly. O(K).

        The format is that of saved policies (`semibandit.policies.files`): no pickle, a checksum, and an existing file
        is replaced in one step, so there is a whole one at every moment. Others wait only while the content is copied.

        Raises
        ------
        ParameterError
            When a label, a category or the metadata is something that JSON cannot hold, or the policy cannot be saved.

        Example
        -------
        >>> import semibandit as sb, tempfile, pathlib
        >>> page = sb.Catalog.uniform(2, metadata={"site": "north"})
        >>> for label in ("a", ("b", 1), 7):
        ...     page.add(label)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "page.semibandit"
        >>> page.save(path)
        >>> again = sb.Catalog.load(path)
        >>> again.metadata["site"], again.decide().labels
        ('north', ['a', ('b', 1)])
        """
        save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Catalog:
        """The catalog in the file `path`, which goes on exactly as the one that was saved. O(K).

        Decisions that waited wait again. New ones get ids from a range of their own, drawn at random, so that feedback
        for a page shown after the file was written is refused (`ArmError`) and not taken for that of another page.

        Raises
        ------
        FileError
            When the file is damaged, of another kind or of a version that this library does not know.
        """
        return restore(cls, path)

    def _check(self) -> None:
        """Assert all invariants. O(K)."""
        self._arms._check()

    def __repr__(self) -> str:
        with self._lock:
            return (
                f"Catalog({self._arms.kind.name}, labels={len(self._arms.ids)}, policy={self._arms.policy!r})"
            )
