"""One policy of the service: its decisions, what they wait for, and what it learns.

A seat does what an event says and answers; whatever it refuses, it refuses before anything is changed. `Seat` knows
arms by number, `LabelledSeat` by the labels of a `Catalog`. Plays that wait count in the policy's confidence width
(see `policies.decisions`), arm by arm, until their reward comes or the decision is past its time.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.catalog import Catalog
from semibandit.catalog.decisions import GONE as NO_ARM
from semibandit.checks import LARGEST, as_arms
from semibandit.errors import ArmError, MatroidError, SemibanditError
from semibandit.policies.base import Policy
from semibandit.serve.keys import Keys
from semibandit.serve.ledger import COUNTED, DROPPED, GONE, WAITS, Ledger
from semibandit.serve.refusals import Refusal, bad
from semibandit.serve.specs import as_label
from semibandit.serve.wire import PolicySpec

_PLACE = re.compile(r"(\w+)\[(\d+)\]")


class Seat:
    """A policy over arms 0 .. K - 1, its ledger and its idempotency keys. `serial`: which of all ever made it is."""

    labelled = False

    def __init__(self, name: str, serial: int, spec: PolicySpec, policy: Any) -> None:
        self.name, self.serial, self.spec = name, serial, spec
        self._policy: Policy = policy
        # Policies that draw at random take no notice of plays that wait.
        inner = getattr(policy, "inner", policy)
        self._heeds_waiting = type(inner)._wait is not Policy._wait
        ttl = spec.ttl_microseconds()
        self.ledger = Ledger(ttl, spec.max_pending, spec.most_arms(), policy.matroid.rank)
        self.keys = Keys(ttl, spec.max_keys)
        #: Rewards counted so far, and their sum; decisions that left with arms waiting, of them before their time.
        self.rewards = self.expired = self.evicted = 0
        self.total = 0.0

    @property
    def policy(self) -> Policy:
        """The policy, which knows arms by number."""
        return self._policy

    # -- decisions ---------------------------------------------------------------------------------------

    def tick(self, now: int) -> None:
        """What is past its time leaves. O(1) if nothing is."""
        ledger = self.ledger
        while ledger.is_due(now):
            self._let_go()
        self.keys.expire(now)

    def _let_go(self) -> None:
        _, waited = self.ledger.drop_oldest()
        if waited.size:
            self.expired += 1
            if self._heeds_waiting:
                self._policy._wait(waited, -1)

    def decide(
        self, exclude: list[Any] | None, among: list[Any] | None, count: int, at: int
    ) -> tuple[int, list[IntArray]]:
        """`count` new decisions: the number of the first, and the arms of each."""
        policy, ledger = self._policy, self.ledger
        select, add, heeds = policy.select, ledger.add, self._heeds_waiting
        asked = None if exclude is None and among is None else self._asked(exclude, among)
        while ledger.is_full(count, count * policy.matroid.rank):
            self.evicted += 1
            self._let_go()
        first, made = ledger.next, []
        for _ in range(count):
            arms = select() if asked is None else select(**asked)
            add(arms, at)
            if heeds:
                policy._wait(arms, 1)
            made.append(arms)
        return first, made

    def _asked(self, exclude: list[Any] | None, among: list[Any] | None) -> dict[str, Any]:
        asked = {}
        if exclude is not None:
            asked["exclude"] = self._ids(exclude, "exclude")
        if among is not None:
            asked["among"] = self._ids(among, "among")
            if len(set(among)) < len(among):
                raise bad("among", among, "among names an arm twice")
        return asked

    def _ids(self, arms: list[Any], field: str) -> IntArray:
        """Valid arm ids, or a `Refusal`."""
        try:
            return as_arms(arms, self._policy.n_arms, field)
        except (ArmError, OverflowError) as error:
            for place, arm in enumerate(arms):
                if type(arm) is not int or not 0 <= arm < self._policy.n_arms:
                    where = f"{field}[{place}]"
                    told = f"{where} = {arm!r} is not an arm: ids are 0 .. {self._policy.n_arms - 1}"
                    raise bad(where, arm, told) from None
            raise bad(field, None, str(error)) from None

    def chances(self, arms: IntArray) -> FloatArray | None:
        """With which probability each arm was played, where the policy knows."""
        return None

    # -- rewards -----------------------------------------------------------------------------------------

    def places(self, number: int, arms: list[Any]) -> list[int]:
        """Where these arms stand in a kept decision, or a `Refusal`."""
        played = self.ledger.arms_of(number).tolist()
        return _places(played, arms)

    def sort_out(self, number: int, places: list[int] | None) -> tuple[list[int] | None, int]:
        """Those places of a kept decision that have not been told yet (None: all of it), and how many have been."""
        ledger = self.ledger
        if places is None and ledger.left_of(number) == ledger.size_of(number):
            return None, 0
        flags = ledger.flags_of(number)
        if places is None:
            places = list(range(len(flags)))
        fresh = [place for place in places if flags[place] not in (COUNTED, DROPPED)]
        return fresh, len(places) - len(fresh)

    def learn(self, number: int, places: list[int] | None, rewards: FloatArray) -> tuple[int, int]:
        """Rewards of places that were not told yet: how many count, and how many come too late for their label."""
        ledger, policy = self.ledger, self._policy
        if places is None:
            arms = ledger.arms_of(number)
        else:
            flags = ledger.flags_of(number)
            waits = [i for i, place in enumerate(places) if flags[place] == WAITS]
            arms = ledger.arms_of(number)[[places[i] for i in waits]]
            if len(waits) < len(places):
                self.check_values(rewards)
                rewards = rewards[waits]
        n = len(arms)
        if n:
            policy.update(arms, rewards)
            if self._heeds_waiting:
                policy._wait(arms, -1)
            self._count(rewards)
        ledger.settle(number, places)
        return n, 0 if places is None else len(places) - n

    def check_values(self, rewards: FloatArray) -> None:
        """A `Refusal` for the first reward that the policy could not take."""
        low, high = (-LARGEST, LARGEST) if self._policy.outside == "clip" else self._policy.reward_range
        for place, value in enumerate(rewards.tolist()):
            if not (np.isfinite(value) and low <= value <= high):
                where = f"rewards[{place}]"
                raise bad(where, value, f"{where} = {value} is outside reward_range = ({low}, {high})")

    def update(self, arms: list[Any], rewards: FloatArray) -> int:
        """Rewards that belong to no decision: how many came too late for their label."""
        ids = self._ids(arms, "arms")
        self._policy.update(ids, rewards)
        self._count(rewards)
        return 0

    def _count(self, rewards: FloatArray) -> None:
        self.rewards += len(rewards)
        self.total += sum(rewards.tolist())

    # -- arms --------------------------------------------------------------------------------------------

    def delete(self, arms: list[Any]) -> None:
        """These arms are no longer played; what is known of them is kept."""
        ids = self._ids(arms, "arms")
        self._able("delete")(ids)

    def insert(self, arms: list[Any], attributes: list[Any]) -> None:
        """Deleted arms are back."""
        if attributes:
            raise bad("attributes", attributes, "arms by number have no attributes")
        self._able("insert")(self._ids(arms, "arms"))

    def _able(self, method: str) -> Any:
        found = getattr(self._policy, method, None)
        if found is None:
            told = f"policy {self.spec.policy!r} cannot {method} arms"
            raise Refusal(409, "not_able", told, field="policy", value=self.name)
        return found

    def names_of(self, number: int, arms: IntArray) -> list[Any]:
        """The arms of a kept decision as clients call them."""
        return arms.tolist()

    def arm_of(self, name: Any) -> int:
        """The number of an arm, or a 404."""
        if type(name) is not int or not 0 <= name < self._policy.n_arms:
            told = f"arm {name!r} is not known: ids are 0 .. {self._policy.n_arms - 1}"
            raise Refusal(404, "no_arm", told, field="arm", value=name)
        return name

    def name_of(self, arm: int) -> Any:
        """What clients call an arm."""
        return arm

    # -- files -------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """All but the policy, as MessagePack can hold it. O(arms kept)."""
        return {
            "name": self.name,
            "serial": self.serial,
            "ledger": self.ledger.state(),
            "keys": self.keys.state(),
            "rewards": self.rewards,
            "total": self.total,
            "expired": self.expired,
            "evicted": self.evicted,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what `state` gave, with the policy that `save` wrote."""
        self.ledger.restore(state["ledger"])
        self.keys.restore(state["keys"])
        self.rewards, self.total = state["rewards"], state["total"]
        self.expired, self.evicted = state["expired"], state["evicted"]
        # The file holds the decisions that wait; here the ledger does.
        self._policy._decisions._arms.clear()

    def save(self, path: Any) -> None:
        """Write the policy with its decisions that wait to a file that `semibandit.load` reads too.

        Only in a process of its own (or while nobody decides): the policy's own book of decisions is used for that.
        """
        self._lend_decisions()
        self._policy.save(path)
        self._policy._decisions._arms.clear()

    def _lend_decisions(self) -> None:
        book, ledger = self._policy._decisions, self.ledger
        book._next = ledger.next
        book._arms.clear()
        for number in range(ledger.oldest, ledger.next):
            if ledger.left_of(number):
                book._arms[number] = ledger.waiting_of(number)


