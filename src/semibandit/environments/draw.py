"""Kernels that draw rewards: a pure function of (seed, arm, pull number, round) for each environment.

The generator is counter-based: nothing is stored but how often each arm was pulled, the n-th reward of an
arm is found in O(1), and every policy that faces the same seed meets the same rewards, whatever it plays in
between. A round costs O(D); nothing here grows with the number of arms.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.compiled.jit import kernel
from semibandit.compiled.random import mix64

BERNOULLI, BETA, GAUSSIAN, UNIFORM_NOISE, TABLE, CORRELATED, HEAVY_TAILED, ALTERNATING = range(8)

# Every environment hands over scalars of this length, so that all of them share one compiled signature.
N_SCALARS = 4
LOW, HIGH, SHARED, OWN = 0, 1, 2, 3
# Of HEAVY_TAILED: the chance of an outlier, and the exponent of its tail.
CHANCE, EXPONENT = 2, 3
# Of ALTERNATING: the logarithm of the factor by which phases grow.
LOG_GROWTH = 2

# Odd 64-bit multipliers. They spread small counters over all bits before mixing. All constants are uint64 on
# purpose: numba turns uint64 combined with int64 into float64, which would lose the low bits.
_SEED_STEP = np.uint64(0x9E3779B97F4A7C15)
_ARM_STEP = np.uint64(0xD1342543DE82EF95)
_PULL_STEP = np.uint64(0xF1357AEA2E62A9C5)
_STREAM_STEP = np.uint64(0xA0761D6478BD642F)
_11 = np.uint64(11)

_TO_UNIT = 1.0 / 9007199254740992.0
_TWO_PI = 2.0 * math.pi

# No arm has this id: under it the shared level of a round is drawn.
_NO_ARM = -1


@kernel
def uniform01(seed: np.uint64, arm: int, n: int, stream: int) -> Any:
    """Uniform number in [0, 1) with 53 bits, a pure function of its four integers. O(1).

    `n` is the pull number of the arm (from 0); `stream` tells apart several numbers for the same pull. The
    seed is mixed before the arm and the arm before the pull, so no shift of one argument repeats another's
    sequence; the pull enters by xor because by addition all arms would walk one cycle from different starts.
    """
    key = mix64(np.uint64(seed) + _SEED_STEP)
    key = mix64(key ^ (np.uint64(arm) * _ARM_STEP))
    z = mix64(key ^ (np.uint64(n) * _PULL_STEP + np.uint64(stream) * _STREAM_STEP))
    return np.float64(np.int64(z >> _11)) * _TO_UNIT


@kernel
def uniforms(seed: np.uint64, pulls: IntArray, arms: IntArray, out: FloatArray) -> None:
    """Uniform numbers for the next pull of arms[i], into column i of `out`. O(size of out).

    Row j of `out` (streams x arms) is stream j. Changes `pulls` (only at `arms`) and `out` in place.
    """
    for i in range(arms.size):
        arm = arms[i]
        n = pulls[arm]
        pulls[arm] = n + 1
        for stream in range(out.shape[0]):
            out[stream, i] = uniform01(seed, arm, n, stream)


@kernel
def _normal(seed: np.uint64, arm: int, n: int, stream: int) -> Any:
    """Standard normal number from streams `stream` and `stream + 1` (Box and Muller). O(1)."""
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform01(seed, arm, n, stream)))
    return radius * math.cos(_TWO_PI * uniform01(seed, arm, n, stream + 1))


@kernel
def _log_gamma_variate(shape: float, seed: np.uint64, arm: int, n: int, which: int) -> Any:
    """Logarithm of a Gamma(shape, 1) number by Marsaglia and Tsang's rejection. Expected O(1).

    Attempt i takes its numbers from streams 8 i + 4 which, ... + 2, so the result stays a pure function of
    the arguments. Logarithms because a small shape gives numbers below the smallest float.
    """
    log_boost = 0.0
    if shape < 1.0:
        # Gamma(a) = Gamma(a + 1) * U^(1/a)
        log_boost = math.log(1.0 - uniform01(seed, arm, n, 4 * which + 3)) / shape
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    stream = 4 * which
    while True:
        x = _normal(seed, arm, n, stream)
        v = 1.0 + c * x
        if v > 0.0:
            v = v * v * v
            u = 1.0 - uniform01(seed, arm, n, stream + 2)
            if math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
                return math.log(d * v) + log_boost
        stream += 8


@kernel
def _beta(a: float, b: float, seed: np.uint64, arm: int, n: int) -> Any:
    """Beta(a, b) number; a = 0 is the constant 0 and b = 0 the constant 1. Expected O(1)."""
    if a <= 0.0:
        return 0.0
    if b <= 0.0:
        return 1.0
    log_x = _log_gamma_variate(a, seed, arm, n, 0)
    log_y = _log_gamma_variate(b, seed, arm, n, 1)
    return 1.0 / (1.0 + math.exp(log_y - log_x))


@kernel
def _clip(x: float, low: float, high: float) -> Any:
    return min(max(x, low), high)


@kernel
def _bernoulli_reward(seed: np.uint64, low: float, high: float, probability: float, arm: int, n: int) -> Any:
    return high if uniform01(seed, arm, n, 0) < probability else low


@kernel
def _beta_reward(seed: np.uint64, low: float, high: float, a: float, b: float, arm: int, n: int) -> Any:
    return _clip(low + (high - low) * _beta(a, b, seed, arm, n), low, high)


@kernel
def _gaussian_reward(
    seed: np.uint64, low: float, high: float, location: float, sigma: float, arm: int, n: int
) -> Any:
    return _clip(location + sigma * _normal(seed, arm, n, 0), low, high)


@kernel
def _heavy_reward(
    seed: np.uint64,
    low: float,
    high: float,
    chance: float,
    exponent: float,
    log_median: float,
    sigma: float,
    start: float,
    arm: int,
    n: int,
) -> Any:
    if uniform01(seed, arm, n, 2) < chance:
        return _clip(start * (1.0 - uniform01(seed, arm, n, 3)) ** (-1.0 / exponent), low, high)
    return _clip(math.exp(log_median + sigma * _normal(seed, arm, n, 0)), low, high)


@kernel
def _noise_reward(
    seed: np.uint64, low: float, high: float, mean: float, half_width: float, arm: int, n: int
) -> Any:
    # Clipping only removes the last bit of rounding: the noise fits the range.
    return _clip(mean + half_width * (2.0 * uniform01(seed, arm, n, 0) - 1.0), low, high)


@kernel
def _table_row(seed: np.uint64, size: int, arm: int, n: int) -> Any:
    i = np.int64(uniform01(seed, arm, n, 0) * size)
    # u * size may round up to size when the row is very long
    return min(i, size - 1)


@kernel
def _round_level(seed: np.uint64, t: int) -> Any:
    return 2.0 * uniform01(seed, _NO_ARM, t, 0) - 1.0


@kernel
def _correlated_reward(
    seed: np.uint64,
    low: float,
    high: float,
    mean: float,
    half_width: float,
    shared_part: float,
    own_weight: float,
    arm: int,
    n: int,
) -> Any:
    noise = 2.0 * uniform01(seed, arm, n, 0) - 1.0
    return _clip(mean + half_width * (shared_part + own_weight * noise), low, high)


@kernel
def phase_of(t: int, log_growth: float) -> Any:
    """The phase that round t, from 1 on, is in: phase n begins with the round growth^n, rounded up. O(1)."""
    # A hair more, so that rounding does not put the first round of a phase into the one before.
    return np.int64(math.log(float(t)) / log_growth + 1e-12)


@kernel
def draw_many(
    kind: int,
    seed: np.uint64,
    scalars: FloatArray,
    params: FloatArray,
    offsets: IntArray,
    values: FloatArray,
    pulls: IntArray,
    arms: IntArray,
    t: int,
    out: FloatArray,
) -> None:
    """Rewards of the next pull of each of `arms` in round `t`, into `out`. O(len(arms)), for Beta expected.

    scalars: lowest reward, highest reward, weight of the shared level, weight of the arm's own noise (the
    last two for CORRELATED only). params: BERNOULLI one probability per arm; BETA pairs (a, b); GAUSSIAN
    pairs (location, sigma); UNIFORM_NOISE and CORRELATED pairs (mean, half width). TABLE draws from
    values[offsets[arm]:offsets[arm + 1]]. HEAVY_TAILED: scalars chance and exponent of outliers, params the logarithm
    of the median, sigma, where outliers start, and nothing. ALTERNATING: scalar growth of phases, params the
    probabilities in even and in odd phases. Only CORRELATED and ALTERNATING look at `t`.

    Changes `pulls` (only at `arms`; an arm named twice is pulled twice) and `out` in place. One loop a kind: a
    choice between the kinds for every arm takes several times what drawing does.
    """
    low = scalars[LOW]
    high = scalars[HIGH]
    if kind == BERNOULLI:
        for i in range(arms.size):
            arm = arms[i]
            n = pulls[arm]
            pulls[arm] = n + 1
            out[i] = _bernoulli_reward(seed, low, high, params[arm], arm, n)
    elif kind == UNIFORM_NOISE:
        for i in range(arms.size):
            arm = arms[i]
            n = pulls[arm]
            pulls[arm] = n + 1
            out[i] = _noise_reward(seed, low, high, params[2 * arm], params[2 * arm + 1], arm, n)
    elif kind == CORRELATED:
        shared_part = scalars[SHARED] * _round_level(seed, t)
        own = scalars[OWN]
        for i in range(arms.size):
            arm = arms[i]
            n = pulls[arm]
            pulls[arm] = n + 1
            p = params[2 * arm]
            out[i] = _correlated_reward(seed, low, high, p, params[2 * arm + 1], shared_part, own, arm, n)
    elif kind == TABLE:
        for i in range(arms.size):
            arm = arms[i]
            n = pulls[arm]
            pulls[arm] = n + 1
            first = offsets[arm]
            out[i] = values[first + _table_row(seed, offsets[arm + 1] - first, arm, n)]
    elif kind == GAUSSIAN:
        for i in range(arms.size):
            arm = arms[i]
            n = pulls[arm]
            pulls[arm] = n + 1
            out[i] = _gaussian_reward(seed, low, high, params[2 * arm], params[2 * arm + 1], arm, n)
    elif kind == HEAVY_TAILED:
        chance = scalars[CHANCE]
        exponent = scalars[EXPONENT]
        for i in range(arms.size):
            arm = arms[i]
            n = pulls[arm]
            pulls[arm] = n + 1
            p = 4 * arm
            out[i] = _heavy_reward(
                seed, low, high, chance, exponent, params[p], params[p + 1], params[p + 2], arm, n
            )
    elif kind == ALTERNATING:
        odd = phase_of(t, scalars[LOG_GROWTH]) % 2
        for i in range(arms.size):
            arm = arms[i]
            n = pulls[arm]
            pulls[arm] = n + 1
            out[i] = _bernoulli_reward(seed, low, high, params[2 * arm + odd], arm, n)
    else:
        for i in range(arms.size):
            arm = arms[i]
            n = pulls[arm]
            pulls[arm] = n + 1
            out[i] = _beta_reward(seed, low, high, params[2 * arm], params[2 * arm + 1], arm, n)
