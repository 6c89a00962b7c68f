"""The engines for transversal matroids: `engine="adaptive"`, and challenger bounds alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from semibandit.compiled.handle import make_handle
from semibandit.engines.base import CompiledEngine, bytes_of
from semibandit.engines.registry import STAIRS, register_engine
from semibandit.engines.switch import IN_USE, check_switch, new_switch
from semibandit.engines.transversal.adaptive import (
    CHALLENGERS,
    GREEDY,
    TransversalAdaptiveState,
    first_solver,
    measured_costs,
)
from semibandit.engines.transversal.challengers import TransversalChallengerState
from semibandit.engines.transversal.check import check_challengers, check_greedy
from semibandit.engines.transversal.greedy_state import new_kept_greedy
from semibandit.engines.transversal.state import N_WORK, new_challengers
from semibandit.matroids import Matroid, Transversal


def _transversal(matroid: Matroid, engine: str) -> Transversal:
    if not isinstance(matroid, Transversal):
        raise TypeError(f"{engine} serves transversal matroids, got {matroid!r}")
    return matroid


@register_engine(
    "adaptive",
    serves=(Transversal,),
    clocks=STAIRS,
    cost="O(D) a quiet round, re-solving in busy ones; O(K) at a step of the clock",
    why="challenger bounds in quiet rounds, re-solving in busy ones",
    fast_from=8,
)
class TransversalAdaptiveEngine(CompiledEngine):
    """The better of challenger bounds and greedy from the last base on, chosen by counting work.

    A round costs O(D) while no base arm falls below its bound and O((D + n_right) log K) while few do; when much of the
    base changes, O(D + arms looked at + changes log K) and the searches of greedy. A new lam costs a pass over all
    arms: meant for a staircase clock, right under any.

    Example
    -------
    >>> import numpy as np
    >>> from semibandit.matroids import Transversal
    >>> engine = TransversalAdaptiveEngine(Transversal([[0], [0], [0, 1]]))
    >>> engine.set_weights(np.arange(3), [0.4, 0.5, 0.1])
    >>> engine.base()
    array([1, 2])
    """

    name = "adaptive"
    exact_clock = False

    def __init__(self, matroid: Matroid, records: npt.NDArray[np.void] | None = None) -> None:
        super().__init__(matroid, records)
        transversal = _transversal(matroid, type(self).__name__)
        self._challengers = new_challengers(transversal, self._recs)
        self._greedy = new_kept_greedy(transversal, self._recs, self._challengers)
        costs = measured_costs(transversal, len(self._challengers.edge))
        state = TransversalAdaptiveState(
            recs=self._recs,
            challengers=make_handle(self._challengers),
            greedy=make_handle(self._greedy),
            switch=new_switch(first_solver(costs, matroid.rank)),
            paid=np.zeros(N_WORK, dtype=np.int64),
            costs=costs,
        )
        self._run_on(state)

    @property
    def solver(self) -> str:
        """Which solver answers now: "challengers" or "greedy"."""
        return "challengers" if self._state.switch[IN_USE] == CHALLENGERS else "greedy"

    def memory(self) -> int:
        # Records are in all three states, the edges in two, and what is next to an arm twice in one.
        shared = 2 * self._recs.nbytes + self._challengers.indptr.nbytes + self._challengers.edge.nbytes
        shared += self._greedy.near.nbytes
        return bytes_of(self._state) + bytes_of(self._challengers) + bytes_of(self._greedy) - shared

    def _check(self) -> None:
        absent = self._is_deleted(np.arange(self.n_arms))
        check_switch(self._state.switch, (CHALLENGERS, GREEDY))
        check_challengers(self._challengers, absent)
        if self.solver == "greedy":
            assert self._challengers.best_stale[0]
            check_greedy(self._greedy, absent)


class TransversalChallengerEngine(CompiledEngine):
    """Challenger bounds and re-solving over best outsiders: O(D) a quiet round, and no round but that of a new lam
    depends on K by more than a logarithm.

    Example
    -------
    >>> import numpy as np
    >>> from semibandit.matroids import Transversal
    >>> engine = TransversalChallengerEngine(Transversal([[0], [0], [0, 1]]))
    >>> engine.set_weights(np.arange(3), [0.4, 0.5, 0.1])
    >>> engine.base()
    array([1, 2])
    """

    name = "challenger"
    exact_clock = False

    def __init__(self, matroid: Matroid, records: npt.NDArray[np.void] | None = None) -> None:
        super().__init__(matroid, records)
        self._challengers = new_challengers(_transversal(matroid, type(self).__name__), self._recs)
        self._run_on(TransversalChallengerState(self._recs, make_handle(self._challengers)))

    def memory(self) -> int:
        return bytes_of(self._challengers) + bytes_of(self._state) - self._recs.nbytes

    def _check(self) -> None:
        check_challengers(self._challengers, self._is_deleted(np.arange(self.n_arms)))
