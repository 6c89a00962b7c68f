"""Arms grouped by posterior: those with the same successes and failures (and class) stand in one member array.

Arms of one group are exchangeable, so that a sampler may draw for the group and then name members at random. All is
kept in flat arrays: a group's members in a block whose length is a power of two (blocks are split and reused), groups
found by an open hash table, and the hot groups of a class linked in a list.
Cold groups hardly ever reach the level x0 and have a rate of doing so; sums of rates let a round skip over them.
"""

from __future__ import annotations

import math

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.logarithm import log_of
from semibandit.compiled.memory import prefetch
from semibandit.policies.thompson.beta import log_beta_of_counts
from semibandit.policies.thompson.posterior_layout import (
    AHEAD,
    BEND,
    BLOCK,
    CLASS,
    EIGHT,
    FIRST_CHUNK,
    G_LOSSES,
    G_WINS,
    GROUP,
    LIVE,
    LOG_BETA,
    LOG_X0,
    LOG_Y0,
    LONG,
    LOSSES,
    NEXT,
    PLACE,
    PREV,
    SHORT,
    SIGMA,
    SIZE,
    SPARE,
    START,
    STRIDE,
    SURE,
    TOUCH,
    USED,
    WINS,
    X0,
    claim,
    end_of_chunk,
    enter,
    find,
    forget,
    give_back,
    group_at,
    new_id,
    own_chunk,
    release,
    seek,
    tag_of,
)
from semibandit.policies.thompson.posterior_tail import exponent_of, tail_bound, tail_slope, touching

# A group is cold when one of its arms reaches x0 with a probability below this, by the bound.
COLD_BELOW = 0.8


@inline_kernel
def is_cold(g, k):
    """1 for a cold group, 0 for a hot one. O(1)."""
    return g.info[k, BLOCK] & 1


@inline_kernel
def unlink(g, k):
    """Take group k out of its list, if it is hot. O(1)."""
    if is_cold(g, k):
        return
    before = g.info[k, PREV]
    after = g.info[k, NEXT]
    if before >= 0:
        g.info[before, NEXT] = after
    else:
        g.head[g.info[k, CLASS]] = after
    if after >= 0:
        g.info[after, PREV] = before


@inline_kernel
def link_first(g, k):
    """Put group k at the front of its list, if it is hot. O(1)."""
    if is_cold(g, k):
        return
    c = g.info[k, CLASS]
    first = g.head[c]
    g.info[k, PREV] = -1
    g.info[k, NEXT] = first
    if first >= 0:
        g.info[first, PREV] = k
    g.head[c] = k


@inline_kernel
def ask_for(g, k):
    """Ask for what is known of group k. It may be none. O(1)."""
    prefetch(g.info, k)
    prefetch(g.const, k)


@inline_kernel
def soil(g, k):
    """Note that the sums over the blocks of group k must be made anew. O(1)."""
    g.short[k >> SHORT] = -1.0
    g.long[k >> LONG] = -1.0


@inline_kernel
def sum_of_eight(array, at):
    """array[at] + .. + array[at + 7], by additions that hardly wait for each other. O(1)."""
    low = (array[at] + array[at + 1]) + (array[at + 2] + array[at + 3])
    return low + ((array[at + 4] + array[at + 5]) + (array[at + 6] + array[at + 7]))


@inline_kernel
def _rate_changed(g, k):
    """Sum the rates of the eight groups about k anew: no rounding errors pile up. O(1)."""
    g.eight[k >> EIGHT] = sum_of_eight(g.rate, k >> EIGHT << EIGHT)
    soil(g, k)


@inline_kernel
def stride_changed(g, k):
    """Find the widest stride of the eight groups about k anew. O(1)."""
    first = k >> EIGHT << EIGHT
    widest = 0.0
    for i in range(first, first + (1 << EIGHT)):
        widest = max(widest, abs(g.stride[i]))
    g.widest[k >> EIGHT] = widest


@inline_kernel
def change_rate(g, k, rate):
    """Let group k have this rate. O(1)."""
    g.rate[k] = rate
    _rate_changed(g, k)


@kernel
def sum_rates(g):
    """Sum the blocks anew whose rates changed. O(2^3) each, one look for 2^12 groups."""
    for block in range(g.long.shape[0]):
        if g.long[block] >= 0.0:
            continue
        total = 0.0
        first = block << (LONG - SHORT)
        for i in range(first, min(first + (1 << (LONG - SHORT)), g.short.shape[0])):
            if g.short[i] < 0.0:
                g.short[i] = sum_of_eight(g.eight, i << (SHORT - EIGHT))
            total += g.short[i]
        g.long[block] = total


