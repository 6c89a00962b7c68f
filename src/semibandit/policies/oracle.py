"""`Oracle`: the baseline that knows the means."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.checks import as_per_arm
from semibandit.compiled.handle import Floats2
from semibandit.compiled.jit import inline_kernel
from semibandit.engines import make_engine
from semibandit.engines.kernels import add_reward
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid
from semibandit.policies.catalogue import register
from semibandit.policies.records import CountingPolicy
from semibandit.policies.rounds import implement_rounds


class KnownRounds(NamedTuple):
    """`recs`: where rewards are counted; those of the engine hold the true means."""

    recs: Floats2


@inline_kernel
def _known_prepare(own, engine, t):
    return 0.0


@inline_kernel
def count_aside(own, engine, arms, rewards, n):
    """Count the rewards in records of the policy's own, which the engine does not see."""
    for j in range(n):
        add_reward(own.recs, arms[j], rewards[j])


implement_rounds(KnownRounds, prepare=_known_prepare, learn=count_aside, touches="nothing")


@register(
    cost="O(D) a round",
    guarantee="no regret: it is told the means",
    reference="folklore",
    take="as the yardstick from below, where the means are known",
)
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
        *,
        means: Any = None,
        reward_range: Any = (0.0, 1.0),
        engine: str = "auto",
        outside: str = "error",
        seed: int | None = 0,
    ) -> None:
        super().__init__(matroid, reward_range=reward_range, outside=outside, seed=seed)
        if means is None:
            raise ParameterError(f"means must be given, {self.n_arms} numbers: Oracle plays their best base")
        self._known: FloatArray = as_per_arm(means, "means", self.n_arms)
        self._asked_engine = engine
        self._engine, self._why = make_engine(matroid, None, engine, "staircase")
        self._engine.set_weights(np.arange(self.n_arms), self._known)
        self._open()

    def _make_own(self) -> Any:
        return KnownRounds(self._recs)

    def _engine_state(self) -> Any:
        return getattr(self._engine, "any", None)

    def select(self, exclude: Any = None, *, among: Any = None, weights: Any = None) -> IntArray:
        """The best base of the given means, ascending ids; avoids the arms in `exclude`."""
        if among is not None or weights is not None:
            return self._select_some(exclude, among, weights)
        arms = self._engine.base() if exclude is None else self._engine.base_excluding(exclude)
        self._t += 1
        return arms

    def _indices_of(self, arms: IntArray, t: int) -> FloatArray:
        return self._known[arms]

    def grow(self, matroid: Matroid, means: Any = None) -> None:
        """Go on with a larger ground set, whose true means are `means`. O(K)."""
        if means is None:
            raise ParameterError(
                "means must be given, those of the larger ground set: Oracle plays their best base"
            )
        self._grown_means = as_per_arm(means, "means", matroid.n_arms)
        super().grow(matroid)

    def _grown_arguments(self, n_arms: int) -> dict[str, Any]:
        return {**super()._grown_arguments(n_arms), "means": self._grown_means}

    def _leave(self, ids: IntArray) -> None:
        self._engine.delete(ids)

    def _enter(self, ids: IntArray) -> None:
        self._engine.insert(ids)

    def _arguments(self) -> dict[str, Any]:
        return {**super()._arguments(), "means": self._known, "engine": self._asked_engine}

    def describe(self) -> dict[str, Any]:
        return {
            "policy": self.name,
            **self._about_outside(),
            "matroid": repr(self.matroid),
            "engine": self._engine.name,
            "why": self._why,
        }

    def __repr__(self) -> str:
        return f"Oracle({self.matroid!r}, engine={self._engine.name!r}, t={self._t})"
