"""Every rival by name: which matroids it serves, and how to start it. The strongest versions we know of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.rivals.arrays import FilterGreedy, NetworkxTree, ScipyTree, SortGreedy
from benchmarks.rivals.order import kept_order
from benchmarks.rivals.prim import MOST_VERTICES, dense_prim, is_simple
from benchmarks.rivals.scan import one_pass
from semibandit.arms import IntArray
from semibandit.bench.numpy_rivals import Argpartition, GroupMaximum
from semibandit.bench.start import Start
from semibandit.engines.base import CompiledEngine
from semibandit.matroids import Graphic, Matroid, Partition, codec
from semibandit.matroids.base import kind_of

_NETWORKX_MOST_ARMS = 5_000


class RivalEngine(CompiledEngine):
    """A compiled rival in the round loop that our engines run in; nothing but `select` and `update` works."""

    name = "rival"

    def __init__(self, matroid: Matroid, records: npt.NDArray[np.void], make: Callable[..., Any]) -> None:
        super().__init__(matroid, records)
        self._run_on(make(matroid, self._recs))

    def _remove(self, ids: IntArray) -> None:
        raise NotImplementedError("rivals know no deletions")

    def _restore(self, ids: IntArray) -> None:
        raise NotImplementedError("rivals know no deletions")

    def _check(self) -> None:
        return


def _always(matroid: Matroid) -> bool:
    return True


def _one_each(matroid: Matroid) -> bool:
    return isinstance(matroid, Partition) and bool((matroid._capacity == 1).all())


def _fits_matrix(matroid: Matroid) -> bool:
    return isinstance(matroid, Graphic) and matroid.n_vertices <= MOST_VERTICES and is_simple(matroid)


def _fits_networkx(matroid: Matroid) -> bool:
    return matroid.n_arms <= _NETWORKX_MOST_ARMS and _fits_matrix(matroid)


@dataclass(frozen=True)
class RivalSpec:
    """`make` gives a compiled state from (matroid, records) or an array rival from a `Start`.

    `needs` is an optional package; `exact_ties` says whether equal weights go to the smaller id.
    """

    name: str
    serves: tuple[str, ...]
    make: Callable[..., Any]
    compiled: bool = False
    applies: Callable[[Matroid], bool] = _always
    needs: str | None = None
    exact_ties: bool = True

    def fits(self, matroid: Matroid) -> bool:
        """Whether this rival can run here: class, shape of the matroid, and package installed."""
        if self.needs is not None and find_spec(self.needs) is None:
            return False
        kind = kind_of(matroid)
        return any(kind is codec.row(name).cls for name in self.serves) and self.applies(matroid)


_SORTED = ("laminar", "graphic", "transversal", "linear")

RIVALS: dict[str, RivalSpec] = {
    spec.name: spec
    for spec in (
        RivalSpec("numpy argpartition", ("uniform",), Argpartition),
        RivalSpec("one-pass scan", ("uniform", "partition"), one_pass, compiled=True),
        RivalSpec("numpy group maximum", ("partition",), GroupMaximum, applies=_one_each),
        RivalSpec("argsort + counters", ("laminar",), SortGreedy),
        RivalSpec("argsort + union-find", ("graphic",), SortGreedy),
        RivalSpec("argsort + matching", ("transversal",), SortGreedy),
        RivalSpec("argsort + elimination", ("linear",), SortGreedy),
        RivalSpec("filter + greedy", _SORTED, FilterGreedy),
        RivalSpec("kept-order counters", ("laminar",), kept_order, compiled=True),
        RivalSpec("kept-order Kruskal", ("graphic",), kept_order, compiled=True),
        RivalSpec("kept-order matching", ("transversal",), kept_order, compiled=True),
        RivalSpec("dense Prim", ("graphic",), dense_prim, compiled=True, applies=_fits_matrix),
        RivalSpec(
            "scipy spanning tree",
            ("graphic",),
            ScipyTree,
            applies=lambda m: isinstance(m, Graphic) and is_simple(m),
            needs="scipy",
            exact_ties=False,
        ),
        RivalSpec(
            "networkx", ("graphic",), NetworkxTree, applies=_fits_networkx, needs="networkx", exact_ties=False
        ),
    )
}


def rivals_for(matroid: Matroid) -> list[RivalSpec]:
    """The rivals that can play on `matroid`."""
    return [spec for spec in RIVALS.values() if spec.fits(matroid)]


def start_rival(spec: RivalSpec, start: Start) -> Any:
    """The rival as something with `select` and `update`, in the state of `start`. O(K log K) at most."""
    if not spec.compiled:
        return spec.make(start)
    return start.cucb_around(lambda matroid, records: RivalEngine(matroid, records, spec.make))
