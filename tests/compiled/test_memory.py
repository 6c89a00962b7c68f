"""What kernels ask of memory, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from semibandit.compiled.jit import kernel
from semibandit.compiled.memory import insert_word

_insert = insert_word(12)


@kernel
def insert(array: Any, first: Any, i: Any, word: Any) -> None:
    _insert(array, first, i, word)


@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_a_word_is_inserted_and_the_last_one_goes(kind: type) -> None:
    for first in range(4):
        for i in range(12):
            array = np.arange(1, 17).astype(kind)
            expected = array.copy()
            expected[first : first + 12] = np.insert(array[first : first + 12], i, -7)[:12]
            insert(array, first, i, array.dtype.type(-7))
            assert np.array_equal(array, expected)
