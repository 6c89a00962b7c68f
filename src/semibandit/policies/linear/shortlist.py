"""A short list of arms, with a proof in each round that the best base is among them: less than a pass over all arms.

When it is made, at coefficients theta_0 with covariance Sigma_0, each arm gets u = phi' theta_0 and
s = sqrt(phi' Sigma_0 phi). From then on, by Cauchy and Schwarz in the norm of Sigma_0 and because widths only shrink,

    phi' theta + c sqrt(phi' Sigma phi)  <=  u + lam s,    lam = |theta - theta_0| in the norm of Sigma_0^-1, plus c,

for any theta, drawn or not. The largest u + lam s of the arms that are not on the list is convex in lam: it is known at
a few lam, and lies below the straight lines between them. If that is less than what the lightest arm of the best base
of the list is worth, no other arm can enter, and the round cost O(M d) for M arms on the list. Otherwise all arms are
looked at, as ever. So the decisions are the same with the list and without.

Early on the posterior is so wide that every arm may win, and no list is made: a sample of the arms tells. Later the
list is short: a few thousand of 10^6 arms with 20 normal features, after a hundred rounds of ten. A list costs O(K d^2)
to make, about d / 2 passes over all arms, and is made anew when the rewards have doubled.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.compiled.handle import by_handle, make_handle
from semibandit.compiled.jit import kernel
from semibandit.policies.linear.posterior import Posterior, dot
from semibandit.policies.linear.rounds import ScannedRounds, scan
from semibandit.policies.linear.weighing import Weighing

#: A list is thought of where features are at least so many numbers, once so many bases of rewards were learnt.
SHORTLIST_FROM = 1 << 18
FIRST_ROUND = 64

# Arms in the sample; no list is made of more than this share of the arms.
_SAMPLE, _SHARE = 1024, 0.125

# Misses until a list that has no hits is given up; the lam at which the other arms are bounded, as multiples of the
# expected one.
_MISSES = 4
_GRID = np.array([0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0])

# Of the bounds, for all that rounding may do.
_HAIR = 1e-9


@kernel
def _spread(inverse, features, theta, u, s):
    """``u = phi' theta`` and ``s = |inverse phi|`` of each row. Changes `u` and `s`. O(n d^2)."""
    d = theta.shape[0]
    for k in range(u.shape[0]):
        u[k] = dot(features, k, theta)
        total = 0.0
        for i in range(d):
            value = 0.0
            for j in range(i + 1):
                value += inverse[i, j] * features[k, j]
            total += value * value
        s[k] = math.sqrt(total)


@kernel
def _bound_others(u, s, group, listed, lams, out):
    """The largest ``u + lam s`` of the arms not listed, by group and lam. Changes `out`. O(K) for each lam."""
    for k in range(u.shape[0]):
        if listed[k]:
            continue
        g = group[k] if group.shape[0] > 0 else 0
        for j in range(lams.shape[0]):
            out[g, j] = max(out[g, j], u[k] + lams[j] * s[k])


