"""The normal posterior of theta in a linear model: its square root is kept, by rotations, and never an inverse.

A reward of features phi has mean phi' theta; theta ~ N(0, lambda^2 I) before any was seen, noise of standard deviation
sigma. With P the precision (the inverse of the covariance Sigma), I / lambda^2 + sum of phi phi' / sigma^2, and the
vector b = sum of reward phi / sigma^2 the posterior is N(P^-1 b, P^-1). Kept are an upper triangular root, P = root'
root, and ``right`` with ``root theta = right``. One more row is d plane rotations, O(d^2) (Golub and Van Loan, Section
6.5): the diagonal of the root only grows, so that P stays symmetric and positive definite whatever is rounded, which
the update of Sigma itself (Wen, Kveton and Ashkan 2015, Alg. 2) does not promise. P and b are summed too, with what
rounding took away beside them (TwoSum, Knuth 1969); every `REFRESH` rows the root is made from them anew, so that
errors do not add up.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from semibandit.compiled.handle import Floats1, Floats2, Ints1
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.random import next_normal

# Of `meta`: whether theta and the inverse are those of the roots; rows since the root was made anew; rows that wait;
# all rows; how often what widths depend on has changed; how often the root was made anew; whether the rows that are
# being learnt waited until now.
SOLVED, INVERTED, SINCE, WAITING, ROWS, VERSION, REFRESHED, WAITED = range(8)

#: Rows after which the root is made anew.
REFRESH = 4096

# A pivot below this share of its diagonal entry says that the sums have no root that can be relied on.
_TINY = 1e-13


class Posterior(NamedTuple):
    """What is known of theta. Of square arrays the upper triangle counts; of `inverse` the lower one.

    `sums` and `lost`: P and what rounding took from it; `moment` and `moment_lost`: b. `held` and `held_lost`: the sum
    of phi phi' / sigma^2 of the rows that wait for rewards; `tight`: the root of P with these, where there are any.
    `inverse`: of the transposed root, or of `tight`: |inverse phi|^2 = phi' Sigma phi. `drawn`: the theta of the round.
    """

    root: Floats2
    right: Floats1
    theta: Floats1
    drawn: Floats1
    sums: Floats2
    lost: Floats2
    moment: Floats1
    moment_lost: Floats1
    held: Floats2
    held_lost: Floats2
    tight: Floats2
    inverse: Floats2
    row: Floats1
    meta: Ints1


def new_posterior(size: int, scale: float) -> Posterior:
    """Nothing seen: N(0, scale^2 I) in `size` dimensions. O(d^2)."""
    square = [np.zeros((size, size)) for _ in range(7)]
    vector = [np.zeros(size) for _ in range(6)]
    made = Posterior(
        root=square[0],
        right=vector[0],
        theta=vector[1],
        drawn=vector[2],
        sums=square[1],
        lost=square[2],
        moment=vector[3],
        moment_lost=vector[4],
        held=square[3],
        held_lost=square[4],
        tight=square[5],
        inverse=square[6],
        row=vector[5],
        meta=np.zeros(8, dtype=np.int64),
    )
    np.fill_diagonal(made.root, 1.0 / scale)
    np.fill_diagonal(made.sums, 1.0 / scale**2)
    made.meta[SOLVED] = 1
    return made


# -- rows --------------------------------------------------------------------------------------------------------


@inline_kernel
def _add(sums, lost, i, j, x):
    """``sums[i, j] += x``, and what rounding took away to `lost`."""
    a = sums[i, j]
    s = a + x
    b = s - a
    sums[i, j] = s
    lost[i, j] += (a - (s - b)) + (x - b)


@kernel
def _sum_row(sums, lost, row, sign):
    """Add ``sign row row'`` to the upper triangle. O(d^2)."""
    d = row.shape[0]
    for i in range(d):
        x = sign * row[i]
        if x != 0.0:
            for j in range(i, d):
                _add(sums, lost, i, j, x * row[j])


@kernel
def _rotate(root, row, right, value, carries):
    """Rotate one more row, and its right hand side if it carries one, into the root. Destroys `row`. O(d^2)."""
    d = row.shape[0]
    for j in range(d):
        x = row[j]
        if x == 0.0:
            continue
        r = root[j, j]
        h = math.sqrt(r * r + x * x)
        c = r / h
        s = x / h
        root[j, j] = h
        for k in range(j + 1, d):
            a = root[j, k]
            b = row[k]
            root[j, k] = c * a + s * b
            row[k] = c * b - s * a
        if carries:
            a = right[j]
            right[j] = c * a + s * value
            value = c * value - s * a


