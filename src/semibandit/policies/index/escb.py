"""ESCB-2: optimism about whole bases (Combes et al. 2015), by the greedy of Perrault, Perchet and Valko (2019)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from semibandit.arms import ALPHA, BETA, IntArray
from semibandit.checks import as_number
from semibandit.compiled.handle import Ints1, Number, by_handle
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid
from semibandit.policies.catalogue import register
from semibandit.policies.choosing import best_base
from semibandit.policies.index.count_groups import LOOKED, WIDTH, CountGroups, count_reward
from semibandit.policies.index.counted import NO_ARMS, CountGroupsPolicy
from semibandit.policies.index.gains import choose_sorted
from semibandit.policies.rounds import implement_rounds

EXPLORATIONS = ("practical", "theory")

# Steps of the search for the best bound.
_STEPS = 12


class EscbRounds(NamedTuple):
    """f(t) is ``scale (log t + extra log log t)``. `none`: no arms."""

    groups: CountGroups
    scale: Number
    extra: Number
    none: Ints1


@inline_kernel
def width_of_round(own, t):
    """sqrt f(t); log t counts as 1 at least where its logarithm is taken. O(1)."""
    log = math.log(float(t))
    return math.sqrt(own.scale * (log + own.extra * math.log(max(1.0, log))))


@kernel
def _escb_select(own, rule, t, out):
    return choose_sorted(own.groups, rule, width_of_round(own, t), own.none, out)


@kernel
def _escb_learn(own, rule, arms, rewards, n):
    for j in range(n):
        count_reward(own.groups, arms[j], rewards[j])


implement_rounds(EscbRounds, select=_escb_select, learn=_escb_learn, touches="nothing")


class Certificate(NamedTuple):
    """`index`: of the base that is played now. `bound`: at least the index of every base, found at `lam`."""

    index: float
    bound: float
    lam: float


@register(
    cost="O(G + D log K) gains per round for G different counts (uniform, partition, laminar); else arms refused too",
    guarantee="L + 2F of the played base >= L + F of any; gap-free regret better by sqrt(D) / log D, independent arms",
    reference="Combes et al. 2015; Perrault, Perchet and Valko 2019",
    take="for optimism with a stated bound where the arms of a base are independent and CUCB explores too much",
)
class ESCB(CountGroupsPolicy):
    """Optimism about the sum of a base in place of each arm alone: less exploration where arms are independent.

    The index of a base A is ``M(A) + sqrt(f(t) V(A))``, M the sum of the means and V that of 1/N. No fast way to its
    maximum is known; what is played is the base that greedy finds when it always adds the arm of largest gain
    ``mean + sqrt(f (c + 1/N)) - sqrt(f c)``, c being V of what it has (Perrault et al. 2019, Algorithm 3). With
    L = M and F = sqrt(f V) that base S has ``L(S) + 2 F(S) >= L(O) + F(O)`` for every base O.

    Parameters
    ----------
    matroid
        What may be played together.
    reward_range
        Bounds (a, b) of every reward.
    exploration
        ``"practical"``: f(t) = (b-a)^2 / 2 log t. ``"theory"``: f(t) = (b-a)^2 / 2 (log t + 4 D log log t), what the
        proof asks for; log t counts as 1 at least under the second logarithm. A number e: f(t) = e (b-a)^2 log t, so
        that D = 1 is CUCB with the same number.
    seed
        ESCB draws nothing.

    Notes
    -----
    Of equal gains the larger mean comes first, then the smaller id. Arms never seen come first, by id, and count
    nothing in c. Plays that wait (`decide`) count in N.

    Cost: arms are kept in groups of equal counts, each in the order of its means; only the first of a group can have
    the largest gain, and gains only fall while the base grows. So a round computes a gain for each of the G groups, and
    a few more; ``describe()["looked_at"]`` counts them. A group has one class of arms in partition and laminar matroids
    (the innermost family); for graphic, transversal and linear matroids arms that do not fit are looked at one by one,
    as Kruskal's algorithm does. O(log K) per arm updated.

    `describe` tells how far the played base can be from the best index: ``sqrt(f V) <= lam V + f / (4 lam)`` for every
    lam > 0, so ``h(lam) = max of (M + lam V) + f / (4 lam)`` is a bound: one maximum-weight base for each lam tried.

    Example
    -------
    >>> import semibandit as sb
    >>> policy = sb.ESCB(sb.Uniform(n_arms=4, rank=2))
    >>> policy.update([0, 1, 2, 3], [0.9, 0.2, 0.8, 0.1])
    >>> policy.select().tolist()
    [0, 2]
    >>> found = policy.certificate()
    >>> bool(found.index <= found.bound)
    True
    """

    name = "escb"

    def __init__(
        self,
        matroid: Matroid,
        *,
        reward_range: Any = (0.0, 1.0),
        exploration: float | str = "practical",
        outside: str = "error",
        seed: int | None = 0,
    ) -> None:
        super().__init__(matroid, reward_range=reward_range, outside=outside, seed=seed)
        if isinstance(exploration, str) and exploration not in EXPLORATIONS:
            names = ", ".join(map(repr, EXPLORATIONS))
            raise ParameterError(f"exploration must be a number, {names}, got {exploration!r}")
        self._asked = exploration
        self.exploration = 0.5 if isinstance(exploration, str) else as_number(exploration, "exploration", 0.0)
        self._extra = 4.0 * self.matroid.rank if exploration == "theory" else 0.0
        self._open()

    def _make_own(self) -> Any:
        low, high = self.reward_range
        return EscbRounds(self._groups, self.exploration * (high - low) ** 2, self._extra, NO_ARMS)

    def _width_of(self, t: int) -> float:
        return float(by_handle(width_of_round, EscbRounds).entry(self._aside.own_handle, t))

    def _begin_round(self, t: int) -> None:
        self._groups.now[WIDTH] = self._width_of(t)

    def _decide_round(self, t: int, arms: IntArray = NO_ARMS) -> IntArray:
        return np.sort(self._choose(self._width_of(t), arms))

    def certificate(self) -> Certificate:
        """How good the base of the present moment is, by the width of the last round. O(K log K) a step, 12 steps.

        Both are infinite while an arm that may be played was never seen.
        """
        width, looked = self.confidence_width, int(self._groups.meta[LOOKED])
        chosen = self._choose(width)
        self._groups.meta[LOOKED] = looked  # by rounds alone
        here, f = self._presence.mask, width * width
        index, v = self._index_of(chosen, f)
        if math.isinf(index) or f == 0.0 or not len(chosen):
            return Certificate(index, index, 0.0)
        mean, inverse = self._recs[:, ALPHA], self._recs[:, BETA] ** 2
        best = (math.inf, 0.0)
        # h is convex; its slope at lam is V of the maximiser less f / (4 lam^2).
        start = math.sqrt(f / (4.0 * v))
        below, above = start / 64.0, start * 64.0
        lam = start
        for _ in range(_STEPS):
            base = best_base(self.matroid, mean + lam * inverse, here)
            total = float(mean[base].sum() + lam * inverse[base].sum() + f / (4.0 * lam))
            best = min(best, (total, lam))
            if inverse[base].sum() > f / (4.0 * lam * lam):
                above = lam
            else:
                below = lam
            lam = math.sqrt(below * above)
        # What rounding of sums may have lost.
        bound = max(index, best[0] + 1e-12 * abs(best[0]))
        return Certificate(index, bound, best[1])

    def _index_of(self, arms: IntArray, f: float) -> tuple[float, float]:
        """M + sqrt(f V) and V of these arms, infinite if one was never seen."""
        inverse = self._recs[arms, BETA] ** 2
        if not inverse.all():
            return math.inf, math.inf
        v = float(inverse.sum())
        return float(self._recs[arms, ALPHA].sum()) + math.sqrt(f * v), v

    def _arguments(self) -> dict[str, Any]:
        return {**super()._arguments(), "exploration": self._asked}

    def describe(self) -> dict[str, Any]:
        """What runs inside; ``index`` and ``bound`` are those of `certificate`, ``gap`` their difference."""
        index, bound, _ = self.certificate()
        gap = 0.0 if math.isinf(bound) else bound - index
        return {
            **super().describe(),
            "exploration": self._asked,
            "index": index,
            "bound": bound,
            "gap": gap,
        }

    def __repr__(self) -> str:
        return f"ESCB({self.matroid!r}, exploration={self._asked!r}, t={self._t})"
