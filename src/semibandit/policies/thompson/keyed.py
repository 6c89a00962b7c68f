"""Thompson sampling whose draws are functions of (seed, arm, round), for any split of the arms over processes.

A generator whose state is a hash of the three is opened for each sample, so the sample of an arm in a round depends on
nothing else: not on the other arms, not on what was drawn before. Whether the n-th reward of an arm, if it lies
strictly inside the range, counts as a success is drawn in the same way from (seed, arm, n). The law is that of the
plain sampler.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from semibandit.arms import ALPHA, BETA, COUNT
from semibandit.compiled.handle import Floats2, Ints1, Ints2, Number, Whole, Words1
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.random import mix64, next_beta, next_normal
from semibandit.engines.kernels import add_reward, engine_touch_all
from semibandit.policies.rounds import implement_rounds
from semibandit.policies.thompson.posterior_layout import LOSSES, WINS
from semibandit.policies.thompson.rounds import BETA_POSTERIOR, is_success

# Odd multipliers that spread small counters over all bits; uint64, because numba makes floats of mixed integers.
_ARM_STEP = np.uint64(0xD1342543DE82EF95)
_ROUND_STEP = np.uint64(0xF1357AEA2E62A9C5)
_ONE = np.uint64(1)


class KeyedRounds(NamedTuple):
    """As `rounds.PlainRounds`; `rng` holds the seed's word, which no draw changes, and `word` the generator at work.

    The arms are called ``first``, ``first + 1``, ... when they are drawn for, or `ids` unless that is empty.
    """

    low: Number
    span: Number
    sigma: Number
    posterior: Whole
    first: Whole
    recs: Floats2
    arm: Ints2
    ids: Ints1
    rng: Words1
    word: Words1


@inline_kernel
def _open_at(own, k, counter, odd):
    """Let ``own.word`` be the generator of arm k for this counter. `odd`: 0 for rounds, 1 for rewards."""
    name = own.ids[k] if own.ids.shape[0] else own.first + k
    key = mix64(own.rng[0] ^ (np.uint64(name) * _ARM_STEP))
    own.word[0] = mix64(key ^ ((np.uint64(counter) << _ONE | np.uint64(odd)) * _ROUND_STEP))


@inline_kernel
def _sample(own, k, t):
    if own.posterior == BETA_POSTERIOR:
        _open_at(own, k, t, 0)
        return next_beta(own.word, own.arm[k, WINS] + 1.0, own.arm[k, LOSSES] + 1.0)
    if own.recs[k, COUNT] > 0.0:
        _open_at(own, k, t, 0)
        return own.recs[k, ALPHA] + own.sigma * own.recs[k, BETA] * next_normal(own.word)
    return math.inf


@kernel
def draw_keyed(own, arms, t, out):
    """The sample of each of `arms` in round t, into `out`. Changes ``own.word``. O(n)."""
    for i in range(arms.shape[0]):
        out[i] = _sample(own, arms[i], t)


@inline_kernel
def _keyed_prepare(own, engine, t):
    for k in range(own.recs.shape[0]):
        engine.recs[k, ALPHA] = _sample(own, k, t)
    engine_touch_all(engine)
    return 0.0


@inline_kernel
def _keyed_learn(own, engine, arms, rewards, n):
    for j in range(n):
        arm = arms[j]
        if own.posterior == BETA_POSTERIOR:
            _open_at(own, arm, np.int64(own.recs[arm, COUNT]), 1)
            own.arm[arm, LOSSES - is_success(own.word, rewards[j], own.low, own.span)] += 1
        add_reward(own.recs, arm, rewards[j])


implement_rounds(KeyedRounds, prepare=_keyed_prepare, learn=_keyed_learn, touches="nothing")
