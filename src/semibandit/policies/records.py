"""What policies over arm records and one engine share: feedback, counts, arms that come and go."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from semibandit._records import FloatArray, IntArray, new_records
from semibandit.engines.base import Engine
from semibandit.engines.clocks import CURRENT
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid
from semibandit.policies.base import Policy, explain


class RecordPolicy(Policy):
    """A policy whose knowledge is in `records` and whose bases come from one engine over them.

    A subclass makes `_engine` (and says `_why`) and `_clock`, and implements `select` and `clone`.
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
