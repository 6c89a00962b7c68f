"""Matroid semi-bandits in sublinear time.

Public names are imported on first use, so that ``import semibandit`` and ``semibandit --help`` stay fast and
nothing is compiled before it is needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_EXPORTS: dict[str, str] = {
    "Matroid": "semibandit.matroids",
    "Uniform": "semibandit.matroids",
    "Partition": "semibandit.matroids",
    "Laminar": "semibandit.matroids",
    "Graphic": "semibandit.matroids",
    "Transversal": "semibandit.matroids",
    "Linear": "semibandit.matroids",
    "CUCB": "semibandit.policies",
    "FasterCUCB": "semibandit.policies",
    "InnerProductBase": "semibandit.inner_product",
    "Policy": "semibandit.policies",
    "Environment": "semibandit.environments",
    "Bernoulli": "semibandit.environments",
    "Beta": "semibandit.environments",
    "Gaussian": "semibandit.environments",
    "UniformNoise": "semibandit.environments",
    "Table": "semibandit.environments",
    "Correlated": "semibandit.environments",
    "simulate": "semibandit.simulation",
    "compare": "semibandit.simulation",
    "SemibanditError": "semibandit.errors",
    "MatroidError": "semibandit.errors",
    "ArmError": "semibandit.errors",
    "RewardError": "semibandit.errors",
    "ParameterError": "semibandit.errors",
    "ClockError": "semibandit.errors",
    "MissingExtraError": "semibandit.errors",
}

__all__ = [
    "CUCB",
    "ArmError",
    "Bernoulli",
    "Beta",
    "ClockError",
    "Correlated",
    "Environment",
    "FasterCUCB",
    "Gaussian",
    "Graphic",
    "InnerProductBase",
    "Laminar",
    "Linear",
    "Matroid",
    "MatroidError",
    "MissingExtraError",
    "ParameterError",
    "Partition",
    "Policy",
    "RewardError",
    "SemibanditError",
    "Table",
    "Transversal",
    "Uniform",
    "UniformNoise",
    "__version__",
    "compare",
    "simulate",
]


def __getattr__(name: str) -> Any:
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module 'semibandit' has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])


if TYPE_CHECKING:
    from semibandit.environments import (
        Bernoulli,
        Beta,
        Correlated,
        Environment,
        Gaussian,
        Table,
        UniformNoise,
    )
    from semibandit.errors import (
        ArmError,
        ClockError,
        MatroidError,
        MissingExtraError,
        ParameterError,
        RewardError,
        SemibanditError,
    )
    from semibandit.inner_product import InnerProductBase
    from semibandit.matroids import Graphic, Laminar, Linear, Matroid, Partition, Transversal, Uniform
    from semibandit.policies import CUCB, FasterCUCB, Policy
    from semibandit.simulation import compare, simulate
