"""The outsiders of greedy, in a lazy order whose front is in chunks and has tags: the right nodes next to each arm."""

from __future__ import annotations

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.engines.order.chunks import (
    arm_at,
    come,
    extend_chunks,
    first_place,
    forget_chunks,
    has_room_to_extend,
    leave,
    weight_at,
)
from semibandit.engines.order.lazy import add_unsorted, begin_anew, end_unsorted
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
    forget_chunks(state.front)
    node = state.matched_node
    for arm in range(node.shape[0]):
        if node[arm] == OUTSIDER and has_edges(state, arm):
            add_unsorted(state.order, arm, weigh(state.recs, state.lam, arm))
    end_unsorted(state.order)
    state.stale[0] = False


@kernel
def extend(handle):
    """More entries for the front: where they begin in its directory, or -1 if there are none. If it is full all is made
    anew."""
    state = open_greedy(handle)
    if not has_room_to_extend(state.front):
        order_anew(handle)
    return extend_chunks(state.order, state.front)


@inline_kernel
def is_loose(state, place, before):
    """Whether the entry there does not count; `before` is the arm that was met last. O(1)."""
    order = state.order
    arm = arm_at(state.front, place)
    if order.loose[arm] == 0:
        return False
    if (
        state.matched_node[arm] == OUTSIDER
        and arm != before
        and weight_at(state.front, place) == weigh(state.recs, state.lam, arm)
    ):
        return False
    order.loose[arm] -= 1
    return True


@inline_kernel
def first_outsider(handle, state):
    """The place of the heaviest outsider, -1 if there is none. Drops loose entries. O(1) amortised."""
    while True:
        place = first_place(state.front)
        if place >= 0:
            if not is_loose(state, place, -1):
                return place
            leave(state.front, place)
        elif extend(handle) < 0:
            return place


@kernel
def join(handle, arm):
    """Let an outsider wait in the order; loops do not. O(log K), and in the front O(its length)."""
    state = open_greedy(handle)
    order = state.order
    if has_edges(state, arm) and not state.stale[0]:
        order.new_weight[0], order.new_arm[0] = weigh(state.recs, state.lam, arm), arm
        if not come(order, state.front, 1):
            state.stale[0] = True
