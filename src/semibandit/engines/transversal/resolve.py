"""Re-solving a transversal matroid over the base and the tops of right nodes: at most D + n_right arms are looked at.

Greedy (paper, Section 2) over all arms, heaviest first, but refused arms are hardly ever seen. An arm that is refused
reaches only matched right nodes, and no later arm can change the matching there (see `resolve_greedy`): they are dead.
So the next arm to look at is the next base arm or the heaviest outsider of a right node that is not dead, and each
refusal kills at least one right node. Base arms keep their right node unless an entrant took it.

Bounds come out exact: all arms heavier than the refused arm f reach other right nodes only, so that f is the best
challenger of the base arms matched to the right nodes that f kills.
"""

from __future__ import annotations

import numpy as np

from semibandit.compiled.sorting import merge_sort
from semibandit.engines.transversal.matching import (
    BOUND,
    BOUND_ARM,
    CROWN,
    DEAD,
    FREE,
    KEY,
    KEY_WEIGHT,
    MATE,
    NAMES,
    ORDER,
    QUEUE,
    SOLVES,
    WORK,
    WORK_WEIGHT,
    augment,
    beats,
    enter,
    leave,
    open_challenger,
    unseat,
    weigh,
)
from semibandit.engines.transversal.tops import crown_build, crown_fall, inner


@inner
def _vacate(handle):
    """Free all right nodes and list their arms, heaviest first, in WORK and WORK_WEIGHT; how many there are.

    The arms stay written at their right nodes, where most of them will sit again. The order of the last re-solve is
    nearly right in a quiet state: insertion, and a merge sort if it is not.
    """
    state = open_challenger(handle)
    right, weights, bits = state.right, state.weights, state.bits
    arm, weight, order = state.lists[WORK], weights[WORK_WEIGHT], state.lists[ORDER]
    n = 0
    for i in range(right.shape[0]):
        r = order[i]
        a = right[r, MATE]
        right[r, BOUND_ARM] = -1
        weights[BOUND, r] = -np.inf
        bits[FREE, r >> 6] |= np.int64(1) << (r & 63)
        if a >= 0:
            arm[n] = a
            weight[n] = weigh(state.recs, state.lam, a)
            n += 1
    moves = 0
    for i in range(1, n):
        w, a = weight[i], arm[i]
        j = i - 1
        while j >= 0 and beats(w, a, weight[j], arm[j]):
            weight[j + 1] = weight[j]
            arm[j + 1] = arm[j]
            j -= 1
        weight[j + 1] = w
        arm[j + 1] = a
        moves += i - 1 - j
        if moves > 4 * n:
            merge_sort(weight, arm, n, weights[KEY_WEIGHT], state.lists[KEY])
            break
    return n


@inner
def tops_resolve(handle):
    """Base, matching and exact bounds by greedy, starting from any independent set as the base.

    O(D log D + n_right^2 / 64) and, for each arm that enters, an augmenting path and O(degree log K).
    """
    state = open_challenger(handle)
    right, weights, bits, host, lists = (
        state.right,
        state.weights,
        state.bits,
        state.host,
        state.lists,
    )
    node_weight, node_slot, arm_of = state.node_weight, state.node_slot, state.arm_of
    crown, names, key_arm, key_weight = (
        lists[CROWN],
        lists[NAMES],
        lists[KEY],
        weights[KEY_WEIGHT],
    )
    n_right = right.shape[0]
    state.meta[SOLVES] += 1
    n = _vacate(handle)
    # Keys may be heavier than what they stand for: outsiders that entered are noticed when their key wins.
    for r in range(n_right):
        key_weight[r] = node_weight[r]
        key_arm[r] = arm_of[node_slot[r]] if node_weight[r] > -np.inf else -1
    winner = crown_build(crown, names, key_weight, key_arm)
    i, kept = 0, 0
    while True:
        at = crown[winner]
        arm, weight = key_arm[at], key_weight[at]
        is_base = i < n and beats(weights[WORK_WEIGHT, i], lists[WORK, i], weight, arm)
        if is_base:
            arm, weight = lists[WORK, i], weights[WORK_WEIGHT, i]
            i += 1
            r = np.int64(host[arm])
            if (bits[FREE, r >> 6] >> (r & 63)) & 1:
                bits[FREE, r >> 6] &= ~(np.int64(1) << (r & 63))
                lists[ORDER, kept] = arm
                kept += 1
                continue
        elif weight == -np.inf:
            break
        elif arm_of[node_slot[at]] != arm or node_weight[at] != weight:
            key_weight[at] = node_weight[at]
            key_arm[at] = arm_of[node_slot[at]]
            crown_fall(crown, names, key_weight, key_arm, at)
            continue
        reached = augment(handle, arm)
        if reached < 0:
            if not is_base:
                enter(handle, arm)
            lists[ORDER, kept] = arm
            kept += 1
            continue
        if is_base:
            leave(handle, arm)
        for j in range(reached):
            r = lists[QUEUE, j]
            bits[DEAD, r >> 6] |= np.int64(1) << (r & 63)
            weights[BOUND, r] = weight
            right[r, BOUND_ARM] = arm
            key_weight[r] = -np.inf
            crown_fall(crown, names, key_weight, key_arm, r)
    for i in range(kept):
        lists[ORDER, i] = host[lists[ORDER, i]]
    for word in range(bits.shape[1]):
        bits[DEAD, word] = 0
        if bits[FREE, word] != 0:
            for r in range(word << 6, min((word + 1) << 6, n_right)):
                if (bits[FREE, word] >> (r & 63)) & 1:
                    unseat(state.indptr, state.edge, bits, right, r)
                    lists[ORDER, kept] = r
                    kept += 1
