"""CUCB's exact decisions in sublinear time for uniform and partition matroids (DESIGN idea E).

The base is kept outside a kinetic tournament per group. At a new lam the group's base is sorted, and while the
tournament's winner is heavier than the lightest base arm not yet exchanged, the two change places. Playing an arm
of the base touches its record only. O(D log D + s fanout log K) a round for s exchanges, plus the certificates
that ended.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from semibandit._jit import njit
from semibandit._records import ALPHA, BETA, FloatArray, IntArray
from semibandit.engines._dispatch import add_rewards, check_feedback, register_state
from semibandit.engines.base import CompiledEngine
from semibandit.engines.kept_order import merge_sort
from semibandit.engines.resolve_scan import sort_ids
from semibandit.engines.tournament import (
    NODE_ALPHA,
    NODE_BETA,
    NODE_FAIL,
    NODE_WINNER,
    build,
    n_nodes,
    refresh,
    replay_path,
    shorten,
)
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid, Partition, Uniform

# Columns of a group: its slots, its nodes, its part of the base, and whether its base must be looked at.
SLOT0, N_SLOTS, NODE0, ROOT, BASE0, N_BASE, CAPACITY, DIRTY = range(8)

# Entries of `meta`.
SHIFT, N_SORTED, N_ADDED, N_REMOVED = range(4)


class KineticState(NamedTuple):
    """Everything a round needs.

    `leaf[s]` holds (alpha, beta) of the arm in slot s, or alpha = -inf when that arm is in the base or
    deleted. `arm_of` and `slot_of` are empty when slots are arm ids; slots of a group ascend with arm ids, so
    ties by slot are ties by id. `holds[g]` is a lam up to which nothing changes in a clean group.
    `sorted_base[: meta[N_SORTED]]` is the answer of the last round, `added` and `removed` what changed since;
    `lam[0]` is its query.
    """

    recs: FloatArray
    leaf: FloatArray
    node: FloatArray
    group: IntArray
    holds: FloatArray
    arm_of: IntArray
    slot_of: IntArray
    group_of: IntArray
    base: IntArray
    sorted_base: IntArray
    added: IntArray
    removed: IntArray
    weight: FloatArray
    spare_weight: FloatArray
    spare_arm: IntArray
    stack: IntArray
    meta: IntArray
    lam: FloatArray


@njit
def _slot(state, arm):  # type: ignore[no-untyped-def]
    return arm if state.slot_of.shape[0] == 0 else state.slot_of[arm]


@njit
def _arm(state, slot):  # type: ignore[no-untyped-def]
    return slot if state.arm_of.shape[0] == 0 else state.arm_of[slot]


@njit
def _group(state, arm):  # type: ignore[no-untyped-def]
    return 0 if state.group_of.shape[0] == 0 else state.group_of[arm]


@njit
def _set_leaf(state, g, slot, alpha, beta):  # type: ignore[no-untyped-def]
    """Change the key of a slot and repair the tree above it. O(fanout log K) at most, often O(1)."""
    state.leaf[slot, 0] = alpha
    state.leaf[slot, 1] = beta
    row = state.group[g]
    replay_path(
        state.leaf, row[SLOT0], row[N_SLOTS], state.node, row[NODE0], state.meta[SHIFT], state.lam[0], slot
    )


@njit
def kinetic_touch(state, arm):  # type: ignore[no-untyped-def]
    """The record of `arm` changed. O(1) for an arm of the base, else a path of its tree."""
    g = _group(state, arm)
    state.group[g, DIRTY] = 1
    slot = _slot(state, arm)
    if state.leaf[slot, 0] != -np.inf:
        _set_leaf(state, g, slot, state.recs[arm, ALPHA], state.recs[arm, BETA])


@njit
def _take_winner(state, g):  # type: ignore[no-untyped-def]
    """Take the heaviest arm of group g out of its tree and return it."""
    slot = int(state.node[state.group[g, ROOT], NODE_WINNER])
    _set_leaf(state, g, slot, -np.inf, 0.0)
    return _arm(state, slot)


@njit
def _settle_group(state, g, lam):  # type: ignore[no-untyped-def]
    """Make group g's part of the base right at lam. Changes its base and its tree; lists what came and went."""
    row = state.group[g]
    refresh(
        state.leaf, row[SLOT0], row[N_SLOTS], state.node, row[NODE0], state.meta[SHIFT], lam, state.stack
    )
    node, recs, base = state.node, state.recs, state.base
    root, base0, capacity = row[ROOT], row[BASE0], row[CAPACITY]
    n = row[N_BASE]
    meta = state.meta
    while n < capacity and node[root, NODE_ALPHA] != -np.inf:
        winner = _take_winner(state, g)
        base[base0 + n] = winner
        n += 1
        state.added[meta[N_ADDED]] = winner
        meta[N_ADDED] += 1
    row[N_BASE] = n
    if n < capacity or n == 0 or node[root, NODE_ALPHA] == -np.inf:
        return

    # Heaviest first, so that exchanges run from the end.
    weight = state.weight
    for i in range(n):
        arm = base[base0 + i]
        weight[i] = recs[arm, ALPHA] + lam * recs[arm, BETA]
    members = base[base0 : base0 + n]
    merge_sort(weight, members, n, state.spare_weight, state.spare_arm)
    # The i-th lightest base arm meets the i-th heaviest outsider. An arm that left is lighter than every base
    # arm still to be looked at, so going back into the tree it cannot win there.
    i = n - 1
    while i >= 0:
        w = node[root, NODE_ALPHA] + lam * node[root, NODE_BETA]
        if w < weight[i]:
            break
        winner = _arm(state, int(node[root, NODE_WINNER]))
        arm = members[i]
        if w == weight[i] and winner > arm:
            break
        _take_winner(state, g)
        members[i] = winner
        _set_leaf(state, g, _slot(state, arm), recs[arm, ALPHA], recs[arm, BETA])
        state.added[meta[N_ADDED]] = winner
        meta[N_ADDED] += 1
        state.removed[meta[N_REMOVED]] = arm
        meta[N_REMOVED] += 1
        i -= 1


