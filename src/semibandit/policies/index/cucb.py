"""CUCB (Gai et al. 2012; Chen et al. 2013; Kveton et al. 2014), Eq. (combucb) of the paper."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.checks import as_flag, as_number, one_of
from semibandit.engines import choose_clock, make_engine
from semibandit.engines.clock import new_clock, stair_at_least
from semibandit.errors import ClockError, ParameterError
from semibandit.matroids import Matroid
from semibandit.policies.catalogue import register
from semibandit.policies.decisions import Ends
from semibandit.policies.index.few import begin_round, ends_of, indices_of
from semibandit.policies.index.formulas import UCB
from semibandit.policies.index.nonlinear import (
    NonlinearIndex,
    index_kind,
    rewrite_in_index,
    wait_in_index,
)
from semibandit.policies.prior import Prior
from semibandit.policies.records import ClockPolicy, EnginePolicy
from semibandit.policies.rounds import CompiledRounds
from semibandit.policies.schedules import as_schedule, as_text
from semibandit.policies.straight import Place

CLOCKS = ("exact", "staircase", "auto")
EXPLORATIONS = ("theorem", "practical")

# The factor of the paper's Theorem 5.1.
THEOREM = 1.5

# With no more arms than this, going through them is cheaper than what a staircase saves.
FEW_ARMS = 100


def practical_exploration(
    reward_range: tuple[float, float], n_arms: int, rank: int, prior: Prior | None
) -> tuple[float, float]:
    """What ``exploration="practical"`` stands for: the factor under the root, and what is added to log t. O(K)."""
    low, high = reward_range
    unit = 0.25 if prior is None else prior.variance(low, high) / (high - low) ** 2
    return 2.0 * unit, math.log(n_arms / max(1, rank))


@register(
    cost="O(D log D + s log K) per round for s exchanges (uniform, partition); see `semibandit info`",
    guarantee="regret O(sum of log T / gap), for every matroid",
    reference="Gai et al. 2012; Chen et al. 2013; Kveton et al. 2014",
    take="when a bound must be promised; with a prior and exploration=practical when rewards are rare",
)
class CUCB(ClockPolicy):
    """Optimism in the face of uncertainty over the bases of a matroid.

    Round t plays the maximum-weight base under the index ``mean + sqrt(exploration (b-a)^2 log t / N)``, ties by
    smaller arm id. An arm never pulled has an infinite index, so all arms are covered in about K / D rounds and arms
    in no base (loops) are never waited for.

    Parameters
    ----------
    matroid
        What may be played together.
    reward_range
        Bounds (a, b) of every reward.
    exploration
        ``"theorem"``: the factor 1.5 of the paper's Theorem 5.1 under the root. 0.5 gives the radius
        sqrt(log t / (2N)) of Wang and Chen (2018) for rewards in [0, 1]. ``"practical"``: the index is
        ``mean + sqrt(2 V (log t + log(K / D)) / N)``, where V is the variance that the prior's mean allows a reward, or
        (b-a)^2 / 4 without a prior; no theorem, but what to begin with where rewards are rare (docs/which-policy.md).
    clock
        ``"exact"``: log t itself. ``"staircase"``: the width is rounded up to the next power of ``1 + step``, so
        that between two steps only played arms change weight; at most ``1 + step`` too wide. ``"auto"`` takes the
        staircase only where it makes the fast engine possible.
    engine
        ``"auto"`` or a name in `semibandit.engines.ENGINES`. All engines make the same decisions.
    step
        Relative height of a stair.
    schedule
        Another confidence width ``lam(t)`` in place of ``sqrt(exploration (b-a)^2 log t)``; the index is
        then ``mean + lam(t) / sqrt(N)``. Finite, nonnegative, and nondecreasing unless the engine is ``"resolve"``. A
        function of the round, or a name such as ``"log(0.5)"`` (`semibandit.schedules`), which can be saved.
    index
        ``"ucb"``, or ``"ucb-v"``: ``mean + sqrt(2 V L / N) + 3 (b-a) L / N`` with the empirical variance V and
        L = exploration log t (Audibert, Munos and Szepesvari 2009).
    prior
        ``(mean, strength)``: what is believed of arms before they are played, worth `strength` plays; one number each
        or one per arm (`beta_prior`, `fit_prior`). N and the mean of the index then count the prior, so an arm never
        played is not tried at all costs. None: an arm never played comes first.
    clip
        Whether the index ``"ucb"`` is cut off at b, as no mean can be larger. Ties at b go to the smaller arm id.
    ties
        ``"id"``: of arms never seen the smaller id comes first. ``"random"``: they come in a random order that follows
        from `seed`, at no cost in a round (`policies.ties`).
    outside
        ``"error"``: rewards outside the range are refused. ``"clip"``: they are moved to its nearer end and counted
        (`clipped`); what is learnt are the means of clipped rewards.
    seed
        Of random ties; CUCB draws nothing else.

    Cost: O(D log D + s log K) per round with s exchanges for uniform, partition and laminar matroids; O(D) in quiet
    rounds for graphic and transversal ones with a staircase; `describe` tells which. O(1) to O(log K) per arm updated.
    The variants ``"ucb-v"`` and `clip` compute all K indices at the steps of a staircase; under the exact clock bounds
    of all of them about as often, and the indices of a few times D arms a round.

    Example
    -------
    >>> import semibandit as sb
    >>> policy = sb.CUCB(sb.Uniform(n_arms=4, rank=2))
    >>> arms = policy.select()
    >>> arms.tolist()
    [0, 1]
    >>> policy.update(arms, [1.0, 0.0])
    >>> policy.select().tolist()
    [2, 3]
    """

    name = "cucb"

    def __init__(
        self,
        matroid: Matroid,
        *,
        reward_range: tuple[float, float] = (0.0, 1.0),
        exploration: float | str = 1.5,
        clock: str = "exact",
        engine: str = "auto",
        step: float = 0.01,
        schedule: Callable[[int], float] | str | None = None,
        index: str = "ucb",
        clip: bool = False,
        prior: Any = None,
        ties: str = "id",
        outside: str = "error",
        seed: int | None = 0,
    ) -> None:
        super().__init__(matroid, reward_range=reward_range, outside=outside, seed=seed)
        clip = as_flag(clip, "clip")
        kind = index_kind(index, clip)
        self._believe(prior)
        self._asked_exploration = exploration
        self.exploration, ahead = self._choose_exploration(exploration)
        self._break_ties(ties)
        self.step = as_number(step, "step", 0.0, 1.0, closed=False)
        self.schedule = as_schedule(schedule)
        self._asked = (one_of(clock, "clock", CLOCKS), engine)
        self.index = index
        self.clip = clip
        self.clock = self._choose_clock(clock, engine, kind)
        low, high = self.reward_range
        self._clock = new_clock(
            self.exploration * (high - low) ** 2, self.step if self.clock == "staircase" else 0.0, ahead
        )
        self._index = (
            None if kind == UCB else NonlinearIndex(kind, self.n_arms, (low, high), self._clock, self._first)
        )
        self._engine, self._why = make_engine(matroid, self.records, engine, self.clock)
        self._open()

    def _choose_exploration(self, exploration: float | str) -> tuple[float, float]:
        """The factor under the root, and what is added to log t."""
        if isinstance(exploration, str) and exploration not in EXPLORATIONS:
            names = " or ".join(map(repr, EXPLORATIONS))
            raise ParameterError(f"exploration must be a number, {names}, got {exploration!r}")
        if exploration == "practical":
            return practical_exploration(self.reward_range, self.n_arms, self.matroid.rank, self._prior)
        return as_number(THEOREM if exploration == "theorem" else exploration, "exploration", 0.0), 0.0

    def _choose_clock(self, clock: str, engine: str, kind: int) -> str:
        if clock != "auto":
            return clock
        if kind != UCB:
            return "staircase" if engine != "resolve" and self.n_arms > FEW_ARMS else "exact"
        return choose_clock(self.matroid, engine)

    def _make_own(self) -> Any:
        return super()._make_own() if self._index is None else self._index.own

    def compiled_rounds(self) -> CompiledRounds | None:
        return super().compiled_rounds() if self.schedule is None else None

    def _queried_by_kernels(self) -> bool:
        return self.schedule is None and type(self)._query is CUCB._query

    def _query(self, t: int) -> float:
        if self.schedule is None:
            return super()._query(t) if self._index is None else EnginePolicy._query(self, t)
        lam = float(self.schedule(t))
        if not (0.0 <= lam < np.inf):
            raise ClockError(f"schedule({t}) = {lam}: the confidence width must be finite and nonnegative")
        if self.clock == "staircase" and lam > 0.0:
            lam = float(stair_at_least(lam, self.step))
        if self._index is None:
            self._engine.advance(lam)
            return lam
        query = self._index.write(self._aside, lam)
        self._hand_on()
        return query

    def _begin_round(self, t: int) -> None:
        if self._index is None or self.schedule is not None:
            super()._begin_round(t)
        else:
            begin_round(self, t)

    def _weights_of(self, arms: IntArray) -> FloatArray:
        return super()._weights_of(arms) if self._index is None else indices_of(self, arms)

    def _likely(self, arms: IntArray, scores: FloatArray) -> Ends:
        return super()._likely(arms, scores) if self._index is None else ends_of(self, arms, scores)

    def _update(self, arms: IntArray, rewards: FloatArray) -> None:
        if self._index is not None:
            EnginePolicy._update(self, arms, rewards)
            return
        ClockPolicy._update(self, arms, rewards)

    def _wait(self, arms: IntArray, change: int) -> None:
        if self._index is None:
            super()._wait(arms, change)
        else:
            wait_in_index(self, arms, change)

    def _at_once(self) -> IntArray | None:
        return super()._at_once() if self._index is None else None

    def _learns_at_once(self) -> IntArray | None:
        return super()._learns_at_once() if self._index is None else None

    def _reset(self, ids: IntArray) -> None:
        super()._reset(ids)
        if self._index is not None:
            self._index.reset(ids)
            rewrite_in_index(self, ids)

    def _query_at(self) -> Place:
        return super()._query_at() if self._index is None else self._index.query_at

    def _counts_straight(self) -> bool:
        return self._index is None and super()._counts_straight()

    def grow(self, matroid: Matroid) -> None:
        """Go on with a larger ground set: arms 0 .. n_arms - 1 stay what they are, the others are new.

        `matroid` must be of the same class with at least as many arms; that it agrees with the old one on the old arms
        is the caller's affair. O(K) for the new K: let the ground set double and `delete` the arms that are not there
        yet, and each arm costs O(1) amortised; bringing one in is then an `insert`.
        """
        records = self._grown_records(matroid)
        engine, why = self._grown_engine(matroid, records, self._asked[1], self.clock)
        if self._index is not None:
            index = NonlinearIndex(
                self._index.own.kind, matroid.n_arms, self.reward_range, self._clock, self._first
            )
            index.copy_from(self._index)
            self._index = index
        self.matroid, self.n_arms, self.records = matroid, matroid.n_arms, records
        self._engine, self._why = engine, why
        self._open()

    @property
    def confidence_width(self) -> float:
        """lam of the last round: the index is ``mean + lam / sqrt(N)``."""
        if self.schedule is None:
            return super().confidence_width
        return self._engine.lam if self._index is None else self._index.level

    def _arguments(self) -> dict[str, Any]:
        return {
            **super()._arguments(),
            "exploration": self._asked_exploration,
            "clock": self._asked[0],
            "engine": self._asked[1],
            "step": self.step,
            "schedule": as_text(self.schedule),
            "index": self.index,
            "clip": self.clip,
            "prior": self.prior,
            "ties": self.ties,
        }

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), **({} if self._index is None else self._index.state())}

    def _set_state(self, state: dict[str, Any]) -> None:
        if self._index is not None:
            self._index.set_state(state)
        super()._set_state(state)

    def _check(self) -> None:
        """Assert all invariants. O(K)."""
        self._engine._check()
        if self._index is not None:
            self._index.check(self._recs)

    def describe(self) -> dict[str, Any]:
        about = {**super().describe(), "clock": self.clock}
        if self._index is not None:
            about["index"] = "ucb, clipped" if self.clip else self.index
            about["bytes"] += self._index.memory()
            about["bytes_per_arm"] = about["bytes"] / self.n_arms
        return about

    def __repr__(self) -> str:
        return f"CUCB({self.matroid!r}, engine={self._engine.name!r}, clock={self.clock!r}, t={self._t})"
