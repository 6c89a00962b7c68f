"""Engines: a maximum-weight base kept up to date while weights change. See `semibandit.engines.base`.

A room is a kind of engine; each registers its engines with `register_engine`.
"""

from __future__ import annotations

from semibandit.engines.base import Engine
from semibandit.engines.registry import ENGINES, choose_clock, make_engine, register_engine
from semibandit.engines.resolve.oracle import resolve_engine

__all__ = ["ENGINES", "Engine", "choose_clock", "make_engine", "register_engine", "resolve_engine"]
