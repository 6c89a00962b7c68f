"""Kruskal over one order of all edges that is sorted only as far as it looks, for states in which much changes.

All present edges outside the base wait in a lazy order (`semibandit.engines.order.lazy`). A round lets the arms of the
last base join it with the weights that they have now, then goes through it, heaviest first, until the forest spans;
what is taken leaves the order. So a round costs a few nanoseconds for each edge looked at and O(log K) for each arm of
the base. While weights are spread over the graph evenly, about V log V edges are looked at, whatever K is. Where
vertices lie in clusters far from each other, or where one vertex has only light edges left, nearly all edges are: hot
and cold edges serve such states better.

Entries are the arms with their ends in the low bits, so that Kruskal reads no table; they compare as the arms do.
"""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.memory import prefetch_to_write
from semibandit.engines.graphic.edges import ABSENT, COLD, HEAD, IN_BASE, STATUS, TAIL, weight_of
from semibandit.engines.graphic.state import (
    DIRTY,
    HOT_ARM,
    HOT_IN_BASE,
    LABEL,
    LOOKED,
    MOST,
    N_OUT,
    NEXT_IN_TREE,
    ORDER_BITS,
    STALE,
    TREE_SIZE,
    open_forest,
)
from semibandit.engines.order.lazy import (
    FRONT,
    add_unsorted,
    begin_anew,
    close_gaps,
    end_unsorted,
    extend_front,
    join,
    join_many,
    loosen,
)
from semibandit.engines.order.lazy import HEAD as FIRST

# Where arm and tail lie in an entry; the head is in the bits below.
_ARM, _TAIL, _END = 2 * ORDER_BITS, ORDER_BITS, 2**ORDER_BITS - 1


@inline_kernel
def _entry(table, arm):
    """What stands for `arm` in the order. O(1)."""
    return (arm << _ARM) | (np.int64(table[arm, TAIL]) << _TAIL) | np.int64(table[arm, HEAD])


@kernel
def fill_order(handle, lam):
    """All present arms in the order, unsorted, and none of the base out of it. O(K)."""
    state = open_forest(handle)
    table, order, size = state.edges.table, state.ordered.order, state.ordered.size
    begin_anew(order)
    for arm in range(table.shape[0]):
        if table[arm, STATUS] != ABSENT:
            add_unsorted(order, _entry(table, arm), weight_of(state.recs, arm, lam))
    end_unsorted(order)
    size[N_OUT] = 0
    size[MOST] = state.answer.arms.shape[0]


@kernel
def _extend(handle):
    """More entries for the front; False if there are none."""
    return extend_front(open_forest(handle).ordered.order)


@kernel
def _return_base(handle, lam):
    """Let the arms of the last base join the order with the weights they have now. O(D log K) and a walk."""
    state = open_forest(handle)
    table, order, out, size = state.edges.table, state.ordered.order, state.ordered.out, state.ordered.size
    n = 0
    for i in range(size[N_OUT]):
        arm = out[i] >> _ARM
        if table[arm, STATUS] != ABSENT:
            order.new_weight[n], order.new_arm[n] = weight_of(state.recs, arm, lam), out[i]
            n += 1
    size[N_OUT] = 0
    if not join_many(order, n):
        fill_order(handle, lam)


@inline_kernel
def _is_loose(state, i, arm, lam):
    """Whether entry i of the order, of `arm`, does not count any more. O(1)."""
    order = state.ordered.order
    if order.loose[arm] == 0:
        return False
    if state.edges.table[arm, STATUS] != ABSENT and order.weight[i] == weight_of(state.recs, arm, lam):
        return False
    order.loose[arm] -= 1
    return True


@kernel
def _take_base(handle, lam):
    """Kruskal along the order; what it takes becomes the list of hot edges and leaves the order. How many there are.

    Labels as in `hot_cold`. A loose entry matters only where it would be taken; of two entries of an arm with the same
    weight the second closes a circuit.
    """
    state = open_forest(handle)
    vertex, hot_edge = state.vertex, state.hot.edge
    order, out, size = state.ordered.order, state.ordered.out, state.ordered.size
    for v in range(vertex.shape[0]):
        vertex[v, LABEL] = v
        vertex[v, NEXT_IN_TREE] = v
        vertex[v, TREE_SIZE] = 1
    n, most = 0, size[MOST]
    i, front = order.at[FIRST], order.at[FRONT]
    while n < most:
        if i == front:
            if not _extend(handle):
                size[MOST] = n
                break
            front = order.at[FRONT]
        entry = order.arm[i]
        a = vertex[(entry >> _TAIL) & _END, LABEL]
        b = vertex[entry & _END, LABEL]
        if a == b:
            i += 1
            continue
        arm = entry >> _ARM
        order.arm[i] = -1
        prefetch_to_write(state.edges.table, arm)
        if not _is_loose(state, i, arm, lam):
            hot_edge[n, HOT_ARM] = arm
            hot_edge[n, HOT_IN_BASE] = 1
            out[n] = entry
            n += 1
            if vertex[a, TREE_SIZE] < vertex[b, TREE_SIZE]:
                a, b = b, a
            v = b
            while True:
                vertex[v, LABEL] = a
                v = vertex[v, NEXT_IN_TREE]
                if v == b:
                    break
            vertex[a, TREE_SIZE] += vertex[b, TREE_SIZE]
            v = vertex[a, NEXT_IN_TREE]
            vertex[a, NEXT_IN_TREE] = vertex[b, NEXT_IN_TREE]
            vertex[b, NEXT_IN_TREE] = v
        i += 1
    size[N_OUT] = n
    size[LOOKED] = i - order.at[FIRST]
    close_gaps(order, i)
    return n


@inline_kernel
def solve_ordered(handle, lam):
    """Make the base the list of hot edges, without weights and ends; returns how many they are. See above."""
    _return_base(handle, lam)
    return _take_base(handle, lam)


# -- between rounds ----------------------------------------------------------------------------------------------


@inline_kernel
def _order_anew(state):
    """Let the next round make the order anew. O(1)."""
    state.flags[STALE] = state.flags[DIRTY] = True


@kernel
def join_order(handle, arm):
    """A present arm outside the base and outside the order joins it. O(log K)."""
    state = open_forest(handle)
    w = weight_of(state.recs, arm, state.lam[0])
    if not join(state.ordered.order, _entry(state.edges.table, arm), w):
        _order_anew(state)


@inline_kernel
def leave_order(state, arm):
    """The entry of an arm outside the base does not count any more. O(1)."""
    if not loosen(state.ordered.order, arm):
        _order_anew(state)


@inline_kernel
def touch_order(handle, state, arm):
    """The weight of `arm` changed. O(1) for an arm of the base, O(log K) for another."""
    state.flags[DIRTY] = True
    if state.edges.table[arm, IN_BASE] == 0:
        leave_order(state, arm)
        join_order(handle, arm)


@inline_kernel
def remove_from_order(state, arm):
    """`arm`, which is present, is no more. O(1)."""
    state.flags[DIRTY] = True
    state.edges.table[arm, STATUS] = ABSENT
    if state.edges.table[arm, IN_BASE] == 0:
        leave_order(state, arm)


@inline_kernel
def restore_to_order(handle, state, arm):
    """`arm`, which was absent, is back. O(log K)."""
    size = state.ordered.size
    state.flags[DIRTY] = True
    state.edges.table[arm, STATUS] = COLD
    size[MOST] = min(size[MOST] + 1, state.answer.arms.shape[0])
    if state.edges.table[arm, IN_BASE] == 0:
        join_order(handle, arm)
