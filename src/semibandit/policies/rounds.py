"""The kernels of a policy: how its rounds run in a compiled simulation, without Python.

A policy that offers this keeps what a round changes in a state of its own (a NamedTuple of arrays, `compiled.handle`)
and in that of its engine, gives two kernels for the class of its state with `implement_rounds`, and returns both states
from `Policy.compiled_rounds`. `simulation.loop` does the rest: one loop serves all policies, engines and environments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from semibandit.compiled.generic import generic, implement
from semibandit.compiled.handle import Floats1, Floats2
from semibandit.compiled.jit import Kernel, inline_kernel
from semibandit.engines.clock import tick
from semibandit.engines.kernels import add_reward, engine_select, engine_touch_answer

# What `policy_select` returns when the policy must be asked in Python before it can go on.
ASK = -1


@generic
def policy_select(own: Any, engine: Any, t: int, out: Any) -> int:
    """Write the arms to play in round t, ascending, into `out`; how many, or ASK with nothing changed."""
    raise NotImplementedError("called by kernels only")


@generic
def policy_update(own: Any, engine: Any, arms: Any, rewards: Any, n: int) -> None:
    """Learn the rewards of ``arms[:n]``, the last answer; all are valid."""


class NoEngine(NamedTuple):
    """In place of an engine's state, for policies that have none: the arm records alone."""

    recs: Floats2


@dataclass(frozen=True)
class CompiledRounds:
    """What a compiled simulation plays with. Both states are changed in place."""

    own: Any
    engine: Any


def implement_rounds(state_class: type, select: Kernel, update: Kernel) -> None:
    """Tell which kernels play the rounds of policies whose own state is a `state_class`."""
    implement(policy_select, state_class, select)
    implement(policy_update, state_class, update)


# -- policies that ask an engine at the width of a clock -----------------------------------------------------------


class ClockRounds(NamedTuple):
    """`clock`: see `engines.clock`."""

    clock: Floats1


@inline_kernel
def _clock_select(own, engine, t, out):
    return engine_select(engine, tick(own.clock, t), out)


@inline_kernel
def count_rewards(own, engine, arms, rewards, n):
    """Count the rewards in the records and tell the engine: what most policies learn."""
    for j in range(n):
        add_reward(engine.recs, arms[j], rewards[j])
    engine_touch_answer(engine, arms, n)


implement_rounds(ClockRounds, _clock_select, count_rewards)
