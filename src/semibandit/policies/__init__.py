"""Policies: who chooses the base. See `semibandit.policies.base` for the contract."""

from __future__ import annotations

from semibandit.policies.base import Policy
from semibandit.policies.baselines import EpsilonGreedy, Greedy, Oracle, Random
from semibandit.policies.clucb import CLUCB, IdentificationResult, identify
from semibandit.policies.cts import CTS
from semibandit.policies.cucb import CUCB
from semibandit.policies.discounted import DiscountedCUCB
from semibandit.policies.faster_cucb import FasterCUCB
from semibandit.policies.fpl import FPL
from semibandit.policies.kl_osm import KLOSM
from semibandit.policies.maub import MAUB
from semibandit.policies.sliding_window import SlidingWindowCUCB, window_for

__all__ = [
    "CLUCB",
    "CTS",
    "CUCB",
    "FPL",
    "KLOSM",
    "MAUB",
    "DiscountedCUCB",
    "EpsilonGreedy",
    "FasterCUCB",
    "Greedy",
    "IdentificationResult",
    "Oracle",
    "Policy",
    "Random",
    "SlidingWindowCUCB",
    "identify",
    "window_for",
]
