"""KL-OSM (Talebi and Proutiere 2016): KL-UCB indices over the bases of a matroid."""

from __future__ import annotations

from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.checks import as_number, one_of
from semibandit.engines import make_engine
from semibandit.engines.clock import N_CLOCK, new_clock
from semibandit.matroids import Matroid
from semibandit.policies.catalogue import register
from semibandit.policies.decisions import Ends
from semibandit.policies.index.cucb import CLOCKS, FEW_ARMS
from semibandit.policies.index.few import begin_round, ends_of, indices_of
from semibandit.policies.index.formulas import KL
from semibandit.policies.index.nonlinear import NonlinearIndex, rewrite_in_index, wait_in_index
from semibandit.policies.records import EnginePolicy
from semibandit.policies.state import array_of
from semibandit.policies.straight import Place


@register(
    cost="bounds of all indices at times, indices of a few times D arms a round; else that of cucb",
    guarantee="asymptotically optimal for Bernoulli rewards, for every matroid",
    reference="Talebi and Proutiere 2016",
    take="when rewards are 0 or 1 and the smallest regret of long runs counts",
)
class KLOSM(EnginePolicy):
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
        ``"exact"``: log t itself. ``"staircase"``: the right-hand side is rounded up to the next power of
        (1 + step)^2, so that between two steps only played arms have a new index. ``"auto"``: the staircase from
        about 100 arms on.
    engine
        ``"auto"`` or a name in `semibandit.engines.ENGINES`.
    step
        Relative height of a stair, in terms of the width of a confidence interval.
    prior, ties, seed
        As in `CUCB`.

    Cost: that of CUCB with the same engine. Under the staircase also all K indices at each of its steps, some 150 in
    10^6 rounds. Under the exact clock the indices of a few times D arms and a few answers of the engine a round, and
    bounds of all K, about as often as a staircase steps (`semibandit.policies.index.nonlinear`).

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
        *,
        reward_range: tuple[float, float] = (0.0, 1.0),
        loglog: float = 3.0,
        clock: str = "exact",
        engine: str = "auto",
        step: float = 0.01,
        prior: Any = None,
        ties: str = "id",
        outside: str = "error",
        seed: int | None = 0,
    ) -> None:
        super().__init__(matroid, reward_range=reward_range, outside=outside, seed=seed)
        self._believe(prior)
        self._break_ties(ties)
        self.loglog = as_number(loglog, "loglog", 0.0)
        self.step = as_number(step, "step", 0.0, 1.0, closed=False)
        self._asked = (one_of(clock, "clock", CLOCKS), engine)
        if clock == "auto":
            clock = "staircase" if engine != "resolve" and self.n_arms > FEW_ARMS else "exact"
        self.clock = clock
        self._clock: FloatArray = new_clock(self.loglog, self.step if clock == "staircase" else 0.0)
        self._index = NonlinearIndex(KL, self.n_arms, self.reward_range, self._clock, self._first)
        self._engine, self._why = make_engine(matroid, self.records, engine, clock)
        self._open()

    def _make_own(self) -> Any:
        return self._index.own

    def _begin_round(self, t: int) -> None:
        begin_round(self, t)

    def _weights_of(self, arms: IntArray) -> FloatArray:
        return indices_of(self, arms)

    def _likely(self, arms: IntArray, scores: FloatArray) -> Ends:
        return ends_of(self, arms, scores)

    def _wait(self, arms: IntArray, change: int) -> None:
        wait_in_index(self, arms, change)

    def _reset(self, ids: IntArray) -> None:
        super()._reset(ids)
        self._index.reset(ids)
        rewrite_in_index(self, ids)

    def _query_at(self) -> Place:
        return self._index.query_at

    def grow(self, matroid: Matroid) -> None:
        """Go on with a larger ground set, as `CUCB.grow`. O(K)."""
        records = self._grown_records(matroid)
        engine, why = self._grown_engine(matroid, records, self._asked[1], self.clock)
        index = NonlinearIndex(KL, matroid.n_arms, self.reward_range, self._clock, self._first)
        index.copy_from(self._index)
        self.matroid, self.n_arms, self.records = matroid, matroid.n_arms, records
        self._engine, self._why, self._index = engine, why, index
        self._open()

    @property
    def confidence_width(self) -> float:
        """The right-hand side of the condition on N kl in the last round."""
        return self._index.level

    def _arguments(self) -> dict[str, Any]:
        return {
            **super()._arguments(),
            "loglog": self.loglog,
            "clock": self._asked[0],
            "engine": self._asked[1],
            "step": self.step,
            "prior": self.prior,
            "ties": self.ties,
        }

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), **self._index.state(), "clock": self._clock}

    def _set_state(self, state: dict[str, Any]) -> None:
        self._clock[:] = array_of(state, "clock", np.float64, N_CLOCK)
        self._index.set_state(state)
        super()._set_state(state)

    def _check(self) -> None:
        """Assert all invariants. O(K)."""
        self._engine._check()
        self._index.check(self._recs)

    def describe(self) -> dict[str, Any]:
        about = {**super().describe(), "clock": self.clock}
        about["bytes"] += self._index.memory()
        about["bytes_per_arm"] = about["bytes"] / self.n_arms
        return about

    def __repr__(self) -> str:
        return f"KLOSM({self.matroid!r}, engine={self.engine!r}, clock={self.clock!r}, t={self._t})"
