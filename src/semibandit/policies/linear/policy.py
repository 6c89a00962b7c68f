"""Policies over features: their arrays, rounds and feedback."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray, IntArray
from semibandit.checks import as_number, as_whole, explain, finite_ends
from semibandit.compiled.handle import by_handle, make_handle
from semibandit.engines.kernels import check_feedback
from semibandit.engines.resolve.oracle import resolve_engine
from semibandit.errors import ParameterError
from semibandit.locking import unguarded
from semibandit.matroids import Matroid, Partition, Uniform
from semibandit.matroids.base import is_kind, kind_of
from semibandit.policies.linear.features import ONE_HOT, as_rows, repoint, require_finite
from semibandit.policies.linear.knowing import Knowing
from semibandit.policies.linear.posterior import ROWS, indices, new_posterior, solve
from semibandit.policies.linear.reaching import Depth, exact_indices
from semibandit.policies.linear.rounds import (
    TRIES,
    ResolvedRounds,
    ScannedRounds,
    learn_rows,
    scan,
    sharpen,
    sharpen_all,
)
from semibandit.policies.linear.shortlist import FIRST_ROUND, SHORTLIST_FROM, make_shortlist
from semibandit.policies.linear.waiting import WaitingRows
from semibandit.policies.linear.weighing import (
    BROKEN,
    FEATURES,
    GIVEN,
    HAIR,
    N_LAST,
    TOLD,
    Weighing,
    approach,
    approach_with_norms,
    begin,
)
from semibandit.policies.rounds import CompiledRounds, NoEngine, hand_on

# From so many numbers on a BLAS is faster than a kernel of one thread.
_BLAS_FROM = 1 << 14

_EPS = float(np.finfo(np.float64).eps)


class LinearPolicy(Knowing):
    """A policy whose arms have features, of which mean rewards are linear functions. See `CombLinTS`."""

    unbounded = True
    #: Whether a theta is drawn each round, and how many standard deviations the interval of `Decision.ranked` has.
    draws: ClassVar[bool] = False
    # Whether the posterior is somebody else's, who puts theta and the roots here before each round (`distributed`).
    _led = False

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
        self._meta = np.zeros(5, dtype=np.int64)
        self._rows_of = WaitingRows(self.dimension)
        self._forget_list()
        self._lists = self._short = 0
        self._scanned = kind_of(matroid) in (Uniform, Partition)
        if not self._scanned:
            self._engine, self._depth = resolve_engine(matroid), Depth(matroid)
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
        self._scratch = np.zeros((2 * self.dimension + 1 if wide else 0, self.dimension))
        self._along = np.zeros(0 if self._fixed else wide)
        self._last = np.zeros(rank, dtype=np.int64)
        self._here = np.ones(n, dtype=np.bool_)
        self._norm = self._largest_norm(self._features) if self._fixed else 0.0
        if is_kind(self.matroid, Partition):
            self._group, capacity = self.matroid._group.copy(), self.matroid._capacity
        else:
            self._group, capacity = np.zeros(0, dtype=np.int64), np.array([rank], dtype=np.int64)
        self._start = np.concatenate([[0], np.cumsum(capacity)]).astype(np.int64)

    def _make_own(self) -> Any:
        weighing = Weighing(
            noise=self.noise,
            width=self._width,
            draws=TOLD if self._led else int(self.draws),
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
            scratch=self._scratch,
            along=self._along,
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
        # Where there are many features, rounds go by a BLAS and by short lists of arms, which kernels do not know of.
        few = self._fixed and self._features.size < SHORTLIST_FROM
        return super().compiled_rounds() if few else None

    def _open(self) -> None:
        super()._open()
        self._posterior_handle = make_handle(self._posterior)

    def _weigh(self, kernel: Any, *rest: Any) -> Any:
        """A kernel of the weighing alone, with which both kinds of rounds begin."""
        return by_handle(kernel, Weighing).entry(self._aside.own_handle, *rest)

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
        if self._features.size >= _BLAS_FROM:
            return self._large_round() if self._scanned else self._reach(approach)
        return self._play(t) if self._whole is not None else self._resolve(t)

    def _given_round(self, t: int, table: FloatArray) -> IntArray:
        """A round by the features of this call."""
        before = self._rng.copy()
        self._point_at(table)
        self._meta[GIVEN] = 1
        try:
            if table.size >= _BLAS_FROM and not self._scanned:
                arms = self._reach(approach_with_norms if self._width > 0.0 else approach)
            else:
                arms = self._play(t) if self._whole is not None else self._resolve(t)
            # One that is not finite makes what its arm is worth so.
            if not self._meta[BROKEN]:
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
        """A round of a uniform or partition matroid: inner products by the BLAS, exact ones where they matter.

        Of a short list of arms, where it is certain that the others cannot be in the base.
        """
        self._weigh(begin)
        theta = self._posterior.drawn
        # A sum of d products, in whatever order, is off by at most d eps times the sum of their sizes (Higham 2002,
        # Section 3.1). So are the exact ones; and as much again, to be safe.
        slack = 4.0 * self.dimension * _EPS * self._norm * float(np.linalg.norm(theta))
        out = np.empty(self.matroid.rank, dtype=np.int64)
        n = self._from_shortlist(slack, out)
        if n < 0:
            np.dot(self._features, theta, out=self._near)
            n = int(by_handle(scan, ScannedRounds).entry(self._aside.own_handle, slack, out))
        return out if n == len(out) else out[:n].copy()

    def _from_shortlist(self, slack: float, out: IntArray) -> int:
        """The base into `out` if a short list has it, and how many arms; else -1."""
        if self._features.size < SHORTLIST_FROM:
            return -1
        learnt = self._learnt()
        if learnt >= self._next_list and self._meta[N_LAST] == len(out):
            self._of_posterior(solve)
            self._list = make_shortlist(
                self._posterior,
                self._own.weighing,
                self._own,
                np.triu(self._posterior.root),
                self._last,
                self.draws,
            )
            self._lists += 1
            self._next_list = 2 * learnt
        if self._list is None:
            return -1
        n = self._list.round(self._here, self._width, slack, out)
        if n >= 0:
            self._short += 1
            self._last[:n], self._meta[N_LAST] = out[:n], n
        elif self._list.useless:
            later = 1 if self._list.paid else max(FIRST_ROUND * len(out), learnt // 4)
            self._list, self._next_list = None, learnt + later
        return n

    def _reach(self, kernel: Any) -> IntArray:
        """A round of another matroid with many arms, `kernel` being the pass over them: see `reaching`."""
        self._weigh(begin)
        self._weigh(kernel)
        arms = self._depth.best(self._near, self._here)
        if self._width > 0.0 and not self._meta[BROKEN]:
            floor = self._exact(arms).min(initial=np.inf)
            may = np.flatnonzero(self._near + self._width * HAIR * self._bounds >= floor)
            may = may[self._here[may]]
            arms = self.matroid._greedy(may[np.argsort(-self._exact(may), kind="stable")])
        return np.sort(arms)

    def _exact(self, arms: IntArray) -> FloatArray:
        out = np.empty(len(arms))
        self._weigh(exact_indices, arms, out)
        return out

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

    def _as_costs(self, inside: bool = False) -> Any:
        from semibandit.policies.linear.costs import LinearCosts

        return LinearCosts(self.matroid, self, inside=inside)

    def _told_costs(self, mirror: float) -> None:
        """Rewards will be `mirror` minus costs, linear in the features: learn -cost, unless something was learnt."""
        if self._posterior.meta[ROWS] == 0:
            self._shift[0] = mirror

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.matroid!r}, dimension={self.dimension}, t={self._t})"
