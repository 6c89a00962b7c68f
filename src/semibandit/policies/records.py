"""What policies over arm records share: an engine, a clock, an account of deleted arms, randomness."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from semibandit.arms import ALPHA, BETA, COUNT, FloatArray, IntArray, flat, new_records
from semibandit.checks import as_arms, as_seed, explain
from semibandit.compiled.random import fill_uniforms, new_state
from semibandit.engines import make_engine
from semibandit.engines.base import CompiledEngine, Engine
from semibandit.engines.clock import CURRENT, N_CLOCK, tick
from semibandit.locking import bare, unguarded
from semibandit.matroids import Matroid
from semibandit.policies.decisions import Ends, room_for, wait_in_records
from semibandit.policies.many import ALL_PLACED, HEEDLESS, keeps
from semibandit.policies.record_policy import RecordPolicy
from semibandit.policies.rounds import ClockRounds, hand_on
from semibandit.policies.state import array_of, number_of
from semibandit.policies.straight import Place, Straight
from semibandit.policies.ties import draw_first, shown, still_unseen, write_first
from semibandit.presence import Presence

__all__ = ["ClockPolicy", "CountingPolicy", "EnginePolicy", "Randomness", "RecordPolicy"]


def about_means(beta: FloatArray, lam: float, reward_range: tuple[float, float]) -> Ends:
    """The ends ``mean -+ lam * beta``, or the whole range for an arm never seen. O(n) when asked."""

    def ends(mean: FloatArray) -> tuple[FloatArray, FloatArray]:
        width, unseen, (low, high) = lam * beta, np.isnan(mean), reward_range
        return np.where(unseen, low, mean - width), np.where(unseen, high, mean + width)

    return ends


class EnginePolicy(RecordPolicy):
    """A policy whose bases come from one engine over its records. A subclass makes `_engine` and says `_why`."""

    _engine: Engine
    _why: str

    def _engine_state(self) -> Any:
        return getattr(self._engine, "any", None)

    @property
    def engine(self) -> str:
        """Name of the engine in use."""
        return self._engine.name

    @unguarded
    def select(self, exclude: Any = None, *, among: Any = None, weights: Any = None) -> IntArray:
        """The base of largest index, ascending ids; avoids the arms in `exclude` (they are backfilled)."""
        if exclude is None and among is None and weights is None:
            played = self._turn(self)
            if played is not None:
                return played
        self._lock.acquire()
        try:
            if among is not None or weights is not None:
                return self._select_some(exclude, among, weights)
            t = self._t + 1
            if exclude is None and self._in_one:
                arms = self._play(t)
                # As `_played_until`, without a call.
                self._t = t
                self._engine._lam = self._last_query()
                if self._straight is None:
                    self._go_straight()
                return arms
            if exclude is not None:
                exclude = as_arms(exclude, self.n_arms, "exclude")
            lam = self._query(t)
            self._engine._lam = lam
            arms = self._engine._select(lam) if exclude is None else self._engine.base_excluding(exclude)
            self._t = t
            return arms
        finally:
            self._lock.release()

    @cached_property
    def _in_one(self) -> bool:
        """Whether a round is one call of a kernel."""
        return self._queried_by_kernels() and self._whole is not None

    def _go_straight(self) -> None:
        """Let the next rounds be played straight; the lock is held."""
        assert self._whole is not None
        self._straight = Straight(self._lock)
        self._turn = self._straight.turn(self._whole, self.matroid.rank, self._engine, *self._query_at())

    def _at_once(self) -> IntArray | None:
        return HEEDLESS if self._in_one else None

    def _open(self) -> None:
        super()._open()
        self.__dict__.pop("_in_one", None)
        # The engine is nobody else's, and calls of the policy hold its lock: that of the engine would be a second one.
        engine = self._engine
        self._observe, self._touch = bare(engine.observe), bare(engine.touch)
        if isinstance(engine, CompiledEngine) and type(engine).observe is CompiledEngine.observe:
            self._observe = engine._enter_observe

    def _queried_by_kernels(self) -> bool:
        """Whether `_query` does no more than the policy's kernels do."""
        return type(self)._query is EnginePolicy._query

    def _query(self, t: int) -> float:
        """Make the weights of round t; the query to ask the engine at."""
        lam = self._aside.prepare(t)
        if lam < 0.0:
            self._ask(1)
            lam = self._aside.prepare(t)
        self._hand_on()
        return lam

    def _hand_on(self) -> None:
        hand_on(self._aside.touches, self._engine)

    def _update(self, arms: IntArray, rewards: FloatArray) -> None:
        super()._update(arms, rewards)
        self._touch(arms)

    def _reset(self, ids: IntArray) -> None:
        super()._reset(ids)
        self._touch(ids)

    def _query_at(self) -> Place:
        """Where the kernels of the policy leave what the engine is asked at."""
        raise NotImplementedError

    def _last_query(self) -> float:
        """What the engine was asked at in the last round."""
        array, place = self._query_at()
        return float(array[place])

    def _is_gone(self, arms: IntArray) -> npt.NDArray[np.bool_]:
        return self._engine._is_deleted(arms)

    def _begin_round(self, t: int) -> None:
        self._engine._lam = self._query(t)

    def _indices_of(self, arms: IntArray, t: int) -> FloatArray:
        return self._weights_of(arms)

    def _scores(self, arms: IntArray) -> FloatArray:
        return shown(self._weights_of(arms), self._first)

    def _weights_of(self, arms: IntArray) -> FloatArray:
        """What the engine weighs these arms by, at the query of the last round. O(n)."""
        rows = self._engine._recs[arms]
        weights: FloatArray = rows[:, ALPHA] + self._engine._lam * rows[:, BETA]
        return weights

    def _likely(self, arms: IntArray, scores: FloatArray) -> Ends:
        return about_means(self._engine._recs[arms, BETA], self._engine._lam, self.reward_range)

    def _played_until(self, t: int) -> None:
        self._t = t
        self._engine._lam = self._last_query()

    def delete(self, arms: Any) -> None:
        """Take arms out of play; what is known of them is kept. Cost of an update each."""
        self._engine.delete(arms)

    def insert(self, arms: Any) -> None:
        """Bring deleted arms back with what is known of them. Cost of an update each."""
        self._engine.insert(arms)

    def _grown_records(self, matroid: Matroid) -> npt.NDArray[np.void]:
        """Records for a larger ground set, with what is known of the old arms. O(K)."""
        self._check_growth(matroid)
        records = new_records(matroid.n_arms)
        columns = flat(records).reshape(-1, 4)
        if self._first.size:
            more = draw_first(self._tie_rng, matroid.n_arms - self.n_arms)
            self._first = np.concatenate((self._first, more))
            write_first(columns, slice(None), self._first)
        if self._believed is not None:
            self._prior = self._believed = self._believed.grown(matroid.n_arms)
            self._spread_prior()
            self._prior.write(columns, self.n_arms)
        records[: self.n_arms] = self.records
        return records

    def _grown_engine(
        self, matroid: Matroid, records: npt.NDArray[np.void], engine: str, clock: str
    ) -> tuple[Engine, str]:
        """An engine over `_grown_records` that stands where the present one does, and why it is that one. O(K)."""
        made, why = make_engine(matroid, records, engine, clock)
        made._lam = self._engine.lam
        if len(self._engine.deleted):
            made.delete(self._engine.deleted)
        return made, why

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "lam": self._engine.lam, "deleted": self._engine.deleted}

    def _set_state(self, state: dict[str, Any]) -> None:
        super()._set_state(state)
        self._engine._lam = number_of(state, "lam")
        self._engine.touch_all()
        gone = array_of(state, "deleted", np.int64)
        if len(gone):
            self._engine.delete(gone)

    def describe(self) -> dict[str, Any]:
        return {
            "policy": self.name,
            **self._about_outside(),
            "matroid": repr(self.matroid),
            "engine": self.engine,
            "why": self._why,
            **({"ties": self.ties} if self.ties != "id" else {}),
            "bytes": self._engine.memory(),
            "bytes_per_arm": self._engine.memory() / self.n_arms,
        }


