"""Where a measurement starts: one state of the world, the records and the clock, handed to every contender."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.engines.base import Engine
from semibandit.environments import Environment
from semibandit.errors import ParameterError
from semibandit.policies import CUCB
from semibandit.simulation import simulate

PHASES = ("explore", "middle", "late")


@dataclass(frozen=True)
class Start:
    """Records, round, clock and pull counters at the start; `env` is the world they were made in."""

    env: Environment
    records: Any
    t: int
    clock: FloatArray
    lam: float
    pulls: IntArray
    clock_name: str
    #: The engine that the policy had here; with ``engine="auto"``, what that took.
    engine_name: str
    #: The policy that came here by itself; None where the state was made in one batch.
    policy: CUCB | None = None
    exploration: float = 1.5

    def world(self) -> Environment:
        """A copy of the world in its state at the start. O(K)."""
        twin = self.env.clone()
        twin._pulls[:] = self.pulls
        twin._round = self.t
        return twin

    def cucb(self, engine: str = "auto") -> CUCB:
        """CUCB with `engine` in this state. O(K)."""
        return self._load(self._new(engine))

    def cucb_around(self, make: Any) -> CUCB:
        """CUCB in this state around the engine that ``make(matroid, records)`` gives. O(K)."""
        policy = self._new("resolve")
        policy.records[:] = self.records
        engine: Engine = make(self.env.matroid, policy.records)
        policy._engine = engine
        policy._open()
        return self._set_clock(policy)

    def _new(self, engine: str) -> CUCB:
        return new_cucb(self.env, self.clock_name, self.exploration, engine)

    def _load(self, policy: CUCB) -> CUCB:
        policy.records[:] = self.records
        self._set_clock(policy)
        policy._engine.touch(np.arange(policy.n_arms, dtype=np.int64))
        return policy

    def _set_clock(self, policy: CUCB) -> CUCB:
        policy._t = self.t
        policy._clock[:] = self.clock
        policy._engine.advance(self.lam)
        return policy


def new_cucb(env: Environment, clock: str, exploration: float, engine: str = "auto") -> CUCB:
    """CUCB for this world, with nothing learnt yet. O(K)."""
    return CUCB(
        env.matroid, reward_range=env.reward_range, exploration=exploration, clock=clock, engine=engine
    )


def explore_start(env: Environment, clock: str = "auto", exploration: float = 1.5) -> Start:
    """Every arm has been tried once, after about K / D rounds. Made in one batch: O(K)."""
    policy = new_cucb(env, clock, exploration)
    t = -(-env.n_arms // env.matroid.rank)
    world = env.clone()
    everyone = np.arange(env.n_arms, dtype=np.int64)
    policy.update(everyone, world.draw(everyone, 1))
    policy._t = t - 1
    policy.select()
    return snapshot(policy, world)


def late_start(
    env: Environment,
    rounds: int,
    clock: str = "auto",
    progress: bool | None = None,
    exploration: float = 1.5,
) -> Start:
    """The state after `rounds` rounds of CUCB with its own engine, played by the compiled loop."""
    if rounds < 1:
        raise ParameterError(f"late_rounds must be a positive integer, got {rounds}")
    policy = new_cucb(env, clock, exploration)
    world = env.clone()
    simulate(policy, world, rounds, progress=progress)
    return replace(snapshot(policy, world), policy=policy)


def snapshot(policy: CUCB, world: Environment) -> Start:
    """The state that `policy` and `world` are in now, copied. O(K)."""
    return Start(
        env=world,
        records=policy.records.copy(),
        t=policy.t,
        clock=policy._clock.copy(),
        lam=policy.confidence_width,
        pulls=np.array(world.pulls),
        clock_name=policy.clock,
        engine_name=policy.engine,
        exploration=policy.exploration,
    )
