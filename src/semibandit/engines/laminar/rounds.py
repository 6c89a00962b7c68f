"""Kernels of the laminar engine: the three steps of a round, and arms that come and go.

What the steps are and why they are exact is in `engines.laminar.engine`.
"""

from __future__ import annotations

from typing import NamedTuple

from semibandit.arms import ALPHA, BETA
from semibandit.compiled.handle import Floats1, Floats2, Ints1
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.lanes import ABSENT
from semibandit.compiled.sorting import merge_sort
from semibandit.engines.answer import N_LISTED, Answer, answer_came, answer_went, went_at, write_answer
from semibandit.engines.kinetic.tournament import KEY_ALPHA, KEY_BETA, WINNER
from semibandit.engines.laminar.tree import (
    CAPACITY,
    PARENT,
    SLOT_BITS,
    SLOT_MASK,
    TOP,
    USED,
    NestedTree,
    catch_up,
    play_all,
    set_gate,
    set_key,
    weight_at,
)

# The key of a slot whose arm takes no part in the tournaments: alpha = ABSENT, and beta tells why.
IN_BASE, GONE = 0.0, -1.0

# Columns of `bar`.
BAR, BAR_ROUND = 0, 1


class LaminarKineticState(NamedTuple):
    """Everything a round needs: the records, the tournaments, and the base, which is `answer`.

    ``bar[v, BAR]`` is the weight of the heaviest challenger in full families around family v, if ``bar[v,
    BAR_ROUND]`` is the current round, number `round_now[0]`. `lam[0]` is the query of the last round. The rest is
    scratch: base arms found improvable with their weights, and space to sort them.
    """

    recs: Floats2
    tree: NestedTree
    answer: Answer
    bar: Floats2
    round_now: Ints1
    lam: Floats1
    found: Ints1
    found_weight: Floats1
    spare_arm: Ints1
    spare_weight: Floats1


@inline_kernel
def _home(state, arm):
    return state.tree.place[arm] >> SLOT_BITS


@inline_kernel
def _key(state, arm, column):
    """KEY_ALPHA or KEY_BETA of an arm's slot."""
    slot = state.tree.place[arm] & SLOT_MASK
    return state.tree.leaf[slot >> 4, column, slot & 15]


@inline_kernel
def _write_key(state, arm, alpha, beta):
    """Change an arm's slot; who does must play the nodes above."""
    slot = state.tree.place[arm] & SLOT_MASK
    state.tree.leaf[slot >> 4, KEY_ALPHA, slot & 15] = alpha
    state.tree.leaf[slot >> 4, KEY_BETA, slot & 15] = beta


@inline_kernel
def laminar_touch(state, arm):
    """The record of `arm` changed. O(1) for an arm of the base, else a path of the tree."""
    if _key(state, arm, KEY_ALPHA) != ABSENT:
        set_key(state.tree, arm, state.recs[arm, ALPHA], state.recs[arm, BETA], state.lam[0])


@inline_kernel
def _count(tree, f, lam):
    """One base arm more in family f. Shuts its gate when it is full."""
    tree.family[f, USED] += 1
    if tree.family[f, USED] == tree.family[f, CAPACITY]:
        set_gate(tree, f, False, lam)


@inline_kernel
def _discount(tree, f, lam):
    """One base arm less in family f. Opens its gate if it was full."""
    tree.family[f, USED] -= 1
    if tree.family[f, USED] == tree.family[f, CAPACITY] - 1:
        set_gate(tree, f, True, lam)


