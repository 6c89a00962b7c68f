"""KL-OSM (Talebi and Proutiere 2016): KL-UCB indices over the bases of a matroid."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.engines import make_engine
from semibandit.engines.base import Engine
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid
from semibandit.policies.base import explain
from semibandit.policies.index.cucb import FEW_ARMS
from semibandit.policies.index.nonlinear import KL, Levels
from semibandit.policies.options import check_clock, check_step
from semibandit.policies.records import RecordPolicy


class KLOSM(RecordPolicy):
    """The base of largest KL-UCB index each round.

    The index of an arm with N rewards is the largest q with ``N kl(mean, q) <= log t + c log log t``, for Bernoulli
    divergence over rewards scaled to [0, 1]. Its regret matches the lower bound of `semibandit.paper.theory` for
    Bernoulli rewards and any matroid (Talebi and Proutiere 2016). An arm never pulled has an infinite index.

    Parameters
    ----------
    matroid
        What may be played together.
    reward_range
        Bounds (a, b) of every reward.
    loglog
        The c above; 3 in the analysis, 0 leaves the term out.
    clock
        ``"exact"``: every index is computed anew every round, O(K). ``"staircase"``: the right-hand side is rounded
        up to the next power of (1 + step)^2, so that between two steps only played arms have a new index and
        CUCB's engines find the base. ``"auto"``: the staircase from about 100 arms on.
    engine
        ``"auto"`` or a name in `semibandit.engines.ENGINES`.
    step
        Relative height of a stair, in terms of the width of a confidence interval.
    seed
        Accepted for symmetry with randomised policies; nothing is drawn.

    Cost: O(K) a round under the exact clock. Under the staircase that of CUCB with the same engine, and O(K) at each of
    its steps: some 150 in 10^6 rounds.

    Example
    -------
    >>> import semibandit as sb
    >>> policy = sb.KLOSM(sb.Uniform(n_arms=3, rank=1))
    >>> for reward in (1.0, 0.0, 0.0):
    ...     policy.update(policy.select(), [reward])
    >>> policy.select().tolist()
    [0]
    """

    name = "kl-osm"

    def __init__(
        self,
        matroid: Matroid,
        reward_range: Any = (0.0, 1.0),
        loglog: float = 3.0,
        clock: str = "exact",
        engine: str = "auto",
        *,
        step: float = 0.01,
        seed: int | None = None,
    ) -> None:
        super().__init__(matroid, reward_range)
        if not (np.isfinite(loglog) and loglog >= 0.0):
            raise ParameterError(f"loglog must be finite and nonnegative, got {loglog}")
        self.loglog = float(loglog)
        self.step = check_step(step)
        self.seed = seed
        self._asked = (check_clock(clock), engine)
        if clock == "auto":
            clock = "staircase" if engine != "resolve" and self.n_arms > FEW_ARMS else "exact"
        self.clock = clock
        self._levels = Levels(KL, self.n_arms, self.reward_range)
        self._engine, self._why = self._make_engine(matroid, self.records)

    def _make_engine(self, matroid: Matroid, records: Any) -> tuple[Engine, str]:
        engine = self._asked[1]
        if self.clock == "exact" and engine == "auto":
            made, _ = make_engine(matroid, records, "resolve", self.clock)
            return made, "every index changes every round; clock='staircase' allows a faster engine"
        return make_engine(matroid, records, engine, self.clock)

    def _level(self, t: int) -> float:
        """log t + c log log t, rounded up to a stair, never below an earlier one."""
        level = math.log(t)
        level += self.loglog * math.log(max(1.0, level))
        if self.clock == "staircase" and level > 0.0:
            if level <= self._levels.level:
                return self._levels.level
            height = 2.0 * math.log1p(self.step)
            power = math.ceil(math.log(level) / height)
            stair = math.exp(power * height)
            level = stair if stair >= level else math.exp((power + 1) * height)
        return level

    def select(self, exclude: Any = None) -> IntArray:
        """The base of largest index, ascending ids; avoids the arms in `exclude` (they are backfilled)."""
        t = self._t + 1
        self._engine._lam = lam = self._levels.move(self._engine, self._level(t))
        arms = self._engine._select(lam) if exclude is None else self._engine.base_excluding(exclude)
        self._t = t
        return arms

    def _update(self, arms: IntArray, rewards: FloatArray) -> None:
        code = self._levels.observe(self._engine, arms, rewards)
        if code:
            raise explain(code, arms, rewards, self.n_arms, *self.reward_range)

    def grow(self, matroid: Matroid) -> None:
        """Go on with a larger ground set, as `CUCB.grow`. O(K)."""
        records = self._grown_records(matroid)
        engine, why = self._make_engine(matroid, records)
        engine._lam = self._engine.lam
        if len(self._engine.deleted):
            engine.delete(self._engine.deleted)
        self.matroid, self.n_arms, self.records = matroid, matroid.n_arms, records
        self._engine, self._why = engine, why

    @property
    def confidence_width(self) -> float:
        """The right-hand side of the condition on N kl in the last round."""
        return self._levels.level

    def _arguments(self) -> dict[str, Any]:
        return {
            "reward_range": self.reward_range,
            "loglog": self.loglog,
            "clock": self._asked[0],
            "engine": self._asked[1],
            "step": self.step,
            "seed": self.seed,
        }

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), **self._levels.state()}

    def _set_state(self, state: dict[str, Any]) -> None:
        self._levels.set_state(state)
        super()._set_state(state)

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "clock": self.clock}

    def __repr__(self) -> str:
        return f"KLOSM({self.matroid!r}, engine={self.engine!r}, clock={self.clock!r}, t={self._t})"
