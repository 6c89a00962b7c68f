"""Kernels of the kinetic engine: a round, and arms that change, go and come back.

What a round does and costs is said in `engines.kinetic.engine`.
"""

from __future__ import annotations

import numpy as np

from semibandit.arms import ALPHA, BETA
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.lanes import ABSENT, LANES
from semibandit.compiled.memory import prefetch
from semibandit.compiled.sorting import sort_keys
from semibandit.engines.answer import (
    N_CAME,
    N_LISTED,
    all_went,
    answer_came,
    answer_went,
    is_answer,
    write_answer,
)
from semibandit.engines.kinetic.state import (
    BASE0,
    CAPACITY,
    DIRTY,
    LEAF0,
    N_BASE,
    POSITION0,
    SIZE,
    tree_of,
)
from semibandit.engines.kinetic.tournament import (
    FAIL,
    KEY_ALPHA,
    KEY_BETA,
    WINNER,
    build,
    certify_paths,
    refresh,
    replay_path,
    shorten,
    take_winner,
)

# -- arms and leaves ---------------------------------------------------------------------------------------------


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
def _is_in_tree(state, g, position):
    """Whether the arm at a position takes part in the tournament: it is neither in the base nor deleted."""
    block, lane = state.group[g, LEAF0] + (position >> state.shift), position & ((1 << state.shift) - 1)
    return state.leaf[block, KEY_ALPHA, lane] != ABSENT


@inline_kernel
def _set_leaf(state, g, position, alpha, beta):
    """Change the key at a position and repair the tree above it. O(LANES log K) at most, often O(1)."""
    block, lane = state.group[g, LEAF0] + (position >> state.shift), position & ((1 << state.shift) - 1)
    state.leaf[block, KEY_ALPHA, lane] = alpha
    state.leaf[block, KEY_BETA, lane] = beta
    replay_path(tree_of(state, g), state.lam[0], position)


# -- records that changed ----------------------------------------------------------------------------------------


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
    if _is_in_tree(state, g, position):
        _set_leaf(state, g, position, state.recs[arm, ALPHA], state.recs[arm, BETA])


@inline_kernel
def kinetic_touch_answer(state, arms, n):
    """The records of all arms of the base changed: one mark, for their weights are in no tree. O(1)."""
    state.played[0] = 1


@kernel
def kinetic_touch_all(state):
    """Read every record again and play all trees. O(K)."""
    mask = (1 << state.shift) - 1
    for g in range(state.group.shape[0]):
        leaf0, n = state.group[g, LEAF0], state.group[g, SIZE]
        for p in range(n):
            block = state.leaf[leaf0 + (p >> state.shift)]
            if block[KEY_ALPHA, p & mask] != ABSENT:
                arm = _arm(state, g, p)
                block[KEY_ALPHA, p & mask] = state.recs[arm, ALPHA]
                block[KEY_BETA, p & mask] = state.recs[arm, BETA]
        build(tree_of(state, g), n, state.lam[0])
        state.group[g, DIRTY] = 1


@kernel
def kinetic_touch_many(state, arms):
    """Path by path when there are few, one rebuild in O(K) when there are many."""
    if is_answer(state.answer, arms):
        kinetic_touch_answer(state, arms, arms.shape[0])
    elif arms.shape[0] > state.recs.shape[0] // 16 + 64:
        kinetic_touch_all(state)
    else:
        for i in range(arms.shape[0]):
            kinetic_touch(state, arms[i])


# -- a round -----------------------------------------------------------------------------------------------------


@inline_kernel
def _take_winner(state, g, lam):
    """Take the heaviest arm out of group g's tree and note that it came; `_certify` ends this. O(LANES log K)."""
    position = take_winner(tree_of(state, g), lam)
    arm = _arm(state, g, position)
    state.taken[answer_came(state.answer, arm)] = position
    prefetch(state.recs, arm)
    return arm


