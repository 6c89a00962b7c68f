"""Words of 64 bits in kernels: lowest bits, sets of bits by vectors, floats as words in their order."""

from __future__ import annotations

from typing import Any

from semibandit.compiled.jit import cgutils, intrinsic, ir, types


def _int(bits: int = 64) -> Any:
    return ir.IntType(bits)


@intrinsic
def lowest_bit(typingctx, word):
    """Index of the lowest bit set in a word that is not 0."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(_int(1), 1))

    return types.int64(types.int64), codegen


@intrinsic
def ordered_bits(typingctx, number):
    """An integer that grows with the float: its bits, those of negative floats turned round."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        positive = builder.fadd(args[0], ir.Constant(ir.DoubleType(), 0.0))  # -0.0 equals 0.0
        bits = builder.bitcast(positive, _int())
        sign = builder.ashr(bits, ir.Constant(_int(), 63))
        return builder.xor(bits, builder.and_(sign, ir.Constant(_int(), 2**63 - 1)))

    return types.int64(types.float64), codegen


@intrinsic
def places_that_meet(typingctx, columns, start, word0, word1):
    """Which of the 8 places from `start` on have a bit in common with (word0, word1), as bits; `columns` are two rows,
    of which the first holds the first word of every place."""
    if not (isinstance(columns, types.Array) and columns.dtype == types.int64 and columns.ndim == 2):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        proxy = context.make_array(signature.args[0])(context, builder, args[0])
        stride = cgutils.unpack_tuple(builder, proxy.strides)[0]
        first = builder.add(
            builder.ptrtoint(proxy.data, _int()), builder.shl(args[1], ir.Constant(_int(), 3))
        )
        four = ir.VectorType(_int(), 4)
        zeros = ir.Constant(ir.VectorType(_int(32), 4), [ir.Constant(_int(32), 0)] * 4)

        def words(address: Any, word: Any) -> Any:
            loaded = builder.load(builder.inttoptr(address, four.as_pointer()), align=8)
            one = builder.insert_element(ir.Constant(four, ir.Undefined), word, ir.Constant(_int(32), 0))
            return builder.and_(loaded, builder.shuffle_vector(one, one, zeros))

        found = ir.Constant(_int(), 0)
        # Two halves of four: what leads from a comparison of eight to bits is longer.
        for half in range(2):
            here = builder.add(first, ir.Constant(_int(), 32 * half))
            both = builder.or_(words(here, args[2]), words(builder.add(here, stride), args[3]))
            meets = builder.icmp_signed("!=", both, ir.Constant(four, [ir.Constant(_int(), 0)] * 4))
            bits = builder.zext(builder.bitcast(meets, _int(4)), _int())
            found = builder.or_(found, builder.shl(bits, ir.Constant(_int(), 4 * half)))
        return found

    return types.int64(columns, types.int64, types.int64, types.int64), codegen


@intrinsic
def two_words(typingctx, rows, i):
    """(rows[i, 0], rows[i, 1]) of rows of two words, without asking for their length or for the sign of i."""
    if not (isinstance(rows, types.Array) and rows.dtype == types.int64 and rows.ndim == 2):
        return None
    answer = types.UniTuple(types.int64, 2)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        first = builder.gep(data, [builder.shl(args[1], ir.Constant(_int(), 1))])
        pair = [builder.load(first), builder.load(builder.gep(first, [ir.Constant(_int(), 1)]))]
        return context.make_tuple(builder, answer, pair)

    return answer(rows, types.int64), codegen
