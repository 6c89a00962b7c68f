"""Which of eight lengths a place is in."""

from __future__ import annotations

import numpy as np
import pytest

from semibandit.compiled.eights import place_in_eight
from semibandit.compiled.jit import kernel


@kernel
def _place(array, start, at):
    return place_in_eight(array, start, at)


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
