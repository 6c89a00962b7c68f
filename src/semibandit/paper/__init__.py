"""The paper in one room, by its own names: maximum-weight bases over inner-product weights (Section 4), and its theory.

================  ===============================================================================================
rounding          bins and dominating points (Section 4.1): the one rule by which features are rounded up
hitting_set       one direction for each cell (Section 4.2), GENERATE-HITTING-SET; its cells from their keys
locate            the cell of a query in O(log W), without enumerating cells
directions        rounding queries in place of features
structure         INITIALIZE, FIND-BASE, UPDATE-FEATURE (Section 4.3), over the `instances` of algorithm A
dynamic           algorithm A (Section 3): a maximum-weight base while single weights change
rounded_engine    FIND-BASE for queries that only grow, by one exact engine: what FasterCUCB runs on
bucket_engine     an exact engine for arms that share few points, kept in `buckets`
structure_engine  an engine over `structure`: the paper to the letter behind FasterCUCB
theory            gaps, regret bounds and lower bounds (Section 5)
================  ===============================================================================================
"""

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
