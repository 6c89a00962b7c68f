"""Decisions by label, and the book of those that wait for their feedback."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from semibandit.arms import FloatArray
from semibandit.errors import ArmError

#: Stands where a label has expired since the decision.
GONE = -1


@dataclass(frozen=True, eq=False)
class LabelledDecision:
    """One answer of `Catalog.decide`: hand it, or its `id`, to `Catalog.learn` with the rewards of `labels`.

    It is a sequence of its labels. `scores`: what the policy made of each label when it decided, in the order of
    `labels`.

    >>> import semibandit as sb
    >>> page = sb.Catalog.uniform(2)
    >>> for label in ("vote", "derby"):
    ...     page.add(label)
    >>> decision = page.decide()
    >>> [label.upper() for label in decision], decision.id
    (['VOTE', 'DERBY'], 0)
    """

    id: int
    labels: list[Any]
    scores: FloatArray

    def __iter__(self) -> Iterator[Any]:
        return iter(self.labels)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, place: Any) -> Any:
        return self.labels[place]

    def ranked(self) -> list[tuple[Any, float]]:
        """(label, score), best first; what is equal stays in the order of `labels`."""
        order = np.argsort(-self.scores, kind="stable")
        return [(self.labels[i], float(self.scores[i])) for i in order]


class Play(NamedTuple):
    """A decision that waits: its labels, and the arm of each of them, `GONE` once the label has expired."""

    labels: list[Any]
    arms: list[int]


class Plays:
    """Decisions that wait, by number. O(D) each; `withdraw` O(1) for each decision that plays the arm."""

    def __init__(self) -> None:
        self._plays: dict[int, Play] = {}
        self._by_arm: dict[int, dict[int, int]] = {}  # arm -> {number: place}

    def __len__(self) -> int:
        return len(self._plays)

    def __iter__(self) -> Iterator[tuple[int, Play]]:
        return iter(self._plays.items())

    def add(self, number: int, labels: list[Any], arms: list[int]) -> None:
        """A new decision."""
        self._plays[number] = Play(list(labels), list(arms))
        for place, arm in enumerate(arms):
            if arm != GONE:
                self._by_arm.setdefault(arm, {})[number] = place

    def find(self, decision: Any) -> tuple[int, Play]:
        """Number and play of a decision that waits, given itself or its number."""
        number = decision.id if isinstance(decision, LabelledDecision) else decision
        whole = isinstance(number, (int, np.integer)) and not isinstance(number, bool)
        if whole and int(number) in self._plays:
            return int(number), self._plays[int(number)]
        raise ArmError(
            f"decision {number!r} waits for no feedback: it was never made here, or is settled already; "
            "rewards by label alone are for update"
        )

    def settle(self, number: int) -> None:
        """It waits no longer."""
        for arm in self._plays.pop(number).arms:
            if arm != GONE:
                self._leave(arm, number)

    def withdraw(self, arm: int) -> list[int]:
        """The label of this arm has expired: the decisions that play it, which from now on do not."""
        numbers = self._by_arm.pop(arm, {})
        for number, place in numbers.items():
            self._plays[number].arms[place] = GONE
        return list(numbers)

    def _leave(self, arm: int, number: int) -> None:
        del self._by_arm[arm][number]
        if not self._by_arm[arm]:
            del self._by_arm[arm]

    def _check(self) -> None:
        """Assert all invariants. O(size)."""
        seen = {
            (arm, number, place)
            for number, play in self
            for place, arm in enumerate(play.arms)
            if arm != GONE
        }
        assert seen == {(a, n, p) for a, numbers in self._by_arm.items() for n, p in numbers.items()}
