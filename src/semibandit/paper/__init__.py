"""Maximum-weight bases over inner-product weights: the paper's Section 4."""

from __future__ import annotations

from semibandit.paper.directions import direction_slopes
from semibandit.paper.hitting_set import (
    Arrangement,
    HittingSet,
    count_cells,
    count_slopes,
    generate_hitting_set,
)
from semibandit.paper.rounding import Rounding
from semibandit.paper.structure import InnerProductBase

__all__ = [
    "Arrangement",
    "HittingSet",
    "InnerProductBase",
    "Rounding",
    "count_cells",
    "count_slopes",
    "direction_slopes",
    "generate_hitting_set",
]
