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
from semibandit.compiled.handle import Flags1, Floats1, Floats2, Ints1, Number, Whole, Words1
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.sorting import heap_offer, sort_ids_in_place
from semibandit.engines.kernels import engine_select, engine_touch, engine_touch_all
from semibandit.policies.linear.posterior import (
    VERSION,
    Posterior,
    add_row,
    deviation,
    dot,
    draw,
    invert,
    solve,
)
from semibandit.policies.rounds import implement_rounds

# Of `meta`: widths computed so far, arms in the last base, rounds in which all widths were, whether the features are
# those of one call.
LOOKED, N_LAST, SWEPT, GIVEN = range(4)

# Widths that did not change may come out a hair larger when they are computed again.
_HAIR = 1.0 + 1e-9

# So many arms are looked over at a time.
_BLOCK = 64

# Of a matroid that is neither uniform nor a partition: so many times the widths of the arms of a base, then all of
# them.
TRIES = 6


class Weighing(NamedTuple):
    """What arms are weighed by. `shift` is taken off rewards before they are learnt. `near`: phi' theta of each arm,
    perhaps but for a hair. `bounds`: a width of each arm that is not too small, computed in state `stamp` of the
    posterior; empty where c = 0. `recs`: counts and sums of the arms; `last`: the last base."""

    noise: Number
    width: Number
    draws: Whole
    features: Floats2
    posterior: Posterior
    near: Floats1
    bounds: Floats1
    stamp: Ints1
    shift: Floats1
    recs: Floats2
    last: Ints1
    rng: Words1
    meta: Ints1


# Of `draws`: theta is the posterior mean, is drawn, or was put there by whoever knows (a shard is told it).
MEAN, DRAWN, TOLD = range(3)

# Where `features` is in a `Weighing`, and in the rounds that begin with one.
FEATURES = 3


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


@kernel
def begin(w):
    """Let the theta of the round be there, and the inverse if widths are asked for. Changes the posterior. O(d^2)."""
    p = w.posterior
    if w.draws == DRAWN:
        draw(p, w.rng)
    elif w.draws == MEAN:
        solve(p)
        for j in range(p.drawn.shape[0]):
            p.drawn[j] = p.theta[j]
    if w.width > 0.0:
        invert(p)


@kernel
def approach(w):
    """Let `near` be exact. O(K d)."""
    features, theta, near = w.features, w.posterior.drawn, w.near
    n, d = near.shape[0], theta.shape[0]
    k = 0
    while k + 4 <= n:
        # Four sums at a time: each adds from the left, and none waits for another.
        a = 0.0
        b = 0.0
        c = 0.0
        e = 0.0
        for j in range(d):
            x = theta[j]
            a += features[k, j] * x
            b += features[k + 1, j] * x
            c += features[k + 2, j] * x
            e += features[k + 3, j] * x
        near[k] = a
        near[k + 1] = b
        near[k + 2] = c
        near[k + 3] = e
        k += 4
    while k < n:
        near[k] = dot(features, k, theta)
        k += 1


@kernel
def _norm_of_inverse(inverse):
    """An upper bound of the spectral norm: that of Frobenius, or the mean of the two below (Hoelder). O(d^2)."""
    d = inverse.shape[0]
    square, widest, tallest = 0.0, 0.0, 0.0
    for i in range(d):
        across = 0.0
        for j in range(i + 1):
            square += inverse[i, j] * inverse[i, j]
            across += abs(inverse[i, j])
        widest = max(widest, across)
    for j in range(d):
        down = 0.0
        for i in range(j, d):
            down += abs(inverse[i, j])
        tallest = max(tallest, down)
    return math.sqrt(min(square, widest * tallest)) * _HAIR


@kernel
def approach_with_norms(w):
    """Let `near` be exact, and bound widths by the norms of the rows: |inverse phi| <= |inverse| |phi|. O(K d)."""
    features, theta, near, bounds = w.features, w.posterior.drawn, w.near, w.bounds
    n, d = near.shape[0], theta.shape[0]
    most = _norm_of_inverse(w.posterior.inverse)
    for k in range(n):
        w.stamp[k] = -1
    k = 0
    while k + 2 <= n:
        a = 0.0
        b = 0.0
        p = 0.0
        q = 0.0
        for j in range(d):
            x = features[k, j]
            y = features[k + 1, j]
            a += x * theta[j]
            b += y * theta[j]
            p += x * x
            q += y * y
        near[k] = a
        near[k + 1] = b
        bounds[k] = most * math.sqrt(p)
        bounds[k + 1] = most * math.sqrt(q)
        k += 2
    if k < n:
        near[k] = dot(features, k, theta)
        p = 0.0
        for j in range(d):
            p += features[k, j] * features[k, j]
        bounds[k] = most * math.sqrt(p)