@inline_kernel
def _fill(state, lam):
    """Step 1. Let arms enter that no full family holds back. Changes the tree; notes that they came."""
    tree = state.tree
    root = tree.link.shape[0] - 1
    while tree.node[root >> 4, KEY_ALPHA, root & 15] != ABSENT:
        arm = int(tree.node[root >> 4, WINNER, root & 15])
        f = _home(state, arm)
        while f > 0:
            _count(tree, f, lam)
            f = tree.family[f, PARENT]
        set_key(tree, arm, ABSENT, IN_BASE, lam)
        answer_came(state.answer, arm)


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
    """Step 2. Base arms not heavier than every challenger around them, lightest last. Returns how many.

    Those that came in step 1 need no look: (c).
    """
    recs, bar, tree = state.recs, state.bar, state.tree
    state.round_now[0] += 1
    now = float(state.round_now[0])
    base, found, weight = state.answer.listed, state.found, state.found_weight
    n = 0
    for i in range(state.answer.size[N_LISTED]):
        arm = base[i]
        if arm < 0:  # it was deleted
            continue
        w = recs[arm, ALPHA] + lam * recs[arm, BETA]
        f = _home(state, arm)
        if bar[f, BAR_ROUND] == now:
            high = bar[f, BAR]
        else:
            high = _raise_bar(tree.node, tree.family, bar, tree.queue, f, now, lam)
        if not w > high:
            found[n] = arm
            weight[n] = w
            n += 1
    merge_sort(weight, found, n, state.spare_weight, state.spare_arm)
    return n


@inline_kernel
def _challenger(state, arm, lam):
    """The heaviest arm that can replace the base arm `arm`, and its weight; -1 if there is none. O(depth)."""
    node, family = state.tree.node, state.tree.family
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
    """Step 3, one exchange. Changes the tree and its gates; notes both arms. O(depth fanout log K).

    The leaver goes into its tournament before its families open, and the entrant's families are shut before it
    goes out of its own, so that no gate shows an arm in passing.
    """
    tree, recs = state.tree, state.recs
    set_key(tree, leaver, recs[leaver, ALPHA], recs[leaver, BETA], lam)
    down, up = _home(state, leaver), _home(state, entrant)
    while down != up:  # an outer family has the smaller number
        if down > up:
            _discount(tree, down, lam)
            down = tree.family[down, PARENT]
        else:
            _count(tree, up, lam)
            up = tree.family[up, PARENT]
    set_key(tree, entrant, ABSENT, IN_BASE, lam)
    answer_came(state.answer, entrant)
    answer_went(state.answer, leaver)


@inline_kernel
def laminar_select(state, lam, out):
    """The base at lam (not below the last one), by filling and exchanging. Changes the whole state and `out`."""
    catch_up(state.tree, lam)
    state.lam[0] = lam
    _fill(state, lam)
    found, weight = state.found, state.found_weight
    for i in range(_find(state, lam) - 1, -1, -1):
        rival, w = _challenger(state, found[i], lam)
        if rival >= 0 and (w > weight[i] or (w == weight[i] and rival < found[i])):
            _exchange(state, found[i], rival, lam)
    return write_answer(state.answer, out)


@kernel
def laminar_touch_all(state):
    """Read the records of all arms in the tournaments again and play them all. O(K + F)."""
    for arm in range(state.recs.shape[0]):
        if _key(state, arm, KEY_ALPHA) != ABSENT:
            _write_key(state, arm, state.recs[arm, ALPHA], state.recs[arm, BETA])
    play_all(state.tree, state.lam[0])


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
            _write_key(state, arm, alpha, beta)
        else:
            set_key(state.tree, arm, alpha, beta, lam)
    if many:
        play_all(state.tree, lam)


@kernel
def laminar_remove(state, arms):
    """Take present arms out, be they in the base or not. O(D + depth fanout log K an arm)."""
    _set_keys(state, arms, True)
    answer = state.answer
    for i in range(answer.size[N_LISTED]):
        arm = answer.listed[i]
        if arm < 0 or _key(state, arm, KEY_BETA) != GONE:
            continue
        went_at(answer, i)
        f = _home(state, arm)
        while f > 0:
            _discount(state.tree, f, state.lam[0])
            f = state.tree.family[f, PARENT]


@kernel
def laminar_restore(state, arms):
    """Put absent arms back with the weights in their records. O(depth fanout log K an arm)."""
    _set_keys(state, arms, False)


@kernel
def laminar_touch_many(state, arms):
    """Path by path when there are few, one rebuild in O(K) when there are many."""
    if arms.shape[0] > state.recs.shape[0] // 16 + 64:
        laminar_touch_all(state)
    else:
        for i in range(arms.shape[0]):
            laminar_touch(state, arms[i])
