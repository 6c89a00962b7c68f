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

from semibandit.compiled.prefetch import ask_for_line

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


def _lane_is(builder: Any, compare: str, lane: Any) -> Any:
    """For every lane whether its number is `compare` (">=" or "==") `lane`."""
    lanes = ir.Constant(ir.VectorType(_INT, LANES), [ir.Constant(_INT, i) for i in range(LANES)])
    start = builder.insert_element(
        ir.Constant(lanes.type, ir.Undefined), lane, ir.Constant(ir.IntType(32), 0)
    )
    mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [ir.Constant(ir.IntType(32), 0)] * LANES)
    start = builder.shuffle_vector(start, ir.Constant(lanes.type, ir.Undefined), mask)
    return builder.icmp_signed(compare, lanes, start)


def _heaviest(builder: Any, alpha: Any, beta: Any, lam: Any) -> Any:
    """The first lane of the largest alpha + lam * beta."""
    weight = builder.fadd(alpha, builder.fmul(_splat(builder, lam), beta))
    # nnan: weights are never NaN; it only lets the reduction use the plain maximum instruction.
    top = _call(builder, "llvm.vector.reduce.fmax.v16f64", _DOUBLE, [weight], ("nnan",))
    same = builder.fcmp_ordered("==", weight, _splat(builder, top))
    bits = builder.bitcast(same, ir.IntType(LANES))
    first = _call(builder, "llvm.cttz.i16", ir.IntType(16), [bits, ir.Constant(ir.IntType(1), 0)])
    return builder.zext(first, _INT)


def _certificate(builder: Any, best: Any, key: tuple[Any, Any], others: tuple[Any, Any], x: Any) -> Any:
    """A lam' >= x up to which `key`, in lane `best`, beats all lanes: `tournament.shorten`, without branches."""
    alpha, beta = _splat(builder, key[0]), _splat(builder, key[1])
    other, other_beta = others
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
    level = builder.fcmp_ordered("==", slope, zero)
    ahead = builder.fcmp_ordered(">=", gap, zero)
    safe = builder.and_(builder.and_(_lane_is(builder, ">=", best), level), ahead)
    safe = builder.or_(safe, builder.fcmp_ordered("==", other, _constant(ABSENT)))
    end = builder.select(safe, infinite, end)
    return _call(builder, "llvm.vector.reduce.fmin.v16f64", _DOUBLE, [end], ("nnan",))


@intrinsic
def best_lane(typingctx, blocks, block, lam):  # type: ignore[no-untyped-def]
    """The lane of a block with the largest alpha + lam * beta, of equal ones the first."""
    if not _blocks(blocks):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array, b, x = args
        alpha = _load(builder, _row(context, builder, signature.args[0], array, b, 0))
        beta = _load(builder, _row(context, builder, signature.args[0], array, b, 1))
        return _heaviest(builder, alpha, beta, x)

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
        key = builder.load(builder.gep(alphas, [best])), builder.load(builder.gep(betas, [best]))
        return _certificate(builder, best, key, (_load(builder, alphas), _load(builder, betas)), x)

    return types.float64(blocks, types.int64, types.int64, types.float64), codegen


@intrinsic
def best_lane_with(typingctx, blocks, block, lam, lane, alpha, beta):  # type: ignore[no-untyped-def]
    """(best, its alpha, its beta) of a block if (alpha, beta) stood in `lane`; what does stand there is not read.

    For a path of nodes of which each changes one lane of the next: a vector load right after a store to one of its
    lanes would have to wait until that store has reached the cache.
    """
    if not _blocks(blocks):
        return None
    answer = types.Tuple((types.int64, types.float64, types.float64))  # type: ignore[attr-defined]

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array, b, x, lane, new_alpha, new_beta = args
        alphas = _row(context, builder, signature.args[0], array, b, 0)
        betas = _row(context, builder, signature.args[0], array, b, 1)
        here = _lane_is(builder, "==", lane)
        alpha = builder.select(here, _splat(builder, new_alpha), _load(builder, alphas))
        beta = builder.select(here, _splat(builder, new_beta), _load(builder, betas))
        best = _heaviest(builder, alpha, beta, x)
        is_new = builder.icmp_signed("==", best, lane)
        key = (
            builder.select(is_new, new_alpha, builder.load(builder.gep(alphas, [best]))),
            builder.select(is_new, new_beta, builder.load(builder.gep(betas, [best]))),
        )
        return context.make_tuple(builder, answer, [best, *key])

    return answer(blocks, types.int64, types.float64, types.int64, types.float64, types.float64), codegen


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


@intrinsic
def prefetch_block(typingctx, blocks, block, columns):  # type: ignore[no-untyped-def]
    """Ask for the first `columns` (a literal) columns of a block before they are needed. Changes nothing, may name any
    block."""
    if not _blocks(blocks) or not isinstance(columns, types.IntegerLiteral):
        return None
    lines = 8 * LANES * columns.literal_value // 64

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        start = builder.ptrtoint(_row(context, builder, signature.args[0], args[0], args[1], 0), _INT)
        for line in range(lines):
            ask_for_line(builder, builder.add(start, ir.Constant(_INT, 64 * line)))
        return context.get_dummy_value()

    return types.none(blocks, types.int64, columns), codegen
