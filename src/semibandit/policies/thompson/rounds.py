"""The rounds of Thompson sampling as kernels: plain, all K samples each round; how groups of equal posteriors learn."""

from __future__ import annotations

import math
from typing import NamedTuple

from semibandit.arms import ALPHA, BETA, COUNT
from semibandit.compiled.handle import Floats2, Ints2, Number, Whole, Words1
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.memory import prefetch_to_write
from semibandit.compiled.random import next_beta, next_normal, next_uniform
from semibandit.engines.kernels import add_reward, engine_touch_all
from semibandit.policies.rounds import implement_rounds
from semibandit.policies.thompson.posterior_layout import LOSSES, WINS
from semibandit.policies.thompson.posterior_moves import move_all

BETA_POSTERIOR, GAUSSIAN_POSTERIOR = 0, 1


@inline_kernel
def is_success(rng, reward, low, span):
    """1 with probability (reward - low) / span, else 0; no draw where that is 0 or 1. Changes `rng`. O(1)."""
    x = (reward - low) / span
    if x >= 1.0:
        return 1
    if x <= 0.0:
        return 0
    return 1 if next_uniform(rng) < x else 0


# -- plain -------------------------------------------------------------------------------------------------------


class PlainRounds(NamedTuple):
    """`recs`: counts and sums; those of the engine hold the samples. `arm`: successes and failures
    (`posterior_layout`). `sigma`: standard deviation of a reward, for the Gaussian posterior."""

    low: Number
    span: Number
    sigma: Number
    posterior: Whole
    recs: Floats2
    arm: Ints2
    rng: Words1


@kernel
def draw_samples(posterior, sigma, recs, arm, rng, out, column):
    """One sample of the mean of each arm into ``out[:, column]``. Changes `rng` and `out`. O(K)."""
    if posterior == BETA_POSTERIOR:
        for k in range(out.shape[0]):
            out[k, column] = next_beta(rng, arm[k, WINS] + 1.0, arm[k, LOSSES] + 1.0)
        return
    for k in range(out.shape[0]):
        if recs[k, COUNT] > 0.0:
            out[k, column] = recs[k, ALPHA] + sigma * recs[k, BETA] * next_normal(rng)
        else:
            out[k, column] = math.inf


@inline_kernel
def _plain_prepare(own, engine, t):
    draw_samples(own.posterior, own.sigma, own.recs, own.arm, own.rng, engine.recs, ALPHA)
    engine_touch_all(engine)
    return 0.0


@inline_kernel
def _plain_learn(own, engine, arms, rewards, n):
    for j in range(n):
        arm = arms[j]
        add_reward(own.recs, arm, rewards[j])
        if own.posterior == BETA_POSTERIOR:
            own.arm[arm, LOSSES - is_success(own.rng, rewards[j], own.low, own.span)] += 1


implement_rounds(PlainRounds, prepare=_plain_prepare, learn=_plain_learn, touches="nothing")


# -- grouped -----------------------------------------------------------------------------------------------------

# `waiting` and `won` of such rounds: arms and outcomes of the last feedback, kept until the groups have room for them.
# Of `meta`: outcomes BEGIN .. END - 1 wait to be counted; JOIN: that of BEGIN is counted, but its arm is in no group.
BEGIN, END, JOIN = 0, 1, 2


@kernel
def move_waiting(own):
    """Count the outcomes that wait, as far as there is room. Amortised O(1) an outcome."""
    g, meta = own.groups, own.meta
    if meta[BEGIN] < meta[END]:
        at = move_all(g, own.waiting[: meta[END]], own.won, meta[BEGIN])
        meta[JOIN] = 1 if at >= 0 else 0
        meta[BEGIN] = at if at >= 0 else meta[END]


@inline_kernel
def grouped_learn(own, engine, arms, rewards, n):
    """Count the outcomes, and keep those for which the groups have no room. Amortised O(1) an outcome."""
    for j in range(n):
        prefetch_to_write(engine.recs, arms[j])
    for j in range(n):
        add_reward(engine.recs, arms[j], rewards[j])
        own.waiting[j] = arms[j]
        own.won[j] = is_success(own.rng, rewards[j], own.low, own.span)
    own.meta[BEGIN] = 0
    own.meta[END] = n
    move_waiting(own)
