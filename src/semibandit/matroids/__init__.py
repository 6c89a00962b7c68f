"""Matroids: which arms may be played together. Immutable, without weights; the greedy lives here.

Classes are imported on first use: the names of all of them (`semibandit.matroids.codec`) cost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from semibandit.matroids.codec import BUILT_IN

__all__ = ["Graphic", "Laminar", "Linear", "Matroid", "Partition", "Transversal", "Uniform"]


def __getattr__(name: str) -> Any:
    module = "base" if name == "Matroid" else name.lower()
    if name not in __all__ or module not in ("base", *BUILT_IN):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


if TYPE_CHECKING:
    from semibandit.matroids.base import Matroid
    from semibandit.matroids.graphic import Graphic
    from semibandit.matroids.laminar import Laminar
    from semibandit.matroids.linear import Linear
    from semibandit.matroids.partition import Partition
    from semibandit.matroids.transversal import Transversal
    from semibandit.matroids.uniform import Uniform
