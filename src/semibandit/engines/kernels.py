"""Kernel-level contract of an engine, shared by every compiled loop.

An engine with a compiled state gives two functions for its state's type (a NamedTuple of arrays):

- ``engine_select(state, lam, out) -> n``: brings the maximum-weight base at query (1, lam) up to date, writes
  its arms ascending into ``out`` and returns how many there are;
- ``engine_touch(state, arm)``: the record of `arm` was changed by its owner;

and may give a third, for what happens in nearly every round:

- ``engine_touch_answer(state, arms, n)``: the records of all of ``arms[:n]``, the last answer, were changed.

They are generic functions resolved by the type of the state when a loop is compiled, so that one loop
(`observe`, `run_rounds`) serves every engine and is cached on disk once per engine.
"""

from __future__ import annotations

import math
from typing import Any

from numba.core import types
from numba.extending import overload

from semibandit.arms import ALPHA, BETA, COUNT, TOTAL
from semibandit.compiled.jit import inline_kernel, kernel

BAD_ARM, BAD_REWARD = 1, 2

# As `_jit.inline_kernel`: the wrapper around an engine's kernel must not cost a call.
_OPTIONS = {"_nrt": False, "forceinline": True}


def engine_select(state: Any, lam: float, out: Any) -> int:
    raise NotImplementedError("only called from compiled code")


def engine_touch(state: Any, arm: int) -> None:
    raise NotImplementedError("only called from compiled code")


def engine_touch_answer(state: Any, arms: Any, n: int) -> None:
    raise NotImplementedError("only called from compiled code")


def register_state(state_class: type, select: Any, touch: Any, touch_answer: Any = None) -> None:
    """Make `select(state, lam, out)` and `touch(state, arm)` the kernels of states of `state_class`.

    Without ``touch_answer(state, arms, n)`` the arms of an answer are touched one by one.
    """

    def is_mine(state: Any) -> bool:
        named: Any = types.BaseNamedTuple  # type: ignore[attr-defined]
        return isinstance(state, named) and state.instance_class is state_class

    # numba wants the same, unannotated signature here and in the implementation.
    @overload(engine_select, jit_options=_OPTIONS)
    def _select(state, lam, out):  # type: ignore[no-untyped-def]
        if not is_mine(state):
            return None
        return lambda state, lam, out: select(state, lam, out)

    @overload(engine_touch, jit_options=_OPTIONS)
    def _touch(state, arm):  # type: ignore[no-untyped-def]
        if not is_mine(state):
            return None
        return lambda state, arm: touch(state, arm)

    def one_by_one(state, arms, n):  # type: ignore[no-untyped-def]
        for i in range(n):
            touch(state, arms[i])

    def all_at_once(state, arms, n):  # type: ignore[no-untyped-def]
        touch_answer(state, arms, n)

    @overload(engine_touch_answer, jit_options=_OPTIONS)
    def _touch_answer(state, arms, n):  # type: ignore[no-untyped-def]
        if not is_mine(state):
            return None
        return one_by_one if touch_answer is None else all_at_once


@kernel
def select_kernel(state, lam, out):  # type: ignore[no-untyped-def]
    """`engine_select` as an entry point for Python."""
    return engine_select(state, lam, out)


@kernel
def touch_kernel(state, arms):  # type: ignore[no-untyped-def]
    """`engine_touch` of each of `arms`, as an entry point for Python."""
    for i in range(arms.shape[0]):
        engine_touch(state, arms[i])


@kernel
def check_feedback(n_arms, arms, rewards, low, high):  # type: ignore[no-untyped-def]
    """0 if every arm and reward is acceptable, else ``kind + 4 * position`` of the first that is not."""
    bad = False
    for i in range(arms.shape[0]):  # without a way out, so that it runs in vector registers
        bad |= (arms[i] < 0) | (arms[i] >= n_arms) | (not (low <= rewards[i] <= high))
    if not bad:
        return 0
    for i in range(arms.shape[0]):
        if arms[i] < 0 or arms[i] >= n_arms:
            return BAD_ARM + 4 * i
        if not (low <= rewards[i] <= high):
            return BAD_REWARD + 4 * i
    return 0


@inline_kernel
def add_reward(recs, arm, reward):  # type: ignore[no-untyped-def]
    """Count one reward of `arm` in its record: sums, not running means, so that order does not matter."""
    n = recs[arm, COUNT] + 1.0
    total = recs[arm, TOTAL] + reward
    recs[arm, COUNT] = n
    recs[arm, TOTAL] = total
    recs[arm, ALPHA] = total / n
    recs[arm, BETA] = 1.0 / math.sqrt(n)


@kernel
def add_rewards(recs, arms, rewards):  # type: ignore[no-untyped-def]
    """`add_reward` for a whole, already validated batch."""
    for i in range(arms.shape[0]):
        add_reward(recs, arms[i], rewards[i])


@kernel
def observe_kernel(state, arms, rewards, low, high):  # type: ignore[no-untyped-def]
    """Validate a whole batch of feedback, then apply it. Changes records and engine; nothing on error."""
    recs = state.recs
    code = check_feedback(recs.shape[0], arms, rewards, low, high)
    if code != 0:
        return code
    for i in range(arms.shape[0]):
        add_reward(recs, arms[i], rewards[i])
        engine_touch(state, arms[i])
    return 0
