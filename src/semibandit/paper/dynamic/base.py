"""The contract of the paper's algorithm A: a maximum-weight base under single weight changes in any order."""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray, IntArray
from semibandit.errors import ArmError, ParameterError
from semibandit.matroids import Matroid
from semibandit.matroids.base import is_kind
from semibandit.matroids.validate import arm_weights, in_range, integers

# Finite weights up to here are refused: engines mark by such a number what is not there.
TOO_LIGHT = -1e300


class DynamicBase(ABC):
    """A maximum-weight base of `matroid`, kept while weights change one at a time (Assumption "algorithm A").

    Any arm may go up or down at any time. Weights are float64 of any sign, above -1e300; +inf is legal; an arm of
    weight -inf is absent: `base` leaves it out. The base is the unique one under the common order: heavier first,
    then smaller arm id.

    Parameters
    ----------
    matroid
        What may be played together.
    weights
        One number per arm; copied.

    Notes
    -----
    A subclass states the cost of `set_weight`. `base` costs O(D) while nothing was exchanged since it was
    last asked, O(D log D) after an exchange (the ids are handed out sorted).
    """

    def __init__(self, matroid: Matroid, weights: npt.ArrayLike) -> None:
        self.matroid = matroid
        self.n_arms = matroid.n_arms
        self._weight: FloatArray = arm_weights(weights, matroid.n_arms).copy()
        _refuse_too_light(self._weight)
        self._exchanges = 0
        self._build()

    @property
    def approximation(self) -> float:
        """The base weighs at least optimum / approximation; 1.0 when it is the optimum."""
        return 1.0

    @property
    def exchanges(self) -> int:
        """How many arms have entered the base since it was built (an arm for an arm)."""
        return self._exchanges

    @property
    def base_weight(self) -> float:
        """Total weight of `base()`. O(D)."""
        return float(np.sum(self._weight[self.base()]))

    def weight(self, arm: int) -> float:
        """Current weight of one arm. O(1)."""
        return float(self._weight[self._arm(arm)])

    def weights(self) -> FloatArray:
        """Current weights of all arms, a copy. O(K)."""
        return self._weight.copy()

    def set_weight(self, arm: int, weight: float) -> None:
        """Change the weight of one arm and repair the base.

        Raises
        ------
        ArmError
            When `arm` is not an id of 0 .. n_arms - 1.
        ParameterError
            When `weight` is not a number.
        """
        k = self._arm(arm)
        try:
            w = float(weight)
        except (TypeError, ValueError):
            raise ParameterError(f"weight = {weight!r}: need a number") from None
        if math.isnan(w):
            raise ParameterError(f"weight of arm {k} is NaN: need a number (infinities are allowed)")
        if -math.inf < w <= TOO_LIGHT:
            _refuse_too_light(np.array([w]))
        self._set_weight(k, w)

    def set_weights(self, arms: npt.ArrayLike, weights: npt.ArrayLike) -> None:
        """Change the weights of several arms, in the order given (of repeated arms the last weight stays).

        All are checked before any is applied. Costs one `set_weight` an arm, or one building from scratch
        when they are so many that this is cheaper.
        """
        ids = integers(arms, "arms", ArmError)
        in_range(ids, self.n_arms, "arms", "arm ids", ArmError)
        values = arm_weights(weights, ids.size) if ids.size else np.empty(0)
        _refuse_too_light(values)
        if ids.size:
            self._set_weights(ids, values if values.flags.writeable else values.copy())

    @abstractmethod
    def base(self) -> IntArray:
        """The arms of the heaviest base, sorted; a fresh array. Absent arms (weight -inf) are left out. O(D)."""

    def _arm(self, arm: int) -> int:
        if isinstance(arm, (bool, np.bool_)):
            raise ArmError(f"arm = {arm!r}: need an arm id, not a boolean")
        try:
            k = operator.index(arm)
        except TypeError:
            raise ArmError(f"arm = {arm!r}: need an integer arm id") from None
        if not 0 <= k < self.n_arms:
            raise ArmError(f"arm = {k}: arm ids run from 0 to {self.n_arms - 1}")
        return k

    @abstractmethod
    def _build(self) -> None:
        """Build everything from `_weight`."""

    @abstractmethod
    def _set_weight(self, arm: int, weight: float) -> None:
        """`set_weight` for a valid arm and weight."""

    @abstractmethod
    def _set_weights(self, arms: IntArray, weights: FloatArray) -> None:
        """`set_weights` for valid arms and weights, at least one."""

    @abstractmethod
    def memory(self) -> int:
        """Bytes held, the matroid not counted. O(1)."""

    @abstractmethod
    def _check(self) -> None:
        """Assert every invariant, and that the base is the heaviest. O(K log K)."""

    def _check_base(self) -> None:
        """Assert that the base kept is the one that solving anew finds. O(K log K)."""
        best = self.matroid.max_weight_base(self._weight)
        assert np.array_equal(self.base(), best[self._weight[best] > -np.inf])
        assert not np.isnan(self._weight).any()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.matroid!r})"


