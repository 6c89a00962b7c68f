"""The regularised leader on the base polytope of nested families: one root to find for each family that binds.

The base polytope of a laminar matroid is ``0 <= x <= 1, x(F) <= bound(F)`` for its families, and ``x(E) = rank``. At a
price nu for all arms, each arm wants the chance `chance_at` says, and a family whose arms want more than it may hold
gets its bound. The sum of what the outermost family gets falls as nu rises, so the right price is found by Newton's
method in a bracket. Families that bind at that price are then problems of their own, with a higher price inside
(decomposition: Groenevelt 1991). docs/theory.md, "FTRL on base polytopes", has the proof.
"""

from __future__ import annotations

import math

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.policies.ftrl.estimates import RATE
from semibandit.policies.ftrl.regularisers import ENOUGH, chance_at

# Of sums of chances; and of prices, a few roundings.
_PRECISION = 1e-12
_ROUNDING = 1e-15
_FIRST_STEPS, _FAR = 6, 64.0
_MOST_STEPS = 300


@inline_kernel
def _at_price(est, arm, nu, rate, steps):
    """Let `arm` have the chance it wants at price nu; (that, how fast it falls with nu). Changes x, rest, place."""
    scale = est.scale[arm]
    x, rest, place, fall = chance_at(
        est.phi, est.gamma, (rate * est.cost[arm] + nu) / scale, est.place[arm], steps
    )
    est.x[arm] = x
    est.rest[arm] = rest
    est.place[arm] = place
    return x, fall / scale


@kernel
def _wanted(est, families, f, nu, rate, steps):
    """What family f would hold at price nu but for its own bound, and how fast that falls. O(its arms and families).

    Changes x of its arms, by at most `steps` steps of Newton's method each, and `total` of the families inside: what
    each would hold but for its own bound.
    """
    first, last, end = families.first[f], families.last[f], families.end[f]
    if end == f + 1:
        total = slope = 0.0
        for i in range(first, last):
            arm = families.order[i]
            if est.present[arm]:
                x, fall = _at_price(est, arm, nu, rate, steps)
                total += x
                slope += fall
        return total, slope
    for g in range(f, end):
        families.total[g] = 0.0
        families.slope[g] = 0.0
    for i in range(first, last):
        arm = families.order[i]
        if est.present[arm]:
            x, fall = _at_price(est, arm, nu, rate, steps)
            families.total[families.leaf[arm]] += x
            families.slope[families.leaf[arm]] += fall
    for g in range(end - 1, f, -1):
        up = families.parent[g]
        if families.total[g] > families.bound[g]:
            families.total[up] += families.bound[g]
        else:
            families.total[up] += families.total[g]
            families.slope[up] += families.slope[g]
    return families.total[f], families.slope[f]


@kernel
def _solve(est, families, f, rate):
    """Find the price at which family f, which could hold more, holds its bound. Changes x, total, level and price."""
    target = float(families.bound[f])
    nu = families.level[f] * rate
    # Price and chances move together at first, a step each: near the solution that is Newton's method for all of them.
    for _ in range(_FIRST_STEPS):
        total, slope = _wanted(est, families, f, nu, rate, 1)
        if not (slope > 0.0 and 0.5 * target < total < 2.0 * target):
            break
        step = total / slope * math.log(total / target)
        if abs(step) > _FAR:
            break  # to nowhere: the sum hardly falls here
        nu += step
        if abs(step) * slope <= 1e-8 * target:
            break
    low, high, stride = -math.inf, math.inf, 1.0
    for _ in range(_MOST_STEPS):
        total, slope = _wanted(est, families, f, nu, rate, ENOUGH)
        if abs(total - target) <= _PRECISION * target:
            break
        if total > target:
            low = nu
        else:
            high = nu
        # Newton's step for the logarithm of the sum: exact for exp2, and never far off.
        new = nu + total / slope * math.log(total / target) if slope > 0.0 and total > 0.0 else math.nan
        if low > -math.inf and high < math.inf:
            if not low < new < high:
                new = 0.5 * (low + high)
                if not low < new < high:
                    break  # the two ends are neighbours
        elif not abs(new - nu) <= stride or not low < new < high:
            # While one end is not known, no farther than this: where the sum hardly falls, Newton's step is to nowhere,
            # and halving a bracket with such an end would take all steps there are.
            new = nu + stride if total > target else nu - stride
            stride *= 4.0
        if abs(new - nu) <= _ROUNDING * abs(nu):
            break
        nu = new
    families.level[f] = nu / rate
    for g in range(f, families.end[f]):
        families.price[g] = nu / rate


@inline_kernel
def _fix(est, families, f, x):
    """Let all arms of family f that are present have chance x, which is 0 or 1."""
    for i in range(families.first[f], families.last[f]):
        arm = families.order[i]
        if est.present[arm]:
            est.x[arm] = x
            est.rest[arm] = 1.0 - x


@kernel
def project(est, families):
    """Write the regularised leader of this round into x and rest of the present arms.

    O(K) for each level of families that bind inside each other, times the handful of steps of `_solve`. Changes x,
    rest, place of `est`, and `families`.
    """
    rate = est.about[RATE]
    stack = families.stack
    stack[0] = 0
    n = 1
    while n > 0:
        n -= 1
        f = stack[n]
        if families.bound[f] == 0:
            _fix(est, families, f, 0.0)
            continue
        forced = families.reach[f] <= families.bound[f]
        if forced:
            # Its own arms are in every base, and all families inside bind.
            if families.own[f] > 0:
                _fix(est, families, f, 1.0)
        else:
            _solve(est, families, f, rate)
        g = f + 1
        while g < families.end[f]:
            if forced or families.total[g] > families.bound[g]:
                stack[n] = g
                n += 1
                g = families.end[g]
            else:
                g += 1
