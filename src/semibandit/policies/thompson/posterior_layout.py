"""The arrays that hold groups of arms with the same posterior, the hash table that finds a group, and the blocks of
places for members. What they are for: `semibandit.policies.thompson.posterior_groups`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semibandit.compiled.handle import Floats1, Floats2, Ints1, Ints2, Whole
from semibandit.compiled.jit import inline_kernel, kernel

# Columns of an arm, of a group, of a group's constants, and of `meta`. GROUP is -1 for an absent arm.
GROUP, PLACE, WINS, LOSSES = 0, 1, 2, 3
# BLOCK is twice the logarithm of the length of its block, and one more in a cold group: eight columns are a cache line.
SIZE, START, BLOCK, NEXT, PREV, CLASS, G_WINS, G_LOSSES = 0, 1, 2, 3, 4, 5, 6, 7
N_COLUMNS = 8
# SIGMA: -log(1 - bound), the exponent at which a sample of an arm stands that just reaches the level; 0 if hot.
# BEND: log((1 - e^-SIGMA) / SIGMA). STRIDE and SURE: the strides that `stride` has, and the successes, once more.
LOG_BETA, TOUCH, AHEAD, SIGMA, BEND, STRIDE, SURE = 0, 1, 2, 3, 4, 5, 6
N_CONST = 8
# Of `level`, a row for each class: x0 and its logarithms; samples needed in late rounds, a factor on them that grows
# when they were too few, groups of the class at the last setting, work wasted since, and the level of a second stage.
X0, LOG_X0, LOG_Y0, NEED, BOOST, GROUPS, WASTE, SECOND = 0, 1, 2, 3, 4, 5, 6, 7
N_LEVEL = 8
TOP, LIVE, USED = 0, 1, 2
# Of `ids`, a row for each class: its first and its last chunk of ids (-1 for none), how many ids of the last one were
# given out, and the first one that was given back (-1 for none; others follow by NEXT).
FIRST_CHUNK, LAST_CHUNK, GIVEN, SPARE = 0, 1, 2, 3

# Rates are summed over blocks of 2^3, of 2^6 and of 2^12.
EIGHT, SHORT, LONG = 3, 6, 12

N_LOGS = 48
_A = np.uint64(0x9E3779B97F4A7C15)
_B = np.uint64(0xD1342543DE82EF95)
_C = np.uint64(0xF1357AEA2E62A9C5)
_29 = np.uint64(29)
_32 = np.uint64(32)
_33 = np.uint64(33)


class Groups(NamedTuple):
    """State for kernels. `population` counts the present arms of each class.

    head[c] is the first hot group of class c. By group, side by side, as they are read in passing: `rate`, `stride`:
    how far apart draws beyond the level lie in a cold group with failures; -1 in one without, and 0 in a hot one. By
    eight groups: `eight`, the sum of their rates, and `widest`, the largest size of their strides. The numbers of
    groups are given out in chunks of 2^`chunk`, so that those of a class stand beside each other: `owner` is the class
    of each chunk, `after` the first number of its next one, or -1. A free one has no members.
    """

    arm: Ints2
    classes: Ints1
    info: Ints2
    const: Floats2
    table: Ints1
    members: Ints1
    blocks: Ints1
    head: Ints1
    population: Ints1
    meta: Ints1
    level: Floats2
    rate: Floats1
    eight: Floats1
    short: Floats1
    long: Floats1
    stride: Floats1
    widest: Floats1
    ids: Ints2
    chunk: Whole
    after: Ints1
    owner: Ints1


# An entry of the table: the group in its low bits, above them those bits of its hash that say where it belongs.
TAG_BITS, ID_BITS = 32, (1 << 32) - 1


@inline_kernel
def tag_of(c, wins, losses):
    """31 bits of a hash of what a group is found by. O(1)."""
    h = (np.uint64(c) + _C) * _A
    h = ((h ^ (h >> _32)) + np.uint64(wins)) * _B
    h = ((h ^ (h >> _29)) + np.uint64(losses)) * _C
    return np.int64(h >> _33)


@inline_kernel
def home(g, tag):
    """Where the search for a group begins in the table. O(1)."""
    return tag & (g.table.shape[0] - 1)


@inline_kernel
def group_at(g, slot):
    """The group in a slot of the table, or -1. O(1)."""
    entry = g.table[slot]
    return -1 if entry < 0 else entry & ID_BITS


@inline_kernel
def enter(g, slot, k, tag):
    """Put group k into a slot of the table. O(1)."""
    g.table[slot] = tag << TAG_BITS | k


@inline_kernel
def seek(g, tag, c, wins, losses):
    """The table's slot of the group, or the free slot where it belongs. Expected O(1), without a look at others."""
    slot = home(g, tag)
    while True:
        entry = g.table[slot]
        if entry < 0:
            return slot
        if entry >> TAG_BITS == tag:
            k = entry & ID_BITS
            if g.info[k, G_WINS] == wins and g.info[k, G_LOSSES] == losses and g.info[k, CLASS] == c:
                return slot
        slot = (slot + 1) & (g.table.shape[0] - 1)


