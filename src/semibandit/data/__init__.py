"""Instances from real data, read at run time out of packages that ship it: ``pip install 'semibandit[data]'``.

>>> from semibandit import data
>>> sorted(data.DATASETS)
['flights', 'isp', 'movies']

Nothing is downloaded and nothing is copied into this package. `load` gives an environment, with the names of its arms
in `labels` and, for networks, coordinates in `positions`.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from semibandit.environments import Environment
from semibandit.errors import MissingExtraError, ParameterError
from semibandit.text import pip_install, unknown

__all__ = ["DATASETS", "Dataset", "DatasetEntry", "load", "load_dataset"]


@dataclass(frozen=True)
class Dataset:
    """An instance from real data: `env`, a label for each arm, and what it is.

    `positions` gives (longitude, latitude) of each vertex where arms are links, else None.
    """

    name: str
    env: Environment
    labels: list[str]
    about: str
    positions: Any = None
    vertices: list[str] | None = None


@dataclass(frozen=True)
class DatasetEntry:
    """A data set of the catalogue. `packages` maps what is imported to what is installed; `kinds` are its variants."""

    name: str
    make: Callable[..., Dataset]
    what: str
    source: str
    licence: str
    packages: dict[str, str]
    kinds: tuple[str, ...] = ()

    @property
    def missing(self) -> list[str]:
        """Packages that are not installed."""
        return [
            wanted for module, wanted in self.packages.items() if importlib.util.find_spec(module) is None
        ]


_BOKEH = {"bokeh_sampledata": "bokeh_sampledata>=2026"}


def _loader(module: str, name: str) -> Callable[..., Dataset]:
    """The function `name` of a module that is imported when it is called."""

    def make(**options: Any) -> Dataset:
        found: Callable[..., Dataset] = getattr(import_module(f"semibandit.data.{module}"), name)
        known = inspect.signature(found).parameters
        for key in options:
            if key not in known:
                raise ParameterError(unknown(f"data set {name!r} has no option {key!r}", key, known))
        return found(**options)

    return make


DATASETS: dict[str, DatasetEntry] = {
    entry.name: entry
    for entry in (
        DatasetEntry(
            "isp",
            _loader("networks", "isp"),
            "spanning tree of least latency over an Internet provider's links (graphic, costs)",
            "topohub: Internet Topology Zoo, SNDlib, CAIDA, synthetic backbones",
            "MIT (package); data by their providers, see topohub",
            {"topohub": "topohub"},
        ),
        DatasetEntry(
            "flights",
            _loader("networks", "flights"),
            "US air routes: shortest network that joins all airports (graphic, costs), or the shortest routes of "
            "every carrier (partition, costs)",
            "airports: vega_datasets; routes: bokeh_sampledata (U.S. DOT, Bureau of Transportation Statistics)",
            "BSD-3-Clause (packages); public domain (routes)",
            {"vega_datasets": "vega_datasets", **_BOKEH},
            ("graphic", "partition"),
        ),
        DatasetEntry(
            "movies",
            _loader("movies", "movies"),
            "films that critics like, diverse by genre: partition, laminar (genre within decade) or transversal "
            "(film to genre slot)",
            "bokeh_sampledata: Wikidata, films 1940-2014 with counts of reviews",
            "CC0-1.0",
            _BOKEH,
            ("partition", "laminar", "transversal"),
        ),
    )
}


def load_dataset(name: str, **options: Any) -> Dataset:
    """The data set `name` with its labels; see `DATASETS` and ``semibandit datasets``. Cost of reading it.

    Raises
    ------
    MissingExtraError
        When a package it is read from is not installed; the message says which.
    """
    entry = DATASETS.get(name)
    if entry is None:
        raise ParameterError(unknown(f"data set {name!r} is not known", name, DATASETS))
    if entry.missing:
        raise MissingExtraError(
            f"data set {name!r} is read from {', '.join(entry.missing)}, not installed: {pip_install('data')}"
        )
    return entry.make(**options)


def load(name: str, **options: Any) -> Environment:
    """The environment of the data set `name`: ``load("isp", network="topozoo/Geant2012")``."""
    return load_dataset(name, **options).env


def package_file(package: str, path: str) -> Path:
    """A file that an installed package ships, without importing the package."""
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        found = Path(folder) / path
        if found.is_file():
            return found
    raise MissingExtraError(
        f"{package} has no {path} here: a version that ships it is wanted; {pip_install('data')}"
    )
