"""Arms grouped by posterior: those with the same successes and failures (and class) stand in one member array.

Arms of one group are exchangeable, so that a sampler may draw for the group and then name members at random. All is
kept in flat arrays: a group's members in a block whose length is a power of two (blocks are split and reused), groups
found by an open hash table, and the groups of a class linked in a list, those of arms that won lately in front.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from semibandit._jit import kernel
from semibandit._records import FloatArray, IntArray
from semibandit.policies._beta import log_beta

# Columns of an arm, of a group, of a group's constants, and of `meta`. GROUP is -1 for an absent arm.
GROUP, PLACE, WINS, LOSSES = 0, 1, 2, 3
SIZE, START, LOG, NEXT, PREV, CLASS, G_WINS, G_LOSSES, DRAWN = 0, 1, 2, 3, 4, 5, 6, 7, 8
ENTROPY, LOG_BETA = 0, 1
TOP, FREE, LIVE, USED = 0, 1, 2, 3

_N_LOGS = 48
_A = np.uint64(0x9E3779B97F4A7C15)
_B = np.uint64(0xD1342543DE82EF95)
_C = np.uint64(0xF1357AEA2E62A9C5)
_29 = np.uint64(29)
_32 = np.uint64(32)


class Groups(NamedTuple):
    """State for kernels. `population` counts the present arms of each class."""

    arm: IntArray
    classes: IntArray
    info: IntArray
    const: FloatArray
    table: IntArray
    members: IntArray
    blocks: IntArray
    head: IntArray
    population: IntArray
    meta: IntArray


@kernel
def _home(g, c, wins, losses):  # type: ignore[no-untyped-def]
    """Where the search for a group begins in the table. O(1)."""
    h = (np.uint64(c) + _C) * _A
    h = ((h ^ (h >> _32)) + np.uint64(wins)) * _B
    h = ((h ^ (h >> _29)) + np.uint64(losses)) * _C
    return np.int64(h >> _32) & (g.table.shape[0] - 1)


@kernel
def _find(g, c, wins, losses):  # type: ignore[no-untyped-def]
    """The table's slot of the group, or the free slot where it belongs. Expected O(1)."""
    slot = _home(g, c, wins, losses)
    while True:
        k = g.table[slot]
        if k < 0:
            return slot
        if g.info[k, G_WINS] == wins and g.info[k, G_LOSSES] == losses and g.info[k, CLASS] == c:
            return slot
        slot = (slot + 1) & (g.table.shape[0] - 1)


@kernel
def _forget(g, k):  # type: ignore[no-untyped-def]
    """Take group k out of the table; later ones of its run move up. Expected O(1)."""
    mask = g.table.shape[0] - 1
    hole = _find(g, g.info[k, CLASS], g.info[k, G_WINS], g.info[k, G_LOSSES])
    slot = hole
    while True:
        slot = (slot + 1) & mask
        other = g.table[slot]
        if other < 0:
            break
        home = _home(g, g.info[other, CLASS], g.info[other, G_WINS], g.info[other, G_LOSSES])
        if ((slot - home) & mask) >= ((slot - hole) & mask):
            g.table[hole] = other
            hole = slot
    g.table[hole] = -1


@kernel
def rebuild_table(g):  # type: ignore[no-untyped-def]
    """Fill the (empty) table with all live groups. O(groups)."""
    for c in range(g.head.shape[0]):
        k = g.head[c]
        while k >= 0:
            g.table[_find(g, c, g.info[k, G_WINS], g.info[k, G_LOSSES])] = k
            k = g.info[k, NEXT]


@kernel
def _release(g, start, log):  # type: ignore[no-untyped-def]
    """Give a block back. O(1)."""
    g.members[start] = g.blocks[log]
    g.blocks[log] = start


@kernel
def _claim(g, log):  # type: ignore[no-untyped-def]
    """A block of 2^log places, or -1 if the member array must grow first. O(log K)."""
    for have in range(log, _N_LOGS):
        start = g.blocks[have]
        if start >= 0:
            g.blocks[have] = g.members[start]
            while have > log:
                have -= 1
                _release(g, start + (1 << have), have)
            return start
    start = g.meta[TOP]
    if start + (1 << log) > g.members.shape[0]:
        return -1
    g.meta[TOP] = start + (1 << log)
    return start


@kernel
def unlink(g, k):  # type: ignore[no-untyped-def]
    """Take group k out of its class's list. O(1)."""
    before = g.info[k, PREV]
    after = g.info[k, NEXT]
    if before >= 0:
        g.info[before, NEXT] = after
    else:
        g.head[g.info[k, CLASS]] = after
    if after >= 0:
        g.info[after, PREV] = before


