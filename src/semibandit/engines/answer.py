"""The answer of the last round, ascending, and what came and went since: a round writes D ids and sorts only the new.

An engine says which arms come (`answer_came`) and which go (`answer_went`) as it changes its base, in any order; at the
end of the round `write_answer` brings the list up to date and copies it out. Between two calls of `write_answer` an arm
goes at most once, and only if it was in the answer then; it may come after it went, but does not go again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semibandit.arms import IntArray
from semibandit.compiled.handle import Ints1
from semibandit.compiled.jit import inline_kernel
from semibandit.compiled.sorting import sort_ids

# More than one in so many came: then where they belong can hardly be foreseen.
_MANY = 8

# Entries of `size`: arms listed (those that went included), how many came, how many went.
N_LISTED, N_CAME, N_WENT = range(3)


class Answer(NamedTuple):
    """``listed[: size[N_LISTED]]`` is the last answer, ascending; ``came[: size[N_CAME]]`` what came since.

    An arm that went is still listed, as its complement ``~arm`` (negative), so that the order stays known. `spare` and
    `bins` are scratch of the sort.
    """

    listed: Ints1
    came: Ints1
    size: Ints1
    spare: Ints1
    bins: Ints1


def new_answer(rank: int) -> Answer:
    """An empty answer of at most `rank` arms. O(rank)."""
    listed, came, spare = (np.zeros(rank, dtype=np.int64) for _ in range(3))
    return Answer(listed, came, np.zeros(3, dtype=np.int64), spare, np.zeros(257, dtype=np.int64))


@inline_kernel
def answer_came(answer, arm):
    """Note an arm that comes into the base; its place in `came` until the round ends. O(1)."""
    n = answer.size[N_CAME]
    answer.came[n] = arm
    answer.size[N_CAME] = n + 1
    return n


@inline_kernel
def answer_went(answer, arm):
    """Note that an arm of the last answer goes. O(log D)."""
    listed = answer.listed
    lo, size = 0, answer.size[N_LISTED]
    while size > 1:
        half = size >> 1
        middle = listed[lo + half]
        lo += half if (middle if middle >= 0 else ~middle) <= arm else 0
        size -= half
    went_at(answer, lo)


@inline_kernel
def went_at(answer, i):
    """`answer_went` for the arm at place i of `listed`. O(1)."""
    answer.listed[i] = ~answer.listed[i]
    answer.size[N_WENT] += 1


@inline_kernel
def outside_went(answer, node):
    """Note that those arms of the last answer go for which `node` is negative, whether they went before or not. O(D),
    without branches: they would be wrong for many that go."""
    listed, size = answer.listed, answer.size
    n_went = size[N_WENT]
    for i in range(size[N_LISTED]):
        arm = listed[i]
        goes = np.int64((arm >= 0) & (node[max(arm, 0)] < 0))
        listed[i] = arm ^ -goes  # its complement if it goes
        n_went += goes
    size[N_WENT] = n_went


@inline_kernel
def all_went(answer):
    """Note that every arm of the last answer goes. O(1)."""
    answer.size[N_LISTED] = 0
    answer.size[N_WENT] = 0


@inline_kernel
def is_answer(answer, arms):
    """Whether `arms` is the very answer of the last round, in order, with nothing changed since. O(D)."""
    if arms.shape[0] != answer.size[N_LISTED]:
        return False
    other = False
    for i in range(arms.shape[0]):  # without a way out, so that it runs in vector registers
        other |= arms[i] != answer.listed[i]
    return not other


@inline_kernel
def write_answer(answer, out):
    """Bring the list up to date and copy it to `out`; how many arms there are. O(D + s log K) for s that came."""
    listed, came, size = answer.listed, answer.came, answer.size
    n_listed, n_came = size[N_LISTED], size[N_CAME]
    if n_came == 0 and size[N_WENT] == 0:
        for i in range(n_listed):
            out[i] = listed[i]
        return n_listed
    sort_ids(came, n_came, answer.spare, answer.bins)
    n = _merge_many(answer, out) if _MANY * n_came > n_listed else _merge(answer, out)
    for i in range(n):
        listed[i] = out[i]
    size[N_LISTED] = n
    size[N_CAME] = 0
    size[N_WENT] = 0
    return n


@inline_kernel
def _merge(answer, out):
    """Merge what came, sorted, with what did not go. How many there are. O(D), fast if few came and went."""
    listed, came, n_came = answer.listed, answer.came, answer.size[N_CAME]
    a, n = 0, 0
    for i in range(answer.size[N_LISTED]):
        arm = listed[i]
        if arm < 0:
            continue
        while a < n_came and came[a] < arm:
            out[n] = came[a]
            a += 1
            n += 1
        out[n] = arm
        n += 1
    while a < n_came:
        out[n] = came[a]
        a += 1
        n += 1
    return n


@inline_kernel
def _merge_many(answer, out):
    """`_merge` without branches, which would be wrong where many came and went; and from both ends, as each step waits
    for the one before."""
    listed, came, stayed, n_came = answer.listed, answer.came, answer.spare, answer.size[N_CAME]
    n_stayed = 0
    for i in range(answer.size[N_LISTED]):
        arm = listed[i]
        stayed[n_stayed] = arm
        n_stayed += np.int64(arm >= 0)
    n = n_stayed + n_came
    if n_stayed == 0 or n_came == 0:
        for i in range(n):
            out[i] = came[i] if n_stayed == 0 else stayed[i]
        return n
    i, a, last_i, last_a = 0, 0, n_stayed - 1, n_came - 1
    for k in range(n >> 1):
        # A list that is used up: the other one's next is taken.
        x, y = stayed[min(i, n_stayed - 1)], came[min(a, n_came - 1)]
        first = np.int64((a == n_came) | ((i < n_stayed) & (x < y)))
        out[k] = x if first else y
        i += first
        a += 1 - first
        x, y = stayed[max(last_i, 0)], came[max(last_a, 0)]
        last = np.int64((last_a < 0) | ((last_i >= 0) & (x > y)))
        out[n - 1 - k] = x if last else y
        last_i -= last
        last_a -= 1 - last
    if n & 1:
        out[n >> 1] = stayed[i] if i <= last_i else came[a]
    return n


def arms_in(answer: Answer) -> IntArray:
    """The arms of the answer with what came and went, ascending. O(D). For tests."""
    n_listed, n_came, n_went = (int(n) for n in answer.size)
    listed = answer.listed[:n_listed]
    names = np.where(listed >= 0, listed, ~listed)
    assert (np.diff(names) > 0).all() and (listed < 0).sum() == n_went
    arms = np.sort(np.concatenate([listed[listed >= 0], answer.came[:n_came]]))
    assert (np.diff(arms) > 0).all()
    return arms
