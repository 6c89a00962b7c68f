"""One round of Thompson sampling over groups of exchangeable arms: the largest samples without drawing the others.

The samples of the n arms of a group are n draws from one Beta posterior. Written as survival probabilities they are
uniform, so the largest sample has the smallest of n uniform numbers as its survival: 1 - exp(-E/n) with E exponential,
and the next ones follow by adding E/(n-1), E/(n-2), ... in the exponent. A group is left as soon as its next sample is
known to lie below the worst of the best D seen so far, first by a Chernoff bound, then by the survival function; the
survival is inverted only for samples that enter.
"""

from __future__ import annotations

import math

from semibandit._jit import inline_kernel, kernel
from semibandit.policies._beta import inverse_survival, log_survival
from semibandit.policies._posterior_groups import (
    DRAWN,
    ENTROPY,
    G_LOSSES,
    G_WINS,
    LOG_BETA,
    NEXT,
    PLACE,
    SIZE,
    START,
    link_first,
    unlink,
)
from semibandit.policies._random import next_beta, next_uniform

# Samples are kept inside the unit interval, so that the logarithms of a threshold are finite.
_LEAST, _MOST = 1e-300, 1.0 - 2.0**-53

# Groups up to this size are sampled arm by arm while the best D are not yet full: cheaper than inverting.
_FEW = 4


@kernel
def _sink(value, owner, size, at):  # type: ignore[no-untyped-def]
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
def _offer(value, owner, held, wanted, x, k):  # type: ignore[no-untyped-def]
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
def _hopeless(log_v, wins, losses, entropy, threshold, log_x, log_y):  # type: ignore[no-untyped-def]
    """Whether a survival of exp(log_v) surely lies below the threshold.

    Beta(s+1, f+1) exceeds x when a binomial (s + f + 1, x) is at most s: at most exp(-m kl(s/m, x)) for s/m < x,
    m = s + f + 1 (Chernoff).
    """
    if wins >= threshold * (wins + losses + 1.0):
        return False
    return log_v + entropy - wins * log_x - (losses + 1.0) * log_y > 0.0


@kernel
def _best_of_class(g, rng, c, wanted, value, owner):  # type: ignore[no-untyped-def]
    """The `wanted` largest posterior samples of class c and the groups they fell to, into value and owner.

    O(1) a group that cannot reach the best; O(sqrt(N)) for one that can.
    """
    held = 0
    threshold = 0.0
    log_x = 0.0
    log_y = 0.0
    k = g.head[c]
    while k >= 0:
        n = g.info[k, SIZE]
        wins = float(g.info[k, G_WINS])
        losses = float(g.info[k, G_LOSSES])
        if held < wanted and n <= _FEW:
            for _ in range(n):
                held = _offer(value, owner, held, wanted, next_beta(rng, wins + 1.0, losses + 1.0), k)
            if held == wanted:
                threshold = value[0]
                log_x = math.log(threshold)
                log_y = math.log1p(-threshold)
            k = g.info[k, NEXT]
            continue
        u = next_uniform(rng)
        # The survival of the group's largest sample is 1 - (1 - u)^(1/n), which is at least u/n.
        if held == wanted and _hopeless(
            math.log(u / n), wins, losses, g.const[k, ENTROPY], threshold, log_x, log_y
        ):
            k = g.info[k, NEXT]
            continue
        total = -math.log1p(-u) / n
        taken = 0
        while True:
            log_v = math.log(-math.expm1(-total))
            floor = 0.0
            if held == wanted:
                if _hopeless(log_v, wins, losses, g.const[k, ENTROPY], threshold, log_x, log_y):
                    break
                if log_v >= log_survival(threshold, wins + 1.0, losses + 1.0, g.const[k, LOG_BETA]):
                    break
                floor = threshold
            x = inverse_survival(log_v, wins + 1.0, losses + 1.0, g.const[k, LOG_BETA], floor)
            held = _offer(value, owner, held, wanted, x, k)
            if held == wanted:
                threshold = value[0]
                log_x = math.log(threshold)
                log_y = math.log1p(-threshold)
            taken += 1
            if taken >= min(n, wanted):
                break
            total -= math.log1p(-next_uniform(rng)) / (n - taken)
        k = g.info[k, NEXT]
    return held


@kernel
def _name_member(g, rng, k):  # type: ignore[no-untyped-def]
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
def draw_round(g, rng, pools, capacity, value, owner, out):  # type: ignore[no-untyped-def]
    """The arms whose posterior samples are the largest of their class, into `out`, unsorted; returns how many.

    `pools` are the classes of positive capacity; `value` and `owner` are scratch of the largest capacity. Changes the
    order of members, and brings the groups that won to the front of their lists, so that the threshold rises early in
    the next round. The law does not depend on either.
    """
    n = 0
    for i in range(pools.shape[0]):
        c = pools[i]
        if g.population[c] <= capacity[c]:
            k = g.head[c]
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


@kernel
def binarise(rng, rewards, low, span, won):  # type: ignore[no-untyped-def]
    """won[i] = 1 with probability (rewards[i] - low) / span, else 0; no draw where that is 0 or 1. O(n)."""
    for i in range(rewards.shape[0]):
        x = (rewards[i] - low) / span
        if x >= 1.0:
            won[i] = 1
        elif x <= 0.0:
            won[i] = 0
        else:
            won[i] = 1 if next_uniform(rng) < x else 0
