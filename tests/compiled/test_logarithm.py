"""The logarithm of kernels beside that of the standard library."""

from __future__ import annotations

import math

import numpy as np
import pytest

from semibandit.compiled.jit import kernel
from semibandit.compiled.logarithm import log_of


@kernel
def _fill(x, logs):
    for i in range(x.shape[0]):
        logs[i] = log_of(x[i])


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