@njit
def _hold(state, g, lam):  # type: ignore[no-untyped-def]
    """How long group g's base stays right if none of its arms is touched: for groups that rest. O(capacity)."""
    row = state.group[g]
    root = row[ROOT]
    end = state.node[root, NODE_FAIL]
    alpha, beta = state.node[root, NODE_ALPHA], state.node[root, NODE_BETA]
    if row[N_BASE] < row[CAPACITY] or alpha == -np.inf:
        return end
    winner = _arm(state, int(state.node[root, NODE_WINNER]))
    for i in range(row[BASE0], row[BASE0] + row[N_BASE]):
        arm = state.base[i]
        end = shorten(end, state.recs[arm, ALPHA], state.recs[arm, BETA], alpha, beta, arm < winner, lam)
    return end


@njit
def _write_sorted(state, out):  # type: ignore[no-untyped-def]
    """Bring the sorted answer up to date and copy it to `out`. O(D + s log s) for s changes."""
    meta, old, added, removed = state.meta, state.sorted_base, state.added, state.removed
    n_old, n_added, n_removed = meta[N_SORTED], meta[N_ADDED], meta[N_REMOVED]
    if n_added == 0:
        for i in range(n_old):
            out[i] = old[i]
        return n_old
    sort_ids(added, n_added)
    sort_ids(removed, n_removed)
    a, r, n = 0, 0, 0
    for i in range(n_old):
        arm = old[i]
        if r < n_removed and removed[r] == arm:
            r += 1
            continue
        while a < n_added and added[a] < arm:
            out[n] = added[a]
            a += 1
            n += 1
        out[n] = arm
        n += 1
    while a < n_added:
        out[n] = added[a]
        a += 1
        n += 1
    for i in range(n):
        old[i] = out[i]
    meta[N_SORTED] = n
    meta[N_ADDED] = 0
    meta[N_REMOVED] = 0
    return n


@njit
def kinetic_select(state, lam, out):  # type: ignore[no-untyped-def]
    """The base at lam (not below the last one). Only groups that were touched or whose time is up are settled."""
    state.lam[0] = lam
    for g in range(state.group.shape[0]):
        if state.group[g, DIRTY] != 0:
            _settle_group(state, g, lam)
            state.group[g, DIRTY] = 0
            state.holds[g] = -1.0
        elif state.holds[g] < lam:
            _settle_group(state, g, lam)
            state.holds[g] = _hold(state, g, lam)
    return _write_sorted(state, out)