@kernel
def add_row(p, features, reward, noise):
    """Learn one reward of these features. Changes `p`. O(d^2)."""
    d = p.row.shape[0]
    if p.meta[WAITING] > 0 and p.meta[WAITED] == 0:
        for j in range(d):
            p.row[j] = features[j] / noise
        _rotate(p.tight, p.row, p.right, 0.0, False)
    for j in range(d):
        p.row[j] = features[j] / noise
    value = reward / noise
    _sum_row(p.sums, p.lost, p.row, 1.0)
    for j in range(d):
        x = value * p.row[j]
        a = p.moment[j]
        s = a + x
        b = s - a
        p.moment[j] = s
        p.moment_lost[j] += (a - (s - b)) + (x - b)
    _rotate(p.root, p.row, p.right, value, True)
    p.meta[ROWS] += 1
    p.meta[SINCE] += 1
    if p.meta[SINCE] >= REFRESH:
        refresh(p)
    changed(p)


@inline_kernel
def changed(p):
    """Theta and the widths are others now."""
    p.meta[SOLVED] = 0
    p.meta[INVERTED] = 0
    p.meta[VERSION] += 1


# -- roots -------------------------------------------------------------------------------------------------------


@kernel
def _factorise(root):
    """Turn the upper triangle of a matrix into its root (Cholesky), row by row; False if it has none. O(d^3)."""
    d = root.shape[0]
    for i in range(d):
        whole = root[i, i]
        for k in range(i):
            root[i, i] -= root[k, i] * root[k, i]
        if not root[i, i] > _TINY * whole:
            return False
        pivot = math.sqrt(root[i, i])
        root[i, i] = pivot
        for k in range(i):
            x = root[k, i]
            if x != 0.0:
                for j in range(i + 1, d):
                    root[i, j] -= x * root[k, j]
        for j in range(i + 1, d):
            root[i, j] /= pivot
    return True


@kernel
def refresh(p):
    """Make the root anew from the sums; if they have none, keep it and say False. Changes `p`. O(d^3)."""
    d = p.row.shape[0]
    made = p.inverse  # which is out of date from now on
    p.meta[SINCE] = 0
    p.meta[INVERTED] = 0
    for i in range(d):
        for j in range(i, d):
            made[i, j] = p.sums[i, j] + p.lost[i, j]
    if not _factorise(made):
        return False
    for i in range(d):
        for j in range(i, d):
            p.root[i, j] = made[i, j]
        value = p.moment[i] + p.moment_lost[i]
        for k in range(i):
            value -= p.root[k, i] * p.right[k]
        p.right[i] = value / p.root[i, i]
    p.meta[REFRESHED] += 1
    changed(p)
    return True


@kernel
def hold_row(p, features, noise):
    """A play of these features waits for its reward. Changes `p`. O(d^2), and the first one copies the root."""
    d = p.row.shape[0]
    if p.meta[WAITING] == 0:
        for i in range(d):
            for j in range(i, d):
                p.tight[i, j] = p.root[i, j]
    for j in range(d):
        p.row[j] = features[j] / noise
    _sum_row(p.held, p.held_lost, p.row, 1.0)
    _rotate(p.tight, p.row, p.right, 0.0, False)
    p.meta[WAITING] += 1
    changed(p)


@kernel
def let_go(p, rows, noise, learnt):
    """Plays of these features wait no longer: all were learnt, or nothing will be. Changes `p`. O(n d^2), and O(d^3).

    Returns by what factor widths may have grown at most: 1 if they were learnt, which changes no width. For a row x
    that leaves P, phi' Sigma phi grows by at most the factor 1 + x' Sigma x / sigma^2 with Sigma as it is afterwards;
    these multiply to the ratio of the determinants.
    """
    d = p.row.shape[0]
    before = 0.0
    for i in range(d):
        before += math.log(p.tight[i, i])
    for i in range(rows.shape[0]):
        for j in range(d):
            p.row[j] = rows[i, j] / noise
        _sum_row(p.held, p.held_lost, p.row, -1.0)
    p.meta[WAITING] -= rows.shape[0]
    changed(p)
    if p.meta[WAITING] == 0:
        for i in range(d):
            for j in range(i, d):
                p.held[i, j] = 0.0
                p.held_lost[i, j] = 0.0
                p.tight[i, j] = p.root[i, j]
    elif not learnt:
        tighten(p)
    if learnt:
        return 1.0
    after = 0.0
    for i in range(d):
        after += math.log(p.tight[i, i])
    return math.exp(max(before - after, 0.0)) * (1.0 + 1e-9)


