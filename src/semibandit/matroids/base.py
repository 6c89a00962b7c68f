"""The matroid contract: which arms may be played together, and the greedy that finds the heaviest base."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from functools import cached_property
from typing import Any, TypeGuard, TypeVar

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray, IntArray
from semibandit.errors import MatroidError
from semibandit.matroids.greedy import ties_by_id
from semibandit.matroids.validate import arm_ids, arm_weights, positive, readonly

# Below this many arms a stable sort is as fast as an unstable one followed by the repair of ties.
_STABLE_SORT_BELOW = 1 << 14


def heaviest_first(weights: FloatArray) -> IntArray:
    """All arms, heaviest first, equal weights by smaller id. O(K log K).

    numpy's stable sort of floats is three times slower than its default one; so for many arms: the default
    sort, then equal weights put in order of id by a counting pass.
    """
    if weights.size < _STABLE_SORT_BELOW:
        return np.argsort(-weights, kind="stable")
    order = np.argsort(-weights)
    ordered = weights[order]
    same = ordered[1:] == ordered[:-1]
    if same.any():
        order = ties_by_id(order, same)
    return order


# What decides which sets are independent. `rank` is among them because greedy stops there.
_STRUCTURE = ("_is_independent", "_greedy", "_compiled_greedy", "_find_rank", "rank")


class _Frozen(ABCMeta):
    """Lets `__init__` set attributes freely and locks the object when construction is over."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        built = super().__call__(*args, **kwargs)
        if "n_arms" not in vars(built):
            raise TypeError(f"{cls.__name__}.__init__ must call super().__init__(n_arms)")
        vars(built)["_locked"] = True
        return built


