"""Maximum-weight bases over inner-product weights: INITIALIZE, FIND-BASE and UPDATE-FEATURE of Section 4.3."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from semibandit.arms import FloatArray, IntArray
from semibandit.checks import as_arms
from semibandit.compiled.handle import by_handle, make_handle
from semibandit.errors import ArmError, ParameterError
from semibandit.locking import Guarded, NotCopied
from semibandit.matroids import Matroid
from semibandit.paper.directions import direction_of, direction_slopes
from semibandit.paper.hitting_set import SLOPE, HittingSet, query_slope
from semibandit.paper.instances import AllAtOnce, OnDemand, Points, refuse_absurd
from semibandit.paper.locate import MAX_PAIRS, CellFinder, cell_finder, count_pairs, find_cell
from semibandit.paper.rounding import Bounds, Rounding

METHODS = ("lazy", "cells", "directions")

MAX_INSTANCES = 100_000
MAX_BYTES = 2 << 30
LAZY_INSTANCES = 16


class InnerProductBase(NotCopied, Guarded):
    """A (1+epsilon)-approximate maximum-weight base for any query, while features change (Theorem dynamic).

    Arm k has a feature (alpha_k, beta_k) and weighs <feature, query> = q1 alpha_k + q2 beta_k.

    Parameters
    ----------
    matroid
        What may be chosen together.
    features
        Shape (K, 2); each coordinate is 0 or within its bounds. Copied.
    bounds
        ``((alpha_lb, alpha_ub), (beta_lb, beta_ub))``, 0 < lower <= upper, for the positive values.
    epsilon
        The precision, in (0, 1).
    method
        ``"cells"``: the paper to the letter. Features are rounded up to dominating points, and one dynamic
        instance is kept for each cell of the positive quadrant, W^3 + 3W + 2 of them. ``"lazy"``: the same
        answers, arm by arm, from at most `max_instances` instances, made when a cell is asked for.
        ``"directions"``: queries are rounded instead of features, to about 2W directions; instances are made on
        demand. All methods serve every nonnegative query, (1, 0), (0, 1) and (0, 0) included.
    max_instances
        ``"cells"``: refuse to build more (default 100,000). Others: keep at most so many and drop the least
        recently used (default 16 for ``"lazy"``, all directions for ``"directions"``).
    max_bytes
        ``"cells"`` refuses to build more than this.

    Notes
    -----
    A base is the unique one under the chosen direction h: larger weight <dom(f_k), h> first (``"directions"``:
    <f_k, h>), then smaller arm id. A query on the boundary of two cells is in the closure of both; it goes to the
    steeper one, as in `HittingSet`.

    Cost, with T_update and T_init those of `semibandit.paper.dynamic.dynamic_base`: ``"cells"``: O(W^3) T_update an
    update that leaves its bin, O(1) for one that does not; O(log W + D) a query. ``"lazy"``: O(1) an update; a query
    O(log W + D) plus T_update for each arm that left its bin since the instance was last used; a cell without
    instance T_init. ``"directions"``: as lazy, where every changed feature counts.

    Examples
    --------
    >>> import numpy as np
    >>> from semibandit.paper import InnerProductBase
    >>> from semibandit.matroids import Uniform
    >>> f = np.array([[0.9, 0.1], [0.5, 0.5], [0.1, 1.0], [0.0, 0.2]])
    >>> best = InnerProductBase(Uniform(4, rank=2), f, bounds=((0.1, 1.0), (0.1, 1.0)), epsilon=0.1)
    >>> best.find_base((1.0, 0.0)), best.find_base((1.0, 2.0))
    (array([0, 1]), array([1, 2]))
    >>> best.update_feature(3, (1.0, 1.0))
    >>> best.find_base((1.0, 2.0))
    array([2, 3])
    """

    def __init__(
        self,
        matroid: Matroid,
        features: ArrayLike,
        bounds: Bounds,
        epsilon: float,
        method: str = "lazy",
        *,
        max_instances: int | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        if not isinstance(matroid, Matroid):
            raise ParameterError(f"matroid must be a semibandit Matroid, got {type(matroid).__name__}")
        if method not in METHODS:
            raise ParameterError(f"method = {method!r} is not known: one of {', '.join(map(repr, METHODS))}")
        if max_instances is not None and (
            not isinstance(max_instances, (int, np.integer)) or max_instances < 1
        ):
            raise ParameterError(f"max_instances must be a positive integer or None, got {max_instances!r}")
        self.matroid = matroid
        self.n_arms = matroid.n_arms
        self.rounding = Rounding(bounds, epsilon)
        self.bounds = self.rounding.bounds
        self.epsilon = self.rounding.epsilon
        self.method = method
        given = self.rounding.check(features)
        if given.shape != (self.n_arms, 2):
            raise ParameterError(f"features must have shape ({self.n_arms}, 2), got {given.shape}")
        self._features: FloatArray = np.array(given)
        alpha, beta = self._points_of(self._features).T
        self._points = Points(alpha.copy(), beta.copy())
        self._hitting: HittingSet | None = None
        self._finder: CellFinder | None = None
        self._slopes: FloatArray = np.empty(0)
        self._all: AllAtOnce | None = None
        self._some: OnDemand | None = None
        if method == "directions":
            self._slopes = direction_slopes(self.bounds, self.epsilon)
            self._some = OnDemand(matroid, self._points, max_instances or self._slopes.size, patience=0)
            return
        # Alg. INITIALIZE, lines 1-4; nothing is enumerated yet
        self._hitting = HittingSet(self.rounding)
        if method == "cells":
            number, limit = self._hitting.n_cells, max_instances or MAX_INSTANCES
            refuse_absurd(matroid, self._points, self.epsilon, number, limit, max_bytes)
            self._slopes = self._hitting.slopes
            self._all = AllAtOnce(matroid, self._points, self._slopes)
        else:
            self._some = OnDemand(matroid, self._points, max_instances or LAZY_INSTANCES, patience=1)
            if count_pairs(self._hitting) <= MAX_PAIRS:
                self._finder = cell_finder(self._hitting)
                self._finder_handle = make_handle(self._finder)

    def find_base(self, query: ArrayLike) -> IntArray:
        """Arms of a base that weighs at least optimum / (1 + epsilon) under `query`, ascending (Alg. FIND-BASE).

        Raises ParameterError unless `query` is two finite nonnegative numbers.
        """
        return self._find_base(query_slope(query))

    def update_feature(self, arm: int, feature: ArrayLike) -> None:
        """Change the feature of one arm (Alg. UPDATE-FEATURE); a feature that stays in its bin costs O(1)."""
        values = np.asarray(feature, dtype=np.float64)
        if values.shape != (2,):
            raise ParameterError(f"a feature must be two numbers, got shape {values.shape}")
        if np.ndim(arm) != 0:
            raise ArmError(f"arm must be one arm id, got {arm!r}")
        self.update_features([arm], values[None])

    def update_features(self, arms: Any, features: ArrayLike) -> None:
        """Change the features of several arms; of an arm named twice the last one stays.

        Everything is checked before anything is changed.
        """
        ids = as_arms(arms, self.n_arms)
        given = self.rounding.check(features) if ids.size else np.empty((0, 2))
        if given.shape != (ids.size, 2):
            raise ParameterError(
                f"features must have shape ({ids.size}, 2), one row an arm, got {given.shape}"
            )
        if np.unique(ids).size < ids.size:
            _, last = np.unique(ids[::-1], return_index=True)
            rows = ids.size - 1 - last
            ids, given = ids[rows], given[rows]
        self._features[ids] = given
        alpha, beta = self._points_of(given).T
        self._move(ids, alpha, beta)

    @property
    def features(self) -> FloatArray:
        """The current features, a copy of shape (K, 2). O(K)."""
        return self._features.copy()

    @property
    def n_cells(self) -> int:
        """Cells of the positive quadrant (``"directions"``: directions). O(1)."""
        return self._slopes.size if self._hitting is None else self._hitting.n_cells

    @property
    def n_instances(self) -> int:
        """Instances of the dynamic algorithm that exist now. O(1)."""
        return len(self._instances)

    @property
    def n_built(self) -> int:
        """Instances of the dynamic algorithm that were ever made. O(1)."""
        return self._instances.built

    def memory(self) -> int:
        """Bytes held, the matroid not counted. O(instances)."""
        held = self._features.nbytes + self._points.memory() + self._slopes.nbytes + self._instances.memory()
        if self._finder is not None:
            held += self._finder.offset.nbytes + self._finder.pair.nbytes
        return int(held)

    def __repr__(self) -> str:
        return (
            f"InnerProductBase({self.matroid!r}, epsilon={self.epsilon}, method={self.method!r}, "
            f"n_cells={self.n_cells})"
        )

    @property
    def _instances(self) -> AllAtOnce | OnDemand:
        chosen = self._all or self._some
        assert chosen is not None
        return chosen

    def _find_base(self, lam: float) -> IntArray:
        """`find_base` for a slope q2 / q1 in [0, inf]."""
        if self._all is not None:
            assert self._hitting is not None
            return self._all.base(self._hitting._locate(lam))
        assert self._some is not None
        return self._some.base(self._direction(lam))

    def _direction(self, lam: float) -> float:
        """Slope of the direction h that answers queries of slope lam (Alg. FIND-BASE, line 1)."""
        if self._hitting is None:
            return direction_of(self._slopes, lam)
        if self._finder is None:
            return self._hitting._cell_slopes(lam)[SLOPE]
        cell = np.empty(3)
        by_handle(find_cell, CellFinder)(self._finder_handle, lam, cell)
        return float(cell[SLOPE])

    def _points_of(self, features: FloatArray) -> FloatArray:
        """What instances see: dominating points, or for ``"directions"`` the features themselves. O(n)."""
        if self.method != "directions":
            return self.rounding._dom(features)
        points = features.copy()
        for column, (lower, upper) in enumerate(self.bounds):
            x = points[:, column]
            points[:, column] = np.where(x > 0.0, np.clip(x, lower, upper), 0.0)
        return points

    def _move(self, arms: IntArray, alpha: FloatArray, beta: FloatArray) -> None:
        """Give distinct arms new points, alpha = +inf or -inf included; those that stay cost nothing more."""
        moved = (alpha != self._points.alpha[arms]) | (beta != self._points.beta[arms])
        if not moved.any():
            return
        arms = arms[moved]
        self._points.move(arms, alpha[moved], beta[moved])
        if self._all is not None:
            self._all.moved(arms)

    def _check(self) -> None:
        """Assert every invariant. O(instances K log K). Moves made by `_move` alone are not checked."""
        points = self._points_of(self._features)
        shown = np.isfinite(self._points.alpha)
        assert np.array_equal(points[shown, 0], self._points.alpha[shown])
        assert np.array_equal(points[shown, 1], self._points.beta[shown])
        if self._all is not None:
            assert self._hitting is not None
            for lam in (0.0, 0.7, math.inf):
                assert self._slopes[self._hitting._locate(lam)] == self._hitting._cell_slopes(lam)[SLOPE]
        self._instances._check()