@kernel
def link_first(g, k):  # type: ignore[no-untyped-def]
    """Put group k at the front of its class's list. O(1)."""
    c = g.info[k, CLASS]
    first = g.head[c]
    g.info[k, PREV] = -1
    g.info[k, NEXT] = first
    if first >= 0:
        g.info[first, PREV] = k
    g.head[c] = k


@kernel
def _open_group(g, slot, c, wins, losses, log):  # type: ignore[no-untyped-def]
    """A new, empty group with room for 2^log members, or -1 if there is no room. A free slot must exist. O(1)."""
    start = _claim(g, log)
    if start < 0:
        return -1
    k = g.meta[FREE]
    if k >= 0:
        g.meta[FREE] = g.info[k, NEXT]
    else:
        k = g.meta[USED]
        g.meta[USED] += 1
    g.meta[LIVE] += 1
    g.table[slot] = k
    g.info[k, SIZE] = 0
    g.info[k, START] = start
    g.info[k, LOG] = log
    g.info[k, CLASS] = c
    g.info[k, G_WINS] = wins
    g.info[k, G_LOSSES] = losses
    g.info[k, DRAWN] = 0
    m = wins + losses + 1.0
    p = wins / m
    g.const[k, ENTROPY] = (wins * math.log(p) if wins > 0 else 0.0) + (losses + 1.0) * math.log1p(-p)
    g.const[k, LOG_BETA] = log_beta(wins + 1.0, losses + 1.0)
    link_first(g, k)
    return k


@kernel
def leave(g, arm):  # type: ignore[no-untyped-def]
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
    log = g.info[k, LOG]
    if last == 0:
        _forget(g, k)
        unlink(g, k)
        _release(g, start, log)
        g.info[k, NEXT] = g.meta[FREE]
        g.meta[FREE] = k
        g.meta[LIVE] -= 1
    elif log > 2 and last <= (1 << (log - 2)):
        g.info[k, LOG] = log - 1
        _release(g, start + (1 << (log - 1)), log - 1)


@kernel
def join(g, arm):  # type: ignore[no-untyped-def]
    """Put an absent arm into the group of its counts. False, with nothing changed, if there is no room.

    Amortised O(1): a full group moves to a block twice as long.
    """
    c = g.classes[arm]
    wins = g.arm[arm, WINS]
    losses = g.arm[arm, LOSSES]
    slot = _find(g, c, wins, losses)
    k = g.table[slot]
    if k < 0:
        k = _open_group(g, slot, c, wins, losses, 0)
        if k < 0:
            return False
    size = g.info[k, SIZE]
    if size == 1 << g.info[k, LOG]:
        new = _claim(g, g.info[k, LOG] + 1)
        if new < 0:
            return False
        old = g.info[k, START]
        for i in range(size):
            g.members[new + i] = g.members[old + i]
        _release(g, old, g.info[k, LOG])
        g.info[k, START] = new
        g.info[k, LOG] += 1
    g.members[g.info[k, START] + size] = arm
    g.arm[arm, GROUP] = k
    g.arm[arm, PLACE] = size
    g.info[k, SIZE] = size + 1
    g.population[c] += 1
    return True


@kernel
def join_all(g, arms, begin):  # type: ignore[no-untyped-def]
    """`join` of arms[begin:]; the index of the first for which there was no room, or -1. Amortised O(n)."""
    for i in range(begin, arms.shape[0]):
        if not join(g, arms[i]):
            return i
    return -1


@kernel
def leave_all(g, arms):  # type: ignore[no-untyped-def]
    """`leave` of each of `arms`. O(n)."""
    for i in range(arms.shape[0]):
        leave(g, arms[i])


@kernel
def move_all(g, arms, won, begin):  # type: ignore[no-untyped-def]
    """Count the outcomes from `begin` on; present arms change group. Returns as `join_all`. Amortised O(n).

    The arm it stops at is counted and out of its group: it needs a `join`, and the rest another call.
    """
    for i in range(begin, arms.shape[0]):
        arm = arms[i]
        present = g.arm[arm, GROUP] >= 0
        if present:
            leave(g, arm)
        g.arm[arm, LOSSES - won[i]] += 1
        if present and not join(g, arm):
            return i
    return -1


@kernel
def count_all(arm, arms, won):  # type: ignore[no-untyped-def]
    """Count outcomes where there are no groups. O(n)."""
    for i in range(arms.shape[0]):
        arm[arms[i], LOSSES - won[i]] += 1