class Matroid(metaclass=_Frozen):
    """A matroid on the arms 0 .. n_arms - 1: what may be played together. Immutable; it holds no weights.

    A subclass needs nothing but an independence test. It calls ``super().__init__(n_arms)`` and defines
    ``_is_independent(arms)``, which is handed an int64 array of distinct valid arm ids in any order; rank,
    loops and the greedy of the paper's Section 2 follow. The test must describe a true matroid (subsets of
    independent sets are independent; of two independent sets the smaller can be extended from the larger):
    `semibandit.testing.check_matroid` verifies that on small instances.

    Parameters
    ----------
    n_arms
        Size K of the ground set, at least 1.

    Attributes
    ----------
    n_arms : int
        Size K of the ground set.
    rank : int
        Size D of every base. At least 1: a matroid whose arms are all loops offers nothing to play.
    loops : numpy.ndarray
        Sorted ids of the arms that are in no base.
    name : str
        The class's name in lower case.
    labels, names : numpy.ndarray or None
        What the arms, and the vertices, right nodes, groups or families are called, if the matroid was made from
        something with names (`semibandit.matroids.naming`); `quotas` are then the capacities as they were given. All
        this plays no part in equality and is not saved with a policy; a `semibandit.Catalog` keeps it.

    Examples
    --------
    Links of a network that may be down for maintenance together, so that everything stays connected:

    >>> import numpy as np
    >>> from semibandit.matroids import Matroid
    >>> class Maintenance(Matroid):
    ...     def __init__(self, links, n_sites):
    ...         super().__init__(len(links))
    ...         self.links = tuple(links)
    ...         self.n_sites = n_sites
    ...     def _is_independent(self, arms):
    ...         down = set(arms.tolist())
    ...         up = [link for k, link in enumerate(self.links) if k not in down]
    ...         reached, before = {0}, 0
    ...         while len(reached) > before:
    ...             before = len(reached)
    ...             for a, b in up:
    ...                 if a in reached or b in reached:
    ...                     reached |= {a, b}
    ...         return len(reached) == self.n_sites
    >>> ring_with_chord = Maintenance([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], n_sites=4)
    >>> ring_with_chord.rank
    2
    >>> ring_with_chord.max_weight_base([5.0, 4.0, 3.0, 2.0, 1.0])
    array([0, 2])
    """

    n_arms: int
    name: str = "matroid"
    labels: np.ndarray[Any, Any] | None = None
    quotas: tuple[int | None, ...] | None = None
    names: np.ndarray[Any, Any] | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = vars(cls)
        if "name" not in own:
            cls.name = cls.__name__.lower()
        if not any(name in own for name in _STRUCTURE):
            return
        # Shortcuts of the class above hold for its own structure only.
        derived = ["_max_weight_base", "_find_loops", "_greedy_few"]
        if "_is_independent" in own and "_greedy" not in own and "_compiled_greedy" not in own:
            derived += ["_greedy", "_find_rank"]
        for name in derived:
            if name not in own:
                setattr(cls, name, getattr(Matroid, name))

    def __init__(self, n_arms: int) -> None:
        self.n_arms = positive(n_arms, "n_arms")

    @abstractmethod
    def _is_independent(self, arms: IntArray) -> bool:
        """Whether these distinct, valid arms may be played together. Must not change `self`."""

    @cached_property
    def rank(self) -> int:
        """Size D of every base. Found once, by K independence tests at worst."""
        rank = self._find_rank()
        if rank < 1:
            raise MatroidError(
                f"{self!r}: the rank is 0 (every arm is a loop); need at least one playable arm"
            )
        return rank

    @cached_property
    def loops(self) -> IntArray:
        """Sorted ids of the arms in no base, read-only. Found once, by K tests at worst."""
        return readonly(self._find_loops())

    def is_independent(self, arms: npt.ArrayLike) -> bool:
        """Whether `arms` may be played together.

        Parameters
        ----------
        arms
            Distinct arm ids in any order; may be empty.

        Raises
        ------
        ArmError
            For an id that is out of range, repeated or not an integer.

        Notes
        -----
        Cost: the class's independence test on n arms, plus O(n log n) for the checks.
        """
        return bool(self._is_independent(arm_ids(arms, self.n_arms)))

    def max_weight_base(self, weights: npt.ArrayLike, among: npt.ArrayLike | None = None) -> IntArray:
        """The heaviest base: the greedy algorithm of the paper's Section 2.

        Parameters
        ----------
        weights
            One number per arm, of any sign; infinities are allowed, NaN is not.
        among
            Distinct arms in any order: the heaviest base of these alone, `weights` being one number for each of them.

        Returns
        -------
        numpy.ndarray
            `rank` arm ids, sorted, int64 (with `among` perhaps fewer). Always a full base, even where weights are
            negative. Of equally heavy arms the smaller id is preferred, so the answer is unique.

        Raises
        ------
        ParameterError
            When the number of weights is not `n_arms`, or one is NaN or not a number.
        ArmError
            When `among` names an arm twice, or one that is not there.

        Notes
        -----
        Cost: O(K log K) for the order plus K incremental membership tests, unless the class knows better. Among n arms:
        O(n log n) plus n such tests, whatever K.

        Example
        -------
        >>> from semibandit.matroids import Graphic
        >>> Graphic([(0, 1), (1, 2), (2, 0), (2, 3)]).max_weight_base([0.1, 0.9, 0.5], among=[3, 0, 1])
        array([0, 1, 3])
        """
        if among is None:
            return self._max_weight_base(arm_weights(weights, self.n_arms))
        arms = arm_ids(among, self.n_arms, "among")
        return self._best_among(arms, arm_weights(weights, arms.size))

    def _best_among(self, arms: IntArray, weights: FloatArray) -> IntArray:
        """The heaviest base, sorted, of distinct valid arms with these weights. O(n log n) and n membership tests."""
        return np.sort(self._greedy_few(arms[np.lexsort((arms, -weights))]))

    def _max_weight_base(self, weights: FloatArray) -> IntArray:
        """`max_weight_base` for a valid, contiguous float64 array."""
        return np.sort(self._greedy(heaviest_first(weights)))

    def _greedy(self, order: IntArray) -> IntArray:
        """Greedy over the distinct arms in `order`, heaviest first: those picked, in that order.

        `order` may be any part of the ground set; the picks are then the heaviest base of that part. Stops
        when `rank` arms are picked. Here: one independence test per arm.
        """
        return self._scan(order, self.rank)

    def _greedy_few(self, order: IntArray) -> IntArray:
        """`_greedy` over few arms, at a cost that does not grow with the ground set."""
        return self._greedy(order)

    def _scan(self, order: IntArray, limit: int) -> IntArray:
        picked = np.empty(min(limit, len(order)), dtype=np.int64)
        size = 0
        for arm in order:
            if size == limit:
                break
            picked[size] = arm
            # A copy, because the test is a user's code and may sort or keep what it is handed.
            if self._is_independent(picked[: size + 1].copy()):
                size += 1
        return picked[:size].copy()

    def _find_rank(self) -> int:
        return len(self._scan(np.arange(self.n_arms, dtype=np.int64), self.n_arms))

    def _find_loops(self) -> IntArray:
        alone = np.arange(self.n_arms, dtype=np.int64)
        return np.array(
            [k for k in alone if not self._is_independent(alone[k : k + 1].copy())], dtype=np.int64
        )

    def _key(self) -> tuple[Any, ...] | None:
        """What two equal matroids of one class share. None: a matroid equals only itself."""
        return None

    def __eq__(self, other: object) -> bool:
        """Same class and same description. (Two descriptions of one matroid may differ.) O(K)."""
        if self is other:
            return True
        if type(self) is not type(other) or not isinstance(other, Matroid):
            return NotImplemented
        mine, theirs = self._key(), other._key()
        if mine is None or theirs is None or self.n_arms != other.n_arms:
            return False
        return all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))

    def __hash__(self) -> int:
        if self._key() is None:
            return object.__hash__(self)
        return hash((type(self), self.n_arms, self.rank))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_arms={self.n_arms})"

    def __setattr__(self, name: str, value: Any) -> None:
        if "_locked" in vars(self):
            raise AttributeError(f"{type(self).__name__} is immutable: cannot set {name!r}")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot delete {name!r}")

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Arrays come back writable when a worker process receives a matroid.
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
        vars(self).update(state)

    def __copy__(self) -> Matroid:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Matroid:
        return self


