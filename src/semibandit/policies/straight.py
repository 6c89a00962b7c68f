"""Rounds with little of Python: lock, arrays and kernel of `select` or `update` in one call of the extension module.

A settled round of a small policy is half a microsecond of kernels and ten times that of Python around them. Where a
policy's `select` is one kernel and so is its `update`, the extension module does all of it (`compiled/native.c`):
takes the policy's lock, makes the array of the answer, runs the kernel, counts the round. Whatever is not as usual
(arms are excluded, feedback is refused, the policy must be asked, kernels come from the compiler) is answered with
None or False, nothing was changed then, and the methods in Python do it.

The calls hold on to the arrays they were made of. `Straight` makes them, and ends them when arrays are replaced: under
the policy's lock, so that a thread which is about to use old ones finds out once it has the lock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from semibandit.arms import INT64, IntArray
from semibandit.compiled import native

Turn = Callable[[Any], IntArray | None]
#: An array, and a position in it.
Place = tuple[npt.NDArray[Any], int]
Feedback = Callable[[Any, Any], bool]


def no_turn(policy: Any) -> IntArray | None:
    """Nothing is played straight here."""
    return None


def no_feedback(arms: Any, rewards: Any) -> bool:
    """Nothing is counted straight here."""
    return False


class Straight:
    """The straight calls of one policy for the arrays it has now."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock
        self._current = np.ones(1, dtype=np.int64)

    def end(self) -> None:
        """The arrays are not those of the policy any more. Whoever calls this holds the lock."""
        self._current[0] = 0

    def turn(self, whole: Any, rank: int, engine: Any, query: Any, where: int) -> Turn:
        """``turn(policy)``: the next round by the kernels of `whole`, asking `engine` at ``query[where]``."""
        make = getattr(native.module(), "turn", None)
        if make is None:
            return no_turn
        args = (whole.own_handle, whole.engine_handle, 0, np.empty(rank, INT64))
        made = make(
            whole._enter_select,
            args,
            2,
            self._lock,
            self._current,
            np.empty,
            (rank, INT64),
            rank,
            engine,
            query,
            where,
        )
        return no_turn if made is None else made  # type: ignore[no-any-return]

    def feedback(self, enter: Any, before: tuple[Any, ...], after: tuple[Any, ...]) -> Feedback:
        """``feedback(arms, rewards)``: ``enter(*before, arms, rewards, *after)``, which answers 0 if all is well."""
        make = getattr(native.module(), "feedback", None)
        if make is None:
            return no_feedback
        args = (*before, np.empty(0, INT64), np.empty(0), *after)
        made = make(enter, args, len(before), self._lock, self._current)
        return no_feedback if made is None else made  # type: ignore[no-any-return]