class ClockPolicy(EnginePolicy):
    """A policy that asks its engine at the width of `_clock` and learns means: ``mean + lam / sqrt(N)``."""

    _clock: FloatArray
    _plays_waiting: IntArray | None = None

    def _make_own(self) -> Any:
        return ClockRounds(self._clock)

    def _query(self, t: int) -> float:
        return float(tick.entry(self._clock, t))

    def _queried_by_kernels(self) -> bool:
        return type(self)._query is ClockPolicy._query

    def _update(self, arms: IntArray, rewards: FloatArray) -> None:
        # One kernel counts and tells the engine.
        low, high = self.reward_range
        code = self._observe(arms, rewards, low, high)
        if code:
            raise explain(code, arms, rewards, self.n_arms, self.reward_range)
        if self._plays_waiting is not None:
            self._wait(arms, 0)

    def _reset(self, ids: IntArray) -> None:
        super()._reset(ids)
        if self._plays_waiting is not None:
            self._wait(ids, 0)

    def _wait(self, arms: IntArray, change: int) -> None:
        """In the width of the index: ``mean + lam / sqrt(N + plays that wait)``."""
        waiting = self._make_room()
        engine, high = self._engine, self.reward_range[1]
        if isinstance(engine, CompiledEngine):
            wait_in_records.entry(engine._any_handle, waiting, arms, change, high)
        else:
            wait_in_records.entry(self._aside.engine_handle, waiting, arms, change, high)
            self._hand_on()
        if self._first.size:
            again = still_unseen(arms, self._recs[:, COUNT], waiting)
            write_first(self._recs, again, self._first)
            self._touch(again)

    def _at_once(self) -> IntArray | None:
        if not self._in_one or self._first.size or not isinstance(self._engine, CompiledEngine):
            return None
        return self._make_room()

    def _learns_at_once(self) -> IntArray | None:
        return ALL_PLACED

    def _grow_from(self, old: Self) -> None:
        super()._grow_from(old)
        if old._plays_waiting is not None:
            self._plays_waiting = room_for(old._plays_waiting, self.n_arms)

    def _query_at(self) -> Place:
        return self._clock, CURRENT

    def _go_straight(self) -> None:
        super()._go_straight()
        if self._counts_straight() and keeps(type(self), "_counts_straight", ("update", "_update")):
            assert self._straight is not None and isinstance(self._engine, CompiledEngine)
            self._feed = self._straight.feedback(*self._engine.observes(), self.reward_range)

    def _counts_straight(self) -> bool:
        """Whether `_update` is one kernel."""
        engine = self._engine
        compiled = isinstance(engine, CompiledEngine) and type(engine).observe is CompiledEngine.observe
        return compiled and self._plays_waiting is None

    def _make_room(self) -> IntArray:
        """How many plays of each arm wait; from the first that does on, feedback is counted in two steps."""
        if self._plays_waiting is None:
            self._end_straight()
        self._plays_waiting = room_for(self._plays_waiting, self.n_arms)
        return self._plays_waiting

    @property
    def confidence_width(self) -> float:
        """lam of the last round: the index is ``mean + lam / sqrt(N)``."""
        return float(self._clock[CURRENT])

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "clock": self._clock}

    def _set_state(self, state: dict[str, Any]) -> None:
        self._clock[:] = array_of(state, "clock", np.float64, N_CLOCK)
        super()._set_state(state)


