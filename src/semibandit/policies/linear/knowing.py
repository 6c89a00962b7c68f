"""What policies over features know: the posterior, arms that come and go, what is saved and shown."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.checks import as_arms
from semibandit.compiled.handle import by_handle
from semibandit.engines.base import Engine, bytes_of
from semibandit.errors import FileError, ParameterError
from semibandit.matroids import Matroid
from semibandit.policies.decisions import Ends, Waiting
from semibandit.policies.linear.deciding import Deciding
from semibandit.policies.linear.features import as_rows
from semibandit.policies.linear.posterior import (
    ROWS,
    WAITING,
    Posterior,
    deviations,
    indices,
    invert,
    solve,
    tighten,
)
from semibandit.policies.linear.saving import check_posterior, forget, posterior_from, posterior_to, widen
from semibandit.policies.linear.shortlist import FIRST_ROUND, Shortlist
from semibandit.policies.linear.waiting import WaitingRows
from semibandit.policies.linear.weighing import LOOKED, N_LAST
from semibandit.policies.records import CountingPolicy, Randomness
from semibandit.policies.state import array_of, grown, number_of
from semibandit.policies.thompson.quantiles import NORMAL_975


class Knowing(Deciding, Randomness, CountingPolicy):
    """What is kept between the rounds of a `LinearPolicy`, which makes all of it."""

    draws: ClassVar[bool]
    prior_scale: float
    noise: float
    _asked_features: bool
    _asked_noise: float | None
    _scanned: bool
    _engine: Engine
    _width: float
    _posterior: Posterior
    _posterior_handle: IntArray
    _shift: FloatArray
    _bounds: FloatArray
    _stamp: IntArray
    _last: IntArray
    _here: Any
    _norm: float
    _meta: IntArray
    _lists: int
    _short: int

    def _of_posterior(self, kernel: Any, *rest: Any) -> Any:
        return by_handle(kernel, Posterior).entry(self._posterior_handle, *rest)

    def _forget_list(self) -> None:
        """Look at all arms, until a short list of them is made."""
        self._list: Shortlist | None = None
        self._next_list = max(FIRST_ROUND * self.matroid.rank, self._learnt() + 1)

    def _learnt(self) -> int:
        """How many rewards."""
        return int(self._posterior.meta[ROWS])

    def _prior_widths(self, rows: FloatArray) -> FloatArray:
        """What widths are before anything was seen, and never above that. O(n d)."""
        return self.prior_scale * (1.0 + 1e-9) * np.sqrt(np.einsum("ij,ij->i", rows, rows))

    def _stretch_bounds(self, factor: float) -> None:
        """Widths may have grown by this factor. O(K)."""
        if factor > 1.0:
            self._bounds *= factor
            if self._list is not None:
                self._list.own.weighing.bounds[:] *= factor

    def _widen_bounds(self, ids: IntArray) -> None:
        """Of the widths of these arms nothing is known any more. O(n d)."""
        if len(self._bounds):
            self._bounds[ids] = self._prior_widths(self._features[ids])
            self._stamp[ids] = -1

    @staticmethod
    def _largest_norm(rows: FloatArray) -> float:
        """An upper bound of the norm of every row. O(K d)."""
        return math.sqrt(float(np.einsum("ij,ij->i", rows, rows).max(initial=0.0))) * (1.0 + 1e-9)

    # -- arms that come and go ---------------------------------------------------------------------------

    def _take_out(self, ids: IntArray) -> None:
        self._here[ids] = False
        if not self._scanned:
            self._engine._remove(ids)

    def _put_back(self, ids: IntArray) -> None:
        self._here[ids] = True
        if not self._scanned:
            self._engine._restore(ids)

    def _leave(self, ids: IntArray) -> None:
        self._here[ids] = False
        if not self._scanned:
            self._engine.delete(ids)

    def _enter(self, ids: IntArray) -> None:
        self._here[ids] = True
        if not self._scanned:
            self._engine.insert(ids)

    def reset(self, arms: Any, features: Any = None) -> None:
        """Count nothing for these arms any more; `features`: the rows of what their ids are given to. O(n d).

        What was learnt of theta stays: rewards were those of the features that the arms had. Only where every arm is a
        feature of its own is anything forgotten.
        """
        ids = as_arms(arms, self.n_arms)
        if features is None:
            super().reset(ids)
            return
        if not self._asked_features:
            raise ParameterError("features: this policy has no fixed ones that could be replaced")
        if len(np.unique(ids)) != len(ids):
            raise ParameterError("features: an arm is named twice, and can have one row only")
        rows = as_rows(features, len(ids), self.dimension)
        super().reset(ids)
        self._features[ids] = rows
        self._norm = max(self._norm, self._largest_norm(rows))
        self._widen_bounds(ids)
        self._forget_list()

    def _reset(self, ids: IntArray) -> None:
        super()._reset(ids)
        if self._fixed and not self._asked_features:
            forget(self._posterior, ids, self.prior_scale)
            self._widen_bounds(ids)
            if self._posterior.meta[WAITING]:
                self._of_posterior(tighten)

    def grow(self, matroid: Matroid, features: Any = None) -> None:
        """Go on with a larger ground set; `features`: the rows of the new arms, where features are fixed. O(K d)."""
        self._check_growth(matroid)
        more = matroid.n_arms - self.n_arms
        if self._asked_features:
            if features is None and more:
                raise ParameterError(f"features must be given: one row for each of the {more} new arms")
            if features is not None:
                features = as_rows(features, more, self.dimension, "new arm")
        elif features is not None:
            raise ParameterError("features: this policy has no fixed ones")
        self._new_rows = features
        try:
            super().grow(matroid)
        finally:
            self.__dict__.pop("_new_rows", None)

    def _grown_arguments(self, n_arms: int) -> dict[str, Any]:
        arguments = super()._grown_arguments(n_arms)
        if self._asked_features and self._new_rows is not None:
            arguments["features"] = np.concatenate((self._features, self._new_rows))
        return arguments

    def _grow_from(self, old: Self) -> None:
        state = grown(CountingPolicy._state(old), CountingPolicy._state(self))
        CountingPolicy._set_state(self, state)
        widen(old._posterior, self._posterior)
        self._rows_of = old._rows_of.widened(self.dimension)
        self._shift[0] = old._shift[0]
        self._rng[:] = old._rng

    # -- what is known -----------------------------------------------------------------------------------

    @property
    def features(self) -> FloatArray | None:
        """The fixed features, one row per arm; None if they come with each call. O(K d) copy."""
        return self._features.copy() if self._fixed else None

    @property
    def contextual(self) -> bool:  # type: ignore[override]
        """Whether features come with each call."""
        return not self._fixed

    @property
    def theta(self) -> FloatArray:
        """Posterior mean of the coefficients; for costs (`minimize`) those of the negative cost. O(d^2)."""
        self._of_posterior(solve)
        return self._posterior.theta.copy()

    @property
    def covariance(self) -> FloatArray:
        """Posterior covariance of the coefficients, without the plays that wait. O(d^3)."""
        inverse = np.linalg.inv(np.triu(self._posterior.root))
        return np.asarray(inverse @ inverse.T)

    def _scores(self, arms: IntArray) -> FloatArray:
        rows = self._rows_now(arms)
        if rows is None:
            return np.full(len(arms), np.nan)
        out = np.empty(len(arms))
        if self._width > 0.0:
            self._of_posterior(invert)
        self._of_posterior(indices, rows, self._width, out)
        return out + self._shift[0]

    def _likely(self, arms: IntArray, scores: FloatArray) -> Ends:
        rows = self._rows_now(arms)
        if rows is None:
            return super()._likely(arms, scores)
        self._of_posterior(invert)
        width = np.empty(len(arms))
        self._of_posterior(deviations, rows, width)
        centre = rows @ self.theta + self._shift[0]
        width *= self._width if self._width > 0.0 else NORMAL_975
        return lambda mean: (centre - width, centre + width)

    def _arguments(self) -> dict[str, Any]:
        kind: dict[str, Any] = {} if self._fixed else {"dimension": self.dimension}
        if self._asked_features:
            kind["features"] = self._features.copy()
        return {
            **super()._arguments(),
            **kind,
            "prior_scale": self.prior_scale,
            "noise": self._asked_noise,
        }

    def _state(self) -> dict[str, Any]:
        return {
            **super()._state(),
            **posterior_to(self._posterior),
            **self._rows_of.state(),
            "shift": float(self._shift[0]),
            "last": self._last[: self._meta[N_LAST]],
            "rng": self._rng,
        }

    def _set_state(self, state: dict[str, Any]) -> None:
        found = posterior_from(state, self.dimension)
        rows = WaitingRows.from_state(state, self.dimension)
        if found.meta[WAITING] not in (0, rows.n_rows):
            raise FileError("the plays that wait are not those of the decisions")
        shift = number_of(state, "shift")
        last = array_of(state, "last", np.int64)
        if len(last) > self.matroid.rank or ((last < 0) | (last >= self.n_arms)).any():
            raise FileError("the last base makes no sense")
        super()._set_state(state)
        for mine, theirs in zip(self._posterior, found, strict=True):
            mine[:] = theirs
        self._rows_of, self._shift[0] = rows, shift
        self._last[: len(last)], self._meta[N_LAST] = last, len(last)
        self._set_rng(state)

    def clone(self) -> Self:
        """An independent copy that goes on exactly as this one would. O(K d)."""
        other = type(self)(self.matroid, **self._arguments())
        other._set_state(self._state())
        # While a file is read, rows are there before the decisions that they are of.
        if len(self._decisions) or not self._rows_of.of:
            other._take_decisions(Waiting.from_state(self._decisions.state(), self.n_arms))
        return other

    def describe(self) -> dict[str, Any]:
        """What runs inside; ``widths`` counts those that were computed, ``short_rounds`` those that a list had."""
        about = {
            "policy": self.name,
            **self._about_outside(),
            "matroid": repr(self.matroid),
            "engine": "scan" if self._scanned else self._engine.name,
            "why": "every round weighs all arms, or a short list that is certain to hold the base",
            "features": "fixed"
            if self._asked_features
            else "one per arm"
            if self._fixed
            else "with each call",
            "dimension": self.dimension,
            "noise": self.noise,
            "prior_scale": self.prior_scale,
            **({"widths": self._looked()} if self._width > 0.0 else {}),
            **({"lists": self._lists, "short_rounds": self._short} if self._lists else {}),
        }
        about["bytes"] = bytes_of(self._make_own()) + (0 if self._scanned else self._engine.memory())
        about["bytes_per_arm"] = about["bytes"] / self.n_arms
        return about

    def _looked(self) -> int:
        """How many widths were computed."""
        return int(self._meta[LOOKED]) + (
            0 if self._list is None else int(self._list.own.weighing.meta[LOOKED])
        )

    def _check(self) -> None:
        """Assert all invariants. O(K d^2 + d^3)."""
        check_posterior(self._posterior)
        assert set(self._rows_of.of) == set(self._decisions._arms)
        if len(self._bounds):
            self._of_posterior(invert)
            exact = np.empty(self.n_arms)
            if self._fixed:
                self._of_posterior(deviations, self._features, exact)
                assert (exact <= self._bounds * (1.0 + 1e-9)).all(), "a bound of a width is too small"
                if self._list is not None:
                    listed = self._list.own.weighing.bounds
                    assert (exact[self._list.arms] <= listed * (1.0 + 1e-9)).all()
        assert np.array_equal(self._here, self._presence.mask)
