"""Baselines that every comparison needs: `Random`, `Greedy`, `EpsilonGreedy` and `Oracle`."""

from __future__ import annotations

from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.engines import make_engine
from semibandit.engines.base import as_arms
from semibandit.engines.clock import new_clock
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid
from semibandit.policies.counting import CountingPolicy, check_number, check_seed, set_generator
from semibandit.policies.random_base import RandomBase
from semibandit.policies.records import RecordPolicy


class Random(CountingPolicy):
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

    def __init__(self, matroid: Matroid, reward_range: Any = (0.0, 1.0), seed: int | None = 0) -> None:
        super().__init__(matroid, reward_range)
        self._draws = RandomBase(matroid)
        self.seed = check_seed(seed)
        self.reseed(self.seed)

    def reseed(self, seed: int) -> None:
        """Start the draws anew."""
        self._rng = np.random.default_rng(check_seed(seed))

    def select(self, exclude: Any = None) -> IntArray:
        """A random base, ascending ids; avoids the arms in `exclude`."""
        if exclude is None:
            arms = self._draws.draw(self._rng)
        else:
            ids = self._excluded(exclude)
            self._draws.remove(ids)
            try:
                arms = self._draws.draw(self._rng)
            finally:
                self._draws.restore(ids)
        self._t += 1
        return arms

    def _leave(self, ids: IntArray) -> None:
        self._draws.remove(ids)

    def _enter(self, ids: IntArray) -> None:
        self._draws.restore(ids)

    def _arguments(self) -> dict[str, Any]:
        return {"reward_range": self.reward_range, "seed": self.seed}

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), **self._draws.state(), "rng": self._rng.bit_generator.state}

    def _set_state(self, state: dict[str, Any]) -> None:
        super()._set_state(state)
        self._draws.set_state(state, self._present)
        set_generator(self._rng, state["rng"])

    def describe(self) -> dict[str, Any]:
        how = "O(D) draws, all bases equally likely" if self._draws.pooled else "greedy over a random order"
        return {"policy": self.name, "matroid": repr(self.matroid), "engine": "none", "why": how}

    def __repr__(self) -> str:
        return f"Random({self.matroid!r}, t={self._t})"


