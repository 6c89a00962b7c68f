"""What arms are weighed by: one pass over their features, and bounds of widths that spare the O(d^2) of most arms.

The pass is at the speed of memory: sums from the left, of four arms at a time, none of which waits for another. A
feature that is not finite makes a sum that is not, so that features need no pass of their own to be checked.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from semibandit.compiled.handle import Floats1, Floats2, Ints1, Number, Whole, Words1
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.rows import ROWS, four_products, four_products_and_squares
from semibandit.policies.linear.posterior import (
    VERSION,
    WAITING,
    Posterior,
    deviation,
    dot,
    draw,
    invert,
    solve,
)

# Of `meta`: widths computed so far, arms in the last base, rounds in which all widths were, whether the features are
# those of one call, whether something was not finite in the pass over them.
LOOKED, N_LAST, SWEPT, GIVEN, BROKEN = range(5)

# Widths that did not change may come out a hair larger when they are computed again.
HAIR = 1.0 + 1e-9

# So often a matrix is squared for its norm, where that costs less than a pass over the arms; steps towards the
# direction that is known best.
_SQUARED, _STEPS = 6, 8

# Of `draws`: theta is the posterior mean, is drawn, or was put there by whoever knows (a shard is told it).
MEAN, DRAWN, TOLD = range(3)

# Where `features` is in a `Weighing`, and in the rounds that begin with one.
FEATURES = 3


class Weighing(NamedTuple):
    """What arms are weighed by. `shift` is taken off rewards before they are learnt. `near`: phi' theta of each arm,
    perhaps but for a hair. `bounds`: a width of each arm that is not too small, computed in state `stamp` of the
    posterior; empty where c = 0. `recs`: counts and sums of the arms; `last`: the last base. `scratch`: two
    d x d matrices and a row, one below the other, empty where c = 0; `along`: a number for each arm, empty where no
    features come with a call, too."""

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
    scratch: Floats2
    along: Floats1


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


@inline_kernel
def approach_some(w, first, last):
    """Let `near` be exact for arms ``first .. last - 1``. Changes `near` and `meta`. O(n d)."""
    features, theta, near = w.features, w.posterior.drawn, w.near
    broken = False
    k = first
    while k + ROWS <= last:
        four_products(features, k, theta, near)
        k += ROWS
    while k < last:
        near[k] = dot(features, k, theta)
        k += 1
    for k in range(first, last):
        broken |= not abs(near[k]) < math.inf
    if broken:
        w.meta[BROKEN] = 1


@kernel
def approach(w):
    """Let `near` be exact. Changes `near` and `meta`. O(K d)."""
    w.meta[BROKEN] = 0
    approach_some(w, 0, w.near.shape[0])


@kernel
def _largest_eigenvalue(scratch, squarings):
    """An upper bound of the largest eigenvalue of the positive semidefinite matrix on top of `scratch`, its diagonal
    not all zero. Changes `scratch`. O(d^3).

    With trace 1 it is at most the root of that of the square, and so on; by 64th powers, larger than it is by no more
    than the 64th root of d.
    """
    d = scratch.shape[1]
    at, to = 0, d
    level, power = 0.0, 1.0
    for squared in range(1 + squarings):
        if squared:
            for i in range(d):
                for j in range(d):
                    scratch[to + i, j] = 0.0
                for k in range(d):
                    x = scratch[at + i, k]
                    for j in range(d):
                        scratch[to + i, j] += x * scratch[at + k, j]
            at, to = to, at
            power *= 2.0
        trace = 0.0
        for i in range(d):
            trace += scratch[at + i, i]
        if not trace < math.inf:
            return math.inf
        level += math.log(trace) / power
        for i in range(d):
            for j in range(d):
                scratch[at + i, j] /= trace
    return math.exp(level) * HAIR


@inline_kernel
def _covariance(inverse, scratch):
    """Sigma = inverse' inverse on top of `scratch`. O(d^3)."""
    d = inverse.shape[0]
    for i in range(d):
        for j in range(d):
            scratch[i, j] = 0.0
    for k in range(d):
        for i in range(k + 1):
            x = inverse[k, i]
            for j in range(k + 1):
                scratch[i, j] += x * inverse[k, j]


@inline_kernel
def _known_direction(p, u):
    """A unit vector along which theta is known best, or nearly, into `u`. Changes `p.row`. O(d^2).

    By powers of the precision. Any vector would do; a good one makes good bounds.
    """
    root = p.tight if p.meta[WAITING] > 0 else p.root
    d = u.shape[0]
    for j in range(d):
        u[j] = 1.0
    for _ in range(_STEPS):
        square = 0.0
        for i in range(d):
            value = 0.0
            for j in range(i, d):
                value += root[i, j] * u[j]
            p.row[i] = value
        for j in range(d):
            u[j] = 0.0
        for i in range(d):
            for j in range(i, d):
                u[j] += root[i, j] * p.row[i]
        for j in range(d):
            square += u[j] * u[j]
        for j in range(d):
            u[j] /= math.sqrt(square)


@kernel
def approach_with_norms(w):
    """Let `near` be exact, and bound the widths of rows that were not seen before. O(K d + d^3).

    For any vector u and number tau >= 0 with Sigma + tau u u' <= lam I, phi' Sigma phi <= lam |phi|^2 - tau (u' phi)^2.
    u is a direction that is known best, since features often share one (a constant, or all positive); tau raises what
    is left there to the largest eigenvalue, which costs nothing in lam. Changes all that is about arms.
    """
    features, near, bounds, scratch = w.features, w.near, w.bounds, w.scratch
    n, d = near.shape[0], features.shape[1]
    squarings = _SQUARED if 4 * n >= d * d else 0
    u = scratch[2 * d]
    _known_direction(w.posterior, u)
    _covariance(w.posterior.inverse, scratch)
    along = 0.0
    for i in range(d):
        for j in range(d):
            along += u[i] * scratch[i, j] * u[j]
    tau = max(_largest_eigenvalue(scratch, squarings) - along, 0.0)
    _covariance(w.posterior.inverse, scratch)
    for i in range(d):
        for j in range(d):
            scratch[i, j] += tau * u[i] * u[j]
    # What rounding may do to the difference is far below this.
    lam = _largest_eigenvalue(scratch, squarings) * HAIR
    broken = False
    theta, along_u = w.posterior.drawn, w.along
    k = 0
    while k + ROWS <= n:
        four_products_and_squares(features, k, theta, u, near, along_u, bounds)
        k += ROWS
    while k < n:
        near[k] = dot(features, k, theta)
        along_u[k] = dot(features, k, u)
        bounds[k] = 0.0
        for j in range(d):
            bounds[k] += features[k, j] * features[k, j]
        k += 1
    for k in range(n):
        square = lam * bounds[k] - tau * (along_u[k] * along_u[k])
        broken |= not abs(near[k]) + square < math.inf
        bounds[k] = math.sqrt(max(square, 0.0))
        w.stamp[k] = -1
    w.meta[BROKEN] = broken


@inline_kernel
def exact_index(w, k, c):
    """The index of arm k with c standard deviations; its width is computed unless it is known. Changes the bounds.

    O(d), or O(d^2).
    """
    p = w.posterior
    index = dot(w.features, k, p.drawn)
    if c > 0.0:
        if w.stamp[k] != p.meta[VERSION]:
            w.bounds[k] = deviation(p.inverse, w.features, k)
            w.stamp[k] = p.meta[VERSION]
            w.meta[LOOKED] += 1
        index += c * w.bounds[k]
    return index
