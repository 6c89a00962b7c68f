"""One row per kind of environment: all that experiment files and the command line need to know of it.

A new environment is one file and one row here. Importing this module loads neither numpy nor any class, so that
``semibandit --help`` can show the names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from semibandit.errors import ParameterError
from semibandit.text import unknown

if TYPE_CHECKING:
    from semibandit.environments.base import Environment


@dataclass(frozen=True)
class Row:
    """What is known of a kind of environment.

    Attributes
    ----------
    module, cls
        Where its class is, in this room.
    numbers
        Options that are a number, or one per arm, and their defaults in files; None: left to the class.
    wholes
        Options that are an integer of at least 1, and their defaults in files.
    choices
        Options that are one of several words, of which the first is the default.
    observed
        For an environment that is made of observations in place of means: the key that holds them.
    drawn
        Whether ``--env`` offers it: rewards in [0, 1] drawn around means that do not change.
    """

    module: str
    cls: str
    numbers: Mapping[str, float | None] = field(default_factory=dict)
    wholes: Mapping[str, int] = field(default_factory=dict)
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    observed: str | None = None
    drawn: bool = True

    @property
    def options(self) -> tuple[str, ...]:
        """All keys besides means and the like."""
        return (*self.numbers, *self.wholes, *self.choices)

    def load(self) -> Any:
        """The class."""
        return getattr(import_module(f"{__package__}.{self.module}"), self.cls)


#: In which order a `Trace` goes through its rows.
ORDERS = ("time", "shifted", "random")

ROWS: dict[str, Row] = {
    "bernoulli": Row("bernoulli", "Bernoulli"),
    "beta": Row("beta", "Beta", {"concentration": 10.0}),
    "gaussian": Row("gaussian", "Gaussian", {"sigma": 0.1}),
    "noise": Row("noise", "UniformNoise", {"width": 0.2}),
    "correlated": Row("correlated", "Correlated", {"correlation": 0.5, "width": None}),
    "heavy-tailed": Row(
        "heavy_tailed",
        "HeavyTailed",
        {"sigma": 0.5, "outliers": 0.001, "start": None, "exponent": 2.0},
        drawn=False,
    ),
    "drifting": Row(
        "changing", "Drifting", {"amplitude": 0.1}, wholes={"period": 10_000, "every": 100}, drawn=False
    ),
    "linear": Row(
        "linear_rewards", "LinearRewards", {"theta": None, "width": None}, observed="features", drawn=False
    ),
    "contexts": Row(
        "linear_rewards", "LinearContexts", {"theta": None, "width": None}, observed="rows", drawn=False
    ),
    "adversary": Row("adversary", "Adversary", {"growth": 1.61051}, drawn=False),
    "table": Row("table", "Table", observed="observations", drawn=False),
    "trace": Row("trace", "Trace", choices={"order": ORDERS}, observed="rewards", drawn=False),
}

#: What ``--env`` offers.
DRAWN = tuple(name for name, one in ROWS.items() if one.drawn)


def row(name: str) -> Row:
    """The row called `name`."""
    if name not in ROWS:
        raise ParameterError(unknown(f"env = {name!r} is not known", name, ROWS))
    return ROWS[name]


def make_environment(name: str, matroid: Any, source: Any, **options: Any) -> Environment:
    """An environment of kind `name` on `matroid`: around the means `source`, or of these observations.

    `options` that the row has a default for may be left out. Cost of the constructor.

    >>> import semibandit as sb
    >>> make_environment("noise", sb.Uniform(n_arms=2, rank=1), [0.2, 0.8], width=0.1).means.tolist()
    [0.2, 0.8]
    """
    kind = row(name)
    defaults = {key: value for key, value in kind.numbers.items() if value is not None} | dict(kind.wholes)
    made: Environment = kind.load()(matroid, source, **{**defaults, **options})
    return made
