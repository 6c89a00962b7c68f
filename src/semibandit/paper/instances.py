"""Instances of the dynamic algorithm A, one a direction: all of them, or only those that queries ask for."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid
from semibandit.paper.dynamic import DynamicBase, dynamic_base

# What the Python objects of an instance take besides their arrays (measured: 1.5 to 3 kB).
_OBJECT_BYTES = 2_500


class Points:
    """What instances read: a point (alpha, beta) of each arm, and which arms have moved lately.

    alpha = +inf stands for an arm that must be played (never pulled), alpha = -inf for an absent one. `log` lists
    moved arms; `version` counts all moves ever, so that an instance knows what it has not yet seen. The log
    keeps the last K moves or so; an instance that is further behind reads everything.
    """

    def __init__(self, alpha: FloatArray, beta: FloatArray) -> None:
        self.alpha = alpha
        self.beta = beta
        self._log = np.empty(2 * alpha.size + 64, dtype=np.int64)
        self._filled = 0
        self.version = 0

    def weights(self, slope: float, arms: IntArray | None = None) -> FloatArray:
        """alpha + slope * beta, in this form everywhere, so that all methods see the same floats. O(n)."""
        if arms is None:
            return self.alpha + slope * self.beta
        return self.alpha[arms] + slope * self.beta[arms]

    def move(self, arms: IntArray, alpha: FloatArray, beta: FloatArray) -> None:
        """Give these distinct arms new points. O(n) amortised."""
        self.alpha[arms] = alpha
        self.beta[arms] = beta
        if self._filled + arms.size > self._log.size:
            keep = min(self._filled, self._log.size // 2)
            self._log[:keep] = self._log[self._filled - keep : self._filled].copy()
            self._filled = keep
        self._log[self._filled : self._filled + arms.size] = arms
        self._filled += arms.size
        self.version += arms.size

    def moved_since(self, version: int) -> IntArray | None:
        """The arms that moved after `version`, without repeats; None when the log does not go back so far."""
        behind = self.version - version
        if behind > self._filled:
            return None
        return np.unique(self._log[self._filled - behind : self._filled])

    def memory(self) -> int:
        """Bytes held. O(1)."""
        return int(self.alpha.nbytes + self.beta.nbytes + self._log.nbytes)


class OnDemand:
    """At most `capacity` instances, made when a direction is asked for; the least recently used one is dropped.

    A move costs nothing until an instance is asked again; it then takes in the arms that moved meanwhile, each
    once. With ``patience = 1`` the first question for a direction is answered by greedy over all arms and only the
    second makes an instance, which pays when most queries are never repeated.
    """

    def __init__(self, matroid: Matroid, points: Points, capacity: int, patience: int) -> None:
        self._matroid, self._points = matroid, points
        self.capacity, self._patience = capacity, patience
        self._kept: OrderedDict[float, tuple[DynamicBase, int]] = OrderedDict()
        self._asked: OrderedDict[float, int] = OrderedDict()
        self.built = 0

    def __len__(self) -> int:
        return len(self._kept)

    def base(self, slope: float) -> IntArray:
        """The maximum-weight base under (1, slope). One update of A for each arm moved since the last question;
        O(K log K) and the membership tests for a direction that has no instance."""
        found = self._kept.pop(slope, None)
        if found is None:
            if self._asked.get(slope, 0) < self._patience:
                return self._solve(slope)
            self._asked.pop(slope, None)
            while len(self._kept) >= self.capacity:
                self._kept.popitem(last=False)
            instance = dynamic_base(self._matroid, self._points.weights(slope))
            self.built += 1
        else:
            instance, version = found
            self._catch_up(instance, slope, version)
        self._kept[slope] = instance, self._points.version
        return instance.base()

    def _solve(self, slope: float) -> IntArray:
        self._asked[slope] = self._asked.pop(slope, 0) + 1
        if len(self._asked) > 8 * self.capacity:
            self._asked.popitem(last=False)
        base = self._matroid._max_weight_base(self._points.weights(slope))
        return base[self._points.alpha[base] > -np.inf]

    def _catch_up(self, instance: DynamicBase, slope: float, version: int) -> None:
        moved = self._points.moved_since(version)
        if moved is None:
            moved = np.arange(self._matroid.n_arms, dtype=np.int64)
        if moved.size:
            instance._set_weights(moved, self._points.weights(slope, moved))

    def memory(self) -> int:
        """Bytes held by the instances. O(instances)."""
        return sum(instance.memory() for instance, _ in self._kept.values())

    def _check(self) -> None:
        assert len(self._kept) <= self.capacity and len(self._asked) <= 8 * self.capacity
        for slope, (instance, version) in self._kept.items():
            self._catch_up(instance, slope, version)
            self._kept[slope] = instance, self._points.version
            assert np.array_equal(instance.weights(), self._points.weights(slope))
            instance._check()


def refuse_absurd(
    matroid: Matroid, points: Points, epsilon: float, number: int, max_number: int, max_bytes: int
) -> None:
    """ParameterError when `number` instances are too many or too large. Makes one instance to weigh it."""
    each = dynamic_base(matroid, points.weights(1.0)).memory() + _OBJECT_BYTES
    if number > max_number or each * number > max_bytes:
        raise ParameterError(
            f"method = 'cells' with epsilon = {epsilon} needs {number:,} instances of the dynamic algorithm, "
            f"{each:,} bytes each, {each * number / 1e9:,.2f} GB in all; the limits are max_instances = "
            f"{max_number:,} and max_bytes = {max_bytes:,}. method = 'lazy' gives the same answers from a few "
            "instances, method = 'directions' the same guarantee"
        )


class AllAtOnce:
    """One instance a direction, each told of every move at once: INITIALIZE and UPDATE-FEATURE to the letter."""

    def __init__(self, matroid: Matroid, points: Points, slopes: FloatArray) -> None:
        self._points, self._slopes = points, slopes
        # Alg. INITIALIZE, lines 5-6
        self._instances = [dynamic_base(matroid, points.weights(slope)) for slope in slopes.tolist()]
        self.built = len(self._instances)

    def __len__(self) -> int:
        return len(self._instances)

    def base(self, index: int) -> IntArray:
        """The maximum-weight base of the index-th direction. O(D), O(D log D) after an exchange."""
        return self._instances[index].base()

    def moved(self, arms: IntArray) -> None:
        """Tell every instance (Alg. UPDATE-FEATURE). One update of A an arm and instance."""
        for instance, slope in zip(self._instances, self._slopes.tolist(), strict=True):
            instance._set_weights(arms, self._points.weights(slope, arms))

    def memory(self) -> int:
        """Bytes held by the instances. O(instances)."""
        return sum(instance.memory() for instance in self._instances)

    def _check(self) -> None:
        assert len(self._instances) == self._slopes.size
        for instance, slope in zip(self._instances, self._slopes.tolist(), strict=True):
            assert np.array_equal(instance.weights(), self._points.weights(slope))
            instance._check()