@inline_kernel
def _approach(w):
    if w.meta[GIVEN] and w.width > 0.0:
        approach_with_norms(w)
    else:
        approach(w)


@inline_kernel
def _exact(w, k):
    """The index of arm k; its width is computed unless it is known. Changes the bounds. O(d), or O(d^2)."""
    p = w.posterior
    index = dot(w.features, k, p.drawn)
    if w.width > 0.0:
        if w.stamp[k] != p.meta[VERSION]:
            w.bounds[k] = deviation(p.inverse, w.features, k)
            w.stamp[k] = p.meta[VERSION]
            w.meta[LOOKED] += 1
        index += w.width * w.bounds[k]
    return index


# -- uniform and partition -----------------------------------------------------------------------------------------


@inline_kernel
def _offer(own, k, g):
    """Put arm k of group g on its heap if its index is large enough, and raise the floor."""
    start, size = own.start, own.size
    capacity = start[g + 1] - start[g]
    index = _exact(own.weighing, k)
    if index < own.floor[g]:
        return
    size[g] = heap_offer(own.heap_weight, own.heap_arm, start[g], size[g], capacity, index, k)
    if size[g] == capacity:
        own.floor[g] = max(own.floor[g], own.heap_weight[start[g]])


@kernel
def scan(own, slack, out):
    """The best base, ascending, into `out`; how many. `near` is off by at most `slack`. Changes heaps and bounds."""
    w, start, size, floor, group = own.weighing, own.start, own.size, own.floor, own.group
    near, bounds, here = w.near, w.bounds, own.here
    n_groups = start.shape[0] - 1
    for g in range(n_groups):
        size[g] = 0
        floor[g] = -math.inf if start[g + 1] > start[g] else math.inf
    # The last base is not beaten by less than it is worth now, if it is full and all there.
    for i in range(w.meta[N_LAST]):
        k = w.last[i]
        g = group[k] if n_groups > 1 else 0
        if not here[k]:
            continue
        index = _exact(w, k)
        size[g] += 1
        own.heap_weight[start[g] + size[g] - 1] = index
    for g in range(n_groups):
        if 0 < size[g] == start[g + 1] - start[g]:
            floor[g] = own.heap_weight[start[g]]
            for i in range(start[g] + 1, start[g + 1]):
                floor[g] = min(floor[g], own.heap_weight[i])
        size[g] = 0
    c = w.width * _HAIR
    n = near.shape[0]
    for first in range(0, n, _BLOCK):
        last = min(first + _BLOCK, n)
        # Of most blocks no arm comes near: without a way out, so that it runs in vector registers.
        reached = False
        if n_groups > 1:
            reached = True
        elif c == 0.0:
            for k in range(first, last):
                reached |= near[k] + slack >= floor[0]
        else:
            for k in range(first, last):
                reached |= near[k] + slack + c * bounds[k] >= floor[0]
        if not reached:
            continue
        for k in range(first, last):
            g = group[k] if n_groups > 1 else 0
            bound = near[k] + slack
            if c > 0.0:
                bound += c * bounds[k]
            if bound >= floor[g] and here[k]:
                _offer(own, k, g)
    n = 0
    for g in range(n_groups):
        for i in range(start[g], start[g] + size[g]):
            out[n] = own.heap_arm[i]
            n += 1
    sort_ids_in_place(out, n)
    _remember(w, out, n)
    return n


@inline_kernel
def _remember(w, out, n):
    for i in range(n):
        w.last[i] = out[i]
    w.meta[N_LAST] = n


@kernel
def _scanned_select(own, engine, t, out):
    begin(own.weighing)
    _approach(own.weighing)
    return scan(own, 0.0, out)


# -- the other classes ---------------------------------------------------------------------------------------------


@kernel
def bound_all(own, engine, t):
    """Let the engine hold an upper bound of the index of each arm; exact where no widths are asked for. O(K d)."""
    w = own.weighing
    begin(w)
    _approach(w)
    c = w.width * _HAIR
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
        index = _exact(w, arms[i])
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
        engine.recs[k, ALPHA] = _exact(w, k)
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
