"""CUCB that forgets little by little (Kocsis and Szepesvari 2006; Garivier and Moulines 2011, D-UCB)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from semibandit.arms import ALPHA, BETA, COUNT, TOTAL, FloatArray, IntArray
from semibandit.checks import as_number
from semibandit.compiled.handle import Floats1, Ints1, Number
from semibandit.compiled.jit import Kernel, inline_kernel, kernel
from semibandit.engines import make_engine
from semibandit.engines.clock import stair_at_least
from semibandit.engines.kernels import engine_touch_many
from semibandit.matroids import Matroid
from semibandit.policies.catalogue import register
from semibandit.policies.decisions import Tell
from semibandit.policies.index.forgetting import ForgettingPolicy
from semibandit.policies.rounds import ASK, implement_rounds
from semibandit.policies.state import array_of, number_of
from semibandit.policies.straight import Place

# Weights are kept in units that grow by 1 / discount a round; beyond this they are divided by it. A power of 4, so
# that the division and its root are exact.
LARGEST_UNIT = 2.0**200


# Of `now`: the unit, the discounted number of all rewards, and lam of the last round in terms of the unit.
UNIT, WEIGHT, LAM = 0, 1, 2


class DiscountRounds(NamedTuple):
    """`seen`: how often each arm's reward was ever seen. `eta`: the height of a stair, 0 for the exact clock.
    `waiting`: plays of each arm that wait for feedback, empty as long as none ever did. `first`: weights of arms never
    seen, empty where they are infinite."""

    discount: Number
    scale: Number
    eta: Number
    high: Number
    seen: Ints1
    waiting: Ints1
    first: Floats1
    now: Floats1


@kernel
def _discount_prepare(own, engine, t):
    """A round passes: the unit grows, and lam with it. ASK if the unit must be divided first. O(1)."""
    now = own.now
    if now[UNIT] / own.discount > LARGEST_UNIT:
        return float(ASK)
    now[UNIT] /= own.discount
    now[WEIGHT] *= own.discount
    lam = math.sqrt(own.scale * math.log(max(now[WEIGHT], math.e)) * now[UNIT])
    if own.eta > 0.0 and lam > 0.0:
        lam = stair_at_least(lam, own.eta)
    now[LAM] = max(now[LAM], lam)
    return now[LAM]


@inline_kernel
def _weigh(own, recs, arm):
    """Write the weight of an arm. Plays that wait count as rewards that come now. O(1)."""
    seen = recs[arm, COUNT]
    n = seen + own.waiting[arm] * own.now[UNIT] if own.waiting.shape[0] else seen
    if n <= 0.0:
        recs[arm, ALPHA] = own.first[arm] if own.first.shape[0] else np.inf
        recs[arm, BETA] = 0.0
        return
    recs[arm, ALPHA] = recs[arm, TOTAL] / seen if seen > 0.0 else own.high
    recs[arm, BETA] = 1.0 / math.sqrt(n)


@inline_kernel
def _discount_wait(own, engine, arms, change):
    """Count `change` more plays that wait of each arm, and write their weights. O(len(arms))."""
    for i in range(arms.shape[0]):
        own.waiting[arms[i]] += change
    for i in range(arms.shape[0]):
        _weigh(own, engine.recs, arms[i])
    engine_touch_many(engine, arms)


@inline_kernel
def _discount_learn(own, engine, arms, rewards, n):
    """Count feedback, each reward with the weight of the unit. O(n)."""
    recs, unit = engine.recs, own.now[UNIT]
    for j in range(n):
        arm = arms[j]
        own.seen[arm] += 1
        recs[arm, COUNT] += unit
        recs[arm, TOTAL] += unit * rewards[j]
        _weigh(own, recs, arm)
    own.now[WEIGHT] += n


implement_rounds(DiscountRounds, prepare=_discount_prepare, learn=_discount_learn)


@kernel
def divide(recs, waiting, first, unit):
    """Divide all weights by `unit`. An arm whose weight vanishes counts as never seen. O(K)."""
    for arm in range(recs.shape[0]):
        waits = waiting.shape[0] > 0 and waiting[arm] > 0
        n = recs[arm, COUNT] / unit
        if n < 1e-280:
            recs[arm, COUNT] = 0.0
            recs[arm, TOTAL] = 0.0
            if not waits:
                recs[arm, ALPHA] = first[arm] if first.shape[0] else np.inf
                recs[arm, BETA] = 0.0
        else:
            recs[arm, COUNT] = n
            recs[arm, TOTAL] /= unit
            if not waits:
                recs[arm, BETA] = 1.0 / math.sqrt(n)
        if waits:
            recs[arm, BETA] *= math.sqrt(unit)


@register(
    cost="that of cucb; O(K) every 139 / (1 - discount) rounds",
    guarantee="for rewards that change: old feedback counts less",
    reference="Kocsis and Szepesvari 2006; Garivier and Moulines 2011",
    take="when means drift slowly",
)
class DiscountedCUCB(ForgettingPolicy):
    """CUCB in which feedback that came s rounds ago counts with weight ``discount ** s``.

    Round t plays the maximum-weight base under ``mean + sqrt(exploration (b-a)^2 log n / N)``, where mean and N are the
    discounted ones of the arm and n is the sum of N over all arms (at least e). Plays of `decide` that wait for
    feedback count in N as rewards that came when the arm was last decided on or learnt of.

    Parameters
    ----------
    matroid
        What may be played together.
    discount
        Strictly between 0 and 1. About 1 / (1 - discount) rounds are remembered; the analysis suggests
        1 - sqrt(changes / T) / 4.
    reward_range, exploration, clock, engine, step, ties, seed
        As in `CUCB`.

    Notes
    -----
    Discounting touches no arm. With weights in units of discount^-t, a mean stays what it is and the width of an arm is
    lam_t / sqrt(N') with N' constant and lam_t = sqrt(exploration (b-a)^2 log n_t) discount^(-t/2), which never
    decreases: between two rounds n shrinks by at most the factor `discount`, and log max(n, e) by less than that. So
    kinetic engines follow it exactly. Every 139 / (1 - discount) rounds the unit is divided by 2^200, in O(K). Under a
    staircase clock there is a step every 2 step / (1 - discount) rounds, since all widths grow at that rate.

    Cost: that of CUCB, with more overtaking: widths of arms that are not played grow exponentially.

    Example
    -------
    >>> import semibandit as sb
    >>> policy = sb.DiscountedCUCB(sb.Uniform(n_arms=3, rank=1), discount=0.5)
    >>> for reward in (1.0, 0.0, 0.0):
    ...     policy.update(policy.select(), [reward])
    >>> policy.select().tolist(), policy.effective_counts.tolist()
    ([0], [0.125, 0.25, 0.5])
    """

    name = "discounted-cucb"

    def __init__(
        self,
        matroid: Matroid,
        *,
        discount: float = 0.999,
        reward_range: Any = (0.0, 1.0),
        exploration: float = 1.5,
        clock: str = "exact",
        engine: str = "auto",
        step: float = 0.01,
        ties: str = "id",
        outside: str = "error",
        seed: int | None = 0,
    ) -> None:
        super().__init__(
            matroid,
            reward_range=reward_range,
            exploration=exploration,
            clock=clock,
            engine=engine,
            step=step,
            ties=ties,
            outside=outside,
            seed=seed,
        )
        self.discount = as_number(discount, "discount", 0.0, 1.0, closed=False)
        self._seen: IntArray = np.zeros(self.n_arms, dtype=np.int64)
        self._now: FloatArray = np.array([1.0, 0.0, 0.0])
        self._open()

    def _make_own(self) -> Any:
        return DiscountRounds(
            discount=self.discount,
            scale=self._scale,
            eta=self._eta,
            high=self.reward_range[1],
            seen=self._seen,
            waiting=self._waiting,
            first=self._first,
            now=self._now,
        )

    def _wait_kernel(self) -> Kernel:
        return _discount_wait

    def _wait_again(self, arms: IntArray) -> None:
        # The records have it that they wait, in the units of the round that said so.
        self._make_room_to_wait()
        self._waiting[arms] += 1

    def _ask(self, rounds: int) -> int:
        if self._now[UNIT] / self.discount > LARGEST_UNIT:
            self._divide()
        return rounds

    def _divide(self) -> None:
        """Change to a larger unit, with a fresh engine because its clock goes back. O(K)."""
        divide(self._engine._recs, self._waiting, self._first, LARGEST_UNIT)
        self._now[UNIT] /= LARGEST_UNIT
        self._now[LAM] = 0.0
        gone = self._engine.deleted
        self._engine, self._why = make_engine(self.matroid, self.records, self._asked[1], self.clock)
        if len(gone):
            self._engine.delete(gone)
        self._open()

    def _make_room_for(self, matroid: Matroid) -> None:
        self._seen = np.concatenate((self._seen, np.zeros(matroid.n_arms - self.n_arms, dtype=np.int64)))

    def _reset(self, ids: IntArray) -> None:
        # n, the number of all rewards, tells how much time has passed and stays, as the clock of CUCB does.
        self._seen[ids] = 0
        super()._reset(ids)

    def _query_at(self) -> Place:
        return self._now, LAM

    @property
    def counts(self) -> IntArray:
        """How often each arm's reward was ever seen. O(K) copy."""
        return self._seen.copy()

    def _account(self, arms: IntArray, scores: FloatArray) -> Tell:
        plays, tell = self._seen[arms], super()._account(arms, scores)
        return lambda: tell()._replace(plays=plays)

    @property
    def effective_counts(self) -> FloatArray:
        """Discounted number of rewards of each arm as of the last round. O(K) copy."""
        return np.asarray(self.records["count"] / self._now[UNIT])

    @property
    def confidence_width(self) -> float:
        """lam of the last round, relative to discounted counts: the index is ``mean + lam / sqrt(N)``."""
        return self._last_query() / math.sqrt(self._now[UNIT])

    def _arguments(self) -> dict[str, Any]:
        return {**super()._arguments(), "discount": self.discount}

    def _state(self) -> dict[str, Any]:
        own = {"seen": self._seen, "unit": float(self._now[UNIT]), "weight": float(self._now[WEIGHT])}
        return {**super()._state(), **own}

    def _set_state(self, state: dict[str, Any]) -> None:
        self._seen[:] = array_of(state, "seen", np.int64, self.n_arms)
        self._now[:] = number_of(state, "unit"), number_of(state, "weight"), number_of(state, "lam")
        super()._set_state(state)

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "discount": self.discount}

    def __repr__(self) -> str:
        return (
            f"DiscountedCUCB({self.matroid!r}, discount={self.discount}, engine={self.engine!r}, t={self._t})"
        )
