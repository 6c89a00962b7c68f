"""What makes a function a kernel, and when it is compiled.

A kernel is called from Python or from other kernels. From Python it runs as machine code that was made when the package
was built, if there is such code for this very source and for the arguments' types (`native`); otherwise numba is
imported, compiles it and keeps the result on disk (`split`). Importing a module with kernels neither compiles anything
nor imports numba.

Settings, read from the environment: ``SEMIBANDIT_JIT=1`` leaves what was compiled ahead aside (so do numba's bounds
checks), ``SEMIBANDIT_CACHE_DIR`` says where compiled code is kept, ``SEMIBANDIT_QUIET=1`` silences the notice.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from semibandit.compiled import sources

F = TypeVar("F", bound=Callable[..., Any])

# -- numba, when it is needed ----------------------------------------------------------------------------------


class _Module:
    """A module that is imported when something of it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(importlib.import_module(self._name), attribute)
        setattr(self, attribute, value)
        return value


types: Any = _Module("numba.core.types")
cgutils: Any = _Module("numba.core.cgutils")
ir: Any = _Module("llvmlite.ir")


class _Later:
    """Something that kernels know by its value, made when the first kernel that uses it is compiled."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = functools.cache(make)

    @property
    def _numba_type_(self) -> Any:
        from numba.core.registry import cpu_target

        value = self._make()
        cpu_target.target_context.refresh()
        return cpu_target.typing_context.resolve_value_type(value)


def intrinsic(function: F) -> Any:
    """`numba.extending.intrinsic`, without importing numba now."""

    def make() -> Any:
        from numba.extending import intrinsic as numba_intrinsic

        return numba_intrinsic(function)

    return _Later(make)


# -- where compiled code is kept -------------------------------------------------------------------------------


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
    """Drop code of compilers and settings that nobody has used for a month."""
    month_ago = time.time() - 30 * 86_400
    with contextlib.suppress(OSError):
        os.utime(parent / keep)
        for old in parent.glob("kernels-*"):
            if old.name != keep and old.stat().st_mtime < month_ago:
                shutil.rmtree(old, ignore_errors=True)


@functools.cache
def cache_directory() -> Path:
    """First writable of: $SEMIBANDIT_CACHE_DIR, the user's cache directory, a temporary one. Imports numba.

    Named after the version and the settings of the compiler; what is in it is filed under the sources it was made of.
    """
    import numba
    from numba.core import config

    settings = f"{numba.__version__} {sys.version_info[:2]} {bool(config.BOUNDSCHECK)} {config.OPT}"
    name = f"kernels-{hashlib.sha256(settings.encode()).hexdigest()[:12]}"
    for parent in cache_parents():
        if _writable(parent / name):
            _prune(parent, keep=name)
            return parent / name
    return Path(tempfile.mkdtemp(prefix="semibandit-")) / name


def cache_parents() -> list[Path]:
    """Where compiled code may be kept, best first."""
    parents = []
    if os.environ.get("SEMIBANDIT_CACHE_DIR"):
        parents.append(Path(os.environ["SEMIBANDIT_CACHE_DIR"]))
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    parents.append(Path(home) / "semibandit")
    return parents


# -- kernels ---------------------------------------------------------------------------------------------------

#: All kernels made so far, by name.
KERNELS: dict[str, Kernel] = {}

#: While the package is built: called with (kernel, *args) in place of every call from Python.
recorder: Callable[..., Any] | None = None

#: While the package is built: told of (kernel, signature) whose address was asked for.
address_recorder: Callable[..., Any] | None = None

#: Whether what is compiled here is kept on disk.
keeps = True

#: While the package is built: kernels call each other in place of being linked into what Python calls. Slow to run, but
#: each is made machine code of once, and whatever is kept of it is made anew by `ahead`.
apart = False


class Kernel:
    """A function for numba, compiled (or loaded) when it is first called.

    `depends` tells modules whose source its code depends on besides its own; `name` is unique in the package.
    """

    def __init__(
        self, py_func: Callable[..., Any], options: dict[str, Any], name: str, depends: Callable[[], set[str]]
    ) -> None:
        functools.update_wrapper(self, py_func)
        self.py_func = py_func
        self.name = name
        self.options = {"nogil": True, "error_model": "numpy", **options}
        self._more = depends
        KERNELS[name] = self

    @property
    def allocates(self) -> bool:
        """Whether it may make arrays, which kernels compiled ahead of time must not."""
        return bool(self.options.get("_nrt", True))

    @functools.cached_property
    def fingerprint(self) -> str:
        """The hash of all sources that its code depends on."""
        return sources.fingerprint(frozenset(self.depends()))

    def depends(self) -> set[str]:
        """Modules that hold its code and that of what it calls, but for those that these import."""
        return {self.py_func.__module__} | self._more()

    @functools.cached_property
    def dispatcher(self) -> Any:
        """What numba compiles and calls."""
        from semibandit.compiled.split import make_dispatcher

        _listen()
        return make_dispatcher(self)

    @functools.cached_property
    def entry(self) -> Callable[..., Any]:
        """The quickest way in from Python: for callers that keep it. A kernel itself takes 0.1 us longer."""
        if recorder is not None:
            return functools.partial(recorder, self)
        from semibandit.compiled import native

        return native.entry(self) or self.dispatcher

    def address(self, spec: str) -> int:
        """Where the kernel is, to be called by another one with arguments of the signature `spec` (see `slots`)."""
        if address_recorder is not None:
            address_recorder(self, spec)
        from semibandit.compiled import native, slots

        return native.address(self, spec) or slots.compiled_address(self, spec)

    def compiled_here(self, *args: Any) -> Any:
        """The kernel as numba compiles it in this process (or finds it on disk)."""
        return self.dispatcher(*args)

    def __call__(self, *args: Any) -> Any:
        return self.entry(*args)

    @property
    def _numba_type_(self) -> Any:
        return types.Dispatcher(self.dispatcher)

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"


def _name(py_func: Callable[..., Any]) -> str:
    return f"{py_func.__module__.removeprefix('semibandit.')}.{py_func.__qualname__}"


def _kernel(function: F | None, options: dict[str, Any]) -> Any:
    def decorate(py_func: F) -> Any:
        return Kernel(py_func, options, _name(py_func), set)

    return decorate if function is None else decorate(function)


def kernel(function: F | None = None, **options: Any) -> Any:
    """Make a function that allocates nothing a kernel: compiled lazily, kept on disk, GIL released, IEEE arithmetic.

    It is compiled without reference counting of arrays: a state of twenty arrays handed from kernel to kernel would
    otherwise cost twenty atomic increments a call (measured: a round at K = 10^6, D = 10 takes 7 us without and 14 us
    with them). `fastmath` stays off: decisions of different engines must agree bit for bit.
    """
    return _kernel(function, {"_nrt": False, **options})


def inline_kernel(function: F | None = None, **options: Any) -> Any:
    """`kernel` that is always inlined: for short kernels that take a whole state of arrays.

    Arrays are passed by value, field by field; a call that hands over twenty of them costs more than it does.
    """
    return _kernel(function, {"_nrt": False, "forceinline": True, **options})


def njit(function: F | None = None, **options: Any) -> Any:
    """`kernel` for functions that make arrays. Never compiled ahead of time: keep them off a first decision."""
    return _kernel(function, options)


# -- telling the user ------------------------------------------------------------------------------------------


class _Count:
    compiled = 0


def compiled_now() -> int:
    """How many kernels this process had to compile (0 when all came from the build or from disk)."""
    return _Count.compiled


@functools.cache
def _listen() -> None:
    """Say once, on stderr, that kernels of this package are being compiled, so that a pause is understood."""
    from numba.core import event

    class CompileNotice(event.Listener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:
            dispatcher = event.data.get("dispatcher") if isinstance(event.data, dict) else None
            if not hasattr(dispatcher, "kernel"):
                return
            _Count.compiled += 1
            if _Count.compiled == 1 and not os.environ.get("SEMIBANDIT_QUIET"):
                print(
                    "semibandit: compiling kernels (once; kept on disk for the next run) ...",
                    file=sys.stderr,
                    flush=True,
                )

        def on_end(self, event: Any) -> None:
            return

    event.register("numba:compile", CompileNotice())
