"""Costs in place of rewards: `minimize` makes a policy, or an environment, read its numbers as costs.

>>> import semibandit as sb
>>> m = sb.Graphic([(0, 1), (1, 2), (2, 0)])
>>> latency = sb.minimize(sb.Beta(m, [3.0, 8.0, 5.0], reward_range=(0.0, 10.0), seed=1))
>>> latency.optimal_base.tolist(), latency.optimal_value
([0, 2], 8.0)
>>> policy = sb.minimize(sb.CUCB(m, reward_range=(0.0, 10.0)))
>>> result = sb.simulate(policy, latency, rounds=2000)
>>> policy.select().tolist()
[0, 2]
>>> bool(result.regret[-1] < 2000.0)
True
"""

from __future__ import annotations

import copy
import math
from contextlib import AbstractContextManager
from inspect import ismethod
from typing import Any, SupportsIndex, TypeVar, cast

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray, IntArray
from semibandit.checks import as_vector, explain, finite_ends
from semibandit.compiled.jit import kernel
from semibandit.engines.kernels import check_feedback
from semibandit.environments.base import Environment, EnvironmentState
from semibandit.errors import ParameterError
from semibandit.locking import unguarded
from semibandit.matroids import Matroid
from semibandit.policies.base import Policy
from semibandit.policies.decisions import Account, Tell, Waiting
from semibandit.policies.rounds import CompiledRounds

T = TypeVar("T", Policy, Environment)


def mirror_at(reward_range: tuple[float, float]) -> float:
    """A cost c is the reward ``mirror_at(reward_range) - c``: both ends together, or 0 where one is infinite. O(1)."""
    total = reward_range[0] + reward_range[1]
    return total if math.isfinite(total) else 0.0


@kernel
def mirror_feedback(n_arms, arms, costs, ends, out):
    """Check costs as `check_feedback` does rewards, and write them as rewards into `out`. O(n).

    `ends`: the range of costs, what cost and reward add up to, the range of rewards.
    """
    low, high, both, least, most = ends
    code = check_feedback(n_arms, arms, costs, low, high)
    if code == 0:
        for i in range(arms.shape[0]):
            # Rounding may miss the end of the range by a hair.
            out[i] = min(max(both - costs[i], least), most)
    return code


def mirrored_range(reward_range: tuple[float, float]) -> tuple[float, float]:
    """The range of rewards for a range of costs, and the inverse: the same one, unless one end is infinite. O(1)."""
    low, high = reward_range
    return (low, high) if math.isfinite(low + high) else (-high, -low)


def minimize(what: T) -> T:
    """`what` for costs: a policy that looks for the cheapest base, or an environment whose draws are costs.

    Costs lie in the same range (a, b) as rewards would; inside, a cost c is the reward a + b - c, or -c where an end is
    infinite. A policy's `means` are mean costs again; an environment's optimal base is the cheapest one, and regret is
    what a base costs more than it. `simulate` refuses to mix the two kinds. The object given is not changed.
    """
    if isinstance(what, (CostPolicy, CostEnvironment)):
        raise ParameterError("what: costs are minimised already")
    if isinstance(what, Policy):
        return as_costs(what)
    if isinstance(what, Environment):
        return cast(T, CostEnvironment(what))
    raise ParameterError(f"what must be a policy or an environment, got {type(what).__name__}")


def as_costs(policy: Policy, inside: bool = False) -> Policy:
    """`policy` for costs; `inside`: its range is that of the rewards that costs are made, as a file tells. O(K)."""
    return policy._as_costs(inside) or CostPolicy(policy.matroid, policy, inside=inside)


