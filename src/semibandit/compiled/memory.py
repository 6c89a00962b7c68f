"""What kernels ask of the machine: lines ahead of time, moves, arrays that begin on a line; and its cycle counter.

With a million arms every array of arms is larger than the caches, and a round that goes to one arm after the other
waits for each: a request ahead of time lets the waits overlap.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semibandit.compiled.jit import cgutils, intrinsic, ir, types


def _int(bits: int = 64) -> Any:
    return ir.IntType(bits)


def aligned(n: int, kind: Any, value: float) -> Any:
    """n times `value`, starting on a cache line, so that 16 entries lie on as few lines as they can."""
    size = np.dtype(kind).itemsize
    raw = np.empty(n * size + 64, dtype=np.uint8)
    start = -raw.ctypes.data % 64
    array = raw[start : start + n * size].view(kind)
    array[:] = value
    return array


def ask_for_line(builder: Any, address: Any, to_write: bool = False) -> None:
    """Emit the request for the cache line at an integer address: keep it, data."""
    pointer = builder.inttoptr(address, _int(8).as_pointer())
    flags = [ir.Constant(_int(32), flag) for flag in (int(to_write), 3, 1)]
    arguments = [pointer, *flags]
    kind = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
    builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0"), arguments)


def _prefetch(to_write: bool) -> Any:
    def prefetch(typingctx, array, i):
        if not isinstance(array, types.Array) or not isinstance(i, types.Integer):
            return None

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            proxy = context.make_array(signature.args[0])(context, builder, args[0])
            stride = cgutils.unpack_tuple(builder, proxy.strides)[0]
            start = builder.ptrtoint(proxy.data, _int())
            ask_for_line(builder, builder.add(start, builder.mul(args[1], stride)), to_write)
            return context.get_dummy_value()

        return types.none(array, types.int64), codegen

    return intrinsic(prefetch)


#: (array, i): ask for the line where ``array[i]`` (of a matrix: that row) begins. Changes nothing and cannot fail,
#: whatever `i` is.
prefetch = _prefetch(to_write=False)
#: The same for a line that will be written.
prefetch_to_write = _prefetch(to_write=True)


@intrinsic
def cycles(typingctx):
    """The processor's cycle counter: cheap enough to tell select from update in rounds of 100 ns."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(_int(), [])
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.readcyclecounter"), [])

    return types.int64(), codegen


@intrinsic
def shift_entries(typingctx, array, to, start, n):
    """array[to : to + n] = array[start : start + n], which may overlap, at the speed of memory."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        size = context.get_abi_sizeof(context.get_data_type(signature.args[0].dtype))
        target, source = (builder.gep(data, [args[i]]) for i in (1, 2))
        cgutils.raw_memmove(builder, target, source, args[3], size)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64, types.int64), codegen


def insert_word(size: int) -> Any:
    """A function (array, first, i, word) that puts a word before the i-th of the `size` words from array[first] on, the
    last of which is gone then; `size` is a multiple of four. In vector registers, and without branches."""

    def insert(typingctx, array, first, i, word):
        if not (isinstance(array, types.Array) and array.dtype in (types.int64, types.float64)):
            return None

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, args[0]).data
            begin = builder.bitcast(builder.gep(data, [args[1]]), _int().as_pointer())
            four = ir.VectorType(_int(), 4)
            zeros = ir.Constant(ir.VectorType(_int(32), 4), [ir.Constant(_int(32), 0)] * 4)
            none = ir.Constant(four, ir.Undefined)

            def everywhere(one: Any) -> Any:
                return builder.shuffle_vector(builder.insert_element(none, one, zero), none, zeros)

            def place(k: int) -> Any:
                return builder.bitcast(builder.gep(begin, [ir.Constant(_int(), k)]), four.as_pointer())

            zero = ir.Constant(_int(32), 0)
            at, new = everywhere(args[2]), everywhere(builder.bitcast(args[3], _int()))
            for k in range(size - 4, -1, -4):
                lanes = ir.Constant(four, [ir.Constant(_int(), k + lane) for lane in range(4)])
                old = builder.load(place(k), align=8)
                if k > 0:
                    before = builder.load(place(k - 1), align=8)
                else:  # nothing before the first word is read
                    mask = [ir.Constant(_int(32), lane) for lane in (0, 0, 1, 2)]
                    before = builder.shuffle_vector(old, none, ir.Constant(ir.VectorType(_int(32), 4), mask))
                moved = builder.select(builder.icmp_signed("==", lanes, at), new, before)
                builder.store(
                    builder.select(builder.icmp_signed("<", lanes, at), old, moved), place(k), align=8
                )
            return context.get_dummy_value()

        return types.void(array, types.int64, types.int64, array.dtype), codegen

    return intrinsic(insert)
