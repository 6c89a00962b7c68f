"""The two inner loops of a tournament as vector instructions.

LLVM does not vectorise these loops by itself (a first-index search; a minimum over guarded divisions), and
they are where a round's time goes: written with 16-lane vector types they take about a sixth. The types are LLVM's
own, so the same code serves any processor. Each function has a scalar twin in the tests that it must equal bit for bit.

All take a C-contiguous float64 array ``blocks[b, column, lane]`` with 16 lanes, column 0 = alpha, column 1 = beta.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

LANES = 16

# alpha of a lane without an arm: finite, so that no NaN arises from differences, and below every real weight.
ABSENT = -1e300

# Each weight is off by at most 2^-53 (|alpha| + 2 lam beta); the certificate's own arithmetic adds a few more
# units. 2^-49 leaves room for both and is far below any difference that matters.
MARGIN = 2.0**-49
EARLY = 1.0 - 2.0**-45

_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_BITS = ir.VectorType(ir.IntType(1), LANES)
_INT = ir.IntType(64)


def _constant(value: float) -> Any:
    return ir.Constant(_VECTOR, [ir.Constant(_DOUBLE, value)] * LANES)


def _splat(builder: Any, scalar: Any) -> Any:
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [ir.Constant(ir.IntType(32), 0)] * LANES)
    return builder.shuffle_vector(one, ir.Constant(_VECTOR, ir.Undefined), mask)


def _row(context: Any, builder: Any, array_type: Any, array: Any, block: Any, column: int) -> Any:
    """Pointer to the first lane of a column of a block."""
    proxy = context.make_array(array_type)(context, builder, array)
    strides = cgutils.unpack_tuple(builder, proxy.strides)
    data = builder.ptrtoint(proxy.data, _INT)
    address = builder.add(data, builder.mul(block, strides[0]))
    address = builder.add(address, ir.Constant(_INT, 8 * LANES * column))
    return builder.inttoptr(address, _DOUBLE.as_pointer())


def _load(builder: Any, pointer: Any) -> Any:
    return builder.load(builder.bitcast(pointer, _VECTOR.as_pointer()), align=8)


def _call(builder: Any, name: str, result: Any, arguments: list[Any], fastmath: tuple[str, ...] = ()) -> Any:
    function_type = ir.FunctionType(result, [a.type for a in arguments])
    function = cgutils.get_or_insert_function(builder.module, function_type, name)
    return builder.call(function, arguments, fastmath=fastmath)


def _blocks(array: Any) -> bool:
    return (
        isinstance(array, types.Array)
        and array.ndim == 3
        and array.dtype == types.float64
        and array.layout == "C"
    )


@intrinsic
def best_lane(typingctx, blocks, block, lam):  # type: ignore[no-untyped-def]
    """The lane of a block with the largest alpha + lam * beta, of equal ones the first."""
    if not _blocks(blocks):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array, b, x = args
        alpha = _load(builder, _row(context, builder, signature.args[0], array, b, 0))
        beta = _load(builder, _row(context, builder, signature.args[0], array, b, 1))
        weight = builder.fadd(alpha, builder.fmul(_splat(builder, x), beta))
        # nnan: weights are never NaN; it only lets the reduction use the plain maximum instruction.
        top = _call(builder, "llvm.vector.reduce.fmax.v16f64", _DOUBLE, [weight], ("nnan",))
        same = builder.fcmp_ordered("==", weight, _splat(builder, top))
        bits = builder.bitcast(same, ir.IntType(LANES))
        first = _call(builder, "llvm.cttz.i16", ir.IntType(16), [bits, ir.Constant(ir.IntType(1), 0)])
        return builder.zext(first, _INT)

    return types.int64(blocks, types.int64, types.float64), codegen


@intrinsic
def certify_lanes(typingctx, blocks, block, best, lam):  # type: ignore[no-untyped-def]
    """A lam' >= lam up to which lane `best`, which wins at lam and is finite, beats every other lane.

    Lane by lane what `tournament.shorten` says, without branches.
    """
    if not _blocks(blocks):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array, b, best, x = args
        alphas = _row(context, builder, signature.args[0], array, b, 0)
        betas = _row(context, builder, signature.args[0], array, b, 1)
        alpha = _splat(builder, builder.load(builder.gep(alphas, [best])))
        beta = _splat(builder, builder.load(builder.gep(betas, [best])))
        other, other_beta = _load(builder, alphas), _load(builder, betas)
        lam = _splat(builder, x)
        margin, zero, infinite = _constant(MARGIN), _constant(0.0), _constant(float("inf"))

        def magnitude(v: Any) -> Any:
            return _call(builder, "llvm.fabs.v16f64", _VECTOR, [v])

        gap = builder.fsub(alpha, other)
        slope = builder.fsub(other_beta, beta)
        size_alpha = builder.fmul(margin, builder.fadd(magnitude(alpha), magnitude(other)))
        size_beta = builder.fmul(margin, builder.fadd(beta, other_beta))
        run = builder.fadd(slope, size_beta)
        end = builder.fmul(builder.fdiv(builder.fsub(gap, size_alpha), run), _constant(EARLY))
        end = builder.select(builder.fcmp_ordered(">", end, lam), end, lam)
        end = builder.select(builder.fcmp_ordered(">", run, zero), end, infinite)
        close = builder.fcmp_ordered(
            "<=",
            builder.fsub(gap, builder.fmul(lam, slope)),
            builder.fadd(size_alpha, builder.fmul(lam, size_beta)),
        )
        end = builder.select(close, lam, end)
        # Ties go to the winner over itself and later lanes; an absent lane never wins.
        lanes = ir.Constant(ir.VectorType(_INT, LANES), [ir.Constant(_INT, i) for i in range(LANES)])
        start = builder.insert_element(
            ir.Constant(lanes.type, ir.Undefined), best, ir.Constant(ir.IntType(32), 0)
        )
        mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [ir.Constant(ir.IntType(32), 0)] * LANES)
        start = builder.shuffle_vector(start, ir.Constant(lanes.type, ir.Undefined), mask)
        later = builder.icmp_signed(">=", lanes, start)
        level = builder.fcmp_ordered("==", slope, zero)
        ahead = builder.fcmp_ordered(">=", gap, zero)
        safe = builder.and_(builder.and_(later, level), ahead)
        safe = builder.or_(safe, builder.fcmp_ordered("==", other, _constant(ABSENT)))
        end = builder.select(safe, infinite, end)
        return _call(builder, "llvm.vector.reduce.fmin.v16f64", _DOUBLE, [end], ("nnan",))

    return types.float64(blocks, types.int64, types.int64, types.float64), codegen


@intrinsic
def smallest_lane(typingctx, blocks, block, column):  # type: ignore[no-untyped-def]
    """The smallest value of a column of a block; `column` is a literal constant."""
    if not _blocks(blocks) or not isinstance(column, types.IntegerLiteral):
        return None
    which = column.literal_value

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row = _load(builder, _row(context, builder, signature.args[0], args[0], args[1], which))
        return _call(builder, "llvm.vector.reduce.fmin.v16f64", _DOUBLE, [row], ("nnan",))

    return types.float64(blocks, types.int64, column), codegen


def _prefetch(builder: Any, address: Any) -> None:
    """Ask for the cache line at an integer address, to be read soon."""
    byte = ir.IntType(8).as_pointer()
    number = ir.IntType(32)
    function_type = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
    arguments = [ir.Constant(number, value) for value in (0, 3, 1)]
    builder.call(function, [builder.inttoptr(address, byte), *arguments])


@intrinsic
def prefetch_block(typingctx, blocks, block):  # type: ignore[no-untyped-def]
    """Ask for the alphas and betas of a block before they are needed. Changes nothing, may name any block."""
    if not _blocks(blocks):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        start = builder.ptrtoint(_row(context, builder, signature.args[0], args[0], args[1], 0), _INT)
        for line in range(8 * LANES * 2 // 64):
            _prefetch(builder, builder.add(start, ir.Constant(_INT, 64 * line)))
        return context.get_dummy_value()

    return types.none(blocks, types.int64), codegen
