"""Sharded policies with features: shards hold the rows of their arms, the coordinator the posterior.

A round: theta (and the root of the precision) to the shards, their bases with indices and rows back. Feedback is learnt
by the coordinator, from the rows that came with the base; shards count it. So a shard's work is the pass over its own
rows, O(K d / n), which shards do at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray, IntArray
from semibandit.checks import as_arms, as_seed, explain, finite_ends
from semibandit.distributed.featured_guide import FIXED, GIVEN, ONE_EACH, FeaturedGuide
from semibandit.distributed.sharded import Sharded
from semibandit.distributed.split import Ids
from semibandit.engines.kernels import check_feedback
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid
from semibandit.policies.linear.deciding import Deciding
from semibandit.policies.linear.features import as_rows, require_finite
from semibandit.policies.linear.waiting import WaitingRows


class ShardedFeatures(Deciding, Sharded):
    """`Sharded` for `CombLinTS` and `CombLinUCB`; what `Sharded` makes for these.

    Options are those of the policy: `features`, one row per arm, of which each shard gets those of its arms; or
    `dimension`, for features that come with each call, of which each shard is sent its rows. From parts
    (`Sharded.from_parts`) features are an entry ``features`` of each part.

    >>> import numpy as np, semibandit as sb
    >>> from semibandit.distributed import Sharded
    >>> phi = np.random.default_rng(0).normal(size=(1000, 3))
    >>> m = sb.Uniform(n_arms=1000, rank=2)
    >>> many = Sharded(m, policy="comb-lin-ts", shards=4, features=phi, seed=1)
    >>> one = sb.CombLinTS(m, features=phi, seed=1)
    >>> for _ in range(20):
    ...     arms = many.select()
    ...     assert (arms == one.select()).all()
    ...     for each in (many, one):
    ...         each.update(arms, (arms % 10) / 10)
    >>> bool((many.theta == one.theta).all())
    True
    """

    unbounded = True
    _guides = FeaturedGuide
    _guide: FeaturedGuide
    _kept: WaitingRows | None = None
    # Rows of arms that shards answered with last: what is played is learnt soon after.
    _seen: tuple[IntArray, FloatArray] | None = None

    @property
    def dimension(self) -> int:  # type: ignore[override]
        """The length of a row of features."""
        return self._guide.dimension

    @property
    def contextual(self) -> bool:  # type: ignore[override]
        """Whether features come with each call."""
        return self._guide.kind == GIVEN

    @property
    def theta(self) -> FloatArray:
        """Posterior mean of the coefficients. O(d^2)."""
        return self._guide.policy.theta  # type: ignore[no-any-return]

    @property
    def covariance(self) -> FloatArray:
        """Posterior covariance of the coefficients, without the plays that wait. O(d^3)."""
        return self._guide.policy.covariance  # type: ignore[no-any-return]

    @property
    def confidence_width(self) -> float:
        """How many standard deviations the index is above the mean; 0 where theta is drawn."""
        return float(self._guide.policy._width)

    @property
    def _fixed(self) -> bool:  # type: ignore[override]
        return self._guide.kind != GIVEN

    @property
    def _rows_of(self) -> WaitingRows:  # type: ignore[override]
        if self._kept is None:
            self._kept = WaitingRows(self.dimension)
        return self._kept

    # -- rounds ------------------------------------------------------------------------------------------

    def select(  # type: ignore[override]
        self,
        exclude: Any = None,
        *,
        among: Any = None,
        weights: Any = None,
        count: int | None = None,
        features: Any = None,
    ) -> Any:
        """As `Sharded.select`; `features` as in `CombLinTS.select`, the same for all rounds of `count`."""
        with self._given_table(features, among):
            return Sharded.select(self, exclude, among=among, weights=weights, count=count)

    def _play(self, exclude: Any, among: Any, weights: Any, count: int, account: bool) -> Any:
        if not self._fixed:
            if self._table is not None:
                require_finite(self._table)
            elif weights is None:
                raise ParameterError(
                    f"features must be given with each call of a policy made with dimension = {self.dimension}"
                )
        found = super()._play(exclude, among, weights, count, account)
        return found if not account else [self._better_known(one) for one in found]

    def _better_known(self, found: Any) -> Any:
        """Scores and likely ends as one process has them: its sums are those of all rows at once."""
        rows = self._rows_now(found.arms)
        if rows is None or found.account is None:
            return found
        _, mean, _, _, plays = found.account
        scores, low, high = self._guide.known_of(rows, mean)
        return found._replace(account=(scores, mean, low, high, plays))

    def _besides(self, shard: int, arms: IntArray | None = None) -> tuple[Any, ...]:
        if self._fixed or self._table is None:
            return (None,)
        if arms is not None:
            return (self._rows_now(arms),)
        return (self._table[self._split.ids(shard).all()],)

    def _heard(self, answers: Sequence[Sequence[Any]]) -> None:
        if self._fixed:
            every = [one for answer in answers for one in answer]
            arms = np.concatenate([one[0] for one in every])
            kept, first = np.unique(arms, return_index=True)
            self._seen = kept, np.concatenate([one[4] for one in every])[first]

    def _rows_now(self, arms: IntArray) -> FloatArray | None:
        if not self._fixed:
            return super()._rows_now(arms)
        if self._seen is not None:
            known, rows = self._seen
            at = np.searchsorted(known, arms)
            if len(known) and (known[np.minimum(at, len(known) - 1)] == arms).all():
                return rows[at]
        parted = self._split.parted(arms)
        told = self._crew.ask({i: ("rows", arms[at]) for i, at in parted})
        found = np.empty((len(arms), self.dimension))
        for i, at in parted:
            found[at] = told[i]
        return found

    # -- feedback ----------------------------------------------------------------------------------------

    def update(self, arms: npt.ArrayLike, rewards: npt.ArrayLike, features: Any = None) -> None:
        """Learn one reward for each named arm; `features` as in `CombLinTS.update`.

        Rows of arms that were not in the last rounds are asked for: a message to the shards that have them.
        """
        with self._given_rows(self._as_rows(arms, features)):
            Sharded.update(self, arms, rewards)

    def _update(self, arms: IntArray, rewards: FloatArray) -> None:
        low, high = finite_ends(self.reward_range)
        code = int(check_feedback(self.n_arms, arms, rewards, low, high))
        if code:
            raise explain(code, arms, rewards, self.n_arms, (low, high))
        rows = self._rows
        if rows is None and len(arms):
            if not self._fixed:
                raise ParameterError(
                    f"features must be given with rewards for a policy made with dimension = {self.dimension}: "
                    "one row per reward"
                )
            rows = self._rows_now(arms)
        self._crew.catch_up(len(arms))
        if rows is None or not len(arms):
            return
        self._guide.learn(rows, np.ascontiguousarray(rewards))
        for i, at in self._split.parted(arms):
            self._crew.tell(i, ("update", arms[at], rewards[at]), len(at))

    def _wait(self, arms: IntArray, change: int) -> None:
        if change > 0 and self._guide.heeds_waiting:
            rows = self._rows_now(arms)
            if rows is not None:
                self._guide.hold(rows)

    @contextmanager
    def _ending(self, rows: FloatArray | None, missing: Any) -> Iterator[None]:
        grown: list[float] = []
        with self._guide.ending(rows, missing, grown):
            yield
        if self._fixed and grown and grown[0] > 1.0:
            for i in range(self._split.shards):
                self._crew.tell(i, ("stretch", grown[0]), 1)

    # -- what is known -----------------------------------------------------------------------------------

    def _known_of(self, arms: IntArray) -> list[Any]:
        """As `Coordinator._known_of`, with what is likely as one process has it."""
        rows = self._rows_now(arms)
        parted = self._split.parted(arms)
        told = {
            i: (
                "account",
                self._t,
                self._guide.clock,
                arms[at],
                *(() if self._fixed or rows is None else (rows[at],)),
            )
            for i, at in parted
        }
        mean, plays = np.empty(len(arms)), np.empty(len(arms), dtype=np.int64)
        answers = self._crew.ask(told)
        for i, at in parted:
            _, mean[at], _, _, plays[at] = answers[i]
        if rows is None:
            nothing = np.full(len(arms), np.nan)
            return [nothing, mean, nothing, nothing, plays]
        scores, low, high = self._guide.known_of(rows, mean)
        return [scores, mean, low, high, plays]

    def _as_costs(self, inside: bool = False) -> Any:
        raise ParameterError("a sharded policy with features learns rewards: tell it -cost")

    # -- arms that come and go ---------------------------------------------------------------------------

    def reset(self, arms: Any, features: Any = None) -> None:
        """As `CombLinTS.reset`: count nothing for these arms any more; `features`: their new rows."""
        ids = as_arms(arms, self.n_arms)
        if features is None:
            Sharded.reset(self, ids)
            return
        if self._guide.kind != FIXED:
            raise ParameterError("features: this policy has no fixed ones that could be replaced")
        if len(np.unique(ids)) != len(ids):
            raise ParameterError("features: an arm is named twice, and can have one row only")
        rows = as_rows(features, len(ids), self.dimension)
        self._crew.catch_up(len(ids))
        for i, at in self._split.parted(ids):
            self._crew.tell(i, ("reset", ids[at], rows[at]), len(at))
        self._seen = None

    def _reset(self, ids: IntArray) -> None:
        super()._reset(ids)
        if self._guide.kind == ONE_EACH:
            self._guide.forget(ids)

    def reseed(self, seed: int) -> None:
        """Start the draws anew, which are the coordinator's."""
        self._guide.policy.reseed(as_seed(seed, none_is_zero=True))

    def grow(self, matroid: Matroid, features: Any = None) -> None:
        """As `CombLinTS.grow`: `features` are the rows of the new arms, where features are fixed. O(K)."""
        kind = self._guide.kind
        if self._ground.facts or kind == ONE_EACH:
            raise ParameterError("a policy made from parts, or whose arms are features, cannot grow")
        self._check_growth(matroid)
        old, more = self.n_arms, matroid.n_arms - self.n_arms
        if kind == GIVEN:
            if features is not None:
                raise ParameterError("features: this policy has no fixed ones")
            self._grow(matroid)
            return
        if features is None and more:
            raise ParameterError(f"features must be given: one row for each of the {more} new arms")
        rows = (
            np.empty((0, self.dimension))
            if features is None
            else as_rows(features, more, self.dimension, "new arm")
        )

        def of_new(ids: Ids) -> tuple[FloatArray]:
            arms = ids.all()
            return (rows[arms[arms >= old] - old],)

        if self._guide.table is not None:
            self._guide.table = np.concatenate((self._guide.table, rows))
        self._grow(matroid, of_new)

    # -- copies, files -----------------------------------------------------------------------------------

    def _learn_of_parts(self) -> None:
        if self._guide.kind == FIXED:
            sizes = self._crew.ask_all(("dimension",))
            if len(set(sizes)) > 1:
                raise ParameterError(f"parts have features of different lengths: {sizes}")
            self._guide.be_of(sizes[0])

    def _like_this(self) -> Any:
        other = super()._like_this()
        other._kept = WaitingRows.from_state(self._rows_of.state(), self.dimension)
        return other

    def _own_state(self) -> dict[str, Any]:
        return self._rows_of.state()

    def _set_own_state(self, state: dict[str, Any]) -> None:
        self._kept = WaitingRows.from_state(state, self.dimension)

    def describe(self) -> dict[str, Any]:
        """As `Sharded.describe`, and what features are."""
        policy = self._guide.policy
        return {
            **super().describe(),
            "features": self._guide.kind,
            "dimension": self.dimension,
            "noise": policy.noise,
            "prior_scale": policy.prior_scale,
        }
