"""What policies share that keep their arms in groups of equal counts (`count_groups`)."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np

from semibandit.arms import ALPHA, BETA, COUNT, FloatArray, IntArray
from semibandit.compiled.handle import by_handle, make_handle
from semibandit.compiled.jit import Kernel
from semibandit.engines.base import bytes_of
from semibandit.engines.resolve.one_by_one import REFUSED, TAKEN, UNKNOWN, Rule, classes_of, rule_of
from semibandit.errors import FileError
from semibandit.matroids import Matroid
from semibandit.policies.decisions import Ends, room_for
from semibandit.policies.index.count_groups import (
    LIVE,
    LOOKED,
    WIDTH,
    CountGroups,
    check_groups,
    fill,
    forget_arms,
    join_all,
    leave_all,
    new_groups,
    order_of,
    wait_for,
    write_means,
)
from semibandit.policies.index.gains import begin_greedy, choose, next_arm, settle
from semibandit.policies.records import CountingPolicy, RecordPolicy, about_means
from semibandit.policies.rounds import CompiledRounds
from semibandit.policies.state import array_of, number_of

NO_ARMS: IntArray = np.zeros(0, dtype=np.int64)

# Counts are floats, exact up to here.
_MOST_PLAYS = 2.0**53


class CountGroupsPolicy(CountingPolicy):
    """A policy whose rounds are greedy choices over groups of equal counts. A subclass gives `_make_own` and
    `_decide_round`, and calls `_open` at the end of its constructor."""

    def __init__(
        self,
        matroid: Matroid,
        *,
        reward_range: Any = (0.0, 1.0),
        outside: str = "error",
        seed: int | None = 0,
    ) -> None:
        super().__init__(matroid, reward_range=reward_range, outside=outside, seed=seed)
        classes, self._n_classes = classes_of(matroid)
        self._groups = new_groups(self._recs, self.reward_range[1], classes)
        self._rule = rule_of(matroid, self._recs)
        fill(self._groups, order_of(self._groups, np.arange(self.n_arms, dtype=np.int64)))

    def _engine_state(self) -> Any:
        # Kernels find the rule where others have an engine.
        return self._rule

    @property
    def _in_kernels(self) -> bool:
        return self._rule.kind != UNKNOWN

    def compiled_rounds(self) -> CompiledRounds | None:
        return super().compiled_rounds() if self._in_kernels else None

    # -- rounds ------------------------------------------------------------------------------------------

    def select(self, exclude: Any = None, *, among: Any = None, weights: Any = None) -> IntArray:
        """The base to play, ascending ids; avoids the arms in `exclude` (they are backfilled)."""
        if among is not None or weights is not None:
            return self._select_some(exclude, among, weights)
        ids = NO_ARMS if exclude is None else self._presence.among(exclude)
        if len(ids):
            self._take_out(ids)
        try:
            t = self._t + 1
            arms = self._play(t) if self._in_kernels else self._decide_round(t)
        finally:
            if len(ids):
                self._put_back(ids)
        self._t = t
        return arms

    def _choose_among(self, arms: IntArray, t: int) -> IntArray:
        return self._decide_round(t, arms) if len(arms) else arms

    def _decide_round(self, t: int, arms: IntArray = NO_ARMS) -> IntArray:
        """The base of round t, among `arms` alone if there are any; ascending."""
        raise NotImplementedError

    def _choose(self, width: float, arms: IntArray = NO_ARMS) -> IntArray:
        """`gains.choose`, by the kernels' pieces where only Python can tell what is independent."""
        out = np.empty(self.matroid.rank, dtype=np.int64)
        if self._in_kernels:
            return out[: self._call(choose, Rule)(self._handles[1], width, arms, out)]
        n = 0
        self._call(begin_greedy)(width, arms)
        while n < len(out):
            arm = int(self._call(next_arm)())
            if arm < 0:
                break
            out[n] = arm
            # A copy, because the test is a user's code and may sort or keep what it is handed.
            fits = bool(self.matroid._is_independent(out[: n + 1].copy()))
            self._call(settle)(arm, TAKEN if fits else REFUSED)
            n += fits
        return out[:n].copy()

    @cached_property
    def _handles(self) -> tuple[Any, Any]:
        return make_handle(self._groups), make_handle(self._rule)

    def _call(self, kernel: Kernel, *more: type) -> Any:
        """A kernel of the groups, and of states of the classes in `more` after them."""
        enter, handle = by_handle(kernel, CountGroups, *more).entry, self._handles[0]
        return lambda *rest: enter(handle, *rest)

    def _open(self) -> None:
        self.__dict__.pop("_handles", None)
        super()._open()

    # -- arms that come, go and wait ---------------------------------------------------------------------

    def _take_out(self, ids: IntArray) -> None:
        self._call(leave_all)(ids)

    def _put_back(self, ids: IntArray) -> None:
        self._call(join_all)(ids)

    def _leave(self, ids: IntArray) -> None:
        self._take_out(ids)

    def _enter(self, ids: IntArray) -> None:
        self._put_back(ids)

    def _reset(self, ids: IntArray) -> None:
        self._call(forget_arms)(ids)

    def _wait(self, arms: IntArray, change: int) -> None:
        """In N: ``mean`` stays, and ``1 / (N + plays that wait)`` is what counts."""
        if len(self._groups.waiting) < self.n_arms:
            self._groups = self._groups._replace(waiting=room_for(self._groups.waiting, self.n_arms))
            self._open()
        self._call(wait_for)(arms, change)

    # -- the rest ----------------------------------------------------------------------------------------

    @property
    def confidence_width(self) -> float:
        """sqrt f of the last round: what one play more or less of an arm is measured by."""
        return float(self._groups.now[WIDTH])

    def _scores(self, arms: IntArray) -> FloatArray:
        with np.errstate(invalid="ignore"):
            return self._recs[arms, ALPHA] + self.confidence_width * self._recs[arms, BETA]

    def _likely(self, arms: IntArray, scores: FloatArray) -> Ends:
        return about_means(self._recs[arms, BETA], self.confidence_width, self.reward_range)

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "width": self.confidence_width}

    def _set_state(self, state: dict[str, Any]) -> None:
        width, everyone = number_of(state, "width"), np.arange(self.n_arms, dtype=np.int64)
        self._take_out(everyone)
        RecordPolicy._set_state(self, state)
        count = self._recs[:, COUNT]
        if not (count == np.rint(count)).all() or (count >= _MOST_PLAYS).any():
            raise FileError("the counts must be whole numbers")
        self._call(write_means)()
        fill(self._groups, order_of(self._groups, everyone))
        self.delete(array_of(state, "deleted", np.int64))
        self._groups.now[WIDTH] = width

    def _grow_from(self, old: Self) -> None:
        super()._grow_from(old)
        waiting = old._groups.waiting
        for n in np.unique(waiting[waiting > 0]).tolist():
            self._wait(np.flatnonzero(waiting == n).astype(np.int64), n)

    @property
    def engine(self) -> str:
        """Name of what finds the bases."""
        return "count-groups"

    def describe(self) -> dict[str, Any]:
        """What runs inside; ``groups`` counts the groups, ``looked_at`` the gains computed per round so far."""
        held = bytes_of(self._groups) + bytes_of(self._rule.scratch)
        return {
            "policy": self.name,
            **self._about_outside(),
            "matroid": repr(self.matroid),
            "engine": self.engine,
            "why": "of arms played equally often only the best ones matter",
            "groups": int(self._groups.meta[LIVE]),
            "looked_at": float(self._groups.meta[LOOKED]) / max(1, self._t),
            "bytes": held,
            "bytes_per_arm": held / self.n_arms,
        }

    def _check(self) -> None:
        """Assert all invariants. O(K log K)."""
        check_groups(self._groups, self._presence.mask)