class CountingPolicy(RecordPolicy):
    """A policy that finds its bases without an engine over its records, and keeps account of deleted arms itself."""

    def __init__(
        self,
        matroid: Matroid,
        *,
        reward_range: Any = (0.0, 1.0),
        outside: str = "error",
        seed: int | None = 0,
    ) -> None:
        super().__init__(matroid, reward_range=reward_range, outside=outside, seed=seed)
        self._presence = Presence(self.n_arms)

    @property
    def engine(self) -> str:
        """Name of what finds the bases."""
        return str(self.describe()["engine"])

    def delete(self, arms: Any) -> None:
        """Take arms out of play; what is known of them is kept."""
        self._leave(self._presence.delete(arms))

    def insert(self, arms: Any) -> None:
        """Bring deleted arms back with what is known of them."""
        self._enter(self._presence.insert(arms))

    def _is_gone(self, arms: IntArray) -> npt.NDArray[np.bool_]:
        return self._presence.is_deleted(arms)

    def _leave(self, ids: IntArray) -> None:
        """These distinct arms were marked as absent."""

    def _enter(self, ids: IntArray) -> None:
        """These distinct arms were marked as present."""

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "deleted": self._presence.deleted}

    def _set_state(self, state: dict[str, Any]) -> None:
        super()._set_state(state)
        self.delete(array_of(state, "deleted", np.int64))


class Randomness:
    """For policies that draw: the state of their generator, changed in place by kernels (`compiled.random`)."""

    seed: int

    @cached_property
    def _rng(self) -> npt.NDArray[np.uint64]:
        return new_state(self.seed)

    def reseed(self, seed: int) -> None:
        """Start the draws anew."""
        self._rng[:] = new_state(as_seed(seed, none_is_zero=True))

    def _uniforms(self, n: int) -> FloatArray:
        """n numbers strictly between 0 and 1. O(n)."""
        out = np.empty(n)
        fill_uniforms(self._rng, out)
        return out

    def _set_rng(self, state: dict[str, Any]) -> None:
        self._rng[:] = array_of(state, "rng", np.uint64, 1)
