"""The arms of a policy and the labels that have them: what comes and goes is told to the policy all at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.catalog.decisions import GONE, LabelledDecision, Plays
from semibandit.catalog.ids import FREE, Ids
from semibandit.catalog.kinds import Kind
from semibandit.errors import ParameterError
from semibandit.policies.base import Policy


def _missing(policy: Any) -> str | None:
    """What a catalog needs and this policy cannot do."""
    kind = type(policy)
    for name in ("delete", "insert"):
        if not hasattr(policy, name):
            return name
    if kind.grow is Policy.grow and kind._arguments is Policy._arguments:
        return "grow"
    try:
        policy.reset([])
    except ParameterError:
        return "reset"
    return None


class Arms:
    """Labels of one kind and the policy that plays their arms.

    `policy` knows of labels that came and went when `settle` was called. Arms that nobody has are deleted, and nothing
    is known of them. `plays` are the decisions that wait; a label that goes is withdrawn from them.
    """

    def __init__(self, ids: Ids, policy: Any) -> None:
        for part in (policy, getattr(policy, "inner", policy)):
            missing = _missing(part)
            if missing:
                raise ParameterError(
                    f"policy: {type(part).__name__} has no {missing} that a catalog could use; CUCB, KLOSM, CTS and "
                    "most others have"
                )
        self.ids = ids
        self.policy = policy
        self.plays = Plays()
        self.grown = 0
        self._coming: dict[int, None] = {}
        self._going: list[int] = []

    @property
    def kind(self) -> Kind:
        """What the arms are."""
        return self.ids.kind

    def add(self, label: Any, key: Any) -> None:
        """A new label of type `key`. O(1)."""
        arm = self.ids.take(label, key)
        if arm is not None:
            self._coming[arm] = None

    def expire(self, label: Any) -> None:
        """Take out a label that is there. O(1)."""
        arm = self.ids.release(label)
        if arm is None:
            return
        if arm in self._coming:
            del self._coming[arm]
        else:
            self._going.append(arm)

    def settle(self) -> Any:
        """Tell the policy what came and went, and return it. O(1) if nothing did."""
        ids, policy = self.ids, self.policy
        if self._going:
            for arm in self._going:
                for number in self.plays.withdraw(arm):
                    policy._withdraw(number, arm)
            gone = np.array(self._going, dtype=np.int64)
            policy.delete(gone)
            policy.reset(gone)
            self._going = []
        if ids.waiting:
            plan = ids.plan()
            before = policy.n_arms
            policy.grow(ids.kind.matroid(plan.types, plan.type_of))
            if policy.n_arms > before:
                policy.delete(np.arange(before, policy.n_arms))
            ids.adopt(plan)
            self._coming.update(dict.fromkeys(plan.given.values()))
            self.grown += 1
        if self._coming:
            policy.insert(np.array(sorted(self._coming), dtype=np.int64))
            self._coming = {}
        return policy

    # -- rounds ------------------------------------------------------------------------------------------

    def labels(self, arms: IntArray) -> list[Any]:
        """The labels of arms that are there."""
        return [self.ids.label_of[arm] for arm in arms.tolist()]

    def decide(self, **asked: Any) -> LabelledDecision:
        """A decision of the policy, by label."""
        made = self.settle().decide(**asked)
        labels = self.labels(made.arms)
        self.plays.add(made.id, labels, made.arms.tolist())
        return LabelledDecision(labels, made)

    def settled_plays(self) -> Plays:
        """The decisions that wait, after what expired was withdrawn from them."""
        self.settle()
        return self.plays

    def learn(self, number: int, arms: IntArray, rewards: FloatArray) -> None:
        """Rewards of arms that this decision plays and that are there."""
        if arms.size:
            self.policy.learn(number, rewards, arms=arms)
        else:
            self.policy.drop(number)
        self.plays.settle(number)

    def drop(self, number: int) -> None:
        """This decision waits no longer."""
        self.policy.drop(number)
        self.plays.settle(number)

    def _check(self) -> None:
        """Assert all invariants. O(K)."""
        self.settle()
        self.ids._check()
        self.plays._check()
        for number, play in self.plays:
            alive = [arm for arm in play.arms if arm != GONE]
            assert self.policy._decisions.arms_of(number)[1].tolist() == alive
            assert all(
                self.ids.label_of[a] == label
                for a, label in zip(play.arms, play.labels, strict=True)
                if a >= 0
            )
        policy = getattr(self.policy, "inner", self.policy)
        assert policy.matroid == self.kind.matroid(self.ids.types, self.ids.type_of)
        gone = [arm for arm, label in enumerate(self.ids.label_of) if label is FREE]
        assert policy._state()["deleted"].tolist() == gone
        assert not policy.counts[gone].any(), "what nobody has is forgotten"