class Greedy(RecordPolicy):
    """Plays the base of largest empirical mean; arms never pulled come first. It can be stuck for ever.

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
        reward_range: Any = (0.0, 1.0),
        engine: str = "auto",
        seed: int | None = 0,
    ) -> None:
        super().__init__(matroid, reward_range)
        self.seed = check_seed(seed)
        self._asked_engine = engine
        # lam stays 0, so an engine that wants the clock to rest is welcome.
        self._engine, self._why = make_engine(matroid, self.records, engine, "staircase")
        self._clock = new_clock(0.0)

    def select(self, exclude: Any = None) -> IntArray:
        """The base of largest empirical mean, ascending ids; avoids the arms in `exclude`."""
        arms = self._engine.base() if exclude is None else self._engine.base_excluding(exclude)
        self._t += 1
        return arms

    def _arguments(self) -> dict[str, Any]:
        return {"reward_range": self.reward_range, "engine": self._asked_engine, "seed": self.seed}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.matroid!r}, engine={self._engine.name!r}, t={self._t})"


class EpsilonGreedy(Greedy):
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
        reward_range: Any = (0.0, 1.0),
        epsilon: float = 0.1,
        decay: float | None = None,
        engine: str = "auto",
        seed: int | None = 0,
    ) -> None:
        self.epsilon = check_number(epsilon, "epsilon", 0.0, 1.0)
        self.decay = None if decay is None else check_number(decay, "decay", 0.0, float(2**62))
        super().__init__(matroid, reward_range, engine, seed)
        self._draws = RandomBase(matroid)
        self.reseed(self.seed)

    def reseed(self, seed: int) -> None:
        """Start the draws anew."""
        self._rng = np.random.default_rng(check_seed(seed))

    def chance(self, t: int) -> float:
        """The chance that round t plays a random base."""
        return self.epsilon if self.decay is None else min(1.0, self.decay / t)

    def select(self, exclude: Any = None) -> IntArray:
        """The greedy base or a random one, ascending ids; avoids the arms in `exclude`."""
        ids = None
        if exclude is not None:
            ids = np.unique(as_arms(exclude, self.n_arms, "exclude"))
            ids = ids[~self._engine._is_deleted(ids)]
        t = self._t + 1
        if self._rng.random() >= self.chance(t):
            arms = self._engine.base() if ids is None else self._engine.base_excluding(ids)
        elif ids is None:
            arms = self._draws.draw(self._rng)
        else:
            self._draws.remove(ids)
            try:
                arms = self._draws.draw(self._rng)
            finally:
                self._draws.restore(ids)
        self._t = t
        return arms

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
        return {**super()._state(), **self._draws.state(), "rng": self._rng.bit_generator.state}

    def _set_state(self, state: dict[str, Any]) -> None:
        super()._set_state(state)
        self._draws.set_state(state, ~self._engine._is_deleted(np.arange(self.n_arms)))
        set_generator(self._rng, state["rng"])

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "epsilon": self.chance(max(self._t, 1))}

    def __repr__(self) -> str:
        how = f"epsilon={self.epsilon}" if self.decay is None else f"decay={self.decay}"
        return f"EpsilonGreedy({self.matroid!r}, {how}, engine={self._engine.name!r}, t={self._t})"


class Oracle(CountingPolicy):
    """Knows the means and plays their best base: the policy without regret.

    Parameters
    ----------
    means
        The true mean of each arm.

    Cost: O(D) a round; exclusions and deletions as an update of the engine at lam = 0.

    Example
    -------
    >>> import semibandit as sb
    >>> policy = sb.Oracle(sb.Uniform(n_arms=3, rank=2), means=[0.2, 0.9, 0.4])
    >>> policy.select().tolist()
    [1, 2]
    """

    name = "oracle"

    def __init__(
        self,
        matroid: Matroid,
        means: Any = None,
        reward_range: Any = (0.0, 1.0),
        engine: str = "auto",
        seed: int | None = 0,
    ) -> None:
        super().__init__(matroid, reward_range)
        self.seed = check_seed(seed)
        try:
            known: FloatArray = np.array(means, dtype=np.float64)
        except (TypeError, ValueError):
            raise ParameterError("means must be numbers, one per arm") from None
        if known.shape != (self.n_arms,) or not np.isfinite(known).all():
            raise ParameterError(
                f"means must be {self.n_arms} finite numbers, one per arm: Oracle plays the best base of given means"
            )
        self._known = known
        self._asked_engine = engine
        self._engine, self._why = make_engine(matroid, None, engine, "staircase")
        self._engine.set_weights(np.arange(self.n_arms), known)

    def select(self, exclude: Any = None) -> IntArray:
        """The best base of the given means, ascending ids; avoids the arms in `exclude`."""
        arms = self._engine.base() if exclude is None else self._engine.base_excluding(exclude)
        self._t += 1
        return arms

    def _leave(self, ids: IntArray) -> None:
        self._engine.delete(ids)

    def _enter(self, ids: IntArray) -> None:
        self._engine.insert(ids)

    def _arguments(self) -> dict[str, Any]:
        return {
            "means": self._known,
            "reward_range": self.reward_range,
            "engine": self._asked_engine,
            "seed": self.seed,
        }

    def describe(self) -> dict[str, Any]:
        return {
            "policy": self.name,
            "matroid": repr(self.matroid),
            "engine": self._engine.name,
            "why": self._why,
        }

    def __repr__(self) -> str:
        return f"Oracle({self.matroid!r}, engine={self._engine.name!r}, t={self._t})"
