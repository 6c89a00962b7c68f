"""OSSB for matroids: explore exactly as much as the lower bound of Graves and Lai asks for."""

from __future__ import annotations

from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.checks import as_number, one_of
from semibandit.compiled.handle import by_handle
from semibandit.engines.resolve.one_by_one import Rule
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid
from semibandit.policies.catalogue import register
from semibandit.policies.decisions import Ends
from semibandit.policies.index.counted import NO_ARMS, CountGroupsPolicy
from semibandit.policies.index.ossb_rounds import (
    EXPLORED,
    IN_LEADER,
    LEADING,
    LOOP,
    VALID,
    OssbRounds,
    arm_to_explore,
    has_unseen,
    mark_leader,
    ossb_round,
    write_base,
)
from semibandit.policies.record_policy import RecordPolicy
from semibandit.policies.state import number_of

REWARDS = ("bernoulli", "gaussian")


@register(
    cost="O(G + D log K) per round for G different counts (uniform, partition, laminar); else O(K), or O(K D) tests",
    guarantee="made to reach the lower bound c log T of Graves and Lai; proven for OSSB itself, not for this form",
    reference="Combes, Magureanu and Proutiere 2017; Talebi and Proutiere 2016 for matroids",
    take="to see how near to the lower bound of an instance one can come in long runs",
)
class OSSB(CountGroupsPolicy):
    """Optimal sampling for structured bandits: neither optimism nor sampling, but the plan of the lower bound.

    Any policy that is good on all instances must play an arm k outside the best base ``log T / kl(mean_k, mean_s)``
    times, s = sigma(k) being the lightest arm of that base that k can replace, and for matroids that is all it must do
    (`semibandit.paper.theory.lower_bound_constant`). So in round t, with the leader (the base of largest empirical
    mean) and sigma from the means so far:

    - if ``N_k kl(mean_k, mean_sigma(k)) >= (1 + gamma) log t`` for all arms outside the leader, play the leader;
    - else, if some arm was played at most epsilon s times, s counting the rounds like this one, play the leader with
      the least played arm in place of its sigma;
    - else the leader with the arm of smallest ``N_k kl`` in place of its sigma, unless sigma was played less often than
      the arm: then the leader itself.

    Arms never seen come first, by id.

    Parameters
    ----------
    matroid
        What may be played together.
    reward_range
        Bounds (a, b) of every reward.
    rewards
        ``"bernoulli"``: kl of Bernoulli distributions, for means moved to [0, 1]; also valid, if cautious, for other
        rewards in the range. ``"gaussian"``: ``(difference of means)^2 / (2 sigma^2)``.
    sigma
        Standard deviation of a reward for ``"gaussian"``; (b - a) / 2 unless given.
    gamma
        How much more than the lower bound asks for is explored.
    epsilon
        Share of the exploring rounds in which the least played arm is played.
    seed
        OSSB draws nothing.

    Notes
    -----
    The lower bound and its closed form are proven (docs/theory.md) and tested against the linear program; the rule of
    the three cases is written from memory of the paper, with exchanges in place of its arms, and no theorem is claimed
    for it. The last condition is ours, for without it an arm whose mean is close to that of a little known sigma was
    played for thousands of rounds, each time in its place; where arms of the best base are played nearly always it
    changes nothing. Arms whose empirical mean ties with that of their sigma are explored first: by the means it costs
    nothing.

    Cost: arms are kept in groups of equal counts (`index.count_groups`). In uniform, partition and laminar matroids
    arms of one group share sigma, so that only the best one outside the leader can be the neediest: O(G + D log K)
    per round. For other matroids all K are looked at, and sigma is D membership tests an arm whenever the leader or the
    order of its means changed. Of equally needy arms the one of fewer plays is played, then of larger mean, of smaller
    id.

    Example
    -------
    >>> import semibandit as sb
    >>> policy = sb.OSSB(sb.Uniform(n_arms=3, rank=1))
    >>> policy.update([0, 1, 2] * 20, [0.9, 0.1, 0.2] * 20)
    >>> [policy.select().tolist() for _ in range(2)], policy.explored
    ([[0], [0]], 0)
    """

    name = "ossb"

    def __init__(
        self,
        matroid: Matroid,
        *,
        reward_range: Any = (0.0, 1.0),
        rewards: str = "bernoulli",
        sigma: float | None = None,
        gamma: float = 0.0,
        epsilon: float = 0.01,
        outside: str = "error",
        seed: int | None = 0,
    ) -> None:
        super().__init__(matroid, reward_range=reward_range, outside=outside, seed=seed)
        self.rewards = one_of(rewards, "rewards", REWARDS)
        if sigma is not None and rewards != "gaussian":
            raise ParameterError("sigma is for rewards = 'gaussian'; Bernoulli rewards have none")
        low, high = self.reward_range
        self.sigma = 0.5 * (high - low) if sigma is None else as_number(sigma, "sigma", 0.0, closed=False)
        self._asked = sigma
        self.gamma = as_number(gamma, "gamma", 0.0)
        self.epsilon = as_number(epsilon, "epsilon", 0.0, 1.0)
        rank = self.matroid.rank
        self._leader: IntArray = np.zeros(rank, dtype=np.int64)
        self._before: IntArray = np.zeros(rank, dtype=np.int64)
        self._partner: IntArray = np.full(self.n_arms, LOOP, dtype=np.int64)
        self._by_class: IntArray = np.zeros(self._n_classes, dtype=np.int64)
        self._meta: IntArray = np.zeros(3, dtype=np.int64)
        self._rounds = np.zeros(1)
        self._open()

    def _make_own(self) -> Any:
        low, high = self.reward_range
        return OssbRounds(
            groups=self._groups,
            low=low,
            span=high - low,
            rewards=REWARDS.index(self.rewards),
            sigma=self.sigma,
            gamma=self.gamma,
            epsilon=self.epsilon,
            leader=self._leader,
            before=self._before,
            partner=self._partner,
            by_class=self._by_class,
            meta=self._meta,
            rounds=self._rounds,
            none=NO_ARMS,
        )

    def _decide_round(self, t: int, arms: IntArray = NO_ARMS) -> IntArray:
        out = np.empty(self.matroid.rank, dtype=np.int64)
        own = self._aside.own_handle
        if self._in_kernels:
            enter = by_handle(ossb_round, OssbRounds, Rule).entry
            return out[: enter(own, self._handles[1], t, arms, out)].copy()

        def by_own(kernel: Any, *rest: Any) -> Any:
            return by_handle(kernel, OssbRounds).entry(own, *rest)

        leader = self._choose(0.0, arms)
        self._own.leader[: len(leader)] = leader
        self._meta[IN_LEADER] = len(leader)
        arm = -1
        if not by_own(has_unseen):
            if by_own(mark_leader, arms):
                self._find_partners(leader, arms)
            arm = int(by_own(arm_to_explore, t, arms))
        return out[: by_own(write_base, arm, out)].copy()

    def _find_partners(self, leader: IntArray, arms: IntArray) -> None:
        """sigma(k) where only Python can tell what is independent. A run of greedy over D + 1 arms for each."""
        some = arms if len(arms) else np.flatnonzero(self._presence.mask)
        order = np.concatenate(([0], leader)).astype(np.int64)
        for arm in some[self._partner[some] != LEADING].tolist():
            order[0] = arm
            picked = self.matroid._greedy(order.copy())
            left = leader[~np.isin(leader, picked)]
            self._partner[arm] = left[0] if arm in picked and len(left) else LOOP

    def _take_out(self, ids: IntArray) -> None:
        self._meta[VALID] = 0
        super()._take_out(ids)

    def _put_back(self, ids: IntArray) -> None:
        self._meta[VALID] = 0
        super()._put_back(ids)

    @property
    def explored(self) -> int:
        """Rounds, after all arms were seen, in which the leader was not simply played."""
        return int(self._rounds[EXPLORED])

    def _scores(self, arms: IntArray) -> FloatArray:
        return RecordPolicy._scores(self, arms)

    def _likely(self, arms: IntArray, scores: FloatArray) -> Ends:
        return RecordPolicy._likely(self, arms, scores)

    def _arguments(self) -> dict[str, Any]:
        return {
            **super()._arguments(),
            "rewards": self.rewards,
            "sigma": self._asked,
            "gamma": self.gamma,
            "epsilon": self.epsilon,
        }

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "explored": float(self._rounds[EXPLORED])}

    def _set_state(self, state: dict[str, Any]) -> None:
        explored = number_of(state, "explored")
        super()._set_state(state)
        self._rounds[EXPLORED] = explored

    def describe(self) -> dict[str, Any]:
        """What runs inside; ``explored`` counts the rounds in which the leader was not simply played."""
        return {**super().describe(), "rewards": self.rewards, "explored": self.explored}

    def __repr__(self) -> str:
        return f"OSSB({self.matroid!r}, rewards={self.rewards!r}, t={self._t})"