class LabelledSeat(Seat):
    """A policy over the labels of a catalog."""

    labelled = True

    def __init__(self, name: str, serial: int, spec: PolicySpec, catalog: Catalog) -> None:
        super().__init__(name, serial, spec, catalog.policy)
        self.catalog = catalog
        #: The labels of kept decisions, by number.
        self._labels: dict[int, list[Any]] = {}

    def _let_go(self) -> None:
        self._labels.pop(self.ledger.oldest, None)
        super()._let_go()

    def decide(
        self, exclude: list[Any] | None, among: list[Any] | None, count: int, at: int
    ) -> tuple[int, list[IntArray]]:
        first, made = super().decide(exclude, among, count, at)
        for number, arms in enumerate(made, first):
            if number >= self.ledger.oldest:
                self._labels[number] = self.catalog._arms.labels(arms)
        return first, made

    def _ids(self, arms: list[Any], field: str) -> IntArray:
        labels = as_label(arms)
        try:
            return self.catalog._arms_of(list(labels), field)[0]
        except ArmError as error:
            found = _PLACE.search(str(error))
            place = int(found.group(2)) if found else 0
            raise bad(f"{field}[{place}]", arms[place], str(error)) from None

    def _asked(self, exclude: list[Any] | None, among: list[Any] | None) -> dict[str, Any]:
        asked = {}
        if exclude is not None:
            asked["exclude"] = self._ids(exclude, "exclude")
        if among is not None:
            asked["among"] = self._ids(among, "among")
            if len(set(asked["among"].tolist())) < len(asked["among"]):
                raise bad("among", among, "among names a label twice")
        return asked

    def places(self, number: int, arms: list[Any]) -> list[int]:
        return _places(self._labels[number], [as_label(one) for one in arms])

    def learn(self, number: int, places: list[int] | None, rewards: FloatArray) -> tuple[int, int]:
        counted, dropped = super().learn(number, places, rewards)
        self.catalog._n_dropped += dropped
        return counted, dropped

    def update(self, arms: list[Any], rewards: FloatArray) -> int:
        labels = [as_label(one) for one in arms]
        self._ids(arms, "arms")
        dropped = self.catalog._n_dropped
        self.catalog.update(labels, rewards)
        dropped = self.catalog._n_dropped - dropped
        alive = [i for i, label in enumerate(labels) if label in self.catalog]
        self._count(rewards[alive])
        return dropped

    def delete(self, arms: list[Any]) -> None:
        labels = [as_label(one) for one in arms]
        for place, label in enumerate(labels):
            if not _is_label(label) or label not in self.catalog:
                raise bad(f"arms[{place}]", arms[place], f"arms[{place}] = {label!r} is not there")
        if len(set(labels)) < len(labels):
            raise bad("arms", arms, "arms names a label twice")
        gone = self.catalog._all_arms_of(labels)
        for arm in self.ledger.withdraw(gone).tolist():
            self._policy._wait(np.array([arm], dtype=np.int64), -1)
        for label in labels:
            self.catalog.expire(label)
        self.catalog._arms.settle()

    def insert(self, arms: list[Any], attributes: list[Any]) -> None:
        if attributes and len(attributes) != len(arms):
            raise bad("attributes", attributes, f"need one attribute per label ({len(arms)})")
        labels = [as_label(one) for one in arms]
        told = [as_label(one) for one in attributes] or [None] * len(labels)
        kind = self.catalog._arms.kind
        for place, (label, attribute) in enumerate(zip(labels, told, strict=True)):
            if not _is_label(label):
                raise bad(f"arms[{place}]", arms[place], f"arms[{place}] = {label!r} cannot be a label")
            if label in self.catalog:
                what = f"arms[{place}] = {label!r} is there already"
                raise Refusal(409, "present", what, field=f"arms[{place}]", value=arms[place])
            try:
                kind.type_of(label, attribute)
            except MatroidError as error:
                raise bad(f"attributes[{place}]", attribute, str(error)) from None
        if len(set(labels)) < len(labels):
            raise bad("arms", arms, "arms names a label twice")
        for label, attribute in zip(labels, told, strict=True):
            self.catalog.add(label, attribute)
        self.catalog._arms.settle()

    def names_of(self, number: int, arms: IntArray) -> list[Any]:
        return self._labels[number]

    def arm_of(self, name: Any) -> int:
        label = as_label(name)
        found = self.catalog._arms.ids.id_of.get(label) if _is_label(label) else None
        if found is None:
            raise Refusal(404, "no_arm", f"label {label!r} is not there", field="arm", value=name)
        return found

    def name_of(self, arm: int) -> Any:
        return self.catalog._arms.ids.label_of[arm]

    def state(self) -> dict[str, Any]:
        return {**super().state(), "labels": [[n, labels] for n, labels in self._labels.items()]}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._labels = {number: [as_label(one) for one in labels] for number, labels in state["labels"]}
        for number, _ in list(self.catalog._arms.plays):
            self.catalog._arms.plays.settle(number)

    def save(self, path: Any) -> None:
        self._lend_decisions()
        plays = self.catalog._arms.plays
        for number in self._policy._decisions._arms:
            flags, arms = self.ledger.flags_of(number), self.ledger.arms_of(number).tolist()
            mine = [(i, arm) for i, arm in enumerate(arms) if flags[i] in (WAITS, GONE)]
            labels = [self._labels[number][i] for i, _ in mine]
            plays.add(number, labels, [arm if flags[i] == WAITS else NO_ARM for i, arm in mine])
        self.catalog.save(path)
        for number in self._policy._decisions._arms:
            plays.settle(number)
        self._policy._decisions._arms.clear()


