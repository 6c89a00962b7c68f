"""Dynamic algorithms A of the paper: a maximum-weight base under single weight changes in any order."""

from __future__ import annotations

from semibandit.paper.dynamic.base import DynamicBase, dynamic_base

__all__ = ["DynamicBase", "dynamic_base"]
