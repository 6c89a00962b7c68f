"""MAUB: a leader and its exchanges (after Delage and Gaudel 2025), as we read the paper's abstract."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from semibandit.arms import ALPHA, BETA, COUNT, TOTAL, FloatArray, IntArray
from semibandit.checks import as_whole, one_of
from semibandit.compiled.handle import ArrayOf, Floats1, Ints1, Number, Whole, by_handle
from semibandit.compiled.jit import kernel
from semibandit.compiled.sorting import sort_ids_in_place
from semibandit.errors import FileError
from semibandit.matroids import Matroid
from semibandit.matroids.base import heaviest_first
from semibandit.matroids.validate import arm_ids
from semibandit.policies.catalogue import register
from semibandit.policies.decisions import Ends
from semibandit.policies.identification.circuits import best_exchange, exchange_table
from semibandit.policies.index.formulas import kl_upper
from semibandit.policies.records import CountingPolicy
from semibandit.policies.rounds import ASK, count_rewards, implement_rounds
from semibandit.policies.state import array_of, whole_of

INDICES = ("ucb", "kl")
COUNTERS = ("reign", "oracle_rounds", "tests", "leaders")

# Of `meta`: the counters in their order; then how many arms the leader has, whether its exchanges are in the table,
# and whether it was found anew for the coming round.
REIGN, ORACLE_ROUNDS, TESTS, LEADERS, SIZE, KNOWN, NEW = 0, 1, 2, 3, 4, 5, 6

Flags2 = Annotated[npt.NDArray[np.bool_], ArrayOf("bool", 2)]


class LeaderRounds(NamedTuple):
    """`leader` (ascending) and `table`: which of its places each arm can take, as `exchange_table` tells.

    `every`: how often the leader itself is played. `kind`: the place of the index in `INDICES`. `places` and `weight`
    are scratch.
    """

    low: Number
    high: Number
    kind: Whole
    every: Whole
    leader: Ints1
    table: Flags2
    places: Ints1
    weight: Floats1
    meta: Ints1


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


@kernel
def kl_budget(t):
    """The right-hand side of the condition on N kl in round t. O(1)."""
    log = max(math.log(float(t)), math.log(2.0))
    return log + 3.0 * math.log(max(log, 1.0))


@kernel
def write_leader_indices(own, engine, t):
    """The index of every arm in round t, into `own.weight`. O(K)."""
    span = own.high - own.low
    log = math.log(float(t))
    if own.kind == 0:
        lam = math.sqrt(1.5 * span * span * log)
        for k in range(own.weight.shape[0]):
            own.weight[k] = engine.recs[k, ALPHA] + lam * engine.recs[k, BETA]
    else:
        kl_indices(engine.recs, kl_budget(t), own.low, span, own.weight)


@kernel
def _exchange(own):
    """The exchange of the leader that gains most under `own.weight`: (arm, place in the leader), or (-1, -1)."""
    leader, places, weight = own.leader, own.places, own.weight
    n = own.meta[SIZE]
    # Lightest first; of equals the larger id counts as lighter.
    for i in range(n):
        w = weight[leader[i]]
        j = i - 1
        while j >= 0 and (weight[leader[places[j]]] >= w):
            places[j + 1] = places[j]
            j -= 1
        places[j + 1] = i
    return best_exchange(own.table, leader, places[:n], weight)


@kernel
def is_challenged(own, engine):
    """Whether the leader must be found anew, because it is not the best base by mean or its exchanges are unknown."""
    if own.meta[NEW] == 1:
        return False
    if own.meta[KNOWN] == 0:
        return True
    for k in range(own.weight.shape[0]):
        own.weight[k] = engine.recs[k, ALPHA]
    return _exchange(own)[0] >= 0


@kernel
def _leader_select(own, engine, t, out):
    """The leader or its best exchange by index. O(K) to O(K D)."""
    if is_challenged(own, engine):
        return ASK
    own.meta[NEW] = 0
    own.meta[REIGN] += 1
    n = own.meta[SIZE]
    for i in range(n):
        out[i] = own.leader[i]
    if own.meta[KNOWN] == 1 and own.meta[REIGN] % own.every != 0:
        write_leader_indices(own, engine, t)
        arm, place = _exchange(own)
        if arm >= 0:
            out[place] = arm
            sort_ids_in_place(out, n)
    return n


implement_rounds(LeaderRounds, select=_leader_select, learn=count_rewards, touches="nothing")


@register(
    cost="O(K) to O(K D) a round; independence tests only when the leader changes",
    guarantee="none claimed: our reading of the paper's abstract",
    reference="after Delage and Gaudel 2025; Combes and Proutiere 2014",
    take="when asking what is independent costs much more than going through all arms",
)
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
    clock = "exact"

    def __init__(
        self,
        matroid: Matroid,
        *,
        reward_range: Any = (0.0, 1.0),
        index: str = "kl",
        leader_every: int | None = None,
        outside: str = "error",
        seed: int | None = 0,
    ) -> None:
        super().__init__(matroid, reward_range=reward_range, outside=outside, seed=seed)
        self.index = one_of(index, "index", INDICES)
        every = matroid.rank + 1 if leader_every is None else leader_every
        self.leader_every = as_whole(every, "leader_every", 2, "rounds of a reign")
        self._open()

    def _make_own(self) -> Any:
        low, high = self.reward_range
        rank = self.matroid.rank
        return LeaderRounds(
            low=low,
            high=high,
            kind=INDICES.index(self.index),
            every=self.leader_every,
            leader=np.zeros(rank, dtype=np.int64),
            table=np.zeros((self.n_arms, rank), dtype=np.bool_),
            places=np.zeros(rank, dtype=np.int64),
            weight=np.zeros(self.n_arms),
            meta=np.zeros(7, dtype=np.int64),
        )

    @property
    def leader(self) -> IntArray:
        """The leader of the last round."""
        return np.array(self._own.leader[: self._own.meta[SIZE]])

    def _greedy(self, weights: FloatArray, present: Any) -> IntArray:
        order = heaviest_first(weights)
        return np.sort(self.matroid._greedy(order[present[order]]))

    def _call(self, kernel: Any, *rest: Any) -> Any:
        rounds = self._aside
        return by_handle(kernel, *rounds.kinds).entry(rounds.own_handle, rounds.engine_handle, *rest)

    def indices(self, t: int) -> FloatArray:
        """The index of every arm in round t. O(K)."""
        self._call(write_leader_indices, t)
        return np.array(self._own.weight)

    def select(self, exclude: Any = None, *, among: Any = None, weights: Any = None) -> IntArray:
        """The leader or one of its exchanges, ascending ids. With `exclude`: the best base by index without them."""
        if among is not None or weights is not None:
            return self._select_some(exclude, among, weights)
        t = self._t + 1
        if exclude is not None:
            present = self._presence.mask
            present[self._presence.among(exclude)] = False
            arms = self._greedy(self.indices(t), present)
            self._own.meta[ORACLE_ROUNDS] += 1
        else:
            arms = self._play(t)
        self._t = t
        return arms

    def _indices_of(self, arms: IntArray, t: int) -> FloatArray:
        """As `indices`, of these arms. O(n)."""
        recs, out = self._recs[arms], np.empty(len(arms))
        low, high = self.reward_range
        if self.index == "ucb":
            lam = math.sqrt(1.5 * (high - low) ** 2 * math.log(t))
            return np.asarray(recs[:, ALPHA] + lam * recs[:, BETA])
        kl_indices(recs, kl_budget(t), low, high - low, out)
        return low + (high - low) * out

    def _scores(self, arms: IntArray) -> FloatArray:
        return self._indices_of(arms, max(self._t, 1))

    def _likely(self, arms: IntArray, scores: FloatArray) -> Ends:
        (low, high), rows, t = self.reward_range, self._recs[arms], max(self._t, 1)

        def ends(mean: FloatArray) -> tuple[FloatArray, FloatArray]:
            below = 2.0 * mean - scores
            if self.index == "kl":
                mirrored, out = rows.copy(), np.empty(len(rows))
                mirrored[:, TOTAL] = (low + high) * rows[:, COUNT] - rows[:, TOTAL]
                kl_indices(mirrored, kl_budget(t), low, high - low, out)
                below = high - (high - low) * out
            unseen = np.isnan(mean)
            return np.where(unseen, low, below), np.where(unseen, high, scores)

        return ends

    @property
    def confidence_width(self) -> float:
        """lam of the last round, or for the index ``"kl"`` the right-hand side of the condition on N kl."""
        t, (low, high) = max(self._t, 1), self.reward_range
        return float(kl_budget(t)) if self.index == "kl" else math.sqrt(1.5 * (high - low) ** 2 * math.log(t))

    def _ask(self, rounds: int) -> int:
        if rounds and self._call(is_challenged):
            self._find_leader()
        return rounds

    def _find_leader(self) -> None:
        """Find the leader anew, and its circuits unless it holds arms never seen."""
        means = np.ascontiguousarray(self._recs[:, ALPHA])
        leader = self._greedy(means, self._presence.mask)
        meta = self._own.meta
        meta[ORACLE_ROUNDS] += 1
        meta[LEADERS] += 1
        meta[REIGN] = meta[KNOWN] = 0
        meta[NEW] = 1
        self._set_leader(leader)
        if np.isfinite(means[leader]).all():
            meta[TESTS] += self._find_exchanges()

    def _set_leader(self, leader: IntArray) -> None:
        self._own.leader[: len(leader)] = leader
        self._own.meta[SIZE] = len(leader)

    def _find_exchanges(self) -> int:
        """Fill the table; the tests it took. Absent arms and loops have no part in any exchange."""
        leader = self.leader
        table, tests = exchange_table(self.matroid, leader, np.flatnonzero(self._presence.mask))
        self._own.table[:, : len(leader)] = table
        self._own.meta[KNOWN] = 1
        return tests

    def _leave(self, ids: IntArray) -> None:
        self._own.meta[KNOWN] = 0

    def _enter(self, ids: IntArray) -> None:
        self._own.meta[KNOWN] = 0

    def _reset(self, ids: IntArray) -> None:
        super()._reset(ids)
        self._own.meta[KNOWN] = 0

    def _arguments(self) -> dict[str, Any]:
        return {**super()._arguments(), "index": self.index, "leader_every": self.leader_every}

    def _state(self) -> dict[str, Any]:
        counters = {name: int(self._own.meta[i]) for i, name in enumerate(COUNTERS)}
        return {**super()._state(), **counters, "leader": self.leader, "crowned": bool(self._own.meta[KNOWN])}

    def _grown_state(self, old: Self) -> dict[str, Any]:
        # New arms challenge the leader, which may be no base any more.
        return {**super()._grown_state(old), "crowned": False}

    def _set_state(self, state: dict[str, Any]) -> None:
        super()._set_state(state)
        leader = arm_ids(array_of(state, "leader", np.int64), self.n_arms, "leader")
        self._own.meta[:] = 0
        for i, name in enumerate(COUNTERS):
            self._own.meta[i] = whole_of(state, name)
        if not self.matroid._is_independent(leader) or not self._presence.mask[leader].all():
            if state["crowned"]:
                raise FileError("the leader is no base")
            leader = leader[:0]
        self._set_leader(leader)
        if state["crowned"]:
            self._find_exchanges()

    def describe(self) -> dict[str, Any]:
        """What runs inside: ``oracle_rounds`` counts the rounds that asked the membership oracle (those that cover all
        arms at the start included), ``circuit_tests`` the independence tests spent on circuits.
        """
        return {
            "policy": self.name,
            **self._about_outside(),
            "matroid": repr(self.matroid),
            "engine": "circuits",
            "why": "exchanges of the leader are kept until it changes",
            "index": self.index,
            "oracle_rounds": int(self._own.meta[ORACLE_ROUNDS]),
            "leaders": int(self._own.meta[LEADERS]),
            "circuit_tests": int(self._own.meta[TESTS]),
        }

    def __repr__(self) -> str:
        return f"MAUB({self.matroid!r}, index={self.index!r}, t={self._t})"