@inline_kernel
def _certify(state, g, begin, lam):
    """Repair group g's tree after the arms from the begin-th that came on were taken out of it."""
    end = state.answer.size[N_CAME]
    if end > begin:
        certify_paths(tree_of(state, g), lam, state.taken[begin:end], end - begin)


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


@inline_kernel
def _fill(state, g, lam):
    """Let the heaviest outsiders into group g's base until it is full or there is none left."""
    root, lane = state.node[g // LANES], g % LANES
    base0, capacity, n = state.group[g, BASE0], state.group[g, CAPACITY], state.group[g, N_BASE]
    begin = state.answer.size[N_CAME]
    while n < capacity and root[KEY_ALPHA, lane] != ABSENT:
        state.base[base0 + n] = _take_winner(state, g, lam)
        n += 1
    _certify(state, g, begin, lam)
    state.group[g, N_BASE] = n


@inline_kernel
def _exchange(state, g, lam):
    """Let outsiders that are heavier than the lightest arms of group g's full base take their places."""
    recs, weight, answer = state.recs, state.weight, state.answer
    root, lane = state.node[g // LANES], g % LANES
    base0, n = state.group[g, BASE0], state.group[g, N_BASE]
    members = state.base[base0 : base0 + n]
    heaviest = -np.inf
    for i in range(n):
        arm = members[i]
        weight[i] = recs[arm, ALPHA] + lam * recs[arm, BETA]
        heaviest = max(heaviest, weight[i])

    # The i-th lightest base arm meets the i-th heaviest outsider. An arm that left is lighter than every base arm still
    # to be looked at and could not win in the tree, so those that leave go there at the end, all together. Which arms
    # leave for outsiders heavier than the whole base is known only by sorting, and not asked if all of them do.
    begin, i = answer.size[N_CAME], n
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
    whole = n - i == answer.size[N_LISTED]
    for j in range(n - 1, i - 1, -1):
        arm = members[j]
        members[j] = answer.came[begin]
        begin += 1
        _set_leaf(state, g, _where(state, arm)[1], recs[arm, ALPHA], recs[arm, BETA])
        if not whole:
            answer_went(answer, arm)
    if whole:
        all_went(answer)


@kernel
def _settle_group(state, g, lam):
    """Make group g's part of the base right at lam. Changes its base and its tree; notes what came and went."""
    if state.node[g // LANES, FAIL, g % LANES] < lam:
        refresh(tree_of(state, g), lam, state.stack)
    _fill(state, g, lam)
    if state.group[g, N_BASE] == state.group[g, CAPACITY] and not _is_quiet(state, g, lam):
        _exchange(state, g, lam)


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
def kinetic_select(state, lam, out):
    """The base at lam (not below the last one). Only groups that were touched or whose time is up are settled."""
    state.lam[0] = lam
    played = state.played[0]
    state.played[0] = 0
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
    return write_answer(state.answer, out)


# -- arms that go and come back ----------------------------------------------------------------------------------


@kernel
def kinetic_remove(state, arms):
    """Take present arms out, be they in the base or not. O(capacity + LANES log K) each."""
    for i in range(arms.shape[0]):
        arm = arms[i]
        g, position = _where(state, arm)
        state.group[g, DIRTY] = 1
        if _is_in_tree(state, g, position):
            _set_leaf(state, g, position, ABSENT, 0.0)
            continue
        base0 = state.group[g, BASE0]
        for j in range(base0, base0 + state.group[g, N_BASE]):
            if state.base[j] == arm:
                state.group[g, N_BASE] -= 1
                state.base[j] = state.base[base0 + state.group[g, N_BASE]]
                break
        answer_went(state.answer, arm)


@kernel
def kinetic_restore(state, arms):
    """Put absent arms back into their trees with the weights in their records. O(LANES log K) each."""
    for i in range(arms.shape[0]):
        arm = arms[i]
        g, position = _where(state, arm)
        state.group[g, DIRTY] = 1
        _set_leaf(state, g, position, state.recs[arm, ALPHA], state.recs[arm, BETA])
