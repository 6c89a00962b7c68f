"""The kernels of a policy: what its rounds do, from Python and in compiled simulations alike.

A policy that offers this keeps what a round changes in a state of its own (a NamedTuple of arrays, `compiled.handle`)
and in that of its engine, and tells `implement_rounds` two kernels for the class of its state:

- ``prepare(own, engine, t) -> lam`` makes the weights of round t in ``engine.recs``, touches the engine where it
  changed them, and says at which query to ask it; or ``select(own, engine, t, out) -> n`` writes the arms itself.
- ``learn(own, engine, arms, rewards, n)`` counts valid feedback.

`select` and `update` in Python call the same kernels, so both ways make the same decisions. Where an engine runs in
Python (or arms are excluded) `Touches` stands for its state, and what the kernels touched is handed on.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.compiled.generic import generic, implement
from semibandit.compiled.handle import Flags1, Floats1, Floats2, Ints1, by_handle, make_handle
from semibandit.compiled.jit import Kernel, inline_kernel
from semibandit.compiled.slots import caller
from semibandit.engines.clock import tick
from semibandit.engines.kernels import (
    add_reward,
    check_feedback,
    engine_select,
    engine_touch_answer,
    engine_touch_many,
    implement_engine,
)

# What `policy_select` returns, and `policy_prepare` as a query, when the policy must be asked in Python before it can
# go on. Nothing was changed then.
ASK = -1


@generic
def policy_prepare(own: Any, engine: Any, t: int) -> float:
    """Make the weights of round t; the query lam >= 0 to ask the engine at, or ASK."""
    raise NotImplementedError("called by kernels only")


@generic
def policy_select(own: Any, engine: Any, t: int, out: Any) -> int:
    """Write the arms to play in round t, ascending, into `out`; how many, or ASK."""
    raise NotImplementedError("called by kernels only")


@generic
def policy_learn(own: Any, engine: Any, arms: Any, rewards: Any, n: int) -> None:
    """Count the rewards of ``arms[:n]``: any arms in any order, perhaps repeated; all are valid."""


@generic
def policy_update(own: Any, engine: Any, arms: Any, rewards: Any, n: int) -> None:
    """Learn the rewards of ``arms[:n]``, the arms just played, and tell the engine."""


@inline_kernel
def _prepared_select(own, engine, t, out):
    lam = policy_prepare(own, engine, t)
    if lam < 0.0:
        return ASK
    return engine_select(engine, lam, out)


@inline_kernel
def _learn_and_touch_answer(own, engine, arms, rewards, n):
    policy_learn(own, engine, arms, rewards, n)
    engine_touch_answer(engine, arms, n)


@inline_kernel
def _learn_and_touch(own, engine, arms, rewards, n):
    policy_learn(own, engine, arms, rewards, n)
    engine_touch_many(engine, arms[:n])


def implement_rounds(
    state_class: type,
    *,
    learn: Kernel,
    prepare: Kernel | None = None,
    select: Kernel | None = None,
    touches: str = "answer",
) -> None:
    """Tell which kernels play the rounds of policies whose own state is a `state_class`.

    `prepare` or `select` or both, see above. `touches`: what `learn` changes in the engine's records, ``"answer"`` if
    arms that are played are always the engine's last answer, ``"any"`` if they need not be, or ``"nothing"``.
    """
    updates = {"answer": _learn_and_touch_answer, "any": _learn_and_touch, "nothing": learn}
    if prepare is not None:
        implement(policy_prepare, state_class, prepare)
    implement(policy_select, state_class, _prepared_select if select is None else select)
    implement(policy_learn, state_class, learn)
    implement(policy_update, state_class, updates[touches])


class CompiledRounds:
    """The two states that a policy plays rounds with. Both are changed in place.

    `touches`: what `engine` stands for where it is not the engine.
    """

    def __init__(self, own: Any, engine: Any, touches: Any = None) -> None:
        self.own, self.engine, self.touches = own, engine, touches
        self.own_handle, self.engine_handle = make_handle(own), make_handle(engine)

    @property
    def kinds(self) -> tuple[type, type]:
        """The classes of the two states."""
        return type(self.own), type(self.engine)

    @cached_property
    def _enter_select(self) -> Any:
        return by_handle(_select_entry, *self.kinds).entry

    @cached_property
    def _enter_prepare(self) -> Any:
        return by_handle(_prepare_entry, *self.kinds).entry

    @cached_property
    def _enter_learn(self) -> Any:
        return by_handle(_learn_entry, *self.kinds).entry

    def select(self, t: int, out: IntArray) -> int:
        """`policy_select`."""
        return int(self._enter_select(self.own_handle, self.engine_handle, t, out))

    def prepare(self, t: int) -> float:
        """`policy_prepare`."""
        return float(self._enter_prepare(self.own_handle, self.engine_handle, t))

    def learn(self, arms: IntArray, rewards: FloatArray, low: float, high: float) -> int:
        """Validate a batch of feedback, then `policy_learn` it. Returns as `engines.kernels.check_feedback`."""
        return int(self._enter_learn(self.own_handle, self.engine_handle, arms, rewards, low, high))


@inline_kernel
def _select_entry(own, engine, t, out):
    return policy_select(own, engine, t, out)


@inline_kernel
def _prepare_entry(own, engine, t):
    return float(policy_prepare(own, engine, t))


@inline_kernel
def _learn_entry(own, engine, arms, rewards, low, high):
    code = check_feedback(engine.recs.shape[0], arms, rewards, low, high)
    if code == 0:
        policy_learn(own, engine, arms, rewards, arms.shape[0])
    return code


@inline_kernel
def _update_entry(own, engine, arms, rewards, n):
    policy_update(own, engine, arms, rewards, n)


# -- by address, for loops that are compiled once for all policies ---------------------------------------------------

# The signatures of the kernels that are called by their addresses (`compiled.slots`).
_SELECT, _UPDATE = "aq1aq1sqaq1:sq", "aq1aq1aq1ad1sq:n"
#: For kernels: ``select_at(address, own, engine, t, out)`` and ``update_at(address, own, engine, arms, rewards, n)``.
select_at, update_at = caller(_SELECT), caller(_UPDATE)

_memo: Any = cache


@_memo
def address_of_select(*kinds: type) -> int:
    """Where `policy_select` of these classes of states is."""
    return by_handle(_select_entry, *kinds).address(_SELECT)


@_memo
def address_of_update(*kinds: type) -> int:
    """Where `policy_update` of these classes of states is."""
    return by_handle(_update_entry, *kinds).address(_UPDATE)


# -- in place of an engine's state -----------------------------------------------------------------------------------

N_TOUCHED, ALL_TOUCHED = 0, 1


class Touches(NamedTuple):
    """The records of an engine, and a note of the arms that kernels touched: ``arms[:meta[N_TOUCHED]]``, or all."""

    recs: Floats2
    arms: Ints1
    noted: Flags1
    meta: Ints1


def new_touches(recs: FloatArray) -> Touches:
    """No arm touched yet. O(K)."""
    n = len(recs)
    return Touches(
        recs, np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.bool_), np.zeros(2, dtype=np.int64)
    )


@inline_kernel
def _note(state, arm):
    if not state.noted[arm]:
        state.noted[arm] = True
        state.arms[state.meta[N_TOUCHED]] = arm
        state.meta[N_TOUCHED] += 1


@inline_kernel
def _note_all(state):
    state.meta[ALL_TOUCHED] = 1


@inline_kernel
def _no_select(state, lam, out):
    return 0


implement_engine(Touches, _no_select, _note, touch_all=_note_all)


def hand_on(touches: Touches, engine: Any) -> None:
    """Tell an engine what was touched, and forget it. O(arms touched) besides the engine."""
    meta = touches.meta
    if meta[ALL_TOUCHED]:
        engine.touch_all()
        touches.noted[touches.arms[: meta[N_TOUCHED]]] = False
        meta[:] = 0
    elif meta[N_TOUCHED]:
        arms = touches.arms[: meta[N_TOUCHED]].copy()
        touches.noted[arms] = False
        meta[:] = 0
        engine.touch(arms)


class NoEngine(NamedTuple):
    """For policies that ask no engine: the arm records alone."""

    recs: Floats2


# -- policies that ask an engine at the width of a clock -----------------------------------------------------------


class ClockRounds(NamedTuple):
    """`clock`: see `engines.clock`."""

    clock: Floats1


@inline_kernel
def _clock_prepare(own, engine, t):
    return tick(own.clock, t)


@inline_kernel
def count_rewards(own, engine, arms, rewards, n):
    """Count the rewards in the engine's records: what most policies learn."""
    for j in range(n):
        add_reward(engine.recs, arms[j], rewards[j])


implement_rounds(ClockRounds, prepare=_clock_prepare, learn=count_rewards)
