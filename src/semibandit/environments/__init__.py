"""Environments: rewards for the played arms only, exact means, regret in O(D)."""

from __future__ import annotations

from semibandit.environments.base import Environment, EnvironmentState
from semibandit.environments.bernoulli import Bernoulli
from semibandit.environments.beta import Beta
from semibandit.environments.changing import Drifting, Switching
from semibandit.environments.correlated import Correlated
from semibandit.environments.gaussian import Gaussian
from semibandit.environments.heavy_tailed import HeavyTailed
from semibandit.environments.noise import UniformNoise
from semibandit.environments.table import Table
from semibandit.environments.trace import Trace

__all__ = [
    "Bernoulli",
    "Beta",
    "Correlated",
    "Drifting",
    "Environment",
    "EnvironmentState",
    "Gaussian",
    "HeavyTailed",
    "Switching",
    "Table",
    "Trace",
    "UniformNoise",
]