@inline_kernel
def _set_rate(g, k):
    """Note that the size of group k changed. O(1)."""
    if is_cold(g, k):
        change_rate(g, k, g.info[k, SIZE] * g.const[k, SIGMA])


@inline_kernel
def bound_at(g, k, x, log_x, log_y):
    """`tail_bound` of an arm of group k, and `touching`. O(1)."""
    wins, losses = float(g.info[k, G_WINS]), float(g.info[k, G_LOSSES])
    touch, ahead = touching(wins, losses, x, log_y)
    return tail_bound(wins, losses, g.const[k, LOG_BETA], log_x, log_y, touch, ahead), touch, ahead


@inline_kernel
def classify(g, k):
    """Whether group k is cold, by a bound on the probability that one of its arms reaches x0, and what follows from
    that but for the rate. O(1)."""
    c = g.info[k, CLASS]
    g.info[k, BLOCK] &= ~1
    g.const[k, SIGMA] = 0.0
    g.stride[k] = 0.0
    if g.level[c, X0] > 0.0:
        bound, touch, ahead = bound_at(g, k, g.level[c, X0], g.level[c, LOG_X0], g.level[c, LOG_Y0])
        if bound < COLD_BELOW:
            g.info[k, BLOCK] |= 1
            sigma = exponent_of(bound)
            g.const[k, SIGMA] = sigma
            g.const[k, TOUCH] = touch
            g.const[k, AHEAD] = ahead
            wins, losses = float(g.info[k, G_WINS]), float(g.info[k, G_LOSSES])
            stride = 1.0 / tail_slope(wins, losses, touch) if losses > 0.0 else -1.0
            g.stride[k] = stride
            g.const[k, STRIDE] = stride
            g.const[k, SURE] = wins
            # As `bend` of sigma: bound is 1 - e^-sigma.
            g.const[k, BEND] = log_of(bound / sigma) if sigma > 0.0 else 0.0


@kernel
def set_level(g, c, x0):
    """Sort the groups of class c into hot and cold at a new level. O(groups of the class)."""
    g.level[c, X0] = x0
    if x0 > 0.0:
        g.level[c, LOG_X0] = math.log(x0)
        g.level[c, LOG_Y0] = math.log1p(-x0)
    g.head[c] = -1
    first = g.ids[c, FIRST_CHUNK]
    while first >= 0:
        for k in range(first, end_of_chunk(g, c, first)):
            if g.info[k, SIZE] > 0:
                classify(g, k)
                link_first(g, k)
                g.rate[k] = g.info[k, SIZE] * g.const[k, SIGMA]
        for k in range(first, end_of_chunk(g, c, first), 1 << EIGHT):
            _rate_changed(g, k)
            stride_changed(g, k)
        first = g.after[first >> g.chunk]


@inline_kernel
def _open_group(g, slot, tag, c, wins, losses, log):
    """A new, empty group with room for 2^log members, or -1 if there is no room. A free slot must exist. O(1)."""
    start = claim(g, log)
    if start < 0:
        return -1
    k = new_id(g, c)
    if k < 0:
        release(g, start, log)
        return -1
    enter(g, slot, k, tag)
    _set_group(g, k, c, wins, losses, start, log)
    return k


@inline_kernel
def _set_group(g, k, c, wins, losses, start, log):
    """Write down the new, empty group k. O(1)."""
    g.meta[LIVE] += 1
    g.info[k, SIZE] = 0
    g.info[k, START] = start
    g.info[k, BLOCK] = 2 * log
    g.info[k, CLASS] = c
    g.info[k, G_WINS] = wins
    g.info[k, G_LOSSES] = losses
    g.const[k, LOG_BETA] = log_beta_of_counts(wins, losses)
    classify(g, k)
    stride_changed(g, k)
    link_first(g, k)


@inline_kernel
def leave(g, arm):
    """Take a present arm out of its group; the last member takes its place. O(1)."""
    k = g.arm[arm, GROUP]
    start = g.info[k, START]
    last = g.info[k, SIZE] - 1
    other = g.members[start + last]
    at = g.arm[arm, PLACE]
    g.members[start + at] = other
    g.arm[other, PLACE] = at
    g.arm[arm, GROUP] = -1
    g.info[k, SIZE] = last
    g.population[g.info[k, CLASS]] -= 1
    _set_rate(g, k)
    log = g.info[k, BLOCK] >> 1
    if last == 0:
        forget(g, k)
        unlink(g, k)
        g.stride[k] = 0.0
        stride_changed(g, k)
        release(g, start, log)
        give_back(g, g.info[k, CLASS], k)
        g.meta[LIVE] -= 1
    elif log > 2 and last <= (1 << (log - 2)):
        g.info[k, BLOCK] -= 2
        release(g, start + (1 << (log - 1)), log - 1)


