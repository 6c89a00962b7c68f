"""What FTRL knows: estimated costs of each arm from what was seen of it, weighted by one over the chance to see it."""

from __future__ import annotations

import math
from typing import NamedTuple

from semibandit.arms import COUNT, TOTAL
from semibandit.compiled.handle import Flags1, Floats1, Floats2, Number, Whole, Words1
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.engines.kernels import add_reward
from semibandit.policies.ftrl.regularisers import MEANS, NO_GUESS, STEPS, rate_at

#: What `Estimates.about` holds: the rate of the last round, and of the last search by Frank-Wolfe the duality gap, the
#: largest gap so far, and how many steps all of them took.
RATE, GAP, WORST_GAP, N_STEPS, N_ABOUT = range(5)

#: Of gradient steps of the predictions (Tsuchiya, Ito and Honda 2023).
_STEP = 0.25


class Estimates(NamedTuple):
    """`phi`, `guesses`: see `regularisers`. `floor`: scale of the regulariser before anything is seen.

    By arm: `cost`, estimated losses summed up, of an absent arm with the price of a place when it left added; `scale`
    of the regulariser and the sum `spread` it follows from; `predicted` loss; `x` and `rest` = 1 - x, the chance to be
    played in the last round; `place`, where `chance_at` begins; `chance` and `guess`, chance and prediction in the
    round in which the arm was last played; `here`: not deleted; `present`: may be played in this round.
    """

    phi: Whole
    guesses: Whole
    gamma: Number
    floor: Number
    low: Number
    high: Number
    recs: Floats2
    cost: Floats1
    scale: Floats1
    spread: Floats1
    predicted: Floats1
    x: Floats1
    rest: Floats1
    place: Floats1
    chance: Floats1
    guess: Floats1
    here: Flags1
    present: Flags1
    rng: Words1
    about: Floats1


@kernel
def begin_round(est, t):
    """Set the rate of round t, and let predictions stand for the losses of this round. O(K), or O(1) without them."""
    est.about[RATE] = rate_at(est.phi, t)
    if est.guesses != NO_GUESS:
        for arm in range(est.cost.shape[0]):
            if est.here[arm]:
                est.cost[arm] += est.predicted[arm]


@inline_kernel
def note_play(est, arms, n):
    """Keep what the feedback of ``arms[:n]``, played now, will be weighted by. O(n)."""
    for j in range(n):
        est.chance[arms[j]] = est.x[arms[j]]
        est.guess[arms[j]] = est.predicted[arms[j]]


@kernel
def _learn_one(est, arm, reward):
    """Count a reward of an arm that was played with chance `chance` while `guess` was predicted. O(1).

    Estimates may differ by a number that is the same for all arms: every base has as many arms. So HYBRID's
    ``(loss + 1) a / x - 1``, losses being in [-1, 1], is counted without the -1, and arms not played need no visit.
    """
    add_reward(est.recs, arm, reward)
    loss = (est.high - reward) / (est.high - est.low)
    x = est.chance[arm]
    if est.guesses == NO_GUESS:
        est.cost[arm] += 2.0 * loss / x
        return
    off = loss - est.guess[arm]
    est.cost[arm] += off / x
    est.spread[arm] += off * off * min(1.0, 2.0 * (1.0 - x) / (x * x * est.gamma))
    est.scale[arm] = math.sqrt(est.floor * est.floor + est.spread[arm] / est.gamma)
    if est.guesses == MEANS:
        seen = est.recs[arm, COUNT]
        losses = (seen * est.high - est.recs[arm, TOTAL]) / (est.high - est.low)
        est.predicted[arm] = (0.5 + losses) / (1.0 + seen)
    elif est.guesses == STEPS:
        est.predicted[arm] += _STEP * (loss - est.predicted[arm])


@inline_kernel
def learn_all(own, engine, arms, rewards, n):
    """Count valid feedback of ``arms[:n]``. O(n)."""
    for j in range(n):
        _learn_one(own.est, arms[j], rewards[j])
