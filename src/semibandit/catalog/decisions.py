"""Decisions by label, and the book of those that wait for their feedback."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from semibandit.arms import FloatArray
from semibandit.errors import ArmError
from semibandit.policies.decisions import Decision, Ranked, ranked_frame

#: Stands where a label has expired since the decision.
GONE = -1


@dataclass(frozen=True, eq=False)
class LabelledDecision:
    """One answer of `Catalog.decide`: hand it, or its `id`, to `Catalog.learn` with the rewards of `labels`.

    It is a sequence of its labels. `made`: what the policy decided, by arm.

    >>> import semibandit as sb
    >>> page = sb.Catalog.uniform(2)
    >>> for label in ("vote", "derby"):
    ...     page.add(label)
    >>> decision = page.decide()
    >>> [label.upper() for label in decision], decision.id
    (['VOTE', 'DERBY'], 0)
    """

    labels: list[Any]
    made: Decision

    @property
    def id(self) -> int:
        """Its number."""
        return self.made.id

    @property
    def scores(self) -> FloatArray:
        """What the policy made of each label when it decided, in the order of `labels`."""
        return self.made.scores

    def __iter__(self) -> Iterator[Any]:
        return iter(self.labels)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, place: Any) -> Any:
        return self.labels[place]

    def ranked(self) -> list[Ranked]:
        """As `Decision.ranked`, with labels in place of arms."""
        label_of = dict(zip(self.made.arms.tolist(), self.labels, strict=True))
        return [row._replace(arm=label_of[row.arm]) for row in self.made.ranked()]

    def to_frame(self, library: str = "polars") -> Any:
        """As `Decision.to_frame`, with labels in place of arms."""
        return ranked_frame(self.ranked(), library)


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
