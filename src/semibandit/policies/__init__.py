"""Policies: who chooses the base. See `semibandit.policies.base` for the contract, `catalogue` for the list."""

from __future__ import annotations

from semibandit.policies.base import Policy
from semibandit.policies.baselines import EpsilonGreedy, Greedy, Random
from semibandit.policies.catalogue import register
from semibandit.policies.files import load
from semibandit.policies.fpl import FPL
from semibandit.policies.ftrl.policy import FTRL
from semibandit.policies.identification.clucb import CLUCB, IdentificationResult, identify
from semibandit.policies.index.cucb import CUCB
from semibandit.policies.index.discounted import DiscountedCUCB
from semibandit.policies.index.escb import ESCB
from semibandit.policies.index.faster_cucb import FasterCUCB
from semibandit.policies.index.kl_osm import KLOSM
from semibandit.policies.index.maub import MAUB
from semibandit.policies.index.ossb import OSSB
from semibandit.policies.index.robust import RobustCUCB
from semibandit.policies.index.sliding_window import SlidingWindowCUCB, window_for
from semibandit.policies.linear.comb_lin import CombLinTS, CombLinUCB, theorem_width
from semibandit.policies.oracle import Oracle
from semibandit.policies.thompson.cts import CTS
from semibandit.policies.thompson.one_seed import OneSeedTS

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
    "CombLinTS",
    "CombLinUCB",
    "DiscountedCUCB",
    "EpsilonGreedy",
    "FasterCUCB",
    "Greedy",
    "IdentificationResult",
    "OneSeedTS",
    "Oracle",
    "Policy",
    "Random",
    "RobustCUCB",
    "SlidingWindowCUCB",
    "identify",
    "load",
    "register",
    "theorem_width",
    "window_for",
]
