"""The rounds of OSSB for matroids as kernels: the leader, what each other arm could replace, what is under-sampled."""

from __future__ import annotations

import math
from typing import NamedTuple

from semibandit.arms import ALPHA
from semibandit.compiled.handle import Floats1, Ints1, Number, Whole
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.sorting import sort_ids_in_place
from semibandit.engines.resolve.one_by_one import TAKEN, begin, take
from semibandit.policies.index.count_groups import (
    ABSENT,
    FIRST,
    LIVE,
    UP,
    CountGroups,
    comes_before,
    count_reward,
    plays_of,
    successor,
)
from semibandit.policies.index.gains import choose
from semibandit.policies.rounds import implement_rounds
from semibandit.policies.thompson.posterior_layout import CLASS

BERNOULLI, GAUSSIAN = 0, 1

# Of `meta`: arms of the leader; how many of `before` are marked in `partner`; whether what was found for them holds.
# Of `partner`, in place of an arm: not known yet, in the leader, in no base. Of `rounds`: those without exploiting.
IN_LEADER, MARKED, VALID = range(3)
UNSET, LEADING, LOOP = -1, -2, -3
EXPLORED = 0


class OssbRounds(NamedTuple):
    """`leader`: the base of largest mean, heaviest first; `before`: the one that `partner` belongs to. `partner`: the
    lightest arm of the leader that an arm can replace, sigma(k). `by_class`: the same for all arms of a class; empty
    where there are no classes. `sigma`: for Gaussian rewards. `none`: no arms."""

    groups: CountGroups
    low: Number
    span: Number
    rewards: Whole
    sigma: Number
    gamma: Number
    epsilon: Number
    leader: Ints1
    before: Ints1
    partner: Ints1
    by_class: Ints1
    meta: Ints1
    rounds: Floats1
    none: Ints1


@inline_kernel
def _divergence(own, arm, other):
    """Relative entropy between rewards of the means of two arms, the second of which is no worse. O(1)."""
    recs = own.groups.recs
    if own.rewards == GAUSSIAN:
        z = (recs[other, ALPHA] - recs[arm, ALPHA]) / own.sigma
        return 0.5 * z * z
    p = min(1.0, max(0.0, (recs[arm, ALPHA] - own.low) / own.span))
    q = min(1.0, max(0.0, (recs[other, ALPHA] - own.low) / own.span))
    if p >= q:
        return 0.0
    if q >= 1.0:
        return math.inf
    # log1p of the difference: for close means the logarithms themselves would cancel.
    first = p * math.log1p((p - q) / q) if p > 0.0 else 0.0
    return max(0.0, first + (1.0 - p) * math.log1p((q - p) / (1.0 - q)))


@kernel
def _lightest_replaced(own, rule, arm):
    """The lightest arm of the leader that `arm` can replace, or LOOP: greedy over `arm`, then the leader. O(D)."""
    begin(rule)
    if take(rule, arm) != TAKEN:
        return LOOP
    last = own.meta[IN_LEADER] - 1
    for j in range(last):
        if take(rule, own.leader[j]) != TAKEN:
            return own.leader[j]
    # The leader is a base, so not all of it goes with another arm.
    return own.leader[last]


@kernel
def mark_leader(own, arms):
    """Whether partners must be found anew, with the leader marked in `partner`. O(D), and O(K) without classes."""
    n = own.meta[IN_LEADER]
    same = arms.shape[0] == 0 and own.meta[VALID] == 1 and own.meta[MARKED] == n
    for j in range(n):
        same = same and own.leader[j] == own.before[j]
    if same:
        return False
    for j in range(own.meta[MARKED]):
        own.partner[own.before[j]] = UNSET
    for j in range(n):
        own.before[j] = own.leader[j]
        own.partner[own.leader[j]] = LEADING
    own.meta[MARKED] = n
    # What was found among some arms is of no use to others.
    own.meta[VALID] = arms.shape[0] == 0
    own.by_class[:] = UNSET
    return True


@inline_kernel
def _n_candidates(own, arms):
    return arms.shape[0] if arms.shape[0] > 0 else own.partner.shape[0]


@inline_kernel
def _candidate(own, arms, i):
    """The i-th arm that may be played, or -1."""
    if arms.shape[0] > 0:
        return arms[i]
    return i if own.groups.node[i, UP] != ABSENT else -1


@kernel
def _find_partners(own, rule, arms):
    """sigma(k) of all candidates. O(K * D) membership tests."""
    for i in range(_n_candidates(own, arms)):
        arm = _candidate(own, arms, i)
        if arm >= 0 and own.partner[arm] != LEADING:
            own.partner[arm] = _lightest_replaced(own, rule, arm)


