"""Maximum-weight bases over inner-product weights: the paper's Section 4."""

from __future__ import annotations

from semibandit.inner_product.directions import direction_slopes
from semibandit.inner_product.hitting_set import (
    Arrangement,
    HittingSet,
    count_cells,
    count_slopes,
    generate_hitting_set,
)
from semibandit.inner_product.rounding import Rounding
from semibandit.inner_product.structure import InnerProductBase

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
