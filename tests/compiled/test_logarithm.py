"""The logarithm of kernels beside that of the standard library, and places among eight lengths."""

from __future__ import annotations

import math

import numpy as np
import pytest

from semibandit.compiled.eights import place_in_eight
from semibandit.compiled.jit import kernel
from semibandit.compiled.logarithm import log_of


@kernel
def _fill(x, logs):
    for i in range(x.shape[0]):
        logs[i] = log_of(x[i])


@kernel
def _place(array, start, at):
    return place_in_eight(array, start, at)


@pytest.mark.bounds
def test_logarithms_are_right_to_rounding():
    rng = np.random.default_rng(0)
    x = np.concatenate(
        (
            np.exp(rng.uniform(-700, 700, 3_000)),
            1.0 + rng.uniform(-1e-3, 1e-3, 3_000),
            np.ldexp(1.0, np.arange(-1022, 1023)),
            np.sqrt([0.5, 2.0]),
        )
    )
    logs = np.zeros(len(x))
    _fill(x, logs)
    np.testing.assert_allclose(logs, [math.log(v) for v in x], rtol=4e-16, atol=0)


@pytest.mark.bounds
def test_a_place_among_eight_lengths():
    """Which of them it lies in, also where some are nothing, and behind all."""
    rng = np.random.default_rng(2)
    for _ in range(300):
        lengths = rng.integers(0, 5, 24).astype(float)
        ends = lengths[8:16].cumsum()
        for at in np.arange(0.0, ends[-1] + 2.0, 0.5):
            which = int((ends <= at).sum())
            begin = ends[which - 1] if which else 0.0
            assert _place(lengths, 8, at) == (which, at - begin)
