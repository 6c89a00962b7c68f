"""Which engines there are, what they serve, and which one `engine="auto"` takes.

Engines are imported when they are first made, so that a policy loads only the kernels it uses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from semibandit.engines.base import Engine
from semibandit.engines.resolve.oracle import resolve_engine
from semibandit.errors import ClockError, ParameterError
from semibandit.matroids import Matroid

Records = npt.NDArray[np.void]

BOTH = ("exact", "staircase")
STAIRS = ("staircase",)


@dataclass(frozen=True)
class EngineSpec:
    """`serves` names the matroid classes (empty: all); `clocks` what the engine can follow at its stated cost."""

    name: str
    make: Callable[[Matroid, Records | None], Engine]
    serves: tuple[str, ...]
    clocks: tuple[str, ...]
    cost: str

    def fits(self, matroid: Matroid, clock: str) -> bool:
        return (not self.serves or matroid.name in self.serves) and clock in self.clocks


def _kinetic(matroid: Matroid, records: Records | None = None) -> Engine:
    if matroid.name == "laminar":
        from semibandit.engines.laminar.engine import LaminarKineticEngine

        return LaminarKineticEngine(matroid, records)
    from semibandit.engines.kinetic.engine import KineticEngine

    return KineticEngine(matroid, records)


def _adaptive(matroid: Matroid, records: Records | None = None) -> Engine:
    if matroid.name == "graphic":
        from semibandit.engines.graphic.engine import GraphicAdaptiveEngine

        return GraphicAdaptiveEngine(matroid, records)
    from semibandit.engines.transversal.engine import TransversalAdaptiveEngine

    return TransversalAdaptiveEngine(matroid, records)


def _hot_cold(matroid: Matroid, records: Records | None = None) -> Engine:
    from semibandit.engines.layers.hot_cold import HotColdEngine

    return HotColdEngine(matroid, records)


ENGINES: dict[str, EngineSpec] = {
    spec.name: spec
    for spec in (
        EngineSpec("resolve", resolve_engine, (), BOTH, "O(K) a round"),
        EngineSpec(
            "kinetic",
            _kinetic,
            ("uniform", "partition", "laminar"),
            BOTH,
            "O(D log D + s log K) a round for s exchanges",
        ),
        EngineSpec(
            "adaptive",
            _adaptive,
            ("graphic", "transversal"),
            STAIRS,
            "O(D) a quiet round, re-solving in busy ones; O(K) at a step of the clock",
        ),
        EngineSpec(
            "hot-cold",
            _hot_cold,
            (),
            STAIRS,
            "independence tests a round do not grow with K; O(K) at a step of the clock",
        ),
    )
}

# The fast engine of each class, and from how many arms on it is taken (measured: docs/performance.md): below 8 the
# engines differ by less than a call from Python takes. For any other class it is "hot-cold".
FAST: dict[str, tuple[str, int]] = {
    "uniform": ("kinetic", 8),
    "partition": ("kinetic", 8),
    "laminar": ("kinetic", 8),
    "graphic": ("adaptive", 8),
    "transversal": ("adaptive", 8),
}
OTHER = ("hot-cold", 300)

_REASON = {
    "kinetic": "kinetic tournaments are exact at every round and sublinear in K",
    "adaptive": "challenger bounds in quiet rounds, re-solving in busy ones",
    "hot-cold": "only arms played lately and a few layers of the others are tested",
}


def choose(matroid: Matroid, clock: str) -> tuple[str, str]:
    """The engine `auto` takes for `matroid` under `clock`, and why. O(1), but for the rank of a user's matroid."""
    name, least = FAST.get(matroid.name, OTHER)
    if matroid.n_arms < least:
        return "resolve", f"K = {matroid.n_arms}, D = {matroid.rank}: going through so few arms is faster"
    if clock not in ENGINES[name].clocks:
        return (
            "resolve",
            f"{name!r} needs clock='staircase' (or 'auto'); under the {clock} clock every arm moves",
        )
    return name, f"K = {matroid.n_arms}, D = {matroid.rank}: {_REASON[name]}"


def choose_clock(matroid: Matroid, engine: str) -> str:
    """The clock that ``clock="auto"`` stands for: a staircase where the engine to be used needs it."""
    name = choose(matroid, "staircase")[0] if engine == "auto" else engine
    return "staircase" if name in ENGINES and ENGINES[name].clocks == STAIRS else "exact"


def make_engine(
    matroid: Matroid, records: Records | None = None, engine: str = "auto", clock: str = "exact"
) -> tuple[Engine, str]:
    """An engine for `matroid` and the reason for it."""
    if engine == "auto":
        name, why = choose(matroid, clock)
        return ENGINES[name].make(matroid, records), why
    spec = ENGINES.get(engine)
    if spec is None:
        raise ParameterError(
            f"engine = {engine!r} is not known: one of 'auto', {', '.join(map(repr, ENGINES))}"
        )
    if spec.serves and matroid.name not in spec.serves:
        fitting = [name for name, other in ENGINES.items() if other.fits(matroid, clock)]
        raise ParameterError(
            f"engine = {engine!r} serves {', '.join(spec.serves)} matroids, not {matroid.name}; "
            f"here: 'auto', {', '.join(map(repr, fitting))}"
        )
    if clock not in spec.clocks:
        raise ClockError(
            f"engine = {engine!r} needs clock = {' or '.join(map(repr, spec.clocks))}, got {clock!r}"
        )
    return spec.make(matroid, records), "asked for"
