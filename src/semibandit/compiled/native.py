"""Kernels that were compiled when the package was built, if they are of this very source.

``SEMIBANDIT_JIT=1`` leaves them aside, and so do numba's bounds checks, which only the compiler here can add.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np


def forced() -> bool:
    """Whether the compiler was asked for."""
    return os.environ.get("SEMIBANDIT_JIT") == "1" or os.environ.get("NUMBA_BOUNDSCHECK") == "1"


@functools.cache
def module() -> Any:
    """The extension module with the kernels, or None."""
    if forced():
        return None
    try:
        return importlib.import_module("semibandit.compiled._native")
    except ImportError:
        return None


def entry(kernel: Any) -> Callable[..., Any] | None:
    """A function that runs `kernel` as it was compiled ahead, or None if it was not or its source changed since."""
    native = module()
    if native is None:
        return None
    found: Callable[..., Any] | None = native.bind(kernel.name, kernel.fingerprint, kernel.compiled_here)
    return found


def address(kernel: Any, spec: str) -> int:
    """Where `kernel` of this signature is, as it was compiled ahead, or 0."""
    native = module()
    return 0 if native is None else int(native.address(kernel.name, kernel.fingerprint, spec))


def _ready(arms: Any, rewards: Any) -> bool:
    return bool(
        type(arms) is np.ndarray
        and type(rewards) is np.ndarray
        and arms.dtype == np.int64
        and rewards.dtype == np.float64
        and arms.ndim == 1
        and rewards.shape == arms.shape
        and arms.flags.carray
        and rewards.flags.carray
    )


def _first_ready(arms: Any, rewards: Any) -> bool:
    global ready
    ready = getattr(module(), "ready", _ready)
    return ready(arms, rewards)


#: ``native.ready(arms, rewards)``: whether kernels can take them as they are, vectors of one length, int64 and float64.
#: By the extension module in a tenth of the time, where there is one.
ready: Callable[[Any, Any], bool] = _first_ready


def ahead_of_time() -> list[str]:
    """Names of the kernels that were compiled ahead, whether or not their source changed since."""
    native = module()
    return [] if native is None else sorted({name for name, _, _ in native.entries()})
