"""The graphic engines' state as one vector of addresses, and how kernels open it.

As `_handle`, for a state that has a state inside and 32-bit integers. Kernels hand the vector on, not the arrays: a
call then passes one array instead of thirty. The last entry is the address of the compiled solver: loops that
call it through that address need not contain it, and compile in a second instead of ten.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from semibandit.arms import IntArray
from semibandit.compiled.handle import ROW, make_handle
from semibandit.engines.graphic.rows import Rows
from semibandit.engines.graphic.state import ForestArrays

_KINDS = {"float64": types.float64, "int64": types.int64, "int32": types.int32}


def flat_arrays(state: ForestArrays) -> tuple[Any, ...]:
    """All arrays of the state, those of the rows where the rows stand."""
    arrays: list[Any] = []
    for part in state:
        arrays.extend(part if isinstance(part, tuple) else [part])
    return tuple(arrays)


def _array_types(names: str) -> list[Any]:
    """Types from ``float64:2 int32:1 ...``, one a field."""
    parts = (name.split(":") for name in names.split())
    return [types.Array(_KINDS[kind], int(ndim), "C") for kind, ndim in parts]


_ROW_ARRAYS = _array_types("int32:2 float64:1 int32:1 int32:1 float64:1 int32:1 int32:2 float64:1 int32:1")
_ROWS = types.NamedTuple(_ROW_ARRAYS, Rows)  # type: ignore[attr-defined]
_FIELDS = [
    *_array_types("float64:2"),
    _ROWS,
    *_array_types(
        "float64:1 int32:2 float64:1 int32:2 int32:2 int32:2 float64:1 int64:1 float64:1 int64:1 int64:1 int64:1 "
        "int64:1 int64:1 int32:2 int64:2 int32:2 int32:1 int64:1 int64:1 float64:1"
    ),
]
_FOREST = types.NamedTuple(_FIELDS, ForestArrays)  # type: ignore[attr-defined]


_HANDLE = types.Array(types.int64, 1, "C")
_SOLVER = ROW * (len(_ROW_ARRAYS) + len(_FIELDS) - 1)


def forest_handle(state: ForestArrays, solver: Any) -> IntArray:
    """The vector of addresses; ``solver(handle, lam, rank) -> int`` is a kernel, compiled now or loaded from disk.

    Whoever holds the vector must hold the state too.
    """
    signature = types.int64(_HANDLE, types.float64, types.int64)
    solver.compile(signature)
    compiled = solver.overloads[signature.args]
    address = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
    return np.append(make_handle(flat_arrays(state)), np.int64(address))


@intrinsic
def call_solver(typingctx, handle, lam, rank):  # type: ignore[no-untyped-def]
    """Call the solver whose address is in the handle."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        convention = context.call_conv
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        address = builder.load(cgutils.gep_inbounds(builder, data, _SOLVER))
        kind = convention.get_function_type(signature.return_type, signature.args)
        pointer = builder.inttoptr(address, kind.as_pointer())
        status, result = convention.call_function(
            builder, pointer, signature.return_type, signature.args, args
        )
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return result

    return types.int64(handle, types.float64, types.int64), codegen


@intrinsic
def open_forest(typingctx, handle):  # type: ignore[no-untyped-def]
    """The `ForestArrays` behind a handle; what a kernel does not use is not even loaded."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        word = ir.IntType(64)
        position = 0

        def entry(i: int) -> Any:
            return builder.load(cgutils.gep_inbounds(builder, data, ROW * position + i))

        def make(kind: Any) -> Any:
            nonlocal position
            if kind is _ROWS:
                return context.make_tuple(builder, _ROWS, [make(part) for part in _ROW_ARRAYS])
            size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
            shape = [entry(1 + d) for d in range(kind.ndim)]
            strides = [ir.Constant(word, size)]
            for length in reversed(shape[1:]):
                strides.insert(0, builder.mul(strides[0], length))
            array = context.make_array(kind)(context, builder)
            address = builder.inttoptr(entry(0), array.data.type)
            itemsize = ir.Constant(word, size)
            populate_array(array, data=address, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
            position += 1
            return array._getvalue()

        return context.make_tuple(builder, _FOREST, [make(kind) for kind in _FIELDS])

    return _FOREST(handle), codegen
