"""Many rounds in one go: several decisions of one request, or a log of decisions and feedback that is played again.

One kernel plays the rounds of every policy whose own rounds are kernels: it is handed the addresses of those that
select, learn and let plays wait, so it is compiled once. It does what `select`, `update` and `_wait` do in turns, in
the same order; whatever only Python can do ends its run, is done there, and the kernel goes on.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.compiled.handle import by_handle
from semibandit.compiled.jit import kernel
from semibandit.compiled.slots import caller
from semibandit.policies.decisions import wait_in_records
from semibandit.policies.rounds import CompiledRounds, _learn_entry, address_of_select, select_at

# The signatures of the kernels that are called by their addresses (`compiled.slots`).
_LEARN, _WAIT = "aq1aq1aq1ad1sdsd:sq", "aq1aq1aq1sqsd:n"
_learn_at, _wait_at = caller(_LEARN), caller(_WAIT)

#: For policies that take no notice of plays that wait.
HEEDLESS: IntArray = np.zeros(0, dtype=np.int64)
#: For policies whose kernels always find a place for feedback.
ALL_PLACED: IntArray = np.zeros(2, dtype=np.int64)


@kernel
def _play_rounds(select, own, engine, t, rank, out, sizes, wait, waiting, high):
    """Rounds t, t + 1, ...: their arms one after the other into `out`, how many each into `sizes`; how many rounds.

    `select`, `wait`: addresses; a `wait` of 0 is none. Fewer rounds than `sizes` has where the policy must be asked.
    """
    end = 0
    for i in range(sizes.shape[0]):
        n = select_at(select, own, engine, t + i, out[end : end + rank])
        if n < 0:
            return i
        sizes[i] = n
        if wait != 0:
            _wait_at(wait, engine, waiting, out[end : end + n], 1, high)
        end += n
    return sizes.shape[0]


_memo: Any = functools.cache


@_memo
def _address_of_learn(*kinds: type) -> int:
    return by_handle(_learn_entry, *kinds).address(_LEARN)


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
        address_of_select(*whole.kinds),
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
    if done < n:
        sizes = sizes[:done]
    end = int(np.add.reduce(sizes))
    return (out if end == len(out) else out[:end]), sizes


# -- with feedback between them --------------------------------------------------------------------------------------


class Kept(NamedTuple):
    """Arms of decisions ``first - 1`` and older: those of number n stand at ``start[n & mask]`` of `arms`."""

    first: int
    mask: int
    arms: IntArray
    start: IntArray
    size: IntArray


@kernel
def _play_course(
    calls, own, engine, t, rank, asked, counts, rewards, ends, kept, out, sizes, begins, waiting, open_
):
    """Rounds and feedback in the order of `asked`: -1 is a round, anything else the number of a decision.

    `calls`: the addresses of select, learn and wait; `counts` and `rewards`: how many belong to each, one after the
    other. `open_`: feedback that Python must put in its place first lies between these two. Returns how many of `asked`
    were done, and how many rounds.
    """
    first, mask, arms_kept, start_kept, size_kept = kept
    low, high = ends
    made = end = place = 0
    for i in range(asked.shape[0]):
        number, n = asked[i], counts[i]
        if open_[0] < open_[1]:
            return i, made
        if number < 0:
            n = select_at(calls[0], own, engine, t + made, out[end : end + rank])
            if n < 0:
                return i, made
            sizes[made], begins[made] = n, end
            if calls[2] != 0:
                _wait_at(calls[2], engine, waiting, out[end : end + n], 1, high)
            end += n
            made += 1
            continue
        if number >= first + made:
            return i, made
        if number >= first:
            begin, size = begins[number - first], sizes[number - first]
            arms = out[begin : begin + size]
        else:
            begin, size = start_kept[number & mask], size_kept[number & mask]
            arms = arms_kept[begin : begin + size]
        if size != n or _learn_at(calls[1], own, engine, arms, rewards[place : place + n], low, high) != 0:
            return i, made
        place += n
        if calls[2] != 0:
            _wait_at(calls[2], engine, waiting, arms, -1, high)
    return asked.shape[0], made


def play_course(
    whole: CompiledRounds,
    t: int,
    rank: int,
    asked: IntArray,
    counts: IntArray,
    rewards: FloatArray,
    ends: tuple[float, float],
    kept: Kept,
    waiting: IntArray,
    unplaced: IntArray,
) -> tuple[int, IntArray, IntArray]:
    """Rounds and feedback in turns by the kernels of `whole`, as far as they can go alone.

    `asked`: -1 for a round, else the number of the decision whose rewards come next, `counts` of them; decisions of
    these rounds are numbered from ``kept.first`` on. Returns how many of `asked` were done, the arms of all rounds, and
    how many are of each. O(n) besides what is played and learnt.
    """
    n = int(np.count_nonzero(asked < 0))
    out, sizes, begins = (np.empty(size, dtype=np.int64) for size in (n * rank + rank, n, n))
    calls = np.zeros(3, dtype=np.int64)
    calls[0] = address_of_select(*whole.kinds)
    calls[1] = _address_of_learn(*whole.kinds)
    calls[2] = _address_of_wait() if waiting.size else 0
    own, engine = whole.own_handle, whole.engine_handle
    done, made = _play_course.entry(
        calls, own, engine, t, rank, asked, counts, rewards, ends, kept, out, sizes, begins, waiting, unplaced
    )
    sizes = sizes[:made]
    return done, out[: sizes.sum()], sizes


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

    def _learns_at_once(self) -> IntArray | None:
        """None if feedback must be learnt one by one, else where kernels note what they could not put in its place.

        That is BEGIN and END of it; `_ask` then does so. A subclass that overrides `update` or `_update` must override
        this too.
        """
        return None

    def _replay_many(
        self, asked: IntArray, counts: IntArray, rewards: FloatArray, kept: Kept
    ) -> tuple[int, IntArray, IntArray]:
        """`play_course` of this policy, if `_can_replay`."""
        raise NotImplementedError(f"{type(self).__name__} plays one by one")

    def _can_replay(self) -> bool:
        """Whether its kernels can play and learn without Python, but for what they ask for. O(1)."""
        return False


@_memo
def keeps_at_once(cls: type) -> bool:
    """Whether no subclass of the one that says how rounds are played at once has changed what a round does."""
    return keeps(cls, "_at_once", ("select", "_wait"))


@_memo
def keeps_learning(cls: type) -> bool:
    """Whether no subclass of the one that says how feedback is learnt at once has changed what learning does."""
    return keeps_at_once(cls) and keeps(cls, "_learns_at_once", ("update", "_update"))


def keeps(cls: type, told: str, methods: tuple[str, ...]) -> bool:
    """Whether no subclass of the one that gives `told` has changed one of these methods."""
    mro = cls.__mro__
    mine = next(one for one in mro if told in vars(one))
    return all(issubclass(mine, next(one for one in mro if name in vars(one))) for name in methods)
