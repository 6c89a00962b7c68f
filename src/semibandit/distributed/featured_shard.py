"""A shard of a policy with features: it holds the rows of its own arms, and is told theta.

The posterior is one for all arms and lives with the coordinator, who learns from all feedback. What comes with a
question is all that rounds need of it: theta, drawn or the mean, the root of the precision, and how often it has
changed. Indices are sums of one row in one order, so that a shard's are those of one process, bit for bit; widths that
are known to a shard bound later ones, as in one process (`policies.linear.rounds`), and so do its short lists of arms.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from semibandit.arms import COUNT, TOTAL, FloatArray, IntArray
from semibandit.distributed.shard import Clock, Shard, Snapshot, Spec
from semibandit.distributed.split import Ids
from semibandit.policies.catalogue import policy_class
from semibandit.policies.linear.policy import LinearPolicy
from semibandit.policies.linear.posterior import INVERTED, ROWS, SOLVED, VERSION, WAITING, solve
from semibandit.policies.linear.weighing import begin


def tell(policy: LinearPolicy, again: bool = False) -> Clock:
    """What a shard must know of the posterior; with `again` only the theta of one round more. O(d^2)."""
    p = policy._posterior
    if again:
        return (p.drawn.copy(),)
    policy._of_posterior(solve)
    waiting, rows, version = (int(p.meta[at]) for at in (WAITING, ROWS, VERSION))
    return p.drawn.copy(), p.theta, p.root, p.tight if waiting else None, waiting, rows, version


class FeaturedShard(Shard):
    """A shard whose policy is a `LinearPolicy` that is told its posterior."""

    policy: LinearPolicy

    def __init__(self, spec: Spec, snapshot: Snapshot | None = None) -> None:
        self._known_version = -1
        super().__init__(spec, snapshot)
        self.spec = replace(spec, parts=None, options={})  # the rows are the policy's now
        self._listen()

    def _listen(self) -> None:
        self.policy._led = True
        self.policy._open()

    def _make(self, parts: Any) -> None:
        # Parts may bring their features along, so that nobody has to hold all of them.
        if "features" in parts:
            self.spec = replace(self.spec, options={**self.spec.options, "features": parts["features"]})
            parts = {key: value for key, value in parts.items() if key != "features"}
        super()._make(parts)

    # -- deeds -------------------------------------------------------------------------------------------

    def _do_update(self, arms: IntArray, rewards: FloatArray) -> None:
        # One after the other, as a kernel does: an arm may be named twice.
        places, recs = self._own(arms), self.policy._recs
        np.add.at(recs[:, COUNT], places, 1.0)
        np.add.at(recs[:, TOTAL], places, rewards)

    def _do_stretch(self, factor: float) -> None:
        """Widths may have grown by this factor. O(n)."""
        self.policy._stretch_bounds(factor)

    def _do_reset(self, arms: IntArray, rows: FloatArray | None = None) -> None:
        places = self._own(arms)
        if rows is not None:
            self.policy.reset(places, rows)
            return
        self.policy._reset(places)
        if self.policy._fixed:
            self.policy._widen_bounds(places)

    def _do_grow(self, parts: Any, ids: Ids, rows: FloatArray | None = None) -> None:
        more = Ids(*ids).size - self.policy.n_arms
        self._rows = None if rows is None or more <= 0 else np.array(rows[len(rows) - more :])
        super()._do_grow(parts, ids)
        self._listen()
        self._known_version = -1

    def _become(self, matroid: Any) -> None:
        self.policy.grow(matroid, self._rows)

    # -- rounds ------------------------------------------------------------------------------------------

    def _hear(self, clock: Clock) -> None:
        p = self.policy._posterior
        p.drawn[:] = clock[0]
        if len(clock) == 1:
            return
        _, theta, root, tight, waiting, rows, version = clock
        p.meta[[SOLVED, WAITING, ROWS, VERSION]] = 1, waiting, rows, version
        if version != self._known_version:
            p.theta[:], p.root[:] = theta, root
            if tight is not None:
                p.tight[:] = tight
            p.meta[INVERTED] = 0
            self._known_version = version

    def _begin(self, t: int, clock: Clock) -> None:
        self._hear(clock)
        self.policy._weigh(begin)
        self.policy._t = t

    def play(self, *asked: Any) -> list[tuple[Any, ...]]:
        *rest, table = asked
        with self.policy._given_table(table, None):
            return super().play(*rest)

    def among(self, t: int, clock: Clock, arms: IntArray, *asked: Any) -> tuple[Any, ...]:
        *rest, table = asked
        with self.policy._given_table(table, self._own(arms)):
            return super().among(t, clock, arms, *rest)

    def weigh(self, *asked: Any) -> tuple[Any, ...]:
        *rest, table = asked
        with self.policy._given_table(table, None):
            return super().weigh(*rest)

    def account(
        self, t: int, clock: Clock, arms: IntArray, table: FloatArray | None = None
    ) -> tuple[Any, ...]:
        with self.policy._given_table(table, self._own(arms)):
            return super().account(t, clock, arms)

    def _answer(self, places: IntArray, *about: Any) -> tuple[Any, ...]:
        """And the rows of these arms, which whoever learns must know; None if they came with the question."""
        rows = self.policy._features[places] if self.policy._fixed else None
        return *super()._answer(places, *about), rows

    # -- other questions ---------------------------------------------------------------------------------

    def rows(self, arms: IntArray) -> FloatArray:
        """The features of these arms."""
        return self.policy._features[self._own(arms)]

    def dimension(self) -> int:
        """Of the features."""
        return self.policy.dimension

    def check(self) -> None:
        """Assert what holds without a posterior of its own. O(n)."""
        if self.policy._scanned:
            assert np.array_equal(self.policy._here, self.policy._presence.mask)

    def _whole(self) -> tuple[dict[str, Any], dict[str, Any]]:
        # The plays that wait are the coordinator's: a shard is told of them with the next question.
        self.policy._posterior.meta[WAITING], self._known_version = 0, -1
        return super()._whole()


def make_shard(spec: Spec, snapshot: Snapshot | None = None) -> Shard:
    """The shard of a spec. O(n)."""
    cls: Any = policy_class(spec.policy)
    featured = isinstance(cls, type) and issubclass(cls, LinearPolicy)
    return (FeaturedShard if featured else Shard)(spec, snapshot)
