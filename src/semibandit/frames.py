"""Data frames of the library that a user has: what every `to_frame` answers."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from semibandit.checks import one_of
from semibandit.errors import MissingExtraError
from semibandit.text import needs

#: What `to_frame` takes.
LIBRARIES = ("polars", "pandas")


def data_frame(columns: Mapping[str, Any], library: str) -> Any:
    """A data frame of ``"polars"`` or ``"pandas"`` with these columns, or an error that names the extra. O(cells)."""
    one_of(library, "library", LIBRARIES)
    try:
        found = import_module(library)
    except ImportError:
        raise MissingExtraError(needs("to_frame", library)) from None
    return found.DataFrame(dict(columns))
