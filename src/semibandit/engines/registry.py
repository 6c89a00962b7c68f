"""Which engines there are, what they serve, and which one `engine="auto"` takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from semibandit.engines.base import Engine
from semibandit.engines.kinetic import KineticEngine
from semibandit.engines.laminar_kinetic import LaminarKineticEngine
from semibandit.engines.resolve import resolve_engine
from semibandit.errors import ClockError, ParameterError
from semibandit.matroids import Laminar, Matroid

Records = npt.NDArray[np.void]


@dataclass(frozen=True)
class EngineSpec:
    """`serves` names the matroid classes (empty: all); `clocks` what the engine can follow."""

    name: str
    make: Callable[[Matroid, Records | None], Engine]
    serves: tuple[str, ...]
    clocks: tuple[str, ...]
    cost: str

    def fits(self, matroid: Matroid, clock: str) -> bool:
        return (not self.serves or matroid.name in self.serves) and clock in self.clocks


def _kinetic(matroid: Matroid, records: Records | None = None) -> Engine:
    return (
        LaminarKineticEngine(matroid, records)
        if isinstance(matroid, Laminar)
        else KineticEngine(matroid, records)
    )


ENGINES: dict[str, EngineSpec] = {
    spec.name: spec
    for spec in (
        EngineSpec("resolve", resolve_engine, (), ("exact", "staircase"), "O(K) a round"),
        EngineSpec(
            "kinetic",
            _kinetic,
            ("uniform", "partition", "laminar"),
            ("exact", "staircase"),
            "O(D log D + s log K) a round for s exchanges",
        ),
    )
}

# From this many arms on a tournament beats one pass over the weights (measured: docs/performance.md).
KINETIC_FROM = {"uniform": 200, "partition": 200, "laminar": 32}


def choose(matroid: Matroid, clock: str) -> tuple[str, str]:
    """The engine `auto` takes for `matroid` under `clock`, and why. O(1)."""
    if matroid.name in KINETIC_FROM:
        if matroid.n_arms >= KINETIC_FROM[matroid.name] and matroid.n_arms >= 2 * matroid.rank:
            return "kinetic", f"K = {matroid.n_arms}: kinetic tournaments are exact and sublinear in K"
        return "resolve", f"K = {matroid.n_arms}, D = {matroid.rank}: one pass over so few arms is faster"
    return "resolve", f"no faster engine for {matroid.name} matroids under the {clock} clock"


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
