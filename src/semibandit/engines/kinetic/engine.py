"""CUCB's exact decisions in sublinear time for uniform and partition matroids (DESIGN idea E).

The base is kept outside a kinetic tournament per group. At a new lam the group's base is sorted, and while the
tournament's winner is heavier than the lightest base arm not yet exchanged, the two change places. Playing an arm
of the base touches its record only. O(D log D + s fanout log K) a round for s exchanges, plus the certificates
that ended.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from semibandit.arms import ALPHA, BETA
from semibandit.compiled.handle import Floats1, Floats2, Floats3, Ints1, Ints2
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.lanes import ABSENT, LANES, prefetch
from semibandit.compiled.sorting import sort_ids, sort_keys
from semibandit.engines.base import CompiledEngine
from semibandit.engines.kernels import implement_engine
from semibandit.engines.kinetic.tournament import (
    FAIL,
    KEY_ALPHA,
    KEY_BETA,
    WINNER,
    absent_leaves,
    absent_nodes,
    build,
    certify_paths,
    check_tree,
    refresh,
    replay_path,
    shorten,
    take_winner,
    tree_shape,
)
from semibandit.engines.registry import register_engine
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid, Partition, Uniform

# Columns of a group: its arms, its tree, its part of the base, and whether its base must be looked at.
SIZE, POSITION0, LEAF0, LEVELS, BASE0, N_BASE, CAPACITY, DIRTY = range(8)

# Entries of `meta`.
SHIFT, N_SORTED, N_ADDED, PLAYED = range(4)


class KineticState(NamedTuple):
    """Everything a round needs.

    The arms of group g ascending are its positions 0 .. SIZE - 1; `arm_of[POSITION0 + p]` and `position_of[arm]`
    translate and are empty when there is one group. A leaf holds (alpha, beta) of its arm, or ABSENT when that arm
    is in the base or deleted. `first[g]` lists where each level of g's tree begins in `node`; its root is root g.
    `holds[g]` is a lam up to which nothing changes in a group that is not dirty. `sorted_base[: meta[N_SORTED]]` is
    the answer of the last round and always the base, `added` what a round brings into it (from the positions `taken`),
    `meta[PLAYED]` says that all of it was touched since, `lam[0]` is its query. The rest is scratch.
    """

    recs: Floats2
    leaf: Floats3
    node: Floats3
    first: Ints2
    group: Ints2
    holds: Floats1
    arm_of: Ints1
    position_of: Ints1
    group_of: Ints1
    base: Ints1
    sorted_base: Ints1
    added: Ints1
    taken: Ints1
    weight: Floats1
    spare_weight: Floats1
    spare_arm: Ints1
    bins: Ints1
    stack: Ints2
    meta: Ints1
    lam: Floats1


@inline_kernel
def _where(state, arm):
    """Group and position of an arm. O(1)."""
    if state.group_of.shape[0] == 0:
        return 0, arm
    return state.group_of[arm], state.position_of[arm]


@inline_kernel
def _arm(state, g, position):
    return position if state.arm_of.shape[0] == 0 else state.arm_of[state.group[g, POSITION0] + position]


@inline_kernel
def _leaf_alpha(state, g, position):
    shift = state.meta[SHIFT]
    return state.leaf[state.group[g, LEAF0] + (position >> shift), KEY_ALPHA, position & ((1 << shift) - 1)]


@inline_kernel
def _set_leaf(state, g, position, alpha, beta):
    """Change the key at a position and repair the tree above it. O(LANES log K) at most, often O(1)."""
    shift, leaf0 = state.meta[SHIFT], state.group[g, LEAF0]
    block, lane = leaf0 + (position >> shift), position & ((1 << shift) - 1)
    state.leaf[block, KEY_ALPHA, lane] = alpha
    state.leaf[block, KEY_BETA, lane] = beta
    replay_path(
        state.leaf,
        state.node,
        leaf0,
        state.first[g],
        state.group[g, LEVELS],
        g,
        shift,
        state.lam[0],
        position,
    )


@inline_kernel
def kinetic_touch(state, arm):
    """The record of `arm` changed. O(1) for an arm of the base, else a path of its tree."""
    if state.group_of.shape[0] != 0:
        # Many small bases: the arm is found in its own sooner than its leaf comes from memory.
        group = state.group[state.group_of[arm]]
        group[DIRTY] = 1
        for j in range(group[BASE0], group[BASE0] + min(group[N_BASE], 4)):
            if state.base[j] == arm:
                return
    g, position = _where(state, arm)
    state.group[g, DIRTY] = 1
    if _leaf_alpha(state, g, position) != ABSENT:
        _set_leaf(state, g, position, state.recs[arm, ALPHA], state.recs[arm, BETA])


@inline_kernel
def kinetic_touch_answer(state, arms, n):
    """The records of all arms of the base changed: one mark, for their weights are in no tree. O(1)."""
    state.meta[PLAYED] = 1


@inline_kernel
def _is_answer(state, arms):
    """Whether `arms` is the base itself, in order. O(D)."""
    if arms.shape[0] != state.meta[N_SORTED]:
        return False
    other = False
    for i in range(arms.shape[0]):
        other |= arms[i] != state.sorted_base[i]
    return not other


@inline_kernel
def _take_winner(state, g, lam):
    """Take the heaviest arm out of group g's tree and list it as added; `_certify` ends this. O(LANES log K)."""
    group, meta = state.group[g], state.meta
    n = meta[N_ADDED]
    state.taken[n] = position = take_winner(
        state.leaf, state.node, group[LEAF0], state.first[g], group[LEVELS], g, meta[SHIFT], lam
    )
    state.added[n] = arm = _arm(state, g, position)
    meta[N_ADDED] = n + 1
    prefetch(state.recs, arm)
    return arm


