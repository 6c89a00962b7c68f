"""What the coordinator keeps of a policy with features: the posterior, and no rows of arms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.distributed.featured_shard import tell
from semibandit.distributed.kinds import Guide
from semibandit.distributed.shard import Clock
from semibandit.distributed.split import Ids
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid, Uniform
from semibandit.policies.linear.features import ONE_HOT, as_rows
from semibandit.policies.linear.posterior import WAITING, hold_row, tighten
from semibandit.policies.linear.rounds import learn_rows
from semibandit.policies.linear.saving import forget, posterior_from, posterior_to
from semibandit.policies.linear.weighing import begin
from semibandit.policies.state import array_of

#: What features are: one row per arm that stays; every arm a feature of its own; with each call.
FIXED, ONE_EACH, GIVEN = "fixed", "one per arm", "with each call"


class FeaturedGuide(Guide):
    """A policy over a single arm that is told the rows of all: it draws, learns, and says what shards must know.

    `kind`: what features are; `table`: the rows of all arms, if the coordinator was given them.
    """

    def __init__(self, policy: Any, options: Mapping[str, Any], matroid: Matroid | None) -> None:
        given = dict(options)
        features, dimension = given.pop("features", None), given.get("dimension")
        self.table: FloatArray | None = None
        if isinstance(features, str):  # of a file
            self.kind = features
        elif dimension is not None:
            self.kind = GIVEN
            if features is not None:
                raise ParameterError(
                    "features are fixed, dimension is for features that come with each call: give one of them"
                )
        elif features is not None:
            self.kind = FIXED
            if matroid is None:
                raise ParameterError("features belong into the parts, where nobody holds all arms")
            self.table = as_rows(features, matroid.n_arms, None)
            given["dimension"] = self.table.shape[1]
        elif matroid is None:
            self.kind, given["dimension"] = FIXED, 1  # the parts will say
        else:
            self.kind, given["dimension"] = ONE_EACH, matroid.n_arms
            if matroid.n_arms > ONE_HOT:
                raise ParameterError(
                    f"features must be given, one row for each of the {matroid.n_arms} arms, or dimension if they "
                    f"come with each call; without them every arm is a feature of its own, for at most {ONE_HOT} arms"
                )
        super().__init__(policy, given, matroid)
        self.asked["features"] = self.kind

    @property
    def dimension(self) -> int:
        """Of features."""
        return int(self.policy.dimension)

    def be_of(self, dimension: int) -> None:
        """So long are the rows, as shards say that were made from parts."""
        self.asked["dimension"] = self.options["dimension"] = dimension
        self.policy = self.entry.factory(Uniform(1, 1), **self._alone())

    def options_for(self, ids: Ids | None) -> dict[str, Any]:
        """With the rows of its arms. O(n d)."""
        options = {key: value for key, value in self.options.items() if key != "dimension"}
        if self.kind == GIVEN:
            return {**options, "dimension": self.dimension}
        if self.table is not None and ids is not None:
            return {**options, "features": self.table[ids.all()]}
        if self.kind == ONE_EACH and ids is not None:
            return {**options, "features": np.eye(self.dimension)[ids.all()]}
        return options  # the rows are in the parts, or in a snapshot

    # -- rounds ------------------------------------------------------------------------------------------

    @property
    def clock(self) -> Clock:
        """What shards are told."""
        return tell(self.policy)

    def clocks(self, t: int, count: int, weighed: bool = False) -> tuple[Clock, ...]:
        rows = []
        for i in range(count):
            if not weighed:
                self.policy._weigh(begin)
            rows.append(tell(self.policy, again=i > 0))
        return tuple(rows)

    def mark(self) -> Any:
        return self.policy._rng.copy(), self.policy._posterior.drawn.copy()

    def go_back(self, mark: Any) -> None:
        self.policy._rng[:], self.policy._posterior.drawn[:] = mark

    # -- learning ----------------------------------------------------------------------------------------

    def learn(self, rows: FloatArray, rewards: FloatArray) -> None:
        """One reward for each row. O(n d^2)."""
        nobody = np.zeros(len(rows), dtype=np.int64)  # who it was, shards count
        self.policy._weigh(learn_rows, np.ascontiguousarray(rows), nobody, rewards, len(rows))

    @property
    def heeds_waiting(self) -> bool:
        """Whether plays that wait change anything."""
        return bool(self.policy._width > 0.0)

    def hold(self, rows: FloatArray) -> None:
        """Plays of these rows wait. O(n d^2)."""
        for row in rows:
            self.policy._of_posterior(hold_row, np.array(row), self.policy.noise)

    @contextmanager
    def ending(self, rows: FloatArray | None, missing: Any, grown: list[float]) -> Iterator[None]:
        """As `Deciding._ending`; by what factor widths may have grown is added to `grown`."""
        bounds = self.policy._bounds
        bounds[:] = 1.0  # of one arm, that nobody asks for: it is stretched as those of the shards must be
        with self.policy._ending(rows, missing):
            yield
        if len(bounds):
            grown.append(float(bounds[0]))

    def forget(self, arms: IntArray) -> None:
        """These arms, each a feature of its own, are new. O(n d), and O(d^3) if plays wait."""
        forget(self.policy._posterior, arms, self.policy.prior_scale)
        if self.policy._posterior.meta[WAITING]:
            self.policy._of_posterior(tighten)

    def known_of(self, rows: FloatArray, mean: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Scores and both ends of what is likely of arms with these rows and means. O(n d^2)."""
        policy, all_of_them = self.policy, np.arange(len(rows))  # who they are, it does not ask
        with self._shown(rows):
            scores = policy._scores(all_of_them)
            return scores, *policy._likely(all_of_them, scores)(mean)

    @contextmanager
    def _shown(self, rows: FloatArray) -> Iterator[None]:
        self.policy._table = np.ascontiguousarray(rows)
        try:
            yield
        finally:
            self.policy._table = None

    # -- files -------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        return {**posterior_to(self.policy._posterior), "rng": self.policy._rng}

    def set_state(self, state: dict[str, Any]) -> None:
        found = posterior_from(state, self.dimension)
        rng = array_of(state, "rng", np.uint64, 1)
        for mine, theirs in zip(self.policy._posterior, found, strict=True):
            mine[:] = theirs
        self.policy._rng[:] = rng

    def clone(self) -> Self:
        other = type(self).__new__(type(self))
        vars(other).update(vars(self))
        other.options, other.asked = dict(self.options), dict(self.asked)
        other.policy = self.entry.factory(Uniform(1, 1), **self._alone())
        other.set_state({name: np.array(part) for name, part in self.state().items()})
        return other
