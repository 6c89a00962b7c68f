"""One round of Thompson sampling over groups of exchangeable arms: the largest samples without drawing the others.

The samples of the n arms of a group are n draws from one Beta posterior. Written as survival probabilities they are
uniform, so the largest sample has the smallest of n uniform numbers as its survival: 1 - exp(-E/n) with E exponential,
and the next ones follow by adding E/(n-1), E/(n-2), ... in the exponent. A group is left as soon as its next sample is
known to lie below the worst of the best D seen so far, first by a Chernoff bound, then by the survival function; the
survival is inverted only for samples that enter.

Where there is one class, most groups are not even looked at. The exponent E/n of a group that can reach the level x0
is at most sigma, so such groups are those with a point of a Poisson process on an interval of length n sigma. The
intervals of all cold groups lie end to end, and the process jumps from point to point over sums of lengths. x0 is set
below the thresholds of late rounds. In the rare round that ends below x0, the cold groups that had no point are drawn
after all, given that they had none.
"""

from __future__ import annotations

import math

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.random import next_beta, next_uniform
from semibandit.policies.thompson.beta import inverse_survival, log_survival
from semibandit.policies.thompson.posterior_groups import link_first, set_level, sum_rates, unlink
from semibandit.policies.thompson.posterior_layout import (
    DRAWN,
    ENTROPY,
    EXCESS,
    G_LOSSES,
    G_WINS,
    LIVE,
    LOG_BETA,
    LONG,
    MEAN,
    NEXT,
    PLACE,
    ROUNDS,
    SEEN,
    SHORT,
    SIGMA,
    SIZE,
    SPREAD,
    START,
    USED,
    X0,
)

# Samples are kept inside the unit interval, so that the logarithms of a threshold are finite.
_LEAST, _MOST = 1e-300, 1.0 - 2.0**-53

# Groups up to this size are sampled arm by arm while the best D are not yet full: cheaper than inverting.
_FEW = 4

# The level is this many mean deviations below the mean of late thresholds, forgotten at this rate, from this round on;
# looking at so many groups for each arm played is no reason to change it.
_MARGIN, _MEMORY, _WARM_UP, _ENOUGH = 4.0, 1.0 / 32.0, 32, 4


@kernel
def _sink(value, owner, size, at):
    """Restore the heap, least value at the root, after item `at` grew. O(log size)."""
    v = value[at]
    o = owner[at]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and value[child + 1] < value[child]:
            child += 1
        if value[child] >= v:
            break
        value[at] = value[child]
        owner[at] = owner[child]
        at = child
    value[at] = v
    owner[at] = o


