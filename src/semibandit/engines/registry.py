"""Which engines there are, what they serve, and which one `engine="auto"` takes.

An engine registers itself where it is defined (`register_engine`); several may share a name and serve different classes
of matroids. `ENGINES` knows all of them when it is first asked: it imports the rooms of `semibandit.engines`, which
compiles nothing. What serves a matroid is decided by its kind (`semibandit.matroids.base.kind_of`), never by its name.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from importlib import import_module
from threading import RLock
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from semibandit.engines.base import Engine
from semibandit.errors import ClockError, ParameterError
from semibandit.matroids import Matroid
from semibandit.matroids.base import kind_of
from semibandit.text import unknown

Records = npt.NDArray[np.void]
Make = Callable[..., Engine]
F = TypeVar("F", bound=Make)

BOTH = ("exact", "staircase")
STAIRS = ("staircase",)


@dataclass(frozen=True)
class Way:
    """What stands behind the name of an engine for some classes of matroids; see `register_engine`."""

    make: Make
    serves: tuple[type[Matroid], ...]
    clocks: tuple[str, ...]
    cost: str
    why: str
    fast_from: int | None


@dataclass(frozen=True)
class EngineSpec:
    """An engine by name. `ways` are its classes; the rest is read from them."""

    name: str
    ways: tuple[Way, ...]

    @property
    def serves(self) -> tuple[str, ...]:
        """Names of the matroid classes that it serves; empty: all."""
        if any(not way.serves for way in self.ways):
            return ()
        return tuple(cls.name for way in self.ways for cls in way.serves)

    @property
    def clocks(self) -> tuple[str, ...]:
        """Clocks that it can follow at its stated cost."""
        return tuple(clock for clock in BOTH if any(clock in way.clocks for way in self.ways))

    @property
    def cost(self) -> str:
        """Cost of a round, in words."""
        return "; ".join(dict.fromkeys(way.cost for way in self.ways))

    def way(self, matroid: Matroid) -> Way | None:
        """What serves `matroid`: made for its kind, else for all, else None. O(ways)."""
        kind = kind_of(matroid)
        for way in self.ways:
            if kind in way.serves:
                return way
        return next((way for way in self.ways if not way.serves), None)

    def fits(self, matroid: Matroid, clock: str) -> bool:
        """Whether it serves `matroid` under `clock`."""
        way = self.way(matroid)
        return way is not None and clock in way.clocks

    def make(self, matroid: Matroid, records: Records | None = None) -> Engine:
        """This engine for `matroid`."""
        way = self.way(matroid)
        if way is None:
            raise ParameterError(f"engine = {self.name!r} {self._refusal(matroid)}")
        return way.make(matroid, records)

    def _refusal(self, matroid: Matroid) -> str:
        shown = matroid.name
        if shown in self.serves:
            shown = f"the class {type(matroid).__qualname__}, which says itself what is independent"
        return f"serves {', '.join(self.serves)} matroids, not {shown}"


class _Engines(MutableMapping[str, EngineSpec]):
    """The table: built-in engines by name, then those from outside in the order of their registration."""

    def __init__(self) -> None:
        self._specs: dict[str, EngineSpec] = {}
        self._loaded = self._loading = False
        self._lock = RLock()

    def _all(self) -> dict[str, EngineSpec]:
        if not self._loaded:
            with self._lock:
                if not self._loading:
                    self._load()
        return self._specs

    def _load(self) -> None:
        """Import every room. Other threads wait; a room that asks while it is imported sees what there is so far."""
        self._loading = True
        try:
            package = import_module(__package__)
            for room in pkgutil.walk_packages(package.__path__, f"{__package__}."):
                import_module(room.name)
            # Which room was imported first must not show.
            self._specs = dict(sorted(self._specs.items()))
            self._loaded = True
        finally:
            self._loading = False

    def add(self, name: str, way: Way) -> None:
        """One more way of the engine `name`. One that is registered again takes its own place."""
        if not way.make.__module__.startswith(f"{__package__}."):
            self._all()
        kept = []
        for other in self._specs[name].ways if name in self._specs else ():
            if not set(other.serves) & set(way.serves) and (other.serves or way.serves):
                kept.append(other)
            elif _origin(other.make) != _origin(way.make):
                raise ParameterError(
                    f"engine {name!r}: {_origin(other.make)} serves the same matroids already"
                )
        self._specs[name] = EngineSpec(name, (*kept, way))

    def __getitem__(self, name: str) -> EngineSpec:
        return self._all()[name]

    def __setitem__(self, name: str, spec: EngineSpec) -> None:
        self._all()[name] = spec

    def __delitem__(self, name: str) -> None:
        del self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


def _origin(make: Any) -> str:
    return f"{make.__module__}.{getattr(make, '__qualname__', repr(make))}"


ENGINES = _Engines()


def register_engine(
    name: str,
    *,
    cost: str,
    serves: tuple[type[Matroid], ...] = (),
    clocks: tuple[str, ...] = BOTH,
    why: str = "",
    fast_from: int | None = None,
) -> Callable[[F], F]:
    """Make a class of engines, or a function (matroid, records) that makes one, known by `name`.

    Parameters
    ----------
    cost
        What a round costs, in words.
    serves
        Kinds of matroids that it is made for; empty: all. Of one name, what is made for a kind goes before what is
        made for all.
    clocks
        Clocks that it can follow at its stated cost.
    fast_from, why
        From how many arms on ``engine="auto"`` takes it, by measurement, and the reason told to the user. None: never.
        What is made for a kind goes before what is made for all, and what is registered later before the rest.
    """
    for clock in clocks:
        if clock not in BOTH:
            raise ParameterError(f"clocks = {clocks!r}: each is one of {', '.join(map(repr, BOTH))}")

    def register(make: F) -> F:
        ENGINES.add(name, Way(make, serves, clocks, cost, why, fast_from))
        return make

    return register


def choose(matroid: Matroid, clock: str) -> tuple[str, str]:
    """The engine `auto` takes for `matroid` under `clock`, and why. O(engines), and a user's matroid finds its rank."""
    best: tuple[str, Way, int] | None = None
    for spec in ENGINES.values():
        way = spec.way(matroid)
        if (
            way is not None
            and way.fast_from is not None
            and (best is None or way.serves or not best[1].serves)
        ):
            best = spec.name, way, way.fast_from
    if best is None or matroid.n_arms < best[2]:
        return "resolve", f"K = {matroid.n_arms}, D = {matroid.rank}: going through so few arms is faster"
    name, way, _ = best
    if clock not in way.clocks:
        return (
            "resolve",
            f"{name!r} needs clock='staircase' (or 'auto'); under the {clock} clock every arm moves",
        )
    return name, f"K = {matroid.n_arms}, D = {matroid.rank}: {way.why}"


