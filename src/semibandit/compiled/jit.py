"""The one place where kernels meet numba.

`njit` compiles lazily (importing the package compiles nothing) and caches on disk. numba does not notice
edits in a function that a cached kernel calls from another module and would then run stale code, so the cache
directory is named after a hash of every source file of the package that holds kernels. Kernels compiled with
bounds checks live in a directory of their own.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import config
from numba.core import event as _event

F = TypeVar("F", bound=Callable[..., Any])

_PACKAGE = Path(__file__).resolve().parent.parent


def kernel_sources() -> list[Path]:
    """The source files that hold kernels, or could change what a kernel does."""
    return [
        path
        for path in sorted(_PACKAGE.rglob("*.py"))
        # The columns of an arm record are constants to every kernel.
        if b"compiled.jit" in (text := path.read_bytes()) or b"numba" in text or path.name == "arms.py"
    ]


def source_hash() -> str:
    """Hash of all sources that hold kernels, and of the compiler's version and settings. O(size of the package)."""
    digest = hashlib.sha256()
    for path in kernel_sources():
        digest.update(str(path.relative_to(_PACKAGE)).encode())
        digest.update(path.read_bytes())
    digest.update(
        f"{numba.__version__} {sys.version_info[:2]} {bool(config.BOUNDSCHECK)} {config.OPT}".encode()
    )
    return digest.hexdigest()[:16]


def _writable(directory: Path) -> bool:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        probe = directory / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError:
        return False
    return True


def _prune(parent: Path, keep: str) -> None:
    """Drop kernels of versions that nobody has used for a month."""
    month_ago = time.time() - 30 * 86_400
    with contextlib.suppress(OSError):
        os.utime(parent / keep)
        for old in parent.glob("kernels-*"):
            if old.name != keep and old.stat().st_mtime < month_ago:
                shutil.rmtree(old, ignore_errors=True)


def _choose_cache_directory() -> Path:
    """First writable of: $SEMIBANDIT_CACHE_DIR, the user's cache directory, a temporary directory."""
    name = f"kernels-{source_hash()}"
    candidates = []
    if os.environ.get("SEMIBANDIT_CACHE_DIR"):
        candidates.append(Path(os.environ["SEMIBANDIT_CACHE_DIR"]))
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    candidates.append(Path(home) / "semibandit")
    for parent in candidates:
        if _writable(parent / name):
            _prune(parent, keep=name)
            return parent / name
    return Path(tempfile.mkdtemp(prefix="semibandit-")) / name


CACHE_DIRECTORY: Path = _choose_cache_directory()


class _CompileNotice(_event.Listener):  # type: ignore[misc]
    """Says once, on stderr, that kernels of this package are being compiled, so a pause is understood."""

    def __init__(self) -> None:
        self.compiled = 0

    def on_start(self, event: Any) -> None:
        dispatcher = event.data.get("dispatcher") if isinstance(event.data, dict) else None
        module = getattr(getattr(dispatcher, "py_func", None), "__module__", "") or ""
        if not module.startswith("semibandit"):
            return
        self.compiled += 1
        if self.compiled == 1 and not os.environ.get("SEMIBANDIT_QUIET"):
            print(
                "semibandit: compiling kernels (once; kept on disk for the next run) ...",
                file=sys.stderr,
                flush=True,
            )

    def on_end(self, event: Any) -> None:
        return


_notice = _CompileNotice()
_event.register("numba:compile", _notice)


def compiled_now() -> int:
    """How many kernels this process had to compile (0 when all came from the cache)."""
    return _notice.compiled


def kernel(function: F | None = None, **options: Any) -> Any:
    """`njit` for kernels that allocate nothing: compiled without reference counting of arrays.

    A state of twenty arrays handed from kernel to kernel would otherwise cost twenty atomic increments a call
    (measured: a round at K = 10^6, D = 10 takes 7 us without and 14 us with them).
    """
    return njit(function, _nrt=False, **options)


def inline_kernel(function: F | None = None, **options: Any) -> Any:
    """`kernel` that is always inlined: for short kernels that take a whole state of arrays.

    Arrays are passed by value, field by field; a call that hands over twenty of them costs more than it does.
    """
    return kernel(function, forceinline=True, **options)


def njit(function: F | None = None, **options: Any) -> Any:
    """`numba.njit` with this package's defaults: cached, lazily compiled, GIL released, IEEE arithmetic.

    `fastmath` stays off: decisions of different engines must agree bit for bit.
    """

    def decorate(py_func: F) -> Any:
        settings: dict[str, Any] = {"nogil": True, "error_model": "numpy", **options}
        dispatcher = numba.njit(**settings)(py_func)
        if hasattr(dispatcher, "enable_caching"):
            before = config.CACHE_DIR
            config.CACHE_DIR = str(CACHE_DIRECTORY)
            try:
                dispatcher.enable_caching()
            finally:
                config.CACHE_DIR = before
        return dispatcher

    return decorate if function is None else decorate(function)
