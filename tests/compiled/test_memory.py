"""What kernels ask of memory, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from semibandit.compiled.jit import kernel
from semibandit.compiled.memory import copy_four


@kernel
def copy(array: Any, to: Any, start: Any) -> None:
    copy_four(array, to, start)


@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_four_are_read_before_any_is_written(kind: type) -> None:
    for to in range(9):
        for start in range(9):
            array = np.arange(12).astype(kind)
            expected = array.copy()
            expected[to : to + 4] = array[start : start + 4]
            copy(array, to, start)
            assert np.array_equal(array, expected)
