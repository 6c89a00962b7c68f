"""Asking for memory before it is needed.

With a million arms every array of arms is larger than the caches, and a round that goes to one arm after the other
waits for each: a request ahead of time lets the waits overlap.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_INT = ir.IntType(64)


def ask_for_line(builder: Any, address: Any) -> None:
    """Emit the request for the cache line at an integer address."""
    byte = ir.IntType(8).as_pointer()
    number = ir.IntType(32)
    function_type = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
    arguments = [ir.Constant(number, value) for value in (0, 3, 1)]
    builder.call(function, [builder.inttoptr(address, byte), *arguments])


@intrinsic
def prefetch(typingctx, array, i):  # type: ignore[no-untyped-def]
    """Ask for the line where ``array[i]`` begins. Changes nothing and cannot fail, whatever `i` is."""
    if not isinstance(array, types.Array) or not isinstance(i, types.Integer):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        proxy = context.make_array(signature.args[0])(context, builder, args[0])
        stride = cgutils.unpack_tuple(builder, proxy.strides)[0]
        start = builder.ptrtoint(proxy.data, _INT)
        ask_for_line(builder, builder.add(start, builder.mul(args[1], stride)))
        return context.get_dummy_value()

    return types.none(array, types.int64), codegen
