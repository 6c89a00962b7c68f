"""Decisions of policies over features: each remembers the rows of its arms, so that `learn` needs none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, overload

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.checks import as_arms, as_distinct_arms
from semibandit.errors import FileError, ParameterError
from semibandit.policies.base import Policy
from semibandit.policies.decisions import Decision, Waiting
from semibandit.policies.linear.features import as_matrix, as_rows, require_shape
from semibandit.policies.linear.waiting import WaitingRows


class ByFeatures(Policy):
    """Decisions with features, of a policy or of one around it that is told costs."""

    def _holder(self) -> Deciding:
        """Who knows the features."""
        raise NotImplementedError

    @overload
    def decide(
        self,
        *,
        exclude: Any = None,
        among: Any = None,
        weights: Any = None,
        count: None = None,
        features: Any = None,
    ) -> Decision: ...

    @overload
    def decide(
        self,
        *,
        exclude: Any = None,
        among: Any = None,
        weights: Any = None,
        count: int,
        features: Any = None,
    ) -> list[Decision]: ...

    def decide(
        self,
        *,
        exclude: Any = None,
        among: Any = None,
        weights: Any = None,
        count: int | None = None,
        features: Any = None,
    ) -> Decision | list[Decision]:
        """`select` for feedback that comes later. The decision remembers the rows of its arms: `learn` needs none.

        `features`: as in `select`. With `count` they serve all decisions.
        """
        with self._holder()._given_table(features, among):
            made: Any = super().decide(exclude=exclude, among=among, weights=weights, count=count)
        return made  # type: ignore[no-any-return]

    def learn(self, decision: Decision | int, rewards: Any, arms: Any = None, features: Any = None) -> None:
        """Count the rewards of a decision and end its waiting. O(D d^2).

        `arms`: as in `Policy.learn`. `features`: one row per reward, in place of those that the decision remembers.
        """
        holder = self._holder()
        holder._told = features
        try:
            super().learn(decision, rewards, arms)
        finally:
            holder._told = None


class Deciding(ByFeatures):
    """What a call that is under way was given, all of it while the lock is held.

    `_table`: one row per arm, or per arm of `_table_arms`, for choosing; `_rows`: one per reward, for learning;
    `_told`: what `learn` was given for these.
    """

    dimension: int
    _fixed: bool
    _features: FloatArray
    _rows_of: WaitingRows
    _table: FloatArray | None = None
    _table_arms: IntArray | None = None
    _rows: FloatArray | None = None
    _told: Any = None

    @contextmanager
    def _given_table(self, features: Any, among: Any) -> Iterator[None]:
        """Choose by these rows. What is given already (by `decide`) stays."""
        if features is None:
            yield
            return
        if self._fixed:
            raise ParameterError(
                "features: those of this policy are fixed; make one with dimension=... in their place"
            )
        table = as_matrix(features)
        arms = None
        if among is not None:
            arms = as_distinct_arms(among, self.n_arms, "among")
            require_shape(table, len(arms), self.dimension, "arm of among")
            order = np.argsort(arms)
            arms, table = arms[order], table[order]
        else:
            require_shape(table, self.n_arms, self.dimension, "arm")
        self._table, self._table_arms = table, arms
        try:
            yield
        finally:
            self._table = self._table_arms = None

    @contextmanager
    def _given_rows(self, rows: FloatArray | None) -> Iterator[None]:
        """Learn from these rows."""
        before, self._rows = self._rows, rows
        try:
            yield
        finally:
            self._rows = before

    def _as_rows(self, arms: Any, features: Any) -> FloatArray | None:
        """The rows that come with rewards of these arms, checked, or what was given already. O(n d)."""
        if features is None:
            return self._rows
        return as_rows(features, len(as_arms(arms, self.n_arms)), self.dimension, "reward")

    def _rows_now(self, arms: IntArray) -> FloatArray | None:
        """The rows of these arms as a round that is under way has them; None if they are not known. O(n d)."""
        if self._fixed:
            return self._features[arms]
        if self._table is None:
            return None
        if self._table_arms is None:
            return self._table[arms]
        return self._table[np.searchsorted(self._table_arms, arms)]

    def _need_rows(self, arms: IntArray, call: str) -> FloatArray:
        rows = self._rows_now(arms)
        if rows is None:
            raise ParameterError(
                f"features must be given with each call of {call}: "
                f"this policy was made with dimension = {self.dimension}"
            )
        return rows

    # -- decisions ---------------------------------------------------------------------------------------

    def _holder(self) -> Deciding:
        return self

    def _noted(self, number: int, arms: IntArray) -> None:
        self._rows_of.of[number] = self._rows_now(arms)

    @contextmanager
    def _recalled(self, number: int, arms: IntArray) -> Iterator[None]:
        """Inside, a decision is learnt from the rows that it remembers; if that is not refused, they are forgotten."""
        _, played = self._decisions.arms_of(number)
        known = self._rows_of.of[number]
        rows = None
        if self._told is not None:
            rows = self._as_rows(arms, self._told)
        elif known is not None:
            rows = known[np.searchsorted(played, arms)]
        # Rows that waited and are learnt once each change no width.
        alike = self._told is None and known is not None and len(np.unique(arms)) == len(arms)
        with self._given_rows(rows), self._ending(known, ~np.isin(played, arms) if alike else None):
            yield
        del self._rows_of.of[number]

    def _settled(self, number: int) -> None:
        if number in self._rows_of.of:  # nothing was learnt
            with self._ending(self._rows_of.of.pop(number), None):
                pass

    def _withdraw(self, number: int, arm: int) -> None:
        _, played = self._decisions.arms_of(number)
        known = self._rows_of.of[number]
        here = played == arm
        with self._ending(None if known is None else known[here], None):
            super()._withdraw(number, arm)
        self._rows_of.of[number] = None if known is None else known[~here]

    @contextmanager
    def _ending(self, rows: FloatArray | None, missing: Any) -> Iterator[None]:
        """A decision with these rows ends; all but the `missing` ones are learnt, none if that is None."""
        yield

    def _take_decisions(self, other: Waiting) -> None:
        """The rows came with the state."""
        self.__dict__["_decisions"] = other
        rows = self._rows_of.of
        fits = set(rows) == set(other._arms) and all(
            known is None or len(known) == len(other._arms[number]) for number, known in rows.items()
        )
        if not fits:
            raise FileError("the features of decisions that wait are not those of their arms")
