"""What policies over features share: rows at the door, the posterior, rounds, decisions that remember their rows."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray, IntArray
from semibandit.checks import as_arms, as_number, as_whole, explain, finite_ends
from semibandit.compiled.handle import by_handle, make_handle
from semibandit.engines.base import bytes_of
from semibandit.engines.kernels import check_feedback
from semibandit.engines.resolve.oracle import resolve_engine
from semibandit.errors import FileError, ParameterError
from semibandit.locking import unguarded
from semibandit.matroids import Matroid, Partition, Uniform
from semibandit.matroids.base import is_kind, kind_of
from semibandit.policies.decisions import Ends
from semibandit.policies.linear.deciding import Deciding
from semibandit.policies.linear.features import ONE_HOT, as_rows, repoint, require_finite
from semibandit.policies.linear.posterior import (
    ROWS,
    WAITING,
    Posterior,
    deviations,
    indices,
    invert,
    new_posterior,
    solve,
    tighten,
)
from semibandit.policies.linear.rounds import (
    FEATURES,
    GIVEN,
    LOOKED,
    N_LAST,
    TRIES,
    ResolvedRounds,
    ScannedRounds,
    Weighing,
    begin,
    learn_rows,
    scan,
    sharpen,
    sharpen_all,
)
from semibandit.policies.linear.saving import check_posterior, forget, posterior_from, posterior_to, widen
from semibandit.policies.linear.waiting import WaitingRows
from semibandit.policies.records import CountingPolicy, Randomness
from semibandit.policies.rounds import CompiledRounds, NoEngine, hand_on
from semibandit.policies.state import array_of, grown, number_of
from semibandit.policies.thompson.quantiles import NORMAL_975

# From so many numbers on a BLAS is faster than a kernel of one thread.
_BLAS_FROM = 1 << 14

_EPS = float(np.finfo(np.float64).eps)


class LinearPolicy(Deciding, Randomness, CountingPolicy):
    """A policy whose arms have features, of which mean rewards are linear functions. See `CombLinTS`."""

    unbounded = True
    #: Whether a theta is drawn each round, and how many standard deviations the interval of `Decision.ranked` has.
    draws: ClassVar[bool] = False

    def __init__(
        self,
        matroid: Matroid,
        *,
        reward_range: Any,
        features: Any,
        dimension: int | None,
        prior_scale: float,
        noise: float | None,
        width: float,
        outside: str,
        seed: int | None,
    ) -> None:
        super().__init__(matroid, reward_range=reward_range, outside=outside, seed=seed)
        self._asked_features = features is not None
        self._fixed = dimension is None
        if features is not None and dimension is not None:
            raise ParameterError(
                "features are fixed, dimension is for features that come with each call: give one of them"
            )
        if dimension is not None:
            self.dimension = as_whole(dimension, "dimension", 1, "numbers in a row of features")
            self._features: FloatArray = np.zeros((0, self.dimension))
        elif features is None:
            self._features = self._one_hot()
        else:
            self._features = as_rows(features, self.n_arms, None)
        self.dimension = self._features.shape[1]
        self.prior_scale = as_number(prior_scale, "prior_scale", 0.0, closed=False)
        self._asked_noise = noise
        self.noise = self._known_noise(noise)
        self._width = width
        self._posterior = new_posterior(self.dimension, self.prior_scale)
        self._shift = np.zeros(1)
        self._meta = np.zeros(4, dtype=np.int64)
        self._rows_of = WaitingRows(self.dimension)
        self._scanned = kind_of(matroid) in (Uniform, Partition)
        if not self._scanned:
            self._engine = resolve_engine(matroid)
        self._make_arrays()
        self._open()

    def _one_hot(self) -> FloatArray:
        if self.n_arms > ONE_HOT:
            raise ParameterError(
                f"features must be given, one row for each of the {self.n_arms} arms, or dimension if they come with "
                f"each call; without them every arm is a feature of its own, for at most {ONE_HOT} arms"
            )
        return np.eye(self.n_arms)

    def _known_noise(self, noise: float | None) -> float:
        if noise is not None:
            return as_number(noise, "noise", 0.0, closed=False)
        low, high = self.reward_range
        if not math.isfinite(high - low):
            raise ParameterError(
                "noise must be given where reward_range has no ends: the standard deviation of a reward"
            )
        return 0.5 * (high - low)

    # -- arrays ------------------------------------------------------------------------------------------

    def _make_arrays(self) -> None:
        n, rank = self.n_arms, self.matroid.rank
        self._near = np.zeros(n)
        wide = n if self._width > 0.0 else 0
        self._bounds = self._prior_widths(self._features) if self._fixed and wide else np.zeros(wide)
        self._stamp = np.full(wide, -1, dtype=np.int64)
        self._last = np.zeros(rank, dtype=np.int64)
        self._here = np.ones(n, dtype=np.bool_)
        self._norm = self._largest_norm(self._features) if self._fixed else 0.0
        if is_kind(self.matroid, Partition):
            self._group, capacity = self.matroid._group.copy(), self.matroid._capacity
        else:
            self._group, capacity = np.zeros(0, dtype=np.int64), np.array([rank], dtype=np.int64)
        self._start = np.concatenate([[0], np.cumsum(capacity)]).astype(np.int64)

    def _prior_widths(self, rows: FloatArray) -> FloatArray:
        """What widths are before anything was seen, and never above that. O(n d)."""
        return self.prior_scale * (1.0 + 1e-9) * np.sqrt(np.einsum("ij,ij->i", rows, rows))

    def _widen_bounds(self, ids: IntArray) -> None:
        """Of the widths of these arms nothing is known any more. O(n d)."""
        if len(self._bounds):
            self._bounds[ids] = self._prior_widths(self._features[ids])
            self._stamp[ids] = -1

    @staticmethod
    def _largest_norm(rows: FloatArray) -> float:
        """An upper bound of the norm of every row. O(K d)."""
        return math.sqrt(float(np.einsum("ij,ij->i", rows, rows).max(initial=0.0))) * (1.0 + 1e-9)

    def _make_own(self) -> Any:
        weighing = Weighing(
            noise=self.noise,
            width=self._width,
            draws=int(self.draws),
            features=self._features,
            posterior=self._posterior,
            near=self._near,
            bounds=self._bounds,
            stamp=self._stamp,
            shift=self._shift,
            recs=self._recs,
            last=self._last,
            rng=self._rng,
            meta=self._meta,
        )
        if not self._scanned:
            return ResolvedRounds(weighing)
        n_groups = len(self._start) - 1
        return ScannedRounds(
            weighing=weighing,
            here=self._here,
            group=self._group,
            start=self._start,
            size=np.zeros(n_groups, dtype=np.int64),
            floor=np.zeros(n_groups),
            heap_weight=np.zeros(int(self._start[-1])),
            heap_arm=np.zeros(int(self._start[-1]), dtype=np.int64),
        )

    def _engine_state(self) -> Any:
        return NoEngine(self._recs) if self._scanned else getattr(self._engine, "any", None)

    def compiled_rounds(self) -> CompiledRounds | None:
        return super().compiled_rounds() if self._fixed else None

    def _open(self) -> None:
        super()._open()
        self._posterior_handle = make_handle(self._posterior)

    def _weigh(self, kernel: Any, *rest: Any) -> Any:
        """A kernel of the weighing alone, with which both kinds of rounds begin."""
        return by_handle(kernel, Weighing).entry(self._aside.own_handle, *rest)

    def _of_posterior(self, kernel: Any, *rest: Any) -> Any:
        return by_handle(kernel, Posterior).entry(self._posterior_handle, *rest)

    def _point_at(self, rows: FloatArray) -> None:
        """Let kernels find the features of all arms in `rows`, which the caller keeps until they look elsewhere."""
        for rounds in {id(one): one for one in (self._whole, self._aside) if one is not None}.values():
            repoint(rounds.own_handle, FEATURES, rows)

    # -- rounds ------------------------------------------------------------------------------------------

    @unguarded
    def select(
        self, exclude: Any = None, *, among: Any = None, weights: Any = None, features: Any = None
    ) -> IntArray:
        """The base of largest index (or of largest drawn means), ascending ids; avoids the arms in `exclude`.

        `features`: for a policy made with `dimension`, the rows of this round: one per arm, or with `among` one per arm
        of that. They are not kept: `update` must be told those of its arms again.
        """
        with self._lock, self._given_table(features, among):
            if among is not None or weights is not None:
                return self._select_some(exclude, among, weights)
            if not self._fixed and self._table is None:
                raise ParameterError(
                    f"features must be given with each call of a policy made with dimension = {self.dimension}: "
                    "one row per arm"
                )
            ids = None if exclude is None else self._presence.among(exclude)
            if ids is not None:
                self._take_out(ids)
            try:
                arms = self._round(self._t + 1)
            finally:
                if ids is not None:
                    self._put_back(ids)
            self._t += 1
            return arms

    def _round(self, t: int) -> IntArray:
        """Round t: by kernels alone, or with a BLAS for the one pass over many features."""
        if self._table is not None:
            return self._given_round(t, self._table)
        if self._scanned and self._features.size >= _BLAS_FROM:
            return self._large_round()
        return self._play(t) if self._whole is not None else self._resolve(t)

    def _given_round(self, t: int, table: FloatArray) -> IntArray:
        """A round by the features of this call."""
        before = self._rng.copy()
        self._point_at(table)
        self._meta[GIVEN] = 1
        try:
            arms = self._play(t) if self._whole is not None else self._resolve(t)
            # One that is not finite makes the sum so.
            if math.isfinite(float(self._near.sum()) + float(self._bounds.sum())):
                require_finite(table[arms])
            else:
                require_finite(table)
                raise ParameterError("features are so large that what they are worth is not finite")
        except ParameterError:
            self._rng[:] = before
            raise
        finally:
            self._meta[GIVEN] = 0
            self._point_at(self._features)
        return arms

    def _large_round(self) -> IntArray:
        """A round of a uniform or partition matroid: inner products by the BLAS, exact ones where they matter."""
        self._weigh(begin)
        theta = self._posterior.drawn
        np.dot(self._features, theta, out=self._near)
        # A sum of d products, in whatever order, is off by at most d eps times the sum of their sizes (Higham 2002,
        # Section 3.1). So are the exact ones; and as much again, to be safe.
        slack = 4.0 * self.dimension * _EPS * self._norm * float(np.linalg.norm(theta))
        out = np.empty(self.matroid.rank, dtype=np.int64)
        n = int(by_handle(scan, ScannedRounds).entry(self._aside.own_handle, slack, out))
        return out if n == len(out) else out[:n].copy()

    def _resolve(self, t: int) -> IntArray:
        """A round as `rounds._resolved_select` has it, where the engine runs in Python."""
        aside, engine = self._aside, self._engine
        kinds, handles = aside.kinds, (aside.own_handle, aside.engine_handle)
        aside.prepare(t)
        for tried in range(TRIES + 1):
            hand_on(aside.touches, engine)
            arms = engine._select(0.0)
            if self._width == 0.0 or tried == TRIES or not by_handle(sharpen, *kinds).entry(*handles, arms):
                break
            if tried == TRIES - 1:
                by_handle(sharpen_all, *kinds).entry(*handles)
        return arms

    def _choose_among(self, arms: IntArray, t: int) -> IntArray:
        if not self._fixed:
            require_finite(self._need_rows(arms, "select"))
        self._weigh(begin)
        return super()._choose_among(arms, t)

    def _indices_of(self, arms: IntArray, t: int) -> FloatArray:
        rows = self._need_rows(arms, "select")
        out = np.empty(len(arms))
        self._of_posterior(indices, rows, self._width, out)
        return out

    # -- feedback ----------------------------------------------------------------------------------------

    @unguarded
    def update(self, arms: npt.ArrayLike, rewards: npt.ArrayLike, features: Any = None) -> None:
        """Learn one reward for each named arm. Validates everything first; a rejected call changes nothing. O(n d^2).

        `features`: one row per reward, those with which the arm was played; for a policy made with `dimension` they
        must be given, for another one they take the place of the fixed ones.
        """
        with self._lock, self._given_rows(self._as_rows(arms, features)):
            super().update(arms, rewards)

    def _update(self, arms: IntArray, rewards: FloatArray) -> None:
        low, high = finite_ends(self.reward_range)
        if self._rows is None and self._fixed:
            code = self._aside.learn(arms, rewards, low, high)
        else:
            if self._rows is None and len(arms):
                raise ParameterError(
                    f"features must be given with rewards for a policy made with dimension = {self.dimension}: "
                    "one row per reward"
                )
            code = int(check_feedback(self.n_arms, arms, rewards, low, high))
            if code == 0 and len(arms):
                self._weigh(learn_rows, self._rows, arms, rewards, len(arms))
        if code:
            raise explain(code, arms, rewards, self.n_arms, (low, high))

    def _as_costs(self, inside: bool) -> Any:
        """What `minimize` makes of this policy."""
        from semibandit.policies.linear.costs import LinearCosts

        return LinearCosts(self.matroid, self, inside=inside)

    def _told_costs(self, mirror: float) -> None:
        """Rewards will be `mirror` minus costs, linear in the features: learn -cost, unless something was learnt."""
        if self._posterior.meta[ROWS] == 0:
            self._shift[0] = mirror

    # -- arms that come and go ---------------------------------------------------------------------------

    def _take_out(self, ids: IntArray) -> None:
        if self._scanned:
            self._here[ids] = False
        else:
            self._engine._remove(ids)

    def _put_back(self, ids: IntArray) -> None:
        if self._scanned:
            self._here[ids] = True
        else:
            self._engine._restore(ids)

    def _leave(self, ids: IntArray) -> None:
        if self._scanned:
            self._here[ids] = False
        else:
            self._engine.delete(ids)

    def _enter(self, ids: IntArray) -> None:
        if self._scanned:
            self._here[ids] = True
        else:
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

    def describe(self) -> dict[str, Any]:
        """What runs inside; ``widths`` counts those that were computed."""
        about = {
            "policy": self.name,
            **self._about_outside(),
            "matroid": repr(self.matroid),
            "engine": "scan" if self._scanned else self._engine.name,
            "why": "every round weighs all arms; widths are computed where an upper bound reaches the base"
            if self._width > 0.0
            else "every round weighs all arms",
            "features": "fixed"
            if self._asked_features
            else "one per arm"
            if self._fixed
            else "with each call",
            "dimension": self.dimension,
            "noise": self.noise,
            "prior_scale": self.prior_scale,
            **({"widths": int(self._meta[LOOKED])} if self._width > 0.0 else {}),
        }
        about["bytes"] = bytes_of(self._make_own()) + (0 if self._scanned else self._engine.memory())
        about["bytes_per_arm"] = about["bytes"] / self.n_arms
        return about

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
        if self._scanned:
            assert np.array_equal(self._here, self._presence.mask)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.matroid!r}, dimension={self.dimension}, t={self._t})"