@kernel
def tighten(p):
    """Make the root with the rows that wait anew. Changes `p.tight`. O(d^3)."""
    d = p.row.shape[0]
    for i in range(d):
        for j in range(i, d):
            p.tight[i, j] = (p.sums[i, j] + p.held[i, j]) + (p.lost[i, j] + p.held_lost[i, j])
    if not _factorise(p.tight):
        # The sums are too far apart in size to have a root; without the rows that wait, widths are too large at most.
        for i in range(d):
            for j in range(i, d):
                p.tight[i, j] = p.root[i, j]


# -- what a round asks -------------------------------------------------------------------------------------------


@inline_kernel
def _back(root, right, out):
    """Solve ``root out = right``. O(d^2)."""
    for i in range(out.shape[0] - 1, -1, -1):
        value = right[i]
        for j in range(i + 1, out.shape[0]):
            value -= root[i, j] * out[j]
        out[i] = value / root[i, i]


@kernel
def solve(p):
    """Bring the posterior mean up to date. Changes `p.theta`. O(d^2), O(1) if it is."""
    if p.meta[SOLVED] == 0:
        _back(p.root, p.right, p.theta)
        p.meta[SOLVED] = 1


@kernel
def draw(p, rng):
    """Let `p.drawn` be a sample of the posterior: root^-1 (right + z) has its mean and covariance. O(d^2)."""
    for j in range(p.row.shape[0]):
        p.row[j] = p.right[j] + next_normal(rng)
    _back(p.root, p.row, p.drawn)


@kernel
def invert(p):
    """Bring `p.inverse` up to date: the inverse of the transposed root, or of `tight` where rows wait. O(d^3)."""
    if p.meta[INVERTED]:
        return
    root = p.tight if p.meta[WAITING] > 0 else p.root
    made = p.inverse
    for i in range(root.shape[0]):
        for j in range(i + 1):
            made[i, j] = 0.0
        made[i, i] = 1.0
        for k in range(i):
            x = root[k, i]
            if x != 0.0:
                for j in range(k + 1):
                    made[i, j] -= x * made[k, j]
        for j in range(i + 1):
            made[i, j] /= root[i, i]
    p.meta[INVERTED] = 1


@inline_kernel
def dot(features, k, theta):
    """``features[k]' theta``, summed from the left: the same for equal rows, wherever they stand. O(d)."""
    value = 0.0
    for j in range(theta.shape[0]):
        value += features[k, j] * theta[j]
    return value


@kernel
def deviation(inverse, features, k):
    """sqrt(phi' Sigma phi) for row k of `features`. O(d^2)."""
    d = inverse.shape[0]
    total = 0.0
    i = 0
    while i + 4 <= d:
        # Four sums at a time, none of which waits for another; each from the left.
        a, b, c, e = 0.0, 0.0, 0.0, 0.0
        for j in range(i + 1):
            x = features[k, j]
            a += inverse[i, j] * x
            b += inverse[i + 1, j] * x
            c += inverse[i + 2, j] * x
            e += inverse[i + 3, j] * x
        x, y, z = features[k, i + 1], features[k, i + 2], features[k, i + 3]
        b += inverse[i + 1, i + 1] * x
        c += inverse[i + 2, i + 1] * x
        c += inverse[i + 2, i + 2] * y
        e += inverse[i + 3, i + 1] * x
        e += inverse[i + 3, i + 2] * y
        e += inverse[i + 3, i + 3] * z
        total += a * a
        total += b * b
        total += c * c
        total += e * e
        i += 4
    while i < d:
        value = 0.0
        for j in range(i + 1):
            value += inverse[i, j] * features[k, j]
        total += value * value
        i += 1
    return math.sqrt(total)


@kernel
def indices(p, features, width, out):
    """The index of each row: ``phi' drawn + width sqrt(phi' Sigma phi)``. Changes `out`. O(n d), or O(n d^2)."""
    for k in range(out.shape[0]):
        out[k] = dot(features, k, p.drawn)
        if width > 0.0:
            out[k] += width * deviation(p.inverse, features, k)


@kernel
def deviations(p, features, out):
    """`deviation` of each row, by the inverse as it is. Changes `out`. O(n d^2)."""
    for k in range(out.shape[0]):
        out[k] = deviation(p.inverse, features, k)
