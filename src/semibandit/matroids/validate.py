"""Checks at the door, shared by the constructors and public methods of all matroids.

Everything that enters a kernel passes here first, because kernels do not check bounds. An error names the
argument, the value and what would be right.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.errors import ArmError, MatroidError, ParameterError

ErrorClass = type[MatroidError] | type[ArmError] | type[ParameterError]


def readonly(array: IntArray) -> IntArray:
    """The same array, with writing switched off. O(1)."""
    array.setflags(write=False)
    return array


def whole_number(value: Any, argument: str, error: ErrorClass = MatroidError) -> int:
    """`value` as an int. Floats and booleans are refused: they are almost always a slip. O(1)."""
    if isinstance(value, (bool, np.bool_)):
        raise error(f"{argument} = {value!r}: need an integer, not a boolean")
    try:
        return operator.index(value)
    except TypeError:
        raise error(f"{argument} = {value!r}: need an integer") from None


def positive(value: Any, argument: str) -> int:
    """`value` as an int of at least 1. O(1)."""
    number = whole_number(value, argument)
    if number < 1:
        raise MatroidError(f"{argument} = {number}: need at least 1")
    return number


def _from_list(values: list[Any], argument: str, error: ErrorClass) -> IntArray:
    # The set of types is small, so this looks at a million items in some 20 ms.
    for kind in set(map(type, values)):
        if kind is bool or not issubclass(kind, (int, np.integer)):
            at = next(i for i, value in enumerate(values) if type(value) is kind)
            raise error(f"{argument}[{at}] = {values[at]!r}: need an integer")
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        at = next(i for i, value in enumerate(values) if not -(2**63) <= int(value) < 2**63)
        raise error(f"{argument}[{at}] = {values[at]!r}: does not fit in 64 bits") from None


def _from_array(values: np.ndarray[Any, Any], argument: str, error: ErrorClass) -> IntArray:
    if values.dtype.kind == "O":
        return _from_list(values.ravel().tolist(), argument, error).reshape(values.shape)
    if values.size and values.dtype.kind not in "iu":
        raise error(f"{argument}: need integers, got an array of {values.dtype}")
    if values.dtype.kind == "u" and values.size and int(values.max()) >= 2**63:
        raise error(f"{argument}: the value {values.max()} does not fit in 64 bits")
    return values.astype(np.int64, order="C")


def integers(values: Any, argument: str, error: ErrorClass = MatroidError) -> IntArray:
    """A fresh one-dimensional int64 array of the integers in `values` (an array or any iterable). O(n)."""
    if hasattr(values, "__array__"):
        array = np.asarray(values)
        if array.ndim != 1:
            raise error(f"{argument}: need one dimension, got shape {array.shape}")
        return _from_array(array, argument, error)
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise error(f"{argument} = {values!r}: need a sequence of integers")
    if isinstance(values, range):
        return np.arange(values.start, values.stop, values.step, dtype=np.int64)
    return _from_list(list(values), argument, error)


def integer_table(values: Any, argument: str, columns: int) -> IntArray:
    """A fresh (n, columns) int64 array of integers. O(n * columns)."""
    array: np.ndarray[Any, Any]
    if hasattr(values, "__array__"):
        array = np.asarray(values)
        if array.size == 0:
            return np.empty((0, columns), dtype=np.int64)
        if array.ndim != 2 or array.shape[1] != columns:
            raise MatroidError(f"{argument}: need shape (n, {columns}), got {array.shape}")
        return np.ascontiguousarray(_from_array(array, argument, MatroidError))
    flat, lengths = flatten(values, argument)
    if lengths.size and np.any(lengths != columns):
        at = int(np.flatnonzero(lengths != columns)[0])
        raise MatroidError(f"{argument}[{at}]: need {columns} entries, got {lengths[at]}")
    return flat.reshape(-1, columns)


def flatten(lists: Any, argument: str) -> tuple[IntArray, IntArray]:
    """Lists of integers laid end to end, and the length of each. O(total length)."""
    if isinstance(lists, (str, bytes)) or not isinstance(lists, Iterable):
        raise MatroidError(f"{argument} = {lists!r}: need a sequence of lists of integers")
    rows: list[Any] = list(lists)
    kinds = set(map(type, rows))
    if not kinds <= {list, tuple}:
        # Arrays are converted one by one, which is cheap when each is long.
        rows = [
            row if type(row) in (list, tuple) else integers(row, f"{argument}[{at}]")
            for at, row in enumerate(rows)
        ]
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    if rows and all(isinstance(row, np.ndarray) for row in rows):
        return np.concatenate(rows), lengths
    try:
        return _from_list(list(chain.from_iterable(rows)), argument, MatroidError), lengths
    except MatroidError:
        for at, row in enumerate(rows):
            _from_list(list(row), f"{argument}[{at}]", MatroidError)
        raise


def in_range(ids: IntArray, size: int, argument: str, what: str, error: ErrorClass = MatroidError) -> None:
    """Refuse ids outside 0 .. size - 1. O(n)."""
    if ids.size == 0 or (int(ids.min()) >= 0 and int(ids.max()) < size):
        return
    flat = ids.ravel()
    at = int(np.flatnonzero((flat < 0) | (flat >= size))[0])
    place = f"[{at}]" if ids.ndim == 1 else f"[{', '.join(map(str, np.unravel_index(at, ids.shape)))}]"
    raise error(f"{argument}{place} = {flat[at]}: {what} run from 0 to {size - 1}")


def inferred_size(ids: IntArray, items: int, argument: str, what: str, hint: str) -> int:
    """1 + the largest id. Refuses ids so sparse that arrays over them would dwarf the input. O(n)."""
    if ids.size == 0:
        return 0
    if int(ids.min()) < 0:
        raise MatroidError(f"{argument}: {what} id {int(ids.min())} is negative; ids start at 0")
    largest = int(ids.max())
    if largest >= 64 * items + 1024:
        raise MatroidError(
            f"{argument}: {what} id {largest} is far beyond the {items} arms; "
            f"number them 0, 1, 2, ... (np.unique with return_inverse=True does){hint}"
        )
    return largest + 1


def arm_ids(arms: Any, n_arms: int, argument: str = "arms") -> IntArray:
    """Distinct arm ids of 0 .. n_arms - 1 as a fresh int64 array, in the order given. O(n log n)."""
    ids = integers(arms, argument, ArmError)
    in_range(ids, n_arms, argument, "arm ids", ArmError)
    if ids.size > 1:
        ordered = np.sort(ids)
        again = np.flatnonzero(ordered[1:] == ordered[:-1])
        if again.size:
            raise ArmError(f"{argument}: arm {ordered[again[0]]} is named more than once")
    return ids


def arm_weights(weights: Any, n_arms: int, argument: str = "weights") -> FloatArray:
    """One float64 per arm, infinities allowed, NaN refused. O(K); a copy only where needed."""
    try:
        array = np.asarray(weights)
    except ValueError:
        raise ParameterError(f"{argument}: need one number per arm, got lists of unequal length") from None
    if array.dtype.kind not in "iuf":
        raise ParameterError(f"{argument}: need real numbers, got an array of {array.dtype}")
    if array.shape != (n_arms,):
        raise ParameterError(f"{argument}: need one number per arm, shape ({n_arms},), got {array.shape}")
    array = np.ascontiguousarray(array, dtype=np.float64)
    if array.size and np.isnan(np.min(array)):
        at = int(np.flatnonzero(np.isnan(array))[0])
        raise ParameterError(f"{argument}[{at}] is NaN: need a number (infinities are allowed)")
    return array


def per_item(value: Any, count: int | None, argument: str, items: str) -> IntArray | int:
    """Capacities: one int for all, or one per item (`count` of them when known). Never negative. O(n)."""
    if not isinstance(value, (Sequence, np.ndarray)) and not hasattr(value, "__array__"):
        if isinstance(value, Iterable):
            value = list(value)
        else:
            number = whole_number(value, argument)
            if number < 0:
                raise MatroidError(f"{argument} = {number}: a capacity is at least 0")
            return number
    elif hasattr(value, "__array__") and np.ndim(value) == 0:
        return per_item(np.asarray(value).item(), count, argument, items)
    array = integers(value, argument)
    if count is not None and array.size != count:
        raise MatroidError(f"{argument}: need one per {items} ({count}), got {array.size}")
    if array.size and int(array.min()) < 0:
        at = int(np.argmin(array))
        raise MatroidError(f"{argument}[{at}] = {array[at]}: a capacity is at least 0")
    return array