@njit
def kinetic_rebuild(state):  # type: ignore[no-untyped-def]
    """Read every record again and play all trees. O(K)."""
    for g in range(state.group.shape[0]):
        row = state.group[g]
        for slot in range(row[SLOT0], row[SLOT0] + row[N_SLOTS]):
            if state.leaf[slot, 0] != -np.inf:
                arm = _arm(state, slot)
                state.leaf[slot, 0] = state.recs[arm, ALPHA]
                state.leaf[slot, 1] = state.recs[arm, BETA]
        build(state.leaf, row[SLOT0], row[N_SLOTS], state.node, row[NODE0], state.meta[SHIFT], state.lam[0])
        row[DIRTY] = 1


@njit
def kinetic_remove(state, arms):  # type: ignore[no-untyped-def]
    """Take present arms out, be they in the base or not. O(D + fanout log K) each."""
    for i in range(arms.shape[0]):
        arm = arms[i]
        g = _group(state, arm)
        slot = _slot(state, arm)
        row = state.group[g]
        row[DIRTY] = 1
        if state.leaf[slot, 0] != -np.inf:
            _set_leaf(state, g, slot, -np.inf, 0.0)
            continue
        for j in range(row[BASE0], row[BASE0] + row[N_BASE]):
            if state.base[j] == arm:
                row[N_BASE] -= 1
                state.base[j] = state.base[row[BASE0] + row[N_BASE]]
                break
        n = 0
        for j in range(state.meta[N_SORTED]):
            if state.sorted_base[j] != arm:
                state.sorted_base[n] = state.sorted_base[j]
                n += 1
        state.meta[N_SORTED] = n


@njit
def kinetic_restore(state, arms):  # type: ignore[no-untyped-def]
    """Put absent arms back into their trees with the weights in their records. O(fanout log K) each."""
    for i in range(arms.shape[0]):
        arm = arms[i]
        g = _group(state, arm)
        state.group[g, DIRTY] = 1
        _set_leaf(state, g, _slot(state, arm), state.recs[arm, ALPHA], state.recs[arm, BETA])


@njit
def kinetic_observe(state, arms, rewards, low, high):  # type: ignore[no-untyped-def]
    """Validate and apply a batch: path by path when it is small, one rebuild in O(K) when it is large."""
    recs = state.recs
    code = check_feedback(recs.shape[0], arms, rewards, low, high)
    if code != 0:
        return code
    add_rewards(recs, arms, rewards)
    if arms.shape[0] > recs.shape[0] // 16 + 64:
        kinetic_rebuild(state)
    else:
        for i in range(arms.shape[0]):
            kinetic_touch(state, arms[i])
    return 0


register_state(KineticState, kinetic_select, kinetic_touch)


