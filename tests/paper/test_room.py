"""The room as a whole: what it may import, and kernels that can be compiled ahead of time."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import semibandit.paper
from semibandit.compiled.jit import KERNELS

MODULES = [part.name for part in pkgutil.walk_packages(semibandit.paper.__path__, "semibandit.paper.")]


def test_importing_the_paper_does_not_import_the_compiler():
    code = f"import sys, {', '.join(MODULES)}; sys.exit('numba' in sys.modules or 'llvmlite' in sys.modules)"
    assert "semibandit.paper.dynamic.graphic" in MODULES
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_no_kernel_makes_arrays():
    for module in MODULES:
        importlib.import_module(module)
    kernels = [kernel for name, kernel in KERNELS.items() if name.startswith("paper.")]
    assert len(kernels) > 80
    assert [kernel.name for kernel in kernels if kernel.allocates] == []
