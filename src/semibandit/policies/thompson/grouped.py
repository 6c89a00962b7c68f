"""Which sampler of CTS serves a matroid; and arms kept in groups of one posterior while they learn, come and go."""

from __future__ import annotations

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.compiled.handle import by_handle
from semibandit.engines.base import Engine
from semibandit.errors import ParameterError
from semibandit.matroids import Graphic, Laminar, Matroid, Partition, Transversal, Uniform
from semibandit.matroids.base import kind_of
from semibandit.policies.records import CountingPolicy, Randomness
from semibandit.policies.thompson.posterior_groups import join_all, leave_all
from semibandit.policies.thompson.posterior_layout import Groups
from semibandit.policies.thompson.posterior_room import lacks_numbers, new_groups, with_places, with_room
from semibandit.policies.thompson.rounds import BEGIN, END, JOIN, move_waiting
from semibandit.policies.thompson.staged_points import Points, new_points
from semibandit.policies.thompson.staged_rules import Rule, make_rule

SAMPLERS = ("auto", "plain", "grouped", "keyed")

# Measured: a round of the grouped sampler costs what drawing so many arms does, and so many for each class.
FEW_ARMS, FEW_PER_CLASS = 200, 20


def choose_sampler(matroid: Matroid, posterior: str, boosted: bool, sampler: str) -> tuple[str, str]:
    """Which sampler serves, and why."""
    fits = kind_of(matroid) in (Uniform, Partition, Laminar, Graphic, Transversal)
    if sampler == "grouped" and not fits:
        raise ParameterError(
            f"sampler = 'grouped' does not serve {matroid.name} matroids; here: 'auto' or 'plain'"
        )
    if sampler == "grouped" and posterior != "beta":
        raise ParameterError(
            "sampler = 'grouped' needs posterior = 'beta'; for 'gaussian': 'auto' or 'plain'"
        )
    if sampler == "keyed" and boosted:
        raise ParameterError("sampler = 'keyed' does not go with boosted = True: take 'auto' or 'plain'")
    if sampler != "auto":
        return sampler, "asked for"
    if not fits or posterior != "beta":
        return (
            "plain",
            "grouping serves the Beta posterior on uniform, partition, laminar, graphic and transversal matroids",
        )
    classes = _n_classes(matroid)
    if matroid.n_arms < max(FEW_ARMS, FEW_PER_CLASS * classes):
        return (
            "plain",
            f"few arms: drawing each is faster below {FEW_ARMS} arms, and {FEW_PER_CLASS} a class",
        )
    return "grouped", "arms with the same posterior are drawn together"


def _n_classes(matroid: Matroid) -> int:
    if isinstance(matroid, Partition):
        return int((matroid._capacity > 0).sum())
    return len(matroid._capacity) if isinstance(matroid, Laminar) else 1


class GroupedArms(Randomness, CountingPolicy):
    """A policy whose arms stand in groups (`posterior_groups`), or, where `_groups` is None, in an engine."""

    _engine: Engine
    _groups: Groups | None
    _arm: IntArray
    _waiting: list[IntArray]
    _meta: IntArray
    _rule: Rule
    _points: Points
    _capacity: IntArray

    def _open_groups(self) -> Groups:
        matroid = self.matroid
        self._waiting = [np.zeros(matroid.rank, dtype=np.int64) for _ in range(2)]
        self._meta = np.zeros(3, dtype=np.int64)
        self._rule, classes, self._capacity = make_rule(matroid)
        self._points = new_points(self.n_arms, len(self._capacity))
        return new_groups(self._arm, classes, len(self._capacity))

    def _update(self, arms: IntArray, rewards: FloatArray) -> None:
        if self._groups is not None and len(arms) > len(self._waiting[0]):
            self._waiting = [np.zeros(2 * len(arms), dtype=np.int64) for _ in range(2)]
            self._open()
        super()._update(arms, rewards)
        self._settle()

    def _settle(self) -> None:
        """Count the outcomes that wait; the arrays of the groups grow where they must."""
        if self._groups is None or self._meta[BEGIN] >= self._meta[END]:
            return
        meta = self._meta
        while meta[BEGIN] < meta[END]:
            if meta[JOIN]:
                self._join(self._waiting[0][meta[BEGIN] : meta[BEGIN] + 1])
                meta[BEGIN] += 1
                meta[JOIN] = 0
            else:
                by_handle(move_waiting, type(self._own)).entry(self._aside.own_handle)

    def _ask(self, rounds: int) -> int:
        self._settle()
        return rounds

    def _played_until(self, t: int) -> None:
        super()._played_until(t)
        self._settle()

    # -- arms that come and go ---------------------------------------------------------------------------

    def _join(self, ids: IntArray) -> None:
        """Put these absent, distinct arms into their groups; the arrays grow where they must."""
        assert self._groups is not None
        before = self._groups
        at = int(join_all(self._groups, ids, 0))
        while at >= 0:
            self._groups = (
                with_room(self._groups) if lacks_numbers(self._groups) else with_places(self._groups)
            )
            at = int(join_all(self._groups, ids, at))
        if self._groups is not before:
            self._open()

    def _take_out(self, ids: IntArray) -> None:
        if self._groups is None:
            self._engine.delete(ids)
        else:
            leave_all(self._groups, ids)

    def _put_back(self, ids: IntArray) -> None:
        if self._groups is None:
            self._engine.insert(ids)
        else:
            self._join(ids)

    def _leave(self, ids: IntArray) -> None:
        self._take_out(ids)

    def _enter(self, ids: IntArray) -> None:
        self._put_back(ids)
