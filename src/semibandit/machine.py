"""The machine in general terms: enough to read a figure by, nothing that names a host or a place."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

PACKAGES = ("semibandit", "numpy", "numba", "scipy", "networkx", "matplotlib", "polars")


def cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def package_version(name: str) -> str | None:
    """Installed version of a package, None when it is not there."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def describe_machine() -> dict[str, Any]:
    """Cores, system, versions."""
    return {
        "cores": cores(),
        "system": platform.system(),
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "packages": {name: found for name in PACKAGES if (found := package_version(name)) is not None},
    }
