"""A round of the grouped engine: the best base at any query, of either sign.

In a group all weights are ``alpha + lam * beta`` with one beta, so the order by alpha is the order by weight at every
lam. The D heaviest arms of a class are found by merging its groups: those whose first arm is among the D heaviest first
arms compete, and each arm taken makes room for the next of its group.

Adding the same number to two different floats may round to one float. Then arms of one group tie in weight although
their alphas differ, and the smaller id may stand behind. That matters only where a base ends amid such a tie, which is
looked for in every round that ends in a tie; the arms of that weight are then picked by going through all.
"""

from __future__ import annotations

import numpy as np

from semibandit.arms import ALPHA, BETA
from semibandit.compiled.jit import kernel
from semibandit.compiled.sorting import heap_offer, heap_sink, sort_ids_in_place
from semibandit.engines.grouped.groups import class_of, enter, find, leave
from semibandit.engines.grouped.state import (
    AFTER,
    BEFORE,
    CLASS,
    FIRST,
    G_ALPHA,
    G_BETA,
    K_ALPHA,
    K_BETA,
    LIVE,
    ROOT,
)
from semibandit.engines.grouped.treap import neighbour


@kernel
def _choose_groups(s, lam):
    """For each class the heaviest first arms of its groups, as many as it may have arms. O(groups + D log D)."""
    weight, arm, start, size = s.heap_weight, s.heap_arm, s.start, s.size
    size[:] = 0
    s.passed[:] = -np.inf
    for g in range(s.meta[LIVE]):
        c = s.group[g, CLASS]
        f, room = start[c], start[c + 1] - start[c]
        if room == 0:
            continue
        w = s.best[g, G_ALPHA] + lam * s.best[g, G_BETA]
        if size[c] == room and w < weight[f]:
            s.passed[c] = max(s.passed[c], w)
            continue
        a = s.group[g, FIRST]
        if size[c] < room:
            size[c] = heap_offer(weight, arm, f, size[c], room, w, a)
        elif w > weight[f] or a < arm[f]:
            s.passed[c] = max(s.passed[c], weight[f])
            weight[f], arm[f] = w, a
            heap_sink(weight, arm, f, room, 0)
        else:
            s.passed[c] = max(s.passed[c], w)


@kernel
def _merge_groups(s, c, lam, out, n):
    """Write the heaviest arms of class c from out[n] on; how many there are then, and the weight of the last of them.

    O(D log K). Changes the candidates of c: what is left of them are the next arms of their groups.
    """
    weight, arm, f = s.heap_weight, s.heap_arm, s.start[c]
    m, room = s.size[c], s.start[c + 1] - s.start[c]
    # With both signs changed the lightest, and of equals the largest arm, is what comes first.
    for i in range(f, f + m):
        weight[i] = -weight[i]
        arm[i] = -arm[i]
    for i in range(m // 2 - 1, -1, -1):
        heap_sink(weight, arm, f, m, i)
    last = np.inf
    taken = 0
    while taken < room and m > 0:
        a = -arm[f]
        last = -weight[f]
        out[n] = a
        n += 1
        taken += 1
        beta = s.key[a, K_BETA]
        g = s.table[find(s, c, beta)] - 1
        then = neighbour(s.key, s.child, s.group[g, ROOT], s.key[a, K_ALPHA], a, AFTER)
        if then >= 0:
            weight[f] = -(s.key[then, K_ALPHA] + lam * beta)
            arm[f] = -then
        else:
            m -= 1
            weight[f] = weight[f + m]
            arm[f] = arm[f + m]
        if m > 0:
            heap_sink(weight, arm, f, m, 0)
    s.size[c] = m
    return n, last


@kernel
def _differ(s, g, alpha, lam, w):
    """Whether group g has arms of weight w, which `alpha` gives, with another alpha. Expected O(log K)."""
    root, beta = s.group[g, ROOT], s.best[g, G_BETA]
    # All arms of this alpha stand between these two.
    one = neighbour(s.key, s.child, root, alpha, -1, BEFORE)
    if one >= 0 and s.key[one, K_ALPHA] + lam * beta == w:
        return True
    two = neighbour(s.key, s.child, root, alpha, s.recs.shape[0], AFTER)
    return two >= 0 and s.key[two, K_ALPHA] + lam * beta == w


@kernel
def _is_unsure(s, c, lam, out, begin, n, w):
    """Whether arms left out tie with the last of out[begin:n], of weight w, and a group of class c mixes alphas there.

    O(1) where nothing ties; else O(groups + D log K).
    """
    f, m = s.start[c], s.size[c]
    if not (s.passed[c] == w or (m > 0 and -s.heap_weight[f] == w)) or w == np.inf:
        return False
    for g in range(s.meta[LIVE]):
        if s.group[g, CLASS] == c and s.best[g, G_ALPHA] + lam * s.best[g, G_BETA] == w:
            if _differ(s, g, s.best[g, G_ALPHA], lam, w):
                return True
    for i in range(n - begin + m):
        a = out[begin + i] if i < n - begin else -s.heap_arm[f + i - (n - begin)]
        alpha, beta = s.key[a, K_ALPHA], s.key[a, K_BETA]
        if alpha + lam * beta == w and _differ(s, s.table[find(s, c, beta)] - 1, alpha, lam, w):
            return True
    return False


@kernel
def _pick_by_id(s, c, lam, out, begin, n, w):
    """Let those of out[begin:n] that weigh w be the smallest ids of that weight in class c. O(K)."""
    kept = begin
    for i in range(begin, n):
        if s.key[out[i], K_ALPHA] + lam * s.key[out[i], K_BETA] != w:
            out[kept] = out[i]
            kept += 1
    arm = 0
    while kept < n:
        if s.present[arm] and class_of(s, arm) == c and s.key[arm, K_ALPHA] + lam * s.key[arm, K_BETA] == w:
            out[kept] = arm
            kept += 1
        arm += 1


@kernel
def grouped_select(s, lam, out):
    """Merge the groups of every class. O(groups + D log K). Changes the candidates and `out`."""
    _choose_groups(s, lam)
    n = 0
    for c in range(s.size.shape[0]):
        if s.size[c] == 0:
            continue
        begin = n
        n, w = _merge_groups(s, c, lam, out, begin)
        if _is_unsure(s, c, lam, out, begin, n, w):
            _pick_by_id(s, c, lam, out, begin, n, w)
    sort_ids_in_place(out, n)
    return n


@kernel
def grouped_touch(s, arm):
    """Move an arm to where its record belongs. Expected O(log K)."""
    if not s.present[arm]:
        return
    if s.key[arm, K_ALPHA] != s.recs[arm, ALPHA] or s.key[arm, K_BETA] != s.recs[arm, BETA]:
        leave(s, arm)
        enter(s, arm)


@kernel
def grouped_remove(s, arms):
    """Take present arms out. Expected O(log K) each."""
    for i in range(arms.shape[0]):
        leave(s, arms[i])


@kernel
def grouped_restore(s, arms):
    """Put absent arms back. Expected O(log K) each."""
    for i in range(arms.shape[0]):
        enter(s, arms[i])
