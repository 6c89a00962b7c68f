"""The engines for graphic matroids: `adaptive`, which changes between solvers, and one that stays with each of them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from semibandit.compiled.handle import make_handle
from semibandit.engines.base import CompiledEngine, bytes_of
from semibandit.engines.graphic.check import check_forest
from semibandit.engines.graphic.rounds import (
    forest_remove,
    forest_restore,
    forest_select,
    forest_touch,
    forest_touch_all,
    forest_touch_answer,
    forest_touch_many,
)
from semibandit.engines.graphic.state import (
    ADAPTIVE,
    CHALLENGERS,
    HOT_COLD,
    ORDERED,
    PRIM,
    ForestHandle,
    new_forest,
)
from semibandit.engines.kernels import implement_engine
from semibandit.engines.registry import STAIRS, register_engine
from semibandit.engines.switch import IN_USE
from semibandit.matroids import Graphic, Matroid

SOLVER_NAMES = {HOT_COLD: "hot-cold", CHALLENGERS: "challengers", PRIM: "prim", ORDERED: "ordered"}

implement_engine(
    ForestHandle,
    forest_select,
    forest_touch,
    touch_many=forest_touch_many,
    touch_answer=forest_touch_answer,
    touch_all=forest_touch_all,
    remove=forest_remove,
    restore=forest_restore,
)


@register_engine(
    "adaptive",
    serves=(Graphic,),
    clocks=STAIRS,
    cost="O(D) a quiet round, re-solving in busy ones; O(K) at a step of the clock",
    why="challenger bounds in quiet rounds, re-solving in busy ones",
    fast_from=8,
)
class GraphicAdaptiveEngine(CompiledEngine):
    """For a graphic matroid, challengers or a busy solver, whichever is cheaper at the time.

    A round costs O(D) while no base edge falls below its bound, O(V + edges that change * log degree) when most of
    the base changes, and O(K) when lam changes: meant for a staircase clock, right under any. For at most
    `PRIM_VERTICES` vertices a busy round costs O(V^2) instead.

    Example
    -------
    >>> import numpy as np
    >>> from semibandit.matroids import Graphic
    >>> engine = GraphicAdaptiveEngine(Graphic([(0, 1), (1, 2), (2, 0), (2, 3)]))
    >>> engine.set_weights(np.arange(4), [0.5, 0.9, 0.7, 0.1])
    >>> engine.base()
    array([1, 2, 3])
    >>> engine.solver
    'hot-cold'
    """

    name = "adaptive"
    exact_clock = False
    _solver_mode: ClassVar[int] = ADAPTIVE

    def __init__(self, matroid: Matroid, records: npt.NDArray[np.void] | None = None) -> None:
        super().__init__(matroid, records)
        if not isinstance(matroid, Graphic):
            raise TypeError(f"{type(self).__name__} serves graphic matroids, got {matroid!r}")
        ends = matroid._tail, matroid._head
        self._forest = new_forest(self._recs, *ends, matroid.n_vertices, matroid.rank, self._solver_mode)
        self._run_on(ForestHandle(self._recs, make_handle(self._forest)))

    @property
    def solver(self) -> str:
        """Which solver is in use: "hot-cold", "challengers", "ordered" or "prim"."""
        return SOLVER_NAMES[int(self._forest.switch[IN_USE])]

    def memory(self) -> int:
        return bytes_of(self._forest) + bytes_of(self._state.handle)

    def _check(self) -> None:
        check_forest(self._forest, self._is_deleted(np.arange(self.n_arms)))


class GraphicChallengerEngine(GraphicAdaptiveEngine):
    """Challenger bounds at all times (docs/theory.md, F): for quiet states."""

    name = "challenger"
    _solver_mode = CHALLENGERS


class GraphicHotColdEngine(GraphicAdaptiveEngine):
    """Hot and cold edges at all times (docs/theory.md, A and B): for busy states."""

    name = "hot-cold"
    _solver_mode = HOT_COLD


class GraphicPrimEngine(GraphicAdaptiveEngine):
    """Dense Prim at all times: for busy states of a few hundred vertices."""

    name = "prim"
    _solver_mode = PRIM


class GraphicOrderedEngine(GraphicAdaptiveEngine):
    """One order of all edges at all times: for busy states in which the base lies near its top."""

    name = "ordered"
    _solver_mode = ORDERED
