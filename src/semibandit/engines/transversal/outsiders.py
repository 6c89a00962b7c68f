"""The outsiders of greedy, in a lazy order whose front has holes and tags: the right nodes next to each arm."""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.engines.order.holes import come, pass_holes, write_tags
from semibandit.engines.order.lazy import FRONT, HEAD, add_unsorted, begin_anew, end_unsorted, extend_front
from semibandit.engines.transversal.greedy_state import open_greedy
from semibandit.engines.transversal.state import OUTSIDER, weigh


@inline_kernel
def has_edges(state, arm):
    return state.indptr[arm] < state.indptr[arm + 1]


@kernel
def order_anew(handle):
    """All outsiders at lam, unsorted; loops are left out. O(K)."""
    state = open_greedy(handle)
    begin_anew(state.order)
    state.holes.number[0] = 0
    node = state.matched_node
    for arm in range(node.shape[0]):
        if node[arm] == OUTSIDER and has_edges(state, arm):
            add_unsorted(state.order, arm, weigh(state.recs, state.lam, arm))
    end_unsorted(state.order)
    state.stale[0] = False


@kernel
def extend(handle):
    """More entries for the front; False if there are none."""
    state = open_greedy(handle)
    if not extend_front(state.order):
        return False
    write_tags(state.order, state.holes)
    return True


@inline_kernel
def is_loose(state, i, before):
    """Whether entry i of the order does not count; `before` is the arm that was met last. O(1)."""
    order = state.order
    arm = order.arm[i]
    if order.loose[arm] == 0:
        return False
    if (
        state.matched_node[arm] == OUTSIDER
        and arm != before
        and order.weight[i] == weigh(state.recs, state.lam, arm)
    ):
        return False
    order.loose[arm] -= 1
    return True


@inline_kernel
def first_outsider(handle, state):
    """The place of the heaviest outsider in the order, -1 if there is none. Drops loose entries. O(1) amortised."""
    order = state.order
    at = order.at
    while True:
        pass_holes(order, state.holes)
        if at[HEAD] == at[FRONT] and not extend(handle):
            return np.int64(-1)
        if not is_loose(state, at[HEAD], -1):
            return at[HEAD]
        at[HEAD] += 1


@kernel
def join(handle, arm):
    """Let an outsider wait in the order; loops do not. O(log K), and in the front O(its length)."""
    state = open_greedy(handle)
    order = state.order
    if has_edges(state, arm) and not state.stale[0]:
        order.new_weight[0], order.new_arm[0] = weigh(state.recs, state.lam, arm), arm
        if not come(order, state.holes, 1):
            state.stale[0] = True
