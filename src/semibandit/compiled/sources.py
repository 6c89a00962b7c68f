"""What the code of a kernel depends on, as a hash: binaries and cached code of other sources are never run.

numba does not notice edits in a module that a kernel calls, so everything compiled is filed under a fingerprint of the
kernel's own module and of all modules with kernels that this one imports, directly or not. A module counts when it
imports something of `semibandit.compiled`, or is `arms`, whose constants kernels use; tests/compiled/test_sources.py
checks that no kernel takes a constant from anywhere else.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
_NAME = PACKAGE.name

# Columns of an arm record: constants to every kernel, in a module that needs nothing compiled.
_CONSTANTS = f"{_NAME}.arms"

# How kernels are made into machine code. Everything depends on these.
_MAKERS = tuple(f"{_NAME}.compiled.{part}" for part in ("jit", "generic", "handle", "split", "ahead"))

_IMPORT = re.compile(
    rf"^\s*(?:from\s+({_NAME}[\w.]*)\s+import\s+\(?([\w, ]*)|import\s+({_NAME}[\w.]*))", re.MULTILINE
)


@functools.cache
def _text(module: str) -> bytes:
    """The source of a module of this package, empty if there is none."""
    path = PACKAGE.joinpath(*module.split(".")[1:])
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return file.read_bytes()
    return b""


@functools.cache
def holds_kernels(module: str) -> bool:
    """Whether a module may hold kernels or their constants."""
    return module == _CONSTANTS or b"semibandit.compiled" in _text(module)


@functools.cache
def _imports(module: str) -> frozenset[str]:
    """Modules with kernels that a module imports."""
    found = set()
    for origin, names, plain in _IMPORT.findall(_text(module).decode()):
        found.add(origin or plain)
        # from semibandit.engines.kinetic import tournament
        found.update(f"{origin}.{name.split(' as ')[0].strip()}" for name in names.split(",") if name.strip())
    return frozenset(name for name in found if _text(name) and holds_kernels(name) and name != module)


@functools.cache
def fingerprint(modules: frozenset[str]) -> str:
    """A hash of these modules and of all with kernels that they depend on. O(their size), once."""
    seen: set[str] = set()
    waiting = [*modules, *_MAKERS]
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting.extend(_imports(module) - seen)
    digest = hashlib.sha256()
    for module in sorted(seen):
        digest.update(module.encode() + b"\0" + _text(module) + b"\0")
    return digest.hexdigest()[:16]


def all_sources() -> str:
    """A hash of all modules with kernels: whether anything compiled ahead may be out of date."""
    return fingerprint(frozenset(kernel_modules()))


def kernel_modules() -> Iterable[str]:
    """All modules of the package that may hold kernels."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if holds_kernels(module):
            yield module
