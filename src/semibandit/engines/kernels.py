"""The kernels of an engine: what every compiled loop calls, whatever the engine is.

The state of an engine is a NamedTuple of arrays (`compiled.handle`) with the arm records in `recs`. Its kernels are
told to `implement_engine`; loops call the generic functions below, which are resolved by the class of the state when a
loop is compiled. So one loop serves every engine, and an engine that has a state and two kernels runs from Python and
in compiled simulations.
"""

from __future__ import annotations

import functools
import inspect
import math
from typing import Any, NamedTuple, cast

from semibandit.arms import ALPHA, BETA, COUNT, TOTAL
from semibandit.compiled.generic import generic, has_implementation, implement
from semibandit.compiled.handle import Floats2, Ints1, by_handle
from semibandit.compiled.jit import Kernel, inline_function, inline_kernel, kernel

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


# -- engines by their handle ---------------------------------------------------------------------------------------


_memo: Any = functools.cache


@_memo
def closed(state_class: type) -> Any:
    """The class of states that hold an engine of `state_class` by its handle.

    A loop over such a state calls the engine's kernels, a loop over the state itself contains them. The first is a few
    nanoseconds slower a call; the second is compiled, whole engine and all, once for every policy.
    """
    made: Any = NamedTuple(f"Closed_{state_class.__name__}", [("recs", Floats2), ("handle", Ints1)])  # type: ignore[misc]
    made.__module__ = state_class.__module__
    for function, entry in _ENTRIES.items():
        if has_implementation(function, state_class):
            names = list(inspect.signature(cast(Any, function)).parameters)
            inner = by_handle(entry, state_class)
            code = (
                f"def run({', '.join(names)}):\n    return inner({', '.join(['state.handle', *names[1:]])})"
            )
            implement(function, made, inline_function(code, {"inner": inner}, f"{inner.name} by handle"))
    return made


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


_ENTRIES = {
    engine_select: select_entry,
    engine_touch: touch_one_entry,
    engine_touch_many: touch_entry,
    engine_touch_answer: touch_answer_entry,
    engine_touch_all: touch_all_entry,
    engine_remove: remove_entry,
    engine_restore: restore_entry,
}