@inline_kernel
def _is_rarer(own, arm, n, other, fewest):
    """Fewer plays; of equals the larger mean, then the smaller id."""
    return n < fewest or (n == fewest and comes_before(own.groups.recs, arm, other))


@inline_kernel
def _is_needier(own, arm, n, known, other, plays, least):
    """Smaller N kl; of equals fewer plays, the larger mean, then the smaller id."""
    return known < least or (known == least and _is_rarer(own, arm, n, other, plays))


@inline_kernel
def _decide(own, t, rarest, fewest, neediest, least):
    """The arm that the leader must make room for in round t, or -1 to play the leader. Counts rounds of exploration.

    An arm is not explored at the expense of one that was played less: what is close to a badly known mean would be
    played for ever, and that mean never.
    """
    if neediest < 0 or least >= (1.0 + own.gamma) * math.log(float(t)):
        return -1
    own.rounds[EXPLORED] += 1.0
    if fewest <= own.epsilon * own.rounds[EXPLORED]:
        return rarest
    return neediest if plays_of(own.groups, own.partner[neediest]) >= plays_of(own.groups, neediest) else -1


@kernel
def arm_to_explore(own, t, arms):
    """`_decide` from the partners of all candidates. O(K)."""
    fewest = least = plays = math.inf
    rarest = neediest = -1
    for i in range(_n_candidates(own, arms)):
        arm = _candidate(own, arms, i)
        if arm < 0 or own.partner[arm] == LOOP:
            continue
        n = plays_of(own.groups, arm)
        if _is_rarer(own, arm, n, rarest, fewest):
            fewest = n
            rarest = arm
        if own.partner[arm] == LEADING:
            continue
        known = n * _divergence(own, arm, own.partner[arm])
        if _is_needier(own, arm, n, known, neediest, plays, least):
            least = known
            plays = n
            neediest = arm
    return _decide(own, t, rarest, fewest, neediest, least)


@kernel
def _arm_to_explore_by_class(own, rule, t):
    """`arm_to_explore` where arms of a class share their partner: of those played equally often only the one of largest
    mean outside the leader can be the neediest. O(groups), and D membership tests for each class of a new leader."""
    g = own.groups
    fewest = least = plays = math.inf
    rarest = neediest = -1
    for k in range(g.meta[LIVE]):
        arm = g.info[k, FIRST]
        n = plays_of(g, arm)
        outside = arm
        while outside >= 0 and own.partner[outside] == LEADING:
            outside = successor(g, outside)
        if outside >= 0:
            c = g.info[k, CLASS]
            if own.by_class[c] == UNSET:
                own.by_class[c] = _lightest_replaced(own, rule, outside)
            partner = own.by_class[c]
            if partner == LOOP:
                continue
            known = n * _divergence(own, outside, partner)
            if _is_needier(own, outside, n, known, neediest, plays, least):
                least = known
                plays = n
                neediest = outside
                own.partner[outside] = partner
        if _is_rarer(own, arm, n, rarest, fewest):
            fewest = n
            rarest = arm
            if arm == outside:
                own.partner[arm] = own.by_class[g.info[k, CLASS]]
    return _decide(own, t, rarest, fewest, neediest, least)


@kernel
def has_unseen(own):
    """Whether the leader has an arm that was never played. O(D)."""
    fewest = math.inf
    for j in range(own.meta[IN_LEADER]):
        fewest = min(fewest, plays_of(own.groups, own.leader[j]))
    return fewest <= 0.0


@kernel
def write_base(own, arm, out):
    """The leader, with `arm` in place of its partner unless it is -1 or there already; ascending. How many arms."""
    n = own.meta[IN_LEADER]
    gone = own.partner[arm] if arm >= 0 else LEADING
    for j in range(n):
        out[j] = arm if own.leader[j] == gone else own.leader[j]
    sort_ids_in_place(out, n)
    return n


@kernel
def ossb_round(own, rule, t, arms, out):
    """The base of round t among `arms`, or all; ascending. How many."""
    own.meta[IN_LEADER] = choose(own.groups, rule, 0.0, arms, own.leader)
    if has_unseen(own):
        return write_base(own, -1, out)
    new = mark_leader(own, arms)
    if own.by_class.shape[0] > 0 and arms.shape[0] == 0:
        return write_base(own, _arm_to_explore_by_class(own, rule, t), out)
    if new:
        _find_partners(own, rule, arms)
    return write_base(own, arm_to_explore(own, t, arms), out)


@inline_kernel
def _ossb_select(own, rule, t, out):
    return ossb_round(own, rule, t, own.none, out)


@kernel
def _ossb_learn(own, rule, arms, rewards, n):
    for j in range(n):
        count_reward(own.groups, arms[j], rewards[j])


implement_rounds(OssbRounds, select=_ossb_select, learn=_ossb_learn, touches="nothing")
