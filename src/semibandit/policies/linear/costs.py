"""Policies over features that are told costs: costs are linear in the features, so -cost is what is learnt."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from semibandit.arms import IntArray
from semibandit.locking import unguarded
from semibandit.matroids import Matroid
from semibandit.policies.costs import CostPolicy, mirror_at
from semibandit.policies.decisions import Waiting
from semibandit.policies.linear.deciding import ByFeatures
from semibandit.policies.linear.policy import LinearPolicy


class LinearCosts(ByFeatures, CostPolicy):
    """A `LinearPolicy` that is told costs; made by `minimize`. It shares the decisions of the policy inside."""

    inner: LinearPolicy

    def __init__(self, matroid: Matroid, policy: LinearPolicy, *, inside: bool = False) -> None:
        super().__init__(matroid, policy, inside=inside)
        self.inner._told_costs(mirror_at(self.reward_range))
        self.__dict__["_decisions"] = self.inner._decisions

    @property
    def contextual(self) -> bool:  # type: ignore[override]
        """As the policy inside."""
        return self.inner.contextual

    @unguarded
    def select(
        self, exclude: Any = None, *, among: Any = None, weights: Any = None, features: Any = None
    ) -> IntArray:
        """The cheapest base; `weights` are costs, `features` as in the policy inside."""
        with self._lock, self.inner._given_table(features, among):
            return super().select(exclude, among=among, weights=weights)

    @unguarded
    def update(self, arms: npt.ArrayLike, rewards: npt.ArrayLike, features: Any = None) -> None:
        """Learn one cost for each named arm; `features` as in the policy inside."""
        with self._lock, self.inner._given_rows(self.inner._as_rows(arms, features)):
            super().update(arms, rewards)

    def _holder(self) -> LinearPolicy:
        return self.inner

    def _withdraw(self, number: int, arm: int) -> None:
        self.inner._withdraw(number, arm)

    def _take_decisions(self, other: Waiting) -> None:
        self.inner._take_decisions(other)
        self.__dict__["_decisions"] = self.inner._decisions

    def grow(self, matroid: Matroid, features: Any = None) -> None:
        """As the policy inside."""
        self.inner.grow(matroid, features)
        self.matroid, self.n_arms = matroid, matroid.n_arms
        self._clipped = self.inner._clipped

    def reset(self, arms: Any, features: Any = None) -> None:
        """As the policy inside."""
        self.inner.reset(arms, features)

    def clone(self) -> LinearCosts:
        return LinearCosts(self.matroid, self.inner, inside=True)
