"""Features at the door: one row of numbers per arm, fixed or given with a call."""

from __future__ import annotations

from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.compiled.handle import ROW
from semibandit.errors import ParameterError

#: No feature may be larger in size, so that squares of them can be summed.
LARGEST = 1e100

#: Without features every arm is a feature of its own, for at most so many arms: d x d numbers are kept several times.
ONE_HOT = 512


def as_matrix(given: Any, name: str = "features") -> FloatArray:
    """`given` as a float64 matrix in C order, writeable, perhaps `given` itself; or a `ParameterError`. O(size)."""
    try:
        rows = np.require(given, dtype=np.float64, requirements=["C", "A"])
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be a matrix of numbers, one row per arm, got {given!r}") from None
    if rows.ndim != 2:
        raise ParameterError(f"{name} must be a matrix, one row per arm, got an array of shape {rows.shape}")
    # Kernels are compiled for writeable arrays; they write to none of these.
    return rows if rows.flags.writeable else rows.copy()


def require_shape(rows: FloatArray, n: int, size: int | None, what: str, name: str = "features") -> None:
    """Raise unless there is one row per `what` of the right length. O(1)."""
    if rows.shape[0] != n:
        raise ParameterError(f"{name} must have one row per {what} ({n}), got {rows.shape[0]} rows")
    if rows.shape[1] == 0 or (size is not None and rows.shape[1] != size):
        need = "at least 1" if size is None else str(size)
        raise ParameterError(f"{name} must have rows of length {need}, got {rows.shape[1]}")


def require_finite(rows: FloatArray, name: str = "features") -> None:
    """Raise for the first row that holds no finite numbers of at most 1e100 in size. O(size)."""
    good = np.abs(rows) <= LARGEST  # False for NaN
    if not good.all():
        i, j = np.argwhere(~good)[0]
        raise ParameterError(
            f"{name} must be finite numbers of at most {LARGEST:g} in size, got {name}[{i}, {j}] = {rows[i, j]}"
        )


def as_rows(given: Any, n: int, size: int | None, what: str = "arm", name: str = "features") -> FloatArray:
    """A checked copy of rows that are kept. O(n d)."""
    rows = as_matrix(given, name)
    require_shape(rows, n, size, what, name)
    require_finite(rows, name)
    return rows.copy() if rows is given or np.shares_memory(rows, given) else rows


def repoint(handle: IntArray, field: int, rows: FloatArray) -> None:
    """Let a handle (`compiled.handle`) have another matrix at this field. Whoever holds it must hold the matrix too."""
    handle[ROW * field : ROW * field + 3] = rows.ctypes.data, *rows.shape
