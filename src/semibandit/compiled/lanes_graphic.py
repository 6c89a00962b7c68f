"""Three things that numba has no words for: the best of 16 weights at once, asking for memory early, a float's bits."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

LANES, LANE_BITS = 16, 4

_DOUBLE, _INT, _INT32, _BYTE = ir.DoubleType(), ir.IntType(64), ir.IntType(32), ir.IntType(8)
_VECTOR, _INDICES = ir.VectorType(_DOUBLE, LANES), ir.VectorType(_INT, LANES)


def _splat(builder: Any, scalar: Any, kind: Any) -> Any:
    undefined = ir.Constant(kind, ir.Undefined)
    zeros = ir.Constant(ir.VectorType(_INT32, LANES), [ir.Constant(_INT32, 0)] * LANES)
    one = builder.insert_element(undefined, scalar, ir.Constant(_INT32, 0))
    return builder.shuffle_vector(one, undefined, zeros)


def _call(builder: Any, name: str, result: Any, arguments: list[Any], **options: Any) -> Any:
    kind = ir.FunctionType(result, [a.type for a in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments, **options)


@intrinsic
def first_max(typingctx, array, start, lane, value):  # type: ignore[no-untyped-def]
    """Index of the largest of array[start : start + 16], of equal ones the first.

    Entry ``start + lane`` counts as `value` whatever the array holds (no entry does with lane = -1): a value just
    stored would have to reach the cache before a vector that covers it can be loaded.
    """
    if not (isinstance(array, types.Array) and array.dtype == types.float64 and array.ndim == 1):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        pointer = builder.bitcast(builder.gep(data, [args[1]]), _VECTOR.as_pointer())
        lanes = ir.Constant(_INDICES, [ir.Constant(_INT, i) for i in range(LANES)])
        changed = builder.icmp_signed("==", lanes, _splat(builder, args[2], _INDICES))
        loaded = builder.load(pointer, align=8)
        values = builder.select(changed, _splat(builder, args[3], _VECTOR), loaded)
        # nnan: weights are never NaN; it only lets the reduction use the plain maximum instruction.
        top = _call(builder, "llvm.vector.reduce.fmax.v16f64", _DOUBLE, [values], fastmath=("nnan",))
        same = builder.fcmp_ordered("==", values, _splat(builder, top, _VECTOR))
        bits = builder.bitcast(same, ir.IntType(LANES))
        first = _call(builder, "llvm.cttz.i16", ir.IntType(16), [bits, ir.Constant(ir.IntType(1), 0)])
        return builder.add(args[1], builder.zext(first, _INT))

    return types.int64(array, types.int64, types.int64, types.float64), codegen


@intrinsic
def prefetch(typingctx, array, index):  # type: ignore[no-untyped-def]
    """Ask for the cache line of array[index] (of a matrix: where that row begins); it changes only the waiting."""
    if not isinstance(array, types.Array):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        proxy = context.make_array(signature.args[0])(context, builder, args[0])
        offset = builder.mul(builder.extract_value(proxy.strides, 0), args[1])
        pointer = builder.gep(builder.bitcast(proxy.data, _BYTE.as_pointer()), [offset])
        flags = [ir.Constant(_INT32, flag) for flag in (1, 3, 1)]  # to be written, keep, data
        _call(builder, "llvm.prefetch.p0", ir.VoidType(), [pointer, *flags])
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen


@intrinsic
def ordered_bits(typingctx, number):  # type: ignore[no-untyped-def]
    """An integer that grows with the float: its bits, those of negative floats turned round."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        positive = builder.fadd(args[0], ir.Constant(_DOUBLE, 0.0))  # -0.0 equals 0.0
        bits = builder.bitcast(positive, _INT)
        sign = builder.ashr(bits, ir.Constant(_INT, 63))
        return builder.xor(bits, builder.and_(sign, ir.Constant(_INT, 2**63 - 1)))

    return types.int64(types.float64), codegen
