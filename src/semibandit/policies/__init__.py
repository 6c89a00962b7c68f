"""Policies: who chooses the base. See `semibandit.policies.base` for the contract."""

from __future__ import annotations

from semibandit.policies.base import Policy
from semibandit.policies.cucb import CUCB
from semibandit.policies.discounted import DiscountedCUCB
from semibandit.policies.faster_cucb import FasterCUCB
from semibandit.policies.kl_osm import KLOSM
from semibandit.policies.sliding_window import SlidingWindowCUCB, window_for

__all__ = ["CUCB", "KLOSM", "DiscountedCUCB", "FasterCUCB", "Policy", "SlidingWindowCUCB", "window_for"]