class Shortlist:
    """Some arms, ascending, with a copy of their features; bounds of all the others. Made by `make_shortlist`."""

    def __init__(self, arms: IntArray, own: Any, root: FloatArray, theta: FloatArray) -> None:
        self.arms, self.own, self.handle = arms, own, make_handle(own)
        self.root, self.theta = root, theta
        self.lams: FloatArray
        self.others: FloatArray
        self.misses = self.hits = 0

    def round(self, here: Any, width: float, slack: float, out: IntArray) -> int:
        """The best base into `out`, ascending; how many, or -1 if it could be another one. O(M d) for M arms listed."""
        own, weighing = self.own, self.own.weighing
        drawn = weighing.posterior.drawn
        lam = width + float(np.linalg.norm(self.root @ (drawn - self.theta)))
        if lam > self.lams[-1]:
            self.misses += 1
            return -1
        own.here[:] = here[self.arms]
        np.dot(weighing.features, drawn, out=weighing.near)
        n = int(by_handle(scan, ScannedRounds).entry(self.handle, slack, out))
        j = max(int(np.searchsorted(self.lams, lam)), 1)
        share = (lam - self.lams[j - 1]) / (self.lams[j] - self.lams[j - 1])
        with np.errstate(invalid="ignore"):  # where no other arm is in a group
            reach = (1.0 - share) * self.others[:, j - 1] + share * self.others[:, j]
        # Of a group that is on the list as a whole, or has no arms, nobody else can enter, full or not.
        whole = np.isneginf(self.others[:, 0])
        reach = np.where(whole, 0.0, reach)
        full = np.diff(own.start) == own.size
        if not (whole | full & (reach + _HAIR * (1.0 + np.abs(reach)) + slack < own.floor)).all():
            self.misses += 1
            return -1
        self.hits += 1
        out[:n] = self.arms[out[:n]]
        return n

    @property
    def useless(self) -> bool:
        """Whether it missed so often that it is to be given up."""
        return self.misses > _MISSES + self.hits // 16

    @property
    def paid(self) -> bool:
        """Whether it saved more than it cost, so that another one may be made at once."""
        return self.hits >= 4 * len(self.theta)


def make_shortlist(
    p: Posterior, weighing: Weighing, own: ScannedRounds, root: FloatArray, last: IntArray, draws: bool
) -> Shortlist | None:
    """A list for the posterior as it is, `root` being that of its precision; None where it would be too long.

    `p.theta` must be up to date. `last`: a base that is played now. O(K d^2), or O(d^3) and a sample if there is none.
    """
    features, width, n = weighing.features, weighing.width, weighing.features.shape[0]
    d = features.shape[1]
    inverse = np.ascontiguousarray(np.linalg.inv(root).T)
    expected = width + (math.sqrt(d) + 2.0 if draws else 1.5)
    group = own.group
    few = np.arange(0, n, max(1, n // _SAMPLE))
    u, s = _spreads(inverse, np.ascontiguousarray(features[few]), p.theta)
    v, r = _spreads(inverse, np.ascontiguousarray(features[last]), p.theta)
    bars = np.full(len(own.start) - 1, np.inf)
    np.minimum.at(bars, group[last] if len(group) else np.zeros(len(last), dtype=np.int64), v - r)
    bar = bars[group[few]] if len(group) else bars[0]
    if np.mean(u + expected * s >= bar) > _SHARE:
        return None
    u, s = _spreads(inverse, features, p.theta)
    listed = u + expected * s >= (bars[group] if len(group) else bars[0])
    listed[last] = True
    arms = np.flatnonzero(listed)
    if len(arms) > 2 * _SHARE * n:
        return None
    mine = ScannedRounds(
        weighing=weighing._replace(
            features=np.ascontiguousarray(features[arms]),
            near=np.zeros(len(arms)),
            bounds=s[arms] * (1.0 + _HAIR) if width > 0.0 else np.zeros(0),
            stamp=np.full(len(arms) if width > 0.0 else 0, -1, dtype=np.int64),
            last=weighing.last.copy(),
            meta=np.zeros_like(weighing.meta),
        ),
        here=np.ones(len(arms), dtype=np.bool_),
        group=group[arms] if len(group) else group,
        start=own.start,
        size=np.zeros_like(own.size),
        floor=np.zeros_like(own.floor),
        heap_weight=np.zeros_like(own.heap_weight),
        heap_arm=np.zeros_like(own.heap_arm),
    )
    made = Shortlist(arms, mine, root, p.theta.copy())
    made.lams = expected * _GRID
    made.others = np.full((len(bars), len(made.lams)), -np.inf)
    _bound_others(u, s, group, listed, made.lams, made.others)
    return made


def _spreads(inverse: FloatArray, rows: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    u, s = np.empty(len(rows)), np.empty(len(rows))
    _spread(inverse, rows, theta, u, s)
    return u, s * (1.0 + _HAIR)
