"""Handing many arrays from Python to a kernel at the price of one.

Unboxing an array argument costs about 80 ns, so a state of twenty arrays costs more than a round of the kinetic
engine. A handle is one int64 vector of addresses and shapes; inside the kernel an opener makes the state of it
again, which costs nothing: a field is read from the handle where it is used (`opened`), and what a kernel does not use
is not even loaded. Whoever holds the handle must hold the arrays too.

A state is a NamedTuple whose fields are declared once, with the types below (or other states): the layout of its
handle follows from the declaration, and `make_handle` refuses arrays that do not fit it.

>>> from typing import NamedTuple
>>> class Example(NamedTuple):
...     weight: Floats1
...     ends: Ints2
>>> make_handle(Example(np.zeros(3), np.zeros((2, 2), dtype=np.int64))).size
8
>>> make_handle(Example(np.zeros(3), np.zeros(2, dtype=np.int64)))
Traceback (most recent call last):
TypeError: Example.ends must be a C-contiguous int64 array of 2 dimensions, got int64 of 1
"""

from __future__ import annotations

import functools
import inspect
import re
import typing
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from semibandit.compiled.generic import reached
from semibandit.compiled.jit import Kernel, intrinsic


@dataclass(frozen=True)
class ArrayOf:
    """A field of a state: a C-contiguous array of this type and number of dimensions; 0 for a number that stays."""

    dtype: str
    ndim: int


Floats1 = Annotated[npt.NDArray[np.float64], ArrayOf("float64", 1)]
Floats2 = Annotated[npt.NDArray[np.float64], ArrayOf("float64", 2)]
Floats3 = Annotated[npt.NDArray[np.float64], ArrayOf("float64", 3)]
Ints1 = Annotated[npt.NDArray[np.int64], ArrayOf("int64", 1)]
Ints2 = Annotated[npt.NDArray[np.int64], ArrayOf("int64", 2)]
Words1 = Annotated[npt.NDArray[np.uint64], ArrayOf("uint64", 1)]
Shorts1 = Annotated[npt.NDArray[np.int32], ArrayOf("int32", 1)]
Shorts2 = Annotated[npt.NDArray[np.int32], ArrayOf("int32", 2)]
Bytes1 = Annotated[npt.NDArray[np.uint8], ArrayOf("uint8", 1)]
Flags1 = Annotated[npt.NDArray[np.bool_], ArrayOf("bool", 1)]

Whole = Annotated[int, ArrayOf("int64", 0)]
Word = Annotated[np.uint64, ArrayOf("uint64", 0)]
Number = Annotated[float, ArrayOf("float64", 0)]

# mypy takes classes of states for unhashable.
_memo: Any = functools.cache

# Address and up to three dimensions of an array, or the bits of a number.
ROW = 4


@_memo
def layout(state_class: Any) -> tuple[tuple[str, Any], ...]:
    """Name of each field of a state, and its `ArrayOf` or the class of the state that it is."""
    fields: list[tuple[str, Any]] = []
    for name, hint in typing.get_type_hints(state_class, include_extras=True).items():
        kind = next((part for part in getattr(hint, "__metadata__", ()) if isinstance(part, ArrayOf)), None)
        if kind is None and hasattr(hint, "_fields"):
            kind = hint
        if kind is None:
            raise TypeError(
                f"{state_class.__name__}.{name}: declare it as one of Floats1, Ints2, ... or a state"
            )
        fields.append((name, kind))
    return tuple(fields)


def states_in(state_class: Any) -> set[Any]:
    """A class of states and those of the states inside."""
    inside = (kind for _, kind in layout(state_class) if not isinstance(kind, ArrayOf))
    return {state_class}.union(*(states_in(kind) for kind in inside))


def make_handle(state: Any) -> npt.NDArray[np.int64]:
    """Addresses and shapes of the arrays of a state, in the order of its fields; those of a state inside in its place.

    Raises
    ------
    TypeError
        When an array is not as the state's class declares it.
    """
    rows: list[int] = []
    _add_rows(state, rows)
    return np.array(rows, dtype=np.int64)


def _add_rows(state: Any, rows: list[int]) -> None:
    for (name, kind), value in zip(layout(type(state)), state, strict=True):
        if not isinstance(kind, ArrayOf):
            if type(value) is not kind:
                raise TypeError(
                    f"{type(state).__name__}.{name} must be a {kind.__name__}, got {type(value).__name__}"
                )
            _add_rows(value, rows)
            continue
        if kind.ndim == 0:
            rows.append(int(np.asarray(value, dtype=kind.dtype).view(np.int64)))
            rows.extend([0] * (ROW - 1))
            continue
        if value.dtype.name != kind.dtype or value.ndim != kind.ndim or not value.flags.c_contiguous:
            raise TypeError(
                f"{type(state).__name__}.{name} must be a C-contiguous {kind.dtype} array of {kind.ndim} dimensions, "
                f"got {value.dtype.name} of {value.ndim}"
            )
        rows.append(value.ctypes.data)
        rows.extend(value.shape)
        rows.extend([0] * (ROW - 1 - value.ndim))


@_memo
def rows_of(kind: Any) -> int:
    """How many rows of a handle a field takes: one, or all of a state's."""
    return 1 if isinstance(kind, ArrayOf) else sum(rows_of(part) for _, part in layout(kind))


@_memo
def opener(state_class: Any) -> Any:
    """A function for kernels that makes a `state_class` of its handle: see `opened`."""

    def open_state(typingctx: Any, handle: Any) -> Any:
        from semibandit.compiled.opened import Opened

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return context.make_array(signature.args[0])(context, builder, args[0]).data

        return Opened(state_class)(handle), codegen

    return intrinsic(open_state)


@_memo
def by_handle(kernel: Kernel, *state_classes: Any) -> Kernel:
    """`kernel` whose first arguments are handles of these classes of states: what Python calls."""
    names = list(inspect.signature(kernel.py_func).parameters)
    scope: dict[str, Any] = {"kernel": kernel}
    arguments = list(names)
    for i, state_class in enumerate(state_classes):
        scope[f"open{i}"] = opener(state_class)
        arguments[i] = f"open{i}({names[i]})"
    titles = [_title(state_class) for state_class in state_classes]
    short = re.sub(r"\W", "_", "_".join([kernel.py_func.__name__, *titles]))
    exec(f"def {short}({', '.join(names)}):\n    return kernel({', '.join(arguments)})", scope)
    made = scope[short]
    made.__module__ = kernel.py_func.__module__

    def depends() -> set[str]:
        classes = set().union(*(states_in(state_class) for state_class in state_classes))
        return {cls.__module__ for cls in classes}.union(
            *(part.depends() for part in reached(kernel, classes))
        )

    return Kernel(made, {"_nrt": False}, f"{kernel.name}[{', '.join(titles)}]", depends)


def _title(state_class: Any) -> str:
    return f"{state_class.__module__.removeprefix('semibandit.')}.{state_class.__qualname__}"
