"""MAUB: a leader and its exchanges (after Delage and Gaudel 2025), as we read the paper's abstract."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from semibandit.arms import ALPHA, BETA, COUNT, TOTAL, FloatArray, IntArray
from semibandit.compiled.jit import kernel
from semibandit.errors import FileError, ParameterError
from semibandit.matroids import Matroid
from semibandit.matroids.base import heaviest_first
from semibandit.matroids.validate import arm_ids
from semibandit.policies.counting import CountingPolicy, check_number, check_seed
from semibandit.policies.identification.circuits import (
    BoolTable,
    best_exchange,
    exchange_table,
    lightest_first,
)
from semibandit.policies.index.nonlinear import kl_upper
from semibandit.policies.state import array_of, whole_of

INDICES = ("kl", "ucb")
COUNTERS = ("reign", "oracle_rounds", "tests", "leaders")


@kernel
def kl_indices(recs, budget, low, span, out):
    """KL index of every arm, on the unit scale; infinite for an arm never seen. Changes `out`. O(K)."""
    for k in range(recs.shape[0]):
        n = recs[k, COUNT]
        if n == 0.0:
            out[k] = math.inf
        else:
            p = (recs[k, TOTAL] / n - low) / span
            out[k] = kl_upper(min(max(p, 0.0), 1.0), budget / n)


class MAUB(CountingPolicy):
    """Unimodal matroid bandit: the best base by mean leads, and only its single exchanges are explored.

    Our reading of Delage and Gaudel, "Efficient Matroid Bandit Linear Optimization Leveraging Unimodality" (2025),
    from its abstract; it is not the authors' algorithm line by line, and their theorems are not claimed for it.
    A base that no single exchange improves is the best one, so bases form a unimodal graph (Combes and Proutiere 2014).

    - The leader is the base of largest empirical mean; arms never seen count as infinite, and bases that hold such
      arms are played as they are until all arms are covered.
    - A round plays the best base by index among the leader and its single exchanges; of exchanges the one that gains
      most. Every `leader_every`-th round of a leader's reign plays the leader itself.
    - Which exchanges are bases (fundamental circuits) is found when the leader changes, and kept. With them it is also
      seen, without any independence test, whether the leader is still the best by mean. So the membership oracle
      is asked in rounds with a new leader only: ``describe()["oracle_rounds"]``.

    Parameters
    ----------
    matroid
        What may be played together.
    reward_range
        Bounds (a, b) of every reward.
    index
        ``"kl"``: the largest q with N kl(mean, q) <= log t + 3 log log t, rewards scaled to [0, 1]. ``"ucb"``:
        mean + sqrt(1.5 (b-a)^2 log t / N).
    leader_every
        See above; D + 1 unless given.

    Notes
    -----
    Cost: O(K) to O(K D) a round. With a new leader: a greedy over all arms, and the circuits: O(K D) without any test
    for uniform, partition and graphic matroids, up to K D independence tests for others. K D bytes are kept.

    Example
    -------
    >>> import semibandit as sb
    >>> matroid = sb.Graphic([(0, 1), (1, 2), (2, 0), (2, 3)])
    >>> env = sb.Bernoulli(matroid, [0.2, 0.8, 0.6, 0.5], seed=1)
    >>> policy = sb.MAUB(matroid)
    >>> result = sb.simulate(policy, env, rounds=500)
    >>> policy.leader.tolist(), policy.describe()["oracle_rounds"] < 50
    ([1, 2, 3], True)
    """

    name = "maub"

    def __init__(
        self,
        matroid: Matroid,
        reward_range: Any = (0.0, 1.0),
        index: str = "kl",
        leader_every: int | None = None,
        seed: int | None = 0,
    ) -> None:
        super().__init__(matroid, reward_range)
        self.seed = check_seed(seed)
        if index not in INDICES:
            raise ParameterError(f"index = {index!r} is not known: one of {', '.join(map(repr, INDICES))}")
        self.index = index
        every = (
            matroid.rank + 1 if leader_every is None else check_number(leader_every, "leader_every", 2, 2**53)
        )
        if every != int(every):
            raise ParameterError(f"leader_every must be an integer of at least 2, got {leader_every!r}")
        self.leader_every = int(every)
        self._table: BoolTable | None = None
        self._leader: IntArray = np.empty(0, dtype=np.int64)
        self._reign = 0
        self._oracle_rounds = 0
        self._tests = 0
        self._leaders = 0

    @property
    def leader(self) -> IntArray:
        """The leader of the last round."""
        return self._leader.copy()

    def _greedy(self, weights: FloatArray, present: Any) -> IntArray:
        order = heaviest_first(weights)
        return np.sort(self.matroid._greedy(order[present[order]]))

    def indices(self, t: int) -> FloatArray:
        """The index of every arm in round t. O(K)."""
        low, high = self.reward_range
        if self.index == "ucb":
            lam = math.sqrt(1.5 * (high - low) ** 2 * math.log(t))
            ucb: FloatArray = self._recs[:, ALPHA] + lam * self._recs[:, BETA]
            return ucb
        log = math.log(max(t, 2))
        out = np.empty(self.n_arms)
        kl_indices(self._recs, log + 3.0 * math.log(max(log, 1.0)), low, high - low, out)
        return out

    def select(self, exclude: Any = None) -> IntArray:
        """The leader or one of its exchanges, ascending ids. With `exclude`: the best base by index without them."""
        t = self._t + 1
        if exclude is not None:
            present = self._present.copy()
            present[self._excluded(exclude)] = False
            arms = self._greedy(self.indices(t), present)
            self._oracle_rounds += 1
        else:
            arms = self._play(t)
        self._t = t
        return arms

    def _play(self, t: int) -> IntArray:
        means = np.ascontiguousarray(self._recs[:, ALPHA])
        if self._table is None or self._exchange(means)[0] >= 0:
            self._crown(means)
        self._reign += 1
        if self._table is None or self._reign % self.leader_every == 0:
            return self._leader.copy()
        arm, place = self._exchange(self.indices(t))
        arms = self._leader.copy()
        if arm >= 0:
            arms[place] = arm
            arms.sort()
        return arms

    def _exchange(self, weights: FloatArray) -> tuple[int, int]:
        """The exchange of the leader that gains most under `weights`: (arm, place in the leader), or (-1, -1)."""
        assert self._table is not None
        places = lightest_first(self._leader, weights)
        arm, place = best_exchange(self._table, self._leader, places, weights)
        return int(arm), int(place)

    def _crown(self, means: FloatArray) -> None:
        """Find the leader anew, and its circuits unless it holds arms never seen."""
        self._leader = self._greedy(means, self._present)
        self._oracle_rounds += 1
        self._leaders += 1
        self._reign = 0
        self._table = None
        if np.isfinite(means[self._leader]).all():
            # Absent arms and loops have no part in any exchange.
            self._table, tests = exchange_table(self.matroid, self._leader, np.flatnonzero(self._present))
            self._tests += tests

    def _leave(self, ids: IntArray) -> None:
        self._table = None

    def _enter(self, ids: IntArray) -> None:
        self._table = None

    def _arguments(self) -> dict[str, Any]:
        return {
            "reward_range": self.reward_range,
            "index": self.index,
            "leader_every": self.leader_every,
            "seed": self.seed,
        }

    def _state(self) -> dict[str, Any]:
        counters = {name: getattr(self, f"_{name}") for name in COUNTERS}
        return {**super()._state(), **counters, "leader": self._leader, "crowned": self._table is not None}

    def _set_state(self, state: dict[str, Any]) -> None:
        super()._set_state(state)
        leader = arm_ids(array_of(state, "leader", np.int64), self.n_arms, "leader")
        for name in COUNTERS:
            setattr(self, f"_{name}", whole_of(state, name))
        self._leader, self._table = leader, None
        if state["crowned"]:
            if not self.matroid._is_independent(leader) or not self._present[leader].all():
                raise FileError("the leader is no base")
            self._table, _ = exchange_table(self.matroid, leader, np.flatnonzero(self._present))

    def describe(self) -> dict[str, Any]:
        """What runs inside: ``oracle_rounds`` counts the rounds that asked the membership oracle (those that cover all
        arms at the start included), ``circuit_tests`` the independence tests spent on circuits.
        """
        return {
            "policy": self.name,
            "matroid": repr(self.matroid),
            "engine": "circuits",
            "why": "exchanges of the leader are kept until it changes",
            "index": self.index,
            "oracle_rounds": self._oracle_rounds,
            "leaders": self._leaders,
            "circuit_tests": self._tests,
        }

    def __repr__(self) -> str:
        return f"MAUB({self.matroid!r}, index={self.index!r}, t={self._t})"
