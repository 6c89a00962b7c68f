"""Engines: a maximum-weight base kept up to date while weights change. See `semibandit.engines.base`."""

from __future__ import annotations

from semibandit.engines.base import Engine
from semibandit.engines.registry import ENGINES, choose_clock, make_engine
from semibandit.engines.resolve.oracle import resolve_engine

__all__ = ["ENGINES", "Engine", "choose_clock", "make_engine", "resolve_engine"]