@inline_kernel
def _certify(state, g, begin, lam):
    """Repair group g's tree after the arms from the begin-th added on were taken out of it."""
    group, n = state.group[g], state.meta[N_ADDED]
    if n > begin:
        certify_paths(
            state.leaf,
            state.node,
            group[LEAF0],
            state.first[g],
            group[LEVELS],
            g,
            state.meta[SHIFT],
            lam,
            state.taken[begin:n],
            n - begin,
        )


@inline_kernel
def _forget(state, arm):
    """Mark an arm that left the base in the sorted answer. O(log D)."""
    answer = state.sorted_base
    lo, size = 0, state.meta[N_SORTED]
    while size > 1:
        half = size >> 1
        # An arm that has left is marked by its complement, so that the order stays known.
        middle = answer[lo + half]
        lo += half if (middle if middle >= 0 else ~middle) <= arm else 0
        size -= half
    answer[lo] = ~arm


@inline_kernel
def _is_quiet(state, g, lam):
    """Whether group g's tree is still right and its full base heavier than all of it. O(capacity).

    So it is with most groups in a late round.
    """
    group, recs = state.group[g], state.recs
    root, lane = state.node[g // LANES], g % LANES
    if root[FAIL, lane] < lam or group[N_BASE] < group[CAPACITY]:
        return False
    top = root[KEY_ALPHA, lane] + lam * root[KEY_BETA, lane]
    for i in range(group[BASE0], group[BASE0] + group[N_BASE]):
        arm = state.base[i]
        if recs[arm, ALPHA] + lam * recs[arm, BETA] <= top:
            return False
    return True


@kernel
def _settle_group(state, g, lam):
    """Make group g's part of the base right at lam. Changes its base and its tree; lists what came and went."""
    group, node, recs, base, meta = state.group, state.node, state.recs, state.base, state.meta
    root, lane = node[g // LANES], g % LANES
    if root[FAIL, lane] < lam:
        refresh(
            state.leaf,
            node,
            group[g, LEAF0],
            state.first[g],
            group[g, LEVELS],
            g,
            meta[SHIFT],
            lam,
            state.stack,
        )
    base0, capacity, n = group[g, BASE0], group[g, CAPACITY], group[g, N_BASE]
    begin = meta[N_ADDED]
    while n < capacity and root[KEY_ALPHA, lane] != ABSENT:
        base[base0 + n] = _take_winner(state, g, lam)
        n += 1
    _certify(state, g, begin, lam)
    group[g, N_BASE] = n
    if n < capacity or _is_quiet(state, g, lam):
        return

    weight = state.weight
    heaviest = -np.inf
    for i in range(n):
        arm = base[base0 + i]
        weight[i] = recs[arm, ALPHA] + lam * recs[arm, BETA]
        heaviest = max(heaviest, weight[i])

    # The i-th lightest base arm meets the i-th heaviest outsider. An arm that left is lighter than every base arm still
    # to be looked at and could not win in the tree, so those that leave go there at the end, all together. Which arms
    # leave for outsiders heavier than the whole base is known only by sorting, and not asked if all of them do.
    members = base[base0 : base0 + n]
    begin, i = meta[N_ADDED], n
    in_order = False
    while i > 0 and root[KEY_ALPHA, lane] != ABSENT:
        w = root[KEY_ALPHA, lane] + lam * root[KEY_BETA, lane]
        if in_order or w <= heaviest:
            if not in_order:
                sort_keys(weight, members, n, state.spare_weight, state.spare_arm, state.bins)
                in_order = True
            if w < weight[i - 1]:
                break
            if w == weight[i - 1] and _arm(state, g, int(root[WINNER, lane])) > members[i - 1]:
                break
        _take_winner(state, g, lam)
        i -= 1
    if i > 0 and not in_order:
        sort_keys(weight, members, n, state.spare_weight, state.spare_arm, state.bins)
    _certify(state, g, begin, lam)
    whole = n - i == meta[N_SORTED]
    for j in range(n - 1, i - 1, -1):
        arm = members[j]
        members[j] = state.added[begin]
        begin += 1
        _set_leaf(state, g, _where(state, arm)[1], recs[arm, ALPHA], recs[arm, BETA])
        if not whole:
            _forget(state, arm)
    if whole:
        meta[N_SORTED] = 0


@inline_kernel
def _hold(state, g, lam):
    """How long group g's base stays right if none of its arms is touched: for groups that rest. O(capacity)."""
    root, lane = state.node[g // LANES], g % LANES
    end, alpha, beta = root[FAIL, lane], root[KEY_ALPHA, lane], root[KEY_BETA, lane]
    n = state.group[g, N_BASE]
    if n < state.group[g, CAPACITY] or alpha == ABSENT:
        return end
    winner = _arm(state, g, int(root[WINNER, lane]))
    base0 = state.group[g, BASE0]
    for i in range(base0, base0 + n):
        arm = state.base[i]
        end = shorten(end, state.recs[arm, ALPHA], state.recs[arm, BETA], alpha, beta, arm < winner, lam)
    return end


@inline_kernel
def _write_sorted(state, out):
    """Bring the sorted answer up to date and copy it to `out`. O(D + s) for s changes."""
    meta, old, added = state.meta, state.sorted_base, state.added
    n_old, n_added = meta[N_SORTED], meta[N_ADDED]
    if n_added == 0:
        for i in range(n_old):
            out[i] = old[i]
        return n_old
    sort_ids(added, n_added, state.spare_arm, state.bins)
    a, n = 0, 0
    for i in range(n_old):
        arm = old[i]
        if arm < 0:
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
    return n


@inline_kernel
def kinetic_select(state, lam, out):
    """The base at lam (not below the last one). Only groups that were touched or whose time is up are settled."""
    state.lam[0] = lam
    played = state.meta[PLAYED]
    state.meta[PLAYED] = 0
    for g in range(state.group.shape[0]):
        group = state.group[g]
        rests = (group[DIRTY] | played) == 0
        if rests and state.holds[g] >= lam:
            continue
        group[DIRTY] = 0
        state.holds[g] = -1.0
        if not _is_quiet(state, g, lam):
            _settle_group(state, g, lam)
        if rests:
            state.holds[g] = _hold(state, g, lam)
    return _write_sorted(state, out)


@kernel
def kinetic_rebuild(state):
    """Read every record again and play all trees. O(K)."""
    shift = state.meta[SHIFT]
    mask = (1 << shift) - 1
    for g in range(state.group.shape[0]):
        leaf0, n = state.group[g, LEAF0], state.group[g, SIZE]
        for p in range(n):
            block = state.leaf[leaf0 + (p >> shift)]
            if block[KEY_ALPHA, p & mask] != ABSENT:
                arm = _arm(state, g, p)
                block[KEY_ALPHA, p & mask] = state.recs[arm, ALPHA]
                block[KEY_BETA, p & mask] = state.recs[arm, BETA]
        build(
            state.leaf, state.node, leaf0, state.first[g], state.group[g, LEVELS], g, n, shift, state.lam[0]
        )
        state.group[g, DIRTY] = 1


@kernel
def kinetic_remove(state, arms):
    """Take present arms out, be they in the base or not. O(D + LANES log K) each."""
    for i in range(arms.shape[0]):
        arm = arms[i]
        g, position = _where(state, arm)
        state.group[g, DIRTY] = 1
        if _leaf_alpha(state, g, position) != ABSENT:
            _set_leaf(state, g, position, ABSENT, 0.0)
            continue
        base0 = state.group[g, BASE0]
        for j in range(base0, base0 + state.group[g, N_BASE]):
            if state.base[j] == arm:
                state.group[g, N_BASE] -= 1
                state.base[j] = state.base[base0 + state.group[g, N_BASE]]
                break
        n = 0
        for j in range(state.meta[N_SORTED]):
            if state.sorted_base[j] != arm:
                state.sorted_base[n] = state.sorted_base[j]
                n += 1
        state.meta[N_SORTED] = n


@kernel
def kinetic_restore(state, arms):
    """Put absent arms back into their trees with the weights in their records. O(LANES log K) each."""
    for i in range(arms.shape[0]):
        arm = arms[i]
        g, position = _where(state, arm)
        state.group[g, DIRTY] = 1
        _set_leaf(state, g, position, state.recs[arm, ALPHA], state.recs[arm, BETA])


@kernel
def kinetic_touch_many(state, arms):
    """Path by path when there are few, one rebuild in O(K) when there are many."""
    if _is_answer(state, arms):
        kinetic_touch_answer(state, arms, arms.shape[0])
    elif arms.shape[0] > state.recs.shape[0] // 16 + 64:
        kinetic_rebuild(state)
    else:
        for i in range(arms.shape[0]):
            kinetic_touch(state, arms[i])


implement_engine(
    KineticState,
    kinetic_select,
    kinetic_touch,
    touch_many=kinetic_touch_many,
    touch_answer=kinetic_touch_answer,
    touch_all=kinetic_rebuild,
    remove=kinetic_remove,
    restore=kinetic_restore,
)


@register_engine(
    "kinetic",
    serves=(Uniform, Partition),
    cost="O(D log D + s log K) a round for s exchanges",
    why="kinetic tournaments are exact at every round and sublinear in K",
    fast_from=8,
)
class KineticEngine(CompiledEngine):
    """Kinetic tournaments for uniform and partition matroids: CUCB's own decisions, sublinear in K.

    `fanout` is the width of the trees (a power of two up to 16). lam must not go down.
    """

    name = "kinetic"
    monotone_clock = True

    def __init__(
        self, matroid: Matroid, records: npt.NDArray[np.void] | None = None, fanout: int = LANES
    ) -> None:
        super().__init__(matroid, records)
        if fanout not in (2, 4, 8, 16):
            raise ParameterError(f"fanout must be 2, 4, 8 or 16, got {fanout}")
        shift = fanout.bit_length() - 1
        arm_of = position_of = group_of = np.zeros(0, dtype=np.int64)
        if isinstance(matroid, Uniform):
            sizes = np.array([self.n_arms], dtype=np.int64)
            capacity = np.array([matroid.rank], dtype=np.int64)
        elif isinstance(matroid, Partition):
            # Groups without arms or capacity are never played: their arms are left out of every tree.
            live = np.bincount(matroid._group, minlength=len(matroid._capacity)) > 0
            renumber = np.cumsum(live) - 1
            group_of = renumber[matroid._group].astype(np.int64)
            capacity = matroid._capacity[live].astype(np.int64)
            sizes = np.bincount(group_of, minlength=len(capacity)).astype(np.int64)
            arm_of = np.argsort(group_of, kind="stable").astype(np.int64)
            position_of = np.empty(self.n_arms, dtype=np.int64)
            position_of[arm_of] = np.arange(self.n_arms) - (np.cumsum(sizes) - sizes)[group_of[arm_of]]
        else:
            raise TypeError(f"KineticEngine serves uniform and partition matroids, got {matroid!r}")

        group = np.zeros((len(sizes), 8), dtype=np.int64)
        shapes = {int(n): tree_shape(int(n), shift) for n in np.unique(sizes)}
        depth = 1 + max(len(levels) for _, levels in shapes.values())
        leaf_blocks = np.array([shapes[int(n)][0] for n in sizes], dtype=np.int64)
        node_blocks = np.array([sum(shapes[int(n)][1]) for n in sizes], dtype=np.int64)
        offsets = {n: np.cumsum([0, *levels])[:-1] for n, (_, levels) in shapes.items()}
        first = np.zeros((len(sizes), depth), dtype=np.int64)
        for g, n in enumerate(sizes):
            first[g, : len(offsets[int(n)])] = offsets[int(n)]
        root_blocks = -(-len(sizes) // LANES)
        first += root_blocks + (np.cumsum(node_blocks) - node_blocks)[:, None]
        group[:, SIZE] = sizes
        group[:, POSITION0] = np.cumsum(sizes) - sizes
        group[:, LEAF0] = np.cumsum(leaf_blocks) - leaf_blocks
        group[:, LEVELS] = [1 + len(shapes[int(n)][1]) for n in sizes]
        group[:, BASE0] = np.cumsum(capacity) - capacity
        group[:, CAPACITY] = capacity
        group[:, DIRTY] = 1
        leaf = absent_leaves(int(leaf_blocks.sum()))
        lanes = np.arange(leaf.shape[0] * fanout).reshape(-1, fanout)
        inside = (
            lanes - lanes[np.repeat(group[:, LEAF0], leaf_blocks), :1]
            < np.repeat(sizes, leaf_blocks)[:, None]
        )
        leaf[:, KEY_ALPHA, :fanout][inside] = 0.0
        rank = matroid.rank
        state = KineticState(
            recs=self._recs,
            leaf=leaf,
            node=absent_nodes(root_blocks + int(node_blocks.sum())),
            first=first,
            group=group,
            holds=np.full(len(group), -1.0),
            arm_of=arm_of,
            position_of=position_of,
            group_of=group_of,
            base=np.zeros(rank, dtype=np.int64),
            sorted_base=np.zeros(rank, dtype=np.int64),
            added=np.zeros(rank, dtype=np.int64),
            taken=np.zeros(rank, dtype=np.int64),
            weight=np.zeros(rank),
            spare_weight=np.zeros(rank),
            spare_arm=np.zeros(rank, dtype=np.int64),
            bins=np.zeros(max(rank + 2, 257), dtype=np.int64),
            stack=np.zeros((LANES * (depth + 1), 3), dtype=np.int64),
            meta=np.array([shift, 0, 0, 0], dtype=np.int64),
            lam=np.zeros(1),
        )
        self._run_on(state)
        self.touch_all()

    def _check(self) -> None:
        s = self._state
        lam, shift = float(s.lam[0]), int(s.meta[SHIFT])
        answer = s.sorted_base[: s.meta[N_SORTED]]
        assert (np.diff(answer) > 0).all() and s.meta[N_ADDED] == 0
        held = [s.base[row[BASE0] : row[BASE0] + row[N_BASE]] for row in s.group]
        assert np.array_equal(np.sort(np.concatenate(held)), answer)
        fan = 1 << shift
        deleted = self._is_deleted(np.arange(self.n_arms))
        for g, row in enumerate(s.group):
            members = s.base[row[BASE0] : row[BASE0] + row[N_BASE]]
            assert len(np.unique(members)) == len(members) <= row[CAPACITY]
            assert not deleted[members].any()
            positions = slice(row[POSITION0], row[POSITION0] + row[SIZE])
            arms = s.arm_of[positions] if len(s.arm_of) else np.arange(self.n_arms)
            assert (np.diff(arms) > 0).all()
            blocks = -(-int(row[SIZE]) // fan)
            keys = s.leaf[row[LEAF0] : row[LEAF0] + blocks, :, :fan].transpose(1, 0, 2).reshape(2, -1)
            keys = keys[:, : row[SIZE]]
            absent = keys[KEY_ALPHA] == ABSENT
            assert np.array_equal(absent, deleted[arms] | np.isin(arms, members))
            assert np.array_equal(keys[KEY_ALPHA][~absent], self._recs[arms[~absent], ALPHA])
            assert np.array_equal(keys[KEY_BETA][~absent], self._recs[arms[~absent], BETA])
            check_tree(s.leaf, s.node, int(row[LEAF0]), s.first[g], g, int(row[SIZE]), shift, lam)
