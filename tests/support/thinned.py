"""Cases of two lists against each other: half of them in the fast run, the other half behind `slow`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def thinned(first: Iterable[Any], second: Iterable[Any]) -> list[Any]:
    """All pairs, every other one of them slow, like the fields of a chessboard.

    So the fast run meets everything in both lists, each with about half of the other.

    >>> [bool(pair.marks) for pair in thinned("ab", "cde")]
    [False, True, False, True, False, True]
    """
    columns = list(second)
    return [
        pytest.param(one, other, marks=[pytest.mark.slow] if (i + j) % 2 else [])
        for i, one in enumerate(first)
        for j, other in enumerate(columns)
    ]
