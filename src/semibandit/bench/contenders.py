"""Who takes part in a measurement, and the two ways to play rounds: from Python, and in the compiled loop."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.bench.numpy_rivals import numpy_rival
from semibandit.bench.start import Start
from semibandit.engines import ENGINES
from semibandit.environments import Environment
from semibandit.errors import ParameterError
from semibandit.policies import CUCB
from semibandit.simulation.loop import SELECT, UPDATE
from semibandit.simulation.run import CompiledRun, compiled_run
from semibandit.text import unknown

WAYS = ("python", "compiled")

#: The engine that looks at every weight once per round: what our others are measured against.
SCAN = "resolve"


@dataclass
class Contender:
    """One player in its own copy of the world. `ours` marks the engine that the ratios are about."""

    name: str
    kind: str
    player: Any
    env: Environment
    auto: bool = False
    ours: bool = False
    exact_ties: bool = True
    _scratch: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def ways(self) -> tuple[str, ...]:
        """The ways this contender can play."""
        return WAYS if self._run() is not None else WAYS[:1]

    def play(self, n: int) -> tuple[IntArray, list[IntArray]]:
        """`n` rounds through `select` and `update`: nanoseconds of each (drawing excluded) and the arms played."""
        took = np.zeros(n, dtype=np.int64)
        arms_of = []
        player, draw, clock = self.player, self.env.draw, time.perf_counter_ns
        for i in range(n):
            a = clock()
            arms = player.select()
            b = clock()
            rewards = draw(arms, player.t)
            c = clock()
            player.update(arms, rewards)
            took[i] = clock() - c + b - a
            arms_of.append(arms)
        return took, arms_of

    def play_compiled(self, n: int, log: IntArray | None = None) -> float:
        """`n` rounds in one kernel, drawing included: seconds of them all. Fills `log` with the arms played."""
        run = self._run()
        assert run is not None
        begin = time.perf_counter_ns()
        run.play(n, log)
        return (time.perf_counter_ns() - begin) * 1e-9

    def _run(self) -> CompiledRun | None:
        if "run" not in self._scratch:
            policy = hasattr(self.player, "compiled_rounds")
            self._scratch["run"] = compiled_run(self.player, self.env) if policy else None
        run: CompiledRun | None = self._scratch["run"]
        return run

    def latencies(self, n: int) -> FloatArray:
        """Nanoseconds that select and update took in each of `n` compiled rounds, by the cycle counter.

        Rounds are run one by one, but what happens between two calls is not counted.
        """
        self.play_compiled(1)
        run = self._run()
        assert run is not None
        ticks = run.ticks
        before = ticks.sum()
        seconds = self.play_compiled(n)
        rate = 1e9 * seconds / max(int(ticks.sum() - before), 1)
        took = np.zeros(n)
        for i in range(n):
            ticks[:] = 0
            self.play_compiled(1)
            took[i] = ticks[SELECT] + ticks[UPDATE]
        return took * rate

    @property
    def memory(self) -> float:
        """Bytes an arm that the player holds between rounds."""
        if isinstance(self.player, CUCB):
            return float(self.player.describe()["bytes_per_arm"])
        return float(self.player.memory()) / self.env.n_arms


def check_engines(engines: tuple[str, ...]) -> None:
    """Raise for a name that is no engine, before anything long begins."""
    for name in engines:
        if name != "auto" and name not in ENGINES:
            raise ParameterError(unknown(f"engine = {name!r} is not known", name, ("auto", *ENGINES)))


def our_engines(start: Start, engines: tuple[str, ...]) -> list[Contender]:
    """CUCB with each of these engines, or with all that fit; the one the ratios are about first. O(K) each."""
    matroid = start.env.matroid
    chosen = start.engine_name
    wanted = [chosen if name == "auto" else name for name in engines]
    if not wanted:
        fitting = [name for name, spec in ENGINES.items() if spec.fits(matroid, start.clock_name)]
        wanted = [chosen, *(name for name in fitting if name != chosen)]
    contenders: list[Contender] = []
    for name in dict.fromkeys(wanted):
        arrived = start.policy is not None and start.policy.engine == name
        player = start.policy if arrived else start.cucb(name)
        contenders.append(
            Contender(name, "engine", player, start.world(), auto=name == chosen, ours=not contenders)
        )
    return contenders


def numpy_contender(start: Start) -> Contender:
    """What one writes with numpy. O(K)."""
    name, make = numpy_rival(start.env.matroid)
    return Contender(name, "rival", make(start), start.world())


def gather(start: Start, engines: tuple[str, ...] = ()) -> list[Contender]:
    """The engines asked for (by default what ``"auto"`` takes), a scan of all weights, and numpy."""
    asked = engines or ("auto",)
    return [*our_engines(start, (*asked, SCAN)), numpy_contender(start)]
