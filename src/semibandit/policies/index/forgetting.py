"""What CUCB that forgets has in common, whatever it forgets: options, the engine, and the memory it takes."""

from __future__ import annotations

from typing import Any

from semibandit.checks import as_number, one_of
from semibandit.engines import choose_clock, make_engine
from semibandit.engines.base import bytes_of
from semibandit.matroids import Matroid
from semibandit.policies.index.cucb import CLOCKS
from semibandit.policies.records import EnginePolicy


class ForgettingPolicy(EnginePolicy):
    """CUCB over statistics that lose old feedback. A subclass gives its kernels and the width of its clock."""

    def __init__(
        self,
        matroid: Matroid,
        *,
        reward_range: Any,
        exploration: float,
        clock: str,
        engine: str,
        step: float,
        outside: str,
        seed: int | None,
    ) -> None:
        super().__init__(matroid, reward_range=reward_range, outside=outside, seed=seed)
        self.exploration = as_number(exploration, "exploration", 0.0)
        self.step = as_number(step, "step", 0.0, 1.0, closed=False)
        self._asked = (one_of(clock, "clock", CLOCKS), engine)
        self.clock = choose_clock(matroid, engine) if clock == "auto" else clock
        self._engine, self._why = make_engine(matroid, self.records, engine, self.clock)

    @property
    def _scale(self) -> float:
        """What log t is multiplied by under the root."""
        low, high = self.reward_range
        return self.exploration * (high - low) ** 2

    @property
    def _eta(self) -> float:
        """The height of a stair; 0 under the exact clock."""
        return self.step if self.clock == "staircase" else 0.0

    def grow(self, matroid: Matroid) -> None:
        """Go on with a larger ground set, as `CUCB.grow`: old arms stay what they are, the others are new. O(K)."""
        records = self._grown_records(matroid)
        engine, why = self._grown_engine(matroid, records, self._asked[1], self.clock)
        self._make_room_for(matroid)
        self.matroid, self.n_arms, self.records = matroid, matroid.n_arms, records
        self._engine, self._why = engine, why
        self._open()

    def _make_room_for(self, matroid: Matroid) -> None:
        """Let what is kept by arm, besides the records, be as long as the larger ground set wants it."""
        raise NotImplementedError(f"{type(self).__name__} gives no _make_room_for, which grow needs")

    def _arguments(self) -> dict[str, Any]:
        return {
            **super()._arguments(),
            "exploration": self.exploration,
            "clock": self._asked[0],
            "engine": self._asked[1],
            "step": self.step,
        }

    def describe(self) -> dict[str, Any]:
        total = self._engine.memory() + bytes_of(self._own)
        return {
            **super().describe(),
            "clock": self.clock,
            "bytes": total,
            "bytes_per_arm": total / self.n_arms,
        }
