"""CUCB that forgets little by little (Kocsis and Szepesvari 2006; Garivier and Moulines 2011, D-UCB)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from semibandit.arms import ALPHA, BETA, COUNT, TOTAL, FloatArray, IntArray
from semibandit.compiled.jit import kernel
from semibandit.engines import choose_clock, make_engine
from semibandit.engines.base import as_arms
from semibandit.engines.kernels import check_feedback
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid
from semibandit.policies.base import explain
from semibandit.policies.options import check_clock, check_exploration, check_step
from semibandit.policies.records import RecordPolicy
from semibandit.policies.state import array_of, number_of

# Weights are kept in units that grow by 1 / discount a round; beyond this they are divided by it. A power of 4, so
# that the division and its root are exact.
LARGEST_UNIT = 2.0**200


@kernel
def enter(recs, seen, arms, rewards, unit):
    """Count validated feedback, each with weight `unit`. Changes `recs` and `seen`. O(n)."""
    for i in range(arms.shape[0]):
        arm = arms[i]
        seen[arm] += 1
        n = recs[arm, COUNT] + unit
        total = recs[arm, TOTAL] + unit * rewards[i]
        recs[arm, COUNT] = n
        recs[arm, TOTAL] = total
        recs[arm, ALPHA] = total / n
        recs[arm, BETA] = 1.0 / math.sqrt(n)


@kernel
def divide(recs, unit):
    """Divide all weights by `unit`. An arm whose weight vanishes counts as never seen. O(K)."""
    for arm in range(recs.shape[0]):
        n = recs[arm, COUNT] / unit
        if n < 1e-280:
            recs[arm, COUNT] = 0.0
            recs[arm, TOTAL] = 0.0
            recs[arm, ALPHA] = np.inf
            recs[arm, BETA] = 0.0
        else:
            recs[arm, COUNT] = n
            recs[arm, TOTAL] /= unit
            recs[arm, BETA] = 1.0 / math.sqrt(n)


class DiscountedCUCB(RecordPolicy):
    """CUCB in which feedback that came s rounds ago counts with weight ``discount ** s``.

    Round t plays the maximum-weight base under ``mean + sqrt(exploration (b-a)^2 log n / N)``, where mean and N are the
    discounted ones of the arm and n is the sum of N over all arms (at least e).

    Parameters
    ----------
    matroid
        What may be played together.
    discount
        Strictly between 0 and 1. About 1 / (1 - discount) rounds are remembered; the analysis suggests
        1 - sqrt(changes / T) / 4.
    reward_range, exploration, clock, engine, step, seed
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
        discount: float = 0.999,
        reward_range: Any = (0.0, 1.0),
        exploration: float = 1.5,
        clock: str = "exact",
        engine: str = "auto",
        *,
        step: float = 0.01,
        seed: int | None = None,
    ) -> None:
        super().__init__(matroid, reward_range)
        if not 0.0 < discount < 1.0:
            raise ParameterError(f"discount must lie strictly between 0 and 1, got {discount!r}")
        self.discount = float(discount)
        self.exploration = check_exploration(exploration)
        self.step = check_step(step)
        self.seed = seed
        self._asked = (check_clock(clock), engine)
        self.clock = choose_clock(matroid, engine) if clock == "auto" else clock
        self._engine, self._why = make_engine(matroid, self.records, engine, self.clock)
        self._seen: IntArray = np.zeros(self.n_arms, dtype=np.int64)
        self._unit = 1.0
        self._weight = 0.0

    def select(self, exclude: Any = None) -> IntArray:
        """The base of largest index, ascending ids; avoids the arms in `exclude` (they are backfilled)."""
        if exclude is not None:
            exclude = as_arms(exclude, self.n_arms, "exclude")
        self._unit /= self.discount
        self._weight *= self.discount
        if self._unit > LARGEST_UNIT:
            self._divide()
        self._engine._lam = lam = max(self._width(), self._engine.lam)
        arms = self._engine._select(lam) if exclude is None else self._engine.base_excluding(exclude)
        self._t += 1
        return arms

    def _width(self) -> float:
        low, high = self.reward_range
        level = math.log(max(self._weight, math.e))
        lam = math.sqrt(self.exploration * level * self._unit) * (high - low)
        if self.clock == "staircase" and lam > 0.0:
            height = math.log1p(self.step)
            power = math.ceil(math.log(lam) / height)
            stair = math.exp(power * height)
            lam = stair if stair >= lam else math.exp((power + 1) * height)
        return lam

    def _divide(self) -> None:
        """Change to a larger unit, with a fresh engine because its clock goes back. O(K)."""
        divide(self._engine._recs, LARGEST_UNIT)
        self._unit /= LARGEST_UNIT
        gone = self._engine.deleted
        self._engine, self._why = make_engine(self.matroid, self.records, self._asked[1], self.clock)
        if len(gone):
            self._engine.delete(gone)

    def _update(self, arms: IntArray, rewards: FloatArray) -> None:
        low, high = self.reward_range
        code = int(check_feedback(self.n_arms, arms, rewards, low, high))
        if code:
            raise explain(code, arms, rewards, self.n_arms, low, high)
        enter(self._engine._recs, self._seen, arms, rewards, self._unit)
        self._weight += len(arms)
        self._engine.touch(arms)

    @property
    def counts(self) -> IntArray:
        """How often each arm's reward was ever seen. O(K) copy."""
        return self._seen.copy()

    @property
    def effective_counts(self) -> FloatArray:
        """Discounted number of rewards of each arm as of the last round. O(K) copy."""
        return np.asarray(self.records["count"] / self._unit)

    @property
    def confidence_width(self) -> float:
        """lam of the last round, relative to discounted counts: the index is ``mean + lam / sqrt(N)``."""
        return self._engine.lam / math.sqrt(self._unit)

    def _arguments(self) -> dict[str, Any]:
        return {
            "discount": self.discount,
            "reward_range": self.reward_range,
            "exploration": self.exploration,
            "clock": self._asked[0],
            "engine": self._asked[1],
            "step": self.step,
            "seed": self.seed,
        }

    def _state(self) -> dict[str, Any]:
        own = {"seen": self._seen, "unit": self._unit, "weight": self._weight}
        return {**super()._state(), **own}

    def _set_state(self, state: dict[str, Any]) -> None:
        self._seen[:] = array_of(state, "seen", np.int64, self.n_arms)
        self._unit, self._weight = number_of(state, "unit"), number_of(state, "weight")
        super()._set_state(state)

    def describe(self) -> dict[str, Any]:
        total = self._engine.memory() + self._seen.nbytes
        about = {**super().describe(), "clock": self.clock, "discount": self.discount}
        return {**about, "bytes": total, "bytes_per_arm": total / self.n_arms}

    def __repr__(self) -> str:
        return (
            f"DiscountedCUCB({self.matroid!r}, discount={self.discount}, engine={self.engine!r}, t={self._t})"
        )
