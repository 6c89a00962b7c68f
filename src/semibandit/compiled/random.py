"""SplitMix64: the randomness inside kernels.

Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014. `mix64` is its finaliser; environments
draw pure functions of counters with it (`semibandit.environments.draw`), policies draw one number after another
from a generator whose whole state is an array of one word, which can be copied, saved and set.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from semibandit.compiled.jit import inline_kernel, kernel

# All constants are uint64: numba turns uint64 combined with int64 into float64.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_12 = np.uint64(12)
_27 = np.uint64(27)
_30 = np.uint64(30)
_31 = np.uint64(31)

_TO_UNIT = 1.0 / 4503599627370496.0


@inline_kernel
def mix64(z: np.uint64) -> Any:
    """SplitMix64's finaliser: a bijection; every input bit reaches every output bit. O(1)."""
    z = (z ^ (z >> _30)) * _MIX_1
    z = (z ^ (z >> _27)) * _MIX_2
    return z ^ (z >> _31)


def new_state(seed: int) -> npt.NDArray[np.uint64]:
    """A generator's state for a seed in 0 .. 2^64 - 1; neighbouring seeds start far apart."""
    with np.errstate(over="ignore"):
        return np.array([mix64.py_func(np.uint64(seed) + _STEP)], dtype=np.uint64)


@inline_kernel
def next_uniform(state: Any) -> Any:
    """A number strictly between 0 and 1, a multiple of 2^-53. Changes `state`. O(1)."""
    z = state[0] + _STEP
    state[0] = z
    # 52 bits and a half: with 53 the largest would round to 1.
    return (np.float64(np.int64(mix64(z) >> _12)) + 0.5) * _TO_UNIT


@kernel
def fill_uniforms(state: Any, out: Any) -> None:
    """A uniform number for every place of `out`. Changes `state`. O(len(out))."""
    for i in range(out.shape[0]):
        out[i] = next_uniform(state)


def _layers(power: int, tail: float, area: float) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """256 layers of equal area under exp(-x**power / power): right ends, widest first, and the height there.

    The first stands for a rectangle of the same area with the tail beyond x[1] in it.
    """
    x = [area * math.exp(tail**power / power), tail]
    while len(x) < 256:
        height = area / x[-1] + math.exp(-(x[-1] ** power) / power)
        x.append((-power * math.log(height)) ** (1.0 / power))
    ends = np.array([*x, 0.0])
    return ends, np.exp(-(ends**power) / power)


_END, _HEIGHT = _layers(1, 7.69711747013104972, 0.0039496598225815571993)
_NORMAL_END, _NORMAL_HEIGHT = _layers(2, 3.6541528853610088, 0.00492867323399)
_255, _7, _2 = np.uint64(255), np.uint64(7), np.uint64(2)


@inline_kernel
def _exponential_of(z: np.uint64) -> Any:
    """A layer, and a number that is a standard exponential one if it lies below the next layer's end. O(1)."""
    # The bits that the uniform number leaves choose the layer.
    i = np.int64(z & _255)
    return i, (np.float64(np.int64(z >> _12)) + 0.5) * _TO_UNIT * _END[i]


@kernel
def _rare_exponential(state: Any, i: int, x: float) -> Any:
    """`next_exponential` where the number lies in layer i beyond the next one's end. Changes `state`. Expected O(1)."""
    while True:
        if i == 0:
            return _END[1] - math.log(next_uniform(state))
        if _HEIGHT[i] + next_uniform(state) * (_HEIGHT[i + 1] - _HEIGHT[i]) < math.exp(-x):
            return x
        z = state[0] + _STEP
        state[0] = z
        i, x = _exponential_of(mix64(z))
        if x < _END[i + 1]:
            return x


@inline_kernel
def next_exponential(state: Any) -> Any:
    """A standard exponential number (Marsaglia and Tsang's ziggurat, 2000). Changes `state`. Expected O(1)."""
    # What nearly always happens stands here, so that it is compiled into the loop that asks.
    z = state[0] + _STEP
    state[0] = z
    i, x = _exponential_of(mix64(z))
    return x if x < _END[i + 1] else _rare_exponential(state, i, x)


@kernel
def next_normal(state: Any) -> Any:
    """A standard normal number (Marsaglia and Tsang's ziggurat, 2000). Changes `state`. Expected O(1)."""
    while True:
        z = state[0] + _STEP
        state[0] = z
        z = mix64(z)
        # The bits that the uniform number leaves choose the layer and the sign.
        i = np.int64(z & _255)
        sign = 1.0 - np.float64(np.int64((z >> _7) & _2))
        x = (np.float64(np.int64(z >> _12)) + 0.5) * _TO_UNIT * _NORMAL_END[i]
        if x < _NORMAL_END[i + 1]:
            return sign * x
        if i == 0:
            while True:
                x = -math.log(next_uniform(state)) / _NORMAL_END[1]
                if -2.0 * math.log(next_uniform(state)) > x * x:
                    return sign * (_NORMAL_END[1] + x)
        low, high = _NORMAL_HEIGHT[i], _NORMAL_HEIGHT[i + 1]
        if low + next_uniform(state) * (high - low) < math.exp(-0.5 * x * x):
            return sign * x


@kernel
def next_gamma(state: Any, shape: float) -> Any:
    """A Gamma(shape, 1) number for shape >= 1 (Marsaglia and Tsang 2000). Changes `state`. Expected O(1)."""
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = next_normal(state)
        v = 1.0 + c * x
        if v > 0.0:
            v = v * v * v
            u = next_uniform(state)
            # Nearly always enough, and it implies the exact condition: no logarithm.
            if u < 1.0 - 0.0331 * x * x * x * x:
                return d * v
            if math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
                return d * v


@kernel
def next_beta(state: Any, a: float, b: float) -> Any:
    """A Beta(a, b) number for a, b >= 1. Changes `state`. Expected O(1)."""
    x = next_gamma(state, a)
    return x / (x + next_gamma(state, b))