def choose_clock(matroid: Matroid, engine: str) -> str:
    """The clock that ``clock="auto"`` stands for: a staircase where the engine to be used needs it."""
    name = choose(matroid, "staircase")[0] if engine == "auto" else engine
    spec = ENGINES.get(name)
    way = None if spec is None else spec.way(matroid)
    clocks = way.clocks if way is not None else spec.clocks if spec is not None else BOTH
    return "staircase" if clocks == STAIRS else "exact"


def make_engine(
    matroid: Matroid, records: Records | None = None, engine: str = "auto", clock: str = "exact"
) -> tuple[Engine, str]:
    """An engine for `matroid` and the reason for it."""
    if engine == "auto":
        name, why = choose(matroid, clock)
        return ENGINES[name].make(matroid, records), why
    spec = ENGINES.get(engine)
    if spec is None:
        raise ParameterError(unknown(f"engine = {engine!r} is not known", engine, ("auto", *ENGINES)))
    way = spec.way(matroid)
    if way is None:
        fitting = [name for name, other in ENGINES.items() if other.fits(matroid, clock)]
        raise ParameterError(
            f"engine = {engine!r} {spec._refusal(matroid)}; here: 'auto', {', '.join(map(repr, fitting))}"
        )
    if clock not in way.clocks:
        raise ClockError(
            f"engine = {engine!r} needs clock = {' or '.join(map(repr, way.clocks))}, got {clock!r}"
        )
    return way.make(matroid, records), "asked for"
