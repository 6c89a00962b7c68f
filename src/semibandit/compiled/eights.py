"""Eight floats that lie end to end: which of them a place is in, by vectors, where one comparison after the other would
be branches that nobody could foresee."""

from __future__ import annotations

from typing import Any

from semibandit.compiled.jit import cgutils, intrinsic, ir, types


def _word(value: int, bits: int = 64) -> Any:
    return ir.Constant(ir.IntType(bits), value)


@intrinsic
def place_in_eight(typingctx, array, start, at):
    """Which of array[start] .. array[start + 7], none of them negative, `at` lies in when they are laid end to end, and
    how far from where that begins; 8 if it lies in none, and how far from the end of all. `start` must not be negative.
    """
    if not (isinstance(array, types.Array) and array.dtype == types.float64 and array.ndim == 1):
        return None
    found = types.Tuple((types.int64, types.float64))

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        four, place = ir.VectorType(ir.DoubleType(), 4), ir.IntType(32)
        length = [builder.load(builder.gep(data, [builder.add(args[1], _word(i))])) for i in range(8)]
        # Sums that hardly wait for each other, and that do not fall from one to the next, whatever is rounded.
        ends = [length[0], builder.fadd(length[0], length[1])]
        for i in range(2, 8, 2):
            both = builder.fadd(length[i], length[i + 1])
            ends += [builder.fadd(ends[i - 1], length[i]), builder.fadd(ends[i - 1], both)]

        def vector(parts: list[Any]) -> Any:
            value: Any = ir.Constant(four, ir.Undefined)
            for i, part in enumerate(parts):
                value = builder.insert_element(value, part, ir.Constant(place, i))
            return value

        everywhere, none = vector([args[2]] * 4), ir.Constant(four, [ir.Constant(ir.DoubleType(), 0.0)] * 4)
        count, passed = _word(0), []
        for half in (vector(ends[:4]), vector(ends[4:])):
            before = builder.fcmp_ordered("<=", half, everywhere)
            bits = builder.zext(builder.bitcast(before, ir.IntType(4)), ir.IntType(64))
            count = builder.add(count, builder.ctpop(bits))
            passed.append(builder.select(before, half, none))
        larger = builder.select(builder.fcmp_ordered(">", *passed), *passed)
        kind = ir.FunctionType(ir.DoubleType(), [four])
        largest = cgutils.get_or_insert_function(builder.module, kind, "llvm.vector.reduce.fmax.v4f64")
        begin = builder.call(largest, [larger], fastmath=("nnan",))
        return context.make_tuple(builder, found, (count, builder.fsub(args[2], begin)))

    return found(array, types.int64, types.float64), codegen