M = TypeVar("M", bound=Matroid)


def kind_of(matroid: Matroid) -> type[Matroid]:
    """The class that says what is independent here: what engines are chosen by. O(depth of classes).

    A subclass that only adds to a class is of that class's kind and keeps its fast engines. One that says anew what is
    independent, by a test, a greedy or a rank of its own, is of its own kind, whatever it derives from or is called.

    >>> from semibandit.matroids import Graphic
    >>> class Roads(Graphic):
    ...     length_km = (3.0, 1.5, 2.5)
    >>> kind_of(Roads([(0, 1), (1, 2), (2, 0)])).__name__
    'Graphic'
    >>> class ShortRoads(Roads):
    ...     def _is_independent(self, arms):
    ...         return len(arms) <= 1
    >>> kind_of(ShortRoads([(0, 1), (1, 2), (2, 0)])).__name__
    'ShortRoads'
    """
    return next(cls for cls in type(matroid).__mro__ if any(name in vars(cls) for name in _STRUCTURE))


def is_kind(matroid: Matroid, cls: type[M]) -> TypeGuard[M]:
    """Whether `matroid` has the structure of `cls`: in place of `isinstance`, which an overriding subclass passes."""
    return kind_of(matroid) is cls


def _writeable(order: IntArray) -> IntArray:
    """`order` as kernels take it: they would be compiled anew for read-only arguments, so that copying is cheaper."""
    order = np.ascontiguousarray(order, dtype=np.int64)
    return order if order.flags.writeable else order.copy()


class CompiledMatroid(Matroid):
    """Common part of the built-in classes: `_greedy` is a compiled kernel, and independence follows from it.

    A set is independent exactly when greedy, fed with it, rejects nothing. A subclass defines
    ``_compiled_greedy(order, limit)``. One of that class may narrow ``_is_independent``, calling it by `super`: the
    rest then follows from its test, as for any matroid of a user.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_compiled_greedy" in vars(cls) and "_find_rank" not in vars(cls):
            # A shortcut of the class above holds for its own greedy only.
            cls._find_rank = CompiledMatroid._find_rank  # type: ignore[method-assign]

    @abstractmethod
    def _compiled_greedy(self, order: IntArray, limit: int) -> IntArray:
        """Greedy over `order` until `limit` arms are picked."""

    def _greedy(self, order: IntArray) -> IntArray:
        return self._compiled_greedy(_writeable(order), self.rank)

    def _is_independent(self, arms: IntArray) -> bool:
        if type(self)._is_independent is not CompiledMatroid._is_independent:
            # Asked by a test that narrows this one: greedy and rank follow from that test, and cannot be asked here.
            return len(self._compiled_greedy(_writeable(arms), len(arms))) == len(arms)
        return len(arms) <= self.rank and len(self._greedy(arms)) == len(arms)

    def _settle_rank(self, argument: str) -> None:
        """Called last by a constructor: find the rank; refuse a matroid in which nothing can be played."""
        if "_compiled_greedy" not in vars(kind_of(self)):
            return  # the class of a user, whose test need not be ready before its own constructor has ended
        rank = self._find_rank()
        if rank < 1:
            raise MatroidError(
                f"{argument}: every arm is a loop (rank 0); need at least one arm that may be played"
            )
        vars(self)["rank"] = rank

    def _find_rank(self) -> int:
        return len(self._compiled_greedy(np.arange(self.n_arms, dtype=np.int64), self.n_arms))
