"""BG-CTS: Gaussian Thompson sampling with a wider posterior (Zhang and Combes 2024).

Independent draws rarely overestimate all arms of the best base at once, so that the regret of plain Thompson sampling
may grow exponentially with D. With the variance of each draw ``g(t) sigma^2 / N``,
g(t) = 2 (log t + (D + 2) log log t) / log t, it grows polynomially. g falls to 2 as t grows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from semibandit.arms import ALPHA
from semibandit.compiled.handle import Floats2, Ints2, Number, Words1
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.engines.kernels import add_reward, engine_touch_all
from semibandit.policies.rounds import implement_rounds
from semibandit.policies.thompson.rounds import GAUSSIAN_POSTERIOR, draw_samples


class BoostedRounds(NamedTuple):
    """As `thompson.rounds.PlainRounds`, with the rank D."""

    sigma: Number
    rank: Number
    recs: Floats2
    arm: Ints2
    rng: Words1


@kernel
def boosted_sigma(sigma, rank, t):
    """sigma sqrt(g(t)); t counts as e at least, so that g is positive. O(1).

    >>> round(boosted_sigma(1.0, 5.0, 1), 3), round(boosted_sigma(1.0, 5.0, 10**6) ** 2, 3)
    (1.414, 4.661)
    """
    log = max(1.0, math.log(max(1.0, float(t))))
    return sigma * math.sqrt(2.0 * (log + (rank + 2.0) * math.log(log)) / log)


@inline_kernel
def _boosted_prepare(own, engine, t):
    sigma = boosted_sigma(own.sigma, own.rank, t)
    draw_samples(GAUSSIAN_POSTERIOR, sigma, own.recs, own.arm, own.rng, engine.recs, ALPHA)
    engine_touch_all(engine)
    return 0.0


@inline_kernel
def _boosted_learn(own, engine, arms, rewards, n):
    for j in range(n):
        add_reward(own.recs, arms[j], rewards[j])


implement_rounds(BoostedRounds, prepare=_boosted_prepare, learn=_boosted_learn, touches="nothing")