@kernel
def _offer(value, owner, held, wanted, x, k):
    """Let sample x of group k compete; returns how many samples are held. O(log wanted)."""
    if x < _LEAST:
        x = _LEAST
    if x > _MOST:
        x = _MOST
    if held < wanted:
        value[held] = x
        owner[held] = k
        held += 1
        if held == wanted:
            for at in range(wanted // 2 - 1, -1, -1):
                _sink(value, owner, wanted, at)
    elif x > value[0]:
        value[0] = x
        owner[0] = k
        _sink(value, owner, wanted, 0)
    return held


@inline_kernel
def _hopeless(log_v, wins, losses, entropy, threshold, log_x, log_y):
    """Whether a survival of exp(log_v) surely lies below the threshold.

    Beta(s+1, f+1) exceeds x when a binomial (s + f + 1, x) is at most s: at most exp(-m kl(s/m, x)) for s/m < x,
    m = s + f + 1 (Chernoff).
    """
    if wins >= threshold * (wins + losses + 1.0):
        return False
    return log_v + entropy - wins * log_x - (losses + 1.0) * log_y > 0.0


@kernel
def _offer_group(g, rng, k, total, value, owner, held, wanted):
    """Let the samples of group k compete, the largest first; `total` is the exponent of the first. Returns as `_offer`.

    O(sqrt(N)) for each sample that enters, and once more.
    """
    n = g.info[k, SIZE]
    wins = float(g.info[k, G_WINS])
    losses = float(g.info[k, G_LOSSES])
    taken = 0
    while True:
        log_v = math.log(-math.expm1(-total))
        floor = 0.0
        if held == wanted:
            floor = value[0]
            entropy = g.const[k, ENTROPY]
            if _hopeless(log_v, wins, losses, entropy, floor, math.log(floor), math.log1p(-floor)):
                break
            if log_v >= log_survival(floor, wins + 1.0, losses + 1.0, g.const[k, LOG_BETA]):
                break
        x = inverse_survival(log_v, wins + 1.0, losses + 1.0, g.const[k, LOG_BETA], floor)
        held = _offer(value, owner, held, wanted, x, k)
        taken += 1
        if taken >= min(n, wanted):
            break
        total -= math.log1p(-next_uniform(rng)) / (n - taken)
    return held


@kernel
def _scan_hot(g, rng, c, wanted, value, owner):
    """Let all hot groups of class c compete: (samples held, groups looked at). O(1) a group that cannot reach."""
    held = 0
    looked = 0
    threshold = 0.0
    log_x = 0.0
    log_y = 0.0
    k = g.head[2 * c]
    while k >= 0:
        looked += 1
        n = g.info[k, SIZE]
        wins = float(g.info[k, G_WINS])
        losses = float(g.info[k, G_LOSSES])
        if held < wanted and n <= _FEW:
            for _ in range(n):
                held = _offer(value, owner, held, wanted, next_beta(rng, wins + 1.0, losses + 1.0), k)
            k = g.info[k, NEXT]
            continue
        u = next_uniform(rng)
        if held == wanted:
            if value[0] != threshold:
                threshold = value[0]
                log_x = math.log(threshold)
                log_y = math.log1p(-threshold)
            # The survival of the group's largest sample is 1 - (1 - u)^(1/n), which is at least u/n.
            if _hopeless(math.log(u / n), wins, losses, g.const[k, ENTROPY], threshold, log_x, log_y):
                k = g.info[k, NEXT]
                continue
        held = _offer_group(g, rng, k, -math.log1p(-u) / n, value, owner, held, wanted)
        k = g.info[k, NEXT]
    return held, looked


@kernel
def _jump_cold(g, rng, stamp, value, owner, held, wanted):
    """Let the cold groups compete that have a point of the process, and mark them: (samples held, groups looked at).

    Expected O(1) a point, plus one step for 4,096 groups.
    """
    sum_rates(g)
    looked = 0
    k = 0
    used = g.meta[USED]
    left = -math.log(next_uniform(rng))
    while k < used:
        if k & ((1 << LONG) - 1) == 0 and g.long[k >> LONG] <= left:
            left -= g.long[k >> LONG]
            k += 1 << LONG
        elif k & ((1 << SHORT) - 1) == 0 and g.short[k >> SHORT] <= left:
            left -= g.short[k >> SHORT]
            k += 1 << SHORT
        elif g.rate[k] <= left:
            left -= g.rate[k]
            k += 1
        else:
            looked += 1
            g.info[k, SEEN] = stamp
            held = _offer_group(g, rng, k, left / g.info[k, SIZE], value, owner, held, wanted)
            left = -math.log(next_uniform(rng))
            k += 1
    return held, looked


@kernel
def _scan_cold(g, rng, stamp, value, owner, held, wanted):
    """Let the cold groups without a point compete, given that they have none; returns samples held. O(groups)."""
    k = g.head[1]
    while k >= 0:
        if g.info[k, SEEN] != stamp:
            total = g.const[k, SIGMA] - math.log(next_uniform(rng)) / g.info[k, SIZE]
            held = _offer_group(g, rng, k, total, value, owner, held, wanted)
        k = g.info[k, NEXT]
    return held


@kernel
def _best_of_class(g, rng, c, wanted, value, owner):
    """The `wanted` largest posterior samples of class c and the groups they fell to, into value and owner."""
    held, looked = _scan_hot(g, rng, c, wanted, value, owner)
    if g.rate.shape[0] == 0:
        return held
    level = g.level[0]
    level[ROUNDS] += 1.0
    stamp = int(level[ROUNDS])
    if level[X0] > 0.0:
        held, more = _jump_cold(g, rng, stamp, value, owner, held, wanted)
        looked += more
        if held < wanted or value[0] < level[X0]:
            held = _scan_cold(g, rng, stamp, value, owner, held, wanted)
            looked += g.meta[LIVE]
    # The level of later rounds: below nearly all thresholds, and set anew when that has paid for itself.
    away = value[0] - level[MEAN]
    if stamp == 1:
        level[MEAN] = value[0]
    else:
        level[MEAN] += _MEMORY * away
        level[SPREAD] += _MEMORY * (abs(away) - level[SPREAD])
    level[EXCESS] += max(0.0, float(looked - _ENOUGH * wanted))
    if stamp >= _WARM_UP and level[EXCESS] > g.meta[LIVE]:
        level[EXCESS] = 0.0
        set_level(g, 0, max(0.0, level[MEAN] - _MARGIN * level[SPREAD]))
    return held


@kernel
def _name_member(g, rng, k):
    """A random member of group k that was not named before in this round (a step of Fisher-Yates). O(1)."""
    start = g.info[k, START]
    i = g.info[k, DRAWN]
    j = i + int(next_uniform(rng) * (g.info[k, SIZE] - i))
    one = g.members[start + i]
    two = g.members[start + j]
    g.members[start + i] = two
    g.arm[two, PLACE] = i
    g.members[start + j] = one
    g.arm[one, PLACE] = j
    g.info[k, DRAWN] = i + 1
    return two


@kernel
def draw_round(g, rng, pools, capacity, value, owner, out):
    """The arms whose posterior samples are the largest of their class, into `out`, unsorted; returns how many.

    `pools` are the classes of positive capacity; `value` and `owner` are scratch of the largest capacity. Changes the
    order of members, and brings the groups that won to the front of their lists, so that the threshold rises early in
    the next round. The law does not depend on either.
    """
    n = 0
    for i in range(pools.shape[0]):
        c = pools[i]
        if g.population[c] <= capacity[c]:
            for heat in range(2):
                k = g.head[2 * c + heat]
                while k >= 0:
                    for j in range(g.info[k, SIZE]):
                        out[n] = g.members[g.info[k, START] + j]
                        n += 1
                    k = g.info[k, NEXT]
            continue
        held = _best_of_class(g, rng, c, capacity[c], value, owner)
        for j in range(held):
            out[n] = _name_member(g, rng, owner[j])
            n += 1
        for j in range(held):
            k = owner[j]
            if g.info[k, DRAWN] > 0:
                g.info[k, DRAWN] = 0
                unlink(g, k)
                link_first(g, k)
    return n
