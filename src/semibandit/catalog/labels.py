"""Labels in files: JSON for texts, numbers, booleans, None and tuples of these."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from semibandit.errors import ArmError, FileError, ParameterError
from semibandit.matroids.naming import column

_AS_THEY_ARE = (str, int, bool, type(None))


def pack(value: Any, what: str = "label") -> Any:
    """`value` as JSON; a tuple is ``{"t": [...]}``. Anything but what the module names is a `ParameterError`. O(size).

    >>> pack(("Ulm", 2))
    {'t': ['Ulm', 2]}
    """
    if type(value) in _AS_THEY_ARE or (type(value) is float and math.isfinite(value)):
        return value
    if isinstance(value, np.generic) and not isinstance(value, np.void):
        return pack(value.item(), what)
    if isinstance(value, tuple):
        return {"t": [pack(part, what) for part in value]}
    raise ParameterError(
        f"{what} {value!r} ({type(value).__name__}) has no place in a file: texts, integers, finite floats, booleans, "
        "None and tuples of these have"
    )


def unpack(value: Any) -> Any:
    """The inverse of `pack`; a `FileError` for what it cannot have made.

    >>> unpack({"t": ["Ulm", 2]})
    ('Ulm', 2)
    """
    if isinstance(value, dict) and set(value) == {"t"} and isinstance(value["t"], list):
        return tuple(unpack(part) for part in value["t"])
    if type(value) in _AS_THEY_ARE or type(value) is float:
        return value
    raise FileError(f"{value!r} is no label")


def check_label(label: Any) -> None:
    """An `ArmError` for what cannot be found again: unhashable things and NaN. O(size)."""
    if not is_hashable(label) or label != label:
        raise ArmError(f"label = {label!r}: a label must be hashable and equal to itself")


def is_hashable(value: Any) -> bool:
    """Whether `value` can be a label; a tuple with a list in it cannot."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def label_list(labels: Any, name: str = "labels") -> list[Any]:
    """Several labels as a list: any sequence, an array or a column, but not one text."""
    if isinstance(labels, (str, bytes)) or not hasattr(labels, "__iter__"):
        raise ArmError(f"{name} = {labels!r}: need a list of labels, here perhaps [{labels!r}]")
    return column(labels, name)


def text_of(value: Any) -> str:
    """A label or an attribute in a table: a tuple without its brackets."""
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