@inline_kernel
def join_at(g, arm, k, slot, tag, c, wins, losses):
    """Put an absent arm into group k, or, if that is -1, into a new one of these counts, for which the table has this
    slot. False, with nothing changed, if there is no room.

    Amortised O(1): a full group moves to a block twice as long.
    """
    if k < 0:
        k = _open_group(g, slot, tag, c, wins, losses, 0)
        if k < 0:
            return False
    size = g.info[k, SIZE]
    log = g.info[k, BLOCK] >> 1
    if size == 1 << log:
        new = claim(g, log + 1)
        if new < 0:
            return False
        old = g.info[k, START]
        for i in range(size):
            g.members[new + i] = g.members[old + i]
        release(g, old, log)
        g.info[k, START] = new
        g.info[k, BLOCK] += 2
    g.members[g.info[k, START] + size] = arm
    g.arm[arm, GROUP] = k
    g.arm[arm, PLACE] = size
    g.info[k, SIZE] = size + 1
    g.population[c] += 1
    _set_rate(g, k)
    return True


@inline_kernel
def join(g, arm):
    """Put an absent arm into the group of its counts. As `join_at`."""
    c, wins, losses = g.classes[arm], g.arm[arm, WINS], g.arm[arm, LOSSES]
    tag = tag_of(c, wins, losses)
    slot = seek(g, tag, c, wins, losses)
    return join_at(g, arm, group_at(g, slot), slot, tag, c, wins, losses)


@kernel
def join_all(g, arms, begin):
    """`join` of arms[begin:]; the index of the first for which there was no room, or -1. Amortised O(n)."""
    for i in range(begin, arms.shape[0]):
        if not join(g, arms[i]):
            return i
    return -1


@kernel
def leave_all(g, arms):
    """`leave` of each of `arms`. O(n)."""
    for i in range(arms.shape[0]):
        leave(g, arms[i])


@kernel
def list_groups(g, listed, free):
    """The live groups, first the hot ones of each class in their order, and the numbers that were given back, class by
    class in theirs, into arrays of these lengths. O(groups)."""
    n = 0
    for c in range(g.head.shape[0]):
        k = g.head[c]
        while k >= 0:
            listed[n] = k
            n += 1
            k = g.info[k, NEXT]
    for k in range(g.meta[USED]):
        if g.info[k, SIZE] > 0 and is_cold(g, k):
            listed[n] = k
            n += 1
    n = 0
    for c in range(g.ids.shape[0]):
        k = g.ids[c, SPARE]
        while k >= 0:
            free[n] = k
            n += 1
            k = g.info[k, NEXT]


@kernel
def reopen(g, owners, listed, free, arms, first, size):
    """Fill `g`, which is empty but for the ids given out, as `list_groups` told, with chunks of these classes; group
    listed[j] has size[j] members, arms[first[j]] and so on. O(K)."""
    for i in range(owners.shape[0]):
        own_chunk(g, owners[i], i << g.chunk)
    g.meta[USED] = owners.shape[0] << g.chunk
    for j in range(listed.shape[0] - 1, -1, -1):
        k = listed[j]
        arm = arms[first[j]]
        c = g.classes[arm]
        log = 0
        while (1 << log) < size[j]:
            log += 1
        start = claim(g, log)
        wins, losses = g.arm[arm, WINS], g.arm[arm, LOSSES]
        tag = tag_of(c, wins, losses)
        enter(g, seek(g, tag, c, wins, losses), k, tag)
        _set_group(g, k, c, wins, losses, start, log)
        for i in range(size[j]):
            g.members[start + i] = arms[first[j] + i]
        g.info[k, SIZE] = size[j]
        g.population[c] += size[j]
        _set_rate(g, k)
    for j in range(free.shape[0] - 1, -1, -1):
        give_back(g, g.owner[free[j] >> g.chunk], free[j])


@kernel
def fill(g, order, count):
    """Open the groups of arms never pulled; `order` lists the arms class by class. O(K)."""
    at = 0
    for c in range(count.shape[0]):
        n = count[c]
        if n == 0:
            continue
        log = 0
        while (1 << log) < n:
            log += 1
        k = _open_group(g, find(g, c, 0, 0), tag_of(c, 0, 0), c, 0, 0, log)
        for i in range(n):
            arm = order[at + i]
            g.members[g.info[k, START] + i] = arm
            g.arm[arm, GROUP] = k
            g.arm[arm, PLACE] = i
        g.info[k, SIZE] = n
        g.population[c] = n
        at += n
