"""What every policy has for decisions whose feedback comes later."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any, ClassVar, overload

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.checks import as_arms, as_whole
from semibandit.errors import ArmError
from semibandit.locking import Guarded
from semibandit.policies.decisions import Account, Decision, Tell, Waiting


class Deciding(Guarded):
    """`decide`, `learn` and `drop` of a `Policy`, and what a policy may do where decisions are made and settled."""

    objective: ClassVar[str]
    n_arms: int
    select: Any
    update: Any
    _select_some: Any
    means: Any
    counts: Any

    @cached_property
    def _decisions(self) -> Waiting:
        return Waiting()

    @overload
    def decide(
        self, *, exclude: Any = None, among: Any = None, weights: Any = None, count: None = None
    ) -> Decision: ...

    @overload
    def decide(
        self, *, exclude: Any = None, among: Any = None, weights: Any = None, count: int
    ) -> list[Decision]: ...

    def decide(
        self, *, exclude: Any = None, among: Any = None, weights: Any = None, count: int | None = None
    ) -> Decision | list[Decision]:
        """`select` for feedback that comes later: a `Decision` to hand to `learn` with its rewards.

        Plays that wait count in the confidence width (`policies.decisions`), so decisions made before any feedback
        spread over the arms; `count` of them at once give a list. With `weights` they are all the same, unless what
        waits is in the weights. O(D) besides `select`, and O(K) the first time; O(K) always for a policy of your own
        that gives no `_scores` and `_account`.

        >>> import semibandit as sb
        >>> policy = sb.CUCB(sb.Uniform(n_arms=6, rank=2))
        >>> first, second = policy.decide(count=2)
        >>> first.arms.tolist(), second.arms.tolist()
        ([0, 1], [2, 3])
        >>> policy.learn(second, [1.0, 0.0])
        >>> policy.waiting, policy.counts.tolist()
        (1, [0, 0, 1, 1, 0, 0])
        """
        if count is None:
            return self._decide(exclude, among, weights)
        n = as_whole(count, "count", 1, "a number of decisions")
        return [self._decide(exclude, among, weights) for _ in range(n)]

    def _decide(self, exclude: Any, among: Any, weights: Any) -> Decision:
        if among is not None or weights is not None:
            arms = self._select_some(exclude, among, weights)
        else:
            arms = self.select() if exclude is None else self.select(exclude)
        scores = self._scores(arms)
        account = self._account(arms, scores)
        self._wait(arms, 1)
        number = self._decisions.add(arms.copy())
        self._noted(number, arms)
        return Decision(number, arms, scores, account, self.objective)

    def _noted(self, number: int, arms: IntArray) -> None:
        """Decision `number` plays `arms`, just selected: the moment to keep what its feedback will need."""

    def _recalled(self, number: int, arms: IntArray) -> AbstractContextManager[None]:
        """While this is open, feedback is that of decision `number`, of these of its arms."""
        return nullcontext()

    def _settled(self, number: int) -> None:
        """Of decision `number` nothing more will be heard."""

    def _account(self, arms: IntArray, scores: FloatArray) -> Account | Tell:
        """What is known of these arms, for `Decision.ranked`; or a function that keeps it and tells when asked."""
        nothing = np.full(len(arms), np.nan)
        return Account(self.means[arms], nothing, nothing, self.counts[arms])

    def learn(self, decision: Decision | int, rewards: Any, arms: Any = None) -> None:
        """Count the rewards of a decision, given itself or its id, and end its waiting. O(D) besides `update`.

        `arms`: those of its arms that `rewards` are of, if not all of them; of the others nothing will be learnt. A
        rejected call changes nothing.
        """
        number, played = self._decisions.arms_of(decision)
        ids = played if arms is None else as_arms(arms, self.n_arms)
        if arms is not None and not np.isin(ids, played).all():
            raise ArmError(f"decision {number} did not play all of the arms {ids.tolist()}")
        with self._recalled(number, ids):
            self.update(ids, rewards)
        self._decisions.settle(number)
        self._settled(number)
        self._wait(played, -1)

    def drop(self, decision: Decision | int) -> None:
        """The feedback of a decision is lost: it waits no longer, and nothing is learnt. O(D)."""
        number, played = self._decisions.arms_of(decision)
        self._decisions.settle(number)
        self._settled(number)
        self._wait(played, -1)

    @property
    def waiting(self) -> int:
        """How many decisions wait for their feedback."""
        return len(self._decisions)

    def scores(self, arms: Any) -> FloatArray:
        """What the policy made of these arms in its last round: the index, or the mean where it has none.

        +inf, or NaN, for an arm of which nothing is known. O(len(arms)); O(K) for a policy of your own that gives no
        `_scores`.
        """
        return self._scores(as_arms(arms, self.n_arms))

    def _scores(self, arms: IntArray) -> FloatArray:
        return self.means[arms]

    def _wait(self, arms: IntArray, change: int) -> None:
        """`change` more plays of each of these arms wait for feedback. Policies that draw at random need not care."""

    def _withdraw(self, number: int, arm: int) -> None:
        """Of this arm a decision that waits will hear nothing: it is to be something new. O(D)."""
        _, played = self._decisions.arms_of(number)
        self._decisions._arms[number] = played[played != arm]
        self._wait(np.array([arm], dtype=np.int64), -1)

    def _take_decisions(self, other: Waiting) -> None:
        """Let the decisions of `other` wait here, where none does."""
        self.__dict__["_decisions"] = other
        for arms in other._arms.values():
            self._wait_again(arms)

    def _wait_again(self, arms: IntArray) -> None:
        """`_wait(arms, 1)` for a decision that waited already where the state of this policy comes from."""
        self._wait(arms, 1)
