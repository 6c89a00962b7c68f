"""Lazy orders for tests."""

from __future__ import annotations

from typing import Any

from semibandit.compiled.jit import kernel
from semibandit.engines.order.lazy import add_unsorted, begin_anew, end_unsorted


@kernel
def fill(order: Any, weights: Any) -> None:
    """Let the order hold arms 0, 1, ... with these weights, unsorted."""
    begin_anew(order)
    for arm in range(weights.shape[0]):
        add_unsorted(order, arm, weights[arm])
    end_unsorted(order)
