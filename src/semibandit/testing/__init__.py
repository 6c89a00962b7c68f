"""Conformance checks: run them over your own classes to know that the rest of the library may trust them.

Each is imported on first use, so that checking a matroid does not load the rest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_EXPORTS: dict[str, str] = {
    "check_engine": "semibandit.testing.engines",
    "check_environment": "semibandit.testing.environments",
    "check_matroid": "semibandit.testing.matroids",
    "check_policy": "semibandit.testing.policies",
}

__all__ = ["check_engine", "check_environment", "check_matroid", "check_policy"]


def __getattr__(name: str) -> Any:
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module 'semibandit.testing' has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


if TYPE_CHECKING:
    from semibandit.testing.engines import check_engine
    from semibandit.testing.environments import check_environment
    from semibandit.testing.matroids import check_matroid
    from semibandit.testing.policies import check_policy
