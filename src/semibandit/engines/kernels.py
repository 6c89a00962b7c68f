"""The kernels of an engine: what every compiled loop calls, whatever the engine is.

The state of an engine is a NamedTuple of arrays (`compiled.handle`) with the arm records in `recs`. Its kernels are
told to `implement_engine`; loops call the generic functions below, which are resolved by the class of the state when a
loop is compiled. Loops over `AnyEngine` serve every engine, and an engine that has a state and two kernels runs from
Python and in compiled simulations.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from semibandit.arms import ALPHA, BETA, COUNT, TOTAL
from semibandit.compiled.generic import generic, implement
from semibandit.compiled.handle import Floats2, Ints1, by_handle, make_handle
from semibandit.compiled.jit import Kernel, inline_kernel, kernel
from semibandit.compiled.slots import caller

BAD_ARM, BAD_REWARD = 1, 2


@generic
def engine_select(state: Any, lam: float, out: Any) -> int:
    """Bring the maximum-weight base at query (1, lam) up to date, write its arms ascending into `out`; how many."""
    raise NotImplementedError("called by kernels only")


@generic
def engine_touch(state: Any, arm: int) -> None:
    """The record of `arm` was changed by its owner."""


@generic
def engine_touch_many(state: Any, arms: Any) -> None:
    """The records of `arms`, in any order and perhaps repeated, were changed."""


@generic
def engine_touch_answer(state: Any, arms: Any, n: int) -> None:
    """The records of all of ``arms[:n]``, the last answer, were changed: what happens in nearly every round."""


@generic
def engine_touch_all(state: Any) -> None:
    """All records were changed."""


@generic
def engine_remove(state: Any, arms: Any) -> None:
    """Take these present, distinct arms out."""


@generic
def engine_restore(state: Any, arms: Any) -> None:
    """Put these absent, distinct arms back with the weights in their records."""


@kernel
def _touch_many(state, arms):
    for i in range(arms.shape[0]):
        engine_touch(state, arms[i])


@inline_kernel
def _touch_answer(state, arms, n):
    for i in range(n):
        engine_touch(state, arms[i])


@kernel
def _touch_all(state):
    for arm in range(state.recs.shape[0]):
        engine_touch(state, arm)


def implement_engine(
    state_class: type,
    select: Kernel,
    touch: Kernel,
    *,
    touch_many: Kernel = _touch_many,
    touch_answer: Kernel = _touch_answer,
    touch_all: Kernel = _touch_all,
    remove: Kernel | None = None,
    restore: Kernel | None = None,
) -> None:
    """Tell which kernels serve states of `state_class`; those with a default are for what can be done faster.

    Without `remove` and `restore` the engine takes arms out and puts them back in Python.
    """
    kernels = {
        engine_select: select,
        engine_touch: touch,
        engine_touch_many: touch_many,
        engine_touch_answer: touch_answer,
        engine_touch_all: touch_all,
        engine_remove: remove,
        engine_restore: restore,
    }
    for function, own in kernels.items():
        if own is not None:
            implement(function, state_class, own)


# -- feedback ----------------------------------------------------------------------------------------------------


@kernel
def check_feedback(n_arms, arms, rewards, low, high):
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
def add_reward(recs, arm, reward):
    """Count one reward of `arm` in its record: sums, not running means, so that order does not matter."""
    n = recs[arm, COUNT] + 1.0
    total = recs[arm, TOTAL] + reward
    recs[arm, COUNT] = n
    recs[arm, TOTAL] = total
    recs[arm, ALPHA] = total / n
    recs[arm, BETA] = 1.0 / math.sqrt(n)


@kernel
def add_rewards(recs, arms, rewards):
    """`add_reward` for a whole, already validated batch."""
    for i in range(arms.shape[0]):
        add_reward(recs, arms[i], rewards[i])


# -- entry points for Python, by the handle of a state (`compiled.handle.by_handle`) ------------------------------


@inline_kernel
def select_entry(state, lam, out):
    """`engine_select`."""
    return engine_select(state, lam, out)


@inline_kernel
def touch_entry(state, arms):
    """`engine_touch_many`."""
    engine_touch_many(state, arms)


@inline_kernel
def touch_all_entry(state):
    """`engine_touch_all`."""
    engine_touch_all(state)


@inline_kernel
def touch_one_entry(state, arm):
    """`engine_touch`."""
    engine_touch(state, arm)


@inline_kernel
def touch_answer_entry(state, arms, n):
    """`engine_touch_answer`."""
    engine_touch_answer(state, arms, n)


@inline_kernel
def remove_entry(state, arms):
    """`engine_remove`."""
    engine_remove(state, arms)


@inline_kernel
def restore_entry(state, arms):
    """`engine_restore`."""
    engine_restore(state, arms)


@inline_kernel
def observe_entry(state, arms, rewards, low, high):
    """Validate a whole batch of feedback, then apply it. Changes records and engine; nothing on error."""
    code = check_feedback(state.recs.shape[0], arms, rewards, low, high)
    if code != 0:
        return code
    add_rewards(state.recs, arms, rewards)
    engine_touch_many(state, arms)
    return 0


# -- any engine ----------------------------------------------------------------------------------------------------

SELECT, TOUCH, TOUCH_MANY, TOUCH_ANSWER, TOUCH_ALL = range(5)

# What is called, with the signature of its arguments and answer (`compiled.slots`), in the order of the names above.
_CALLS = (
    (select_entry, "aq1sdaq1:sq"),
    (touch_one_entry, "aq1sq:n"),
    (touch_entry, "aq1aq1:n"),
    (touch_answer_entry, "aq1aq1sq:n"),
    (touch_all_entry, "aq1:n"),
)
_select_at, _touch_at, _touch_many_at, _touch_answer_at, _touch_all_at = (caller(spec) for _, spec in _CALLS)


class AnyEngine(NamedTuple):
    """An engine of whatever class: the records, the handle of its state, and where its kernels are.

    A loop over this calls the engine's kernels by their addresses and is compiled once for all engines; an engine's
    kernels are compiled once for all loops. That costs a few nanoseconds a call.
    """

    recs: Floats2
    handle: Ints1
    calls: Ints1


_memo: Any = functools.cache


@_memo
def _addresses(state_class: type) -> Any:
    return np.array([by_handle(entry, state_class).address(spec) for entry, spec in _CALLS], dtype=np.int64)


def any_engine(state: Any) -> AnyEngine:
    """An engine's state for loops that serve all engines. Whoever holds it must hold `state` too."""
    return AnyEngine(state.recs, make_handle(state), _addresses(type(state)))


@inline_kernel
def _any_select(state, lam, out):
    return _select_at(state.calls[SELECT], state.handle, lam, out)


@inline_kernel
def _any_touch(state, arm):
    _touch_at(state.calls[TOUCH], state.handle, arm)


@inline_kernel
def _any_touch_many(state, arms):
    _touch_many_at(state.calls[TOUCH_MANY], state.handle, arms)


@inline_kernel
def _any_touch_answer(state, arms, n):
    _touch_answer_at(state.calls[TOUCH_ANSWER], state.handle, arms, n)


@inline_kernel
def _any_touch_all(state):
    _touch_all_at(state.calls[TOUCH_ALL], state.handle)


implement_engine(
    AnyEngine,
    _any_select,
    _any_touch,
    touch_many=_any_touch_many,
    touch_answer=_any_touch_answer,
    touch_all=_any_touch_all,
)
