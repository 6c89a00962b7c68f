"""The rounds of OSSB for matroids as kernels: the leader, what each other arm could replace, and what is under-sampled."""

from __future__ import annotations

import math
from typing import NamedTuple

from semibandit.arms import ALPHA
from semibandit.compiled.handle import Floats1, Ints1, Number, Whole
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.sorting import sort_ids_in_place
from semibandit.engines.resolve.one_by_one import TAKEN, begin, take
from semibandit.policies.index.count_groups import ABSENT, UP, CountGroups, count_reward, plays_of
from semibandit.policies.index.gains import choose
from semibandit.policies.rounds import implement_rounds

BERNOULLI, GAUSSIAN = 0, 1

# Of `meta`: arms of the leader, arms of the leader that `partner` was found for (-1: of none). Of `rounds`: those in
# which OSSB did not exploit. Of `partner`, in place of an arm: not known yet, in the leader, in no base.
IN_LEADER, KNOWN_FOR = 0, 1
UNSET, LEADING, LOOP = -1, -2, -3
EXPLORED = 0


class OssbRounds(NamedTuple):
    """`leader`: the base of largest mean, heaviest first; `before`: the one that `partner` belongs to. `partner`: the
    lightest arm of the leader that an arm can replace, sigma(k). `by_class`: the same for all arms of a class where
    there are classes. `sigma`: for Gaussian rewards. `none`: no arms."""

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
def mark_leader(own, arms):
    """Whether `partner` must be found anew, with the leader marked in it. O(candidates) if so, else O(D)."""
    n = own.meta[IN_LEADER]
    same = arms.shape[0] == 0 and own.meta[KNOWN_FOR] == n
    for j in range(n):
        same = same and own.leader[j] == own.before[j]
    if same:
        return False
    for i in range(_n_candidates(own, arms)):
        arm = _candidate(own, arms, i)
        if arm >= 0:
            own.partner[arm] = UNSET
    for j in range(n):
        own.before[j] = own.leader[j]
        own.partner[own.leader[j]] = LEADING
    # What was found among some arms is of no use to others.
    own.meta[KNOWN_FOR] = n if arms.shape[0] == 0 else -1
    own.by_class[:] = UNSET
    return True


@kernel
def _find_partners(own, rule, arms):
    """sigma(k) of all candidates: O(classes * D + K) where there are classes, else O(K * D) membership tests."""
    shared = own.by_class.shape[0] > 0
    for i in range(_n_candidates(own, arms)):
        arm = _candidate(own, arms, i)
        if arm < 0 or own.partner[arm] == LEADING:
            continue
        c = own.groups.classes[arm]
        if shared and own.by_class[c] != UNSET:
            own.partner[arm] = own.by_class[c]
            continue
        own.partner[arm] = _lightest_replaced(own, rule, arm)
        if shared:
            own.by_class[c] = own.partner[arm]


@kernel
def arm_to_explore(own, t, arms):
    """The arm that the leader must make room for in round t, or -1 to exploit. Counts rounds without exploiting. O(K)."""
    fewest = least = math.inf
    rarest = neediest = -1
    plays = 0.0
    for i in range(_n_candidates(own, arms)):
        arm = _candidate(own, arms, i)
        if arm < 0 or own.partner[arm] == LOOP:
            continue
        n = plays_of(own.groups, arm)
        if n < fewest:
            fewest = n
            rarest = arm
        if own.partner[arm] == LEADING:
            continue
        known = n * _divergence(own, arm, own.partner[arm])
        if known < least or (known == least and n < plays):
            least = known
            neediest = arm
            plays = n
    if least >= (1.0 + own.gamma) * math.log(float(t)):
        return -1
    own.rounds[EXPLORED] += 1.0
    return rarest if fewest <= own.epsilon * own.rounds[EXPLORED] else neediest


@kernel
def has_unseen(own):
    """Whether the leader has an arm that was never played. O(D)."""
    for j in range(own.meta[IN_LEADER]):
        if plays_of(own.groups, own.leader[j]) <= 0.0:
            return True
    return False


@kernel
def write_base(own, arm, out):
    """The leader, with `arm` in place of its partner unless it is -1 or there already; ascending. How many. O(D log D)."""
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
    if mark_leader(own, arms):
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
