"""Environments: rewards for the played arms only, exact means, regret in O(D).

Classes are imported on first use: the names of all of them (`semibandit.environments.codec`) cost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from semibandit.environments.codec import ROWS

__all__ = [
    "Adversary",
    "Bernoulli",
    "Beta",
    "Correlated",
    "Drifting",
    "Environment",
    "EnvironmentState",
    "Gaussian",
    "HeavyTailed",
    "LinearContexts",
    "LinearRewards",
    "Switching",
    "Table",
    "Trace",
    "UniformNoise",
]

_MODULES = {row.cls: row.module for row in ROWS.values()} | {
    "Environment": "base",
    "EnvironmentState": "base",
    "Switching": "changing",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


if TYPE_CHECKING:
    from semibandit.environments.adversary import Adversary
    from semibandit.environments.base import Environment, EnvironmentState
    from semibandit.environments.bernoulli import Bernoulli
    from semibandit.environments.beta import Beta
    from semibandit.environments.changing import Drifting, Switching
    from semibandit.environments.correlated import Correlated
    from semibandit.environments.gaussian import Gaussian
    from semibandit.environments.heavy_tailed import HeavyTailed
    from semibandit.environments.linear_rewards import LinearContexts, LinearRewards
    from semibandit.environments.noise import UniformNoise
    from semibandit.environments.table import Table
    from semibandit.environments.trace import Trace
