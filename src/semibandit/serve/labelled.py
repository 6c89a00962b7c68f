"""A policy of the service over the labels of a catalog, which come and expire while decisions wait."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.catalog import Catalog
from semibandit.catalog.decisions import GONE as NO_ARM
from semibandit.catalog.files import snapshot as snapshot_of_catalog
from semibandit.catalog.labels import pack
from semibandit.errors import ArmError, MatroidError, ParameterError
from semibandit.policies.base import Policy
from semibandit.serve.ledger import GONE, WAITS
from semibandit.serve.refusals import Refusal, bad
from semibandit.serve.seats import Seat
from semibandit.serve.specs import as_label
from semibandit.serve.values import PLACE, is_label, places_of
from semibandit.serve.wire import PolicySpec


class LabelledSeat(Seat):
    """A policy over the labels of a catalog."""

    labelled = True

    def __init__(self, name: str, serial: int, spec: PolicySpec, catalog: Catalog) -> None:
        super().__init__(name, serial, spec, catalog.policy)
        self.catalog = catalog
        #: The labels of kept decisions, by number.
        self._labels: dict[int, list[Any]] = {}

    def _let_go(self, n: int) -> None:
        for number in range(self.ledger.oldest, self.ledger.oldest + n):
            self._labels.pop(number, None)
        super()._let_go(n)

    def decide(
        self, exclude: list[Any] | None, among: list[Any] | None, count: int, at: int
    ) -> tuple[int, IntArray, IntArray]:
        first, arms, sizes = super().decide(exclude, among, count, at)
        end = 0
        for number, size in enumerate(sizes.tolist(), first):
            if number >= self.ledger.oldest:
                self._labels[number] = self.catalog._arms.labels(arms[end : end + size])
            end += size
        return first, arms, sizes

    def _ids(self, arms: list[Any], field: str) -> IntArray:
        labels = as_label(arms)
        try:
            return self.catalog._arms_of(list(labels), field)[0]
        except ArmError as error:
            found = PLACE.search(str(error))
            place = int(found.group(2)) if found else 0
            raise bad(f"{field}[{place}]", arms[place], str(error)) from None

    def places(self, number: int, arms: list[Any]) -> list[int]:
        return places_of(self._labels[number], [as_label(one) for one in arms])

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
            if not is_label(label) or label not in self.catalog:
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
            for what, value in (("arms", label), ("attributes", attribute)):
                _must_be_plain(value, f"{what}[{place}]")
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

    def labels_of(self, arms: IntArray) -> list[Any]:
        return self.catalog._arms.labels(arms)

    def _present(self) -> int:
        return len(self.catalog)

    def arm_of(self, name: Any) -> int:
        label = as_label(name)
        found = self.catalog._arms.ids.id_of.get(label) if is_label(label) else None
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

    def check_that_it_can_be_saved(self) -> None:
        json.dumps(snapshot_of_catalog(self.catalog)[0], allow_nan=False)

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


def _must_be_plain(value: Any, where: str) -> None:
    """A `Refusal` for what neither a file nor the log can hold."""
    try:
        pack(value, where)
        if not is_label(value):
            raise ParameterError(f"{where} = {value!r} cannot be a label")
        _require_64_bits(value, where)
    except ParameterError as error:
        raise bad(where, repr(value), str(error)) from None


def _require_64_bits(value: Any, where: str) -> None:
    if isinstance(value, tuple):
        for part in value:
            _require_64_bits(part, where)
    elif isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise ParameterError(f"{where}: {value} has more than 64 bits")


def make_seat(name: str, serial: int, spec: PolicySpec, made: Policy | Catalog) -> Seat:
    """The seat for what `specs.build` made, or a file held."""
    if isinstance(made, Catalog):
        return LabelledSeat(name, serial, spec, made)
    return Seat(name, serial, spec, made)
