"""One-seed Thompson sampling: CTS3 (Jin et al. 2026) and CL-SG (arXiv 2605.09277)."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from semibandit.arms import BETA, COUNT, FloatArray, IntArray
from semibandit.checks import as_number, as_whole, explain, one_of
from semibandit.compiled.handle import by_handle
from semibandit.engines import make_engine
from semibandit.engines.base import Engine
from semibandit.engines.clock import CURRENT, new_clock
from semibandit.engines.kernels import AnyEngine
from semibandit.errors import FileError, ParameterError
from semibandit.matroids import Matroid, Partition, Uniform
from semibandit.matroids.base import kind_of
from semibandit.policies.catalogue import register
from semibandit.policies.decisions import Ends
from semibandit.policies.records import ClockPolicy, EnginePolicy, Randomness, about_means
from semibandit.policies.state import array_of
from semibandit.policies.straight import Place
from semibandit.policies.thompson.quantiles import NORMAL_975
from semibandit.policies.thompson.seed_directions import DirectionsEngine, normal_levels
from semibandit.policies.thompson.seed_rounds import QUERY, SEED, SeedRounds, draw_query, seed_observe

VARIANTS = ("cts3", "cl-sg")
ENGINES = ("auto", "grouped", "resolve")

# CL-SG's epsilon in the code of its authors.
CODE = 0.1

# With fewer arms, or fewer for each arm of a base, one pass over all is as fast as groups (measured).
FEW_ARMS, FEW_FOR_EACH = 500, 100

# Relative height of a stair of CL-SG's width where directions stand for Z.
STEP = 0.01

MOST_DIRECTIONS = 4096


@register(
    cost="O(G + D log K) for G different counts (uniform, partition); else O(K), or by directions",
    guarantee="regret O(K D^2 polylog / gap) and O~(D sqrt(K T)), also where arms of a round are correlated",
    reference="Jin, Zhao, Tan and Gu 2026; CL-SG: arXiv 2605.09277",
    take="when bases are large or arms of a round are correlated, and a bad run now and then is no harm",
)
class OneSeedTS(Randomness, ClockPolicy):
    """Thompson sampling with one normal number a round in place of one an arm.

    Round t draws Z from N(0, 1) and plays the best base under ``mean + sigma Z / sqrt(N)`` (CTS3). All arms are
    optimistic together or not at all, so a base of many arms is tried with the chance of one lucky draw, not of D. Arms
    never seen come first.

    Parameters
    ----------
    matroid
        What may be played together.
    reward_range
        Bounds (a, b) of every reward.
    variant
        ``"cts3"``, or ``"cl-sg"``: ``mean + (b - a) Z sqrt(epsilon log t / (N + 1))``, for arms whose availability an
        adversary may choose (`exclude`, `delete`).
    sigma
        Of CTS3: standard deviation of a reward; (b - a) / 2 unless given.
    epsilon
        Of CL-SG: factor under the root; 0.1 as in the code of its authors unless given.
    engine
        ``"grouped"``: uniform and partition matroids in sublinear time. ``"resolve"``: the best base of all weights
        in every round, for any matroid. ``"auto"`` takes the first where it can, from K = 500 and K = 100 D on. Both
        make the same decisions.
    directions
        If given, Z takes so many values only, the middles of equally likely slices of N(0, 1), and each has an exact
        dynamic instance that is brought up to date when its value is drawn. For matroids that are neither uniform
        nor partition, if K is much larger than the number of values times D. 16 to 64 are enough; the theorems do not
        cover the law of this Z. The width of CL-SG is then rounded up to powers of 1.01.
    ties
        ``"id"``: of arms never seen the smaller id comes first. ``"random"``: they come in a random order that follows
        from `seed`.
    seed
        Of Z, and of random ties.

    Notes
    -----
    *Exact in law.* Arms of one count differ by their means alone, whatever Z is. They are kept in order of their means;
    a round looks at the first of each group and takes the best D by merging, so nothing is sampled that a naive round
    would not sample, and decisions equal those of sorting all K weights (docs/theory.md, "One seed").

    *Tails.* Regret varies more from run to run than that of `CTS`: between arms of like counts one seed hardly
    explores, and a mistake lasts. Look at quantiles (`Comparison.quantiles`), not at means alone (docs/regret.md).

    Plays that wait for feedback count in the width (`decide`).

    Cost: O(G + D log K) per round for G different counts (and groups of a partition), O(log K) per arm updated.
    Other classes: O(K) and the matroid's greedy, or with `directions` one update of a dynamic instance for each arm
    that moved since its value was last drawn, and stepwise runs only.

    Regret. CTS3: O(K D^2 polylog(T) / gap) and O~(D sqrt(K T)); arms may be correlated within a round. CL-SG:
    O~(sqrt(D K T)), abstract of its paper.

    Example
    -------
    >>> import semibandit as sb
    >>> policy = sb.OneSeedTS(sb.Uniform(n_arms=100_000, rank=3), seed=1)
    >>> arms = policy.select()
    >>> arms.tolist()
    [0, 1, 2]
    >>> policy.update(arms, [1.0, 0.0, 0.5])
    >>> policy.describe()["groups"]
    2
    """

    name = "one-seed"

    def __init__(
        self,
        matroid: Matroid,
        *,
        reward_range: Any = (0.0, 1.0),
        variant: str = "cts3",
        sigma: float | None = None,
        epsilon: float | None = None,
        engine: str = "auto",
        directions: int | None = None,
        ties: str = "id",
        outside: str = "error",
        seed: int | None = 0,
    ) -> None:
        super().__init__(matroid, reward_range=reward_range, outside=outside, seed=seed)
        self.variant = one_of(variant, "variant", VARIANTS)
        low, high = self.reward_range
        self._asked = (sigma, epsilon, one_of(engine, "engine", ENGINES))
        if self.variant == "cts3":
            if epsilon is not None:
                raise ParameterError("epsilon is for variant = 'cl-sg'; 'cts3' has sigma")
            self.sigma = 0.5 * (high - low) if sigma is None else as_number(sigma, "sigma", 0.0, closed=False)
        elif sigma is not None:
            raise ParameterError("sigma is for variant = 'cts3'; 'cl-sg' has epsilon")
        self.epsilon = CODE if epsilon is None else as_number(epsilon, "epsilon", 0.0, closed=False)
        self.directions = None if directions is None else as_whole(directions, "directions", 2, "values of Z")
        if self.directions is not None and self.directions > MOST_DIRECTIONS:
            raise ParameterError(f"directions must be at most {MOST_DIRECTIONS}, got {directions}")
        self._break_ties(ties)
        self._levels = np.zeros(0) if self.directions is None else normal_levels(self.directions)
        self._last = np.zeros(2)
        self._clock = new_clock(self.epsilon * (high - low) ** 2, 0.0 if self.directions is None else STEP)
        self._engine, self._why = self._choose(engine)
        self._open()

    def _choose(self, engine: str) -> tuple[Engine, str]:
        fits = kind_of(self.matroid) in (Uniform, Partition)
        if self.directions is not None:
            if engine != "auto":
                raise ParameterError(
                    f"directions are an engine of their own: engine = 'auto', not {engine!r}"
                )
            made = DirectionsEngine(self.matroid, self.records, self.directions)
            return made, f"an instance for each of {self.directions} values of Z; no theorem covers their law"
        if engine != "auto":
            return make_engine(self.matroid, self.records, engine)
        if not fits:
            made, _ = make_engine(self.matroid, self.records, "resolve")
            return made, "Z jumps, and groups serve uniform and partition matroids"
        if self.n_arms < max(FEW_ARMS, FEW_FOR_EACH * self.matroid.rank):
            made, _ = make_engine(self.matroid, self.records, "resolve")
            return made, f"K = {self.n_arms}, D = {self.matroid.rank}: going through so few arms is faster"
        made, _ = make_engine(self.matroid, self.records, "grouped")
        return made, "arms with the same count keep their order, whatever Z is"

    @property
    def _more(self) -> float:
        """What is added to a count in the width."""
        return 1.0 if self.variant == "cl-sg" else 0.0

    def _make_own(self) -> Any:
        sigma = self.sigma if self.variant == "cts3" else 0.0
        return SeedRounds(sigma, self._more, self._clock, self._levels, self._rng, self._last)

    # -- rounds ------------------------------------------------------------------------------------------

    def _queried_by_kernels(self) -> bool:
        return type(self)._query is OneSeedTS._query

    @cached_property
    def _observe_seed(self) -> Any:
        return by_handle(seed_observe, SeedRounds, AnyEngine).entry

    def _query(self, t: int) -> float:
        return float(by_handle(draw_query, SeedRounds).entry(self._aside.own_handle, t))

    def _query_at(self) -> Place:
        return self._last, QUERY

    @property
    def seed_of_round(self) -> float:
        """Z of the last round, 0 before the first."""
        return float(self._last[SEED])

    @property
    def confidence_width(self) -> float:
        """What Z was multiplied by in the last round: the weight is ``mean + width Z / sqrt(N)``, N + 1 for CL-SG."""
        return self.sigma if self.variant == "cts3" else float(self._clock[CURRENT])

    def _update(self, arms: IntArray, rewards: FloatArray) -> None:
        whole = self._whole
        if whole is None:
            EnginePolicy._update(self, arms, rewards)
        else:
            low, high = self.reward_range
            code = self._observe_seed(whole.own_handle, whole.engine_handle, arms, rewards, low, high)
            if code:
                raise explain(code, arms, rewards, self.n_arms, self.reward_range)
        if self._plays_waiting is not None:
            self._wait(arms, 0)

    def _wait(self, arms: IntArray, change: int) -> None:
        super()._wait(arms, change)
        if self._more:
            assert self._plays_waiting is not None
            plays = self._recs[arms, COUNT] + self._plays_waiting[arms]
            known = arms[plays > 0.0]
            self._recs[known, BETA] = 1.0 / np.sqrt(plays[plays > 0.0] + self._more)
            self._touch(known)

    def _likely(self, arms: IntArray, scores: FloatArray) -> Ends:
        """The central 95 % of what is added to the mean of each arm."""
        return about_means(self._recs[arms, BETA], NORMAL_975 * self.confidence_width, self.reward_range)

    # -- the rest ----------------------------------------------------------------------------------------

    def _arguments(self) -> dict[str, Any]:
        sigma, epsilon, engine = self._asked
        return {
            **super()._arguments(),
            "variant": self.variant,
            "sigma": sigma,
            "epsilon": epsilon,
            "engine": engine,
            "directions": self.directions,
            "ties": self.ties,
        }

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "last": self._last, "rng": self._rng}

    def _set_state(self, state: dict[str, Any]) -> None:
        last = array_of(state, "last", np.float64, 2)
        if not np.isfinite(last).all():
            raise FileError("the draw of the last round is not a finite number")
        super()._set_state(state)
        self._last[:] = last
        self._set_rng(state)

    def describe(self) -> dict[str, Any]:
        """What runs inside; ``groups`` counts the different counts of arms."""
        about = {**super().describe(), "variant": self.variant}
        groups = getattr(self._engine, "groups", None)
        if groups is not None:
            about["groups"] = groups
        if self.directions is not None:
            about["directions"] = self.directions
        return about

    def __repr__(self) -> str:
        return f"OneSeedTS({self.matroid!r}, variant={self.variant!r}, engine={self.engine!r}, t={self._t})"
