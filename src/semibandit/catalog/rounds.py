"""Rounds by label: deciding and learning, now or later."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from semibandit.arms import IntArray
from semibandit.catalog.arms import Arms
from semibandit.catalog.decisions import GONE, LabelledDecision
from semibandit.catalog.labels import is_hashable, label_list
from semibandit.catalog.wishes import check_rewards, wish
from semibandit.checks import as_rewards, as_whole
from semibandit.errors import ArmError

Labels = Iterable[Hashable]


class LabelledRounds:
    """What a catalog decides and learns. `decide`, `learn`, `select` and `update` mean what they do for a policy."""

    _lock: Any
    _arms: Arms
    _expired: dict[Any, None]
    _n_dropped: int

    # -- decisions whose feedback comes later ------------------------------------------------------------

    @overload
    def decide(
        self,
        *,
        exclude: Labels | None = None,
        among: Labels | None = None,
        weights: Any = None,
        count: None = None,
    ) -> LabelledDecision: ...

    @overload
    def decide(
        self, *, exclude: Labels | None = None, among: Labels | None = None, weights: Any = None, count: int
    ) -> list[LabelledDecision]: ...

    def decide(
        self,
        *,
        exclude: Labels | None = None,
        among: Labels | None = None,
        weights: npt.ArrayLike | Mapping[Any, float] | None = None,
        count: int | None = None,
    ) -> LabelledDecision | list[LabelledDecision]:
        """The labels to play now, as a decision to hand to `learn` with their rewards: now, late, or never (`drop`).

        Avoids the labels in `exclude` for this call. `among`: only these labels, by the policy's own index. `weights`:
        one for each of them, or ``{label: weight}`` without `among`, decide in place of that index. Expired labels
        change nothing. Plays that wait count in the width of the policy, as in `Policy.decide`, so `count` decisions at
        once (a list) spread over the labels. A decision has fewer labels than usual, or none, if there are not enough.
        O(D) besides the policy's `select`, and O(K) the first time.

        >>> import semibandit as sb
        >>> page = sb.Catalog.uniform(2)
        >>> for label in ("vote", "derby", "match", "storm"):
        ...     page.add(label)
        >>> first, second = page.decide(count=2)
        >>> first.labels, second.labels
        (['vote', 'derby'], ['match', 'storm'])
        >>> page.learn(second, [1.0, 0.0])
        >>> page.learn(first.id, {"derby": 1.0})  # of "vote" nothing will be known
        >>> page.waiting, [row["count"] for row in page.rows()]
        (0, [0, 1, 1, 1])
        """
        times = 1 if count is None else as_whole(count, "count", 1, "a number of decisions")
        with self._lock:
            asked = wish(self._arms_of, exclude, among, weights)
            made = [self._arms.decide(**asked) for _ in range(times)]
        return made[0] if count is None else made

    def learn(self, decision: LabelledDecision | int, rewards: npt.ArrayLike | Mapping[Any, float]) -> None:
        """Count the rewards of a decision, given itself or its id, and end its waiting. O(D) besides the update.

        `rewards`: one for each of its labels in their order, or a dictionary of rewards by label; of labels that are
        not in it nothing will be learnt. A label that has expired since the decision gets nothing, even if it was
        added again: its reward is dropped and counted (``describe()["dropped"]``). A refused call changes nothing.

        Raises
        ------
        ArmError
            When the decision waits for nothing, or a label is not one of its own.
        RewardError
            When a reward is no number in the range, or the number of rewards is wrong.
        """
        with self._lock:
            number, play = self._arms.settled_plays().find(decision)
            labels, arms = play.labels, play.arms
            if isinstance(rewards, Mapping):
                place = {label: i for i, label in enumerate(play.labels)}
                strange = [label for label in rewards if label not in place]
                if strange:
                    raise ArmError(f"decision {number} did not play {strange[0]!r}, but {play.labels!r}")
                labels = list(rewards)
                arms = [play.arms[place[label]] for label in labels]
                rewards = list(rewards.values())
            values = as_rewards(rewards, len(labels))
            check_rewards(labels, values, self._arms.policy)
            played = np.array(arms, dtype=np.int64)
            alive = played != GONE
            self._arms.learn(number, played[alive], values[alive])
            self._n_dropped += len(labels) - int(alive.sum())

    def drop(self, decision: LabelledDecision | int) -> None:
        """The feedback of a decision is lost: it waits no longer, and nothing is learnt. O(D)."""
        with self._lock:
            number, _ = self._arms.settled_plays().find(decision)
            self._arms.drop(number)

    @property
    def waiting(self) -> int:
        """How many decisions wait for their feedback."""
        with self._lock:
            return len(self._arms.plays)

    # -- feedback by label alone -------------------------------------------------------------------------

    def select(
        self,
        exclude: Labels | None = None,
        *,
        among: Labels | None = None,
        weights: npt.ArrayLike | Mapping[Any, float] | None = None,
    ) -> list[Any]:
        """The labels to play now, for whoever keeps them until `update`. As `decide`, but nothing waits."""
        with self._lock:
            asked = wish(self._arms_of, exclude, among, weights)
            return self._arms.labels(self._arms.settle().select(**asked))

    def update(self, labels: Iterable[Hashable], rewards: npt.ArrayLike) -> None:
        """Count one reward for each label, whoever chose it. Labels may be repeated.

        Feedback for a label that has expired is dropped and counted (``describe()["dropped"]``); for one that expired
        and was added again it counts, as nothing tells which of the two it is of: `decide` and `learn` know. A refused
        call changes nothing. Cost of the policy's `update`.

        Raises
        ------
        ArmError
            For a label that never was, or expired before the last `remember` ones.
        RewardError
            When a reward is no number in the range, or the number of rewards is wrong.
        """
        given = label_list(labels)
        values = as_rewards(rewards, len(given))
        with self._lock:
            arms, alive = self._arms_of(given, "labels")
            check_rewards(given, values, self._arms.policy)
            if arms.size:
                self._arms.policy.update(arms, values[alive])
            self._n_dropped += len(given) - arms.size

    # -- labels and arms ---------------------------------------------------------------------------------

    def _stranger(self, label: Any, place: str = "label") -> ArmError:
        if is_hashable(label) and label in self._expired:
            return ArmError(f"{place} {label!r} has expired")
        return ArmError(f"{place} {label!r} is not known: add it first")

    def _arms_of(self, labels: list[Any], name: str) -> tuple[IntArray, IntArray]:
        """The arms of those labels that are there, and their places in the list; strangers are an error."""
        self._arms.settle()
        arms, places = [], []
        for place, label in enumerate(labels):
            arm = self._arms.ids.id_of.get(label) if is_hashable(label) else None
            if arm is not None:
                arms.append(arm)
                places.append(place)
            elif not is_hashable(label) or label not in self._expired:
                raise self._stranger(label, f"{name}[{place}] =")
        return np.array(arms, dtype=np.int64), np.array(places, dtype=np.int64)

    def _all_arms_of(self, labels: list[Any]) -> IntArray:
        """The arms of labels that must all be there."""
        arms, _ = self._arms_of(labels, "labels")
        if arms.size < len(labels):
            raise self._stranger(next(label for label in labels if label not in self._arms.ids))
        return arms
