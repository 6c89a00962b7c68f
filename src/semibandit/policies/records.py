"""What policies over arm records share: counts, feedback, rounds played by kernels, arms that come and go."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from semibandit.arms import ALPHA, BETA, COUNT, TOTAL, FloatArray, IntArray, flat, new_records
from semibandit.checks import as_arms, as_seed, explain
from semibandit.compiled.random import new_state
from semibandit.engines import make_engine
from semibandit.engines.base import CompiledEngine, Engine
from semibandit.engines.clock import CURRENT, N_CLOCK, tick
from semibandit.engines.kernels import any_engine
from semibandit.errors import FileError, ParameterError
from semibandit.locking import unguarded
from semibandit.matroids import Matroid
from semibandit.policies.base import Policy
from semibandit.policies.decisions import room_for, wait_in_records
from semibandit.policies.prior import Prior, as_prior
from semibandit.policies.rounds import ASK, ClockRounds, CompiledRounds, NoEngine, hand_on, new_touches
from semibandit.policies.state import array_of, number_of, whole_of
from semibandit.presence import Presence


class RecordPolicy(Policy):
    """A policy that counts in `records` and whose rounds are played by kernels (`policies.rounds`).

    A subclass gives `_make_own`, the state of its kernels, and calls `_open` when it and the engine are there, and
    again whenever one of their arrays was replaced.
    """

    _own: Any
    _prior: Prior | None = None

    def __init__(
        self,
        matroid: Matroid,
        *,
        reward_range: Any = (0.0, 1.0),
        outside: str = "error",
        seed: int | None = 0,
    ) -> None:
        super().__init__(matroid, reward_range=reward_range, outside=outside, seed=seed)
        self.records = new_records(self.n_arms)

    def _believe(self, prior: Any) -> None:
        """Let the records be those of arms of which `prior` is believed. Before there is an engine. O(K)."""
        self._prior = as_prior(prior, self.n_arms, self.reward_range)
        if self._prior is not None:
            self._prior.write(self._recs)

    @property
    def _recs(self) -> FloatArray:
        return flat(self.records).reshape(-1, 4)

    # -- rounds ------------------------------------------------------------------------------------------

    def _make_own(self) -> Any:
        """The state of this policy's kernels."""
        raise NotImplementedError(f"{type(self).__name__} gives no _make_own")

    def _engine_state(self) -> Any:
        """The state of the engine for kernels, None if it runs in Python."""
        return NoEngine(self._recs)

    def _open(self) -> None:
        """Play with the arrays that are there now. O(1)."""
        self._own = self._make_own()
        for name in ("_whole", "_aside"):
            self.__dict__.pop(name, None)

    @cached_property
    def _whole(self) -> CompiledRounds | None:
        """The kernels of policy and engine together."""
        engine = self._engine_state()
        return None if engine is None else CompiledRounds(self._own, engine)

    @cached_property
    def _aside(self) -> CompiledRounds:
        """The kernels of the policy alone; what they touch must be handed on to the engine."""
        if not hasattr(self, "_engine"):
            assert self._whole is not None
            return self._whole
        touches = new_touches(self._engine._recs)
        return CompiledRounds(self._own, any_engine(touches), touches)

    def compiled_rounds(self) -> CompiledRounds | None:
        mro = type(self).__mro__
        mine = next(cls for cls in mro if "_make_own" in vars(cls))
        for method in ("select", "update", "_update"):
            changed = next(cls for cls in mro if method in vars(cls))
            if not issubclass(mine, changed):
                return None
        return self._whole

    def _play(self, t: int) -> IntArray:
        """Round t by the kernels of policy and engine together, asked once more if they must ask."""
        out = np.empty(self.matroid.rank, dtype=np.int64)
        for _ in range(2):
            whole = self._whole
            assert whole is not None
            n = whole.select(t, out)
            if n != ASK:
                return out if n == out.shape[0] else out[:n].copy()
            self._ask(1)
        raise RuntimeError(f"{self!r} asks to be asked and then asks again")

    def _update(self, arms: IntArray, rewards: FloatArray) -> None:
        code = self._aside.learn(arms, rewards, *self.reward_range)
        if code:
            raise explain(code, arms, rewards, self.n_arms, self.reward_range)

    # -- what is known -----------------------------------------------------------------------------------

    @property
    def counts(self) -> IntArray:
        count = self.records["count"]
        return np.rint(count if self._prior is None else count - self._prior.strength).astype(np.int64)

    @property
    def means(self) -> FloatArray:
        count, total = self.records["count"], self.records["total"]
        if self._prior is not None:
            count = np.rint(count - self._prior.strength)
            total = total - self._prior.mean * self._prior.strength
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(count > 0, total / count, np.nan)

    def _scores(self, arms: IntArray) -> FloatArray:
        # As `means`, without going through all arms.
        count, total = self._recs[arms, COUNT], self._recs[arms, TOTAL]
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(count > 0, total / count, np.nan)

    def _reset(self, ids: IntArray) -> None:
        self.records[ids] = new_records(1)
        if self._prior is not None:
            self._prior.write_some(self._recs, ids)

    def _arguments(self) -> dict[str, Any]:
        moved = {} if self.outside == "error" else {"outside": self.outside}
        return {"reward_range": self.reward_range, **moved, "seed": self.seed}

    def _state(self) -> dict[str, Any]:
        moved = {} if self.outside == "error" else {"clipped": self.clipped}
        return {"t": self._t, "records": flat(self.records), **moved}

    def _set_state(self, state: dict[str, Any]) -> None:
        known = array_of(state, "records", np.float64, 4 * self.n_arms)
        if np.isnan(known).any() or (known[COUNT::4] < 0.0).any() or not np.isfinite(known[TOTAL::4]).all():
            raise FileError("the records hold what no arm can have")
        clipped = 0 if self.outside == "error" else whole_of(state, "clipped")
        self._t = whole_of(state, "t")
        self._clipped[0] = clipped
        flat(self.records)[:] = known


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
    def select(self, exclude: Any = None) -> IntArray:
        """The base of largest index, ascending ids; avoids the arms in `exclude` (they are backfilled)."""
        if exclude is not None:
            exclude = as_arms(exclude, self.n_arms, "exclude")
        with self._lock:
            t = self._t + 1
            lam = self._query(t)
            self._engine._lam = lam
            arms = self._engine._select(lam) if exclude is None else self._engine.base_excluding(exclude)
            self._t = t
        return arms

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
        self._engine.touch(arms)

    def _reset(self, ids: IntArray) -> None:
        super()._reset(ids)
        self._engine.touch(ids)

    def _last_query(self) -> float:
        """What the engine was asked at in the last round."""
        raise NotImplementedError

    def _scores(self, arms: IntArray) -> FloatArray:
        recs = self._engine._recs
        with np.errstate(invalid="ignore"):
            return recs[arms, ALPHA] + self._engine.lam * recs[arms, BETA]

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
        if type(matroid) is not type(self.matroid) or matroid.n_arms < self.n_arms:
            raise ParameterError(
                f"matroid must be a {type(self.matroid).__name__} with at least {self.n_arms} arms, got {matroid!r}"
            )
        records = new_records(matroid.n_arms)
        if self._prior is not None:
            self._prior = self._prior.grown(matroid.n_arms)
            self._prior.write(flat(records).reshape(-1, 4), self.n_arms)
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

    def _update(self, arms: IntArray, rewards: FloatArray) -> None:
        # One kernel counts and tells the engine.
        code = self._engine.observe(arms, rewards, *self.reward_range)
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
        self._plays_waiting = room_for(self._plays_waiting, self.n_arms)
        engine, high = self._engine, self.reward_range[1]
        if isinstance(engine, CompiledEngine):
            wait_in_records.entry(engine._any_handle, self._plays_waiting, arms, change, high)
            return
        touches = self._aside
        wait_in_records.entry(touches.engine_handle, self._plays_waiting, arms, change, high)
        self._hand_on()

    def _last_query(self) -> float:
        return float(self._clock[CURRENT])

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

    def delete(self, arms: Any) -> None:
        """Take arms out of play; what is known of them is kept."""
        self._leave(self._presence.delete(arms))

    def insert(self, arms: Any) -> None:
        """Bring deleted arms back with what is known of them."""
        self._enter(self._presence.insert(arms))

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

    def _set_rng(self, state: dict[str, Any]) -> None:
        self._rng[:] = array_of(state, "rng", np.uint64, 1)
