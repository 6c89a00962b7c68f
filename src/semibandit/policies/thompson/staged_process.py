"""The Poisson process that tells which cold groups have candidates beyond the level: over rates laid end to end."""

from __future__ import annotations

import math

from semibandit.compiled.jit import inline_kernel
from semibandit.compiled.random import next_exponential
from semibandit.policies.thompson.posterior_layout import LONG, SHORT, USED

# So many entries of `count` and of the spare arrays serve the search for groups.
SCRATCH = 8 * (1 << SHORT)

# Groups with candidates are looked up block by block; some have so many points or more.
BLOCK, MANY = 1 << SHORT, 1.0


@inline_kernel
def sum_block(g, ends, k, width):
    """The sums of the rates of the groups k .. k + width - 1, up to each and up to every eighth one, into `ends` for
    `find_in_block`, and all of them; `width`: a multiple of 8, at most 2^6. O(width)."""
    # By additions that hardly wait for each other.
    rate = g.rate[k : k + width]
    for j in range(BLOCK, BLOCK + 8):
        ends[j] = math.inf
    total = 0.0
    for j in range(0, width, 8):
        a = rate[j]
        b = a + rate[j + 1]
        c = rate[j + 2]
        d = b + (c + rate[j + 3])
        c = b + c
        e = d + rate[j + 4]
        f = rate[j + 4] + rate[j + 5]
        h = rate[j + 6]
        i = f + (h + rate[j + 7])
        ends[j] = total + a
        ends[j + 1] = total + b
        ends[j + 2] = total + c
        ends[j + 3] = total + d
        ends[j + 4] = total + e
        ends[j + 5] = total + (d + f)
        ends[j + 6] = total + (d + (f + h))
        total += d + i
        ends[j + 7] = total
        ends[BLOCK + (j >> 3)] = total
    return total


@inline_kernel
def find_in_block(ends, left):
    """Which group of a block `left` lies in, by `sum_block`. O(1), without branches, which nobody could foresee."""
    i = 0
    for j in range(BLOCK, BLOCK + 8):
        i += 8 if ends[j] <= left else 0
    first = i
    for j in range(first, first + 8):
        i += 1 if ends[j] <= left else 0
    return i


@inline_kernel
def next_groups(g, points, rng, k, left):
    """The groups of the next block from k on that the process has a point in, into ``count[:m]``, and where it stands
    from the beginning of each, into ``spare_value[:m]``. Returns m, the group to go on from, and how far ahead the
    process is. O(2^6), and a step for each block without."""
    used = g.meta[USED]
    while k < used and g.short[k >> SHORT] <= left:
        if k & ((1 << LONG) - 1) == 0 and g.long[k >> LONG] <= left:
            left -= g.long[k >> LONG]
            k += 1 << LONG
        else:
            left -= g.short[k >> SHORT]
            k += BLOCK
    if k >= used:
        return 0, k, left
    ends = points.spare_value[BLOCK:SCRATCH]
    total = sum_block(g, ends, k, BLOCK)
    m, last = 0, -1
    while left < total:
        i = find_in_block(ends, left)
        points.count[m] = k + i
        points.spare_value[m] = left - (ends[i - 1] if i > 0 else 0.0)
        # Later points in the same group say nothing; where there may be many they are jumped over.
        m += 1 if i != last else 0
        last = i
        if g.rate[k + i] >= MANY:
            left = ends[i]
        left += next_exponential(rng)
    return m, k + BLOCK, left - total
