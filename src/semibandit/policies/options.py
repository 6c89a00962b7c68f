"""Checks of options that several policies share."""

from __future__ import annotations

from typing import Any

import numpy as np

from semibandit.errors import ParameterError

CLOCKS = ("exact", "staircase", "auto")


def check_exploration(exploration: float) -> float:
    """`exploration` as a finite nonnegative float, or a `ParameterError`."""
    if not (np.isfinite(exploration) and exploration >= 0.0):
        raise ParameterError(f"exploration must be finite and nonnegative, got {exploration}")
    return float(exploration)


def check_clock(clock: str) -> str:
    """`clock`, or a `ParameterError` that names the clocks there are."""
    if clock not in CLOCKS:
        raise ParameterError(f"clock = {clock!r} is not known: one of {', '.join(map(repr, CLOCKS))}")
    return clock


def check_step(step: float) -> float:
    """The relative height of a stair, strictly between 0 and 1, or a `ParameterError`."""
    if not (np.isfinite(step) and 0.0 < step < 1.0):
        raise ParameterError(f"step must lie strictly between 0 and 1, got {step}")
    return float(step)


def check_whole(value: Any, name: str, least: int, why: str) -> int:
    """`value` as an integer of at least `least`, or a `ParameterError`."""
    whole = isinstance(value, (int, np.integer)) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, (bool, np.bool_)) or not whole or value < least:
        raise ParameterError(f"{name} must be an integer of at least {least} ({why}), got {value!r}")
    return int(value)