class KineticEngine(CompiledEngine):
    """Kinetic tournaments for uniform and partition matroids: CUCB's own decisions, sublinear in K.

    `fanout` is the width of the trees (a power of two). lam must not go down.
    """

    name = "kinetic"
    monotone_clock = True

    def __init__(
        self, matroid: Matroid, records: npt.NDArray[np.void] | None = None, fanout: int = 16
    ) -> None:
        super().__init__(matroid, records)
        if fanout < 2 or fanout & (fanout - 1):
            raise ParameterError(f"fanout must be a power of two, at least 2, got {fanout}")
        shift = fanout.bit_length() - 1
        empty = np.zeros(0, dtype=np.int64)
        if isinstance(matroid, Uniform):
            arm_of = slot_of = group_of = empty
            sizes = np.array([self.n_arms], dtype=np.int64)
            capacity = np.array([matroid.rank], dtype=np.int64)
        elif isinstance(matroid, Partition):
            group_of, capacity = matroid._group, matroid._capacity
            sizes = np.bincount(group_of, minlength=len(capacity)).astype(np.int64)
            if (np.diff(group_of) >= 0).all():
                arm_of = slot_of = empty
            else:
                arm_of = np.argsort(group_of, kind="stable").astype(np.int64)
                slot_of = np.empty(self.n_arms, dtype=np.int64)
                slot_of[arm_of] = np.arange(self.n_arms)
        else:
            raise TypeError(f"KineticEngine serves uniform and partition matroids, got {matroid!r}")

        rank = matroid.rank
        group = np.zeros((len(sizes), 8), dtype=np.int64)
        nodes = np.array([n_nodes(int(n), shift) if n else 0 for n in sizes], dtype=np.int64)
        group[:, SLOT0] = np.cumsum(sizes) - sizes
        group[:, N_SLOTS] = sizes
        group[:, NODE0] = np.cumsum(nodes) - nodes
        group[:, ROOT] = np.cumsum(nodes) - 1
        group[:, BASE0] = np.cumsum(capacity) - capacity
        group[:, CAPACITY] = capacity
        group[:, DIRTY] = 1
        if (sizes == 0).any():
            group = np.ascontiguousarray(group[sizes > 0])
            renumber = np.cumsum(sizes > 0) - 1
            group_of = renumber[group_of].astype(np.int64)
        n_slots = self.n_arms
        leaf = np.zeros((n_slots, 2))
        self._state: Any = KineticState(
            recs=self._recs,
            leaf=leaf,
            node=np.zeros((int(nodes.sum()), 4)),
            group=group,
            holds=np.full(len(group), -1.0),
            arm_of=arm_of,
            slot_of=slot_of,
            group_of=group_of,
            base=np.zeros(rank, dtype=np.int64),
            sorted_base=np.zeros(rank, dtype=np.int64),
            added=np.zeros(rank, dtype=np.int64),
            removed=np.zeros(rank, dtype=np.int64),
            weight=np.zeros(rank),
            spare_weight=np.zeros(rank),
            spare_arm=np.zeros(rank, dtype=np.int64),
            stack=np.zeros((16 * fanout + 64, 5), dtype=np.int64),
            meta=np.array([shift, 0, 0, 0], dtype=np.int64),
            lam=np.zeros(1),
        )
        kinetic_rebuild(self._state)

    def touch(self, arms: IntArray) -> None:
        if len(arms) > self.n_arms // 16 + 64:
            kinetic_rebuild(self._state)
        else:
            super().touch(arms)

    def observe(self, arms: IntArray, rewards: FloatArray, low: float, high: float) -> int:
        return int(kinetic_observe(self._state, arms, rewards, low, high))

    def _remove(self, ids: IntArray) -> None:
        kinetic_remove(self._state, ids)

    def _restore(self, ids: IntArray) -> None:
        kinetic_restore(self._state, ids)

    def _check(self) -> None:
        s = self._state
        lam = float(s.lam[0])
        arm_of = s.arm_of if len(s.arm_of) else np.arange(self.n_arms)
        absent = np.isneginf(s.leaf[:, 0])
        in_base = np.zeros(self.n_arms, dtype=np.bool_)
        for row in s.group:
            members = s.base[row[BASE0] : row[BASE0] + row[N_BASE]]
            assert len(np.unique(members)) == len(members) <= row[CAPACITY]
            in_base[members] = True
            self._check_tree(row, lam)
        assert not (in_base & self._is_deleted(np.arange(self.n_arms))).any()
        expect_absent = in_base | self._is_deleted(np.arange(self.n_arms))
        assert np.array_equal(absent, expect_absent[arm_of])
        present = ~absent
        assert np.array_equal(s.leaf[present, 0], self._recs[arm_of[present], ALPHA])
        assert np.array_equal(s.leaf[present, 1], self._recs[arm_of[present], BETA])

    def _check_tree(self, row: IntArray, lam: float) -> None:
        """Every node's winner is the winner at lam and its certificate is no longer than its children's."""
        s = self._state
        fan = 1 << int(s.meta[SHIFT])
        slot0, n = int(row[SLOT0]), int(row[N_SLOTS])
        alpha, beta = s.leaf[slot0 : slot0 + n, 0], s.leaf[slot0 : slot0 + n, 1]
        winner = np.arange(slot0, slot0 + n)
        fail = np.full(n, np.inf)
        v = int(row[NODE0])
        while True:
            width = -(-len(winner) // fan)
            parts = [slice(i * fan, (i + 1) * fan) for i in range(width)]
            weight = alpha + lam * beta
            best = [p.start + int(np.argmax(weight[p])) for p in parts]
            nodes = s.node[v : v + width]
            assert np.array_equal(nodes[:, NODE_WINNER], winner[best])
            assert np.array_equal(nodes[:, NODE_ALPHA], alpha[best])
            assert np.array_equal(nodes[:, NODE_BETA], beta[best])
            assert all(nodes[i, NODE_FAIL] <= fail[p].min() for i, p in enumerate(parts))
            assert (nodes[:, NODE_FAIL] >= lam).all() or row[DIRTY] == 1
            winner, alpha, beta, fail = winner[best], alpha[best], beta[best], nodes[:, NODE_FAIL]
            v += width
            if width == 1:
                assert v - 1 == row[ROOT]
                return
