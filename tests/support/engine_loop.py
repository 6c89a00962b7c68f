"""One engine in the compiled loop, under CUCB's clock and without a policy around it."""

from __future__ import annotations

from typing import Any

import numpy as np

from semibandit.compiled.handle import by_handle, make_handle
from semibandit.engines.clock import new_clock
from semibandit.engines.kernels import AnyEngine
from semibandit.environments.base import EnvironmentState
from semibandit.policies.rounds import ClockRounds
from semibandit.simulation.loop import run_rounds


class EngineLoop:
    """Plays `engine` in `env` with a staircase of 1 %; goes on where the last call ended."""

    def __init__(self, engine: Any, env: Any, exploration: float = 1.5) -> None:
        self.engine, self.env, self.t = engine, env, 0
        self._states = ClockRounds(new_clock(exploration, 0.01)), engine.any, env.kernel_state()
        self._handles = [make_handle(state) for state in self._states]
        self._run = by_handle(run_rounds, ClockRounds, AnyEngine, EnvironmentState)

    def rounds(self, n: int) -> Any:
        """The arms of the next `n` rounds, one row each, -1 where a base is smaller."""
        rank = self.engine.matroid.rank
        log = np.full((n, rank), -1, dtype=np.int64)
        scratch = np.zeros(rank, dtype=np.int64), np.zeros(rank), np.zeros(2), np.zeros(3, dtype=np.int64)
        world = self.env.means, self.env.optimal_value, np.zeros(0), np.zeros(0), np.zeros(2, dtype=np.int64)
        self.t = int(self._run(*self._handles, *world, self.t, n, *scratch, log))
        return log
