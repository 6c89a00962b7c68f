"""What the code of a kernel depends on, as a hash: binaries and cached code of other sources are never run.

numba does not notice edits in a module that a kernel calls, so everything compiled is filed under a fingerprint of the
kernel's own module and of all modules with kernels that this one imports, directly or not. A module counts when it
imports something of `semibandit.compiled`, or is `arms`, whose constants kernels use; tests/compiled/test_sources.py
checks that no kernel takes a constant from anywhere else.

Kernels may stand outside the package, as those of ``benchmarks`` and of users do: their modules are read from where
they were imported from, and what they import counts by the same rule. Code that was typed in has no file to go by, so
what is compiled of it is not kept.
"""

from __future__ import annotations

import functools
import hashlib
import re
import sys
from collections.abc import Iterable
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
_NAME = PACKAGE.name

# Columns of an arm record: constants to every kernel, in a module that needs nothing compiled.
_CONSTANTS = f"{_NAME}.arms"

# How kernels are made into machine code. Everything depends on these.
_MAKERS = tuple(f"{_NAME}.compiled.{part}" for part in ("jit", "generic", "handle", "split", "ahead"))

_IMPORT = re.compile(r"^[ \t]*(?:from\s+([\w.]+)\s+import\s+\(?([\w, ]*)|import\s+([\w.]+))", re.MULTILINE)


def _inside(module: str) -> bool:
    """Whether a module is one of this package, by its name."""
    return module == _NAME or module.startswith(f"{_NAME}.")


@functools.cache
def _text(module: str) -> bytes:
    """The source of a module of this package or of one that is imported, empty if there is none."""
    if not _inside(module):
        file = getattr(sys.modules.get(module), "__file__", None)
        return Path(file).read_bytes() if file and file.endswith(".py") and Path(file).is_file() else b""
    path = PACKAGE.joinpath(*module.split(".")[1:])
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return file.read_bytes()
    return b""


@functools.cache
def holds_kernels(module: str) -> bool:
    """Whether a module may hold kernels or their constants."""
    return module == _CONSTANTS or b"semibandit.compiled" in _text(module)


def _absolute(module: str, origin: str) -> str:
    """``from .rest`` in a module outside the package as ``from package.rest``."""
    if not origin.startswith("."):
        return origin
    package = getattr(sys.modules.get(module), "__package__", None) or ""
    up = len(origin) - len(origin.lstrip(".")) - 1
    parts = package.split(".")[: package.count(".") + 1 - up]
    return ".".join([*parts, *filter(None, [origin.lstrip(".")])])


@functools.cache
def _imports(module: str) -> frozenset[str]:
    """Modules with kernels that a module imports."""
    found = set()
    for origin, names, plain in _IMPORT.findall(_text(module).decode()):
        if _inside(module) and not _inside(origin or plain):
            continue
        origin = _absolute(module, origin)
        found.add(origin or plain)
        # from semibandit.engines.kinetic import tournament
        found.update(f"{origin}.{name.split(' as ')[0].strip()}" for name in names.split(",") if name.strip())
    return frozenset(name for name in found if _text(name) and holds_kernels(name) and name != module)


@functools.cache
def fingerprint(modules: frozenset[str]) -> str:
    """A hash of these modules and of all with kernels that they depend on. O(their size), once.

    Empty where one of them is outside the package and has no file: nothing is kept or found under that.
    """
    if not all(_inside(module) or _text(module) for module in modules):
        return ""
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
    """A hash of all modules with kernels, of the lessons and of the way in: whether the binary may be out of date."""
    more = b"".join((PACKAGE / "compiled" / name).read_bytes() for name in ("native.c", "training.py"))
    return hashlib.sha256(fingerprint(frozenset(kernel_modules())).encode() + more).hexdigest()[:16]


def kernel_modules() -> Iterable[str]:
    """All modules of the package that may hold kernels."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if holds_kernels(module):
            yield module
