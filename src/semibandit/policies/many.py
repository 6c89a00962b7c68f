"""Many rounds before any feedback, in one go: what several decisions of one request are made by.

One kernel plays the rounds of every policy whose own rounds are kernels: it is handed the address of the policy's
`select`, and of the kernel that lets plays wait, so it is compiled once. It does what `select` and `_wait` do in turns,
in the same order; whatever only Python can do ends its run, is done there, and the kernel goes on.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from semibandit.arms import IntArray
from semibandit.compiled.handle import by_handle
from semibandit.compiled.jit import kernel
from semibandit.compiled.slots import caller
from semibandit.policies.decisions import wait_in_records
from semibandit.policies.rounds import CompiledRounds, _select_entry

# The signatures of the two kernels that are called by their addresses (`compiled.slots`).
_SELECT, _WAIT = "aq1aq1sqaq1:sq", "aq1aq1aq1sqsd:n"
_select_at, _wait_at = caller(_SELECT), caller(_WAIT)

#: For policies that take no notice of plays that wait.
HEEDLESS: IntArray = np.zeros(0, dtype=np.int64)


@kernel
def _play_rounds(select, own, engine, t, rank, out, sizes, wait, waiting, high):
    """Rounds t, t + 1, ...: their arms one after the other into `out`, how many each into `sizes`; how many rounds.

    `select`, `wait`: addresses; a `wait` of 0 is none. Fewer rounds than `sizes` has where the policy must be asked.
    """
    end = 0
    for i in range(sizes.shape[0]):
        n = _select_at(select, own, engine, t + i, out[end : end + rank])
        if n < 0:
            return i
        sizes[i] = n
        if wait != 0:
            _wait_at(wait, engine, waiting, out[end : end + n], 1, high)
        end += n
    return sizes.shape[0]


_memo: Any = functools.cache


@_memo
def _address_of_select(*kinds: type) -> int:
    return by_handle(_select_entry, *kinds).address(_SELECT)


@_memo
def _address_of_wait() -> int:
    return wait_in_records.address(_WAIT)


def play_rounds(
    whole: CompiledRounds, t: int, rank: int, n: int, waiting: IntArray, high: float
) -> tuple[IntArray, IntArray]:
    """At most `n` rounds from t on by the kernels of `whole`: all arms, and how many of each round.

    `waiting`: how many plays of each arm wait, or `HEEDLESS`. O(n) besides the rounds.
    """
    out, sizes = np.empty(n * rank, dtype=np.int64), np.empty(n, dtype=np.int64)
    done = _play_rounds.entry(
        _address_of_select(*whole.kinds),
        whole.own_handle,
        whole.engine_handle,
        t,
        rank,
        out,
        sizes,
        _address_of_wait() if waiting.size else 0,
        waiting,
        high,
    )
    sizes = sizes[:done]
    return out[: sizes.sum()], sizes


class Many:
    """What a `Policy` has for many rounds at once."""

    select: Any
    _wait: Any

    def _select_many(self, n: int) -> tuple[IntArray, IntArray]:
        """`select` n times, each answer waiting (`_wait`) before the next: all arms in order, and how many of each."""
        made = []
        for _ in range(n):
            arms = self.select()
            self._wait(arms, 1)
            made.append(arms)
        return np.concatenate(made), np.array([len(arms) for arms in made], dtype=np.int64)

    def _at_once(self) -> IntArray | None:
        """None if rounds must be played one by one, else for `play_rounds` how many plays of each arm wait.

        A subclass that overrides `select` or `_wait` is played one by one unless it overrides this too.
        """
        return None


@_memo
def keeps_at_once(cls: type) -> bool:
    """Whether no subclass of the one that says how rounds are played at once has changed what a round does."""
    mro = cls.__mro__
    mine = next(one for one in mro if "_at_once" in vars(one))
    changed = (next(one for one in mro if name in vars(one)) for name in ("select", "_wait"))
    return all(issubclass(mine, one) for one in changed)
