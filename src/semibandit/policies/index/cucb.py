"""CUCB (Gai et al. 2012; Chen et al. 2013; Kveton et al. 2014), Eq. (combucb) of the paper."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.engines import choose_clock, make_engine
from semibandit.engines.base import Engine
from semibandit.engines.clock import new_clock, tick
from semibandit.errors import ClockError, ParameterError
from semibandit.matroids import Matroid
from semibandit.policies.base import explain
from semibandit.policies.index.nonlinear import UCB, Levels, level_kind
from semibandit.policies.options import check_clock, check_exploration, check_step
from semibandit.policies.records import RecordPolicy
from semibandit.policies.rounds import CompiledRounds
from semibandit.policies.state import array_of

# With no more arms than this, going through them is cheaper than what a staircase saves.
FEW_ARMS = 100


class CUCB(RecordPolicy):
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
        The factor 1.5 of the paper's Theorem 5.1 under the root; 0.5 gives the radius sqrt(log t / (2N)) of
        Wang and Chen (2018) for rewards in [0, 1].
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
        then ``mean + lam(t) / sqrt(N)``. Finite, nonnegative, and nondecreasing unless the engine is ``"resolve"``.
    index
        ``"ucb"``, or ``"ucb-v"``: ``mean + sqrt(2 V L / N) + 3 (b-a) L / N`` with the empirical variance V and
        L = exploration log t (Audibert, Munos and Szepesvari 2009).
    clip
        Whether the index ``"ucb"`` is cut off at b, as no mean can be larger. Ties at b go to the smaller arm id.
    seed
        Accepted for symmetry with randomised policies; CUCB draws nothing.

    Cost: O(D log D + s log K) a round with s exchanges for uniform, partition and laminar matroids; O(D) in quiet
    rounds for graphic and transversal ones with a staircase; `describe` tells which. O(1) to O(log K) an arm updated.
    The variants ``"ucb-v"`` and `clip` compute all K indices whenever the clock moves: every round under the exact
    clock, at its steps under the staircase.

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
        reward_range: Any = (0.0, 1.0),
        exploration: float = 1.5,
        clock: str = "exact",
        engine: str = "auto",
        seed: int | None = None,
        *,
        step: float = 0.01,
        schedule: Callable[[int], float] | None = None,
        index: str = "ucb",
        clip: bool = False,
    ) -> None:
        super().__init__(matroid, reward_range)
        kind = level_kind(index, clip)
        check_clock(clock)
        if schedule is not None and not callable(schedule):
            raise ParameterError(f"schedule must be a function of the round, got {schedule!r}")
        self.exploration = check_exploration(exploration)
        self.step = check_step(step)
        self.schedule = schedule
        self.seed = seed
        self._asked = (clock, engine)
        self.index = index
        self.clip = bool(clip)
        self._levels = None if kind == UCB else Levels(kind, self.n_arms, self.reward_range)
        self.clock = self._choose_clock(clock, engine)
        self._engine, self._why = self._make_engine(matroid, self.records, engine)
        low, high = self.reward_range
        self._clock = new_clock(
            self.exploration * (high - low) ** 2, self.step if self.clock == "staircase" else 0.0
        )

    def _choose_clock(self, clock: str, engine: str) -> str:
        if clock != "auto":
            return clock
        if self._levels is not None:  # every index changes with every tick, whatever the engine
            return "staircase" if engine != "resolve" and self.n_arms > FEW_ARMS else "exact"
        return choose_clock(self.matroid, engine)

    def _make_engine(self, matroid: Matroid, records: Any, engine: str) -> tuple[Engine, str]:
        if self._levels is not None and self.clock == "exact" and engine == "auto":
            made, _ = make_engine(matroid, records, "resolve", self.clock)
            return made, "every index changes every round; clock='staircase' allows a faster engine"
        return make_engine(matroid, records, engine, self.clock)

    def compiled_rounds(self) -> CompiledRounds | None:
        if type(self) is not CUCB or self.schedule is not None or self._levels is not None:
            return None
        return self._rounds_of(self._engine)

    def select(self, exclude: Any = None) -> IntArray:
        """The base of largest index, ascending ids; avoids the arms in `exclude` (they are backfilled)."""
        t = self._t + 1
        lam = tick(self._clock, t) if self.schedule is None else self._scheduled(t)
        if self._levels is not None:
            lam = self._levels.move(self._engine, lam)
        if exclude is None:
            if self._engine._lam > lam:
                self._engine.advance(lam)
            self._engine._lam = lam
            arms = self._engine._select(lam)
        else:
            self._engine.advance(lam)
            arms = self._engine.base_excluding(exclude)
        self._t = t
        return arms

    def _scheduled(self, t: int) -> float:
        assert self.schedule is not None
        lam = float(self.schedule(t))
        if not (0.0 <= lam < np.inf):
            raise ClockError(f"schedule({t}) = {lam}: the confidence width must be finite and nonnegative")
        if self.clock == "staircase" and lam > 0.0:
            lam = (1.0 + self.step) ** np.ceil(np.log(lam) / np.log1p(self.step))
        return float(lam)

    def _update(self, arms: IntArray, rewards: FloatArray) -> None:
        low, high = self.reward_range
        if self._levels is None:
            code = self._engine.observe(arms, rewards, low, high)
        else:
            code = self._levels.observe(self._engine, arms, rewards)
        if code:
            raise explain(code, arms, rewards, self.n_arms, low, high)

    def grow(self, matroid: Matroid) -> None:
        """Go on with a larger ground set: arms 0 .. n_arms - 1 stay what they are, the others are new.

        `matroid` must be of the same class with at least as many arms; that it agrees with the old one on the old arms
        is the caller's affair. O(K) for the new K: let the ground set double and `delete` the arms that are not there
        yet, and each arm costs O(1) amortised; bringing one in is then an `insert`.
        """
        records = self._grown_records(matroid)
        engine, why = self._make_engine(matroid, records, self._asked[1])
        engine.advance(self._engine.lam)
        if len(self._engine.deleted):
            engine.delete(self._engine.deleted)
        if self._levels is not None:
            levels = Levels(self._levels.kind, matroid.n_arms, self.reward_range)
            levels.copy_from(self._levels)
            self._levels = levels
        self.matroid, self.n_arms, self.records = matroid, matroid.n_arms, records
        self._engine, self._why = engine, why

    @property
    def confidence_width(self) -> float:
        """lam of the last round: the index is ``mean + lam / sqrt(N)``."""
        if self.schedule is None:
            return super().confidence_width
        return self._engine.lam if self._levels is None else self._levels.level

    def _arguments(self) -> dict[str, Any]:
        return {
            "reward_range": self.reward_range,
            "exploration": self.exploration,
            "clock": self._asked[0],
            "engine": self._asked[1],
            "seed": self.seed,
            "step": self.step,
            "schedule": self.schedule,
            "index": self.index,
            "clip": self.clip,
        }

    def _state(self) -> dict[str, Any]:
        state = {**super()._state(), "clock": self._clock}
        if self._levels is not None:
            state |= self._levels.state()
        return state

    def _set_state(self, state: dict[str, Any]) -> None:
        self._clock[:] = array_of(state, "clock", np.float64, 4)
        if self._levels is not None:
            self._levels.set_state(state)
        super()._set_state(state)

    def describe(self) -> dict[str, Any]:
        about = {**super().describe(), "clock": self.clock}
        if self._levels is not None:
            about["index"] = "ucb, clipped" if self.clip else self.index
            about["bytes"] += self._levels.memory()
            about["bytes_per_arm"] = about["bytes"] / self.n_arms
        return about

    def __repr__(self) -> str:
        return f"CUCB({self.matroid!r}, engine={self._engine.name!r}, clock={self.clock!r}, t={self._t})"
