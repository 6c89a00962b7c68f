"""Making, growing, copying and checking the groups of `semibandit.policies.thompson.posterior_groups`."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from semibandit.arms import IntArray
from semibandit.compiled.memory import aligned
from semibandit.errors import FileError
from semibandit.policies.state import array_of
from semibandit.policies.thompson.posterior_groups import fill, list_groups, reopen, sum_rates
from semibandit.policies.thompson.posterior_layout import (
    BEND,
    BLOCK,
    CLASS,
    EIGHT,
    FIRST_CHUNK,
    G_LOSSES,
    G_WINS,
    GIVEN,
    GROUP,
    ID_BITS,
    LAST_CHUNK,
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
    SPARE,
    START,
    STRIDE,
    SURE,
    TOP,
    USED,
    WINS,
    X0,
    Groups,
    find,
    group_at,
    rebuild_table,
)
from semibandit.policies.thompson.posterior_tail import bend


def new_groups(arm: IntArray, classes: IntArray, n_classes: int) -> Groups:
    """Groups of arms that were all never pulled. O(K)."""
    count = np.bincount(classes, minlength=n_classes).astype(np.int64)
    chunks = int(np.count_nonzero(count))
    groups = _empty(arm, classes, n_classes, count, chunks + chunks // 8)
    fill(groups, np.argsort(classes, kind="stable").astype(np.int64, copy=False), count)
    return groups


def _chunk_of(n_arms: int, n_classes: int) -> int:
    """The logarithm of how many numbers of groups a class has at a time: fewer where classes are small."""
    return min(SHORT, max(3, (n_arms // max(1, n_classes)).bit_length() - 1))


def _empty(arm: IntArray, classes: IntArray, n_classes: int, sizes: IntArray, n_chunks: int) -> Groups:
    """No groups yet, with room for members of those of the given sizes and for `n_chunks` chunks. O(K)."""
    room = int(sum(1 << int(n - 1).bit_length() for n in sizes if n > 0))
    chunk = _chunk_of(len(arm), n_classes)
    n_groups = max(64, n_chunks << chunk)
    ids = rows_of(n_classes, 4, np.int64)
    ids[:] = (-1, -1, 1 << chunk, -1)
    return Groups(
        arm=arm,
        classes=classes,
        info=rows_of(n_groups, N_COLUMNS, np.int64),
        const=rows_of(n_groups, N_CONST, np.float64),
        table=np.full(_table_size(n_groups), -1, dtype=np.int64),
        members=np.zeros(room + 64, dtype=np.int64),
        blocks=np.full(N_LOGS, -1, dtype=np.int64),
        head=np.full(n_classes, -1, dtype=np.int64),
        population=np.zeros(n_classes, dtype=np.int64),
        meta=np.zeros(3, dtype=np.int64),
        level=rows_of(n_classes, N_LEVEL, np.float64),
        ids=ids,
        chunk=chunk,
        **_by_group(n_groups, chunk),
    )


def told(groups: Groups) -> dict[str, Any]:
    """What `restored` needs besides the arms: the order of the groups, whose their numbers are, and the level.
    O(groups)."""
    size, given = 1 << groups.chunk, groups.ids[:, GIVEN]
    owners = groups.owner[: int(groups.meta[USED]) >> groups.chunk].copy()
    listed = np.empty(int(groups.meta[LIVE]), dtype=np.int64)
    never = int((size - given[groups.ids[:, LAST_CHUNK] >= 0]).sum())
    free = np.empty(int(groups.meta[USED]) - never - len(listed), dtype=np.int64)
    list_groups(groups, listed, free)
    return {"listed": listed, "free": free, "owners": owners, "level": groups.level.reshape(-1)}


def restored(arm: IntArray, classes: IntArray, n_classes: int, state: Mapping[str, Any]) -> Groups:
    """Groups as they were when `told` was asked, over arms that say their group and place. O(K log K).

    The state may come from a file: everything is checked before a kernel sees it. Groups that were numbered in another
    way are numbered anew, which changes `arm`.
    """
    listed, free = array_of(state, "listed", np.int64), array_of(state, "free", np.int64)
    level = array_of(state, "level", np.float64)
    if len(level) == 7:
        # Written when levels were found in another way: they are found anew.
        level = np.zeros(N_LEVEL * n_classes)
    if len(level) != N_LEVEL * n_classes:
        raise FileError("the levels of posteriors do not fit the classes")
    level = level.reshape(-1, N_LEVEL)
    sound = bool(np.isfinite(level).all())
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
    at = np.searchsorted(found, listed)
    chunk, owner_of = _chunk_of(len(arm), n_classes), keys[first, 0][at]
    if "owners" in state:
        owners = array_of(state, "owners", np.int64)
        if not _fits(owners, listed, owner_of, free, chunk, n_classes):
            raise FileError("the groups of posteriors do not fit their numbers")
    else:
        owners, listed, free = *_numbered(owner_of, chunk, n_classes), free[:0]
        numbers = np.empty(len(found), dtype=np.int64)
        numbers[at] = listed
        arm[ids, GROUP] = np.repeat(numbers, size)
    groups = _empty(arm, classes, n_classes, size, len(owners) + len(owners) // 8)
    groups.level[:] = level
    given = np.bincount(owner_of, minlength=n_classes)
    given += np.bincount(owners[free >> chunk], minlength=n_classes)
    groups.ids[:, GIVEN] = np.where(given > 0, (given - 1) % (1 << chunk) + 1, 1 << chunk)
    parts = (np.ascontiguousarray(part, dtype=np.int64) for part in (ids, first[at], size[at]))
    reopen(groups, owners, listed, free, *parts)
    return groups


def _fits(
    owners: IntArray, listed: IntArray, owner_of: IntArray, free: IntArray, chunk: int, n_classes: int
) -> bool:
    """Whether these numbers are all that were given out of chunks of these owners: every class filled one after the
    other. O(groups)."""
    every = np.concatenate((listed, free))
    if len(owners) and not 0 <= owners.min() <= owners.max() < n_classes:
        return False
    if len(every) and not 0 <= every.min() <= every.max() < len(owners) << chunk:
        return False
    if not np.array_equal(owners[listed >> chunk], owner_of) or len(np.unique(every)) != len(every):
        return False
    filled = np.bincount(every >> chunk, minlength=len(owners))
    last = np.full(n_classes, -1)
    last[owners] = np.arange(len(owners))
    whole = np.delete(filled, last[last >= 0])
    ends = np.zeros(len(owners), dtype=np.int64)
    np.maximum.at(ends, every >> chunk, (every & ((1 << chunk) - 1)) + 1)
    return bool((whole == 1 << chunk).all() and (filled > 0).all() and np.array_equal(ends, filled))


def _numbered(owner_of: IntArray, chunk: int, n_classes: int) -> tuple[IntArray, IntArray]:
    """Numbers for groups of these classes, and the owners of their chunks. O(groups log groups)."""
    count = np.bincount(owner_of, minlength=n_classes)
    chunks = -(-count >> chunk)
    order = np.argsort(owner_of, kind="stable")
    within = np.arange(len(order)) - np.repeat(np.cumsum(count) - count, count)
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.repeat((np.cumsum(chunks) - chunks) << chunk, count) + within
    return np.repeat(np.arange(n_classes, dtype=np.int64), chunks), numbers


def rows_of(n: int, columns: int, kind: Any) -> Any:
    """Rows of zeros that lie on as few cache lines as they can."""
    return aligned(n * columns, kind, 0).reshape(n, columns)


def _by_group(n_groups: int, chunk: int) -> dict[str, Any]:
    """Empty arrays of what is read in passing: rates and their sums, what stands beside them, and chunks."""
    short = -(-n_groups >> SHORT)
    long = -(-short >> (LONG - SHORT))
    whole = short << SHORT
    return {
        "rate": aligned(whole, np.float64, 0),
        "eight": aligned(whole >> EIGHT, np.float64, 0),
        "short": np.zeros(short),
        "long": np.zeros(long),
        "stride": aligned(whole, np.float64, 0),
        "widest": aligned(whole >> EIGHT, np.float64, 0),
        "after": np.zeros(whole >> chunk, dtype=np.int64),
        "owner": np.zeros(whole >> chunk, dtype=np.int64),
    }


def _table_size(n_groups: int) -> int:
    """Slots for so many groups: four times as many at least, so that a search hardly ever passes another group. With
    half of the slots taken counting an outcome takes a tenth longer, by branches that nobody could foresee."""
    return 1 << (4 * n_groups - 1).bit_length()


def lacks_numbers(groups: Groups) -> bool:
    """Whether there is no chunk of numbers left. O(1)."""
    return int(groups.meta[USED]) + (1 << groups.chunk) > len(groups.info)


def with_room(groups: Groups) -> Groups:
    """`groups` with arrays that are twice as long. O(groups), amortised O(1) each."""
    have = len(groups.info)
    want = 2 * have
    info, const = rows_of(want, N_COLUMNS, np.int64), rows_of(want, N_CONST, np.float64)
    info[:have], const[:have] = groups.info, groups.const
    longer = _by_group(want, groups.chunk)
    for name, array in longer.items():
        before = getattr(groups, name)
        array[: len(before)] = before
    table = np.full(_table_size(want), -1, dtype=np.int64)
    grown = groups._replace(info=info, const=const, table=table, **longer)
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
    for k in np.flatnonzero(g.info[: int(g.meta[USED]), SIZE] > 0).tolist():
        row = g.info[k]
        c, cold = int(row[CLASS]), int(row[BLOCK]) & 1
        assert g.rate[k] == row[SIZE] * g.const[k, SIGMA] and (cold or g.const[k, SIGMA] == 0)
        assert g.owner[k >> g.chunk] == c and np.sign(g.stride[k]) == cold * (1 if row[G_LOSSES] > 0 else -1)
        if cold:
            sigma, stride, wins, bend_of = (float(g.const[k, x]) for x in (SIGMA, STRIDE, SURE, BEND))
            assert stride == g.stride[k] and wins == row[G_WINS]
            assert abs(bend_of - (bend(sigma) if sigma > 0.0 else 0.0)) < 1e-14
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
    assert np.array_equal(people, g.population)
    sum_rates(g)
    assert np.allclose(g.eight, g.rate.reshape(-1, 1 << EIGHT).sum(axis=1), rtol=1e-12, atol=0)
    assert np.array_equal(g.widest, np.abs(g.stride).reshape(-1, 1 << EIGHT).max(axis=1))
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
    _check_numbers(g, live)


def _check_numbers(g: Groups, live: int) -> None:
    """Assert that every number that was given out is that of a group or was given back, and that hot groups are listed.
    O(groups)."""
    given, size, hot = 0, 1 << g.chunk, 0
    for c in range(len(g.ids)):
        k, n, last = int(g.ids[c, FIRST_CHUNK]), 0, -1
        while k >= 0:
            assert g.owner[k >> g.chunk] == c and k % size == 0
            n, last, k = n + size, k, int(g.after[k >> g.chunk])
        assert last == g.ids[c, LAST_CHUNK] and (n > 0 or g.ids[c, GIVEN] == size)
        given += n - size + int(g.ids[c, GIVEN])
        k, before = int(g.head[c]), -1
        while k >= 0:
            assert g.info[k, PREV] == before and g.info[k, CLASS] == c and not g.info[k, BLOCK] & 1
            hot, before, k = hot + 1, k, int(g.info[k, NEXT])
        k = int(g.ids[c, SPARE])
        while k >= 0:
            assert g.owner[k >> g.chunk] == c and g.rate[k] == g.stride[k] == g.info[k, SIZE] == 0
            given, k = given - 1, int(g.info[k, NEXT])
    assert given == live and g.meta[USED] <= len(g.info)
    there = g.info[: int(g.meta[USED])]
    assert hot == np.count_nonzero((there[:, SIZE] > 0) & (there[:, BLOCK] & 1 == 0))
