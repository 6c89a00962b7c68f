"""The inner loops of nested tournaments as vector instructions, on some neighbouring lanes of a block.

As `compiled.lanes`, but for the lanes ``lo .. hi - 1`` only, since small families share blocks; and between nodes ties
go by the arm ids in column 3, not by the lane, since the children of a node are winners of different families. Each
function has a scalar twin in the tests that it must equal bit for bit.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from semibandit.compiled.lanes import (
    _BITS,
    _DOUBLE,
    _INT,
    _VECTOR,
    ABSENT,
    EARLY,
    LANES,
    MARGIN,
    _blocks,
    _call,
    _constant,
    _load,
    _row,
    _splat,
)

_ID = 3
_INFINITE = float("inf")


def _part(builder: Any, lo: Any, hi: Any) -> Any:
    """True in the lanes lo .. hi - 1."""
    one = ir.Constant(_INT, 1)
    bits = builder.sub(builder.shl(one, hi), builder.shl(one, lo))
    return builder.bitcast(builder.trunc(bits, ir.IntType(LANES)), _BITS)


def _smallest(builder: Any, vector: Any) -> Any:
    # nnan: there never is a NaN; it only lets the reduction use the plain instruction.
    return _call(builder, "llvm.vector.reduce.fmin.v16f64", _DOUBLE, [vector], ("nnan",))


def _best(by_id: bool) -> Any:
    @intrinsic
    def best(typingctx, blocks, block, lo, hi, lam):  # type: ignore[no-untyped-def]
        if not _blocks(blocks):
            return None

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array, b, lo, hi, x = args

            def column(i: int) -> Any:
                return _load(builder, _row(context, builder, signature.args[0], array, b, i))

            inside = _part(builder, lo, hi)
            weight = builder.fadd(column(0), builder.fmul(_splat(builder, x), column(1)))
            weight = builder.select(inside, weight, _constant(-_INFINITE))
            top = _call(builder, "llvm.vector.reduce.fmax.v16f64", _DOUBLE, [weight], ("nnan",))
            tied = builder.fcmp_ordered("==", weight, _splat(builder, top))
            if by_id:
                ids = builder.select(tied, column(_ID), _constant(_INFINITE))
                tied = builder.fcmp_ordered("==", ids, _splat(builder, _smallest(builder, ids)))
            bits = builder.bitcast(tied, ir.IntType(LANES))
            lane = _call(builder, "llvm.cttz.i16", ir.IntType(16), [bits, ir.Constant(ir.IntType(1), 0)])
            return builder.zext(lane, _INT)

        return types.int64(blocks, types.int64, types.int64, types.int64, types.float64), codegen

    return best


def _certify(by_id: bool) -> Any:
    @intrinsic
    def certify(typingctx, blocks, block, lo, hi, best, lam):  # type: ignore[no-untyped-def]
        if not _blocks(blocks):
            return None

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array, b, lo, hi, best, x = args

            def both(i: int) -> Any:
                """A column, and the winner's entry in it in all lanes."""
                row = _row(context, builder, signature.args[0], array, b, i)
                return _load(builder, row), _splat(builder, builder.load(builder.gep(row, [best])))

            def magnitude(v: Any) -> Any:
                return _call(builder, "llvm.fabs.v16f64", _VECTOR, [v])

            other, alpha = both(0)
            other_beta, beta = both(1)
            lam = _splat(builder, x)
            margin, zero, infinite = _constant(MARGIN), _constant(0.0), _constant(_INFINITE)
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
            # Ties go to the winner over itself and whatever comes later; an absent lane never wins.
            if by_id:
                other_id, own = both(_ID)
                later = builder.fcmp_ordered(">=", other_id, own)
            else:
                later = _part(builder, best, ir.Constant(_INT, LANES))
            level = builder.fcmp_ordered("==", slope, zero)
            ahead = builder.fcmp_ordered(">=", gap, zero)
            safe = builder.and_(builder.and_(later, level), ahead)
            safe = builder.or_(safe, builder.fcmp_ordered("==", other, _constant(ABSENT)))
            end = builder.select(builder.and_(_part(builder, lo, hi), builder.not_(safe)), end, infinite)
            return _smallest(builder, end)

        signature = types.float64(blocks, types.int64, types.int64, types.int64, types.int64, types.float64)
        return signature, codegen

    return certify


# best(blocks, block, lo, hi, lam): the lane with the largest alpha + lam * beta; of equal ones the first, or that
# with the smallest id. certify(blocks, block, lo, hi, best, lam): a lam' >= lam up to which lane `best`, which wins at
# lam and is finite, beats the others; lane by lane what `tournament.shorten` says, without branches.
best_slot, certify_slots = _best(by_id=False), _certify(by_id=False)
best_node, certify_nodes = _best(by_id=True), _certify(by_id=True)


@intrinsic
def smallest_lane_of(typingctx, blocks, block, lo, hi, column):  # type: ignore[no-untyped-def]
    """The smallest value in the lanes lo .. hi - 1 of a column; `column` is a literal constant."""
    if not _blocks(blocks) or not isinstance(column, types.IntegerLiteral):
        return None
    which = column.literal_value

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array, b, lo, hi, _ = args
        row = _load(builder, _row(context, builder, signature.args[0], array, b, which))
        return _smallest(builder, builder.select(_part(builder, lo, hi), row, _constant(_INFINITE)))

    return types.float64(blocks, types.int64, types.int64, types.int64, column), codegen
