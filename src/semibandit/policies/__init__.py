"""Policies: who chooses the base. See `semibandit.policies.base` for the contract."""

from __future__ import annotations

from semibandit.policies.base import Policy
from semibandit.policies.cucb import CUCB
from semibandit.policies.faster_cucb import FasterCUCB

__all__ = ["CUCB", "FasterCUCB", "Policy"]
