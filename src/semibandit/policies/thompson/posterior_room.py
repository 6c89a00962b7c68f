"""Making, growing, copying and checking the groups of `semibandit.policies.thompson.posterior_groups`."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from semibandit.arms import IntArray
from semibandit.engines.graphic.edges import aligned
from semibandit.errors import FileError
from semibandit.policies.state import array_of
from semibandit.policies.thompson.posterior_groups import fill, list_groups, reopen, sum_rates
from semibandit.policies.thompson.posterior_layout import (
    BLOCK,
    CLASS,
    FREE,
    G_LOSSES,
    G_WINS,
    GROUP,
    ID_BITS,
    LIVE,
    LONG,
    LOSSES,
    N_COLUMNS,
    N_CONST,
    N_LEVEL,
    N_LOGS,
    NEED,
    NEXT,
    PLACE,
    PREV,
    SECOND,
    SHORT,
    SIGMA,
    SIZE,
    START,
    TOP,
    USED,
    WINS,
    X0,
    Groups,
    find,
    group_at,
    rebuild_table,
)


def new_groups(arm: IntArray, classes: IntArray, n_classes: int) -> Groups:
    """Groups of arms that were all never pulled. O(K)."""
    count = np.bincount(classes, minlength=n_classes).astype(np.int64)
    groups = _empty(arm, classes, n_classes, count, 0)
    fill(groups, np.argsort(classes, kind="stable").astype(np.int64, copy=False), count)
    return groups


def _empty(arm: IntArray, classes: IntArray, n_classes: int, sizes: IntArray, n_groups: int) -> Groups:
    """No groups yet, with room for those of the given sizes and for `n_groups` at least. O(K)."""
    room = int(sum(1 << int(n - 1).bit_length() for n in sizes if n > 0))
    n_groups = max(64, 2 * n_classes, n_groups)
    return Groups(
        arm=arm,
        classes=classes,
        info=rows_of(n_groups, N_COLUMNS, np.int64),
        const=rows_of(n_groups, N_CONST, np.float64),
        table=np.full(_table_size(n_groups), -1, dtype=np.int64),
        members=np.zeros(room + 64, dtype=np.int64),
        blocks=np.full(N_LOGS, -1, dtype=np.int64),
        head=np.full(2 * n_classes, -1, dtype=np.int64),
        population=np.zeros(n_classes, dtype=np.int64),
        meta=np.array([0, -1, 0, 0], dtype=np.int64),
        level=rows_of(n_classes, N_LEVEL, np.float64),
        **_rates(n_groups),
    )


def told(groups: Groups) -> dict[str, Any]:
    """What `restored` needs besides the arms: the order of the groups, the free ones, and the level. O(groups)."""
    listed = np.empty(int(groups.meta[LIVE]), dtype=np.int64)
    free = np.empty(int(groups.meta[USED]) - len(listed), dtype=np.int64)
    list_groups(groups, listed, free)
    return {"listed": listed, "free": free, "level": groups.level.reshape(-1)}


def restored(arm: IntArray, classes: IntArray, n_classes: int, state: Mapping[str, Any]) -> Groups:
    """Groups as they were when `told` was asked, over arms that say their group and place. O(K log K).

    The state may come from a file: everything is checked before a kernel sees it.
    """
    listed, free = array_of(state, "listed", np.int64), array_of(state, "free", np.int64)
    level = array_of(state, "level", np.float64)
    if len(level) == 7:
        # Written when levels were found in another way: they are found anew.
        level = np.zeros(N_LEVEL * n_classes)
    if len(level) != N_LEVEL * n_classes:
        raise FileError("the levels of posteriors do not fit the classes")
    level = level.reshape(-1, N_LEVEL)
    used = len(listed) + len(free)
    sound = np.array_equal(np.sort(np.concatenate((listed, free))), np.arange(used))
    sound = sound and bool(np.isfinite(level).all())
    sound = sound and bool(
        (level[:, [X0, *range(NEED, N_LEVEL)]] >= 0.0).all() and (level[:, [X0, SECOND]] < 1.0).all()
    )
    ids = np.flatnonzero(arm[:, GROUP] >= 0)
    ids = ids[np.lexsort((arm[ids, PLACE], arm[ids, GROUP]))]
    found, first, size = np.unique(arm[ids, GROUP], return_index=True, return_counts=True)
    sound = sound and np.array_equal(found, np.sort(listed)) and bool((arm[:, GROUP] >= -1).all())
    sound = sound and np.array_equal(arm[ids, PLACE], np.arange(len(ids)) - np.repeat(first, size))
    keys = np.stack((classes[ids], arm[ids, WINS], arm[ids, LOSSES]), axis=1)
    sound = sound and np.array_equal(keys, np.repeat(keys[first], size, axis=0))
    if not sound or len(np.unique(keys[first], axis=0)) != len(first):
        raise FileError("the groups of posteriors do not fit the arms")
    groups = _empty(arm, classes, n_classes, size, used)
    groups.level[:] = level
    at = np.searchsorted(found, listed)
    parts = (np.ascontiguousarray(part, dtype=np.int64) for part in (ids, first[at], size[at]))
    reopen(groups, listed, free, *parts)
    return groups


def rows_of(n: int, columns: int, kind: Any) -> Any:
    """Rows of zeros that lie on as few cache lines as they can."""
    return aligned(n * columns, kind, 0).reshape(n, columns)


def _rates(n_groups: int) -> dict[str, Any]:
    """Empty arrays of what is read in passing: rates and their sums, and what stands beside them."""
    short = -(-n_groups >> SHORT)
    long = -(-short >> (LONG - SHORT))
    whole = short << SHORT
    return {
        "rate": aligned(whole, np.float64, 0),
        "short": np.zeros(short),
        "long": np.zeros(long),
        "stride": np.zeros(whole),
        "owner": np.zeros(whole, dtype=np.int64),
    }


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
    info, const = rows_of(want, N_COLUMNS, np.int64), rows_of(want, N_CONST, np.float64)
    info[:have], const[:have] = groups.info, groups.const
    rates = _rates(want)
    for name, array in rates.items():
        before = getattr(groups, name)
        array[: len(before)] = before
    grown = groups._replace(
        info=info, const=const, table=np.full(_table_size(want), -1, dtype=np.int64), **rates
    )
    rebuild_table(grown)
    return grown


def with_places(groups: Groups) -> Groups:
    """`groups` with a member array twice as long. O(K), amortised O(1) a move."""
    members = np.zeros(2 * len(groups.members), dtype=np.int64)
    members[: len(groups.members)] = groups.members
    return groups._replace(members=members)


def check_groups(g: Groups, present: Any) -> None:
    """Assert all invariants; `present` is the mask of arms that are in play. O(K)."""
    assert np.array_equal(g.arm[:, GROUP] >= 0, present)
    seen: set[int] = set()
    spans = []
    live = 0
    people = np.zeros(len(g.population), dtype=np.int64)
    for at in range(len(g.head)):
        c, cold = divmod(at, 2)
        k, before = int(g.head[at]), -1
        while k >= 0:
            row = g.info[k]
            assert row[PREV] == before and row[CLASS] == c and row[BLOCK] & 1 == cold
            assert g.rate[k] == row[SIZE] * g.const[k, SIGMA] and (cold or g.const[k, SIGMA] == 0)
            assert g.owner[k] == c and (cold and row[G_LOSSES] > 0) == (g.stride[k] > 0.0)
            size, start, log = int(row[SIZE]), int(row[START]), int(row[BLOCK]) >> 1
            assert 1 <= size <= 1 << log
            for i in range(size):
                arm = int(g.members[start + i])
                assert arm not in seen
                seen.add(arm)
                assert g.arm[arm].tolist() == [k, i, row[G_WINS], row[G_LOSSES]]
                assert g.classes[arm] == c
            spans.append((start, start + (1 << log)))
            people[c] += size
            live += 1
            before, k = k, int(row[NEXT])
    assert np.array_equal(people, g.population)
    sum_rates(g)
    assert np.allclose(g.short, g.rate.reshape(-1, 1 << SHORT).sum(axis=1), rtol=1e-12, atol=0)
    assert np.isclose(g.long.sum(), g.rate.sum(), rtol=1e-12, atol=0)
    assert len(seen) == int(np.sum(present)) and live == g.meta[LIVE]
    held = g.table[g.table >= 0]
    assert len(held) == live == len(np.unique(held))
    for k in (held & ID_BITS).tolist():
        assert group_at(g, find(g, *(int(g.info[k, x]) for x in (CLASS, G_WINS, G_LOSSES)))) == k
    for log in range(N_LOGS):
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