class ExchangedBase(DynamicBase):
    """What dynamic bases share that keep the base themselves, as a list in which arms take each other's places."""

    # `set_weights` solves anew when it is handed more than this share of all arms: cheaper than one by one.
    _rebuild_share = 0.25

    def __init__(self, matroid: Matroid, weights: npt.ArrayLike) -> None:
        self._sorted: IntArray | None = None
        super().__init__(matroid, weights)

    def _set_weights(self, arms: IntArray, weights: FloatArray) -> None:
        if arms.size > self._rebuild_share * self.n_arms:
            self._weight[arms] = weights
            self._sorted = None
            self._build()
        else:
            self._apply(arms, weights)

    def base(self) -> IntArray:
        if self._sorted is None:
            self._sorted = np.sort(self._members())
        present = self._weight[self._sorted] > -np.inf
        return self._sorted.copy() if present.all() else self._sorted[present]

    def _exchanged(self, count: int) -> None:
        if count:
            self._exchanges += count
            self._sorted = None

    @abstractmethod
    def _apply(self, arms: IntArray, weights: FloatArray) -> None:
        """`set_weight` for each of several valid arms in turn."""

    @abstractmethod
    def _members(self) -> IntArray:
        """The full base, absent arms included, in any order. O(D)."""

    def _check_base(self) -> None:
        super()._check_base()
        members = np.sort(self._members())
        assert np.array_equal(members, self.matroid.max_weight_base(self._weight))
        assert self._sorted is None or np.array_equal(members, self._sorted)


def _refuse_too_light(weights: FloatArray) -> None:
    bad = (weights <= TOO_LIGHT) & (weights > -np.inf)
    if bad.any():
        raise ParameterError(f"weight {weights[bad][0]}: need weights above {TOO_LIGHT} (or -inf: absent)")


def dynamic_base(matroid: Matroid, weights: npt.ArrayLike, eta: float | None = None) -> DynamicBase:
    """The best dynamic algorithm A for this class of matroid.

    Parameters
    ----------
    matroid
        Uniform, partition, laminar, graphic and transversal matroids have algorithms of their own; any other
        is solved anew where a change can matter.
    weights
        One number per arm.
    eta
        None for the exact base. Otherwise weights are rounded down to powers of 1 + eta, the base weighs at
        least optimum / (1 + eta), and a change inside a power's range costs O(1). Weights must then be
        nonnegative (or -inf).

    Examples
    --------
    >>> from semibandit.matroids import Uniform
    >>> from semibandit.paper.dynamic import dynamic_base
    >>> best = dynamic_base(Uniform(4, 2), [0.1, 0.4, 0.3, 0.2])
    >>> best.base()
    array([1, 2])
    >>> best.set_weight(1, 0.0)
    >>> best.base(), best.base_weight
    (array([2, 3]), 0.5)
    """
    from semibandit.matroids import Graphic, Laminar, Partition, Transversal, Uniform
    from semibandit.paper.dynamic.graphic import DynamicGraphic
    from semibandit.paper.dynamic.laminar import DynamicLaminar
    from semibandit.paper.dynamic.oracle import DynamicOracle
    from semibandit.paper.dynamic.rounded import RoundedBase
    from semibandit.paper.dynamic.transversal import DynamicTransversal

    if not isinstance(matroid, Matroid):
        raise ParameterError(f"matroid = {matroid!r}: need a Matroid")
    if eta is not None:
        return RoundedBase(matroid, weights, eta)
    if is_kind(matroid, Uniform) or is_kind(matroid, Partition) or is_kind(matroid, Laminar):
        return DynamicLaminar(matroid, weights)
    if is_kind(matroid, Graphic):
        return DynamicGraphic(matroid, weights)
    if is_kind(matroid, Transversal):
        return DynamicTransversal(matroid, weights)
    return DynamicOracle(matroid, weights)
