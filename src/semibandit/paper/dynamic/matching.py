"""Kernels of the dynamic vertex-weighted matching (see `transversal` for what they are for).

The bipartite graph is given as ``indices[indptr[arm] : indptr[arm + 1]]``, the right nodes next to each arm; EDGE p
is entry p of `indices`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semibandit.compiled.handle import Floats1, Ints1, Shorts1
from semibandit.compiled.jit import kernel
from semibandit.paper.dynamic.order import NOBODY, ahead, play_all, replay


class Matching(NamedTuple):
    """A base, its matching, and for each right node the heaviest of its rejected neighbours.

    Arms: `matched_node` (-1 outside the base), `place` in `members`, the base (-1 outside it).
    Right nodes: `matched_arm` (-1 if free), `offset` of the node's tournament in `champions`, `first` edge of a base
    arm; `came_from` and `seen` are scratch of searches, `seen` all 0 between them.
    Edges: the arm that is its `owner`; `slot`, its node in the tournament; `after` and `before`, the list of edges of
    base arms at a right node.
    """

    weight: Floats1
    indptr: Ints1
    indices: Ints1
    matched_node: Ints1
    place: Ints1
    members: Ints1
    matched_arm: Ints1
    offset: Ints1
    first: Ints1
    came_from: Ints1
    seen: Ints1
    owner: Shorts1
    slot: Shorts1
    after: Shorts1
    before: Shorts1
    champions: Shorts1
    queue: Ints1


@kernel
def _link(m, arm):
    """Put the edges of a base arm on the lists of its right nodes. O(degree)."""
    for p in range(m.indptr[arm], m.indptr[arm + 1]):
        r = m.indices[p]
        after = m.first[r]
        m.after[p] = after
        m.before[p] = -1
        if after >= 0:
            m.before[after] = p
        m.first[r] = p


@kernel
def _unlink(m, arm):
    """Undo `_link`. O(degree)."""
    for p in range(m.indptr[arm], m.indptr[arm + 1]):
        after, before = m.after[p], m.before[p]
        if after >= 0:
            m.before[after] = before
        if before >= 0:
            m.after[before] = after
        else:
            m.first[m.indices[p]] = after
        m.after[p] = -1
        m.before[p] = -1


@kernel
def _present(m, arm, who):
    """Let `who` (the arm, or NOBODY) stand at the arm's places in the tournaments. O(degree log K)."""
    for p in range(m.indptr[arm], m.indptr[arm + 1]):
        offset, slot = m.offset[m.indices[p]], np.int64(m.slot[p])
        m.champions[offset + slot] = who
        replay(m.champions, m.weight, arm, offset, slot)


@kernel
def _pair(m, arm, r):
    m.matched_arm[r] = arm
    m.matched_node[arm] = r


@kernel
def _shift(m, arm, r):
    """Match `arm` at the other end of the path by which a search from it came to r: all on it move by one. O(path)."""
    while m.came_from[r] >= 0:
        source = m.came_from[r]
        _pair(m, m.matched_arm[source], r)
        r = source
    _pair(m, arm, r)


@kernel
def _visit(m, arm, source, size):
    """Append the right nodes next to `arm` that were not seen to the queue; its new size. O(degree)."""
    for p in range(m.indptr[arm], m.indptr[arm + 1]):
        r = m.indices[p]
        if m.seen[r] == 0:
            m.seen[r] = 1
            m.came_from[r] = source
            m.queue[size] = r
            size += 1
    return size


@kernel
def _forget(m, size):
    for i in range(size):
        m.seen[m.queue[i]] = 0


@kernel
def _replace_fallen(m, arm):
    """Search backwards from base arm `arm` for the heaviest arm that can replace it, and rematch.

    Returns the arm that comes in, or NOBODY. Changes the matching.
    """
    start = m.matched_node[arm]
    m.queue[0] = start
    m.seen[start] = 1
    size = 1
    best = np.int64(NOBODY)
    at = np.int64(-1)
    i = 0
    while i < size:
        r = m.queue[i]
        i += 1
        rival = np.int64(m.champions[m.offset[r] + 1])
        if rival >= 0 and (best < 0 or ahead(m.weight, rival, best)):
            best = rival
            at = r
        p = m.first[r]
        while p >= 0:
            q = m.matched_node[m.owner[p]]
            if m.seen[q] == 0:
                m.seen[q] = 1
                m.came_from[q] = r
                m.queue[size] = q
                size += 1
            p = np.int64(m.after[p])
    _forget(m, size)
    if best < 0 or not ahead(m.weight, best, arm):
        return np.int64(NOBODY)
    mover, r = best, at
    while True:
        displaced = m.matched_arm[r]
        _pair(m, mover, r)
        if displaced == arm:
            break
        mover = displaced
        r = m.came_from[r]
    m.matched_node[arm] = -1
    return best


