"""FasterCUCB: CUCB over rounded features, in time that does not grow with K (Algorithm FasterCUCB, Section 5)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from semibandit.arms import IntArray, flat
from semibandit.checks import as_number, as_whole, one_of
from semibandit.engines import ENGINES, make_engine
from semibandit.engines.base import Engine
from semibandit.engines.clock import new_clock
from semibandit.engines.registry import choose
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid
from semibandit.paper.bucket_engine import MAX_BUCKETS, SERVES, BucketEngine, serves
from semibandit.paper.hitting_set import HittingSet
from semibandit.paper.rounded_engine import (
    BY_QUERY,
    CELLS,
    MOVES,
    TOUCHES,
    RoundedEngine,
    new_rules,
    rounded_engine,
)
from semibandit.paper.rounding import Bounds, Rounding
from semibandit.paper.structure import METHODS
from semibandit.paper.structure_engine import StructureEngine
from semibandit.policies.catalogue import register
from semibandit.policies.records import ClockPolicy
from semibandit.policies.state import array_of, whole_of

EXPLORATION = 1.5


@register(
    cost="D polylog(T): that of a round over rounded features; needs the horizon",
    guarantee="regret O(sum of log T / gap) up to lower order terms, for every matroid (Theorem 5.1)",
    reference="Tzeng et al. 2024, Matroid Semi-Bandits in Sublinear Time",
    take="to study or reproduce the paper; cucb is exact and as fast",
)
class FasterCUCB(ClockPolicy):
    """CUCB whose base is only (1+epsilon)-approximate, epsilon = 1 / log^m T, and therefore found faster.

    Round t asks FIND-BASE for the query (1, lam_t), lam_t = sqrt(1.5 (b-a)^2 log t), over the features
    (mean, 1/sqrt(N)), which lie in [a, b] x [1/sqrt(T), 1]. The regret bound is Theorem regret-noanytime
    (`semibandit.paper.theory.regret_bound`).

    Parameters
    ----------
    matroid
        What may be played together.
    horizon
        T, the number of rounds that are planned; at least 3.
    m
        The precision is 1 / log^m T. A larger m makes the rounding finer (and T_0 smaller).
    reward_range
        Bounds (a, b) of every reward, 0 <= a < b.
    method
        ``"lazy"``: feature rounding and cells, each cell visited when a query enters it. ``"cells"``: the paper to
        the letter, one dynamic instance a cell; the same decisions, for small T only. ``"directions"``: query
        rounding in place of feature rounding (see `semibandit.paper.InnerProductBase`).
    engine
        What finds the bases; it never changes a decision. ``"dynamic"``: instances of the dynamic algorithms of
        `semibandit.paper.dynamic`, the only choice for ``"cells"``. Otherwise one exact engine that is fed the
        rounded features: ``"buckets"`` (laminar, graphic, transversal: arms that share a point are kept together) or
        a name in `semibandit.engines.ENGINES`. ``"auto"`` takes what was measured to be fastest. The paper remarks
        that CUCB should take over where it is cheaper: where arms are few ``"auto"`` solves over all of them, as
        CUCB does.
    alpha_lb
        Smallest positive mean that is told from smaller ones, if a = 0; b / T unless given. See the notes.
    seed
        Ignored: FasterCUCB draws nothing.

    Notes
    -----
    Departures from the paper. An arm never pulled has an infinite index, so that one round covers up to D of them
    and arms in no base are never waited for; the paper pulls them one at a time, and for ever if there are
    such. Means are sums divided by counts, not the running mean with (t-1)/t.

    *Rewards that may be 0.* The paper needs a > 0. Here a mean of exactly 0 has a bin of its own, and a positive mean
    below alpha_lb counts as alpha_lb (1 + eta). For rewards that are 0 or b no mean lies below the default b / T.
    For others each index is at most 2b/T too large by this, which adds at most 2Db to the regret of T rounds. Negative
    rewards are refused, because "(1+epsilon)-approximate" says nothing about weights of either sign: add a constant.

    *More feedback than T.* An arm of which more than T rewards were seen (a warm start) counts as seen T times:
    its index is a little too large.

    *Beyond the horizon* the policy goes on as CUCB: from round T + 1 its decisions are those that CUCB makes with
    the same counts and sums, and CUCB's own bound applies to them.

    Cost: that of the engine on rounded features, for rounds in which a bin changed or a new cell began.
    Finding a cell takes O(log W); the table for it O(W^2 log W) once. With more than 8 million pairs of bins (m >= 3,
    mostly) there is no table and the query itself stands for its cell's direction: they order the features alike
    unless the query lies on the boundary of its cell.

    Example
    -------
    >>> import semibandit as sb
    >>> from semibandit.policies import FasterCUCB
    >>> policy = FasterCUCB(sb.Uniform(n_arms=4, rank=2), horizon=1000, reward_range=(0.1, 1.0))
    >>> arms = policy.select()
    >>> arms.tolist()
    [0, 1]
    >>> policy.update(arms, [1.0, 0.1])
    >>> policy.select().tolist()
    [2, 3]
    """

    name = "faster-cucb"
    clock = "exact"

    def __init__(
        self,
        matroid: Matroid,
        *,
        horizon: int,
        m: int = 1,
        reward_range: tuple[float, float] = (0.0, 1.0),
        method: str = "lazy",
        engine: str = "auto",
        alpha_lb: float | None = None,
        outside: str = "error",
        seed: int | None = 0,
    ) -> None:
        super().__init__(matroid, reward_range=reward_range, outside=outside, seed=seed)
        self.horizon = as_whole(horizon, "horizon", 3, "so that epsilon = 1 / log^m T is below 1")
        self.m = as_whole(m, "m", 1, "the precision is 1 / log^m T")
        low, high = self.reward_range
        if low < 0.0:
            raise ParameterError(
                f"reward_range = ({low}, {high}): FasterCUCB needs 0 <= a, because its approximation is relative; "
                f"add {-low} to every reward"
            )
        self.method = one_of(method, "method", METHODS)
        self.epsilon = 1.0 / math.log(self.horizon) ** self.m
        self.bounds = self._bounds(alpha_lb)
        self._asked = (method, engine, alpha_lb)
        self._clock = new_clock(EXPLORATION * (high - low) ** 2)
        self._engine, self._why = self._make_engine(engine)
        self._open()

    def _bounds(self, alpha_lb: float | None) -> Bounds:
        low, high = self.reward_range
        if alpha_lb is None:
            lower = low if low > 0.0 else high / self.horizon
        elif low > 0.0:
            raise ParameterError(
                f"alpha_lb = {alpha_lb} is for ranges that touch 0; here it is a = {low}, the smallest mean there is"
            )
        else:
            lower = as_number(alpha_lb, "alpha_lb")
            if not 0.0 < lower <= high:
                raise ParameterError(f"alpha_lb must lie in (0, {high}], got {alpha_lb}")
        return (lower, high), (1.0 / math.sqrt(self.horizon), 1.0)

    def _wait(self, arms: IntArray, change: int) -> None:
        """Plays that wait leave the features as they are: rounding is for those that were seen."""

    def _make_engine(self, engine: str) -> tuple[Engine, str]:
        if engine == "dynamic" or (engine == "auto" and self.method == "cells"):
            made = StructureEngine(self.matroid, self.records, self.bounds, self.epsilon, self.method)
            return made, "one instance of the dynamic algorithm a direction"
        if self.method == "cells":
            raise ParameterError(
                f"engine = {engine!r}: method = 'cells' keeps dynamic instances, so engine must be 'auto' or 'dynamic'"
            )
        one_of(engine, "engine", ("auto", "dynamic", "buckets", *ENGINES))
        rules = new_rules(self.bounds, self.epsilon, self.method)
        n_buckets = rules.alpha.edges.size * rules.beta.edges.size
        can_bucket = self.method == "lazy" and serves(self.matroid) and n_buckets <= MAX_BUCKETS
        why = f"arms share at most {n_buckets:,} points"
        # Directions change as rarely as the steps of a staircase, cells nearly every round.
        clock = "staircase" if self.method == "directions" else "exact"
        if engine == "auto" and can_bucket and choose(self.matroid, clock)[0] == "resolve":
            engine = "buckets"
        if engine == "buckets" and not can_bucket:
            raise ParameterError(
                f"engine = 'buckets' serves {', '.join(SERVES)} matroids under method = 'lazy' with at most "
                f"{MAX_BUCKETS:,} bins, not {self.matroid.name} under {self.method!r} with {n_buckets:,}"
            )

        def inner(records: Any) -> Engine:
            nonlocal why
            if engine == "buckets":
                return BucketEngine(self.matroid, records, rules.alpha.edges, rules.beta.edges)
            made, why = make_engine(self.matroid, records, engine, clock)
            return made

        return rounded_engine(self.matroid, self.records, rules, inner), why

    def _take_over(self) -> None:
        """Go on as CUCB, over the records as they are. O(K), once, when the planned rounds are over."""
        asked = ENGINES.get(self._asked[1])
        name = asked.name if asked is not None and asked.fits(self.matroid, "exact") else "auto"
        gone = self._engine.deleted
        self._engine, why = make_engine(self.matroid, self.records, name, "exact")
        self._why = f"CUCB beyond the horizon of {self.horizon:,} rounds; {why}"
        if len(gone):
            self._engine.delete(gone)
        self._open()

    @property
    def beyond_horizon(self) -> bool:
        """Whether CUCB has taken over, because the planned rounds were over."""
        return not isinstance(self._engine, (RoundedEngine, StructureEngine))

    def _ask(self, rounds: int) -> int:
        """One and the same engine plays up to the horizon; then CUCB takes over."""
        if self.beyond_horizon:
            return rounds
        if self._t >= self.horizon and rounds:
            self._take_over()
            return rounds
        return min(rounds, self.horizon - self._t)

    @property
    def engine(self) -> str:
        """Name of the engine in use: that of the exact engine fed with rounded features, or ``"dynamic"``."""
        return self._engine.inner.name if isinstance(self._engine, RoundedEngine) else self._engine.name

    def _query(self, t: int) -> float:
        """lam_t, which FIND-BASE is asked at."""
        if t > self.horizon and not self.beyond_horizon:
            self._take_over()
        return super()._query(t)

    def _arguments(self) -> dict[str, Any]:
        method, engine, alpha_lb = self._asked
        own = {"horizon": self.horizon, "m": self.m, "method": method, "engine": engine, "alpha_lb": alpha_lb}
        return {**super()._arguments(), **own}

    def _state(self) -> dict[str, Any]:
        state = super()._state()
        if isinstance(self._engine, RoundedEngine):
            state |= {"cell": self._engine.progress.cell, "counts": self._engine.progress.counts}
        return state

    def _set_state(self, state: dict[str, Any]) -> None:
        self._t = whole_of(state, "t")
        if self._t > self.horizon or (isinstance(self._engine, RoundedEngine) and "cell" not in state):
            self._take_over()
        mine = self._engine
        super()._set_state(state)
        if isinstance(mine, RoundedEngine):
            mine.resume(array_of(state, "cell", np.float64, 3), array_of(state, "counts", np.int64, 3))

    def grow(self, matroid: Matroid) -> None:
        """Go on with a larger ground set, as `CUCB.grow`: old arms stay what they are, the others are new. O(K)."""
        records = self._grown_records(matroid)
        state = self._state()
        self.matroid, self.n_arms, self.records = matroid, matroid.n_arms, records
        self._engine, self._why = self._make_engine(self._asked[1])
        self._open()
        self._set_state({**state, "records": flat(records)})

    def describe(self) -> dict[str, Any]:
        """What runs inside.

        ``cells`` counts the cells of the positive quadrant (for ``"directions"`` the directions), ``cells_visited``
        those that rounds of this policy fell into, ``instances`` the copies of an algorithm that keep a base,
        and ``touches`` and ``moves`` the features that changed and those of them that changed bin.
        """
        rounding = Rounding(self.bounds, self.epsilon)
        about = {
            **super().describe(),
            "method": self.method,
            "horizon": self.horizon,
            "epsilon": self.epsilon,
            "W": rounding.W,
        }
        if isinstance(self._engine, RoundedEngine):
            rules, counts = self._engine.rules, self._engine.progress.counts
            about["cells"] = len(rules.slopes) or HittingSet(rounding).n_cells
            about["cells_visited"] = int(counts[CELLS])
            about["instances"] = 1
            about["touches"], about["moves"] = int(counts[TOUCHES]), int(counts[MOVES])
            if rules.mode == BY_QUERY:
                about["why"] += "; too many bins for a table of cells, so each query is its own direction"
        elif isinstance(self._engine, StructureEngine):
            about["cells"] = self._engine.structure.n_cells
            about["instances"] = self._engine.structure.n_instances
        return about

    def __repr__(self) -> str:
        return (
            f"FasterCUCB({self.matroid!r}, horizon={self.horizon}, method={self.method!r}, "
            f"engine={self.engine!r}, t={self._t})"
        )
