"""The (1 + eta)-approximate variant: weights rounded down to powers of 1 + eta."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid
from semibandit.paper.dynamic.base import DynamicBase, dynamic_base

_SMALLEST_ETA = 1e-6
# Logarithms of doubles are off by less than 2e-13; bins narrower by this keep the guarantee in floats.
_SLACK = 4e-13
# Exponents of doubles at the smallest eta stay far above it.
_KEY_OF_ZERO = -1e18


class RoundedBase(DynamicBase):
    """A base of at least optimum / (1 + eta), from an exact algorithm fed with rounded weights.

    The exact algorithm sees the exponent i of (1 + eta)^i <= weight < (1 + eta)^(i + 1), which orders arms as
    the rounded weights do. If w' are the rounded weights, B' their heaviest base and B* the optimum, then
    w(B') >= w'(B') >= w'(B*) > w(B*) / (1 + eta). A change that stays in its bin costs O(1); any other costs
    an update of the exact algorithm, `inner`. For transversal matroids this is the place of the approximate
    algorithm that the paper's Section 3 cites.

    Weights must be nonnegative; 0 and +inf have bins of their own; -inf means absent.

    Examples
    --------
    >>> from semibandit.paper.dynamic import dynamic_base
    >>> from semibandit.matroids import Transversal
    >>> best = dynamic_base(Transversal([[0], [0], [1]]), [1.00, 1.05, 1.0], eta=0.1)
    >>> best.base(), best.approximation       # 1.05 and 1.00 share a bin, so the smaller id is kept
    (array([0, 2]), 1.1)
    """

    def __init__(self, matroid: Matroid, weights: Any, eta: float) -> None:
        if isinstance(eta, (bool, np.bool_)) or not isinstance(eta, (int, float, np.integer, np.floating)):
            raise ParameterError(f"eta = {eta!r}: need a number")
        if not _SMALLEST_ETA <= eta < math.inf:
            raise ParameterError(f"eta = {eta!r}: need a finite number of at least {_SMALLEST_ETA}")
        self.eta = float(eta)
        self._bin_width = math.log1p(self.eta) - _SLACK
        super().__init__(matroid, weights)

    @property
    def approximation(self) -> float:
        """1 + eta."""
        return 1.0 + self.eta

    @property
    def inner(self) -> DynamicBase:
        """The exact algorithm over the exponents."""
        return self._inner

    @property
    def exchanges(self) -> int:
        """How many arms have entered the base since it was built."""
        return self._inner.exchanges

    def _keys(self, weights: FloatArray) -> FloatArray:
        """Exponents: below all others for 0, infinities as they are. Refuses negative weights."""
        below = (weights < 0) & (weights > -np.inf)
        if below.any():
            raise ParameterError(
                f"weight {weights[below][0]} is negative: with eta, need weights of at least 0 (or -inf: absent)"
            )
        with np.errstate(divide="ignore", invalid="ignore"):
            keys: FloatArray = np.floor(np.log(weights) / self._bin_width)
        keys[weights == 0] = _KEY_OF_ZERO
        keys[np.isneginf(weights)] = -np.inf
        return keys

    def _build(self) -> None:
        self._inner = dynamic_base(self.matroid, self._keys(self._weight))

    def _set_weight(self, arm: int, weight: float) -> None:
        # The same expression as in `_keys`, by numpy in both, so that both round alike.
        if 0.0 < weight < math.inf:
            key = float(np.floor(np.log(weight) / self._bin_width))
        else:
            key = float(self._keys(np.array([weight]))[0])
        self._weight[arm] = weight
        if key != self._inner._weight[arm]:
            self._inner._set_weight(arm, key)

    def _set_weights(self, arms: IntArray, weights: FloatArray) -> None:
        keys = self._keys(weights)
        self._weight[arms] = weights
        self._inner._set_weights(arms, keys)

    def base(self) -> IntArray:
        """The arms of the base, sorted; a fresh array. O(D)."""
        return self._inner.base()

    def memory(self) -> int:
        """Bytes held. O(1)."""
        return self._weight.nbytes + self._inner.memory()

    def _check(self) -> None:
        self._inner._check()
        assert np.array_equal(self._inner._weight, self._keys(self._weight))
