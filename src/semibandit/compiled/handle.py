"""Handing many arrays from Python to a kernel at the price of one.

Unboxing an array argument costs about 80 ns, so a state of twenty arrays costs more than a round of the kinetic
engine. A handle is one int64 vector of addresses and shapes; inside the kernel an opener makes the state of it
again, in a few register moves. Whoever holds the handle must hold the arrays too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from semibandit.arms import IntArray

# Address and up to three dimensions.
ROW = 4

_DTYPES = {"f": types.float64, "i": types.int64, "b": types.boolean, "u": types.uint8}
_KINDS = {"float64": "f", "int64": "i", "bool": "b", "uint8": "u"}


def layout(state: tuple[Any, ...]) -> str:
    """Kind and dimensions of each array of a state, as an opener wants them: ``"f2 f3 i1"``."""
    return " ".join(f"{_KINDS[array.dtype.name]}{array.ndim}" for array in state)


def make_handle(state: tuple[Any, ...]) -> IntArray:
    """Addresses and shapes of the arrays of a state, in the order of its fields."""
    handle = np.zeros(ROW * len(state), dtype=np.int64)
    for i, array in enumerate(state):
        if not array.flags.carray:
            raise TypeError(f"field {i} of the state must be a writeable C-contiguous array")
        handle[ROW * i] = array.ctypes.data
        handle[ROW * i + 1 : ROW * i + 1 + array.ndim] = array.shape
    return handle


def opener(state_class: Any, fields: str) -> Any:
    """A function for kernels that turns a handle into a `state_class` whose arrays are as `layout` says."""
    arrays = [types.Array(_DTYPES[f[0]], int(f[1:]), "C") for f in fields.split()]
    state_type = types.NamedTuple(arrays, state_class)  # type: ignore[attr-defined]
    if len(arrays) != len(state_class._fields):
        raise TypeError(f"{state_class.__name__} has {len(state_class._fields)} fields, not {len(arrays)}")

    @intrinsic
    def open_state(typingctx, handle):  # type: ignore[no-untyped-def]
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            proxy = context.make_array(signature.args[0])(context, builder, args[0])
            word = ir.IntType(64)

            def entry(i: int) -> Any:
                return builder.load(cgutils.gep_inbounds(builder, proxy.data, i))

            parts = []
            for i, array_type in enumerate(arrays):
                size = context.get_abi_sizeof(context.get_data_type(array_type.dtype))
                shape = [entry(ROW * i + 1 + d) for d in range(array_type.ndim)]
                strides = [ir.Constant(word, size)]
                for length in reversed(shape[1:]):
                    strides.insert(0, builder.mul(strides[0], length))
                array = context.make_array(array_type)(context, builder)
                populate_array(
                    array,
                    data=builder.inttoptr(entry(ROW * i), array.data.type),
                    shape=shape,
                    strides=strides,
                    itemsize=ir.Constant(word, size),
                    meminfo=None,
                )
                parts.append(array._getvalue())
            return context.make_tuple(builder, state_type, parts)

        return state_type(handle), codegen

    return open_state
