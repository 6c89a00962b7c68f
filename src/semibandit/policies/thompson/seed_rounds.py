"""The rounds of one-seed Thompson sampling as kernels: one normal number, and the engine asked at it."""

from __future__ import annotations

import math
from typing import NamedTuple

from semibandit.arms import BETA, COUNT
from semibandit.compiled.handle import Floats1, Number, Words1
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.random import next_normal, next_uniform
from semibandit.engines.clock import tick
from semibandit.engines.kernels import add_reward, check_feedback, engine_select, engine_touch_many
from semibandit.policies.rounds import implement_rounds, policy_learn

# Entries of `last`: what the engine was asked at in the last round, and the Z of that round.
QUERY, SEED = 0, 1


class SeedRounds(NamedTuple):
    """`sigma`: the width of all rounds, or 0 where `clock` tells it. `more`: what is added to N in the width.

    `levels`: the values that Z may take, each as likely as the others; empty if Z is normal.
    """

    sigma: Number
    more: Number
    clock: Floats1
    levels: Floats1
    rng: Words1
    last: Floats1


@kernel
def draw_query(own, t):
    """Draw Z of round t; the query, Z times the width. Changes `own`. O(1)."""
    if own.levels.shape[0] > 0:
        z = own.levels[int(next_uniform(own.rng) * own.levels.shape[0])]
    else:
        z = next_normal(own.rng)
    width = own.sigma if own.sigma > 0.0 else tick(own.clock, t)
    own.last[SEED] = z
    own.last[QUERY] = z * width
    return own.last[QUERY]


@inline_kernel
def _seed_select(own, engine, t, out):
    return engine_select(engine, draw_query(own, t), out)


@inline_kernel
def _seed_learn(own, engine, arms, rewards, n):
    recs = engine.recs
    for j in range(n):
        add_reward(recs, arms[j], rewards[j])
        if own.more > 0.0:
            recs[arms[j], BETA] = 1.0 / math.sqrt(recs[arms[j], COUNT] + own.more)


@inline_kernel
def seed_observe(own, engine, arms, rewards, low, high):
    """Validate a batch of feedback, then learn it and tell the engine. Returns as `engines.kernels.check_feedback`."""
    code = check_feedback(engine.recs.shape[0], arms, rewards, low, high)
    if code == 0:
        policy_learn(own, engine, arms, rewards, arms.shape[0])
        engine_touch_many(engine, arms)
    return code


implement_rounds(SeedRounds, select=_seed_select, learn=_seed_learn)
