"""What CUCB that forgets has in common, whatever it forgets: options, the engine, and the memory it takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from semibandit.arms import IntArray
from semibandit.checks import as_number, one_of
from semibandit.compiled.handle import by_handle
from semibandit.compiled.jit import Kernel
from semibandit.engines import choose_clock, make_engine
from semibandit.engines.base import bytes_of
from semibandit.matroids import Matroid
from semibandit.policies.decisions import room_for
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
        ties: str,
        outside: str,
        seed: int | None,
    ) -> None:
        super().__init__(matroid, reward_range=reward_range, outside=outside, seed=seed)
        self._break_ties(ties)
        self.exploration = as_number(exploration, "exploration", 0.0)
        self.step = as_number(step, "step", 0.0, 1.0, closed=False)
        self._asked = (one_of(clock, "clock", CLOCKS), engine)
        self.clock = choose_clock(matroid, engine) if clock == "auto" else clock
        self._engine, self._why = make_engine(matroid, self.records, engine, self.clock)

        self._waiting: IntArray = np.zeros(0, dtype=np.int64)

    def _wait(self, arms: IntArray, change: int) -> None:
        """In the width of the index: N counts plays that wait."""
        self._make_room_to_wait()
        rounds = self._aside if self._whole is None else self._whole
        enter = by_handle(self._wait_kernel(), *rounds.kinds).entry
        enter(rounds.own_handle, rounds.engine_handle, arms, change)
        if self._whole is None:
            self._hand_on()

    def _make_room_to_wait(self) -> None:
        if len(self._waiting) < self.n_arms:
            self._waiting = room_for(self._waiting, self.n_arms)
            self._open()

    def _wait_kernel(self) -> Kernel:
        """``(own, engine, arms, change)``: count plays that wait in ``own.waiting``, write the weights, touch."""
        raise NotImplementedError(f"{type(self).__name__} gives no _wait_kernel")

    def _reset(self, ids: IntArray) -> None:
        super()._reset(ids)
        if self._waiting.size:
            self._wait(ids, 0)

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
        if self._waiting.size:
            self._waiting = room_for(self._waiting, matroid.n_arms)
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
            "ties": self.ties,
        }

    def describe(self) -> dict[str, Any]:
        total = self._engine.memory() + bytes_of(self._own)
        return {
            **super().describe(),
            "clock": self.clock,
            "bytes": total,
            "bytes_per_arm": total / self.n_arms,
        }
