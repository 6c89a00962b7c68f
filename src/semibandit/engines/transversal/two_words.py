"""Searches of `greedy` where there are at most 128 right nodes: every set is two words, which stay in registers.

The same as the searches for any number of right nodes next door, three times as fast: no loops over words, and the
edges of an arm are two words as well (`near`), so that most outsiders are passed over after one look.
"""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import inline_kernel
from semibandit.compiled.lanes import lowest_bit

# So many places are passed over at a time.
_PLACES = 8


@inline_kernel
def next_alive_of_two(tag, dead, weight, i, end, least):
    """The first place from i on with a right node in its tags that is not dead, or that is not heavier than `least`;
    `end` if there is none. O(places passed)."""
    alive0, alive1 = ~dead[0], ~dead[1]
    if i < end and (tag[i, 0] & alive0) | (tag[i, 1] & alive1) != 0:
        return i
    while i + _PLACES <= end and weight[i + _PLACES - 1] > least:
        near0, near1 = np.int64(0), np.int64(0)
        for j in range(i, i + _PLACES):
            near0 |= tag[j, 0]
            near1 |= tag[j, 1]
        if (near0 & alive0) | (near1 & alive1) != 0:
            break
        i += _PLACES
    while i < end and weight[i] > least and (tag[i, 0] & alive0) | (tag[i, 1] & alive1) == 0:
        i += 1
    return i


@inline_kernel
def lowest_of_two(word0, word1):
    """The smallest number in a set that is not empty."""
    return lowest_bit(word0) if word0 != 0 else 64 + lowest_bit(word1)


@inline_kernel
def note_near_free(ahead, free, hint):
    """Make `hint` the right nodes next to whose arm one is free. O(n_right)."""
    free0, free1 = free[0], free[1]
    for word in range(2):
        bits = np.int64(0)
        for r in range(word << 6, min((word + 1) << 6, ahead.shape[0])):
            bits |= np.int64((ahead[r, 0] & free0) | (ahead[r, 1] & free1) != 0) << (r & 63)
        hint[word] = bits


@inline_kernel
def search_two(ahead, free, dead, steps, seed0, seed1):
    """Walk from right nodes that are not dead until a free one is next: (it, the number of the step that found it). If
    there is none, (-1, -1), and what was reached is dead. Changes `dead` and `steps`. O(right nodes reached).

    Right nodes in the `hint` come first. It holds all next to whose arm one is free, and some that were so.
    """
    free0, free1 = free[0], free[1]
    hint0, hint1 = steps.hint[0], steps.hint[1]
    reached0, reached1 = dead[0] | seed0, dead[1] | seed1
    n = 0
    while seed0 | seed1 != 0:
        # Without branches: which word it is can hardly be foreseen.
        pick0, pick1 = seed0 & hint0, seed1 & hint1
        none = pick0 | pick1 == 0
        pick0, pick1 = (seed0 if none else pick0), (seed1 if none else pick1)
        second = pick0 == 0
        pick = pick1 if second else pick0
        r = lowest_bit(pick) + (64 if second else 0)
        bit = pick & -pick
        bit0, bit1 = (0 if second else bit), (bit if second else 0)
        new0, new1 = ahead[r, 0] & ~reached0, ahead[r, 1] & ~reached1
        steps.node[n], steps.new[n, 0], steps.new[n, 1] = r, new0, new1
        hit0, hit1 = new0 & free0, new1 & free1
        if hit0 | hit1 != 0:
            steps.hint[0], steps.hint[1] = hint0, hint1
            return lowest_of_two(hit0, hit1), n
        hint0 &= ~bit0
        hint1 &= ~bit1
        reached0 |= new0
        reached1 |= new1
        seed0 = (seed0 ^ bit0) | new0
        seed1 = (seed1 ^ bit1) | new1
        n += 1
    dead[0], dead[1] = reached0, reached1
    steps.hint[0], steps.hint[1] = hint0, hint1
    return np.int64(-1), -1
