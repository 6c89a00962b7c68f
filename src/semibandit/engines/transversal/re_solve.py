"""Re-solving a transversal matroid over the base and the best outsiders: at most D + n_right arms are looked at.

Greedy (paper, Section 2) over all arms, heaviest first, but refused arms are hardly ever seen. An arm that is refused
reaches only matched right nodes, and no later arm can change the matching there (see `resolve.greedy`): they are dead.
So the next arm to look at is the next base arm or the heaviest outsider of a right node that is not dead, and each
refusal kills at least one right node. Base arms keep their right node unless an entrant took it.

Bounds come out exact: all arms heavier than the refused arm f reach other right nodes only, so that f is the best
challenger of the base arms matched to the right nodes that f kills.
"""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.sorting import merge_sort
from semibandit.compiled.words import lowest_bit
from semibandit.engines.transversal.best_outsiders import best_outsider
from semibandit.engines.transversal.bits import clear, contains, discard, insert
from semibandit.engines.transversal.matching import augment, enter_base, leave_base, unmatch
from semibandit.engines.transversal.state import SOLVES, beats, open_challengers, weigh
from semibandit.engines.transversal.top_tournament import play_top, replay_top


@kernel
def re_solve(handle):
    """Base, matching and exact bounds by greedy, starting from any independent set as the base.

    O(D log D + n_right^2 / 64) and, for each arm that enters, an augmenting path and O(degree log K).
    """
    state = open_challengers(handle)
    matching, top, solving = state.matching, state.top, state.solving
    state.work[SOLVES] += 1
    n = _vacate(state)
    _sort_base(solving, n)
    root = play_top(top, state.best)
    i, n_picked = 0, 0
    while True:
        at = top.winner[root]
        arm, weight = top.arm[at], top.weight[at]
        is_base = i < n and beats(solving.weight[i], solving.arm[i], weight, arm)
        if is_base:
            arm, weight = solving.arm[i], solving.weight[i]
            i += 1
            r = np.int64(matching.matched_node[arm])
            if contains(matching.free, r):
                discard(matching.free, r)
                solving.picked[n_picked] = arm
                n_picked += 1
                continue
        elif weight == -np.inf:
            break
        elif _renew_key(state, at, arm, weight):
            continue
        reached = augment(handle, arm)
        if reached < 0:
            if not is_base:
                enter_base(handle, arm)
            solving.picked[n_picked] = arm
            n_picked += 1
        else:
            if is_base:
                leave_base(handle, arm)
            _refuse(state, arm, weight, reached)
    _finish(handle, n_picked)


@inline_kernel
def _vacate(state):
    """Free all right nodes, list their arms with weights in the order of the last re-solve; how many there are.

    The arms stay written at their right nodes, where most of them will be matched again.
    """
    solving, bounds = state.solving, state.bounds
    n = 0
    for i in range(solving.order.shape[0]):
        r = solving.order[i]
        arm = state.matching.matched_arm[r]
        bounds.weight[r] = -np.inf
        bounds.arm[r] = -1
        insert(state.matching.free, r)
        if arm >= 0:
            solving.arm[n] = arm
            solving.weight[n] = weigh(state.recs, state.lam, arm)
            n += 1
    return n


@inline_kernel
def _sort_base(solving, n):
    """Sort the listed base arms, heaviest first. By insertion, for the order of the last re-solve is nearly right in
    a quiet state, and by merging if it is not."""
    arm, weight = solving.arm, solving.weight
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
            merge_sort(weight, arm, n, solving.spare_weight, solving.spare_arm)
            return


@inline_kernel
def _renew_key(state, at, arm, weight):
    """Whether the best outsider of right node `at` has entered since its key (weight, arm) was written; if so, the key
    becomes that of the next one."""
    best, top = state.best, state.top
    if best_outsider(best, at) == arm and best.node_weight[at] == weight:
        return False
    top.weight[at] = best.node_weight[at]
    top.arm[at] = best_outsider(best, at)
    replay_top(top, at)
    return True


@inline_kernel
def _refuse(state, arm, weight, n_reached):
    """The right nodes that `arm` reached are dead, and `arm` is the bound of the base arms matched there."""
    top, bounds = state.top, state.bounds
    for j in range(n_reached):
        r = state.search.queue[j]
        insert(state.solving.dead, r)
        bounds.weight[r] = weight
        bounds.arm[r] = arm
        top.weight[r] = -np.inf
        replay_top(top, r)


@inline_kernel
def _finish(handle, n_picked):
    """Note the order of right nodes for the next time and unmatch those that stayed free. O(n_right)."""
    state = open_challengers(handle)
    matching, order = state.matching, state.solving.order
    for i in range(n_picked):
        order[i] = matching.matched_node[state.solving.picked[i]]
    clear(state.solving.dead)
    n = n_picked
    for word in range(matching.free.shape[0]):
        left = matching.free[word]
        while left != 0:
            r = (word << 6) + lowest_bit(left)
            left &= left - 1
            unmatch(handle, r)
            order[n] = r
            n += 1
