"""Baselines that every comparison needs: `Random`, `Greedy` and `EpsilonGreedy`."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, Self, cast

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.checks import as_arms, as_number
from semibandit.compiled.handle import Number, Words1
from semibandit.compiled.jit import inline_kernel
from semibandit.compiled.random import next_uniform
from semibandit.engines import make_engine
from semibandit.engines.clock import new_clock
from semibandit.engines.kernels import engine_select
from semibandit.matroids import Matroid
from semibandit.policies.catalogue import register
from semibandit.policies.decisions import Ends
from semibandit.policies.oracle import KnownRounds
from semibandit.policies.random_base import RandomBase, draw_base
from semibandit.policies.records import ClockPolicy, CountingPolicy, Randomness, RecordPolicy
from semibandit.policies.rounds import CompiledRounds, count_rewards, implement_rounds


@inline_kernel
def _random_select(own, engine, t, out):
    return draw_base(own.draws, own.rng, out)


def _publish(made: Any) -> None:
    """Let a class made here be found by its name: compiled code on disk refers to it."""
    made.__module__ = __name__
    globals()[made.__name__] = made


@cache
def random_rounds(draws: Any) -> Any:
    """The class of states of `Random` whose random bases come from a state of class `draws`."""
    made: Any = NamedTuple(f"Random_{draws.__name__}", [("draws", draws), ("rng", Words1)])  # type: ignore[misc]
    _publish(made)
    implement_rounds(made, select=_random_select, learn=count_rewards, touches="nothing")
    return made


@register(
    cost="O(D) a round (uniform, partition); O(K) for other classes",
    guarantee="none: linear regret, the yardstick from above",
    reference="folklore",
)
class Random(Randomness, CountingPolicy):
    """Plays a random base each round and learns nothing; rewards are only counted.

    Uniform and partition matroids: every base is equally likely, O(D) a round. Any other matroid: greedy over a random
    order of the arms, O(K) a round; every base may come up, but they are not equally likely.

    Example
    -------
    >>> import semibandit as sb
    >>> policy = sb.Random(sb.Uniform(n_arms=1000, rank=3), seed=1)
    >>> len(policy.select())
    3
    """

    name = "random"

    def __init__(
        self,
        matroid: Matroid,
        *,
        reward_range: Any = (0.0, 1.0),
        outside: str = "error",
        seed: int | None = 0,
    ) -> None:
        super().__init__(matroid, reward_range=reward_range, outside=outside, seed=seed)
        self._draws = RandomBase(matroid)
        self._open()

    def _make_own(self) -> Any:
        if self._draws.draws is None:
            return KnownRounds(self._recs)
        return random_rounds(cast(Any, type(self._draws.draws)))(self._draws.draws, self._rng)

    def compiled_rounds(self) -> CompiledRounds | None:
        return None if self._draws.draws is None else super().compiled_rounds()

    def select(self, exclude: Any = None, *, among: Any = None, weights: Any = None) -> IntArray:
        """A random base, ascending ids; avoids the arms in `exclude`."""
        if among is not None or weights is not None:
            return self._select_some(exclude, among, weights)
        arms = self._draws.draw_without(self._rng, None if exclude is None else self._presence.among(exclude))
        self._t += 1
        return arms

    def _indices_of(self, arms: IntArray, t: int) -> FloatArray:
        return self._uniforms(len(arms))

    def _leave(self, ids: IntArray) -> None:
        self._draws.remove(ids)

    def _enter(self, ids: IntArray) -> None:
        self._draws.restore(ids)

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), **self._draws.state(), "rng": self._rng}

    def _grown_state(self, old: Self) -> dict[str, Any]:
        state = super()._grown_state(old)
        return {**state, **self._draws.state_without(state["deleted"])}

    def _set_state(self, state: dict[str, Any]) -> None:
        super()._set_state(state)
        self._draws.set_state(state, self._presence.mask)
        self._set_rng(state)

    def describe(self) -> dict[str, Any]:
        how = "O(D) draws, all bases equally likely" if self._draws.pooled else "greedy over a random order"
        about = {"policy": self.name, "matroid": repr(self.matroid), "engine": "none", "why": how}
        return {**about, **self._about_outside()}

    def __repr__(self) -> str:
        return f"Random({self.matroid!r}, t={self._t})"


@register(
    cost="an update of the engine for each arm played; no pass over all arms",
    guarantee="none: it can be stuck for ever",
    reference="folklore",
)
class Greedy(ClockPolicy):
    """Plays the base of largest empirical mean; arms never pulled come first. It can be stuck for ever.

    Parameters
    ----------
    engine
        ``"auto"`` or a name in `semibandit.engines.ENGINES`; never changes a decision.
    ties
        ``"id"``: of arms never seen the smaller id comes first. ``"random"``: they come in a random order that follows
        from `seed`, at no cost in a round (`policies.ties`).

    Cost: that of the engine at lam = 0. Nothing moves but the arms that were updated, so it is sublinear in K for all
    matroids (see `semibandit.engines.ENGINES`).

    Example
    -------
    >>> import semibandit as sb
    >>> policy = sb.Greedy(sb.Uniform(n_arms=3, rank=1))
    >>> policy.update([0, 1, 2], [0.2, 0.9, 0.4])
    >>> policy.select().tolist()
    [1]
    """

    name = "greedy"

    def __init__(
        self,
        matroid: Matroid,
        *,
        reward_range: Any = (0.0, 1.0),
        engine: str = "auto",
        ties: str = "id",
        outside: str = "error",
        seed: int | None = 0,
    ) -> None:
        super().__init__(matroid, reward_range=reward_range, outside=outside, seed=seed)
        self._break_ties(ties)
        self._asked_engine = engine
        # lam stays 0, so an engine that wants the clock to rest is welcome.
        self._engine, self._why = make_engine(matroid, self.records, engine, "staircase")
        self._clock = new_clock(0.0)
        self._open()

    def _query(self, t: int) -> float:
        return 0.0

    def _queried_by_kernels(self) -> bool:
        return type(self)._query is Greedy._query

    def _likely(self, arms: IntArray, scores: FloatArray) -> Ends:
        return RecordPolicy._likely(self, arms, scores)

    def _arguments(self) -> dict[str, Any]:
        return {**super()._arguments(), "engine": self._asked_engine, "ties": self.ties}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.matroid!r}, engine={self._engine.name!r}, t={self._t})"


@inline_kernel
def _epsilon_select(own, engine, t, out):
    chance = own.epsilon if own.decay < 0.0 else min(1.0, own.decay / t)
    if next_uniform(own.rng) >= chance:
        return engine_select(engine, 0.0, out)
    return draw_base(own.draws, own.rng, out)


@cache
def epsilon_rounds(draws: Any) -> Any:
    """The class of states of `EpsilonGreedy` whose random bases come from a state of class `draws`.

    `decay` is negative if the chance is `epsilon` in all rounds.
    """
    fields = [("draws", draws), ("rng", Words1), ("epsilon", Number), ("decay", Number)]
    made: Any = NamedTuple(f"Epsilon_{draws.__name__}", fields)  # type: ignore[misc]
    _publish(made)
    implement_rounds(made, select=_epsilon_select, learn=count_rewards, touches="any")
    return made


@register(
    cost="as greedy, or as random",
    guarantee="fixed epsilon: linear regret; decaying: O(log T) if decay is large enough",
    reference="Auer, Cesa-Bianchi and Fischer 2002",
)
class EpsilonGreedy(Randomness, Greedy):
    """Greedy, but now and then a random base (Sutton and Barto; decaying: Auer, Cesa-Bianchi and Fischer 2002).

    Parameters
    ----------
    epsilon
        Chance of a random base in each round.
    decay
        If given, the chance in round t is min(1, decay / t) instead, and `epsilon` plays no part. With
        decay = c K / gap^2 for a suitable c regret is logarithmic; with too small a decay it is linear.
    engine
        ``"auto"`` or a name in `semibandit.engines.ENGINES`; never changes a decision.
    ties
        As in `Greedy`.
    seed
        Of the draws.

    Cost: a greedy round as `Greedy`, a random one as `Random`.

    Example
    -------
    >>> import semibandit as sb
    >>> policy = sb.EpsilonGreedy(sb.Uniform(n_arms=100, rank=3), decay=50, seed=1)
    >>> policy.chance(10), policy.chance(500)
    (1.0, 0.1)
    """

    name = "epsilon-greedy"

    def __init__(
        self,
        matroid: Matroid,
        *,
        reward_range: Any = (0.0, 1.0),
        epsilon: float = 0.1,
        decay: float | None = None,
        engine: str = "auto",
        ties: str = "id",
        outside: str = "error",
        seed: int | None = 0,
    ) -> None:
        self.epsilon = as_number(epsilon, "epsilon", 0.0, 1.0)
        self.decay = None if decay is None else as_number(decay, "decay", 0.0)
        self._draws = RandomBase(matroid)
        super().__init__(
            matroid, reward_range=reward_range, engine=engine, ties=ties, outside=outside, seed=seed
        )

    def _make_own(self) -> Any:
        draws = self._draws.draws
        if draws is None:
            return super()._make_own()
        decay = -1.0 if self.decay is None else self.decay
        return epsilon_rounds(cast(Any, type(draws)))(draws, self._rng, self.epsilon, decay)

    def compiled_rounds(self) -> CompiledRounds | None:
        return None if self._draws.draws is None else super().compiled_rounds()

    def chance(self, t: int) -> float:
        """The chance that round t plays a random base."""
        return self.epsilon if self.decay is None else min(1.0, self.decay / t)

    def select(self, exclude: Any = None, *, among: Any = None, weights: Any = None) -> IntArray:
        """The greedy base or a random one, ascending ids; avoids the arms in `exclude`."""
        if among is not None or weights is not None:
            return self._select_some(exclude, among, weights)
        ids = None if exclude is None else self._engine._presence.among(exclude)
        t = self._t + 1
        if self._uniforms(1)[0] < self.chance(t):
            arms = self._draws.draw_without(self._rng, ids)
        else:
            arms = self._engine.base() if ids is None else self._engine.base_excluding(ids)
        self._t = t
        return arms

    def _indices_of(self, arms: IntArray, t: int) -> FloatArray:
        if self._uniforms(1)[0] < self.chance(t):
            return self._uniforms(len(arms))
        return super()._indices_of(arms, t)

    def delete(self, arms: Any) -> None:
        """Take arms out of play; what is known of them is kept. Cost of an update each."""
        super().delete(arms)
        self._draws.remove(np.unique(as_arms(arms, self.n_arms)))

    def insert(self, arms: Any) -> None:
        """Bring deleted arms back with what is known of them. Cost of an update each."""
        super().insert(arms)
        self._draws.restore(np.unique(as_arms(arms, self.n_arms)))

    def _arguments(self) -> dict[str, Any]:
        return {**super()._arguments(), "epsilon": self.epsilon, "decay": self.decay}

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), **self._draws.state(), "rng": self._rng}

    def _grown_state(self, old: Self) -> dict[str, Any]:
        state = super()._grown_state(old)
        return {**state, **self._draws.state_without(state["deleted"])}

    def _set_state(self, state: dict[str, Any]) -> None:
        super()._set_state(state)
        self._draws.set_state(state, self._engine._presence.mask)
        self._set_rng(state)

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "epsilon": self.chance(max(self._t, 1))}

    def __repr__(self) -> str:
        how = f"epsilon={self.epsilon}" if self.decay is None else f"decay={self.decay}"
        return f"EpsilonGreedy({self.matroid!r}, {how}, engine={self._engine.name!r}, t={self._t})"
