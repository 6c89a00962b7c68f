"""FPL: follow the perturbed leader with geometric resampling (Neu and Bartok 2013)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.engines.kernels import add_rewards
from semibandit.errors import FileError
from semibandit.matroids import Matroid
from semibandit.policies.counting import CountingPolicy, check_number, check_seed, set_generator
from semibandit.policies.options import check_whole
from semibandit.policies.state import array_of, whole_of


class FPL(CountingPolicy):
    """Follow the perturbed leader, for rewards that an adversary may choose.

    Each round plays the best base of ``Z - eta L``: Z exponential, fresh for every arm, and L the estimated losses so
    far (a loss is (b - reward) / (b - a)). What was seen of an arm must be weighted by one over the probability of
    playing it, which has no formula; the number of fresh draws until the arm is played again has that mean. Draws
    end when all played arms came up again, at `cap` at the latest.

    Parameters
    ----------
    matroid
        What may be played together.
    reward_range
        Bounds (a, b) of every reward.
    horizon
        T, from which eta and cap follow; if not given they follow from the current round (anytime).
    eta
        Learning rate; sqrt((log K + 1) / (K T)) unless given.
    cap
        Most draws a round for the weights; sqrt(K T) / (e D sqrt(log K + 1)), rounded up, unless given.
    seed
        Of the perturbations.

    Notes
    -----
    Expected regret against any fixed base: O(D sqrt(K T log K)), also where rewards are not random (Neu and Bartok
    2013).

    Feedback of an arm is weighted by the count drawn when it was last played; by 1 if it never was (a warm start).

    Cost: O(K) a draw and the matroid's greedy, at most 1 + cap draws a round. No sublinear form is known.

    Example
    -------
    >>> import semibandit as sb
    >>> policy = sb.FPL(sb.Uniform(n_arms=5, rank=2), horizon=1000, seed=1)
    >>> arms = policy.select()
    >>> policy.update(arms, [1.0, 0.0])
    >>> policy.cap
    9
    """

    name = "fpl"

    def __init__(
        self,
        matroid: Matroid,
        reward_range: Any = (0.0, 1.0),
        horizon: int | None = None,
        eta: float | None = None,
        cap: int | None = None,
        seed: int | None = 0,
    ) -> None:
        super().__init__(matroid, reward_range)
        self.horizon = None if horizon is None else check_whole(horizon, "horizon", 1, "rounds")
        self._asked = (
            None if eta is None else check_number(eta, "eta", 0.0, 1e300, closed=False),
            None if cap is None else check_whole(cap, "cap", 1, "draws"),
        )
        self._losses = np.zeros(self.n_arms)
        self._weights = np.ones(self.n_arms)
        self._resamples = 0
        self.seed = check_seed(seed)
        self.reseed(self.seed)

    def reseed(self, seed: int) -> None:
        """Start the perturbations anew."""
        self._rng = np.random.default_rng(check_seed(seed))

    def _scale(self) -> float:
        return self.n_arms * float(max(self._t, 1) if self.horizon is None else self.horizon)

    @property
    def eta(self) -> float:
        """The learning rate now."""
        if self._asked[0] is not None:
            return self._asked[0]
        return math.sqrt((math.log(self.n_arms) + 1.0) / self._scale())

    @property
    def cap(self) -> int:
        """The most draws for the weights of a round, now."""
        if self._asked[1] is not None:
            return self._asked[1]
        root = math.e * self.matroid.rank * math.sqrt(math.log(self.n_arms) + 1.0)
        return max(1, math.ceil(math.sqrt(self._scale()) / root))

    @property
    def losses(self) -> FloatArray:
        """Estimated sum of losses of each arm. O(K) copy."""
        return self._losses.copy()

    def _perturbed(self, present: Any, scaled: FloatArray) -> IntArray:
        """A draw of the base from the current distribution. O(K)."""
        weights = self._rng.standard_exponential(self.n_arms)
        weights -= scaled
        if present is not None:
            weights[~present] = -np.inf
        arms = self.matroid._max_weight_base(weights)
        # Absent arms come last, so those before them are the best base of the others.
        return arms if present is None else arms[present[arms]]

    def select(self, exclude: Any = None) -> IntArray:
        """A base of the perturbed leader, ascending ids; avoids the arms in `exclude`."""
        present = None if self._present.all() else self._present
        if exclude is not None:
            ids = self._excluded(exclude)
            present = self._present.copy()
            present[ids] = False
        self._t += 1
        scaled = self.eta * self._losses
        arms = self._perturbed(present, scaled)
        cap = self.cap
        self._weights[arms] = cap
        waiting = np.zeros(self.n_arms, dtype=np.bool_)
        waiting[arms] = True
        left = len(arms)
        for i in range(1, cap + 1):
            again = self._perturbed(present, scaled)
            self._resamples += 1
            again = again[waiting[again]]
            self._weights[again] = i
            waiting[again] = False
            left -= len(again)
            if left == 0:
                break
        return arms

    def _update(self, arms: IntArray, rewards: FloatArray) -> None:
        self._checked(arms, rewards)
        add_rewards(self._recs, arms, rewards)
        low, high = self.reward_range
        np.add.at(self._losses, arms, self._weights[arms] * ((high - rewards) / (high - low)))

    def _arguments(self) -> dict[str, Any]:
        eta, cap = self._asked
        return {
            "reward_range": self.reward_range,
            "horizon": self.horizon,
            "eta": eta,
            "cap": cap,
            "seed": self.seed,
        }

    def _state(self) -> dict[str, Any]:
        return {
            **super()._state(),
            "losses": self._losses,
            "weights": self._weights,
            "resamples": self._resamples,
            "rng": self._rng.bit_generator.state,
        }

    def _set_state(self, state: dict[str, Any]) -> None:
        losses = array_of(state, "losses", np.float64, self.n_arms)
        weights = array_of(state, "weights", np.float64, self.n_arms)
        if not (np.isfinite(losses).all() and np.isfinite(weights).all()):
            raise FileError("the estimated losses must be finite")
        super()._set_state(state)
        self._losses, self._weights = losses, weights
        self._resamples = whole_of(state, "resamples")
        set_generator(self._rng, state["rng"])

    def describe(self) -> dict[str, Any]:
        """What runs inside; ``resamples`` counts the draws for weights."""
        return {
            "policy": self.name,
            "matroid": repr(self.matroid),
            "engine": "none",
            "why": "every draw perturbs all arms",
            "eta": self.eta,
            "cap": self.cap,
            "resamples": self._resamples,
        }

    def __repr__(self) -> str:
        return f"FPL({self.matroid!r}, horizon={self.horizon}, t={self._t})"
