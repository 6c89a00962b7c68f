"""Rounds over features: upper bounds of all arms in one pass, exact indices for the few that they let through.

The index of an arm is ``phi' theta + c sqrt(phi' Sigma phi)``; without the second term (c = 0) for Thompson sampling,
whose theta is drawn. Exact means: this very sum, in this order, whatever found the bounds (a BLAS that adds in another
order, say), so that ties are ties and decisions do not depend on the machine's libraries.

Widths only shrink while rewards come in, so that an old width is an upper bound: the widths of all arms are never
computed, O(K d^2), but those of arms whose bound reaches the base, a few dozen per round. Where plays that waited are
let go, widths may grow, by a factor that is known (`posterior.let_go`).

`scanned`: uniform and partition matroids, one pass with a heap per group. `resolved`: other classes; the best base
under the bounds is the best of all once the indices of its own arms are exact, because then no other base reaches it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from semibandit.arms import ALPHA, BETA, COUNT, TOTAL
from semibandit.compiled.handle import Flags1, Floats1, Ints1
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.sorting import heap_offer, sort_ids_in_place
from semibandit.engines.kernels import engine_select, engine_touch, engine_touch_all
from semibandit.policies.linear.posterior import add_row
from semibandit.policies.linear.weighing import (
    BROKEN,
    GIVEN,
    HAIR,
    N_LAST,
    SWEPT,
    Weighing,
    approach,
    approach_some,
    approach_with_norms,
    begin,
    exact_index,
)
from semibandit.policies.rounds import implement_rounds

# So many arms are looked over at a time, while what they are worth is in the nearest cache.
_BLOCK = 64

# Up to so many groups, the least of what their arms must reach is kept up to date.
_FEW_GROUPS = 64

# Of a matroid that is neither uniform nor a partition: so many times the widths of the arms of a base, then all of
# them.
TRIES = 6


class ScannedRounds(NamedTuple):
    """`here`: which arms may be played. `start[g]`: where the heap of group g begins; `group` is empty if there is one.
    `floor`: what an arm of each group must reach."""

    weighing: Weighing
    here: Flags1
    group: Ints1
    start: Ints1
    size: Ints1
    floor: Floats1
    heap_weight: Floats1
    heap_arm: Ints1


class ResolvedRounds(NamedTuple):
    """The engine holds the bounds, or exact indices."""

    weighing: Weighing


# -- uniform and partition -----------------------------------------------------------------------------------------


@inline_kernel
def _offer(own, k, g, index):
    """Put arm k of group g on its heap if its index is large enough; whether the floor rose."""
    start, size, floor = own.start, own.size, own.floor
    capacity = start[g + 1] - start[g]
    if index < floor[g]:
        return False
    size[g] = heap_offer(own.heap_weight, own.heap_arm, start[g], size[g], capacity, index, k)
    if size[g] < capacity or not own.heap_weight[start[g]] > floor[g]:
        return False
    floor[g] = own.heap_weight[start[g]]
    return True


@inline_kernel
def _set_floors(own, c):
    """Let the floors be what the last base is worth now, where it is full and all there. Empties the heaps."""
    w, start, size, floor, group = own.weighing, own.start, own.size, own.floor, own.group
    n_groups = start.shape[0] - 1
    for g in range(n_groups):
        size[g] = 0
        floor[g] = -math.inf if start[g + 1] > start[g] else math.inf
    for i in range(w.meta[N_LAST]):
        k = w.last[i]
        g = group[k] if n_groups > 1 else 0
        if not own.here[k]:
            continue
        own.heap_weight[start[g] + size[g]] = exact_index(w, k, c)
        size[g] += 1
    for g in range(n_groups):
        if 0 < size[g] == start[g + 1] - start[g]:
            floor[g] = own.heap_weight[start[g]]
            for i in range(start[g] + 1, start[g + 1]):
                floor[g] = min(floor[g], own.heap_weight[i])
        size[g] = 0


@inline_kernel
def _least(floor):
    least = math.inf
    for g in range(floor.shape[0]):
        least = min(least, floor[g])
    return least


@kernel
def scan_by(own, slack, c, fresh, out):
    """The best base by ``phi' theta + c width``, ascending, into `out`; how many. Changes heaps and bounds.

    `near` is off by at most `slack`; or, if `fresh`, not there yet, and computed on the way while it is in the cache.
    """
    w, start, size, floor, group = own.weighing, own.start, own.size, own.floor, own.group
    near, bounds, here = w.near, w.bounds, own.here
    n_groups = start.shape[0] - 1
    _set_floors(own, c)
    few = n_groups <= _FEW_GROUPS
    least = _least(floor) if few else -math.inf
    wide = c * HAIR
    known = slack == 0.0 and c == 0.0
    if fresh:
        w.meta[BROKEN] = 0
    n = near.shape[0]
    for first in range(0, n, _BLOCK):
        last = min(first + _BLOCK, n)
        if fresh:
            approach_some(w, first, last)
        # Of most blocks no arm comes near: without a way out, so that it runs in vector registers.
        reached = False
        if wide == 0.0:
            for k in range(first, last):
                reached |= near[k] + slack >= least
        else:
            for k in range(first, last):
                reached |= near[k] + slack + wide * bounds[k] >= least
        if not reached:
            continue
        for k in range(first, last):
            g = group[k] if n_groups > 1 else 0
            bound = near[k] + slack
            if wide > 0.0:
                bound += wide * bounds[k]
            if bound >= floor[g] and here[k]:
                before = floor[g]
                index = near[k] if known else exact_index(w, k, c)
                if _offer(own, k, g, index) and few and before == least:
                    least = _least(floor)
    n = 0
    for g in range(n_groups):
        for i in range(start[g], start[g] + size[g]):
            out[n] = own.heap_arm[i]
            n += 1
    sort_ids_in_place(out, n)
    _remember(w, out, n)
    return n


@kernel
def scan(own, slack, out):
    """`scan_by` the indices, with `near` as it is."""
    return scan_by(own, slack, own.weighing.width, False, out)


@inline_kernel
def _remember(w, out, n):
    for i in range(n):
        w.last[i] = out[i]
    w.meta[N_LAST] = n


@kernel
def _scanned_select(own, engine, t, out):
    w = own.weighing
    begin(w)
    if not w.meta[GIVEN] or w.width == 0.0:
        return scan_by(own, 0.0, w.width, True, out)
    # The last base says little about these features; that of the largest means is not beaten by less than it is worth.
    approach_with_norms(w)
    scan_by(own, 0.0, 0.0, False, out)
    return scan_by(own, 0.0, w.width, False, out)


# -- the other classes ---------------------------------------------------------------------------------------------


@kernel
def bound_all(own, engine, t):
    """Let the engine hold an upper bound of the index of each arm; exact where no widths are asked for. O(K d)."""
    w = own.weighing
    begin(w)
    if w.meta[GIVEN] and w.width > 0.0:
        approach_with_norms(w)
    else:
        approach(w)
    c = w.width * HAIR
    for k in range(w.near.shape[0]):
        engine.recs[k, ALPHA] = w.near[k] + (c * w.bounds[k] if w.width > 0.0 else 0.0)
        engine.recs[k, BETA] = 0.0
    engine_touch_all(engine)
    return 0.0


@kernel
def sharpen(own, engine, arms):
    """Let the engine hold the exact indices of these arms; how many it did not. O(n d^2)."""
    w = own.weighing
    blunt = 0
    for i in range(arms.shape[0]):
        index = exact_index(w, arms[i], w.width)
        if index != engine.recs[arms[i], ALPHA]:
            engine.recs[arms[i], ALPHA] = index
            engine_touch(engine, arms[i])
            blunt += 1
    return blunt


@kernel
def sharpen_all(own, engine):
    """Let the engine hold the exact indices of all arms. O(K d^2)."""
    w = own.weighing
    w.meta[SWEPT] += 1
    for k in range(w.near.shape[0]):
        engine.recs[k, ALPHA] = exact_index(w, k, w.width)
    engine_touch_all(engine)


@kernel
def _resolved_select(own, engine, t, out):
    bound_all(own, engine, t)
    n = 0
    for tried in range(TRIES + 1):
        # In one place, so that the engine is compiled into it once.
        n = engine_select(engine, 0.0, out)
        if own.weighing.width == 0.0 or tried == TRIES or sharpen(own, engine, out[:n]) == 0:
            break
        if tried == TRIES - 1:
            sharpen_all(own, engine)
    return n


# -- learning ------------------------------------------------------------------------------------------------------


@kernel
def learn_rows(w, rows, arms, rewards, n):
    """Learn one reward of each of these rows, and count it for its arm. Changes posterior and counts. O(n d^2)."""
    for i in range(n):
        add_row(w.posterior, rows[i], rewards[i] - w.shift[0], w.noise)
        w.recs[arms[i], COUNT] += 1.0
        w.recs[arms[i], TOTAL] += rewards[i]


@inline_kernel
def _learn(own, engine, arms, rewards, n):
    w = own.weighing
    for i in range(n):
        add_row(w.posterior, w.features[arms[i]], rewards[i] - w.shift[0], w.noise)
        w.recs[arms[i], COUNT] += 1.0
        w.recs[arms[i], TOTAL] += rewards[i]


implement_rounds(ScannedRounds, select=_scanned_select, learn=_learn, touches="nothing")
implement_rounds(ResolvedRounds, prepare=bound_all, select=_resolved_select, learn=_learn, touches="nothing")
