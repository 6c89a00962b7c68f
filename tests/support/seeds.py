"""Seeds of repeated tests: some of them always, the others with the slow tests."""

from __future__ import annotations

from typing import Any

import pytest


def seeds(fast: int, n: int) -> list[Any]:
    """0 .. n - 1, those from `fast` on marked as slow."""
    return [pytest.param(i, marks=[] if i < fast else [pytest.mark.slow]) for i in range(n)]