@kernel
def _displace_lightest(m, arm):
    """Search forwards from rejected arm `arm` for the lightest base arm it can replace, and rematch.

    Returns the arm that goes out, or NOBODY. Changes the matching.
    """
    lightest = np.int64(NOBODY)
    at = np.int64(-1)
    size = _visit(m, arm, -1, 0)
    i = 0
    while i < size:
        # Every right node reached is matched: a free one would make the base larger.
        source = m.queue[i]
        i += 1
        mover = m.matched_arm[source]
        if lightest < 0 or ahead(m.weight, lightest, mover):
            lightest = mover
            at = source
        size = _visit(m, mover, source, size)
    _forget(m, size)
    if lightest < 0 or not ahead(m.weight, arm, lightest):
        return np.int64(NOBODY)
    _shift(m, arm, at)
    m.matched_node[lightest] = -1
    return lightest


@kernel
def _exchange(m, leaver, entrant):
    """Make tournaments, lists and members follow an exchange. O(degrees log K)."""
    _present(m, entrant, np.int64(NOBODY))
    _link(m, entrant)
    _unlink(m, leaver)
    _present(m, leaver, leaver)
    place = m.place[leaver]
    m.place[leaver] = -1
    m.place[entrant] = place
    m.members[place] = entrant


@kernel
def set_weights(m, arms, weights):
    """Give arms new weights, one after the other; how many exchanges that took."""
    count = 0
    for i in range(arms.shape[0]):
        arm, old, new = arms[i], m.weight[arms[i]], weights[i]
        m.weight[arm] = new
        if m.matched_node[arm] >= 0:
            if new < old:
                entrant = _replace_fallen(m, arm)
                if entrant >= 0:
                    _exchange(m, arm, entrant)
                    count += 1
        else:
            leaver = _displace_lightest(m, arm) if new > old else np.int64(NOBODY)
            if leaver >= 0:
                _exchange(m, leaver, arm)
                count += 1
            elif new != old:
                _present(m, arm, arm)
    return count


@kernel
def _match(m, arm):
    """Match an arm that can be matched besides those that are, along an augmenting path. O(E)."""
    size = _visit(m, arm, -1, 0)
    i = 0
    while m.matched_arm[m.queue[i]] >= 0:
        size = _visit(m, m.matched_arm[m.queue[i]], m.queue[i], size)
        i += 1
    _forget(m, size)
    _shift(m, arm, m.queue[i])


@kernel
def plant(m):
    """Fill everything but graph, weights, members and `offset`, where the base is `members`. O(edges + D E)."""
    n_right = m.offset.shape[0]
    m.matched_node[:] = -1
    m.place[:] = -1
    m.matched_arm[:] = -1
    m.first[:] = -1
    m.seen[:] = 0
    m.champions[:] = NOBODY
    m.came_from[:] = 0  # of each right node: edges so far
    for p in range(m.indices.shape[0]):
        m.came_from[m.indices[p]] += 1
    # The places of a tournament come after its inner nodes, of which there are as many.
    for arm in range(m.indptr.shape[0] - 1):
        for p in range(m.indptr[arm], m.indptr[arm + 1]):
            r = m.indices[p]
            m.owner[p] = arm
            m.after[p] = -1
            m.before[p] = -1
            m.slot[p] = m.came_from[r]
            m.came_from[r] += 1
            m.champions[m.offset[r] + m.slot[p]] = arm
    for r in range(n_right):
        m.queue[r] = m.came_from[r] // 2  # the degree
    for j in range(m.members.shape[0]):
        for p in range(m.indptr[m.members[j]], m.indptr[m.members[j] + 1]):
            m.champions[m.offset[m.indices[p]] + m.slot[p]] = NOBODY
    for r in range(n_right):
        play_all(m.champions, m.weight, m.offset[r], m.queue[r])
    for j in range(m.members.shape[0]):
        _match(m, m.members[j])
        _link(m, m.members[j])
        m.place[m.members[j]] = j