@kernel
def fill(g, order, count):  # type: ignore[no-untyped-def]
    """Open the groups of arms never pulled; `order` lists the arms class by class. O(K)."""
    at = 0
    for c in range(count.shape[0]):
        n = count[c]
        if n == 0:
            continue
        log = 0
        while (1 << log) < n:
            log += 1
        k = _open_group(g, _find(g, c, 0, 0), c, 0, 0, log)
        for i in range(n):
            arm = order[at + i]
            g.members[g.info[k, START] + i] = arm
            g.arm[arm, GROUP] = k
            g.arm[arm, PLACE] = i
        g.info[k, SIZE] = n
        g.population[c] = n
        at += n


def new_groups(arm: IntArray, classes: IntArray, n_classes: int) -> Groups:
    """Groups of arms that were all never pulled. O(K)."""
    count = np.bincount(classes, minlength=n_classes).astype(np.int64)
    room = int(sum(1 << int(n - 1).bit_length() for n in count if n > 0))
    n_groups = max(64, 2 * n_classes)
    groups = Groups(
        arm=arm,
        classes=classes,
        info=np.zeros((n_groups, 9), dtype=np.int64),
        const=np.zeros((n_groups, 2)),
        table=np.full(_table_size(n_groups), -1, dtype=np.int64),
        members=np.zeros(room + 64, dtype=np.int64),
        blocks=np.full(_N_LOGS, -1, dtype=np.int64),
        head=np.full(n_classes, -1, dtype=np.int64),
        population=np.zeros(n_classes, dtype=np.int64),
        meta=np.array([0, -1, 0, 0], dtype=np.int64),
    )
    fill(groups, np.argsort(classes, kind="stable").astype(np.int64, copy=False), count)
    return groups


def _table_size(n_groups: int) -> int:
    return 1 << (2 * n_groups - 1).bit_length()


def with_room(groups: Groups, n: int) -> Groups:
    """`groups` with room for n more of them: the same object, or one with longer arrays. Amortised O(n)."""
    have = len(groups.info)
    # Never more groups than arms.
    need = min(int(groups.meta[LIVE]) + n, len(groups.arm))
    if need <= have:
        return groups
    want = max(2 * have, need)
    info, const = np.zeros((want, 9), dtype=np.int64), np.zeros((want, 2))
    info[:have], const[:have] = groups.info, groups.const
    grown = groups._replace(info=info, const=const, table=np.full(_table_size(want), -1, dtype=np.int64))
    rebuild_table(grown)
    return grown


def with_places(groups: Groups) -> Groups:
    """`groups` with a member array twice as long. O(K), amortised O(1) a move."""
    members = np.zeros(2 * len(groups.members), dtype=np.int64)
    members[: len(groups.members)] = groups.members
    return groups._replace(members=members)


def copy_groups(groups: Groups, arm: IntArray) -> Groups:
    """An independent copy over `arm`, which holds the same values. O(K)."""
    copies: dict[str, Any] = {name: value.copy() for name, value in groups._asdict().items()}
    copies["arm"], copies["classes"] = arm, groups.classes
    return Groups(**copies)


def check_groups(g: Groups, present: Any) -> None:
    """Assert all invariants; `present` is the mask of arms that are in play. O(K)."""
    assert np.array_equal(g.arm[:, GROUP] >= 0, present)
    seen: set[int] = set()
    spans = []
    live = 0
    for c in range(len(g.head)):
        k, before, people = int(g.head[c]), -1, 0
        while k >= 0:
            row = g.info[k]
            assert row[PREV] == before and row[CLASS] == c and row[DRAWN] == 0
            size, start, log = int(row[SIZE]), int(row[START]), int(row[LOG])
            assert 1 <= size <= 1 << log
            for i in range(size):
                arm = int(g.members[start + i])
                assert arm not in seen
                seen.add(arm)
                assert g.arm[arm].tolist() == [k, i, row[G_WINS], row[G_LOSSES]]
                assert g.classes[arm] == c
            spans.append((start, start + (1 << log)))
            people += size
            live += 1
            before, k = k, int(row[NEXT])
        assert people == g.population[c]
    assert len(seen) == int(np.sum(present)) and live == g.meta[LIVE]
    held = g.table[g.table >= 0]
    assert len(held) == live == len(np.unique(held))
    for k in held.tolist():
        assert g.table[_find(g, *(int(g.info[k, x]) for x in (CLASS, G_WINS, G_LOSSES)))] == k
    for log in range(_N_LOGS):
        start = int(g.blocks[log])
        while start >= 0:
            spans.append((start, start + (1 << log)))
            start = int(g.members[start])
    spans.sort()
    assert all(one[1] == two[0] for one, two in pairwise(spans))
    assert not spans or (spans[0][0] == 0 and spans[-1][1] == g.meta[TOP])
    free, k = 0, int(g.meta[FREE])
    while k >= 0:
        free, k = free + 1, int(g.info[k, NEXT])
    assert free + live == g.meta[USED] <= len(g.info)
