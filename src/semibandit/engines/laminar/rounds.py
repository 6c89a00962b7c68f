"""Kernels of the laminar engine: the three steps of a round, and arms that come and go.

What the steps are and why they are exact is in `engines.laminar.engine`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semibandit.arms import ALPHA, BETA
from semibandit.compiled.handle import Floats1, Floats2, Floats3, Ints1, Ints2
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.lanes import ABSENT
from semibandit.compiled.sorting import merge_sort, sort_ids_in_place
from semibandit.engines.kernels import implement_engine
from semibandit.engines.kinetic.tournament import KEY_ALPHA, KEY_BETA, WINNER
from semibandit.engines.laminar.tree import (
    CAPACITY,
    PARENT,
    SLOT_BITS,
    SLOT_MASK,
    TOP,
    USED,
    catch_up,
    play_all,
    set_gate,
    set_key,
    weight_at,
)

# The key of a slot whose arm takes no part in the tournaments: alpha = ABSENT, and beta tells why.
IN_BASE, GONE = 0.0, -1.0

# Entries of `meta`.
SHIFT, N_BASE, N_ADDED, N_REMOVED, ROUND = range(5)

# Rows of `arms`.
BASE, ADDED, REMOVED, FOUND, SPARE = range(5)

# Columns of `bar`.
BAR, BAR_ROUND = 0, 1


class LaminarKineticState(NamedTuple):
    """Everything a round needs: the records, the fields of a `NestedTree`, the base and what changes it.

    ``arms[BASE, : meta[N_BASE]]`` is the base, ascending; the other rows of `arms`, and `weight`, are scratch.
    ``bar[v, BAR]`` is the weight of the heaviest challenger in full families around family v, if ``bar[v,
    BAR_ROUND]`` is the current round. `lam[0]` is the query of the last round.
    """

    recs: Floats2
    leaf: Floats3
    node: Floats3
    link: Ints2
    family: Ints2
    place: Ints1
    arm_of: Ints1
    queue: Ints1
    bar: Floats2
    arms: Ints2
    weight: Floats2
    meta: Ints1
    lam: Floats1


@inline_kernel
def _home(state, arm):
    return state.place[arm] >> SLOT_BITS


@inline_kernel
def _in_tree(state, arm):
    slot = state.place[arm] & SLOT_MASK
    return state.leaf[slot >> 4, KEY_ALPHA, slot & 15] != ABSENT


@inline_kernel
def laminar_touch(state, arm):
    """The record of `arm` changed. O(1) for an arm of the base, else a path of the tree."""
    if _in_tree(state, arm):
        set_key(state, state.meta[SHIFT], arm, state.recs[arm, ALPHA], state.recs[arm, BETA], state.lam[0])


@inline_kernel
def _count(state, f, lam):
    """One base arm more in family f. Shuts its gate when it is full."""
    state.family[f, USED] += 1
    if state.family[f, USED] == state.family[f, CAPACITY]:
        set_gate(state, f, False, lam)


@inline_kernel
def _discount(state, f, lam):
    """One base arm less in family f. Opens its gate if it was full."""
    state.family[f, USED] -= 1
    if state.family[f, USED] == state.family[f, CAPACITY] - 1:
        set_gate(state, f, True, lam)


@inline_kernel
def _fill(state, lam):
    """Step 1. Let arms enter that no full family holds back. Changes the tree; lists them as added."""
    meta = state.meta
    root = state.link.shape[0] - 1
    while state.node[root >> 4, KEY_ALPHA, root & 15] != ABSENT:
        arm = int(state.node[root >> 4, WINNER, root & 15])
        f = _home(state, arm)
        while f > 0:
            _count(state, f, lam)
            f = state.family[f, PARENT]
        set_key(state, meta[SHIFT], arm, ABSENT, IN_BASE, lam)
        state.arms[ADDED, meta[N_ADDED]] = arm
        meta[N_ADDED] += 1


@kernel
def _raise_bar(node, family, bar, path, f, now, lam):
    """Weight of the heaviest challenger in full families around f. Changes `bar`. O(families new this round)."""
    n = 0
    while f >= 0 and bar[f, BAR_ROUND] != now:
        path[n] = f
        n += 1
        f = family[f, PARENT]
    high = bar[f, BAR] if f >= 0 else ABSENT
    while n > 0:
        n -= 1
        f = path[n]
        if family[f, USED] == family[f, CAPACITY]:
            high = max(high, weight_at(node, family[f, TOP], lam))
        bar[f, BAR] = high
        bar[f, BAR_ROUND] = now
    return high


@inline_kernel
def _find(state, lam):
    """Step 2. Base arms not heavier than every challenger around them, lightest last. Returns how many."""
    recs, bar = state.recs, state.bar
    state.meta[ROUND] += 1
    now = float(state.meta[ROUND])
    base, found, weight = state.arms[BASE], state.arms[FOUND], state.weight[0]
    n = 0
    for i in range(state.meta[N_BASE]):
        arm = base[i]
        w = recs[arm, ALPHA] + lam * recs[arm, BETA]
        f = _home(state, arm)
        if bar[f, BAR_ROUND] == now:
            high = bar[f, BAR]
        else:
            high = _raise_bar(state.node, state.family, bar, state.queue, f, now, lam)
        if not w > high:
            found[n] = arm
            weight[n] = w
            n += 1
    merge_sort(weight, found, n, state.weight[1], state.arms[SPARE])
    return n


@inline_kernel
def _challenger(state, arm, lam):
    """The heaviest arm that can replace the base arm `arm`, and its weight; -1 if there is none. O(depth)."""
    node, family = state.node, state.family
    best, best_weight = -1, ABSENT
    f = _home(state, arm)
    while f > 0:
        top = family[f, TOP]
        if family[f, USED] == family[f, CAPACITY] and node[top >> 4, KEY_ALPHA, top & 15] != ABSENT:
            w = weight_at(node, top, lam)
            rival = int(node[top >> 4, WINNER, top & 15])
            if best < 0 or w > best_weight or (w == best_weight and rival < best):
                best = rival
                best_weight = w
        f = family[f, PARENT]
    return best, best_weight


@inline_kernel
def _exchange(state, leaver, entrant, lam):
    """Step 3, one exchange. Changes the tree and its gates; lists both arms. O(depth fanout log K).

    The leaver goes into its tournament before its families open, and the entrant's families are shut before it
    goes out of its own, so that no gate shows an arm in passing.
    """
    meta, recs = state.meta, state.recs
    set_key(state, meta[SHIFT], leaver, recs[leaver, ALPHA], recs[leaver, BETA], lam)
    down, up = _home(state, leaver), _home(state, entrant)
    while down != up:  # an outer family has the smaller number
        if down > up:
            _discount(state, down, lam)
            down = state.family[down, PARENT]
        else:
            _count(state, up, lam)
            up = state.family[up, PARENT]
    set_key(state, meta[SHIFT], entrant, ABSENT, IN_BASE, lam)
    state.arms[ADDED, meta[N_ADDED]] = entrant
    meta[N_ADDED] += 1
    state.arms[REMOVED, meta[N_REMOVED]] = leaver
    meta[N_REMOVED] += 1


@kernel
def _write(arms, meta, out):
    """Bring the ascending base up to date and copy it to `out`. O(D + s log s) for s changes."""
    base, added, removed = arms[BASE], arms[ADDED], arms[REMOVED]
    n_old, n_added, n_removed = meta[N_BASE], meta[N_ADDED], meta[N_REMOVED]
    if n_added == 0:
        for i in range(n_old):
            out[i] = base[i]
        return n_old
    sort_ids_in_place(added, n_added)
    sort_ids_in_place(removed, n_removed)
    a, r, n = 0, 0, 0
    for i in range(n_old + 1):
        # Past the end everything that was added is due.
        arm = base[i] if i < n_old else np.iinfo(np.int64).max
        if r < n_removed and removed[r] == arm:
            r += 1
            continue
        while a < n_added and added[a] < arm:
            out[n] = added[a]
            a += 1
            n += 1
        if i < n_old:
            out[n] = arm
            n += 1
    for i in range(n):
        base[i] = out[i]
    meta[N_BASE] = n
    meta[N_ADDED] = 0
    meta[N_REMOVED] = 0
    return n


@inline_kernel
def laminar_select(state, lam, out):
    """The base at lam (not below the last one), by filling and exchanging. Changes the whole state and `out`."""
    catch_up(state, lam)
    state.lam[0] = lam
    _fill(state, lam)
    found, weight = state.arms[FOUND], state.weight[0]
    for i in range(_find(state, lam) - 1, -1, -1):
        rival, w = _challenger(state, found[i], lam)
        if rival >= 0 and (w > weight[i] or (w == weight[i] and rival < found[i])):
            _exchange(state, found[i], rival, lam)
    return _write(state.arms, state.meta, out)


@kernel
def laminar_rebuild(state):
    """Read the records of all arms in the tournaments again and play them all. O(K + F)."""
    for arm in range(state.recs.shape[0]):
        if _in_tree(state, arm):
            slot = state.place[arm] & SLOT_MASK
            state.leaf[slot >> 4, KEY_ALPHA, slot & 15] = state.recs[arm, ALPHA]
            state.leaf[slot >> 4, KEY_BETA, slot & 15] = state.recs[arm, BETA]
    play_all(state, state.lam[0])


@kernel
def _set_keys(state, arms, gone):
    """Take arms out of the tournaments or put them back. Paths for few arms, all played at once for many."""
    recs, lam = state.recs, state.lam[0]
    many = arms.shape[0] > recs.shape[0] // 16 + 64
    for i in range(arms.shape[0]):
        arm = arms[i]
        alpha = ABSENT if gone else recs[arm, ALPHA]
        beta = GONE if gone else recs[arm, BETA]
        if many:
            slot = state.place[arm] & SLOT_MASK
            state.leaf[slot >> 4, KEY_ALPHA, slot & 15] = alpha
            state.leaf[slot >> 4, KEY_BETA, slot & 15] = beta
        else:
            set_key(state, state.meta[SHIFT], arm, alpha, beta, lam)
    if many:
        play_all(state, lam)


@kernel
def laminar_remove(state, arms):
    """Take present arms out, be they in the base or not. O(D + depth fanout log K an arm)."""
    _set_keys(state, arms, True)
    base = state.arms[BASE]
    n = 0
    for i in range(state.meta[N_BASE]):
        slot = state.place[base[i]] & SLOT_MASK
        if state.leaf[slot >> 4, KEY_BETA, slot & 15] != GONE:
            base[n] = base[i]
            n += 1
            continue
        f = _home(state, base[i])
        while f > 0:
            _discount(state, f, state.lam[0])
            f = state.family[f, PARENT]
    state.meta[N_BASE] = n


@kernel
def laminar_restore(state, arms):
    """Put absent arms back with the weights in their records. O(depth fanout log K an arm)."""
    _set_keys(state, arms, False)


@kernel
def laminar_touch_many(state, arms):
    """Path by path when there are few, one rebuild in O(K) when there are many."""
    if arms.shape[0] > state.recs.shape[0] // 16 + 64:
        laminar_rebuild(state)
    else:
        for i in range(arms.shape[0]):
            laminar_touch(state, arms[i])


implement_engine(
    LaminarKineticState,
    laminar_select,
    laminar_touch,
    touch_many=laminar_touch_many,
    touch_all=laminar_rebuild,
    remove=laminar_remove,
    restore=laminar_restore,
)
