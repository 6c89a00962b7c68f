"""States of the transversal engines as one vector of addresses, and how kernels open it.

As `_handle`, for states that hold states and 32-bit integers. Kernels hand the vector on, not the arrays: a call then
passes one array instead of sixteen, which makes rounds faster and compiling much faster.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from semibandit.arms import IntArray
from semibandit.compiled.handle import ROW, make_handle

_DTYPES = {
    "float64": types.float64,
    "int64": types.int64,
    "int32": types.int32,
    "uint8": types.uint8,
    "bool": types.boolean,
}


def flat_arrays(state: Any) -> tuple[Any, ...]:
    """All arrays of a state, those of a state inside it in its place."""
    arrays: list[Any] = []
    for part in state:
        arrays.extend(flat_arrays(part) if isinstance(part, tuple) else [part])
    return tuple(arrays)


def state_handle(state: Any) -> IntArray:
    """The vector of addresses. Whoever holds it must hold the state too."""
    return make_handle(flat_arrays(state))


def array_types(names: str) -> list[Any]:
    """Types from ``float64:2 int32:1 ...``, one a field."""
    parts = (name.split(":") for name in names.split())
    return [types.Array(_DTYPES[dtype], int(ndim), "C") for dtype, ndim in parts]


def types_of(state: Any) -> list[Any]:
    """The types of the arrays in an example of a state."""
    return array_types(" ".join(f"{array.dtype.name}:{array.ndim}" for array in state))


def state_type(state_class: Any, fields: list[Any]) -> Any:
    """The type of a state whose fields have these types."""
    if len(fields) != len(state_class._fields):
        raise TypeError(f"{state_class.__name__} has {len(state_class._fields)} fields, not {len(fields)}")
    return types.NamedTuple(fields, state_class)  # type: ignore[attr-defined]


def opener(opened: Any) -> Any:
    """A function for kernels that makes of a handle the state of type `opened`; what is not used is not loaded."""

    @intrinsic
    def open_state(typingctx, handle):  # type: ignore[no-untyped-def]
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, args[0]).data
            word = ir.IntType(64)
            position = 0

            def entry(i: int) -> Any:
                return builder.load(cgutils.gep_inbounds(builder, data, ROW * position + i))

            def make(kind: Any) -> Any:
                nonlocal position
                if not isinstance(kind, types.Array):
                    return context.make_tuple(builder, kind, [make(part) for part in kind.types])
                size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
                shape = [entry(1 + d) for d in range(kind.ndim)]
                strides = [ir.Constant(word, size)]
                for length in reversed(shape[1:]):
                    strides.insert(0, builder.mul(strides[0], length))
                array = context.make_array(kind)(context, builder)
                populate_array(
                    array,
                    data=builder.inttoptr(entry(0), array.data.type),
                    shape=shape,
                    strides=strides,
                    itemsize=ir.Constant(word, size),
                    meminfo=None,
                )
                position += 1
                return array._getvalue()

            return make(opened)

        return opened(handle), codegen

    return open_state
