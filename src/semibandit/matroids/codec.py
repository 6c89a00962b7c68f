"""One row per matroid class: all that files, experiment files and the command line need to know of it.

A class registers its row at the end of its own file (`register`). Saved policies find the class by its name and build
it from its parts; an ``[[instance]]`` of an experiment file says it by the row's name with the keys of `from_toml`, or
with arms and rank for a random one; so does ``--matroid``. Nobody else keeps a list of classes.

Classes from outside take part in the same way once the module that registers them is imported. For the command line,
and for the worker processes of an experiment, an installed package names that module as an entry point:

    [project.entry-points."semibandit.matroids"]
    roads = "my_package.roads"

Importing this module loads neither numpy nor any class, so that ``semibandit --help`` can show the names.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from semibandit.errors import ParameterError
from semibandit.text import unknown

if TYPE_CHECKING:
    from semibandit.matroids.base import Matroid
    from semibandit.matroids.parting import Parting

#: Modules of this room that hold a class and its row, which has the same name.
BUILT_IN = ("uniform", "partition", "laminar", "graphic", "transversal", "linear")

ENTRY_POINTS = "semibandit.matroids"


@dataclass(frozen=True)
class Row:
    """What is known of a class of matroids.

    Attributes
    ----------
    name
        What it is called in experiment files and on the command line.
    cls
        The class. Its own name stands in files of saved policies.
    to_parts, from_parts
        A matroid as a dictionary of numbers and arrays, and a matroid from that, given as keywords.
    random
        A random matroid with given (arms, rank, seed), where 1 <= rank <= arms: exactly that many arms, exactly that
        rank, the same for the same seed.
    from_toml
        A matroid from the keys of an experiment file that describe it in full, given as keywords: its parameters are
        those keys. The first one takes the place of arms and rank there; those without a default must be given.
    words
        Words in error messages that mean one of these keys: an argument of the constructor by another name.
    parting
        How the parts are cut and joined (`semibandit.matroids.parting`); None: the ground set cannot be sharded.
    """

    name: str
    cls: type[Matroid]
    to_parts: Callable[[Any], dict[str, Any]]
    from_parts: Callable[..., Matroid]
    random: Callable[[int, int, int], Matroid]
    from_toml: Callable[..., Matroid] | None = None
    words: Mapping[str, str] = field(default_factory=dict)
    parting: Parting | None = None

    @property
    def keys(self) -> dict[str, bool]:
        """Keys that describe a matroid in full in an experiment file, and whether each must be there."""
        if self.from_toml is None:
            return {}
        given = inspect.signature(self.from_toml).parameters.values()
        return {one.name: one.default is one.empty for one in given}


_rows: dict[str, Row] = {}


def register(
    cls: type[Matroid],
    *,
    to_parts: Callable[[Any], dict[str, Any]],
    from_parts: Callable[..., Matroid],
    random: Callable[[int, int, int], Matroid],
    from_toml: Callable[..., Matroid] | None = None,
    words: Mapping[str, str] | None = None,
    parting: Parting | None = None,
    name: str | None = None,
) -> None:
    """Add the row of `cls`; see `Row`. Its name is that of the class in lower case unless another is given.

    Registering a class again, as a notebook does when a cell is run twice, replaces its row.

    Raises
    ------
    ParameterError
        When another class has this name already.
    """
    if not cls.__module__.startswith(f"{__package__}."):
        # Names of built-in classes are taken, also of those that nobody has used yet.
        for module in BUILT_IN:
            import_module(f"{__package__}.{module}")
    row = Row(name or cls.name, cls, to_parts, from_parts, random, from_toml, words or {}, parting)
    for other in list(_rows.values()):
        same = (cls.__module__, cls.__qualname__) == (other.cls.__module__, other.cls.__qualname__)
        if same:
            del _rows[other.name]
        elif row.name == other.name or cls.__name__ == other.cls.__name__:
            raise ParameterError(
                f"{cls.__module__}.{cls.__qualname__} cannot be registered as {row.name!r}: "
                f"{other.cls.__module__}.{other.cls.__qualname__} is known by this name; choose another one"
            )
    _rows[row.name] = row


def names(everywhere: bool = True) -> tuple[str, ...]:
    """Names of all rows, built-in ones first; without loading what packages register unless `everywhere`."""
    if everywhere:
        _load_packages()
    return tuple(dict.fromkeys((*BUILT_IN, *_rows)))


def row(name: str) -> Row:
    """The row called `name`."""
    if name in BUILT_IN:
        import_module(f"{__package__}.{name}")
    if name not in _rows:
        _load_packages()
    if name not in _rows:
        raise ParameterError(unknown(f"matroid = {name!r} is not known", name, names()))
    return _rows[name]


def row_of(cls: type[Matroid]) -> Row | None:
    """The row of a class itself; None for a class without one, a subclass of a built-in one among them."""
    return next((one for one in _rows.values() if one.cls is cls), None)


def row_of_saved(class_name: str) -> Row | None:
    """The row of the class with this name, as it stands in files."""
    for everywhere in (False, True):
        for name in names(everywhere):
            if row(name).cls.__name__ == class_name:
                return row(name)
    return None


@cache
def _load_packages() -> None:
    """Import what installed packages name as entry points. Once; some 10 ms."""
    from importlib.metadata import entry_points

    for point in entry_points(group=ENTRY_POINTS):
        try:
            point.load()
        except Exception as error:  # whatever a package raises: it must not take the others along
            warnings.warn(f"matroid {point.name!r} of {point.value} cannot be loaded: {error}", stacklevel=2)
