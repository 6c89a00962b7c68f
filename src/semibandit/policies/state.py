"""Taking values out of a saved state, which may come from a file: each is checked before it is used."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from semibandit.errors import FileError


def array_of(
    state: Mapping[str, Any], name: str, dtype: Any, size: int | None = None
) -> np.ndarray[Any, Any]:
    """The one-dimensional array `name` of `state`, a fresh copy, of the given type and (if told) size."""
    value = state[name]
    if not isinstance(value, np.ndarray) or value.ndim != 1 or value.dtype != np.dtype(dtype):
        raise FileError(f"state {name!r} is not an array of {np.dtype(dtype)}")
    if size is not None and value.size != size:
        raise FileError(f"state {name!r} has {value.size} entries, {size} expected")
    return value.copy()


def number_of(state: Mapping[str, Any], name: str) -> float:
    """The finite number `name` of `state`."""
    value = state[name]
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float, np.floating))
        or not math.isfinite(value)
    ):
        raise FileError(f"state {name!r} = {value!r} is not a finite number")
    return float(value)


def whole_of(state: Mapping[str, Any], name: str, least: int = 0) -> int:
    """The integer `name` of `state`, at least `least`."""
    value = state[name]
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise FileError(f"state {name!r} = {value!r} is not an integer of at least {least}")
    return int(value)


def grown(state: Mapping[str, Any], fresh: Mapping[str, Any]) -> dict[str, Any]:
    """`state` for more arms: an array that is longer in `fresh`, the state of a new policy, gets the rest from there.

    For arrays that hold one arm after the other. O(K).
    """
    made = dict(state)
    for name, value in state.items():
        longer = fresh.get(name)
        if isinstance(value, np.ndarray) and isinstance(longer, np.ndarray) and len(longer) > len(value):
            made[name] = np.concatenate((value, longer[len(value) :]))
    return made
