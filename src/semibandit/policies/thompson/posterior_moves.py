"""Arms that change group because an outcome was counted, many at once."""

from __future__ import annotations

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.lanes import prefetch, prefetch_to_write
from semibandit.policies.thompson.beta import log_beta_of_counts
from semibandit.policies.thompson.posterior_groups import classify, join, leave, link_first, soil, unlink
from semibandit.policies.thompson.posterior_layout import (
    BLOCK,
    CLASS,
    G_LOSSES,
    G_WINS,
    GROUP,
    LOG_BETA,
    LOSSES,
    NEXT,
    PLACE,
    PREV,
    SIGMA,
    SIZE,
    START,
    WINS,
    find,
    forget,
    home,
)


@inline_kernel
def _rename(g, arm, wins, losses):
    """Whether `arm` is alone in its group and would be with these counts: then the group has them. O(1)."""
    k = g.arm[arm, GROUP]
    if g.info[k, SIZE] != 1 or g.table[find(g, g.info[k, CLASS], wins, losses)] >= 0:
        return False
    forget(g, k)
    g.info[k, G_WINS] = wins
    g.info[k, G_LOSSES] = losses
    g.table[find(g, g.info[k, CLASS], wins, losses)] = k
    g.const[k, LOG_BETA] = log_beta_of_counts(wins, losses)
    was = g.info[k, BLOCK]
    classify(g, k)
    now = g.info[k, BLOCK]
    if now != was:
        g.info[k, BLOCK] = was
        unlink(g, k)
        g.info[k, BLOCK] = now
        link_first(g, k)
    g.rate[k] = g.const[k, SIGMA]
    soil(g, k)
    return True


# So many outcomes are looked up in one go.
_CHUNK = 32


@inline_kernel
def _ask_for(g, arms, won, begin, end):
    """Ask for what counting these outcomes will change: it is seldom in a cache, and is waited for together. O(n).

    Guesses where an arm comes twice, or groups change in between: no more than time is lost.
    """
    for i in range(begin, end):
        k = g.arm[arms[i], GROUP]
        if k >= 0:
            prefetch_to_write(g.info, k)
            prefetch(g.const, k)
            prefetch(g.rate, k)
            wins, losses = g.arm[arms[i], WINS], g.arm[arms[i], LOSSES]
            c = g.classes[arms[i]]
            prefetch(g.table, home(g, c, wins + won[i], losses + 1 - won[i]))
            prefetch(g.table, home(g, c, wins, losses))
    for i in range(begin, end):
        arm = arms[i]
        k = g.arm[arm, GROUP]
        if k >= 0:
            start, size = g.info[k, START], g.info[k, SIZE]
            if size > 1:
                prefetch_to_write(g.members, start + g.arm[arm, PLACE])
                prefetch(g.members, start + size - 1)
            wins, losses = g.arm[arm, WINS], g.arm[arm, LOSSES]
            to = g.table[home(g, g.classes[arm], wins + won[i], losses + 1 - won[i])]
            if to >= 0:
                prefetch_to_write(g.info, to)
                prefetch(g.const, to)
                prefetch(g.rate, to)
    for i in range(begin, end):
        arm = arms[i]
        k = g.arm[arm, GROUP]
        if k >= 0:
            size = g.info[k, SIZE]
            if size > 1:
                prefetch_to_write(g.arm, g.members[g.info[k, START] + size - 1])
            else:
                prefetch_to_write(g.info, max(0, g.info[k, PREV]))
                prefetch_to_write(g.info, max(0, g.info[k, NEXT]))
            wins, losses = g.arm[arm, WINS], g.arm[arm, LOSSES]
            to = g.table[home(g, g.classes[arm], wins + won[i], losses + 1 - won[i])]
            if to >= 0:
                prefetch_to_write(g.members, g.info[to, START] + g.info[to, SIZE])


@kernel
def move_all(g, arms, won, begin):
    """Count the outcomes from `begin` on; present arms change group. Returns as `join_all`. Amortised O(n).

    The arm it stops at is counted and out of its group: it needs a `join`, and the rest another call.
    """
    n = arms.shape[0]
    for i in range(begin, n):
        prefetch_to_write(g.arm, arms[i])
        prefetch(g.classes, arms[i])
    asked = begin
    for i in range(begin, n):
        if i == asked:
            asked = min(n, i + _CHUNK)
            _ask_for(g, arms, won, i, asked)
        arm = arms[i]
        present = g.arm[arm, GROUP] >= 0
        column = LOSSES - won[i]
        if present and _rename(g, arm, g.arm[arm, WINS] + won[i], g.arm[arm, LOSSES] + 1 - won[i]):
            g.arm[arm, column] += 1
            continue
        if present:
            leave(g, arm)
        g.arm[arm, column] += 1
        if present and not join(g, arm):
            return i
    return -1