def make_seat(name: str, serial: int, spec: PolicySpec, made: Policy | Catalog) -> Seat:
    """The seat for what `specs.build` made, or a file held."""
    if isinstance(made, Catalog):
        return LabelledSeat(name, serial, spec, made)
    return Seat(name, serial, spec, made)


def as_values(rewards: list[Any], n: int) -> FloatArray:
    """Rewards of a request as numbers, or a `Refusal`; what is in the range is the policy's to say."""
    if len(rewards) != n:
        told = f"rewards has {len(rewards)} entries but {n} arms are meant: one reward per arm"
        raise bad("rewards", len(rewards), told)
    try:
        values = np.array(rewards, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        values = np.empty((0, 0))
    if values.ndim != 1:
        raise bad("rewards", None, "rewards must be numbers")
    return values


def blame(error: SemibanditError, rewards: FloatArray, places: list[int]) -> Refusal:
    """The `Refusal` for rewards that a policy refused; `places` are those in the request of what it was given."""
    found = _PLACE.search(str(error))
    at = int(found.group(2)) if found and int(found.group(2)) < len(rewards) else _first_bad(rewards)
    where = f"rewards[{places[at] if at < len(places) else at}]"
    told = str(error)
    if found:
        told = told.replace(found.group(0), where, 1)
    return bad(where, float(rewards[at]) if rewards.size else None, told)


def _first_bad(rewards: FloatArray) -> int:
    wrong = np.flatnonzero(~np.isfinite(rewards))
    return int(wrong[0]) if wrong.size else 0


def _places(played: list[Any], arms: list[Any]) -> list[int]:
    """Where `arms` stand among those played, or a `Refusal`. O(n)."""
    if arms == played:
        return list(range(len(played)))
    place = {arm: i for i, arm in enumerate(played)}
    found = []
    for i, arm in enumerate(arms):
        at = place.pop(arm, None) if _is_label(arm) and not isinstance(arm, bool) else None
        if at is None:
            again = _is_label(arm) and arm in played
            told = f"arms[{i}] = {arm!r} is " + ("named twice" if again else "not an arm of this decision")
            raise bad(f"arms[{i}]", arm, told)
        found.append(at)
    return found


def _is_label(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return value == value
