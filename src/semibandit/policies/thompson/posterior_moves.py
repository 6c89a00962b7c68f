"""Arms that change group because an outcome was counted, many at once."""

from __future__ import annotations

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.memory import prefetch, prefetch_to_write
from semibandit.policies.thompson.beta import log_beta_of_counts
from semibandit.policies.thompson.posterior_groups import (
    change_rate,
    classify,
    join_at,
    leave,
    link_first,
    stride_changed,
    unlink,
)
from semibandit.policies.thompson.posterior_layout import (
    BLOCK,
    CLASS,
    G_LOSSES,
    G_WINS,
    GROUP,
    LOG_BETA,
    LOSSES,
    PLACE,
    SIGMA,
    SIZE,
    SPARE,
    START,
    WINS,
    enter,
    forget,
    group_at,
    home,
    seek,
    tag_of,
)


@inline_kernel
def _rename(g, k, slot, tag, wins, losses):
    """Let group k, which has one arm, be the group of these counts, for which the table has this free slot. O(1)."""
    # First in, then out: what is taken out of a table may move the slots that were found before.
    enter(g, slot, k, tag)
    forget(g, k)
    g.info[k, G_WINS] = wins
    g.info[k, G_LOSSES] = losses
    g.const[k, LOG_BETA] = log_beta_of_counts(wins, losses)
    was = g.info[k, BLOCK]
    classify(g, k)
    now = g.info[k, BLOCK]
    if now != was:
        g.info[k, BLOCK] = was
        unlink(g, k)
        g.info[k, BLOCK] = now
        link_first(g, k)
    stride_changed(g, k)
    change_rate(g, k, g.const[k, SIGMA])


@inline_kernel
def _move(g, arm, won):
    """Count an outcome of an arm, which changes group if it is present. False if it has left its group and there is no
    room in another. Amortised O(1)."""
    k = g.arm[arm, GROUP]
    wins, losses = g.arm[arm, WINS] + won, g.arm[arm, LOSSES] + 1 - won
    if k >= 0:
        c = g.info[k, CLASS]
        tag = tag_of(c, wins, losses)
        slot = seek(g, tag, c, wins, losses)
        if g.info[k, SIZE] == 1 and g.table[slot] < 0:
            _rename(g, k, slot, tag, wins, losses)
        else:
            # Before a group goes with its last arm, which may move what is in the table: a free slot is needed only
            # where its group stays.
            to = group_at(g, slot)
            leave(g, arm)
            g.arm[arm, WINS] = wins
            g.arm[arm, LOSSES] = losses
            return join_at(g, arm, to, slot, tag, c, wins, losses)
    g.arm[arm, WINS] = wins
    g.arm[arm, LOSSES] = losses
    return True


# So many outcomes are looked up in one go.
_CHUNK = 32


@inline_kernel
def _next_home(g, arm, k, won):
    """Where the table has the group that an arm of group k comes to. O(1)."""
    return home(g, tag_of(g.info[k, CLASS], g.arm[arm, WINS] + won, g.arm[arm, LOSSES] + 1 - won))


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
    for i in range(begin, end):
        arm = arms[i]
        k = g.arm[arm, GROUP]
        if k >= 0:
            prefetch(g.table, _next_home(g, arm, k, won[i]))
            start, size = g.info[k, START], g.info[k, SIZE]
            if size > 1:
                prefetch_to_write(g.members, start + g.arm[arm, PLACE])
                prefetch(g.members, start + size - 1)
            else:
                prefetch(g.table, home(g, tag_of(g.info[k, CLASS], g.arm[arm, WINS], g.arm[arm, LOSSES])))
                prefetch(g.stride, k)
    for i in range(begin, end):
        arm = arms[i]
        k = g.arm[arm, GROUP]
        if k >= 0:
            size = g.info[k, SIZE]
            if size > 1:
                prefetch_to_write(g.arm, g.members[g.info[k, START] + size - 1])
            to = group_at(g, _next_home(g, arm, k, won[i]))
            if to >= 0:
                prefetch_to_write(g.info, to)
                prefetch(g.const, to)
                prefetch(g.rate, to)
            elif size > 1:
                new = g.ids[g.info[k, CLASS], SPARE]
                if new >= 0:
                    prefetch_to_write(g.info, new)
                    prefetch_to_write(g.const, new)
                    prefetch(g.rate, new)
                    prefetch(g.stride, new)
    for i in range(begin, end):
        arm = arms[i]
        k = g.arm[arm, GROUP]
        if k >= 0:
            to = group_at(g, _next_home(g, arm, k, won[i]))
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
    asked = begin
    for i in range(begin, n):
        if i == asked:
            asked = min(n, i + _CHUNK)
            _ask_for(g, arms, won, i, asked)
        if not _move(g, arms[i], won[i]):
            return i
    return -1
