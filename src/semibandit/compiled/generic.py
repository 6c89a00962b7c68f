"""Functions that stand for another kernel for each class of states.

One loop over "an engine" or "a policy" serves all of them: a call such as ``engine_select(state, lam, out)`` in a
kernel becomes a call of the kernel that was registered for the class of its first argument, without a wrapper, when the
loop is compiled for that class.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from semibandit.compiled.jit import types

F = TypeVar("F", bound=Callable[..., Any])

#: generic function -> class of states -> kernel
_KERNELS: dict[Any, dict[type, Any]] = {}
_told: set[Any] = set()


def generic(function: F) -> F:
    """Make `function` generic in its first argument. Its body is for readers; kernels are added with `implement`."""
    _KERNELS[function] = {}
    return function


def implement(function: Any, state_class: type, kernel: Any) -> None:
    """Let `kernel` stand for `function` where the first argument is a `state_class`."""
    _KERNELS[function][state_class] = kernel


def reached(kernel: Any, classes: set[Any]) -> set[Any]:
    """The kernels that `kernel` may call on states of these classes, itself among them.

    Read off the names in their code, so that it does not depend on which modules happen to be imported.
    """
    found: set[Any] = set()
    waiting = [kernel]
    while waiting:
        one = waiting.pop()
        if one in found:
            continue
        found.add(one)
        scope = one.py_func.__globals__
        for name in one.py_func.__code__.co_names:
            value = scope.get(name)
            if hasattr(value, "py_func"):
                waiting.append(value)
            elif isinstance(value, FunctionType) and value in _KERNELS:
                kernels = _KERNELS[value]
                waiting.extend(kernels[cls] for cls in classes if cls in kernels)
    return found


def tell_numba() -> None:
    """Make all generic functions known to numba; called before a kernel is compiled. O(new ones)."""
    for function, kernels in _KERNELS.items():
        if function not in _told:
            _told.add(function)
            _tell(function, kernels)


def _tell(function: Any, kernels: dict[type, Any]) -> None:
    import inspect

    from numba.extending import lower_builtin, type_callable

    from semibandit.compiled.opened import Opened

    names = list(inspect.signature(function).parameters)

    def callee(state: Any) -> Any:
        return kernels[state.instance_class]._numba_type_

    @type_callable(function)
    def type_of(context: Any) -> Any:
        def resolve(state: Any, *rest: Any) -> Any:
            if getattr(state, "instance_class", None) in kernels:
                return callee(state).get_call_type(context, (state, *rest), {})
            return None

        # numba asks for a function with the very arguments of the call.
        scope: dict[str, Any] = {"resolve": resolve}
        exec(f"def typer({', '.join(names)}): return resolve({', '.join(names)})", scope)
        return scope["typer"]

    @lower_builtin(function, Opened, types.VarArg(types.Any))
    @lower_builtin(function, types.BaseNamedTuple, types.VarArg(types.Any))
    def lower(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        call = context.get_function(callee(signature.args[0]), signature)
        for library in getattr(call, "libs", ()):
            context.active_code_library.add_linking_library(library)
        return call(builder, args)
