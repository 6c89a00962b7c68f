"""What policies over arm records and one engine share: feedback, counts, arms that come and go."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from semibandit.arms import COUNT, TOTAL, FloatArray, IntArray, flat, new_records
from semibandit.engines.base import Engine
from semibandit.engines.clock import CURRENT
from semibandit.errors import FileError, ParameterError
from semibandit.matroids import Matroid
from semibandit.policies.base import Policy, explain
from semibandit.policies.rounds import ClockRounds, CompiledRounds
from semibandit.policies.state import array_of, number_of, whole_of


class RecordPolicy(Policy):
    """A policy whose knowledge is in `records` and whose bases come from one engine over them.

    A subclass makes `_engine` (and says `_why`) and `_clock`, and implements `select` and `_arguments`.
    """

    _engine: Engine
    _why: str
    _clock: FloatArray

    def __init__(self, matroid: Matroid, reward_range: Any = (0.0, 1.0)) -> None:
        super().__init__(matroid, reward_range)
        self.records = new_records(self.n_arms)

    @property
    def engine(self) -> str:
        """Name of the engine in use."""
        return self._engine.name

    def _update(self, arms: IntArray, rewards: FloatArray) -> None:
        low, high = self.reward_range
        code = self._engine.observe(arms, rewards, low, high)
        if code:
            raise explain(code, arms, rewards, self.n_arms, low, high)

    def _played_until(self, t: int) -> None:
        self._t = t
        self._engine._lam = self.confidence_width

    @cached_property
    def _clock_rounds(self) -> dict[int, CompiledRounds]:
        return {}

    def _rounds_of(self, engine: Engine) -> CompiledRounds | None:
        """Rounds in which `engine` is asked at the width of the clock, if it is compiled."""
        state = getattr(engine, "_state", None)
        if state is None:
            return None
        known = self._clock_rounds.get(id(state))
        if known is None:
            known = CompiledRounds(ClockRounds(self._clock), state)
            self._clock_rounds.clear()
            self._clock_rounds[id(state)] = known
        return known

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
        records[: self.n_arms] = self.records
        return records

    def _state(self) -> dict[str, Any]:
        return {
            "t": self._t,
            "records": flat(self.records),
            "lam": self._engine.lam,
            "deleted": self._engine.deleted,
        }

    def _set_state(self, state: dict[str, Any]) -> None:
        known = array_of(state, "records", np.float64, 4 * self.n_arms)
        if np.isnan(known).any() or (known[COUNT::4] < 0.0).any() or not np.isfinite(known[TOTAL::4]).all():
            raise FileError("the records hold what no arm can have")
        flat(self.records)[:] = known
        self._t = whole_of(state, "t")
        self._engine._lam = number_of(state, "lam")
        self._engine.touch(np.arange(self.n_arms, dtype=np.int64))
        gone = array_of(state, "deleted", np.int64)
        if len(gone):
            self._engine.delete(gone)

    @property
    def counts(self) -> IntArray:
        return self.records["count"].astype(np.int64)

    @property
    def means(self) -> FloatArray:
        count = self.records["count"]
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(count > 0, self.records["total"] / count, np.nan)

    @property
    def confidence_width(self) -> float:
        """lam of the last round: the index is ``mean + lam / sqrt(N)``."""
        return float(self._clock[CURRENT])

    def describe(self) -> dict[str, Any]:
        return {
            "policy": self.name,
            "matroid": repr(self.matroid),
            "engine": self.engine,
            "why": self._why,
            "bytes": self._engine.memory(),
            "bytes_per_arm": self._engine.memory() / self.n_arms,
        }
