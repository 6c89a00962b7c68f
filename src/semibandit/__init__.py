"""Matroid semi-bandits in sublinear time.

Public names are imported on first use, so that ``import semibandit`` and ``semibandit --help`` stay fast and
nothing is compiled before it is needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

_EXPORTS: dict[str, str] = {
    "Matroid": "semibandit.matroids",
    "Uniform": "semibandit.matroids",
    "Partition": "semibandit.matroids",
    "Laminar": "semibandit.matroids",
    "Graphic": "semibandit.matroids",
    "Transversal": "semibandit.matroids",
    "Linear": "semibandit.matroids",
    "CLUCB": "semibandit.policies",
    "IdentificationResult": "semibandit.policies",
    "identify": "semibandit.policies",
    "InnerProductBase": "semibandit.paper",
    "Policy": "semibandit.policies",
    "Environment": "semibandit.environments",
    "Adversary": "semibandit.environments",
    "Bernoulli": "semibandit.environments",
    "Beta": "semibandit.environments",
    "Gaussian": "semibandit.environments",
    "HeavyTailed": "semibandit.environments",
    "LinearContexts": "semibandit.environments",
    "LinearRewards": "semibandit.environments",
    "UniformNoise": "semibandit.environments",
    "Table": "semibandit.environments",
    "Trace": "semibandit.environments",
    "Correlated": "semibandit.environments",
    "Switching": "semibandit.environments",
    "Drifting": "semibandit.environments",
    "Catalog": "semibandit.catalog",
    "LabelledDecision": "semibandit.catalog",
    "Fleet": "semibandit.fleet",
    "Sharded": "semibandit.distributed",
    "simulate": "semibandit.simulation",
    "compare": "semibandit.simulation",
    "SemibanditError": "semibandit.errors",
    "MatroidError": "semibandit.errors",
    "ArmError": "semibandit.errors",
    "RewardError": "semibandit.errors",
    "ParameterError": "semibandit.errors",
    "ClockError": "semibandit.errors",
    "ExperimentError": "semibandit.errors",
    "MissingExtraError": "semibandit.errors",
    "FileError": "semibandit.errors",
    "ShardError": "semibandit.errors",
    "load": "semibandit.policies.files",
    "Decision": "semibandit.policies.decisions",
    "beta_prior": "semibandit.policies.prior",
    "fit_prior": "semibandit.policies.prior",
    "minimize": "semibandit.policies.costs",
}

# Modules that stand at the top level under another name.
_MODULES: dict[str, str] = {
    "theory": "semibandit.paper.theory",
    "schedules": "semibandit.policies.schedules",
}

__all__ = [
    "CLUCB",
    "CTS",
    "CUCB",
    "ESCB",
    "FPL",
    "FTRL",
    "KLOSM",
    "MAUB",
    "OSSB",
    "Adversary",
    "ArmError",
    "Bernoulli",
    "Beta",
    "Catalog",
    "ClockError",
    "CombLinTS",
    "CombLinUCB",
    "Correlated",
    "DiscountedCUCB",
    "Drifting",
    "Environment",
    "EpsilonGreedy",
    "ExperimentError",
    "FasterCUCB",
    "FileError",
    "Fleet",
    "Gaussian",
    "Graphic",
    "Greedy",
    "HeavyTailed",
    "IdentificationResult",
    "InnerProductBase",
    "Laminar",
    "Linear",
    "LinearContexts",
    "LinearRewards",
    "Matroid",
    "MatroidError",
    "MissingExtraError",
    "OneSeedTS",
    "Oracle",
    "ParameterError",
    "Partition",
    "Policy",
    "Random",
    "RewardError",
    "RobustCUCB",
    "SemibanditError",
    "ShardError",
    "Sharded",
    "SlidingWindowCUCB",
    "Switching",
    "Table",
    "Trace",
    "Transversal",
    "Uniform",
    "UniformNoise",
    "__version__",
    "compare",
    "identify",
    "load",
    "minimize",
    "schedules",
    "simulate",
    "theory",
]


def __getattr__(name: str) -> Any:
    module = _EXPORTS.get(name)
    if name in _MODULES:
        value: Any = import_module(_MODULES[name])
    elif module is not None:
        value = getattr(import_module(module), name)
    else:
        value = _policy(name)
    globals()[name] = value
    return value


def _policy(name: str) -> Any:
    """A policy class of the catalogue by its name."""
    if name[:1].isupper():
        from semibandit.policies.catalogue import policy_class

        found = policy_class(name)
        if found is not None:
            return found
    raise AttributeError(f"module 'semibandit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_EXPORTS, *_MODULES, *__all__})


if TYPE_CHECKING:
    from semibandit.catalog import Catalog
    from semibandit.distributed import Sharded
    from semibandit.environments import (
        Adversary,
        Bernoulli,
        Beta,
        Correlated,
        Drifting,
        Environment,
        Gaussian,
        HeavyTailed,
        LinearContexts,
        LinearRewards,
        Switching,
        Table,
        Trace,
        UniformNoise,
    )
    from semibandit.errors import (
        ArmError,
        ClockError,
        ExperimentError,
        FileError,
        MatroidError,
        MissingExtraError,
        ParameterError,
        RewardError,
        SemibanditError,
        ShardError,
    )
    from semibandit.fleet import Fleet
    from semibandit.matroids import Graphic, Laminar, Linear, Matroid, Partition, Transversal, Uniform
    from semibandit.paper import InnerProductBase, theory
    from semibandit.policies import (
        CLUCB,
        CTS,
        CUCB,
        ESCB,
        FPL,
        FTRL,
        KLOSM,
        MAUB,
        OSSB,
        CombLinTS,
        CombLinUCB,
        DiscountedCUCB,
        EpsilonGreedy,
        FasterCUCB,
        Greedy,
        IdentificationResult,
        OneSeedTS,
        Oracle,
        Policy,
        Random,
        RobustCUCB,
        SlidingWindowCUCB,
        identify,
        schedules,
    )
    from semibandit.policies.costs import minimize
    from semibandit.policies.files import load
    from semibandit.simulation import compare, simulate