class CostPolicy(Policy):
    """A policy that is told costs; made by `minimize`. O(D) a round besides the policy inside.

    What the policy inside is made with and shows of itself (`engine`, `clock`, `confidence_width`, `exploration`,
    `window`, ...) can be read here too, but not set; widths are the same for costs and rewards. Its own methods are
    found on `inner`, where numbers are rewards.

    >>> import semibandit as sb
    >>> policy = sb.minimize(sb.CUCB(sb.Uniform(n_arms=4, rank=2), exploration=0.5, prior=(0.75, 2.0)))
    >>> policy.engine, policy.clock, policy.exploration, policy.prior
    ('resolve', 'exact', 0.5, (0.25, 2.0))
    """

    objective = "min"
    unbounded = True

    def __init__(self, matroid: Matroid, policy: Policy, *, inside: bool = False) -> None:
        """`inside`: whether `policy` is what is inside already, and its range that of rewards."""
        inner = policy.clone()
        if not inside:
            inner.reward_range = mirrored_range(policy.reward_range)
        costs = mirrored_range(inner.reward_range)
        super().__init__(matroid, reward_range=costs, outside=policy.outside, seed=policy.seed)
        self.inner = inner
        self._clipped = self.inner._clipped
        self._lock = self.inner._lock
        self._mirror = (*finite_ends(costs), mirror_at(costs), *finite_ends(inner.reward_range))

    def __getattr__(self, name: str) -> Any:
        # Asked where this class has no such name.
        if name.startswith("_") or "inner" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        found = getattr(self.inner, name)
        if ismethod(found):
            raise AttributeError(
                f"{name!r} is a method of the policy inside, for which costs are rewards: inner.{name}"
            )
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        inner = self.__dict__.get("inner")
        if (
            inner is not None
            and not hasattr(type(self), name)
            and name not in self.__dict__
            and hasattr(inner, name)
        ):
            raise AttributeError(f"{name!r} is the policy's inside and can only be read here")
        super().__setattr__(name, value)

    @property
    def prior(self) -> tuple[Any, Any] | None:
        """Mean cost and strength of the prior of the policy inside, None if it has none."""
        known = getattr(self.inner, "prior", None)
        return None if known is None else (mirror_at(self.reward_range) - known[0], known[1])

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the policy inside."""
        return self.inner.name

    @property
    @unguarded
    def t(self) -> int:
        """Number of rounds selected so far."""
        return self.inner.t

    @unguarded
    def select(self, exclude: Any = None, *, among: Any = None, weights: Any = None) -> IntArray:
        """The cheapest base; `weights` are costs."""
        if among is not None or weights is not None:
            return self._select_some(exclude, among, weights)
        return self.inner.select(exclude) if exclude is not None else self.inner.select()

    def _select_some(self, exclude: Any, among: Any, weights: Any) -> IntArray:
        return self.inner._select_some(
            exclude, among, None if weights is None else -as_vector(weights, "weights")
        )

    def _update(self, arms: IntArray, rewards: FloatArray) -> None:
        mirrored = np.empty(len(rewards))
        code = mirror_feedback.entry(self.n_arms, arms, rewards, self._mirror, mirrored)
        if code:
            raise explain(code, arms, rewards, self.n_arms, self._mirror[:2])
        self.inner._require_inside(arms, rewards)
        self.inner._update_mirrored(arms, mirrored)

    def _range_ends(self) -> tuple[FloatArray, FloatArray]:
        by_arm = self.inner._range_ends()
        return by_arm if len(by_arm[0]) > 1 else super()._range_ends()

    def _wait(self, arms: IntArray, change: int) -> None:
        self.inner._wait(arms, change)

    def _select_many(self, n: int) -> tuple[IntArray, IntArray]:
        return self.inner._select_many(n)

    def _wait_again(self, arms: IntArray) -> None:
        self.inner._wait_again(arms)

    def _noted(self, number: int, arms: IntArray) -> None:
        self.inner._noted(number, arms)

    def _recalled(self, number: int, arms: IntArray) -> AbstractContextManager[None]:
        return self.inner._recalled(number, arms)

    def _settled(self, number: int) -> None:
        self.inner._settled(number)

    def _scores(self, arms: IntArray) -> FloatArray:
        return np.asarray(mirror_at(self.reward_range) - self.inner._scores(arms))

    def _account(self, arms: IntArray, scores: FloatArray) -> Tell:
        both = mirror_at(self.reward_range)
        inner = self.inner._account(arms, both - scores)

        def tell() -> Account:
            mean, low, high, plays = inner() if callable(inner) else inner
            return Account(both - mean, both - high, both - low, plays)

        return tell

    def compiled_rounds(self) -> CompiledRounds | None:
        return self.inner.compiled_rounds()

    def _ask(self, rounds: int) -> int:
        return self.inner._ask(rounds)

    def _played_until(self, t: int) -> None:
        self.inner._played_until(t)

    def delete(self, arms: npt.ArrayLike) -> None:
        """As the policy inside."""
        self._has("delete")(arms)

    def insert(self, arms: npt.ArrayLike) -> None:
        """As the policy inside."""
        self._has("insert")(arms)

    def grow(self, matroid: Matroid) -> None:
        """As the policy inside."""
        self._has("grow")(matroid)
        self.matroid, self.n_arms = matroid, matroid.n_arms
        self._clipped = self.inner._clipped

    def _reset(self, ids: IntArray) -> None:
        self.inner._reset(ids)

    def _has(self, method: str) -> Any:
        found = getattr(self.inner, method, None)
        if found is None:
            raise ParameterError(f"{type(self.inner).__name__} has no {method}")
        return found

    def reseed(self, seed: int) -> None:
        self.inner.reseed(seed)

    @property
    def counts(self) -> IntArray:
        return self.inner.counts

    @property
    def means(self) -> FloatArray:
        """Mean cost of each arm, NaN for an arm never seen. O(K) copy."""
        return np.asarray(mirror_at(self.reward_range) - self.inner.means)

    def clone(self) -> CostPolicy:
        other = CostPolicy(self.matroid, self.inner, inside=True)
        other._take_decisions(Waiting.from_state(self._decisions.state(), self.n_arms))
        return other

    def describe(self) -> dict[str, Any]:
        return {**self.inner.describe(), "objective": "min"}

    def __repr__(self) -> str:
        return f"minimize({self.inner!r})"


class CostEnvironment(Environment):
    """An environment whose draws are costs; made by `minimize`. O(D) per draw."""

    objective = "min"

    def __init__(self, env: Environment) -> None:
        self.round_dependent = env.round_dependent  # type: ignore[misc]
        super().__init__(env.matroid, env.means, reward_range=env.reward_range, seed=env.seed)
        self._inner = env
        self.reset()

    @property
    def inner(self) -> Environment:
        """The environment that draws the costs."""
        return self._inner

    def _settle(self) -> None:
        """Find the cheapest base of the inner environment's means, if they are other ones than before."""
        if self._inner._means is self._means and self._cheapest:
            return
        self._means = self._inner._means
        low, high = self._reward_range
        base = np.array(self._matroid.max_weight_base((low + high) - self._means), dtype=np.int64)
        base.flags.writeable = False
        self._optimal_base = base
        self._optimal_value = math.fsum(self._means[base].tolist())
        self._cheapest = True

    _cheapest = False

    def _draw(self, arms: IntArray, t: int) -> Any:
        costs = self._inner._draw(arms, t)
        self._settle()
        return costs

    def kernel_state(self) -> EnvironmentState | None:
        return self._inner.kernel_state()

    def _played_until(self, t: int) -> None:
        super()._played_until(t)
        self._inner._played_until(t)

    def regret(self, arms: npt.ArrayLike) -> float:
        """What a round with `arms` costs more, in expectation, than the cheapest base. O(D)."""
        return -super().regret(arms)

    def reset(self, seed: SupportsIndex | None = None) -> None:
        super().reset(seed)
        self._inner = copy.copy(self._inner)
        self._inner._lock = self._lock
        self._inner._pulls = self._pulls
        self._inner.reset(int(self._seed))
        self._inner._pulls = self._pulls
        self._settle()

    reset.__doc__ = Environment.reset.__doc__

    def __repr__(self) -> str:
        return f"minimize({self._inner!r})"
