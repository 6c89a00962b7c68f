"""One engine in the compiled loop, under CUCB's clock and without a policy around it."""

from __future__ import annotations

from typing import Any

import numpy as np

from semibandit.compiled.handle import by_handle, make_handle
from semibandit.engines.clock import new_clock
from semibandit.engines.kernels import AnyEngine
from semibandit.environments.base import EnvironmentState
from semibandit.policies.rounds import ClockRounds, address_of_select, address_of_update
from semibandit.simulation.loop import run_rounds


class EngineLoop:
    """Plays `engine` in `env` with a staircase of 1 %; goes on where the last call ended."""

    def __init__(self, engine: Any, env: Any, exploration: float = 1.5) -> None:
        self.engine, self.env, self.t = engine, env, 0
        self._states = env.kernel_state(), ClockRounds(new_clock(exploration, 0.01)), engine.any
        self._handles = [make_handle(state) for state in self._states]
        kinds = ClockRounds, AnyEngine
        self._calls = address_of_select(*kinds), address_of_update(*kinds)
        self._run = by_handle(run_rounds, EnvironmentState)

    def rounds(self, n: int) -> Any:
        """The arms of the next `n` rounds, one row each, -1 where a base is smaller."""
        rank = self.engine.matroid.rank
        log = np.full((n, rank), -1, dtype=np.int64)
        scratch = np.zeros(rank, dtype=np.int64), np.zeros(rank), np.zeros(2), np.zeros(3, dtype=np.int64)
        world = self.env.means, self.env.optimal_value, np.zeros(0), np.zeros(0), np.zeros(2, dtype=np.int64)
        env, *player = self._handles
        self.t = int(self._run(env, self._calls, *player, *world, self.t, n, *scratch, log))
        return log
