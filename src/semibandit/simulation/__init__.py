"""Running policies against environments, and what comes out."""

from __future__ import annotations

from semibandit.simulation.result import Comparison, SimulationResult
from semibandit.simulation.run import compare, simulate

__all__ = ["Comparison", "SimulationResult", "compare", "simulate"]