@inline_kernel
def find(g, c, wins, losses):
    """`seek` without a tag. Expected O(1)."""
    return seek(g, tag_of(c, wins, losses), c, wins, losses)


@inline_kernel
def forget(g, k):
    """Take group k out of the table; later ones of its run move up. Expected O(1)."""
    mask = g.table.shape[0] - 1
    tag = tag_of(g.info[k, CLASS], g.info[k, G_WINS], g.info[k, G_LOSSES])
    own = tag << TAG_BITS | k
    hole = home(g, tag)
    while g.table[hole] != own:
        hole = (hole + 1) & mask
    slot = hole
    while True:
        slot = (slot + 1) & mask
        entry = g.table[slot]
        if entry < 0:
            break
        if ((slot - home(g, entry >> TAG_BITS)) & mask) >= ((slot - hole) & mask):
            g.table[hole] = entry
            hole = slot
    g.table[hole] = -1


@kernel
def rebuild_table(g):
    """Fill the (empty) table with all live groups. O(groups)."""
    for k in range(g.meta[USED]):
        if g.info[k, SIZE] > 0:
            c, wins, losses = g.info[k, CLASS], g.info[k, G_WINS], g.info[k, G_LOSSES]
            tag = tag_of(c, wins, losses)
            enter(g, seek(g, tag, c, wins, losses), k, tag)


@inline_kernel
def release(g, start, log):
    """Give a block back. O(1)."""
    g.members[start] = g.blocks[log]
    g.blocks[log] = start


@inline_kernel
def claim(g, log):
    """A block of 2^log places, or -1 if the member array must grow first. O(log K)."""
    for have in range(log, N_LOGS):
        start = g.blocks[have]
        if start >= 0:
            g.blocks[have] = g.members[start]
            while have > log:
                have -= 1
                release(g, start + (1 << have), have)
            return start
    start = g.meta[TOP]
    if start + (1 << log) > g.members.shape[0]:
        return -1
    g.meta[TOP] = start + (1 << log)
    return start


@inline_kernel
def new_id(g, c):
    """A number for a group of class c, or -1 if the arrays of groups must grow first. O(1)."""
    k = g.ids[c, SPARE]
    if k >= 0:
        g.ids[c, SPARE] = g.info[k, NEXT]
        return k
    if g.ids[c, GIVEN] == 1 << g.chunk:
        k = g.meta[USED]
        if k + (1 << g.chunk) > g.info.shape[0]:
            return -1
        g.meta[USED] = k + (1 << g.chunk)
        own_chunk(g, c, k)
        g.ids[c, GIVEN] = 0
    g.ids[c, GIVEN] += 1
    return g.ids[c, LAST_CHUNK] + g.ids[c, GIVEN] - 1


@inline_kernel
def own_chunk(g, c, k):
    """Let the chunk from k on be the last of class c. O(1)."""
    g.owner[k >> g.chunk] = c
    g.after[k >> g.chunk] = -1
    if g.ids[c, FIRST_CHUNK] < 0:
        g.ids[c, FIRST_CHUNK] = k
    else:
        g.after[g.ids[c, LAST_CHUNK] >> g.chunk] = k
    g.ids[c, LAST_CHUNK] = k


@inline_kernel
def end_of_chunk(g, c, k):
    """The end of those numbers of the chunk from k on of class c that were given out, or are free. O(1)."""
    return k + (g.ids[c, GIVEN] if k == g.ids[c, LAST_CHUNK] else 1 << g.chunk)


@inline_kernel
def give_back(g, c, k):
    """Take the number k back, which was that of a group of class c. O(1)."""
    g.info[k, NEXT] = g.ids[c, SPARE]
    g.ids[c, SPARE] = k
